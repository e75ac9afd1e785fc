//! From a [`StoreDescriptor`] to a [`Store`] (design §6), and from a base path to the store it names.

use std::sync::Arc;

use base64::Engine;
use http::{HeaderName, HeaderValue};
use object_store::aws::AwsCredentialProvider;
use object_store::client::HttpClient;
use object_store::path::Path;
use url::Url;

use super::dav::{self, DavStore};
use super::descriptor::{StoreDescriptor, TargetKind};
use super::handle::{Store, StoreKind};
use super::host::{HostIo, HostStore};
use super::meter::{Meter, RequestHook};
use super::rest::{Access, ContainerAddress, RequestSigner, RestStore, Service, TokenSource};
use super::s3::{BucketAddress, S3Store, percent_decode};
use super::service::{OriginHeaders, StoreService};
use super::trust::{Commits, Trust, promised};
use super::verbs::Plain;
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
    /// A SAS (Azure) or an access token (GCS), asked for before each request.
    pub tokens: Option<Arc<dyn TokenSource>>,
    /// S3: signs each request, instead of keys.
    pub signer: Option<Arc<dyn RequestSigner>>,
    /// Told about each request.
    pub on_request: Option<RequestHook>,
}

impl Surroundings {
    /// Only an environment.
    pub fn new(env: EnvRef) -> Surroundings {
        Surroundings { env, transport: None, host: None, credentials: None, tokens: None, signer: None, on_request: None }
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
        #[cfg(not(target_arch = "wasm32"))]
        TargetKind::Memory => {
            let object: Arc<dyn object_store::ObjectStore> = Arc::new(object_store::memory::InMemory::new());
            Store::new(object, root_path(&descriptor.url)?, StoreKind::Memory, env.clone()).counting(meter.clone())
        }
        // One of this instance's own would be empty: `memoryStore()` is a host store, over objects that JavaScript holds.
        #[cfg(target_arch = "wasm32")]
        TargetKind::Memory => return Err(Error::invalid("objects in memory are a host store: memoryStore()")),
        TargetKind::Host => {
            let io = surroundings.host.clone();
            let io = io.ok_or_else(|| Error::invalid("a host store needs the host's callbacks"))?;
            let (root, base) = match descriptor.url.strip_prefix("file://") {
                Some(path) => (root_path(&percent_decode(path)?)?, "file:"),
                None => (root_path(&descriptor.url)?, "host:"),
            };
            let known = base == "file:" || descriptor.atomic_create;
            let commits = if known { Commits::Atomic("the host creates atomically".to_owned()) } else { Commits::Unproven };
            Store::new(Arc::new(HostStore::new(io)), root, StoreKind::Host, env.clone())
                .counting(meter.clone())
                .trusted_as(Trust::new(commits).or_anyway(descriptor.unsafe_commits))
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
        (TargetKind::Auto | TargetKind::Azure, "az") => TargetKind::Azure,
        (TargetKind::Auto | TargetKind::Gcs, "gs") => TargetKind::Gcs,
        (TargetKind::S3, "s3") | (_, "http" | "https") => descriptor.kind,
        (_, scheme) => return Err(Error::invalid(format!("addresses with {scheme}: cannot be opened as this kind of store"))),
    };
    let trust = trust(descriptor, kind, &url);
    let client = client(descriptor, surroundings, meter, &url, &trust)?;
    match kind {
        TargetKind::S3 => return Ok(s3(descriptor, surroundings, meter, &url, client)?.trusted_as(trust)),
        TargetKind::Azure => {
            return Ok(container(Service::Azure, descriptor, surroundings, meter, &url, client)?.trusted_as(trust));
        }
        TargetKind::Gcs => return Ok(container(Service::Gcs, descriptor, surroundings, meter, &url, client)?.trusted_as(trust)),
        _ => {}
    }
    let dav = DavStore::new(client.clone(), &url).map_err(|_| Error::invalid("the target is not an http address"))?;
    let store_kind = if kind == TargetKind::Static { StoreKind::Static } else { StoreKind::Dav };
    let root = root_path(&percent_decode(url.path())?)?;
    let store = Store::new(dav::shared(dav), root, store_kind, surroundings.env.clone())
        .metered_by(meter.clone())
        .with_base_uri(&origin_of(&url))
        .trusted_as(trust.clone());
    if kind != TargetKind::Auto {
        return Ok(store);
    }
    // Should the host refuse PROPFIND it may still be S3 by another name.
    match s3(descriptor, surroundings, meter, &url, client) {
        Ok(other) => Ok(store.or_else(other.trusted_as(trust))),
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
    let base = match &address.endpoint {
        Some(endpoint) if address.virtual_hosted => endpoint.clone(),
        Some(endpoint) => format!("{endpoint}/{}", address.bucket),
        None => format!("s3://{}", address.bucket),
    };
    if let Some(signer) = &surroundings.signer {
        // Where the objects are is the signer's to say; this address is only shown.
        let at = Url::parse(&base).map_err(|_| Error::invalid("the target is not an address: https://… or s3://…"))?;
        let bucket = RestStore::new(client, Service::S3, at, &address.bucket, Access::Signer(signer.clone()));
        return Ok(rest(bucket, root_path(&address.key)?, StoreKind::S3, surroundings, meter, &base));
    }
    let sign = descriptor.sign_queries.unwrap_or_else(in_browser);
    let bucket = S3Store::new(client, &address, descriptor, surroundings.credentials.clone(), sign)?;
    let pages = bucket.pages();
    let root = root_path(&address.key)?;
    Ok(Store::new(Arc::new(Plain::new(bucket)), root, StoreKind::S3, surroundings.env.clone())
        .metered_by(meter.clone())
        .with_pages(pages)
        .with_base_uri(&base))
}

/// A container of Azure, or a bucket of GCS.
fn container(
    service: Service,
    descriptor: &StoreDescriptor,
    surroundings: &Surroundings,
    meter: &Arc<Meter>,
    url: &Url,
    client: HttpClient,
) -> Result<Store> {
    let address = ContainerAddress::parse(service, url, descriptor.endpoint.as_deref())?;
    let (given, kind) = match service {
        Service::Azure => (&descriptor.sas, StoreKind::Azure),
        Service::Gcs | Service::S3 => (&descriptor.token, StoreKind::Gcs),
    };
    let access = match (descriptor.anonymous, &surroundings.tokens, given) {
        (Some(true), _, _) | (_, None, None) => Access::Anonymous,
        (_, Some(tokens), _) => Access::Tokens(tokens.clone()),
        (_, None, Some(token)) => Access::Token(token.clone()),
    };
    let base = address.base.as_str().to_owned();
    let store = RestStore::new(client, service, address.base, &address.bucket, access);
    Ok(rest(store, root_path(&address.key)?, kind, surroundings, meter, &base))
}

fn rest(store: RestStore, root: Path, kind: StoreKind, surroundings: &Surroundings, meter: &Arc<Meter>, base: &str) -> Store {
    let pages = Arc::new(store.clone());
    Store::new(Arc::new(Plain::new(store)), root, kind, surroundings.env.clone())
        .metered_by(meter.clone())
        .with_pages(pages)
        .with_base_uri(base)
}

/// What is known of a store before it is asked anything.
fn trust(descriptor: &StoreDescriptor, kind: TargetKind, url: &Url) -> Trust {
    let endpoint = descriptor.endpoint.as_deref().and_then(|endpoint| Url::parse(endpoint).ok());
    let promise = match (kind, url.scheme(), endpoint) {
        (TargetKind::Static, ..) => None,
        (_, "s3", None) => Some("Amazon S3 creates with If-None-Match atomically"),
        (_, "gs", None) => Some("Google Cloud Storage creates at generation 0 atomically"),
        (_, _, Some(endpoint)) => promised(&endpoint),
        (_, _, None) => promised(url),
    };
    promise.map_or_else(|| Trust::new(Commits::Unproven), Trust::atomic).or_anyway(descriptor.unsafe_commits)
}

fn client(
    descriptor: &StoreDescriptor,
    surroundings: &Surroundings,
    meter: &Arc<Meter>,
    url: &Url,
    trust: &Trust,
) -> Result<HttpClient> {
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
    let endpoint = descriptor.endpoint.as_deref().and_then(|endpoint| Url::parse(endpoint).ok());
    let headers = OriginHeaders { origin: origin_of(endpoint.as_ref().unwrap_or(url)), headers };
    let service = StoreService::new(transport, meter.clone(), surroundings.env.clone())
        .with_timeout_ms(descriptor.timeout_ms)
        .with_headers(headers)
        .with_trust(trust.clone())
        .with_headers_told(descriptor.tell_headers)
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
        let allowed = mapped || self.descriptor.other_origins;
        if let Some(path) = base.strip_prefix("file://").or_else(|| base.starts_with('/').then_some(base.as_str())) {
            let reachable = from.kind() == StoreKind::Host && (allowed || from.is_inside(path));
            return if reachable { from.at_root(path.trim_matches('/')) } else { Err(foreign(&base)) };
        }
        let Ok(url) = Url::parse(&base) else {
            // A mapping may name a folder of the same store.
            return if mapped { from.at_root(base.trim_matches('/')) } else { Err(foreign(&base)) };
        };
        // A table may name any folder as a place of its files. Whoever can write the table must not thereby decide what our
        // credentials read (and a refresh writes on): that is the caller's to say.
        if !allowed && !self.inside(&url) {
            return Err(foreign(&base));
        }
        if self.same_place(&url) {
            let descriptor = StoreDescriptor { url: base.clone(), ..self.descriptor.clone() };
            return open_metered(&descriptor, &self.surroundings, from.meter());
        }
        let descriptor = self.descriptor.without_secrets(&base);
        let surroundings = Surroundings { credentials: None, tokens: None, signer: None, ..self.surroundings.clone() };
        open_metered(&descriptor, &surroundings, from.meter())
    }

    /// The table itself or a folder of it.
    fn inside(&self, url: &Url) -> bool {
        let Ok(own) = Url::parse(&self.descriptor.url) else { return false };
        let (own, path) = (own.path().trim_end_matches('/').to_owned(), url.path().trim_end_matches('/'));
        // Parts that mean the folder above were resolved by parsing; encoded ones are refused where the root is made.
        self.same_place(url) && path.strip_prefix(own.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The same origin; `s3:` and the like have none, there the same bucket is the same place.
    fn same_place(&self, url: &Url) -> bool {
        if matches!(url.scheme(), "http" | "https") {
            return origin_of(url) == self.origin;
        }
        let own = Url::parse(&self.descriptor.url).ok().filter(|own| own.scheme() == url.scheme());
        own.is_some_and(|own| own.host_str().is_some() && own.host_str() == url.host_str())
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
        format!("the table keeps files at {shown}, outside of it; say that they may be read (otherOrigins, --other-bases), or where they are (bases)"),
    )
    .with("base", shown)
}
