//! [`Table`]: a snapshot of a table at one version.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat};
use serde::{Deserialize, Serialize};

use super::base::main_root;
use super::history::{TaggedHistory, content};
use super::latest::{all_versions, find_version, no_such_version, not_a_table, open_latest};
use super::reading::{Fetched, manifest_path, read_manifest};
use super::refs::{self, BranchInfo, TagInfo};
use crate::error::{Error, ErrorCode, Result};
use crate::format::flags::check_branch;
use crate::format::index_metadata::IndexMetadata;
use crate::format::manifest::{Manifest, ManifestFile};
use crate::format::naming::Naming;
use crate::format::reuse_v0::{ReuseHistoryV0, is_tagged, reuse_entry};
use crate::format::transaction::Transaction;
use crate::store::{Store, is_not_found};

/// Which version to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// The newest.
    #[default]
    Latest,
    /// This one.
    Version(u64),
    /// The one a tag names, on the tag's branch.
    Tag(String),
}

/// One version in the public interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VersionInfo {
    /// Version.
    pub version: u64,
    /// Size of the manifest in bytes.
    pub size: Option<u64>,
    /// When the manifest was written, RFC 3339, as far as the listing says.
    pub modified: Option<String>,
}

/// A snapshot. Cheap to clone; never changes.
#[derive(Clone)]
pub struct Table {
    main: Store,
    store: Store,
    branch: Option<String>,
    naming: Naming,
    file: Arc<ManifestFile>,
    bytes: Option<Bytes>,
    /// Entity tag and size of the manifest in the listing that led to it.
    listed: Option<(String, u64)>,
    mapped: Arc<OnceLock<Vec<IndexMetadata>>>,
    history: Arc<OnceLock<Option<Arc<TaggedHistory>>>>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({}, version {})", self.store.uri(), self.version())
    }
}

impl Table {
    /// Opens a version of the table at `store`, on `branch` (`None` = main, or the branch whose root `store` is).
    pub async fn open(store: Store, at: At, branch: Option<&str>) -> Result<Table> {
        match at {
            At::Tag(name) => {
                let found = tagged(&store, &name, branch).await?;
                Table::open_version(found.0, found.1, found.2.as_deref()).await
            }
            At::Version(version) => Table::open_version(store, version, branch).await,
            At::Latest => {
                let root = branch_root(&store, branch)?;
                let found = open_latest(&root, None).await.map_err(|error| explain_branch(error, &store, branch))?;
                let (root, naming, fetched) = found.ok_or_else(|| Error::internal("no version was known"))?;
                Table::assemble(store, root, branch, naming, fetched)
            }
        }
    }

    async fn open_version(store: Store, version: u64, branch: Option<&str>) -> Result<Table> {
        let root = branch_root(&store, branch)?;
        let found = match find_version(&root, version).await {
            Ok(Some(found)) => Ok(Some((root.clone(), found))),
            first => match root.alternative() {
                Some(other) => match find_version(other, version).await {
                    Ok(Some(found)) => Ok(Some((other.clone(), found))),
                    _ => first.map(|_| None),
                },
                None => first.map(|_| None),
            },
        };
        match found? {
            Some((root, (naming, fetched))) => Table::assemble(store, root, branch, naming, fetched),
            None => Err(explain_branch(no_such_version(&root, version).await, &store, branch)),
        }
    }

    /// Puts the parts together. `store` is what the caller opened, `root` the folder (of it or of its alternative) that has
    /// the manifest.
    fn assemble(store: Store, root: Store, branch: Option<&str>, naming: Naming, fetched: Fetched) -> Result<Table> {
        let stated = fetched.file.manifest.branch.clone();
        let (main, branch) = match (branch, stated) {
            (Some(branch), stated) => {
                check_branch(&fetched.file.manifest, Some(branch))?;
                (main_root(&root, branch)?.unwrap_or(store), stated)
            }
            (None, None) => (root.clone(), None),
            // The caller opened the folder of a branch as if it were a table: it is one, if the folder is the branch's.
            (None, Some(stated)) => match main_root(&root, &stated)? {
                Some(main) => (main, Some(stated)),
                None => {
                    check_branch(&fetched.file.manifest, None)?;
                    (root.clone(), Some(stated))
                }
            },
        };
        Ok(Table {
            main,
            store: root,
            branch,
            naming,
            file: Arc::new(fetched.file),
            bytes: fetched.bytes,
            listed: fetched.listed,
            mapped: Arc::default(),
            history: Arc::default(),
        })
    }

