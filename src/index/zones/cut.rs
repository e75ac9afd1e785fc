//! Cutting: one pass in address order, a zone closing whenever it is full or the fragment ends.

use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::format::row::RowAddress;
use crate::index::sort::row_id;
use crate::index::zones::Places;
use crate::table::scan::ColumnBatch;

/// What a method keeps of each zone.
pub trait ZoneContent {
    /// Takes the slots `range` of `values` into the open zone.
    ///
    /// # Errors
    /// `INTERNAL` when the array is not what its type says.
    fn fold(&mut self, values: &ArrayRef, range: Range<usize>) -> Result<()>;

    /// Closes the zone, which has that many null rows.
    ///
    /// # Errors
    /// `MEMORY_LIMIT` when what was kept cannot be addressed.
    fn close(&mut self, nulls: u32) -> Result<()>;
}

/// The runs of slots of a range that are no nulls.
pub fn valid_slots(values: &ArrayRef, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0);
    let mut at = range.start;
    std::iter::from_fn(move || {
        let Some(nulls) = nulls else {
            let all = at..range.end;
            at = range.end;
            return Some(all).filter(|all| !all.is_empty());
        };
        let start = (at..range.end).find(|slot| nulls.is_valid(*slot))?;
        at = (start..range.end).find(|slot| nulls.is_null(*slot)).unwrap_or(range.end);
        Some(start..at)
    })
}

struct OpenZone {
    fragment: u32,
    first: u32,
    last: u32,
    rows: u64,
    nulls: u32,
}

/// Cuts batches into zones.
pub struct ZoneCutter {
    data_type: DataType,
    rows_per_zone: u64,
    open: Option<OpenZone>,
    /// Closed zones.
    pub places: Places,
    /// Addresses of all null rows.
    pub nulls: RoaringTreemap,
    /// Rows taken.
    pub rows: u64,
    ordered: bool,
}

impl ZoneCutter {
    /// Zones of so many live rows over a column of that type.
    pub fn new(data_type: &DataType, rows_per_zone: u64) -> ZoneCutter {
        ZoneCutter {
            data_type: data_type.clone(),
            rows_per_zone,
            open: None,
            places: Places::default(),
            nulls: RoaringTreemap::new(),
            rows: 0,
            ordered: true,
        }
    }

    /// Takes the next rows; zones that fill up are closed.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for values of another type, `INTERNAL` for rows out of order; those of the content.
    pub fn push(&mut self, batch: ColumnBatch, content: &mut dyn ZoneContent) -> Result<()> {
        let ColumnBatch { fragment, values, rows } = batch;
        if values.data_type() != &self.data_type {
            return Err(Error::invalid(format!("zones of {} were given values of type {}", self.data_type, values.data_type())));
        }
        let address = |slot: usize| -> Result<RowAddress> {
            let address = row_id(&rows, slot).map(RowAddress).filter(|address| address.fragment() == fragment);
            address.ok_or_else(|| Error::internal(format!("a batch of fragment {fragment} has a row without an address in it")))
        };
        let mut start = 0;
        while start < values.len() {
            if self.open.as_ref().is_some_and(|zone| zone.fragment != fragment || zone.rows >= self.rows_per_zone) {
                self.close(content)?;
            }
            let taken = self.open.as_ref().map_or(0, |zone| zone.rows);
            let room = usize::try_from(self.rows_per_zone - taken).unwrap_or(usize::MAX);
            let end = values.len().min(start.saturating_add(room));
            let (first, last) = (address(start)?, address(end - 1)?);
            if last.offset() < first.offset() || self.open.as_ref().is_some_and(|zone| first.offset() <= zone.last) {
                return Err(Error::internal(format!("rows of fragment {fragment} were to be cut into zones out of order")));
            }
            let mut nulls = 0;
            if let Some(valid) = values.nulls().filter(|nulls| nulls.null_count() > 0) {
                for slot in (start..end).filter(|slot| valid.is_null(*slot)) {
                    self.nulls.insert(address(slot)?.0);
                    nulls += 1;
                }
            }
            content.fold(&values, start..end)?;
            let zone =
                self.open.get_or_insert(OpenZone { fragment, first: first.offset(), last: last.offset(), rows: 0, nulls: 0 });
            zone.last = last.offset();
            zone.rows += (end - start) as u64;
            zone.nulls += nulls;
            start = end;
        }
        self.rows += values.len() as u64;
        Ok(())
    }

    /// Closes the open zone, if there is one.
    ///
    /// # Errors
    /// Those of the content.
    pub fn close(&mut self, content: &mut dyn ZoneContent) -> Result<()> {
        let Some(zone) = self.open.take() else { return Ok(()) };
        self.ordered &= self.places.fragments.last().is_none_or(|last| *last <= u64::from(zone.fragment));
        self.places.push((u64::from(zone.fragment), u64::from(zone.first), u64::from(zone.last - zone.first) + 1));
        content.close(zone.nulls)
    }

    /// Whether fragments came in ascending order so far.
    pub fn ordered(&self) -> bool {
        self.ordered
    }

    /// Bytes held for the positions and null rows, encoded ones included.
    pub fn memory_bytes(&self) -> u64 {
        let ordering = if self.ordered { 0 } else { self.places.len() as u64 * (3 * 8 + 8 + 3 * 8) };
        2 * self.nulls.serialized_size() as u64 + self.places.starts.capacity() as u64 * (3 * 8) + ordering
    }
}
