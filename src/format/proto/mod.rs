//! The protobuf messages of the table format, field for field (table-format §4–§8; proto3).
//!
//! `optional` stands exactly where the format gives presence a meaning. Nothing here interprets: the modules above do.

mod index;
mod manifest;
mod row_ids;
mod transaction;

use bytes::Bytes;
use prost::Message;

pub use index::*;
pub use manifest::*;
pub use row_ids::*;
pub use transaction::*;

/// An empty message used as a marker.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Marker {}

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
