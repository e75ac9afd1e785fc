//! From a [`StoreDescriptor`] to a [`Store`] (design §6), and from a base path to the store it names.

use std::sync::Arc;

use base64::Engine;
use http::{HeaderName, HeaderValue};
use object_store::ObjectStore;
use object_store::aws::AwsCredentialProvider;
use object_store::client::HttpClient;
use object_store::memory::InMemory;
use object_store::path::Path;
use url::Url;

use super::dav::{self, DavStore};
use super::descriptor::{StoreDescriptor, TargetKind};
use super::handle::{Store, StoreKind};
use super::host::{HostIo, HostStore};
use super::meter::{Meter, RequestHook};
use super::s3::{BucketAddress, S3Store, percent_decode};
use super::service::{OriginHeaders, StoreService};
use crate::env::EnvRef;
use crate::error::{Error, ErrorCode, Result};

/// What the surroundings give a store: things that cannot be written as JSON.
#[derive(Clone)]
pub struct Surroundings {
    /// Time, randomness, waiting.
    pub env: EnvRef,
    /// How HTTP requests are sent; `None` = `fetch` (natively there is none).
    pub transport: Option<HttpClient>,
    /// The host's files, for `kind: host`.
    pub host: Option<Arc<dyn HostIo>>,
    /// S3 keys asked for before each request.
    pub credentials: Option<AwsCredentialProvider>,
    /// Told about each request.
    pub on_request: Option<RequestHook>,
}

impl Surroundings {
    /// Only an environment.
    pub fn new(env: EnvRef) -> Surroundings {
        Surroundings { env, transport: None, host: None, credentials: None, on_request: None }
    }
}

/// Opens other places for a store: base paths.
pub(super) struct Opener {
    descriptor: StoreDescriptor,
    surroundings: Surroundings,
    origin: String,
}

/// Opens the store of a target. No request is sent.
pub fn open_target(descriptor: &StoreDescriptor, surroundings: &Surroundings) -> Result<Store> {
    let meter = Arc::new(Meter::default());
    meter.set_hook(surroundings.on_request.clone());
    open_metered(descriptor, surroundings, &meter)
}

fn open_metered(descriptor: &StoreDescriptor, surroundings: &Surroundings, meter: &Arc<Meter>) -> Result<Store> {
    let env = &surroundings.env;
    let store = match descriptor.kind {
        TargetKind::Memory => {
            let object: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
            Store::new(object, root_path(&descriptor.url)?, StoreKind::Memory, env.clone()).counting(meter.clone())
        }
        TargetKind::Host => {
            let io = surroundings.host.clone();
            let io = io.ok_or_else(|| Error::invalid("a host store needs the host's callbacks"))?;
            let (root, base) = match descriptor.url.strip_prefix("file://") {
                Some(path) => (root_path(&percent_decode(path)?)?, "file:"),
                None => (root_path(&descriptor.url)?, "host:"),
            };
            Store::new(Arc::new(HostStore::new(io)), root, StoreKind::Host, env.clone())
                .counting(meter.clone())
                .with_base_uri(base)
        }
        _ => open_http(descriptor, surroundings, meter)?,
    };
    let origin = Url::parse(&descriptor.url).map(|url| origin_of(&url)).unwrap_or_default();
    let opener = Opener { descriptor: descriptor.clone(), surroundings: surroundings.clone(), origin };
    Ok(store.with_opener(Arc::new(opener)))
}

fn open_http(descriptor: &StoreDescriptor, surroundings: &Surroundings, meter: &Arc<Meter>) -> Result<Store> {
    let url = Url::parse(&descriptor.url).map_err(|_| Error::invalid("the target is not an address: https://… or s3://…"))?;
    let kind = match (descriptor.kind, url.scheme()) {
        (TargetKind::Auto, "s3") => TargetKind::S3,
        (TargetKind::S3, "s3") | (_, "http" | "https") => descriptor.kind,
        (_, scheme) => return Err(Error::invalid(format!("addresses with {scheme}: cannot be opened as this kind of store"))),
    };
    let client = client(descriptor, surroundings, meter, &url)?;
    if kind == TargetKind::S3 {
        return s3(descriptor, surroundings, meter, &url, client);
    }
    let dav = DavStore::new(client.clone(), &url).map_err(|_| Error::invalid("the target is not an http address"))?;
    let store_kind = if kind == TargetKind::Static { StoreKind::Static } else { StoreKind::Dav };
    let root = root_path(&percent_decode(url.path())?)?;
    let store = Store::new(dav::shared(dav), root, store_kind, surroundings.env.clone())
        .metered_by(meter.clone())
        .with_base_uri(&origin_of(&url));
    if kind != TargetKind::Auto {
        return Ok(store);
    }
    // Should the host refuse PROPFIND it may still be S3 by another name.
    match s3(descriptor, surroundings, meter, &url, client) {
        Ok(other) => Ok(store.or_else(other)),
        Err(_) => Ok(store),
    }
}

