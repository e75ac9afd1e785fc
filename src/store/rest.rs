//! [`RestStore`]: Azure Blob, Google Cloud Storage, and S3 through addresses that the caller signs.
//!
//! Three services that need no signature of ours: a token in the query (Azure), in a header (GCS), or a signed address for
//! each request (`signer`). What differs between them is one table of small answers ([`Service`]); the requests are the same.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, IF_NONE_MATCH};
use http::{HeaderValue, Method, StatusCode};
use object_store::client::{HttpClient, HttpRequestBody};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path;
use object_store::{GetOptions, GetResult, PutMode, PutOptions, PutPayload, PutResult};
use url::Url;

use super::fault::{Fault, FaultKind};
use super::verbs::Verbs;
use super::{listing, plain};

/// Which service is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Azure Blob storage: a loser of create-if-absent sees 409 or 412.
    Azure,
    /// Google Cloud Storage (its XML interface): a loser sees 412.
    Gcs,
    /// S3 by signed addresses: a loser sees 412, or 409 while the winner is under way.
    S3,
}

/// A request to be signed.
#[derive(Clone, Debug)]
pub struct Unsigned {
    /// HTTP method.
    pub method: &'static str,
    /// Bucket.
    pub bucket: String,
    /// Key of the object; empty for a listing.
    pub key: String,
    /// Query of a listing, decoded.
    pub query: Vec<(String, String)>,
    /// Headers that go with it.
    pub headers: Vec<(String, String)>,
}

/// Gives tokens, asked for before each request.
#[async_trait]
pub trait TokenSource: Send + Sync {
    /// A SAS (Azure) or an access token (GCS), good for now.
    async fn token(&self) -> Result<String, Fault>;
}

/// Signs requests of the caller's choice.
#[async_trait]
pub trait RequestSigner: Send + Sync {
    /// The address to send the request to; `None` refuses it.
    async fn sign(&self, request: Unsigned) -> Result<Option<String>, Fault>;
}

/// How a request shows that it is allowed.
#[derive(Clone)]
pub enum Access {
    /// Not at all.
    Anonymous,
    /// By one token.
    Token(String),
    /// By a token that is asked for.
    Tokens(Arc<dyn TokenSource>),
    /// By an address that somebody signs.
    Signer(Arc<dyn RequestSigner>),
}

/// A bucket or container.
#[derive(Clone)]
pub struct RestStore {
    client: HttpClient,
    service: Service,
    /// Address of the bucket, without a slash at its end.
    base: Url,
    bucket: String,
    access: Access,
}

type Pairs = Vec<(String, String)>;

