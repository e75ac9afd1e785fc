//! Version-0 fragment reuse histories (refresh-and-compaction §1.1, fragment-reuse §3).

use bytes::Bytes;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::index_metadata::IndexMetadata;
use super::row::RowAddress;
use crate::error::{Error, Result};

/// Where the content of a reuse entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReuseContent {
    /// In the entry itself.
    Inline(Bytes),
    /// In a file of the entry's own segment folder.
    External {
        /// Path relative to `_indices/{uuid}/` (of the entry's base).
        path: String,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        size: u64,
    },
}

/// A version-0 history, oldest compaction first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReuseHistoryV0 {
    /// Recorded compactions.
    pub versions: Vec<ReuseVersion>,
}

/// One recorded compaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReuseVersion {
    /// Version it was built on.
    pub dataset_version: u64,
    /// Rewrite groups.
    pub groups: Vec<ReuseGroup>,
}

/// Old fragments whose surviving rows, in order, became the rows of new ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReuseGroup {
    /// Surviving old addresses.
    pub survivors: RoaringTreemap,
    /// Before, in scan order.
    pub old: Vec<FragmentDigest>,
    /// After, in write order.
    pub new: Vec<FragmentDigest>,
}

/// A fragment at the time it was rewritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentDigest {
    /// Id.
    pub id: u32,
    /// Rows including deleted ones.
    pub physical_rows: u32,
}

/// The reuse entry of an index section.
pub fn reuse_entry(indices: &[IndexMetadata]) -> Option<&IndexMetadata> {
    indices.iter().find(|e| e.name == super::index_metadata::FRAG_REUSE_NAME)
}

/// Whether an entry is a tagged (not version 0) reuse history.
pub fn is_tagged(entry: &IndexMetadata) -> bool {
    entry.name == super::index_metadata::FRAG_REUSE_NAME && entry.index_version.unwrap_or(0) != 0
}

impl ReuseContent {
    /// Where the content of this version-0 entry is; a tagged one is `HISTORY_UNSUPPORTED`.
    pub fn of(_object: &str, _entry: &IndexMetadata) -> Result<ReuseContent> {
        Err(Error::internal("not decoded yet"))
    }
}

impl ReuseHistoryV0 {
    /// Reads the content, inline or external.
    pub fn parse(_object: &str, _content: &Bytes) -> Result<ReuseHistoryV0> {
        Err(Error::internal("not decoded yet"))
    }

    /// Coverage carried through the history: a group whose old fragments were all covered hands it to its new ones.
    pub fn map_bitmap(&self, bitmap: &RoaringBitmap) -> RoaringBitmap {
        bitmap.clone()
    }

    /// Entries with their stored coverage carried through; `raw` stays what it was, so that writing them back changes nothing.
    pub fn map_indices(&self, indices: &[IndexMetadata]) -> Vec<IndexMetadata> {
        indices.to_vec()
    }

    /// Every fragment some recorded compaction wrote.
    pub fn destinations(&self) -> RoaringBitmap {
        RoaringBitmap::new()
    }

    /// Where a row is after all recorded compactions; `None` = it was deleted.
    pub fn map_address(&self, address: RowAddress) -> Option<RowAddress> {
        Some(address)
    }
}
