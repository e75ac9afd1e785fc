//! Which rows a pass over the column takes: those between two bounds in the order of values and ids.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::file::gather::filter;
use crate::index::bytes::ValueBytes;
use crate::index::order::{Comparison, comparison};
use crate::index::sort::row_id;
use crate::table::scan::BatchRows;

/// A row by its value, in plain bytes, and id.
pub(super) struct Bound {
    value: Vec<u8>,
    id: u64,
}

impl Bound {
    /// The row at `at` of `values`, which has that id.
    pub(super) fn at(values: &ArrayRef, at: usize, id: u64) -> Result<Bound> {
        Ok(Bound { value: bytes_of(values)?.get(at).to_vec(), id })
    }
}

fn bytes_of(values: &ArrayRef) -> Result<ValueBytes> {
    ValueBytes::new(values).ok_or_else(|| Error::internal("an array has no readable values"))
}

/// Rows from a floor on, below a ceiling.
pub(super) struct Window {
    compare: Comparison,
    /// Rows below it are written, or wait to be.
    pub(super) floor: Option<Bound>,
    /// Rows from it on are left to a later pass.
    pub(super) ceiling: Option<Bound>,
}

impl Window {
    /// All rows.
    pub(super) fn new(data_type: &DataType) -> Result<Window> {
        let compare = comparison(data_type).ok_or_else(|| Error::internal(format!("{data_type} has no order")))?;
        Ok(Window { compare, floor: None, ceiling: None })
    }

    /// The rows inside the bounds, copied; `None` when there are no bounds.
    pub(super) fn select(&self, values: &ArrayRef, rows: &BatchRows) -> Result<Option<(ArrayRef, Vec<u64>)>> {
        if self.floor.is_none() && self.ceiling.is_none() {
            return Ok(None);
        }
        let bytes = bytes_of(values)?;
        let below = |bound: &Bound, value: &[u8], id: u64| {
            (self.compare)(value, &bound.value).then_with(|| id.cmp(&bound.id)) == Ordering::Less
        };
        let mut ids = Vec::new();
        let keep: Vec<bool> = (0..values.len())
            .map(|slot| {
                let Some(id) = row_id(rows, slot).filter(|_| values.is_valid(slot)) else { return false };
                let value = bytes.get(slot);
                let inside = self.ceiling.as_ref().is_none_or(|ceiling| below(ceiling, value, id))
                    && !self.floor.as_ref().is_some_and(|floor| below(floor, value, id));
                if inside {
                    ids.push(id);
                }
                inside
            })
            .collect();
        ids.shrink_to_fit();
        Ok(Some((filter(values, &keep)?, ids)))
    }
}
