//! What lies in a table's folders although no retained version names it: what commits that lost, builds that were given up and
//! versions that were cleaned up have left.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::leftovers::{Folder, Removal};
use super::references::References;
use crate::error::{Error, Result};
use crate::refresh::commit::UNNAMED_FOR_MS;
use crate::refresh::plan::FORMAT;
use crate::table::Table;

/// The `kind` of a list of orphans, which is the plan to remove them too.
pub const ORPHANS: &str = "orphans";
/// Age after which Lance takes what nothing names for abandoned, milliseconds: ours when none is stated.
const WEEK_MS: u64 = 7 * 24 * 3_600_000;

/// Options of `orphans`; every key is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OrphanOptions {
    /// Only what is older may be removed, milliseconds; at least a day. Default 7 days.
    pub older_than_ms: Option<u64>,
}

/// What no retained version names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Orphans {
    /// Format of this document.
    pub format: u32,
    /// Always `orphans`.
    pub kind: String,
    /// Address of the table.
    pub table: String,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Latest version.
    pub v_plan: u64,
    /// Only what is older may be removed, milliseconds.
    pub older_than_ms: u64,
    /// Manifests that were read, of all branches.
    pub manifests: u64,
    /// Bytes that would be removed.
    pub removable_bytes: u64,
    /// What was found.
    pub orphans: Vec<Orphan>,
}

/// One thing that no retained version names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Orphan {
    /// `segment`, `row_map` or `transaction`.
    pub what: String,
    /// Folder or file, relative to the branch's root.
    pub path: String,
    /// Files in it.
    pub files: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Milliseconds since the youngest of them was written; null when the store does not say.
    pub age_ms: Option<u64>,
    /// Whether it may be removed.
    pub removable: bool,
    /// Why, or why not.
    pub why: String,
}

/// Finds what no retained version of any branch names below the root of this branch. Nothing is removed.
///
/// # Errors
/// `INVALID_ARGUMENT` for an age under a day; those of reading every retained manifest, because one unread manifest may name anything.
pub async fn orphans(table: &Table, options: &OrphanOptions) -> Result<Orphans> {
    let older_than_ms = options.older_than_ms.unwrap_or(WEEK_MS);
    // A build that is still running may own what is younger. Older files are named by no commit of ours any more, so nothing can
    // come between looking and deleting.
    if older_than_ms < UNNAMED_FOR_MS.unsigned_abs() {
        return Err(Error::invalid(format!(
            "an age of {older_than_ms} ms is under a day: a build that is still running may own what is younger. Nothing was removed"
        )));
    }
    let latest = table.latest().await?;
    let store = latest.store();
    // Names are listed before manifests: what comes in between is young, and what is named by a manifest read later was there before.
    let mut found = Vec::new();
    for name in store.folders("_indices").await? {
        if let Ok(uuid) = Uuid::try_parse(&name) {
            found.push(("segment", format!("_indices/{name}"), Some(uuid)));
        }
    }
    found.extend(store.folders("_fri").await?.into_iter().map(|name| ("row_map", format!("_fri/{name}"), None)));
    let transactions: Vec<_> = store.list("_transactions").await?.into_iter().filter(|e| e.name.ends_with(".txn")).collect();
    let references = References::of(&latest).await?;
    let now = store.env().now_ms();
    let mut list = Vec::new();
    for (what, path, uuid) in found {
        let map = path.strip_prefix("_fri/");
        if uuid.is_some_and(|uuid| references.segments.contains(&uuid))
            || map.is_some_and(|map| references.row_maps.contains(map))
        {
            continue;
        }
        let folder = Folder::read(store, &path).await?;
        if folder.files.is_empty() {
            continue; // a file system keeps empty folders
        }
        let unread = map.is_some() && references.unread_history;
        list.push(orphan(what, path, &folder, now, older_than_ms, unread));
    }
    for entry in transactions.into_iter().filter(|entry| !references.transactions.contains(&entry.name)) {
        let path = format!("_transactions/{}", entry.name);
        let file = Folder { files: vec![(path.clone(), entry.size)], youngest_ms: entry.modified_ms };
        list.push(orphan("transaction", path, &file, now, older_than_ms, false));
    }
    Ok(Orphans {
        format: FORMAT,
        kind: ORPHANS.to_owned(),
        table: store.uri(),
        branch: latest.manifest().manifest.branch.clone(),
        v_plan: latest.version(),
        older_than_ms,
        manifests: references.manifests,
        removable_bytes: list.iter().filter(|o| o.removable).fold(0, |sum, o| sum.saturating_add(o.bytes)),
        orphans: list,
    })
}

fn orphan(what: &str, path: String, folder: &Folder, now: i64, older_than_ms: u64, unread: bool) -> Orphan {
    let age_ms = folder.youngest_ms.map(|then| u64::try_from(now.saturating_sub(then)).unwrap_or(0));
    let (removable, why) = match age_ms {
        _ if unread => (false, "a reuse history that is not understood may name it"),
        None => (false, "the store does not say how old it is"),
        Some(age) if age < older_than_ms => (false, "it is too young: a running build may own it"),
        Some(_) => (true, "no retained version names it"),
    };
    Orphan {
        what: what.to_owned(),
        path,
        files: folder.files.len() as u64,
        bytes: folder.bytes(),
        age_ms,
        removable,
        why: why.to_owned(),
    }
}

/// Whether the document is a list of orphans.
///
/// # Errors
/// `INVALID_ARGUMENT` when it is not.
pub fn check_orphans(plan: &Orphans) -> Result<()> {
    if plan.format != FORMAT || plan.kind != ORPHANS {
        let text = format!("this is no list of orphans of format {FORMAT} (kind {:?}, format {})", plan.kind, plan.format);
        return Err(Error::invalid(text));
    }
    Ok(())
}

/// Removes the removable ones of a list, each only if it is one still.
///
/// # Errors
/// As for [`orphans`]; what could not be deleted is listed in the answer.
pub async fn remove_orphans(table: &Table, plan: &Orphans) -> Result<Removal> {
    check_orphans(plan)?;
    if table.manifest().manifest.branch != plan.branch {
        return Err(Error::invalid("the list of orphans is of another branch than the table given; nothing was removed"));
    }
    let now = orphans(table, &OrphanOptions { older_than_ms: Some(plan.older_than_ms) }).await?;
    let store = table.store();
    let mut removal = Removal::new(ORPHANS);
    for planned in plan.orphans.iter().filter(|orphan| orphan.removable) {
        match now.orphans.iter().find(|orphan| orphan.path == planned.path) {
            Some(orphan) if orphan.removable && orphan.what == "transaction" => {
                removal.delete(store, &orphan.path, orphan.bytes).await;
            }
            Some(orphan) if orphan.removable => {
                for (path, size) in Folder::read(store, &orphan.path).await?.files {
                    removal.delete(store, &path, size).await;
                }
            }
            Some(orphan) => removal.keep(&orphan.path, &orphan.why),
            None => removal.keep(&planned.path, "it is gone, or a version names it"),
        }
    }
    removal.requests = store.requests();
    Ok(removal)
}
