//! [`Store`]: one table root on any `ObjectStore`.

use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt};
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, PutResult};

use super::fault::{Fault, FaultKind, fault_of, store_error};
use super::meter::{Meter, RequestCounts, RequestHook, RequestRecord};
use super::rest::says_exists;
use super::retry::with_retries;
use super::target::Opener;
use super::trust::{Commits, Trust};
use crate::env::EnvRef;
use crate::error::{Changed, Error, ErrorCode, Result};
use crate::lists::sorted_by_key;

/// Ranges closer than this are read as one, in bytes (design §8).
const GAP: u64 = 64 * 1024;
/// Merged ranges do not grow past this unless one of them is larger by itself, in bytes.
const MERGED: u64 = 8 * 1024 * 1024;
/// Requests in flight for one call.
const IN_FLIGHT: usize = 6;
/// An object read whole without a known size may not be larger, in bytes.
const WHOLE: u64 = 1 << 30;

/// Chunks, written in order as one object.
pub type Payload = Vec<Bytes>;

/// What kind of place a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// S3-compatible.
    S3,
    /// Azure Blob storage.
    Azure,
    /// Google Cloud Storage.
    Gcs,
    /// HTTP with PROPFIND and PUT.
    Dav,
    /// HTTP that only serves files.
    Static,
    /// The host's own files through callbacks.
    Host,
    /// Memory.
    Memory,
}

/// Outcome of a create-if-absent.
#[derive(Debug)]
pub enum Created {
    /// We created it; the entity tag that the store gave it, where it says one.
    Yes(Option<String>),
    /// The store says that it was there already; only reading it tells whose it is.
    Exists,
    /// It is not known whether it was created; reading tells.
    Unclear(Error),
}

/// A table root (or branch root, or any folder) on a store. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(super) object: Arc<dyn ObjectStore>,
    root: Path,
    kind: StoreKind,
    pub(super) env: EnvRef,
    meter: Arc<Meter>,
    /// HTTP transports meter themselves, with real methods and statuses.
    metered_below: bool,
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
    /// Another way to the same table, should this one refuse to list.
    other: Option<Arc<Store>>,
    opener: Option<Arc<Opener>>,
    trust: Trust,
    /// Shown to people: no credentials, no query.
    base_uri: Arc<str>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({:?}, {})", self.kind, self.uri())
    }
}

impl Store {
    /// A store rooted at `root` of `object`; requests are counted here.
    pub fn new(object: Arc<dyn ObjectStore>, root: Path, kind: StoreKind, env: EnvRef) -> Store {
        let base_uri = match kind {
            StoreKind::Memory => "memory:",
            StoreKind::Host => "host:",
            StoreKind::S3 | StoreKind::Azure | StoreKind::Gcs | StoreKind::Dav | StoreKind::Static => "store:",
        };
        // The contract of `PutMode::Create`. A target opened by its address is told apart by what answers there.
        let trust = Trust::atomic("whoever made the store says that it creates atomically");
        Store {
            object,
            root,
            kind,
            env,
            meter: Arc::default(),
            metered_below: false,
            pages: None,
            other: None,
            opener: None,
            trust,
            base_uri: base_uri.into(),
        }
    }

    /// An empty store in memory.
    pub fn memory(env: EnvRef) -> Store {
        Store::new(Arc::new(object_store::memory::InMemory::new()), Path::default(), StoreKind::Memory, env)
    }

    /// Sets the address that people see; the path below is appended.
    #[must_use]
    pub fn with_base_uri(mut self, uri: &str) -> Store {
        self.base_uri = uri.trim_end_matches('/').into();
        self
    }

    /// Uses `meter`, which a transport below feeds.
    #[must_use]
    pub fn metered_by(mut self, meter: Arc<Meter>) -> Store {
        self.meter = meter;
        self.metered_below = true;
        self
    }

    /// Uses `pages` for listings: names arrive in order, in pages of a size we choose.
    #[must_use]
    pub fn with_pages(mut self, pages: Arc<dyn PaginatedListStore>) -> Store {
        self.pages = Some(pages);
        self
    }

    /// Counts into `meter` at this level.
    #[must_use]
    pub fn counting(mut self, meter: Arc<Meter>) -> Store {
        self.meter = meter;
        self
    }

