//! [`DavStore`]: an `ObjectStore` on plain HTTP and WebDAV.
//!
//! object_store's own HTTP store lists (PROPFIND) and overwrites (PUT, with MKCOL for missing folders); what it lacks is
//! here: reads that send nothing but a range, and create-if-absent. It is built on the origin, because with a path
//! in its base URL its listings and reads disagree about names.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::header::{CONTENT_TYPE, IF_NONE_MATCH};
use http::{Method, StatusCode};
use object_store::client::{HttpClient, HttpRequestBody};
use object_store::http::{HttpBuilder, HttpStore};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, RetryConfig,
};
use url::Url;

use super::fault::{Fault, FaultKind};
use super::plain;
use super::rest::says_exists;
use super::service::Connector;

/// Retries are ours: object_store's own wait with a timer that wasm does not have.
pub(super) fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..Default::default() }
}

/// Objects of one origin.
pub struct DavStore {
    client: HttpClient,
    http: HttpStore,
    origin: Url,
}

impl DavStore {
    /// A store on the origin of `url`; whatever else `url` holds is ignored.
    pub fn new(client: HttpClient, url: &Url) -> object_store::Result<DavStore> {
        let mut origin = url.clone();
        origin.set_path("");
        origin.set_query(None);
        origin.set_fragment(None);
        // `fetch` refuses a URL with credentials in it; they travel as a header.
        let _ = origin.set_username("");
        let _ = origin.set_password(None);
        let http = HttpBuilder::new()
            .with_url(origin.as_str())
            .with_http_connector(Connector(client.clone()))
            .with_retry(no_retries())
            .build()?;
        Ok(DavStore { client, http, origin })
    }

    fn url(&self, path: &str) -> String {
        url_of(self.origin.clone(), path)
    }

    async fn make_folder(&self, path: &str) -> object_store::Result<StatusCode> {
        let method = Method::from_bytes(b"MKCOL").map_err(|_| Fault::new(FaultKind::Aborted, "MKCOL", ""))?;
        let request = plain::finish(plain::request(method, &self.url(path)), HttpRequestBody::empty())?;
        Ok(self.client.execute(request).await.map_err(plain::wrap)?.status())
    }

    /// Creates the folders above `location`, deepest first, going up only as far as needed.
    async fn make_parents(&self, location: &Path) -> object_store::Result<()> {
        let mut missing = Vec::new();
        let mut at = location.as_ref();
        while let Some((parent, _)) = at.rsplit_once('/') {
            at = parent;
            match self.make_folder(parent).await? {
                StatusCode::CONFLICT | StatusCode::NOT_FOUND => missing.push(parent),
                _ => break,
            }
        }
        for folder in missing.into_iter().rev() {
            self.make_folder(folder).await?;
        }
        Ok(())
    }

    async fn create(&self, location: &Path, payload: PutPayload) -> object_store::Result<StatusCode> {
        let builder = plain::request(Method::PUT, &self.url(location.as_ref()))
            .header(IF_NONE_MATCH, "*")
            .header(CONTENT_TYPE, "application/octet-stream");
        let request = plain::finish(builder, HttpRequestBody::from(payload))?;
        Ok(self.client.execute(request).await.map_err(plain::wrap)?.status())
    }
}

/// The URL of an object: every segment percent-encoded, also signs that have a meaning in URLs.
fn url_of(origin: Url, path: &str) -> String {
    let mut url = origin;
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.clear().extend(path.split('/'));
    }
    url.into()
}

/// The status inside an error, when the server answered at all.
fn status(error: &object_store::Error) -> Option<u16> {
    super::fault::fault_of("PUT", error)?.status()
}

#[async_trait]
impl ObjectStore for DavStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> object_store::Result<PutResult> {
        match opts.mode {
            PutMode::Overwrite => self.http.put_opts(location, payload, opts).await,
            PutMode::Create => {
                let mut outcome = self.create(location, payload.clone()).await;
                // 409 is WebDAV's word for a missing parent folder. What stands between us and the store may say it, too, after
                // the effect: then the object that the second request finds there can be ours.
                let conflict = matches!(&outcome, Err(error) if status(error) == Some(409));
                if conflict || matches!(outcome, Ok(StatusCode::NOT_FOUND)) {
                    self.make_parents(location).await?;
                    outcome = match self.create(location, payload).await {
                        Err(error) if conflict && status(&error).is_some_and(|status| says_exists(status, "")) => outcome,
                        again => again,
                    };
                }
                match outcome? {
                    status if status.is_success() => Ok(PutResult { e_tag: None, version: None, extensions: Default::default() }),
                    status => Err(Fault::new(FaultKind::Status(status.as_u16()), "PUT", "").into()),
                }
            }
            PutMode::Update(_) => plain::refused("DavStore", "`put_opts` with `PutMode::Update`"),
        }
    }

    async fn put_multipart_opts(
        &self,
        _location: &Path,
        _opts: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        plain::refused("DavStore", "`put_multipart_opts`")
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        plain::get(&self.client, &self.url(location.as_ref()), location, &options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        let (client, origin) = (self.client.clone(), self.origin.clone());
        let delete = move |location: object_store::Result<Path>| {
            let (client, origin) = (client.clone(), origin.clone());
            async move {
                let location = location?;
                plain::delete(&client, &url_of(origin, location.as_ref()), &location).await.map(|()| location)
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.http.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.http.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, _from: &Path, _to: &Path, _options: CopyOptions) -> object_store::Result<()> {
        plain::refused("DavStore", "`copy_opts`")
    }
}

impl fmt::Debug for DavStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DavStore({})", self.origin)
    }
}

impl fmt::Display for DavStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DavStore({})", self.origin)
    }
}

/// Shared, as a store.
pub fn shared(store: DavStore) -> Arc<dyn ObjectStore> {
    Arc::new(store)
}
