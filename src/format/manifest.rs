//! A decoded manifest (table-format §3, §4).

use std::collections::BTreeMap;

use bytes::Bytes;
use roaring::RoaringBitmap;

use super::fragment::Fragment;
use super::index_metadata::IndexMetadata;
use super::schema::Schema;

/// A manifest message, decoded; `raw` keeps every byte for rewriting.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Version of the table.
    pub version: u64,
    /// Schema tree.
    pub schema: Schema,
    /// Fragments, ascending by id.
    pub fragments: Vec<Fragment>,
    /// Feature word readers must know.
    pub reader_flags: u64,
    /// Feature word writers must know.
    pub writer_flags: u64,
    /// Highest fragment id ever allocated.
    pub max_fragment_id: Option<u32>,
    /// Name inside `_transactions/`.
    pub transaction_file: Option<String>,
    /// Library and version that wrote it.
    pub writer_version: Option<(String, String)>,
    /// Next unused stable row id.
    pub next_row_id: u64,
    /// `2.0` … `2.3` or `0.1`.
    pub data_storage_version: String,
    /// Commit time, unix milliseconds; `None` when absent.
    pub timestamp_ms: Option<i64>,
    /// Table configuration.
    pub config: BTreeMap<String, String>,
    /// Free table metadata.
    pub table_metadata: BTreeMap<String, String>,
    /// Other roots that files may live in.
    pub base_paths: Vec<BasePath>,
    /// Branch; `None` = main.
    pub branch: Option<String>,
    /// The message as read.
    pub raw: Bytes,
}

impl Manifest {
    /// Ids of the fragments: the set `live`.
    pub fn live(&self) -> RoaringBitmap {
        self.fragments.iter().map(|f| f.id).collect()
    }

    /// The fragment of that id.
    pub fn fragment(&self, id: u32) -> Option<&Fragment> {
        let at = self.fragments.binary_search_by_key(&id, |f| f.id).ok()?;
        self.fragments.get(at)
    }

    /// Stable row ids are on (flag bit 1).
    pub fn has_stable_row_ids(&self) -> bool {
        self.reader_flags & 2 != 0
    }

    /// Live rows of the table; `None` when some fragment's counts are not recorded.
    pub fn live_rows(&self) -> Option<u64> {
        self.fragments.iter().try_fold(0u64, |sum, f| sum.checked_add(f.live_rows()?))
    }
}

/// A manifest with the sections of its file.
#[derive(Clone, Debug)]
pub struct ManifestFile {
    /// The manifest.
    pub manifest: Manifest,
    /// The index section in order; empty when there is none.
    pub indices: Vec<IndexMetadata>,
}

/// Another root (table-format §4.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasePath {
    /// Key used by `base_id`; 0 is valid.
    pub id: u32,
    /// Alias.
    pub name: Option<String>,
    /// Whether `data/`, `_deletions/`, `_indices/` lie below it.
    pub is_dataset_root: bool,
    /// Absolute URI or local path.
    pub path: String,
}
