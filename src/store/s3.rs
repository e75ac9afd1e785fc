//! S3-compatible stores: object_store's client, with reads signed into the query where a header would cost a preflight.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use object_store::aws::{AmazonS3, AmazonS3Builder, AwsCredentialProvider};
use object_store::client::HttpClient;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{GetOptions, GetResult, ObjectStore, PutOptions, PutPayload, PutResult};
use url::Url;

use super::crypto::RustCrypto;
use super::dav::no_retries;
use super::descriptor::StoreDescriptor;
use super::plain;
use super::service::Connector;
use super::verbs::Verbs;
use crate::error::{Error, Result};

/// How long a signed address is good for; it is made anew for every request.
const SIGNED_FOR: Duration = Duration::from_secs(15 * 60);
const DEFAULT_REGION: &str = "us-east-1";

/// Where a bucket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketAddress {
    /// Bucket name.
    pub bucket: String,
    /// Key of the root; may be empty.
    pub key: String,
    /// `scheme://host[:port]`, without the bucket unless `virtual_hosted`; `None` = AWS by region.
    pub endpoint: Option<String>,
    /// The bucket is part of the host name.
    pub virtual_hosted: bool,
    /// Region, when the address tells.
    pub region: Option<String>,
}

impl BucketAddress {
    /// Reads `s3://bucket/key` or an `https://` address of an object in a bucket.
    pub fn parse(url: &Url) -> Result<BucketAddress> {
        let host = url.host_str().unwrap_or_default();
        let path = percent_decode(url.path().trim_start_matches('/'))?;
        let path = path.trim_end_matches('/');
        if url.scheme() == "s3" {
            if host.is_empty() {
                return Err(Error::invalid("an s3:// address begins with the bucket: s3://bucket/key"));
            }
            let (bucket, key) = (host.to_owned(), path.to_owned());
            return Ok(BucketAddress { bucket, key, endpoint: None, virtual_hosted: false, region: None });
        }
        let endpoint = Some(url.origin().ascii_serialization());
        if let Some(front) = host.strip_suffix(".amazonaws.com") {
            if let Some((bucket, region)) = front.rsplit_once(".s3.").or_else(|| front.rsplit_once(".s3-")) {
                let (bucket, region) = (bucket.to_owned(), Some(region.trim_start_matches("dualstack.").to_owned()));
                return Ok(BucketAddress { bucket, key: path.to_owned(), endpoint, virtual_hosted: true, region });
            }
            if let Some(bucket) = front.strip_suffix(".s3") {
                let (bucket, key) = (bucket.to_owned(), path.to_owned());
                return Ok(BucketAddress { bucket, key, endpoint, virtual_hosted: true, region: None });
            }
        }
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        if bucket.is_empty() {
            return Err(Error::invalid("the address names no bucket: the first part of its path is the bucket"));
        }
        let region = host.strip_suffix(".amazonaws.com").and_then(|h| h.strip_prefix("s3.")).map(str::to_owned);
        Ok(BucketAddress { bucket: bucket.to_owned(), key: key.to_owned(), endpoint, virtual_hosted: false, region })
    }
}

/// Undoes percent-encoding; bytes that are no UTF-8 are refused.
pub(super) fn percent_decode(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut ahead = rest.clone();
        let digits = ahead.next().zip(ahead.next()).and_then(|(a, b)| {
            let (a, b) = (char::from(a).to_digit(16)?, char::from(b).to_digit(16)?);
            u8::try_from(a * 16 + b).ok()
        });
        match digits {
            Some(decoded) => {
                bytes.push(decoded);
                rest = ahead;
            }
            None => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| Error::invalid("the address holds a percent code that is no UTF-8"))
}

/// A bucket.
#[derive(Clone)]
pub struct S3Store {
    inner: Arc<AmazonS3>,
    client: HttpClient,
    sign_queries: bool,
}

