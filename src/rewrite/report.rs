//! What a compaction did.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::compaction::Fate;
use crate::format::index_metadata::IndexMetadata;
use crate::store::RequestCounts;
use crate::table::Table;
use crate::table::publish::Attempt;

/// Report of a compaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactionReport {
    /// Fragments that went.
    pub fragments_removed: Vec<u32>,
    /// Fragments that came.
    pub fragments_added: Vec<u32>,
    /// Rows that were written again.
    pub rows: u64,
    /// Deleted rows that are gone for good.
    pub deleted_rows: u64,
    /// Segments whose files were written again.
    pub segments_remapped: u64,
    /// What became of every segment.
    pub segments: Vec<SegmentOutcome>,
    /// Version the plan was made on; equal to `version` when there was nothing to do.
    pub version_before: u64,
    /// Version committed, or the one found current.
    pub version: u64,
    /// Every attempt: those of reserving fragment ids, then those of the exchange.
    pub attempts: Vec<Attempt>,
    /// Uuid of the transaction; null when nothing was committed.
    pub transaction: Option<Uuid>,
    /// Milliseconds that remapping and committing took.
    pub ms: u64,
    /// Requests of the table's store since the handle was made.
    pub requests: RequestCounts,
}

/// What became of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentOutcome {
    /// Its index.
    pub index: String,
    /// The segment.
    pub uuid: Uuid,
    /// What happened to it. One that was to be remapped and whose layout does not allow that is `RETIRED`: a refresh builds
    /// what it covered anew.
    pub fate: Fate,
    /// The segment that took its place; null = none.
    pub new_uuid: Option<Uuid>,
}

impl SegmentOutcome {
    pub(super) fn new(entry: &IndexMetadata, fate: Fate) -> SegmentOutcome {
        SegmentOutcome { index: entry.name.clone(), uuid: entry.uuid, fate, new_uuid: None }
    }
}

impl CompactionReport {
    /// There was nothing to compact.
    pub(super) fn nothing(table: &Table) -> CompactionReport {
        CompactionReport {
            fragments_removed: Vec::new(),
            fragments_added: Vec::new(),
            rows: 0,
            deleted_rows: 0,
            segments_remapped: 0,
            segments: Vec::new(),
            version_before: table.version(),
            version: table.version(),
            attempts: Vec::new(),
            transaction: None,
            ms: 0,
            requests: table.store().requests(),
        }
    }
}