    /// A table that is not there yet, for the commit of its first version: `manifest` is of version 0 and lies nowhere.
    pub fn unborn(store: Store, manifest: ManifestFile) -> Table {
        Table {
            main: store.clone(),
            store,
            branch: None,
            naming: Naming::V2,
            file: Arc::new(manifest),
            bytes: None,
            listed: None,
            mapped: Arc::default(),
            history: Arc::default(),
        }
    }

    /// The manifest with its index section.
    pub fn manifest(&self) -> &Arc<ManifestFile> {
        &self.file
    }

    /// The manifest file's bytes, when it was read whole (up to 1 MiB): for workers, so that they need not read it again.
    pub fn manifest_bytes(&self) -> Option<&Bytes> {
        self.bytes.as_ref()
    }

    /// The root of this branch: everything of the table is below it.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The main root: tags and branches are below it.
    pub fn main_store(&self) -> &Store {
        &self.main
    }

    /// The version.
    pub fn version(&self) -> u64 {
        self.file.manifest.version
    }

    /// The naming scheme of its manifests, which a writer must keep.
    pub fn naming(&self) -> Naming {
        self.naming
    }

    /// The branch; `None` = main.
    pub fn branch(&self) -> Option<&str> {
        self.branch.as_deref()
    }

    /// Path of the manifest below [`Table::store`].
    pub fn manifest_path(&self) -> String {
        manifest_path(self.naming, self.version())
    }

    /// Another version of the same branch, or the one a tag names.
    pub async fn at(&self, at: At) -> Result<Table> {
        match at {
            At::Tag(_) => Table::open(self.main.clone(), at, None).await,
            At::Version(version) => match read_manifest(&self.store, self.naming, version, None).await {
                Ok(fetched) => self.with(fetched),
                Err(error) if is_not_found(&error) => Err(no_such_version(&self.store, version).await),
                Err(error) => Err(error),
            },
            At::Latest => {
                let known = self.listed.as_ref().map(|listed| (self.version(), listed));
                let (store, naming, fetched) = match open_latest(&self.store, known).await {
                    Ok(None) => return Ok(self.clone()),
                    // An old listing may name nothing but what was cleaned up.
                    Err(error) if error.code() == ErrorCode::TableNotFound => {
                        return self.beyond_listing(&self.store, 0).await.map_err(|_| error);
                    }
                    Ok(Some(found)) => found,
                    Err(error) => return Err(error),
                };
                if fetched.file.manifest.version < self.version() {
                    return self.beyond_listing(&store, fetched.file.manifest.version).await;
                }
                Ok(Table { store, naming, ..self.with(fetched)? })
            }
        }
    }

    /// The newest version of the same branch. A table that went back in versions was deleted and made anew: `STALE_PLAN`.
    pub async fn latest(&self) -> Result<Table> {
        self.at(At::Latest).await
    }