impl S3Store {
    /// Opens the bucket at `address` with the keys of `descriptor`, or those that `credentials` gives for each request.
    pub fn new(
        client: HttpClient,
        address: &BucketAddress,
        descriptor: &StoreDescriptor,
        credentials: Option<AwsCredentialProvider>,
        sign_queries: bool,
    ) -> Result<S3Store> {
        // object_store panics on an address that is no URI: what goes into one is checked here.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if !address.bucket.chars().all(plain) || address.bucket.is_empty() {
            return Err(Error::invalid(format!("{:?} cannot be the name of a bucket", address.bucket)));
        }
        let endpoint = descriptor.endpoint.clone().or_else(|| address.endpoint.clone());
        if let Some(given) = &endpoint
            && !Url::parse(given).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && given.parse::<http::Uri>().is_ok())
        {
            return Err(Error::invalid("the endpoint is not an address: https://host[:port]"));
        }
        if !descriptor.region.as_deref().unwrap_or_default().chars().all(plain) {
            return Err(Error::invalid("the region holds signs that no region has"));
        }
        let https = endpoint.as_deref().is_none_or(|e| e.starts_with("https://"));
        let region = descriptor.region.clone().or_else(|| address.region.clone());
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&address.bucket)
            .with_region(region.unwrap_or_else(|| DEFAULT_REGION.to_owned()))
            .with_http_connector(Connector(client.clone()))
            .with_crypto_provider(Arc::new(RustCrypto))
            .with_retry(no_retries())
            .with_disable_bulk_delete(true)
            .with_allow_http(!https)
            // Over TLS the body needs no hash of its own, and hashing costs more than building.
            .with_unsigned_payload(https)
            .with_virtual_hosted_style_request(descriptor.virtual_hosted.unwrap_or(address.virtual_hosted));
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let keys = (&descriptor.access_key_id, &descriptor.secret_access_key);
        let anonymous = descriptor.anonymous.unwrap_or(credentials.is_none() && keys == (&None, &None));
        builder = match (anonymous, credentials, keys) {
            (true, _, _) => builder.with_skip_signature(true),
            (false, Some(provider), _) => builder.with_credentials(provider),
            (false, None, (Some(id), Some(secret))) => {
                let builder = builder.with_access_key_id(id).with_secret_access_key(secret);
                match &descriptor.session_token {
                    Some(token) => builder.with_token(token),
                    None => builder,
                }
            }
            (false, None, _) => {
                return Err(Error::invalid("an S3 store needs both access_key_id and secret_access_key, or anonymous: true"));
            }
        };
        let inner = builder.build().map_err(|_| Error::invalid("these options describe no S3 store"))?;
        Ok(S3Store { inner: Arc::new(inner), client, sign_queries: sign_queries && !anonymous })
    }

    /// Listing in pages.
    pub fn pages(&self) -> Arc<dyn PaginatedListStore> {
        self.inner.clone()
    }
}

impl fmt::Debug for S3Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

impl fmt::Display for S3Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

#[async_trait]
impl Verbs for S3Store {
    async fn put(&self, location: &Path, payload: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn get(&self, location: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        if !self.sign_queries {
            return self.inner.get_opts(location, options).await;
        }
        let url = self.inner.signed_url(Method::GET, location, SIGNED_FOR).await?;
        plain::get(&self.client, url.as_str(), location, &options).await
    }

    async fn delete(&self, location: &Path) -> object_store::Result<()> {
        let url = self.inner.signed_url(Method::DELETE, location, SIGNED_FOR).await?;
        plain::delete(&self.client, url.as_str(), location).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> BucketAddress {
        BucketAddress::parse(&Url::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn addresses() {
        let a = address("s3://bkt/a/b c.lance/");
        assert_eq!((a.bucket.as_str(), a.key.as_str(), a.endpoint), ("bkt", "a/b c.lance", None));
        let a = address("http://127.0.0.1:5000/bkt/t%C3%A9%2B.lance");
        assert_eq!((a.bucket.as_str(), a.key.as_str(), a.virtual_hosted), ("bkt", "té+.lance", false));
        assert_eq!(a.endpoint.as_deref(), Some("http://127.0.0.1:5000"));
        let a = address("https://bkt.s3.eu-west-1.amazonaws.com/t.lance");
        assert_eq!((a.bucket.as_str(), a.region.as_deref(), a.virtual_hosted), ("bkt", Some("eu-west-1"), true));
        let a = address("https://s3.eu-west-1.amazonaws.com/bkt/t.lance");
        assert_eq!((a.bucket.as_str(), a.region.as_deref(), a.virtual_hosted), ("bkt", Some("eu-west-1"), false));
        assert!(BucketAddress::parse(&Url::parse("https://host/").unwrap()).is_err());
    }

    #[test]
    fn decoding_keeps_what_is_no_code() {
        assert_eq!(percent_decode("a%2Fb%20c%zz%4").unwrap(), "a/b c%zz%4");
        assert!(percent_decode("%ff").is_err());
    }
}
