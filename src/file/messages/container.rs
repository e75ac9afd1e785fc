//! Messages of the container: file descriptor, column metadata, pages (file-format §2.4, §2.6).

use std::collections::BTreeMap;

use bytes::Bytes;

pub use crate::format::proto::{Any, Field};

/// Global buffer 0.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FileDescriptor {
    /// Field list and schema metadata.
    #[prost(message, optional, tag = "1")]
    pub schema: Option<SchemaMessage>,
    /// Rows.
    #[prost(uint64, tag = "2")]
    pub length: u64,
}

/// Flattened fields and free metadata.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SchemaMessage {
    /// Pre-order field list.
    #[prost(message, repeated, tag = "1")]
    pub fields: Vec<Field>,
    /// Key/values; the values are text by convention.
    #[prost(btree_map = "string, bytes", tag = "5")]
    pub metadata: BTreeMap<String, Vec<u8>>,
}

/// Metadata of one physical column.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ColumnMetadata {
    /// Always the `ColumnEncoding` with member `values` for the columns we read.
    #[prost(message, optional, tag = "1")]
    pub encoding: Option<Encoding>,
    /// Pages in row order.
    #[prost(message, repeated, tag = "2")]
    pub pages: Vec<Page>,
}

/// One page.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Page {
    /// File positions.
    #[prost(uint64, repeated, tag = "1")]
    pub buffer_offsets: Vec<u64>,
    /// Exact sizes, unpadded.
    #[prost(uint64, repeated, tag = "2")]
    pub buffer_sizes: Vec<u64>,
    /// Rows.
    #[prost(uint64, tag = "3")]
    pub length: u64,
    /// How the buffers are to be read.
    #[prost(message, optional, tag = "4")]
    pub encoding: Option<Encoding>,
    /// First row of the page in 2.1+, 0 in 2.0; only orders another reader's I/O.
    #[prost(uint64, tag = "5")]
    pub priority: u64,
}

/// Where an encoding message is.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Encoding {
    /// Exactly one.
    #[prost(oneof = "EncodingKind", tags = "1, 2, 3")]
    pub kind: Option<EncodingKind>,
}

/// Members of [`Encoding`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum EncodingKind {
    /// Elsewhere in the file: never written, refused by Lance and by us.
    #[prost(message, tag = "1")]
    Indirect(Empty),
    /// Inline.
    #[prost(message, tag = "2")]
    Direct(DirectEncoding),
    /// None.
    #[prost(message, tag = "3")]
    None(Empty),
}

/// An inline encoding: a serialized [`Any`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct DirectEncoding {
    /// The `Any`.
    #[prost(bytes = "bytes", tag = "1")]
    pub encoding: Bytes,
}

/// A message without fields, or one whose fields do not matter.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Empty {}