    /// Names another way to the same table.
    #[must_use]
    pub fn or_else(mut self, other: Store) -> Store {
        self.other = Some(Arc::new(other));
        self
    }

    #[must_use]
    pub(super) fn with_opener(mut self, opener: Arc<Opener>) -> Store {
        if let Some(other) = &self.other {
            self.other = Some(Arc::new(Store::clone(other).with_opener(opener.clone())));
        }
        self.opener = Some(opener);
        self
    }

    #[must_use]
    pub(super) fn trusted_as(mut self, trust: Trust) -> Store {
        self.trust = trust;
        self
    }

    /// What is known of its create-if-absent.
    pub fn commits(&self) -> Commits {
        self.trust.commits()
    }

    /// Records what a racing check found, for this store and every handle made from it.
    pub fn found(&self, commits: Commits) {
        self.trust.set(commits);
    }

    /// Whether the caller wants to commit whatever is known.
    pub fn commits_anyway(&self) -> bool {
        self.trust.anyway()
    }

    /// Refuses to commit on a store that is not known to create atomically: `STORE_UNSAFE`.
    pub fn may_commit(&self) -> Result<()> {
        self.trust.check(&self.uri())
    }

    pub(super) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Another way to the same table, to be tried when this store refuses to list.
    pub fn alternative(&self) -> Option<&Store> {
        self.other.as_deref()
    }

    /// The place that an absolute address or path in a manifest means. Credentials never follow to another origin, and
    /// another place (also a folder beside the table) is only read when the caller allowed it: `STORE_DENIED` otherwise.
    pub fn base(&self, address: &str) -> Result<Store> {
        match &self.opener {
            Some(opener) => opener.open(self, address),
            None if self.kind == StoreKind::Host && self.is_inside(address) => self.at_root(address.trim_matches('/')),
            None => Err(Error::new(
                ErrorCode::StoreDenied,
                format!("the table keeps files at {address}, which cannot be reached from this store"),
            )),
        }
    }

    /// Whether an absolute path of the underlying store is the root or below it.
    pub(super) fn is_inside(&self, path: &str) -> bool {
        let below = path.strip_prefix('/').and_then(|path| path.trim_end_matches('/').strip_prefix(self.root.as_ref()));
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Time, randomness, waiting.
    pub fn env(&self) -> &EnvRef {
        &self.env
    }

    /// What kind of place it is.
    pub fn kind(&self) -> StoreKind {
        self.kind
    }

    /// The root inside the underlying store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Address of the root for people; never holds credentials.
    pub fn uri(&self) -> String {
        if self.root.as_ref().is_empty() {
            return self.base_uri.to_string();
        }
        if self.base_uri.as_ref() == "file:" {
            return format!("file:///{}", self.root);
        }
        if self.base_uri.ends_with(':') {
            return format!("{}{}", self.base_uri, self.root);
        }
        format!("{}/{}", self.base_uri, self.root)
    }

    /// The folder `sub` as a store of its own. `sub` may have several segments; `..` and empty ones are refused.
    pub fn child(&self, sub: &str) -> Result<Store> {
        let other = match &self.other {
            Some(other) => Some(Arc::new(other.child(sub)?)),
            None => None,
        };
        Ok(Store { root: self.locate(sub)?, other, ..self.clone() })
    }

    /// The same place seen from another root, given from the top of the underlying store.
    pub fn at_root(&self, root: &str) -> Result<Store> {
        Ok(Store { root: parse(root)?, other: None, ..self.clone() })
    }

    /// Requests since the target was opened.
    pub fn requests(&self) -> RequestCounts {
        self.meter.counts()
    }

    /// Replaces the hook that is told about each request.
    pub fn on_request(&self, hook: Option<RequestHook>) {
        self.meter.set_hook(hook);
    }

    /// Listings arrive in name order, so that the newest version is on the first page.
    pub fn lists_in_order(&self) -> bool {
        self.pages.is_some()
    }

    /// Whether listing is worth trying.
    pub fn can_list(&self) -> bool {
        self.kind != StoreKind::Static
    }

    pub(super) fn locate(&self, path: &str) -> Result<Path> {
        if self.root.as_ref().is_empty() {
            return parse(path);
        }
        parse(&format!("{}/{path}", self.root))
    }

    /// The whole object. With `size` (from a listing or a manifest) any other length is an error.
    pub async fn get(&self, path: &str, size: Option<u64>) -> Result<Bytes> {
        let location = self.locate(path)?;
        let data = with_retries(&self.env, || self.fetch(path, &location, None, size.unwrap_or(WHOLE))).await?;
        match size {
            Some(size) if data.len() as u64 != size => Err(length_error(path, size, data.len())),
            _ => Ok(data),
        }
    }

    /// Exactly the bytes of `range`; a short answer is an error.
    pub async fn get_range(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        if range.start >= range.end {
            return if range.start == range.end {
                Ok(Bytes::new())
            } else {
                Err(Error::corrupt(path, format!("range {}-{} ends before it starts", range.start, range.end)))
            };
        }
        let location = self.locate(path)?;
        let want = range.end - range.start;
        let data = with_retries(&self.env, || self.fetch(path, &location, Some(range.clone()), want)).await?;
        if data.len() as u64 == want { Ok(data) } else { Err(length_error(path, want, data.len())) }
    }

    /// Several ranges, in the order asked for; near ones are read together, few at a time.
    pub async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let merged = merge(ranges);
        let parts: Vec<Bytes> = futures::stream::iter(merged.iter().cloned())
            .map(|range| self.get_range(path, range))
            .buffered(IN_FLIGHT)
            .try_collect()
            .await?;
        ranges
            .iter()
            .map(|range| {
                if range.start >= range.end {
                    return Ok(Bytes::new());
                }
                let at = merged.partition_point(|m| m.start <= range.start).saturating_sub(1);
                let (from, part) = merged.get(at).zip(parts.get(at)).ok_or_else(|| Error::internal("a range was not read"))?;
                let start = usize::try_from(range.start - from.start).map_err(|_| too_large(path))?;
                let len = usize::try_from(range.end - range.start).map_err(|_| too_large(path))?;
                let end = start.checked_add(len).filter(|end| *end <= part.len());
                end.map(|end| part.slice(start..end)).ok_or_else(|| Error::internal("a range was merged wrongly"))
            })
            .collect()
    }

