//! Row maps that no version names any more (spec fragment-reuse §13).
//!
//! Every manifest that is still there is read: those of this root, of every branch, and detached ones; so a tag keeps what its
//! version names, and so does every old version until it is cleaned up. One history that cannot be interpreted keeps all maps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::trim::check_maintenance;
use crate::error::{Changed, Error, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::format::manifest::{Manifest, ManifestFile};
use crate::format::naming::{Naming, parse_name};
use crate::format::reuse_v0::is_tagged;
use crate::lists::set_of;
use crate::refresh::plan::FORMAT;
use crate::reuse::collect::{MIN_AGE_MS, MapState, state};
use crate::reuse::transition::Mapping;
use crate::store::{RequestCounts, Store};
use crate::table::history::TaggedHistory;
use crate::table::{At, Table};

/// The `kind` of a plan to collect row maps.
pub const GC: &str = "gc";
const FOLDER: &str = "_fri";
const VERSIONS: &str = "_versions";
/// Places named in the plan for each map; more are counted.
const SHOWN: usize = 8;

/// What to collect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct GcOptions {
    /// Age in milliseconds that a map must have; seven days unless more is asked for.
    pub older_than_ms: Option<u64>,
}

/// A plan to remove row maps. Making it changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GcPlan {
    /// Format of this document.
    pub format: u32,
    /// Always `gc`.
    pub kind: String,
    /// Address of the table.
    pub table: String,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Newest version that was looked at.
    pub v_plan: u64,
    /// Age in milliseconds that a map must have.
    pub older_than_ms: u64,
    /// Why nothing at all is removed in this run; null = it is not so.
    pub disabled: Option<String>,
    /// Manifests that were read.
    pub versions_read: u64,
    /// Folders below `_fri/`.
    pub row_maps: Vec<FoundMap>,
}

/// A folder below `_fri/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundMap {
    /// Its name.
    pub map_id: String,
    /// `referenced`, `young`, `age_unknown` or `aged`; only the last are removed.
    pub state: MapState,
    /// Milliseconds since its youngest file was written; null when the store does not say.
    pub age: Option<u64>,
    /// Bytes of its files.
    pub bytes: u64,
    /// Its files, below the folder.
    pub files: Vec<String>,
    /// Versions that name it, the first few.
    pub referenced_by: Vec<String>,
}

/// What a run removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GcReport {
    /// Row maps that were removed.
    pub removed: Vec<String>,
    /// Row maps that stay.
    pub kept: u64,
    /// Bytes of the files that were removed.
    pub bytes_removed: u64,
    /// Why nothing at all was removed; null = it is not so.
    pub disabled: Option<String>,
    /// Version looked at.
    pub version: u64,
    /// Requests since the table was opened.
    pub requests: RequestCounts,
}

/// Plans to remove row maps below this root that no version of it or of a branch names. Nothing is written.
///
/// # Errors
/// `INVALID_ARGUMENT` for an age below seven days, and those of listing; an undecodable history is no error but disables the run.
pub async fn plan_gc(table: &Table, options: GcOptions) -> Result<GcPlan> {
    let least = MIN_AGE_MS as u64;
    let older_than_ms = options.older_than_ms.unwrap_or(least);
    if older_than_ms < least {
        let text = format!(
            "row maps younger than seven days ({least} ms) are never removed, since a commit may be on its way; {older_than_ms} ms were asked for"
        );
        return Err(Error::invalid(text));
    }
    let latest = table.latest().await?;
    let store = latest.store();
    // The maps first, then who names them: what is committed in between is seen.
    let found = found_maps(store).await?;
    let mut search = Search::default();
    let disabled = if found.is_empty() { None } else { search.run(&latest).await.err().map(|e| e.message().to_owned()) };
    let now = store.env().now_ms();
    let min_age = i64::try_from(older_than_ms).unwrap_or(i64::MAX);
    let row_maps = found.into_iter().map(|(name, files)| {
        let named = Uuid::parse_str(&name).ok().and_then(|id| search.names.get(&id));
        // Only what is called as Lance calls row maps can be one.
        let foreign = Uuid::parse_str(&name).is_err();
        // The beginning of time is how some stores say that they do not know.
        let mut times = files.iter().map(|f| f.modified_ms.filter(|at| *at > 0));
        let youngest = times.try_fold(i64::MIN, |a, b| Some(a.max(b?)));
        let youngest = youngest.filter(|_| !files.is_empty() && !foreign);
        let mut referenced_by = named.map(|n| n.places.clone()).unwrap_or_default();
        if let Some(more) = named.filter(|n| n.count > n.places.len()) {
            referenced_by.push(format!("and {} more", more.count - more.places.len()));
        }
        FoundMap {
            state: state(named.is_some(), youngest, now, min_age),
            age: youngest.and_then(|at| u64::try_from(now.saturating_sub(at)).ok()),
            bytes: files.iter().fold(0u64, |sum, f| sum.saturating_add(f.size)),
            files: files.into_iter().map(|f| f.name).collect(),
            map_id: name,
            referenced_by,
        }
    });
    Ok(GcPlan {
        format: FORMAT,
        kind: GC.to_owned(),
        table: store.uri(),
        branch: latest.manifest().manifest.branch.clone(),
        v_plan: latest.version(),
        older_than_ms,
        row_maps: row_maps.collect(),
        disabled,
        versions_read: search.read,
    })
}

