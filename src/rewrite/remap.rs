//! A segment's files with the row addresses of after a compaction (refresh-and-compaction §5.6).

use roaring::RoaringBitmap;
use uuid::Uuid;

use super::moves::{Move, Moves};
use crate::error::{Error, Result};
use crate::format::index_metadata::{IndexFile, IndexMetadata};
use crate::format::row::{RowAddress, RowDomain};
use crate::index::method_by_url;
use crate::refresh::build::upload;
use crate::refresh::files::{reuse_history, segment_files};
use crate::table::Table;
use crate::table::column::field_type;

/// A segment written again, and the objects it lies in.
pub(super) struct Remapped {
    /// Complete but for its coverage.
    pub(super) entry: IndexMetadata,
    pub(super) staged: Vec<String>,
}

/// Writes a segment of `table` again under a new uuid. Rows of rewritten fragments that it does not cover are left out: they
/// would be named as rows of fragments that others cover. Addresses that a version-0 history moved are carried through it
/// first, which Lance forgets for some types. `None` = its layout does not allow that.
///
/// # Errors
/// `UNSUPPORTED_METHOD` or `UNSUPPORTED_FEATURE` for segments this build must not write, and those of reading and uploading.
pub(super) async fn remap(
    table: &Table,
    entry: &IndexMetadata,
    covered: &RoaringBitmap,
    moves: &Moves,
    uuid: Uuid,
) -> Result<Option<Remapped>> {
    entry.check_touch()?;
    let file = table.manifest();
    let details = entry.details.as_ref().ok_or_else(|| Error::internal("a segment without details is of no known type"))?;
    let method = method_by_url(&details.type_url)?;
    let domain = method.row_domain(entry.index_version.unwrap_or(0), file.manifest.has_stable_row_ids());
    if domain != RowDomain::Address {
        return Err(Error::internal("a segment that names rows by stable ids needs no new addresses"));
    }
    let field =
        entry.fields.first().and_then(|id| file.manifest.schema.by_id(*id)).ok_or_else(|| {
            Error::corrupt("manifest", format!("segment {} of index {} is on no column", entry.uuid, entry.name))
        })?;
    let data_type = field_type(&file.manifest.schema, field)?;
    let history = reuse_history(table.store(), &file.manifest, &file.indices).await?;
    let place = |stored: u64| {
        let at = match &history {
            None => RowAddress(stored),
            Some(history) => history.map_address(RowAddress(stored))?,
        };
        match moves.of(at) {
            Move::Stays => Some(at.0),
            Move::Gone => None,
            Move::To(new) => covered.contains(at.fragment()).then_some(new.0),
        }
    };
    let files = segment_files(table.store(), &file.manifest, entry)?;
    let Some(built) = method.copy_placed(&files, &data_type, &place).await? else { return Ok(None) };
    let details = Some(built.details.clone());
    let index_version = Some(built.index_version);
    let (files, staged) = upload(table.store(), uuid, built).await?;
    let files = files.into_iter().map(|file| IndexFile { path: file.path, size_bytes: file.size }).collect();
    let entry = IndexMetadata {
        uuid,
        details,
        index_version,
        files,
        base_id: None,
        fragment_bitmap: None,
        raw: bytes::Bytes::new(),
        ..entry.clone()
    };
    Ok(Some(Remapped { entry, staged }))
}
