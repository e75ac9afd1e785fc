//! The manifest and its fragments (table-format §4, §5).

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message;

use super::Marker;

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
