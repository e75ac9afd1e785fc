//! The one store everybody uses, and how one session reaches it: slowly, and not always.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::DateTime;
use futures::stream::BoxStream;
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions,
    PutPayload, PutResult,
};
use whetstone::format::manifest::ManifestFile;
use whetstone::format::naming::{Naming, file_name, parse_name};
use whetstone::store::{Fault, FaultKind, HostEntry, HostIo, HostRead, HostStore, Store, StoreKind};

use crate::Sim;
use crate::world::{SessionEnv, World};

/// Who deletes for the table's cleanup.
pub const LANCE: usize = usize::MAX;
const DAY: i64 = 24 * 3_600_000;

struct Life {
    data: Bytes,
    tag: String,
    created: i64,
    deleted: Option<(i64, usize)>,
    /// Of a manifest: no higher version was there when it came.
    newest: bool,
}

/// An object as a listing has it.
pub struct Named {
    pub path: String,
    size: u64,
    pub created: i64,
    tag: String,
}

/// The entity tag of these bytes, as services make it of the content.
fn tag_of<'a>(chunks: impl IntoIterator<Item = &'a Bytes>) -> String {
    let mut hasher = DefaultHasher::new();
    chunks.into_iter().for_each(|chunk| hasher.write(chunk));
    format!("\"{:016x}\"", hasher.finish())
}

/// A manifest that was ever there.
#[derive(Clone)]
pub struct Written {
    pub version: u64,
    pub bytes: Bytes,
    /// No higher version was there when it came.
    pub newest: bool,
}

/// Every object that ever was, with when it came and went.
#[derive(Default)]
pub struct Disk {
    objects: Mutex<BTreeMap<String, Vec<Life>>>,
    manifests: Mutex<Vec<Written>>,
    /// Manifests below the newest version that came long after their writer had turned to another number.
    pub late: AtomicUsize,
}

impl Disk {
    pub fn get(&self, path: &str) -> Option<Bytes> {
        let objects = self.objects.lock().unwrap();
        objects.get(path)?.last().filter(|life| life.deleted.is_none()).map(|life| life.data.clone())
    }

    /// False: it is there already and was to be created.
    pub fn put(&self, world: &World, path: &str, data: Bytes, create: bool) -> bool {
        let mut objects = self.objects.lock().unwrap();
        let version = match path.strip_prefix("_versions/").and_then(parse_name) {
            Some((Naming::V2, version)) => Some(version),
            _ => None,
        };
        let above = |version| objects.range(file_path(u64::MAX)..file_path(version));
        let newest = version.is_some_and(|version| above(version).all(|(_, lives)| lives.last().unwrap().deleted.is_some()));
        let taken = create && objects.get(path).and_then(|lives| lives.last()).is_some_and(|life| life.deleted.is_none());
        if newest && !taken {
            nothing_is_missing(&objects, path, &data);
        }
        let lives = objects.entry(path.to_owned()).or_default();
        if let Some(life) = lives.last_mut().filter(|life| life.deleted.is_none()) {
            if create {
                return false;
            }
            life.deleted = Some((world.now(), LANCE));
        }
        lives.push(Life { data: data.clone(), tag: tag_of([&data]), created: world.now(), deleted: None, newest });
        if let Some(version) = version {
            self.manifests.lock().unwrap().push(Written { version, bytes: data, newest });
        }
        true
    }

    pub fn delete(&self, world: &World, path: &str, who: usize) {
        if let Some(life) = self.objects.lock().unwrap().get_mut(path).and_then(|lives| lives.last_mut()) {
            life.deleted.get_or_insert((world.now(), who));
        }
    }

    /// What lay below a folder at `at`.
    pub fn list(&self, prefix: &str, at: i64) -> Vec<Named> {
        let objects = self.objects.lock().unwrap();
        let there = |life: &&Life| life.created <= at && life.deleted.is_none_or(|(when, _)| when > at);
        objects
            .range(prefix.to_owned()..)
            .take_while(|(path, _)| path.starts_with(prefix))
            .filter_map(|(path, lives)| Some((path, lives.iter().rev().find(there)?)))
            .map(|(path, l)| Named { path: path.clone(), size: l.data.len() as u64, created: l.created, tag: l.tag.clone() })
            .collect()
    }

