//! The protobuf messages of the table format, field for field (table-format §4–§8; proto3).
//!
//! `optional` stands exactly where the format gives presence a meaning. Nothing here interprets: the modules above do.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message;

/// An empty message used as a marker.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Marker {}

/// `Manifest` (§4.1). Clustering, the fragment tree and unknown numbers are looked up in the raw bytes instead.
#[derive(Clone, PartialEq, Message)]
pub struct Manifest {
    /// Flattened schema.
    #[prost(message, repeated, tag = "1")]
    pub fields: Vec<Field>,
    /// Fragments.
    #[prost(message, repeated, tag = "2")]
    pub fragments: Vec<DataFragment>,
    /// Version.
    #[prost(uint64, tag = "3")]
    pub version: u64,
    /// Arrow schema metadata.
    #[prost(map = "string, bytes", tag = "5")]
    pub schema_metadata: HashMap<String, Vec<u8>>,
    /// File position of the index section.
    #[prost(uint64, optional, tag = "6")]
    pub index_section: Option<u64>,
    /// Commit time.
    #[prost(message, optional, tag = "7")]
    pub timestamp: Option<Timestamp>,
    /// Feature word of readers.
    #[prost(uint64, tag = "9")]
    pub reader_feature_flags: u64,
    /// Feature word of writers.
    #[prost(uint64, tag = "10")]
    pub writer_feature_flags: u64,
    /// Highest fragment id ever allocated.
    #[prost(uint64, optional, tag = "11")]
    pub max_fragment_id: Option<u64>,
    /// Name in `_transactions/`.
    #[prost(string, tag = "12")]
    pub transaction_file: String,
    /// Who wrote it.
    #[prost(message, optional, tag = "13")]
    pub writer_version: Option<WriterVersion>,
    /// Next stable row id.
    #[prost(uint64, tag = "14")]
    pub next_row_id: u64,
    /// Data file format.
    #[prost(message, optional, tag = "15")]
    pub data_format: Option<DataFormat>,
    /// Table configuration.
    #[prost(map = "string, string", tag = "16")]
    pub config: HashMap<String, String>,
    /// Other roots.
    #[prost(message, repeated, tag = "18")]
    pub base_paths: Vec<BasePath>,
    /// Free metadata.
    #[prost(map = "string, string", tag = "19")]
    pub table_metadata: HashMap<String, String>,
    /// Branch.
    #[prost(string, optional, tag = "20")]
    pub branch: Option<String>,
    /// Old position of the inline transaction.
    #[prost(uint64, optional, tag = "21")]
    pub old_transaction_section: Option<u64>,
    /// Reserved fragment tree.
    #[prost(bytes = "bytes", optional, tag = "22")]
    pub fragment_tree: Option<Bytes>,
    /// File position of the inline transaction.
    #[prost(uint64, optional, tag = "23")]
    pub transaction_section: Option<u64>,
    /// High-water mark of never-reused field ids.
    #[prost(int32, optional, tag = "24")]
    pub max_allocated_field_id: Option<i32>,
}

/// Seconds and nanoseconds since the epoch.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Timestamp {
    /// Seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// `WriterVersion` (§4.2).
#[derive(Clone, PartialEq, Message)]
pub struct WriterVersion {
    /// Library.
    #[prost(string, tag = "1")]
    pub library: String,
    /// `major.minor.patch`.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Pre-release part.
    #[prost(string, optional, tag = "3")]
    pub prerelease: Option<String>,
    /// Build part.
    #[prost(string, optional, tag = "4")]
    pub build_metadata: Option<String>,
}