async fn found_maps(store: &Store) -> Result<Vec<(String, Vec<crate::store::Entry>)>> {
    let mut all = Vec::new();
    for name in store.folders(FOLDER).await? {
        let files = store.list(&format!("{FOLDER}/{name}")).await?;
        // Folders of folders are nothing we know: such a map has no age and stays.
        let nested = !store.folders(&format!("{FOLDER}/{name}")).await?.is_empty();
        all.push((name, if nested { Vec::new() } else { files }));
    }
    Ok(all)
}

/// Who names a map.
#[derive(Default)]
struct Named {
    places: Vec<String>,
    count: usize,
}

#[derive(Default)]
struct Search {
    names: BTreeMap<Uuid, Named>,
    /// Maps of the entries that were decoded already.
    decoded: BTreeMap<(Uuid, Option<u32>), Vec<Uuid>>,
    read: u64,
}

impl Search {
    /// Every manifest there is. An error means that something could not be interpreted.
    async fn run(&mut self, table: &Table) -> Result<()> {
        self.root(table).await?;
        let mut seen = set_of([table.branch().map(str::to_owned)]);
        let branches = table.branches().await?;
        for branch in branches.keys().map(|name| Some(name.clone())).chain([None]) {
            if !seen.insert(branch.clone()) {
                continue;
            }
            let other = Table::open(table.main_store().clone(), At::Latest, branch.as_deref()).await?;
            self.root(&other).await?;
        }
        Ok(())
    }

    async fn root(&mut self, table: &Table) -> Result<()> {
        let of = table.branch().unwrap_or("main").to_owned();
        let listed = table.store().list(VERSIONS).await?;
        // A listing may end before a version that was just committed.
        self.manifest(table, table.manifest(), &of).await?;
        for (naming, version) in listed.iter().filter_map(|entry| parse_name(&entry.name)) {
            if version == table.version() && naming != Naming::Detached {
                continue;
            }
            let file =
                if naming == Naming::Detached { table.detached(version).await? } else { table.manifest_at(version).await? };
            // A version that was cleaned up since the listing names nothing any more.
            if let Some(file) = file {
                self.manifest(table, &file, &of).await?;
            }
        }
        Ok(())
    }

    async fn manifest(&mut self, table: &Table, file: &ManifestFile, branch: &str) -> Result<()> {
        self.read += 1;
        let Some(entry) = file.indices.iter().find(|e| is_tagged(e)) else { return Ok(()) };
        let version = file.manifest.version;
        for map in self.maps(table.store(), &file.manifest, &file.indices, entry).await? {
            let named = self.names.entry(map).or_default();
            named.count += 1;
            if named.places.len() < SHOWN {
                named.places.push(format!("version {version} of {branch}"));
            }
        }
        Ok(())
    }

    async fn maps(
        &mut self,
        store: &Store,
        manifest: &Manifest,
        section: &[IndexMetadata],
        entry: &IndexMetadata,
    ) -> Result<Vec<Uuid>> {
        let key = (entry.uuid, entry.base_id);
        if let Some(maps) = self.decoded.get(&key) {
            return Ok(maps.clone());
        }
        let cannot = |why: &str| {
            let text = format!("the reuse history of version {} cannot be interpreted: {why}", manifest.version);
            Error::new(crate::ErrorCode::HistoryUnsupported, text)
        };
        let history = TaggedHistory::read(store, manifest, section).await.map_err(|e| cannot(e.message()))?;
        let history = history.filter(|history| history.ledger.supported);
        let history = history.ok_or_else(|| cannot("it has something in it that this build does not know"))?;
        let of_transition = |mapping: &Mapping| match mapping {
            Mapping::StablePartition(map) => Some(map.map_id),
            Mapping::OrderedCompaction(_) => None,
        };
        let maps: Vec<Uuid> = history.ledger.transitions.iter().filter_map(|t| of_transition(&t.mapping)).collect();
        self.decoded.insert(key, maps.clone());
        Ok(maps)
    }
}

/// Removes the row maps of a plan that are still unreferenced and old enough.
///
/// # Errors
/// Those of planning; a deletion that fails ends the run, and the error says how many maps were removed.
pub async fn run_gc(table: &Table, plan: &GcPlan) -> Result<GcReport> {
    let latest = table.latest().await?;
    check_maintenance(&latest, GC, &plan.kind, plan.format, plan.branch.as_deref(), plan.v_plan)?;
    // What the plan saw may have been taken up since: everything is looked at again.
    let now = plan_gc(&latest, GcOptions { older_than_ms: Some(plan.older_than_ms) }).await?;
    let aged = |m: &&FoundMap| m.state == MapState::Aged;
    let planned = set_of(plan.row_maps.iter().filter(aged).map(|m| m.map_id.clone()));
    let disabled = now.disabled.clone().or_else(|| plan.disabled.clone());
    let (mut removed, mut bytes_removed) = (Vec::new(), 0u64);
    for map in now.row_maps.iter().filter(aged).filter(|m| disabled.is_none() && planned.contains(&m.map_id)) {
        for file in &map.files {
            let deleted = latest.store().delete(&format!("{FOLDER}/{}/{file}", map.map_id)).await;
            deleted.map_err(|error| {
                let text = format!("{} ({} row maps were removed before that)", error.message(), removed.len());
                Error::new(error.code(), text).with("removed", removed.clone()).with_changed(Changed::Staged)
            })?;
        }
        bytes_removed = bytes_removed.saturating_add(map.bytes);
        removed.push(map.map_id.clone());
    }
    Ok(GcReport {
        kept: now.row_maps.len().saturating_sub(removed.len()) as u64,
        removed,
        bytes_removed,
        disabled,
        version: latest.version(),
        requests: table.store().requests(),
    })
}
