//! Fragments and their files (table-format §4.3–4.5).

/// One fragment of a manifest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fragment {
    /// Fragment id; ascending in a manifest.
    pub id: u32,
    /// Data files, in manifest order.
    pub files: Vec<DataFile>,
    /// Deletion vector file; `None` = nothing deleted.
    pub deletion_file: Option<DeletionFile>,
    /// Rows including deleted ones; `None` = not recorded (old tables), which is not zero.
    pub physical_rows: Option<u64>,
    /// Where the stable row ids are; `None` on tables without them.
    pub row_ids: Option<RowIdSource>,
    /// The fragment carries overlay files (unreleased feature): its values cannot be read.
    pub has_overlays: bool,
}

impl Fragment {
    /// Live rows, when both counts are recorded.
    pub fn live_rows(&self) -> Option<u64> {
        let deleted = match &self.deletion_file {
            None => 0,
            Some(file) => file.num_deleted_rows?,
        };
        self.physical_rows?.checked_sub(deleted)
    }
}

/// Where a fragment's stable row ids are stored.
#[derive(Clone, Debug, PartialEq)]
pub enum RowIdSource {
    /// A serialized `RowIdSequence`.
    Inline(bytes::Bytes),
    /// A hidden column (field id -3) of one of the data files.
    Column,
}

/// One data file of a fragment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataFile {
    /// Path relative to `data/` or to the base.
    pub path: String,
    /// Field ids in file order; negative ids are reserved (tombstones, hidden columns).
    pub fields: Vec<i32>,
    /// Physical column of each entry of `fields`; -1 = none; empty for format 0.1.
    pub column_indices: Vec<i32>,
    /// Major version as the manifest states it.
    pub major: u32,
    /// Minor version as the manifest states it.
    pub minor: u32,
    /// Size in bytes; `None` = not recorded.
    pub size: Option<u64>,
    /// Base path id; `None` = the table's own root.
    pub base_id: Option<u32>,
}

/// The two encodings of a deletion vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionKind {
    /// Arrow IPC file (`.arrow`).
    Arrow,
    /// 32-bit roaring bitmap (`.bin`).
    Bitmap,
}

/// The deletion vector of a fragment.
#[derive(Clone, Debug, PartialEq)]
pub struct DeletionFile {
    /// Encoding, and so the file name's ending.
    pub kind: DeletionKind,
    /// Part of the file name.
    pub read_version: u64,
    /// Part of the file name; uses the full u64 range.
    pub id: u64,
    /// `None` = not recorded.
    pub num_deleted_rows: Option<u64>,
    /// Base path id; `None` = the table's own root.
    pub base_id: Option<u32>,
}

impl DeletionFile {
    /// Path relative to the (base) root.
    pub fn path(&self, fragment: u32) -> String {
        let ending = match self.kind {
            DeletionKind::Arrow => "arrow",
            DeletionKind::Bitmap => "bin",
        };
        format!("_deletions/{fragment}-{}-{}.{ending}", self.read_version, self.id)
    }
}