/// `DataStorageFormat` (15).
#[derive(Clone, PartialEq, Message)]
pub struct DataFormat {
    /// `lance`.
    #[prost(string, tag = "1")]
    pub file_format: String,
    /// e.g. `2.2`.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// `BasePath` (§4.7).
#[derive(Clone, PartialEq, Message)]
pub struct BasePath {
    /// Key.
    #[prost(uint32, tag = "1")]
    pub id: u32,
    /// Alias.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Whether it is a table root.
    #[prost(bool, tag = "3")]
    pub is_dataset_root: bool,
    /// URI or absolute path.
    #[prost(string, tag = "4")]
    pub path: String,
}

/// `Field` (§5.1).
#[derive(Clone, PartialEq, Message)]
pub struct Field {
    /// Own name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Field id.
    #[prost(int32, tag = "3")]
    pub id: i32,
    /// Parent id, -1 for top level.
    #[prost(int32, tag = "4")]
    pub parent_id: i32,
    /// Logical type.
    #[prost(string, tag = "5")]
    pub logical_type: String,
    /// Nullable.
    #[prost(bool, tag = "6")]
    pub nullable: bool,
    /// Dictionary position, format 0.1.
    #[prost(message, optional, tag = "8")]
    pub dictionary: Option<Dictionary>,
    /// Arrow field metadata.
    #[prost(map = "string, bytes", tag = "10")]
    pub metadata: HashMap<String, Vec<u8>>,
}

/// Position of dictionary values in the manifest file.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Dictionary {
    /// File offset.
    #[prost(int64, tag = "1")]
    pub offset: i64,
    /// Number of values.
    #[prost(int64, tag = "2")]
    pub length: i64,
}

/// `DataFragment` (§4.3); row version sequences stay in the raw bytes.
#[derive(Clone, PartialEq, Message)]
pub struct DataFragment {
    /// Id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Files.
    #[prost(message, repeated, tag = "2")]
    pub files: Vec<DataFile>,
    /// Deletion vector.
    #[prost(message, optional, tag = "3")]
    pub deletion_file: Option<DeletionFile>,
    /// Rows with deleted ones; 0 = unknown.
    #[prost(uint64, tag = "4")]
    pub physical_rows: u64,
    /// Row ids.
    #[prost(oneof = "RowIds", tags = "5, 12")]
    pub row_ids: Option<RowIds>,
    /// Overlays; only their presence matters.
    #[prost(bytes = "bytes", repeated, tag = "11")]
    pub overlays: Vec<Bytes>,
}

/// Where the row ids of a fragment are.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum RowIds {
    /// Serialized sequence.
    #[prost(bytes = "bytes", tag = "5")]
    Inline(Bytes),
    /// Hidden column.
    #[prost(message, tag = "12")]
    Column(Marker),
}

/// `DataFile` (§4.4).
#[derive(Clone, PartialEq, Message)]
pub struct DataFile {
    /// Path.
    #[prost(string, tag = "1")]
    pub path: String,
    /// Field ids.
    #[prost(int32, repeated, tag = "2")]
    pub fields: Vec<i32>,
    /// Columns.
    #[prost(int32, repeated, tag = "3")]
    pub column_indices: Vec<i32>,
    /// Major version.
    #[prost(uint32, tag = "4")]
    pub file_major_version: u32,
    /// Minor version.
    #[prost(uint32, tag = "5")]
    pub file_minor_version: u32,
    /// Size; 0 = unknown.
    #[prost(uint64, tag = "6")]
    pub file_size_bytes: u64,
    /// Base.
    #[prost(uint32, optional, tag = "7")]
    pub base_id: Option<u32>,
}

/// `DeletionFile` (§4.5).
#[derive(Clone, PartialEq, Message)]
pub struct DeletionFile {
    /// 0 Arrow, 1 bitmap.
    #[prost(int32, tag = "1")]
    pub file_type: i32,
    /// Part of the path.
    #[prost(uint64, tag = "2")]
    pub read_version: u64,
    /// Part of the path.
    #[prost(uint64, tag = "3")]
    pub id: u64,
    /// 0 = unknown.
    #[prost(uint64, tag = "4")]
    pub num_deleted_rows: u64,
    /// Base.
    #[prost(uint32, optional, tag = "7")]
    pub base_id: Option<u32>,
}

