//! Building: one pass in address order, a zone closing whenever it is full or the fragment ends.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array, UInt64Array};
use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::file::gather::take;
use crate::file::{FileWriter, WriterField};
use crate::format::row::RowAddress;
use crate::format::treemap::encode_row_treemap;
use crate::index::sort::row_id;
use crate::index::zonemap::extrema::{Extrema, extrema};
use crate::index::zonemap::{FILE, NULL_BITMAP, ROWS_PER_ZONE, details, rows_per_zone};
use crate::index::{BuildSpec, BuiltIndex, Params, SegmentBuilder};
use crate::table::scan::ColumnBatch;

/// Everything of the zones but the bounds.
#[derive(Default)]
pub(super) struct Zones {
    pub null_counts: Vec<u32>,
    pub nan_counts: Vec<u32>,
    pub fragments: Vec<u64>,
    pub starts: Vec<u64>,
    pub lengths: Vec<u64>,
}

struct OpenZone {
    fragment: u32,
    first: u32,
    last: u32,
    rows: u64,
    nulls: u32,
    nans: u32,
}

pub(super) struct Builder {
    spec: BuildSpec,
    rows_per_zone: u64,
    extrema: Box<dyn Extrema>,
    zones: Zones,
    nulls: RoaringTreemap,
    open: Option<OpenZone>,
    /// Whether fragments came in ascending order so far.
    ordered: bool,
    rows: u64,
}

impl Builder {
    pub(super) fn new(spec: BuildSpec) -> Result<Builder> {
        Ok(Builder {
            rows_per_zone: rows_per_zone(&spec.params)?,
            extrema: extrema(&spec.data_type)?,
            spec,
            zones: Zones::default(),
            nulls: RoaringTreemap::new(),
            open: None,
            ordered: true,
            rows: 0,
        })
    }

    fn close(&mut self) {
        if let Some(zone) = self.open.take() {
            self.extrema.close();
            self.ordered &= self.zones.fragments.last().is_none_or(|last| *last <= u64::from(zone.fragment));
            self.zones.null_counts.push(zone.nulls);
            self.zones.nan_counts.push(zone.nans);
            self.zones.fragments.push(u64::from(zone.fragment));
            self.zones.starts.push(u64::from(zone.first));
            self.zones.lengths.push(u64::from(zone.last - zone.first) + 1);
        }
    }
}

impl SegmentBuilder for Builder {
    fn push(&mut self, batch: ColumnBatch) -> Result<()> {
        let ColumnBatch { fragment, values, rows } = batch;
        if values.data_type() != &self.spec.data_type {
            return Err(Error::invalid(format!(
                "a zone map over {} was given values of type {}",
                self.spec.data_type,
                values.data_type()
            )));
        }
        let address = |slot: usize| -> Result<RowAddress> {
            let address = row_id(&rows, slot).map(RowAddress).filter(|address| address.fragment() == fragment);
            address.ok_or_else(|| Error::internal(format!("a batch of fragment {fragment} has a row without an address in it")))
        };
        let mut start = 0;
        while start < values.len() {
            if self.open.as_ref().is_some_and(|zone| zone.fragment != fragment || zone.rows >= self.rows_per_zone) {
                self.close();
            }
            let taken = self.open.as_ref().map_or(0, |zone| zone.rows);
            let room = usize::try_from(self.rows_per_zone - taken).unwrap_or(usize::MAX);
            let end = values.len().min(start.saturating_add(room));
            let (first, last) = (address(start)?, address(end - 1)?);
            if last.offset() < first.offset() || self.open.as_ref().is_some_and(|zone| first.offset() <= zone.last) {
                return Err(Error::internal(format!("rows of fragment {fragment} reached a zone map out of order")));
            }
            let mut nulls = 0;
            if let Some(valid) = values.nulls().filter(|nulls| nulls.null_count() > 0) {
                for slot in (start..end).filter(|slot| valid.is_null(*slot)) {
                    self.nulls.insert(address(slot)?.0);
                    nulls += 1;
                }
            }
            let nans = self.extrema.fold(&values, start..end)?;
            let zone = self.open.get_or_insert(OpenZone {
                fragment,
                first: first.offset(),
                last: last.offset(),
                rows: 0,
                nulls: 0,
                nans: 0,
            });
            zone.last = last.offset();
            zone.rows += (end - start) as u64;
            zone.nulls += nulls;
            zone.nans += nans;
            start = end;
        }
        self.rows += values.len() as u64;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        let zones = self.zones.starts.len() as u64;
        // Two counts and three positions; ordering sorts positions and takes every column anew.
        let columns = self.zones.starts.capacity() as u64 * (2 * 4 + 3 * 8);
        let ordering = if self.ordered { 0 } else { zones * (3 * 8 + 8 + 2 * 4 + 3 * 8) };
        self.extrema.memory_bytes() + 2 * self.nulls.serialized_size() as u64 + columns + ordering
    }