    /// Writes an object, replacing one of that name.
    ///
    /// # Errors
    /// `changed` is `nothing` when every request was refused for certain, else `unknown`.
    pub async fn put(&self, path: &str, data: Payload) -> Result<()> {
        let location = self.locate(path)?;
        let data: PutPayload = data.into_iter().collect();
        let unclear = Cell::new(false);
        with_retries(&self.env, || async {
            let result = self.upload(path, &location, data.clone(), PutMode::Overwrite).await;
            result.map(|_| ()).map_err(|error| {
                let refused = fault_of("PUT", &error).and_then(|fault| fault.status()).is_some_and(is_refusal);
                unclear.set(unclear.get() || !refused);
                store_error("PUT", path, &error)
            })
        })
        .await
        .map_err(|error| error.with_changed(if unclear.get() { Changed::Unknown } else { Changed::Nothing }))
    }

    /// Creates an object if there is none of that name. Sent once: whoever needs certainty reads it back.
    ///
    /// # Errors
    /// Refusals that leave nothing behind: `changed` is `nothing`.
    pub async fn put_create(&self, path: &str, data: Payload) -> Result<Created> {
        let location = self.locate(path)?;
        let data: PutPayload = data.into_iter().collect();
        let error = match self.upload(path, &location, data, PutMode::Create).await {
            Ok(done) => return Ok(Created::Yes(done.e_tag)),
            Err(error) => error,
        };
        let fault = fault_of("PUT", &error);
        match fault.as_ref().and_then(Fault::status) {
            Some(status) if says_exists(status, fault.as_ref().map_or("", |f| &f.what)) => Ok(Created::Exists),
            Some(status) if is_refusal(status) => Err(store_error("PUT", path, &error)),
            _ => Ok(Created::Unclear(store_error("PUT", path, &error).with_changed(Changed::Unknown))),
        }
    }