/// A UUID as 16 bytes in display order.
#[derive(Clone, PartialEq, Message)]
pub struct Uuid {
    /// The bytes.
    #[prost(bytes = "bytes", tag = "1")]
    pub uuid: Bytes,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub struct Any {
    /// Type.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// Message.
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

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

/// Head of a `Transaction` (§8.1); the operation is read from the raw fields.
#[derive(Clone, PartialEq, Message)]
pub struct TransactionHead {
    /// Version it was computed from.
    #[prost(uint64, tag = "1")]
    pub read_version: u64,
    /// Hyphenated uuid.
    #[prost(string, tag = "2")]
    pub uuid: String,
    /// Properties.
    #[prost(btree_map = "string, string", tag = "4")]
    pub properties: std::collections::BTreeMap<String, String>,
}

/// `Delete` (101).
#[derive(Clone, PartialEq, Message)]
pub struct Delete {
    /// Fragments with new deletion vectors.
    #[prost(message, repeated, tag = "1")]
    pub updated_fragments: Vec<DataFragment>,
    /// Fragments that went away.
    #[prost(uint64, repeated, tag = "2")]
    pub deleted_fragment_ids: Vec<u64>,
    /// The predicate.
    #[prost(string, tag = "3")]
    pub predicate: String,
}

/// `Rewrite` (104).
#[derive(Clone, PartialEq, Message)]
pub struct Rewrite {
    /// Deprecated flat list of old fragments.
    #[prost(message, repeated, tag = "1")]
    pub old_fragments: Vec<DataFragment>,
    /// Deprecated flat list of new fragments.
    #[prost(message, repeated, tag = "2")]
    pub new_fragments: Vec<DataFragment>,
    /// Groups.
    #[prost(message, repeated, tag = "3")]
    pub groups: Vec<RewriteGroup>,
    /// Remapped segments.
    #[prost(message, repeated, tag = "4")]
    pub rewritten_indices: Vec<RewrittenIndex>,
}

/// One group of a rewrite.
#[derive(Clone, PartialEq, Message)]
pub struct RewriteGroup {
    /// Before.
    #[prost(message, repeated, tag = "1")]
    pub old_fragments: Vec<DataFragment>,
    /// After.
    #[prost(message, repeated, tag = "2")]
    pub new_fragments: Vec<DataFragment>,
}

/// A segment that was remapped by a rewrite.
#[derive(Clone, PartialEq, Message)]
pub struct RewrittenIndex {
    /// Before.
    #[prost(message, optional, tag = "1")]
    pub old_id: Option<Uuid>,
    /// After.
    #[prost(message, optional, tag = "2")]
    pub new_id: Option<Uuid>,
}

/// `Restore` (106).
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Restore {
    /// The version restored.
    #[prost(uint64, tag = "1")]
    pub version: u64,
}

/// `Update` (108).
#[derive(Clone, PartialEq, Message)]
pub struct Update {
    /// Fragments that went away.
    #[prost(uint64, repeated, tag = "1")]
    pub removed_fragment_ids: Vec<u64>,
    /// Fragments that changed.
    #[prost(message, repeated, tag = "2")]
    pub updated_fragments: Vec<DataFragment>,
    /// Fragments that came.
    #[prost(message, repeated, tag = "3")]
    pub new_fragments: Vec<DataFragment>,
    /// Fields changed in place.
    #[prost(uint32, repeated, tag = "4")]
    pub fields_modified: Vec<u32>,
    /// 0 rewrite rows, 1 rewrite columns.
    #[prost(int32, tag = "7")]
    pub update_mode: i32,
}

/// `DataReplacement` (111).
#[derive(Clone, PartialEq, Message)]
pub struct DataReplacement {
    /// Replacements.
    #[prost(message, repeated, tag = "1")]
    pub replacements: Vec<Replacement>,
}

/// One replaced data file.
#[derive(Clone, PartialEq, Message)]
pub struct Replacement {
    /// Fragment.
    #[prost(uint64, tag = "1")]
    pub fragment_id: u64,
    /// The new file.
    #[prost(message, optional, tag = "2")]
    pub new_file: Option<DataFile>,
}

/// `RowIdSequence` (§11.2).
#[derive(Clone, PartialEq, Message)]
pub struct RowIdSequence {
    /// Segments in order.
    #[prost(message, repeated, tag = "1")]
    pub segments: Vec<U64Segment>,
}

/// `U64Segment`.
#[derive(Clone, PartialEq, Message)]
pub struct U64Segment {
    /// Kind.
    #[prost(oneof = "SegmentKind", tags = "1, 2, 3, 4, 5")]
    pub kind: Option<SegmentKind>,
}

/// The five kinds of a segment.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum SegmentKind {
    /// start..end.
    #[prost(message, tag = "1")]
    Range(Range),
    /// Range minus holes.
    #[prost(message, tag = "2")]
    RangeWithHoles(RangeWithHoles),
    /// Range with a presence bitmap.
    #[prost(message, tag = "3")]
    RangeWithBitmap(RangeWithBitmap),
    /// Strictly increasing values.
    #[prost(message, tag = "4")]
    SortedArray(EncodedU64Array),
    /// Values in any order.
    #[prost(message, tag = "5")]
    Array(EncodedU64Array),
}

/// start..end, end exclusive.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Range {
    /// First.
    #[prost(uint64, tag = "1")]
    pub start: u64,
    /// Past the last.
    #[prost(uint64, tag = "2")]
    pub end: u64,
}