    pub fn written(&self) -> Vec<Written> {
        self.manifests.lock().unwrap().clone()
    }

    /// A session deletes: never what a version names, and never a version of the history.
    fn delete_for(&self, world: &World, path: &str, session: usize) {
        let objects = self.objects.lock().unwrap();
        let there = objects.get(path).and_then(|lives| lives.last()).filter(|life| life.deleted.is_none());
        assert!(!there.is_some_and(|life| life.newest), "session {session} deletes version {path} of the history");
        if let (Some(_), Some(rest)) = (there, path.strip_prefix("_indices/")) {
            let folder = rest.split('/').next().unwrap();
            let live = objects.range("_versions/".to_owned()..).take_while(|(name, _)| name.starts_with("_versions/"));
            for life in live.filter_map(|(_, lives)| lives.last().filter(|l| l.deleted.is_none() && l.newest)) {
                let file = ManifestFile::parse(path, &life.data).unwrap();
                let named = file.indices.iter().any(|e| e.uuid.to_string() == folder);
                assert!(!named, "session {session} deletes {path}, which version {} names", file.manifest.version);
            }
        }
        drop(objects);
        self.delete(world, path, session);
    }

    /// Whether this session deleted it.
    pub fn deleted_by(&self, session: usize, path: &str) -> bool {
        let objects = self.objects.lock().unwrap();
        objects.get(path).is_some_and(|lives| lives.iter().any(|l| l.deleted.is_some_and(|(_, who)| who == session)))
    }

    /// Versions that are there, ascending.
    pub fn versions(&self) -> Vec<u64> {
        let mut found: Vec<u64> = self
            .list("_versions/", i64::MAX)
            .iter()
            .filter_map(|named| Some(parse_name(named.path.strip_prefix("_versions/")?)?.1))
            .collect();
        found.sort_unstable();
        found
    }
}

pub fn file_path(version: u64) -> String {
    format!("_versions/{}", file_name(Naming::V2, version))
}

/// The moment a version is there, everything that its indexes need is: no session has taken it away.
fn nothing_is_missing(objects: &BTreeMap<String, Vec<Life>>, path: &str, data: &Bytes) {
    for entry in ManifestFile::parse(path, data).unwrap().indices {
        for file in &entry.files {
            let path = format!("_indices/{}/{}", entry.uuid, file.path);
            let life = objects.get(&path).and_then(|lives| lives.last());
            let by = life.map_or(Some(None), |life| life.deleted.filter(|(_, who)| *who != LANCE).map(|(_, who)| Some(who)));
            assert!(by.is_none(), "a version comes that names {path}, which {by:?} deleted (none: it never was)");
        }
    }
}

/// How often things go wrong for a session, each in a thousand requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// An answer 503 before anything happened.
    pub refused: u64,
    /// An answer 500, or none at all, after it happened.
    pub lost: u64,
    /// No answer in time; it happens all the same, later.
    pub delayed: u64,
    /// A 409 for a create, half of them after it happened.
    pub conflict: u64,
    /// The listing is that of a moment ago, and in any order.
    pub old_listing: u64,
    /// The machine sleeps between two requests, up to ten days.
    pub sleeps: u64,
    /// The store is gone for a while: after a request, and forty times as often after one that got no answer.
    pub outage: u64,
}

/// One session's way to the disk.
#[derive(Clone)]
pub struct Client {
    pub disk: Arc<Disk>,
    pub world: Arc<World>,
    pub session: usize,
    pub faults: Faults,
    /// No time passes: for looking, not for sessions.
    pub instant: bool,
    /// When the store was or will be gone for this session, and until when.
    gone: Arc<Mutex<(i64, i64)>>,
}

