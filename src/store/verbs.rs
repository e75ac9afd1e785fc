//! [`Verbs`]: the three calls that our HTTP clients answer, as an `ObjectStore`.
//!
//! What is not among them is refused here, once: an unused call of a client (multipart and bulk requests with their XML, copies)
//! would be part of every download of the engine.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions,
    PutPayload, PutResult,
};

use super::plain::refused;

/// PUT, GET and DELETE of one object. Listings are asked for in pages, by another way.
#[async_trait]
pub(super) trait Verbs: fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// Writes or creates an object.
    async fn put(&self, location: &Path, payload: PutPayload, options: PutOptions) -> object_store::Result<PutResult>;

    /// Reads an object or a range of it.
    async fn get(&self, location: &Path, options: GetOptions) -> object_store::Result<GetResult>;

    /// Deletes an object.
    async fn delete(&self, location: &Path) -> object_store::Result<()>;
}

/// A client that has only [`Verbs`].
#[derive(Clone, Debug)]
pub(super) struct Plain(Arc<dyn Verbs>);

impl Plain {
    pub(super) fn new(verbs: impl Verbs) -> Plain {
        Plain(Arc::new(verbs))
    }
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

const STORE: &str = "whetstone";

#[async_trait]
impl ObjectStore for Plain {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> object_store::Result<PutResult> {
        self.0.put(location, payload, opts).await
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> object_store::Result<Box<dyn MultipartUpload>> {
        refused(STORE, "`put_multipart_opts`")
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.0.get(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        let verbs = self.0.clone();
        let delete = move |location: object_store::Result<Path>| {
            let verbs = verbs.clone();
            async move {
                let location = location?;
                verbs.delete(&location).await.map(|()| location)
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        stream::once(async { refused(STORE, "`list`") }).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> object_store::Result<ListResult> {
        refused(STORE, "`list_with_delimiter`")
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> object_store::Result<()> {
        refused(STORE, "`copy_opts`")
    }
}
