//! Building a segment from the files of existing ones: what they hold of live rows goes into it, the fragments that none of them
//! covers are read from the column.

use std::sync::Arc;

use roaring::{RoaringBitmap, RoaringTreemap};

use super::files::{deletions, live_row_ids, segment_files};
use super::task::{BuildTask, MergeOf};
use crate::coverage::sets::effective;
use crate::error::{Error, ErrorCode, Result};
use crate::format::index_metadata::{IndexFile, IndexMetadata};
use crate::format::manifest::{Manifest, ManifestFile};
use crate::format::row::{RowAddress, RowDomain};
use crate::format::schema::Field;
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, SegmentFiles, Source};
use crate::store::Store;
use crate::table::column::field_type;

/// A segment and what of it goes into the new one.
struct Part {
    files: SegmentFiles,
    rows: RoaringTreemap,
    first: Option<u32>,
}

/// Merges; `None` when the files do not allow it after all, or do not hold every row they should: then the column has to be read.
/// `scan` builds fragments from the column.
///
/// # Errors
/// `STALE_PLAN` when a segment is not listed, those of reading the store and of `scan`.
pub(super) async fn merge_segments(
    store: &Store,
    manifest: &Arc<ManifestFile>,
    method: &'static dyn IndexMethod,
    field: &Field,
    task: &BuildTask,
    merge: &MergeOf,
    scan: impl AsyncFnOnce(BuildTask) -> Result<BuiltIndex>,
) -> Result<Option<BuiltIndex>> {
    let file = manifest.as_ref();
    let live = file.manifest.live();
    let mut rest: RoaringBitmap = task.fragments.iter().copied().collect();
    let mut parts = Vec::new();
    for uuid in &merge.segments {
        let entry = file.indices.iter().find(|entry| entry.uuid == *uuid).ok_or_else(|| {
            let text = format!("version {} does not list segment {uuid}, which was to be merged", file.manifest.version);
            Error::new(ErrorCode::StalePlan, text)
        })?;
        let covers = entry.fragment_bitmap.as_ref().map(|bitmap| effective(bitmap, &live)).unwrap_or_default();
        let covers = covers & &rest;
        rest -= &covers;
        let domain = method.row_domain(entry.index_version.unwrap_or(0), file.manifest.has_stable_row_ids());
        let Some(rows) = live_rows_of(store, &file.manifest, &covers, domain).await? else { return Ok(None) };
        parts.push(Part { files: segment_files(store, &file.manifest, entry)?, rows, first: covers.min() });
    }
    if !rest.is_empty() {
        let Some(model) = file.indices.iter().find(|entry| merge.segments.contains(&entry.uuid)) else { return Ok(None) };
        let Some(rows) = live_rows_of(store, &file.manifest, &rest, task.index.row_domain).await? else { return Ok(None) };
        let expected = BuildTask { fragments: rest.iter().collect(), rows: rows.len(), merge_of: None, ..task.clone() };
        let files = in_memory(store, model, scan(expected).await?).await?;
        parts.push(Part { files, rows, first: rest.min() });
    }
    // As a build would have read them, as far as the segments allow.
    parts.sort_unstable_by_key(|part| part.first);
    let spec = BuildSpec {
        data_type: field_type(&file.manifest.schema, field)?,
        logical_type: field.logical_type.clone(),
        params: task.index.params.clone(),
        index_version: task.index.index_version,
        rows_hint: Some(task.rows),
    };
    let sources: Vec<Source<'_>> = parts.iter().map(|part| Source { files: &part.files, rows: &part.rows }).collect();
    match method.merge(&sources, &spec).await {
        // A row that is missing would stay missing.
        Ok(merged) => Ok(merged.filter(|merged| merged.rows == task.rows)),
        Err(error) if unreadable(error.code()) || crate::store::is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The column is right whatever the files are.
fn unreadable(code: ErrorCode) -> bool {
    use ErrorCode::{CorruptFile, UnsupportedEncoding, UnsupportedFeature, UnsupportedType};
    matches!(code, CorruptFile | UnsupportedEncoding | UnsupportedFeature | UnsupportedType)
}

/// The live rows of some fragments; `None` when they are not recorded.
async fn live_rows_of(
    store: &Store,
    manifest: &Manifest,
    fragments: &RoaringBitmap,
    domain: RowDomain,
) -> Result<Option<RoaringTreemap>> {
    let mut rows = RoaringTreemap::new();
    for id in fragments {
        let Some(fragment) = manifest.fragment(id) else { return Ok(None) };
        if domain == RowDomain::StableId {
            let Some(ids) = live_row_ids(store, manifest, fragment).await? else { return Ok(None) };
            rows.extend(ids);
            continue;
        }
        let Some(physical) = fragment.physical_rows.and_then(|rows| u32::try_from(rows).ok()) else { return Ok(None) };
        rows.insert_range(RowAddress::new(id, 0).0..RowAddress::new(id, physical).0);
        for offset in &deletions(store, manifest, fragment).await? {
            rows.remove(RowAddress::new(id, offset).0);
        }
    }
    Ok(Some(rows))
}

/// A segment that is stored nowhere but here.
async fn in_memory(store: &Store, model: &IndexMetadata, built: BuiltIndex) -> Result<SegmentFiles> {
    let folder = Store::memory(store.env().clone());
    let mut files = Vec::with_capacity(built.files.len());
    for (path, file) in built.files {
        folder.put(&path, file.chunks).await?;
        files.push(IndexFile { path, size_bytes: file.size });
    }
    let entry = IndexMetadata {
        files,
        details: Some(built.details),
        index_version: Some(built.index_version),
        fragment_bitmap: None,
        base_id: None,
        ..model.clone()
    };
    Ok(SegmentFiles::new(folder, entry))
}
