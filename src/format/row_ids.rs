//! Stable row id sequences (table-format §11.2).

use crate::error::{Error, Result};

/// The ids of one fragment's physical rows, in physical order.
#[derive(Clone, Debug, PartialEq)]
pub struct RowIdSequence {}

impl RowIdSequence {
    /// Reads a serialized `RowIdSequence`.
    pub fn parse(_object: &str, _bytes: &[u8]) -> Result<RowIdSequence> {
        Err(Error::internal("row id sequences are not decoded yet"))
    }

    /// Number of ids.
    pub fn len(&self) -> u64 {
        0
    }

    /// No ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids in physical order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        std::iter::empty()
    }

    /// The id of physical row `offset`.
    pub fn get(&self, _offset: u64) -> Option<u64> {
        None
    }

    /// Smallest id; `None` when empty.
    pub fn min(&self) -> Option<u64> {
        None
    }

    /// Largest id; `None` when empty.
    pub fn max(&self) -> Option<u64> {
        None
    }
}