/// Range minus holes.
#[derive(Clone, PartialEq, Message)]
pub struct RangeWithHoles {
    /// First.
    #[prost(uint64, tag = "1")]
    pub start: u64,
    /// Past the last.
    #[prost(uint64, tag = "2")]
    pub end: u64,
    /// Missing values.
    #[prost(message, optional, tag = "3")]
    pub holes: Option<EncodedU64Array>,
}

/// Range with a bitmap.
#[derive(Clone, PartialEq, Message)]
pub struct RangeWithBitmap {
    /// First.
    #[prost(uint64, tag = "1")]
    pub start: u64,
    /// Past the last.
    #[prost(uint64, tag = "2")]
    pub end: u64,
    /// Least significant bit first.
    #[prost(bytes = "bytes", tag = "3")]
    pub bitmap: Bytes,
}

/// `EncodedU64Array`.
#[derive(Clone, PartialEq, Message)]
pub struct EncodedU64Array {
    /// Width.
    #[prost(oneof = "ArrayKind", tags = "1, 2, 3")]
    pub array: Option<ArrayKind>,
}

/// The three widths of an encoded array.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ArrayKind {
    /// u16 offsets.
    #[prost(message, tag = "1")]
    U16(OffsetArray),
    /// u32 offsets.
    #[prost(message, tag = "2")]
    U32(OffsetArray),
    /// u64 values.
    #[prost(message, tag = "3")]
    U64(ValueArray),
}

/// base + little-endian offsets.
#[derive(Clone, PartialEq, Message)]
pub struct OffsetArray {
    /// Minimum.
    #[prost(uint64, tag = "1")]
    pub base: u64,
    /// Offsets.
    #[prost(bytes = "bytes", tag = "2")]
    pub offsets: Bytes,
}

/// Little-endian values.
#[derive(Clone, PartialEq, Message)]
pub struct ValueArray {
    /// Values.
    #[prost(bytes = "bytes", tag = "2")]
    pub values: Bytes,
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

/// Place of content that is too large for the manifest.
#[derive(Clone, PartialEq, Message)]
pub struct ExternalFile {
    /// Path in the entry's folder.
    #[prost(string, tag = "1")]
    pub path: String,
    /// First byte.
    #[prost(uint64, tag = "2")]
    pub offset: u64,
    /// Number of bytes.
    #[prost(uint64, tag = "3")]
    pub size: u64,
}

/// Decodes a message; a failure is `CORRUPT_FILE` naming the object and the message.
pub fn decode<M: Message + Default>(object: &str, what: &str, bytes: Bytes) -> crate::Result<M> {
    M::decode(bytes).map_err(|e| crate::Error::corrupt(object, format!("{what} does not decode: {e}")))
}