fn pair(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

impl RestStore {
    /// A store of the bucket at `base`.
    pub fn new(client: HttpClient, service: Service, base: Url, bucket: &str, access: Access) -> RestStore {
        RestStore { client, service, base, bucket: bucket.to_owned(), access }
    }

    /// Begins a request with all that its service wants; `key` empty = a listing.
    async fn begin(
        &self,
        method: &'static str,
        key: &str,
        query: Pairs,
        headers: Pairs,
    ) -> object_store::Result<http::request::Builder> {
        let mut url = self.base.clone();
        if !key.is_empty()
            && let Ok(mut segments) = url.path_segments_mut()
        {
            segments.pop_if_empty().extend(key.split('/'));
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(&query);
        }
        let mut bearer = None;
        match &self.access {
            Access::Anonymous => {}
            Access::Token(token) => bearer = self.use_token(&mut url, token)?,
            Access::Tokens(source) => {
                let token = source.token().await.map_err(object_store::Error::from)?;
                bearer = self.use_token(&mut url, &token)?;
            }
            Access::Signer(signer) => {
                let (bucket, key, headers) = (self.bucket.clone(), key.to_owned(), headers.clone());
                let signed = signer.sign(Unsigned { method, bucket, key, query, headers }).await?;
                let refused = || Fault::new(FaultKind::Status(405), method, "the signer gave no address for it");
                url = Url::parse(&signed.ok_or_else(refused)?)
                    .map_err(|_| Fault::new(FaultKind::Aborted, method, "the signer gave no address"))?;
            }
        }
        let method = Method::from_bytes(method.as_bytes()).unwrap_or_default();
        let mut builder = plain::request(method, url.as_str());
        for (name, value) in headers {
            builder = builder.header(name, value);
        }
        Ok(match bearer {
            Some(value) => builder.header(AUTHORIZATION, value),
            None => builder,
        })
    }

    fn use_token(&self, url: &mut Url, token: &str) -> object_store::Result<Option<HeaderValue>> {
        if self.service == Service::Azure {
            // A SAS is a query already; its parts are encoded as the signature wants them.
            let sas = token.trim_start_matches('?');
            let query = url.query().filter(|q| !q.is_empty()).map_or_else(|| sas.to_owned(), |q| format!("{q}&{sas}"));
            url.set_query(Some(&query));
            return Ok(None);
        }
        let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| Fault::new(FaultKind::Aborted, "sign", "the access token holds signs that no header can carry"))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    fn put_headers(&self, create: bool) -> Pairs {
        let mut headers = vec![pair(CONTENT_TYPE.as_str(), "application/octet-stream")];
        if self.service == Service::Azure {
            headers.push(pair("x-ms-blob-type", "BlockBlob"));
        }
        if create {
            headers.push(match self.service {
                Service::Gcs => pair("x-goog-if-generation-match", "0"),
                Service::Azure | Service::S3 => pair(IF_NONE_MATCH.as_str(), "*"),
            });
        }
        headers
    }

    fn list_query(&self, prefix: &str, options: &PaginatedListOptions) -> Pairs {
        let azure = self.service == Service::Azure;
        let mut query =
            if azure { vec![pair("restype", "container"), pair("comp", "list")] } else { vec![pair("list-type", "2")] };
        let (most, marker) = if azure { ("maxresults", "marker") } else { ("max-keys", "continuation-token") };
        query.push(pair("prefix", prefix));
        if let Some(delimiter) = &options.delimiter {
            query.push(pair("delimiter", delimiter.as_ref()));
        }
        if let Some(max) = options.max_keys {
            query.push(pair(most, max.to_string()));
        }
        if let Some(token) = &options.page_token {
            query.push(pair(marker, token.as_str()));
        }
        query
    }
}

impl fmt::Debug for RestStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.service, self.bucket)
    }
}

impl fmt::Display for RestStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.service, self.bucket)
    }
}

#[async_trait]
impl PaginatedListStore for RestStore {
    async fn list_paginated(
        &self,
        prefix: Option<&str>,
        options: PaginatedListOptions,
    ) -> object_store::Result<PaginatedListResult> {
        let query = self.list_query(prefix.unwrap_or_default(), &options);
        let builder = self.begin("GET", "", query, Vec::new()).await?;
        let request = plain::finish(builder, HttpRequestBody::empty())?;
        let answer = self.client.execute(request).await.map_err(plain::wrap)?;
        if !answer.status().is_success() {
            return Err(Fault::new(FaultKind::Status(answer.status().as_u16()), "LIST", "").into());
        }
        let body: Bytes = answer.into_body().bytes().await.map_err(plain::wrap)?;
        let page = listing::parse(&body)?;
        Ok(PaginatedListResult { result: page.result, page_token: page.next })
    }
}

#[async_trait]
impl Verbs for RestStore {
    async fn put(&self, location: &Path, payload: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        let create = match options.mode {
            PutMode::Overwrite => false,
            PutMode::Create => true,
            PutMode::Update(_) => return plain::refused("RestStore", "`put_opts` with `PutMode::Update`"),
        };
        let builder = self.begin("PUT", location.as_ref(), Vec::new(), self.put_headers(create)).await?;
        let request = plain::finish(builder, HttpRequestBody::from(payload))?;
        let answer = self.client.execute(request).await.map_err(plain::wrap)?;
        match answer.status() {
            status if status.is_success() => {
                Ok(PutResult { e_tag: plain::entity_tag(answer.headers()), version: None, extensions: Default::default() })
            }
            status => Err(Fault::new(FaultKind::Status(status.as_u16()), "PUT", "").into()),
        }
    }

    async fn get(&self, location: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        let builder = self.begin("GET", location.as_ref(), Vec::new(), Vec::new()).await?;
        plain::get_with(&self.client, builder, location, &options).await
    }

    async fn delete(&self, location: &Path) -> object_store::Result<()> {
        let builder = self.begin("DELETE", location.as_ref(), Vec::new(), Vec::new()).await?;
        plain::delete_with(&self.client, builder, location).await
    }
}

/// Where a container or bucket of Azure or GCS is, and the key of the table in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerAddress {
    /// Address of the container.
    pub base: Url,
    /// Its name.
    pub bucket: String,
    /// Key of the root, decoded; may be empty.
    pub key: String,
}