impl Client {
    pub fn new(sim: &Sim, session: usize, faults: Faults) -> Client {
        let (disk, world) = (sim.disk.clone(), sim.world.clone());
        Client { disk, world, session, faults, instant: false, gone: Arc::default() }
    }

    /// A way without delay or fault.
    pub fn looking(sim: &Sim) -> Client {
        Client { instant: true, ..Client::new(sim, LANCE, Faults::default()) }
    }

    /// The store as the engine takes it: one that lists in order tells entity tags, too.
    pub fn store(&self, skew: i64, ordered: bool) -> Store {
        let env = Arc::new(SessionEnv { world: self.world.clone(), skew });
        let io = Arc::new(self.clone());
        let host = HostStore::new(io.clone());
        if !ordered {
            return Store::new(Arc::new(host), Path::default(), StoreKind::Memory, env);
        }
        Store::new(Arc::new(Tagging(host)), Path::default(), StoreKind::Memory, env).with_pages(io)
    }

    /// Loses sight of the store, perhaps, some time from now.
    fn lose(&self, per_mille: u64) {
        if self.world.chance(per_mille) {
            let from = self.world.now() + self.world.below(15_000) as i64;
            let mut gone = self.gone.lock().unwrap();
            if gone.1 < self.world.now() {
                *gone = (from, from + self.world.below(20_000) as i64);
            }
        }
    }

    async fn before(&self) -> Result<(), Fault> {
        if self.instant {
            return Ok(());
        }
        self.world.sleep(1 + self.world.below(60) as i64).await;
        let (from, until) = *self.gone.lock().unwrap();
        if (from..until).contains(&self.world.now()) || self.world.chance(self.faults.refused) {
            return Err(fault(503));
        }
        self.lose(self.faults.outage);
        Ok(())
    }

    async fn after(&self) {
        if self.instant {
            return;
        }
        self.world.sleep(1 + self.world.below(60) as i64).await;
        if self.world.chance(self.faults.sleeps) {
            let most = [4_000, 12_000, 60_000, 3_600_000, 10 * DAY][self.world.below(5) as usize];
            self.world.sleep(self.world.below(most as u64) as i64).await;
        }
    }

    /// When a listing was made that is answered now.
    fn listing_time(&self) -> i64 {
        if !self.instant && self.world.chance(self.faults.old_listing) {
            return self.world.now() - self.world.below(5_000) as i64;
        }
        self.world.now()
    }

    async fn folder(&self, dir: &str) -> Result<(Vec<Named>, Vec<String>), Fault> {
        self.before().await?;
        let prefix = format!("{}/", dir.trim_end_matches('/'));
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        for named in self.disk.list(&prefix, self.listing_time()) {
            match named.path[prefix.len()..].split_once('/') {
                None => files.push(Named { path: named.path[prefix.len()..].to_owned(), ..named }),
                Some((folder, _)) if folders.last().is_none_or(|last| last != folder) => folders.push(folder.to_owned()),
                Some(_) => {}
            }
        }
        self.after().await;
        Ok((files, folders))
    }
}

/// A store whose answers to PUT carry the entity tag.
#[derive(Debug)]
struct Tagging(HostStore);

impl std::fmt::Display for Tagging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[async_trait]
impl ObjectStore for Tagging {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> object_store::Result<PutResult> {
        let e_tag = Some(tag_of(payload.iter()));
        Ok(PutResult { e_tag, ..self.0.put_opts(location, payload, opts).await? })
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.0.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

fn fault(status: u16) -> Fault {
    Fault::new(FaultKind::Status(status), "SIM", "")
}

#[async_trait]
impl HostIo for Client {
    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<HostRead, Fault> {
        self.before().await?;
        let found = self.disk.get(path);
        self.after().await;
        let data = found.ok_or_else(|| fault(404))?;
        let size = data.len() as u64;
        let data = match range {
            Some(range) if range.start < size => data.slice(range.start as usize..range.end.min(size) as usize),
            Some(_) => return Err(fault(416)),
            None => data,
        };
        Ok(HostRead { data, size, modified_ms: 0 })
    }