    /// The listing ends at version `listed`, below this one. While this one is there to be read the listing is old, and reading
    /// on from here finds the newest; else the table is another.
    async fn beyond_listing(&self, store: &Store, listed: u64) -> Result<Table> {
        match read_manifest(&self.store, self.naming, self.version(), None).await {
            Ok(fetched) if fetched.file.manifest.raw == self.file.manifest.raw => {}
            Err(error) if !is_not_found(&error) => return Err(error),
            _ => return Err(made_anew(store, self.version(), listed)),
        }
        let mut newest = self.clone();
        while let Some(next) = newest.version().checked_add(1) {
            match read_manifest(&self.store, self.naming, next, None).await {
                Ok(fetched) => newest = newest.with(fetched)?,
                Err(error) if is_not_found(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(newest)
    }

    /// The same table at a version whose manifest was just read.
    pub(super) fn adopt(&self, file: ManifestFile) -> Result<Table> {
        self.with(Fetched { file, bytes: None, listed: None })
    }

    /// The entity tag under which its manifest was listed; `None` = it was not, or the listing tells none.
    pub(super) fn listed_tag(&self) -> Option<&str> {
        self.listed.as_ref().map(|(tag, _)| tag.as_str())
    }

    /// The same table at a version that we made: its manifest, and the entity tag and size under which it is listed.
    pub(super) fn adopt_listed(&self, file: ManifestFile, bytes: Bytes, listed: (String, u64)) -> Result<Table> {
        self.with(Fetched { file, bytes: Some(bytes), listed: Some(listed) })
    }

    fn with(&self, fetched: Fetched) -> Result<Table> {
        check_branch(&fetched.file.manifest, self.branch.as_deref())?;
        Ok(Table {
            file: Arc::new(fetched.file),
            bytes: fetched.bytes,
            listed: fetched.listed,
            mapped: Arc::default(),
            history: Arc::default(),
            ..self.clone()
        })
    }

    /// The manifest of version `v` of this branch; `None` = cleaned up, or never there.
    pub async fn manifest_at(&self, v: u64) -> Result<Option<Arc<ManifestFile>>> {
        if v == self.version() {
            return Ok(Some(self.file.clone()));
        }
        match read_manifest(&self.store, self.naming, v, None).await {
            Ok(fetched) => Ok(Some(Arc::new(fetched.file))),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The detached manifest of version `v` below this root; `None` = it is gone.
    pub async fn detached(&self, v: u64) -> Result<Option<Arc<ManifestFile>>> {
        match read_manifest(&self.store, Naming::Detached, v, None).await {
            Ok(fetched) => Ok(Some(Arc::new(fetched.file))),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The versions that are listed, oldest first.
    pub async fn versions(&self) -> Result<Vec<VersionInfo>> {
        let listed = all_versions(&self.store).await?;
        if listed.is_empty() {
            return Err(not_a_table(&self.store));
        }
        let info = |l: super::latest::Listed| VersionInfo {
            version: l.version,
            size: Some(l.entry.size),
            modified: l.entry.modified_ms.and_then(rfc3339),
        };
        Ok(listed.into_iter().map(info).collect())
    }

    /// All tags by name.
    pub async fn tags(&self) -> Result<BTreeMap<String, TagInfo>> {
        refs::tags(&self.main).await
    }

    /// All branches by name.
    pub async fn branches(&self) -> Result<BTreeMap<String, BranchInfo>> {
        refs::branches(&self.main).await
    }

    /// The transaction that made version `v`: from its manifest, else from its file. `None` when the version was cleaned up
    /// or carries no transaction.
    pub async fn transaction(&self, v: u64) -> Result<Option<Transaction>> {
        let Some(file) = self.manifest_at(v).await? else { return Ok(None) };
        transaction_of(&self.store, self.naming, &file).await
    }

    /// The transaction with that uuid, and the version it became: `None` for the version when it was never committed (or its
    /// version was cleaned up).
    pub async fn find_transaction(&self, uuid: &str) -> Result<Option<(Option<u64>, Transaction)>> {
        let ending = format!("-{uuid}.txn");
        let entries = self.store.list("_transactions").await?;
        let found = entries.iter().find(|e| e.name.ends_with(&ending));
        let first = found.and_then(|e| e.name.split('-').next()?.parse::<u64>().ok()).unwrap_or(0);
        // Its version is later than the one it was computed from.
        for version in self.versions().await?.into_iter().filter(|v| v.version > first) {
            let Some(transaction) = self.transaction(version.version).await? else { continue };
            if transaction.uuid.eq_ignore_ascii_case(uuid) {
                return Ok(Some((Some(version.version), transaction)));
            }
        }
        let Some(entry) = found else { return Ok(None) };
        let path = format!("_transactions/{}", entry.name);
        let bytes = self.store.get(&path, Some(entry.size)).await?;
        Ok(Some((None, Transaction::parse(&path, &bytes)?)))
    }

    /// The index entries with what they cover: carried through a version-0 reuse history, derived from a tagged one (a segment
    /// that queries do not see covers nothing, whatever its bitmap says; without a bitmap it stays unknown). `raw` stays what is
    /// stored.
    pub async fn indices(&self) -> Result<&[IndexMetadata]> {
        if self.mapped.get().is_none() {
            let mapped = match self.history().await? {
                Some(history) => history.covered(&self.file.indices),
                None => mapped_indices(&self.store, &self.file.manifest, &self.file.indices).await?,
            };
            // Another call may have been faster with the same result.
            let _ = self.mapped.set(mapped);
        }
        self.mapped.get().map(Vec::as_slice).ok_or_else(|| Error::internal("the index list was not kept"))
    }

    /// The tagged reuse history, decoded, with what it makes of every segment; `None` = there is none.
    ///
    /// # Errors
    /// `CORRUPT_FILE`, and those of reading content that is kept in a file.
    pub async fn history(&self) -> Result<Option<Arc<TaggedHistory>>> {
        if self.history.get().is_none() {
            let read = TaggedHistory::read(&self.store, &self.file.manifest, &self.file.indices).await?;
            let _ = self.history.set(read.map(Arc::new));
        }
        Ok(self.history.get().cloned().flatten())
    }

    /// The tagged reuse history for whoever relies on what it says, or changes what depends on it; `None` = there is none.
    ///
    /// # Errors
    /// `HISTORY_UNSUPPORTED` when there is something in it that this build does not know, and those of [`Table::history`].
    pub async fn derivable(&self) -> Result<Option<Arc<TaggedHistory>>> {
        let history = self.history().await?;
        if let Some(history) = &history {
            history.check_supported()?;
        }
        Ok(history)
    }

    /// Whether stored coverage must not be read as coverage.
    pub fn has_tagged_history(&self) -> bool {
        self.file.indices.iter().any(is_tagged)
    }
}

/// Unix milliseconds as RFC 3339.
pub(super) fn rfc3339(ms: i64) -> Option<String> {
    Some(DateTime::from_timestamp_millis(ms)?.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// The entries of a manifest with version-0 coverage carried through (see [`Table::indices`]).
pub async fn mapped_indices(store: &Store, manifest: &Manifest, indices: &[IndexMetadata]) -> Result<Vec<IndexMetadata>> {
    let Some(entry) = reuse_entry(indices).filter(|entry| !is_tagged(entry)) else { return Ok(indices.to_vec()) };
    let (object, content) = content(store, manifest, entry).await?;
    Ok(ReuseHistoryV0::parse(&object, &content)?.map_indices(indices))
}

/// The transaction of a manifest: inline, else its file.
pub(super) async fn transaction_of(store: &Store, naming: Naming, file: &ManifestFile) -> Result<Option<Transaction>> {
    if let Some(transaction) = file.transaction(&manifest_path(naming, file.manifest.version))? {
        return Ok(Some(transaction));
    }
    let Some(name) = file.manifest.transaction_file.as_deref().filter(|name| !name.is_empty()) else { return Ok(None) };
    let path = format!("_transactions/{name}");
    match store.get(&path, None).await {
        Ok(bytes) => Transaction::parse(&path, &bytes).map(Some),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn branch_root(store: &Store, branch: Option<&str>) -> Result<Store> {
    match branch {
        None | Some("main") => Ok(store.clone()),
        Some(branch) => store.child(&format!("tree/{branch}")).map_err(|_| no_branch(store, branch)),
    }
}

/// Store, version and branch that a tag stands for.
async fn tagged(store: &Store, name: &str, branch: Option<&str>) -> Result<(Store, u64, Option<String>)> {
    let (store, tag) = match refs::tag(store, name).await {
        Ok(tag) => (store.clone(), tag),
        Err(error) => match store.alternative() {
            Some(other) => match refs::tag(other, name).await {
                Ok(tag) => (other.clone(), tag),
                Err(_) => return Err(error),
            },
            None => return Err(error),
        },
    };
    if let Some(branch) = branch.filter(|b| *b != "main")
        && tag.branch.as_deref() != Some(branch)
    {
        let of = tag.branch.as_deref().unwrap_or("main");
        return Err(Error::new(ErrorCode::VersionNotFound, format!("tag {name:?} is of branch {of}, not of {branch}")));
    }
    Ok((store, tag.version, tag.branch))
}

fn no_branch(store: &Store, branch: &str) -> Error {
    Error::new(ErrorCode::VersionNotFound, format!("{} has no branch {branch:?}", store.uri())).with("branch", branch)
}

fn explain_branch(error: Error, store: &Store, branch: Option<&str>) -> Error {
    match branch {
        Some(branch) if branch != "main" && error.code() == ErrorCode::TableNotFound => no_branch(store, branch),
        _ => error,
    }
}

fn made_anew(store: &Store, before: u64, now: u64) -> Error {
    Error::new(
        ErrorCode::StalePlan,
        format!(
            "{}: the latest version is {now} and was {before}: the table was deleted and made anew, open it again",
            store.uri()
        ),
    )
    .with("before", before)
    .with("now", now)
}
