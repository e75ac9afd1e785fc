//! Sorting a column with its row ids: numbers by range scatter, short strings as numbers, other byte strings by sampled
//! splitters.
//!
//! All end in the very buffers that become index pages, and free their input while they fill them.

mod alphabet;
mod bytes;
mod numbers;
mod pages;
mod rows;
mod scatter;

use arrow::array::ArrayRef;
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::DataType;

use crate::error::Result;
use crate::index::order::{key_order, with_key};
use crate::table::scan::BatchRows;

pub use bytes::ByteSlots;
pub use rows::{null_ids, row_id};

/// Values in index order, cut into file pages, and the row id of each.
pub struct Sorted {
    /// Non-null values, ascending over all pages; made one after the other.
    pub pages: Box<dyn Iterator<Item = Result<ArrayRef>>>,
    /// Row ids in the order of the values.
    pub ids: ScalarBuffer<u64>,
}

/// The sorter of a column type; `None` for types that have no order.
pub fn sorter(data_type: &DataType) -> Option<Box<dyn ValueSorter>> {
    Some(match data_type {
        DataType::Boolean => Box::new(numbers::BoolSorter::default()),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) => {
            Box::new(bytes::ByteSorter::new(data_type.clone()))
        }
        other => with_key!(other, K => Box::new(numbers::NumberSorter::<K>::new(other.clone(), key_order(other))), else {
            return None;
        }),
    })
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

    /// Sorts; rows of equal value by their ids.
    ///
    /// # Errors
    /// `MEMORY_LIMIT` when sizes cannot be addressed.
    fn finish(self: Box<Self>) -> Result<Sorted>;
}

/// Bytes of values in one page of an index file, about: large enough to be cheap, small enough to be read in part.
pub const PAGE_BYTES: usize = 1 << 20;

/// Rows at which a variable-width page is cut even when its bytes are few.
pub const PAGE_ROWS: usize = 1 << 17;
