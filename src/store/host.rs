//! [`HostStore`]: an `ObjectStore` over the host's own files, reached through callbacks ([`HostIo`]).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};

use super::fault::{Fault, FaultKind};

/// What a host read gives.
#[derive(Clone, Debug, Default)]
pub struct HostRead {
    /// The bytes asked for; fewer when the object ends before the range does.
    pub data: Bytes,
    /// Size of the whole object in bytes.
    pub size: u64,
    /// Modification time in Unix milliseconds; 0 = unknown.
    pub modified_ms: i64,
}

/// One name of a host folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// Last path segment.
    pub name: String,
    /// Whether it is a folder.
    pub is_dir: bool,
    /// Size in bytes (files).
    pub size: u64,
    /// Modification time in Unix milliseconds; 0 = unknown.
    pub modified_ms: i64,
}

/// The host's files. Paths are relative to the host's root, separated by `/`, without `.` or `..`.
///
/// A missing object is `Fault` with status 404, a refused access 403, a full disk 507.
#[async_trait]
pub trait HostIo: Send + Sync + 'static {
    /// Reads an object or a range of it.
    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<HostRead, Fault>;
    /// Writes an object whole, creating folders as needed. With `create` it must not exist and must appear atomically with
    /// all its bytes: `false` = it existed.
    async fn write(&self, path: &str, data: Vec<Bytes>, create: bool) -> Result<bool, Fault>;
    /// The entries of a folder; a missing folder is empty.
    async fn list(&self, dir: &str) -> Result<Vec<HostEntry>, Fault>;
    /// Deletes an object; a missing one is no error.
    async fn delete(&self, path: &str) -> Result<(), Fault>;
}

/// An `ObjectStore` on [`HostIo`].
#[derive(Clone)]
pub struct HostStore {
    io: Arc<dyn HostIo>,
}

impl HostStore {
    /// Wraps the callbacks.
    pub fn new(io: Arc<dyn HostIo>) -> HostStore {
        HostStore { io }
    }
}

impl fmt::Debug for HostStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostStore")
    }
}

impl fmt::Display for HostStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostStore")
    }
}

fn failed(path: &Path, fault: Fault) -> object_store::Error {
    if fault.status() == Some(404) {
        return object_store::Error::NotFound { path: path.to_string(), source: Box::new(fault) };
    }
    fault.into()
}

fn time(ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms).unwrap_or_default()
}

fn refused(operation: &str) -> object_store::Error {
    object_store::Error::NotImplemented { operation: operation.to_owned(), implementer: "HostStore".to_owned() }
}

#[async_trait]
impl ObjectStore for HostStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> object_store::Result<PutResult> {
        let create = match opts.mode {
            PutMode::Overwrite => false,
            PutMode::Create => true,
            PutMode::Update(_) => return Err(refused("`put_opts` with `PutMode::Update`")),
        };
        let data: Vec<Bytes> = payload.into_iter().collect();
        if self.io.write(location.as_ref(), data, create).await.map_err(|fault| failed(location, fault))? {
            return Ok(PutResult { e_tag: None, version: None, extensions: Default::default() });
        }
        let fault = Fault::new(FaultKind::Status(412), "PUT", "");
        Err(object_store::Error::AlreadyExists { path: location.to_string(), source: Box::new(fault) })
    }

    async fn put_multipart_opts(
        &self,
        _location: &Path,
        _opts: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        Err(refused("`put_multipart_opts`"))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        let asked = match options.range {
            None => None,
            Some(GetRange::Bounded(range)) => Some(range),
            Some(GetRange::Offset(_) | GetRange::Suffix(_)) => return Err(refused("a range without both ends")),
        };
        let read = self.io.read(location.as_ref(), asked.clone()).await.map_err(|fault| failed(location, fault))?;
        let start = asked.map_or(0, |range| range.start);
        if start > read.size {
            return Err(Fault::new(FaultKind::Status(416), "GET", "").into());
        }
        let range = start..start.saturating_add(read.data.len() as u64);
        let data = read.data;
        Ok(GetResult {
            payload: GetResultPayload::Stream(futures::stream::once(async move { Ok(data) }).boxed()),
            meta: ObjectMeta {
                location: location.clone(),
                last_modified: time(read.modified_ms),
                size: read.size,
                e_tag: None,
                version: None,
            },
            range,
            attributes: Default::default(),
            extensions: Default::default(),
        })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        let io = Arc::clone(&self.io);
        locations
            .then(move |location| {
                let io = Arc::clone(&io);
                async move {
                    let location = location?;
                    io.delete(location.as_ref()).await.map_err(|fault| failed(&location, fault))?;
                    Ok(location)
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        // Only the folder itself: the engine never walks a tree.
        let store = self.clone();
        let prefix = prefix.cloned();
        async move {
            let found = store.list_with_delimiter(prefix.as_ref()).await;
            let items: Vec<object_store::Result<ObjectMeta>> = match found {
                Ok(list) => list.objects.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            };
            futures::stream::iter(items)
        }
        .flatten_stream()
        .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        let folder = prefix.cloned().unwrap_or_default();
        let entries = self.io.list(folder.as_ref()).await.map_err(|fault| failed(&folder, fault))?;
        let mut result = ListResult { common_prefixes: Vec::new(), objects: Vec::new(), extensions: Default::default() };
        for entry in entries {
            let path = if folder.as_ref().is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
            // A name that no object can have is none of ours.
            let Ok(location) = Path::parse(path) else { continue };
            if entry.is_dir {
                result.common_prefixes.push(location);
            } else {
                result.objects.push(ObjectMeta {
                    location,
                    last_modified: time(entry.modified_ms),
                    size: entry.size,
                    e_tag: None,
                    version: None,
                });
            }
        }
        Ok(result)
    }

    async fn copy_opts(&self, _from: &Path, _to: &Path, _options: CopyOptions) -> object_store::Result<()> {
        Err(refused("`copy_opts`"))
    }
}
