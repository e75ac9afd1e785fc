//! The index section and the version-0 reuse history (§6).

use bytes::Bytes;
use prost::Message;

use super::{Any, Uuid};

/// `IndexMetadata` (§6.1).
#[derive(Clone, PartialEq, Message)]
pub struct IndexMetadata {
    /// Segment id.
    #[prost(message, optional, tag = "1")]
    pub uuid: Option<Uuid>,
    /// Field ids.
    #[prost(int32, repeated, tag = "2")]
    pub fields: Vec<i32>,
    /// Index name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Version of the rows.
    #[prost(uint64, tag = "4")]
    pub dataset_version: u64,
    /// Coverage; empty = unknown.
    #[prost(bytes = "bytes", tag = "5")]
    pub fragment_bitmap: Bytes,
    /// Method.
    #[prost(message, optional, tag = "6")]
    pub index_details: Option<Any>,
    /// Format version.
    #[prost(int32, optional, tag = "7")]
    pub index_version: Option<i32>,
    /// Unix milliseconds.
    #[prost(uint64, optional, tag = "8")]
    pub created_at: Option<u64>,
    /// Base.
    #[prost(uint32, optional, tag = "9")]
    pub base_id: Option<u32>,
    /// Files.
    #[prost(message, repeated, tag = "10")]
    pub files: Vec<IndexFile>,
    /// Carried columns.
    #[prost(int32, repeated, tag = "11")]
    pub covering_fields: Vec<i32>,
    /// Object metadata.
    #[prost(btree_map = "string, string", tag = "13")]
    pub metadata: std::collections::BTreeMap<String, String>,
}

/// A file of a segment.
#[derive(Clone, PartialEq, Message)]
pub struct IndexFile {
    /// Path in the segment folder.
    #[prost(string, tag = "1")]
    pub path: String,
    /// Size.
    #[prost(uint64, tag = "2")]
    pub size_bytes: u64,
}

/// A recorded group of a version-0 fragment reuse history (§6.5).
#[derive(Clone, PartialEq, Message)]
pub struct ReuseGroup {
    /// Surviving old addresses, roaring64.
    #[prost(bytes = "bytes", tag = "1")]
    pub changed_row_addrs: Bytes,
    /// Before.
    #[prost(message, repeated, tag = "2")]
    pub old_fragments: Vec<FragmentDigest>,
    /// After.
    #[prost(message, repeated, tag = "3")]
    pub new_fragments: Vec<FragmentDigest>,
}

/// One compaction of a version-0 history.
#[derive(Clone, PartialEq, Message)]
pub struct ReuseVersion {
    /// Version the compaction was built on.
    #[prost(uint64, tag = "1")]
    pub dataset_version: u64,
    /// Groups.
    #[prost(message, repeated, tag = "3")]
    pub groups: Vec<ReuseGroup>,
}

/// A fragment as it was when it was rewritten.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct FragmentDigest {
    /// Id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Rows with deleted ones.
    #[prost(uint64, tag = "2")]
    pub physical_rows: u64,
    /// Deleted rows.
    #[prost(uint64, tag = "3")]
    pub num_deleted_rows: u64,
}

/// Mapping of a tagged transition: surviving rows in order (fragment-reuse §2.4).
#[derive(Clone, PartialEq, Message)]
pub struct OrderedCompaction {
    /// Surviving source addresses, roaring64.
    #[prost(bytes = "bytes", tag = "1")]
    pub changed_row_addrs: Bytes,
}

/// Mapping of a tagged transition: rows scattered by a label, kept in a row map (fragment-reuse §2.4).
#[derive(Clone, PartialEq, Message)]
pub struct StablePartition {
    /// Text of a uuid; names the folder below `_fri/`.
    #[prost(string, tag = "1")]
    pub map_id: String,
    /// Exact size of the row map.
    #[prost(uint64, tag = "2")]
    pub map_size_bytes: u64,
    /// Base path of the row map.
    #[prost(uint32, optional, tag = "3")]
    pub base_id: Option<u32>,
}
