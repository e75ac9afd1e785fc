//! Sorting a column with its row ids: numbers by range scatter, byte strings by sampled splitters.
//!
//! Both end in the very buffers that become index pages, and both free their input while they fill them.

mod bytes;
mod numbers;
mod rows;

use arrow::array::ArrayRef;
use arrow::buffer::ScalarBuffer;

use crate::error::Result;
use crate::table::scan::BatchRows;

pub use bytes::{ByteSlots, ByteSorter};
pub use numbers::{BoolSorter, NumberSorter};
pub use rows::{null_ids, row_id};

/// Values in index order, cut into file pages, and the row id of each.
pub struct Sorted {
    /// Non-null values, ascending over all pages.
    pub pages: Vec<ArrayRef>,
    /// Row ids in the order of the values.
    pub ids: ScalarBuffer<u64>,
}

/// Collects the non-null values of a column.
pub trait ValueSorter {
    /// Takes the non-null rows of a batch; null rows are the caller's.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the array is of another type.
    fn push(&mut self, values: &ArrayRef, rows: BatchRows) -> Result<()>;

    /// Bytes held now plus those [`ValueSorter::finish`] allocates before it can free anything.
    fn memory_bytes(&self) -> u64;

    /// Sorts. Ties come out in no particular order.
    ///
    /// # Errors
    /// `MEMORY_LIMIT` when sizes cannot be addressed.
    fn finish(self: Box<Self>) -> Result<Sorted>;
}

/// Bytes of values in one page of an index file, about: large enough to be cheap, small enough to be read in part.
pub const PAGE_BYTES: usize = 4 << 20;

/// Rows at which a variable-width page is cut even when its bytes are few.
pub const PAGE_ROWS: usize = 1 << 19;