    async fn write(&self, path: &str, data: Vec<Bytes>, create: bool) -> Result<bool, Fault> {
        self.before().await?;
        let data: Bytes = data.concat().into();
        let dice = self.world.below(1000);
        let Faults { lost, delayed, conflict, .. } = if self.instant { Faults::default() } else { self.faults };
        if dice < delayed {
            let (disk, world, path, who) = (self.disk.clone(), self.world.clone(), path.to_owned(), self.session);
            let most = [5_000, 20_000, 120_000, 120_000][self.world.below(4) as usize];
            let wait = self.world.below(most) as i64;
            self.lose(40 * self.faults.outage);
            self.world.later(
                wait,
                Box::new(move || {
                    let done = disk.put(&world, &path, data, create);
                    if done && path.starts_with("_versions/") && disk.written().last().is_some_and(|w| !w.newest) {
                        disk.late.fetch_add(1, Ordering::Relaxed);
                    }
                    world.note(|| format!("{who} late {path} {done}"));
                }),
            );
            self.world.sleep(8_000).await;
            return Err(Fault::new(FaultKind::Timeout, "PUT", ""));
        }
        if create && dice < delayed + conflict / 2 {
            return Err(fault(409));
        }
        let done = self.disk.put(&self.world, path, data, create);
        self.world.note(|| format!("{} put {path} {done}", self.session));
        self.after().await;
        if create && dice < delayed + conflict {
            return Err(fault(409));
        }
        if dice < delayed + conflict + lost {
            return Err(if dice.is_multiple_of(2) { fault(500) } else { Fault::new(FaultKind::Interrupted, "PUT", "") });
        }
        Ok(done)
    }

    async fn list(&self, dir: &str) -> Result<Vec<HostEntry>, Fault> {
        let (files, folders) = self.folder(dir).await?;
        let file = |f: Named| HostEntry { name: f.path, size: f.size, modified_ms: f.created, is_dir: false };
        let folder = |name| HostEntry { name, size: 0, modified_ms: 0, is_dir: true };
        let mut all: Vec<HostEntry> = files.into_iter().map(file).chain(folders.into_iter().map(folder)).collect();
        if self.world.chance(self.faults.old_listing) {
            all.reverse();
        }
        Ok(all)
    }

    async fn delete(&self, path: &str) -> Result<(), Fault> {
        self.before().await?;
        self.disk.delete_for(&self.world, path, self.session);
        self.world.note(|| format!("{} delete {path}", self.session));
        self.after().await;
        Ok(())
    }
}

#[async_trait]
impl PaginatedListStore for Client {
    async fn list_paginated(
        &self,
        prefix: Option<&str>,
        opts: PaginatedListOptions,
    ) -> object_store::Result<PaginatedListResult> {
        let dir = prefix.unwrap_or_default();
        let (files, folders) = self.folder(dir).await.map_err(object_store::Error::from)?;
        let after = opts.page_token.unwrap_or_default();
        let mut files: Vec<_> = files.into_iter().filter(|named| named.path > after).collect();
        let more = opts.max_keys.is_some_and(|most| files.len() > most);
        files.truncate(opts.max_keys.unwrap_or(usize::MAX));
        let page_token = files.last().filter(|_| more).map(|named| named.path.clone());
        let dir = dir.trim_end_matches('/');
        let meta = |named: Named| ObjectMeta {
            location: Path::parse(format!("{dir}/{}", named.path)).unwrap(),
            last_modified: DateTime::from_timestamp_millis(named.created).unwrap(),
            size: named.size,
            e_tag: Some(named.tag),
            version: None,
        };
        let common_prefixes = if after.is_empty() { folders } else { Vec::new() };
        let result = ListResult {
            common_prefixes: common_prefixes.iter().map(|name| Path::parse(format!("{dir}/{name}")).unwrap()).collect(),
            objects: files.into_iter().map(meta).collect(),
            extensions: Default::default(),
        };
        Ok(PaginatedListResult { result, page_token })
    }
}