fn s3(
    descriptor: &StoreDescriptor,
    surroundings: &Surroundings,
    meter: &Arc<Meter>,
    url: &Url,
    client: HttpClient,
) -> Result<Store> {
    let address = BucketAddress::parse(url)?;
    let sign = descriptor.sign_queries.unwrap_or_else(in_browser);
    let bucket = S3Store::new(client, &address, descriptor, surroundings.credentials.clone(), sign)?;
    let pages = bucket.pages();
    let root = root_path(&address.key)?;
    let base = match &address.endpoint {
        Some(endpoint) if address.virtual_hosted => endpoint.clone(),
        Some(endpoint) => format!("{endpoint}/{}", address.bucket),
        None => format!("s3://{}", address.bucket),
    };
    Ok(Store::new(Arc::new(bucket), root, StoreKind::S3, surroundings.env.clone())
        .metered_by(meter.clone())
        .with_pages(pages)
        .with_base_uri(&base))
}

fn client(descriptor: &StoreDescriptor, surroundings: &Surroundings, meter: &Arc<Meter>, url: &Url) -> Result<HttpClient> {
    let transport = match &surroundings.transport {
        Some(transport) => transport.clone(),
        None => default_transport()?,
    };
    let mut headers = Vec::new();
    let user = descriptor.username.clone().or_else(|| Some(url.username()).filter(|u| !u.is_empty()).map(str::to_owned));
    if let Some(user) = user {
        let password = descriptor.password.clone().or_else(|| url.password().map(str::to_owned)).unwrap_or_default();
        let text = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        headers.push(header("authorization", &format!("Basic {text}"))?);
    }
    for (name, value) in &descriptor.headers {
        headers.push(header(name, value)?);
    }
    let headers = OriginHeaders { origin: origin_of(url), headers };
    let service = StoreService::new(transport, meter.clone(), surroundings.env.clone())
        .with_timeout_ms(descriptor.timeout_ms)
        .with_headers(headers)
        .with_identity(!in_browser());
    Ok(HttpClient::new(service))
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue)> {
    let wrong = || Error::invalid(format!("the header {} cannot be sent", name.escape_default()));
    let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok((HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value))
}

fn origin_of(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn root_path(path: &str) -> Result<Path> {
    let trimmed = path.trim_matches('/');
    if trimmed.is_empty() {
        return Ok(Path::default());
    }
    Path::parse(trimmed).map_err(|_| Error::invalid("the path of the target has an empty part, or . or .. in it"))
}

#[cfg(target_arch = "wasm32")]
fn default_transport() -> Result<HttpClient> {
    Ok(super::fetch::client())
}

#[cfg(not(target_arch = "wasm32"))]
fn default_transport() -> Result<HttpClient> {
    Err(Error::invalid("this build has no HTTP transport of its own"))
}

#[cfg(target_arch = "wasm32")]
fn in_browser() -> bool {
    super::fetch::in_browser()
}

#[cfg(not(target_arch = "wasm32"))]
fn in_browser() -> bool {
    false
}

impl Opener {
    /// The store of `base`, an absolute address or path written into a manifest.
    pub(super) fn open(&self, from: &Store, base: &str) -> Result<Store> {
        let (base, mapped) = self.map(base);
        if let Some(path) = base.strip_prefix("file://").or_else(|| base.starts_with('/').then_some(base.as_str())) {
            return if from.kind() == StoreKind::Host { from.at_root(path.trim_matches('/')) } else { Err(foreign(&base)) };
        }
        let Ok(url) = Url::parse(&base) else {
            // A mapping may name a folder of the same store.
            return if mapped { from.at_root(base.trim_matches('/')) } else { Err(foreign(&base)) };
        };
        let mut descriptor = self.descriptor.without_secrets(&base);
        if origin_of(&url) == self.origin && url.scheme() != "s3" || self.same_bucket(&url) {
            descriptor = StoreDescriptor { url: base.clone(), ..self.descriptor.clone() };
            return open_metered(&descriptor, &self.surroundings, from.meter());
        }
        if !mapped && !self.descriptor.other_origins {
            return Err(foreign(&base));
        }
        let surroundings = Surroundings { credentials: None, ..self.surroundings.clone() };
        open_metered(&descriptor, &surroundings, from.meter())
    }

    /// `s3://` addresses have no origin; the same bucket is the same place.
    fn same_bucket(&self, url: &Url) -> bool {
        let own = Url::parse(&self.descriptor.url).ok().filter(|own| own.scheme() == "s3" && url.scheme() == "s3");
        own.is_some_and(|own| own.host_str() == url.host_str())
    }

    fn map(&self, base: &str) -> (String, bool) {
        let matching = self.descriptor.bases.iter().filter(|(prefix, _)| {
            let rest = base.strip_prefix(prefix.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        match matching.max_by_key(|(prefix, _)| prefix.len()) {
            Some((prefix, to)) => {
                let rest = base.strip_prefix(prefix.trim_end_matches('/')).unwrap_or_default();
                (format!("{}{rest}", to.trim_end_matches('/')), true)
            }
            None => (base.to_owned(), false),
        }
    }
}

fn foreign(base: &str) -> Error {
    // The address is the table's, not the user's: it may be shown, without a query.
    let shown = base.split(['?', '#']).next().unwrap_or_default();
    Error::new(
        ErrorCode::StoreDenied,
        format!("the table keeps files at {shown}, outside of this store; name where that is, or allow other origins"),
    )
    .with("base", shown)
}
