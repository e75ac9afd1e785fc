//! The layout of a table, with what its manifest leaves out read from its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringBitmap;
use uuid::Uuid;

use crate::compaction::Layout;
use crate::error::Result;
use crate::format::manifest::Manifest;
use crate::format::reuse_v0::check_derivable;
use crate::index::option_name;
use crate::refresh::files::{deletions, live_rows, reuse_history};
use crate::refresh::plan::Advice;
use crate::table::Table;
use crate::table::history::TaggedHistory;

/// A layout, and what was assumed to know it.
pub struct Snapshot {
    /// The layout.
    pub layout: Layout,
    /// What one should know about it.
    pub notes: Vec<Advice>,
    /// The tagged reuse history: with one the layout is what is stored, since that is what Lance groups fragments by.
    pub history: Option<Arc<TaggedHistory>>,
}

/// The layout of `table` as a compaction by Lance 14 sees it: coverage carried through a version-0 reuse history, segments that
/// record none taken to cover every fragment there was at their version, rows that are not recorded read from the files. Under a
/// tagged history coverage is as stored (fragment-reuse §9.6).
///
/// # Errors
/// `UNSUPPORTED_FEATURE` where fragments carry overlays, and those of reading.
pub async fn snapshot(table: &Table) -> Result<Snapshot> {
    let file = table.manifest().clone();
    if !cfg!(feature = "full") {
        check_derivable(&file.indices)?;
    }
    let tagged = table.history().await?;
    let mapped = if tagged.is_some() { file.indices.as_slice() } else { table.indices().await? };
    let mut notes = Vec::new();
    let mut reconstructed: BTreeMap<Uuid, RoaringBitmap> = BTreeMap::new();
    let unknown: Vec<_> = mapped.iter().filter(|entry| !entry.is_system() && entry.fragment_bitmap.is_none()).collect();
    if !unknown.is_empty() {
        let history = match tagged {
            Some(_) => None,
            None => reuse_history(table.store(), &file.manifest, &file.indices).await?,
        };
        for entry in unknown {
            let then = table.manifest_at(entry.dataset_version).await?;
            let (last, how) = match &then {
                Some(then) => (highest(&then.manifest), "what it would cover by its version is assumed, as Lance does"),
                None => (highest(&file.manifest), "the version it was built on is gone, so it is taken to cover everything"),
            };
            let mut bitmap = RoaringBitmap::new();
            if let Some(last) = last {
                bitmap.insert_range(0..=last);
            }
            let carried = history.as_ref().map(|history| history.map_bitmap(&bitmap));
            reconstructed.insert(entry.uuid, carried.unwrap_or(bitmap));
            let text = format!("segment {} of index {} records no coverage: {how}", entry.uuid, entry.name);
            notes.push(Advice::warning("unknown_coverage", text));
        }
    }
    let counted = counted(table, &file.manifest).await?;
    let manifest = counted.as_ref().unwrap_or(&file.manifest);
    let mut layout = Layout::of(manifest, &file.indices, mapped, &reconstructed, option_name)?;
    if tagged.is_none() {
        mark_carried(table, &mut layout).await?;
    }
    Ok(Snapshot { layout, notes, history: tagged })
}

/// Coverage that some commit has written as the history makes it is covered through the history all the same, while the segment is
/// no younger than the record (refresh-and-compaction §8.4): its files name the fragments of before.
async fn mark_carried(table: &Table, layout: &mut Layout) -> Result<()> {
    let file = table.manifest();
    let Some(history) = reuse_history(table.store(), &file.manifest, &file.indices).await? else { return Ok(()) };
    for cover in &mut layout.covers {
        let Some(entry) = file.indices.iter().find(|entry| Some(entry.uuid) == cover.uuid) else { continue };
        for version in history.versions.iter().filter(|version| entry.dataset_version <= version.dataset_version) {
            let new = version.groups.iter().flat_map(|group| &group.new).map(|fragment| fragment.id);
            cover.carried.extend(new.filter(|id| cover.bitmap.contains(*id)));
        }
    }
    Ok(())
}

fn highest(manifest: &Manifest) -> Option<u32> {
    manifest.max_fragment_id.max(manifest.fragments.iter().map(|fragment| fragment.id).max())
}

/// The manifest with every row count, where it does not record them all, as old tables do not.
async fn counted(table: &Table, manifest: &Manifest) -> Result<Option<Manifest>> {
    if manifest.fragments.iter().all(|fragment| fragment.live_rows().is_some()) {
        return Ok(None);
    }
    let mut whole = manifest.clone();
    for fragment in whole.fragments.iter_mut().filter(|fragment| fragment.live_rows().is_none()) {
        let live = live_rows(table.store(), manifest, fragment).await?;
        let deleted = match &fragment.deletion_file {
            None => 0,
            Some(file) => match file.num_deleted_rows {
                Some(rows) => rows,
                None => deletions(table.store(), manifest, fragment).await?.len(),
            },
        };
        fragment.physical_rows = live.checked_add(deleted);
        if let Some(file) = &mut fragment.deletion_file {
            file.num_deleted_rows = Some(deleted);
        }
    }
    Ok(Some(whole))
}
