//! Row identity: an address names a place, a stable id names a row; the two must never be mixed silently
//! (table-format §11.1, index-formats §1.2).

use serde::{Deserialize, Serialize};

/// `fragment id << 32 | physical offset`; offsets count deleted rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowAddress(pub u64);

impl RowAddress {
    /// The address of physical row `offset` of `fragment`.
    pub fn new(fragment: u32, offset: u32) -> RowAddress {
        RowAddress(u64::from(fragment) << 32 | u64::from(offset))
    }

    /// The fragment half.
    pub fn fragment(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The offset half.
    pub fn offset(self) -> u32 {
        self.0 as u32
    }
}

/// A table-wide row id that survives moves; only on tables with the stable-row-id flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StableRowId(pub u64);

/// Which of the two a segment stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowDomain {
    /// Row addresses.
    Address,
    /// Stable row ids.
    StableId,
}
