//! Transactions (§8).

use prost::Message;

use super::{DataFile, DataFragment, Uuid};

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
