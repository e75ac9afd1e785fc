//! One entry of the index section = one segment (table-format §6).

use std::collections::BTreeMap;

use bytes::Bytes;
use roaring::RoaringBitmap;
use uuid::Uuid;

/// Name of the fragment reuse entry.
pub const FRAG_REUSE_NAME: &str = "__lance_frag_reuse";
/// Name of the MemWAL entry.
pub const MEM_WAL_NAME: &str = "__lance_mem_wal";

/// One index segment as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexMetadata {
    /// Segment id; its files are in `_indices/{uuid}/`.
    pub uuid: Uuid,
    /// Key field ids, then carried ids.
    pub fields: Vec<i32>,
    /// Logical index name.
    pub name: String,
    /// Version whose rows the segment reflects.
    pub dataset_version: u64,
    /// Stored coverage; `None` = unknown, which is not empty.
    pub fragment_bitmap: Option<RoaringBitmap>,
    /// `type_url` and value of the details; `None` on very old entries.
    pub details: Option<IndexDetails>,
    /// Format version of the segment; `None` = not recorded (reads as 0).
    pub index_version: Option<i32>,
    /// Creation time, unix milliseconds.
    pub created_at_ms: Option<u64>,
    /// Base path id; `None` = the table's own root.
    pub base_id: Option<u32>,
    /// Files with sizes; empty = unknown.
    pub files: Vec<IndexFile>,
    /// Carried columns (a tail of `fields`).
    pub covering_fields: Vec<i32>,
    /// Object metadata (needs an unreleased writer flag).
    pub metadata: BTreeMap<String, String>,
    /// The bytes it was decoded from, for verbatim rewriting; empty for a new entry.
    pub raw: Bytes,
}

/// The `Any` that names the method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDetails {
    /// e.g. `/lance.table.BTreeIndexDetails`.
    pub type_url: String,
    /// Message bytes; often empty.
    pub value: Bytes,
}

/// A file of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexFile {
    /// Path relative to the segment folder.
    pub path: String,
    /// Exact size in bytes.
    pub size_bytes: u64,
}

impl IndexMetadata {
    /// System entries are never scalar indexes and never part of coverage.
    pub fn is_system(&self) -> bool {
        self.name == FRAG_REUSE_NAME || self.name == MEM_WAL_NAME
    }
}