    fn finish(mut self: Box<Self>) -> Result<BuiltIndex> {
        self.close();
        let Builder { spec, rows_per_zone, extrema, zones, nulls, rows, .. } = *self;
        let (low, high) = extrema.finish()?;
        encode(&spec, rows_per_zone, [low, high], zones, &nulls, rows)
    }
}

/// Writes the file from finished zones; they may come in any order of fragments.
pub(super) fn encode(
    spec: &BuildSpec,
    rows_per_zone: u64,
    bounds: [ArrayRef; 2],
    zones: Zones,
    nulls: &RoaringTreemap,
    rows: u64,
) -> Result<BuiltIndex> {
    let count = zones.starts.len();
    let mut file = FileWriter::new(vec![
        WriterField::new("min", &*spec.logical_type, true),
        WriterField::new("max", &*spec.logical_type, true),
        WriterField::new("null_count", "uint32", false),
        WriterField::new("nan_count", "uint32", false),
        WriterField::new("fragment_id", "uint64", false),
        WriterField::new("zone_start", "uint64", false),
        WriterField::new("zone_length", "uint64", false),
    ]);
    let nan_rows: u64 = zones.nan_counts.iter().map(|nans| u64::from(*nans)).sum();
    let order = order(&zones);
    let [low, high] = bounds;
    let mut columns: Vec<ArrayRef> = vec![
        low,
        high,
        Arc::new(UInt32Array::from(zones.null_counts)),
        Arc::new(UInt32Array::from(zones.nan_counts)),
        Arc::new(UInt64Array::from(zones.fragments)),
        Arc::new(UInt64Array::from(zones.starts)),
        Arc::new(UInt64Array::from(zones.lengths)),
    ];
    if let Some(positions) = order {
        for column in &mut columns {
            *column = take(column, positions.iter().copied())?;
        }
    }
    for (at, column) in columns.iter().enumerate() {
        file.write_page(at, column)?;
    }
    let buffer = file.global_buffer(encode_row_treemap(nulls).into());
    file.metadata(ROWS_PER_ZONE, &rows_per_zone.to_string());
    file.metadata(NULL_BITMAP, &buffer.to_string());
    let stats = Params::from_iter([
        ("zones".to_owned(), count.into()),
        ("rows_per_zone".to_owned(), rows_per_zone.into()),
        ("nulls".to_owned(), nulls.len().into()),
        ("nans".to_owned(), nan_rows.into()),
    ]);
    Ok(BuiltIndex {
        files: vec![(FILE.to_owned(), file.finish()?)],
        details: details::encode(&spec.params, &spec.data_type),
        index_version: spec.index_version,
        rows,
        stats,
    })
}

/// Where to take the zones from so that they ascend; `None` when they do.
fn order(zones: &Zones) -> Option<Vec<usize>> {
    let places = || zones.fragments.iter().zip(&zones.starts);
    if places().is_sorted() {
        return None;
    }
    let mut order: Vec<_> = places().zip(0..).collect();
    order.sort_unstable();
    Some(order.into_iter().map(|(_, at)| at).collect())
}