impl ContainerAddress {
    /// Reads the `https:` address of an object, `gs://bucket/key`, or `az://container/key` with an endpoint that names the account.
    pub fn parse(service: Service, url: &Url, endpoint: Option<&str>) -> crate::error::Result<ContainerAddress> {
        let invalid = |what: &str| crate::error::Error::invalid(what.to_owned());
        let short = matches!(url.scheme(), "az" | "gs");
        let endpoint = match (endpoint, service) {
            (Some(text), _) => {
                Some(Url::parse(text).map_err(|_| invalid("the endpoint is not an address: https://host[:port]"))?)
            }
            (None, Service::Gcs) if short => Url::parse("https://storage.googleapis.com").ok(),
            (None, _) if short => {
                return Err(invalid("an az: address needs the account: its endpoint is https://ACCOUNT.blob.core.windows.net"));
            }
            (None, _) => None,
        };
        let whole = super::s3::percent_decode(url.path())?;
        let parts: Vec<&str> = whole.trim_matches('/').split('/').filter(|part| !part.is_empty()).collect();
        let (mut base, bucket, key) = if short {
            let bucket = url.host_str().unwrap_or_default();
            (endpoint.ok_or_else(|| invalid("no endpoint"))?, bucket, parts.as_slice())
        } else {
            // An endpoint with a path (an emulator's account) is part of every address below it.
            let skip = match &endpoint {
                Some(endpoint) => endpoint.path().split('/').filter(|part| !part.is_empty()).count(),
                // Azure's hosts name the account, emulators have it as the first part of the path.
                None => usize::from(service == Service::Azure && !url.host_str().unwrap_or_default().contains(".blob.")),
            };
            let mut base = url.clone();
            base.set_path(&parts.iter().take(skip).copied().collect::<Vec<_>>().join("/"));
            let bucket = parts.get(skip).copied().unwrap_or_default();
            (base, bucket, parts.get(skip.saturating_add(1)..).unwrap_or_default())
        };
        if bucket.is_empty() {
            return Err(invalid("the address names no container or bucket"));
        }
        base.set_query(None);
        base.set_fragment(None);
        let _ = base.set_username("");
        let _ = base.set_password(None);
        if let Ok(mut segments) = base.path_segments_mut() {
            segments.pop_if_empty().push(bucket);
        }
        Ok(ContainerAddress { base, bucket: bucket.to_owned(), key: key.join("/") })
    }
}

/// Whether a status says that a create-if-absent lost, given the service's own word for it.
pub(super) fn says_exists(status: u16, word: &str) -> bool {
    matches!(status, 412 | 304) || (status == StatusCode::CONFLICT.as_u16() && word == "BlobAlreadyExists")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(service: Service, text: &str, endpoint: Option<&str>) -> (String, String, String) {
        let a = ContainerAddress::parse(service, &Url::parse(text).unwrap(), endpoint).unwrap();
        (a.base.to_string(), a.bucket, a.key)
    }

    fn of(base: &str, bucket: &str, key: &str) -> (String, String, String) {
        (base.to_owned(), bucket.to_owned(), key.to_owned())
    }

    #[test]
    fn addresses() {
        use Service::{Azure, Gcs};
        let blob = "https://acct.blob.core.windows.net";
        assert_eq!(address(Azure, &format!("{blob}/c/a%20b/t.lance"), None), of(&format!("{blob}/c"), "c", "a b/t.lance"));
        assert_eq!(address(Azure, "az://c/t.lance", Some(blob)), of(&format!("{blob}/c"), "c", "t.lance"));
        let emulator = "http://127.0.0.1:10000/devstoreaccount1";
        assert_eq!(address(Azure, &format!("{emulator}/c/t"), None), of(&format!("{emulator}/c"), "c", "t"));
        assert_eq!(address(Azure, &format!("{emulator}/c/t"), Some(emulator)), of(&format!("{emulator}/c"), "c", "t"));
        assert_eq!(address(Gcs, "gs://b/x/t.lance", None), of("https://storage.googleapis.com/b", "b", "x/t.lance"));
        assert_eq!(address(Gcs, "http://127.0.0.1:4443/b/t", None), of("http://127.0.0.1:4443/b", "b", "t"));
        assert!(ContainerAddress::parse(Azure, &Url::parse("az://c/t").unwrap(), None).is_err());
        assert!(ContainerAddress::parse(Gcs, &Url::parse("https://h/").unwrap(), None).is_err());
    }
}