    /// Deletes an object; one that is not there is as good as deleted.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let location = self.locate(path)?;
        with_retries(&self.env, || async {
            let timer = self.start();
            let result = self.object.delete(&location).await;
            self.finish(timer, "DELETE", path, None, 0, 0, status_of("DELETE", &result));
            match result {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(store_error("DELETE", path, &error)),
            }
        })
        .await
    }

    async fn fetch(&self, path: &str, location: &Path, range: Option<Range<u64>>, limit: u64) -> Result<Bytes> {
        let options = GetOptions { range: range.clone().map(GetRange::Bounded), ..Default::default() };
        let timer = self.start();
        let result = match self.object.get_opts(location, options).await {
            Ok(answer) => collect(answer.into_stream(), limit).await,
            Err(error) => Err(error),
        };
        let bytes = result.as_ref().map_or(0, |data| data.len() as u64);
        self.finish(timer, "GET", path, range, bytes, 0, status_of("GET", &result));
        result.map_err(|error| store_error("GET", path, &error))
    }

    async fn upload(&self, path: &str, location: &Path, data: PutPayload, mode: PutMode) -> object_store::Result<PutResult> {
        let timer = self.start();
        let size = data.content_length() as u64;
        let result = self.object.put_opts(location, data, PutOptions { mode, ..Default::default() }).await;
        let sent = if result.is_ok() { size } else { 0 };
        self.finish(timer, "PUT", path, None, 0, sent, status_of("PUT", &result));
        result
    }

    pub(super) fn start(&self) -> i64 {
        if self.metered_below { 0 } else { self.env.now_ms() }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn finish(
        &self,
        start: i64,
        method: &str,
        path: &str,
        range: Option<Range<u64>>,
        read: u64,
        written: u64,
        status: u16,
    ) {
        if self.metered_below {
            return;
        }
        let ms = u64::try_from(self.env.now_ms().saturating_sub(start)).unwrap_or(0);
        let (method, path) = (method.to_owned(), path.to_owned());
        self.meter.record(&RequestRecord {
            method,
            path,
            range,
            bytes: read,
            bytes_written: written,
            ms,
            status,
            headers: Vec::new(),
        });
    }
}

/// Statuses of a PUT that leave nothing behind. A 409 may be a concurrent request that won or lost: not among them.
fn is_refusal(status: u16) -> bool {
    matches!(status, 400 | 401 | 403 | 404 | 405 | 411 | 413 | 501 | 507)
}

fn parse(path: &str) -> Result<Path> {
    // `Path::parse` keeps the name as it is and refuses `..`; `Path::from` would encode it anew.
    Path::parse(path).map_err(|_| Error::corrupt(path, "is not a name that an object below the table can have"))
}

fn too_large(path: &str) -> Error {
    Error::new(ErrorCode::MemoryLimit, format!("{path}: a range larger than memory can hold")).with("object", path)
}

fn length_error(path: &str, want: u64, got: usize) -> Error {
    let what = format!("{want} bytes are recorded, the store gave {got}: truncated, or replaced while we read");
    Error::corrupt(path, what).with("expected", want).with("got", got as u64)
}

pub(super) fn status_of<T>(method: &str, result: &object_store::Result<T>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(error) => fault_of(method, error).and_then(|fault| fault.status()).unwrap_or(0),
    }
}

async fn collect(
    mut stream: futures::stream::BoxStream<'static, object_store::Result<Bytes>>,
    limit: u64,
) -> object_store::Result<Bytes> {
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    let mut total = 0u64;
    while let Some(chunk) = stream.try_next().await? {
        total = total.saturating_add(chunk.len() as u64);
        if total > limit {
            let fault = Fault::new(FaultKind::TooLarge, "GET", format!("more than {limit} bytes"));
            return Err(fault.into());
        }
        match &first {
            None => first = Some(chunk),
            Some(head) => {
                if rest.is_empty() {
                    rest.extend_from_slice(head);
                }
                rest.extend_from_slice(&chunk);
            }
        }
    }
    Ok(if rest.is_empty() { first.unwrap_or_default() } else { rest.freeze() })
}

/// Ranges to read for `ranges`: sorted, disjoint, near ones joined.
fn merge(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let wanted = ranges.iter().filter(|r| r.start < r.end).cloned().collect();
    let sorted = sorted_by_key(wanted, |r: &Range<u64>| (r.start, r.end));
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match merged.last_mut() {
            // Overlapping ranges are always joined: looking one up assumes disjoint parts.
            Some(last)
                if range.start < last.end
                    || (range.start - last.end <= GAP && range.end.max(last.end) - last.start <= MERGED) =>
            {
                last.end = last.end.max(range.end);
            }
            _ => merged.push(range),
        }
    }
    merged
}
