//! Reading the small things beside the columns: deletion vectors, row ids, the reuse history, the folder of a segment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use roaring::RoaringBitmap;
use uuid::Uuid;

use crate::coverage::prune::FragmentKey;
use crate::error::{Error, Result};
use crate::file::LanceFile;
use crate::format::deletion::decode_deletions;
use crate::format::fragment::{DeletionKind, Fragment, RowIdSource};
use crate::format::index_metadata::IndexMetadata;
use crate::format::manifest::Manifest;
use crate::format::reuse_v0::{ReuseHistoryV0, check_derivable, reuse_entry};
use crate::format::row_ids::RowIdSequence;
use crate::index::SegmentFiles;
use crate::store::{Store, is_not_found};
use crate::table::base::{base_store, data_file, deletion_file, segment_folder};
use crate::table::history::content;

/// The folder of a segment, wherever its base is.
pub fn segment_files(store: &Store, manifest: &Manifest, entry: &IndexMetadata) -> Result<SegmentFiles> {
    let (store, folder) = segment_folder(store, manifest, entry)?;
    Ok(SegmentFiles::within(store, folder, entry.clone()))
}

/// The segments that one plan looks into: their parameters, their rows and their details lie in the same files.
#[derive(Clone, Default)]
pub struct Segments(Arc<Mutex<BTreeMap<Uuid, SegmentFiles>>>);

impl Segments {
    /// [`segment_files`], the same ones for a segment that was asked for before.
    pub fn files(&self, store: &Store, manifest: &Manifest, entry: &IndexMetadata) -> Result<SegmentFiles> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = known.get(&entry.uuid) {
            return Ok(files.clone());
        }
        let files = segment_files(store, manifest, entry)?.remembering();
        known.insert(entry.uuid, files.clone());
        Ok(files)
    }
}

/// Deleted offsets named by a fragment key; `None` when the file is gone (its version was cleaned up).
pub async fn planned_deletions(store: &Store, manifest: &Manifest, key: &FragmentKey) -> Result<Option<RoaringBitmap>> {
    let Some(path) = &key.deletion else { return Ok(Some(RoaringBitmap::new())) };
    let kind = if path.ends_with(".arrow") { DeletionKind::Arrow } else { DeletionKind::Bitmap };
    match base_store(store, manifest, key.deletion_base)?.get(path, None).await {
        Ok(bytes) => decode_deletions(kind, path, &bytes).map(Some),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Deleted offsets of a fragment.
pub async fn deletions(store: &Store, manifest: &Manifest, fragment: &Fragment) -> Result<RoaringBitmap> {
    let Some(file) = &fragment.deletion_file else { return Ok(RoaringBitmap::new()) };
    let (base, path) = deletion_file(store, manifest, fragment.id, file)?;
    let bytes = base.get(&path, None).await?;
    decode_deletions(file.kind, &path, &bytes)
}

/// Stable ids of a fragment's live rows; `None` when they lie in a hidden column, which is not read here.
pub async fn live_row_ids(store: &Store, manifest: &Manifest, fragment: &Fragment) -> Result<Option<Vec<u64>>> {
    let Some(RowIdSource::Inline(bytes)) = &fragment.row_ids else { return Ok(None) };
    let ids = RowIdSequence::parse(&format!("row ids of fragment {}", fragment.id), bytes)?;
    let deleted = deletions(store, manifest, fragment).await?;
    Ok(Some(
        ids.iter()
            .enumerate()
            .filter(|(offset, _)| u32::try_from(*offset).is_ok_and(|offset| !deleted.contains(offset)))
            .map(|(_, id)| id)
            .collect(),
    ))
}

/// The version-0 reuse history, when there is one.
///
/// # Errors
/// `HISTORY_UNSUPPORTED` for a tagged one.
pub async fn reuse_history(store: &Store, manifest: &Manifest, section: &[IndexMetadata]) -> Result<Option<ReuseHistoryV0>> {
    check_derivable(section)?;
    let Some(entry) = reuse_entry(section) else { return Ok(None) };
    let (object, bytes) = content(store, manifest, entry).await?;
    ReuseHistoryV0::parse(&object, &bytes).map(Some)
}

/// Rows of a fragment that are live; counts that are not recorded are read from the files.
pub async fn live_rows(store: &Store, manifest: &Manifest, fragment: &Fragment) -> Result<u64> {
    if let Some(rows) = fragment.live_rows() {
        return Ok(rows);
    }
    let physical = match fragment.physical_rows {
        Some(rows) => rows,
        None => {
            let file = fragment.files.first().ok_or_else(|| {
                Error::corrupt("manifest", format!("fragment {} has neither files nor a row count", fragment.id))
            })?;
            let (base, path) = data_file(store, manifest, file)?;
            LanceFile::open(&base, &path, file.size).await?.rows()
        }
    };
    let deleted = match fragment.deletion_file.as_ref().map(|f| f.num_deleted_rows) {
        None => 0,
        Some(Some(rows)) => rows,
        Some(None) => deletions(store, manifest, fragment).await?.len(),
    };
    physical.checked_sub(deleted).ok_or_else(|| {
        Error::corrupt("manifest", format!("fragment {} has {physical} rows and {deleted} deleted ones", fragment.id))
    })
}
