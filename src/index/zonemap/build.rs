//! Building: bounds and counts of every zone.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array, UInt64Array};
use roaring::RoaringTreemap;

use crate::error::Result;
use crate::file::gather::take;
use crate::file::{FileWriter, WriterField};
use crate::format::treemap::encode_row_treemap;
use crate::index::params::collected;
use crate::index::zonemap::extrema::{Extrema, extrema};
use crate::index::zonemap::{FILE, ROWS_PER_ZONE, details, rows_per_zone};
use crate::index::zones::{NULL_BITMAP, Places, ZoneContent, ZoneCutter};
use crate::index::{BuildSpec, BuiltIndex, SegmentBuilder};
use crate::table::scan::ColumnBatch;

/// Everything of the zones but the bounds.
#[derive(Default)]
pub(super) struct Zones {
    pub null_counts: Vec<u32>,
    pub nan_counts: Vec<u32>,
    pub places: Places,
}

/// What is kept of each zone.
struct Content {
    extrema: Box<dyn Extrema>,
    null_counts: Vec<u32>,
    nan_counts: Vec<u32>,
    /// NaNs of the open zone.
    nans: u32,
}

impl ZoneContent for Content {
    fn fold(&mut self, values: &ArrayRef, range: Range<usize>) -> Result<()> {
        self.nans += self.extrema.fold(values, range)?;
        Ok(())
    }

    fn close(&mut self, nulls: u32) -> Result<()> {
        self.extrema.close();
        self.null_counts.push(nulls);
        self.nan_counts.push(std::mem::take(&mut self.nans));
        Ok(())
    }
}

pub(super) struct Builder {
    spec: BuildSpec,
    rows_per_zone: u64,
    cutter: ZoneCutter,
    content: Content,
}

impl Builder {
    pub(super) fn new(spec: BuildSpec) -> Result<Builder> {
        let rows_per_zone = rows_per_zone(&spec.params)?;
        let extrema = extrema(&spec.data_type)?;
        Ok(Builder {
            rows_per_zone,
            cutter: ZoneCutter::new(&spec.data_type, rows_per_zone),
            content: Content { extrema, null_counts: Vec::new(), nan_counts: Vec::new(), nans: 0 },
            spec,
        })
    }
}

impl SegmentBuilder for Builder {
    fn push(&mut self, batch: ColumnBatch) -> Result<()> {
        self.cutter.push(batch, &mut self.content)
    }

    fn memory_bytes(&self) -> u64 {
        let counts = self.content.null_counts.capacity() as u64 * (2 * 4);
        let ordering = if self.cutter.ordered() { 0 } else { counts };
        self.content.extrema.memory_bytes() + self.cutter.memory_bytes() + counts + ordering
    }

    fn indivisible(&self) -> Option<&'static str> {
        Some(
            "zones come in the order of the rows, so that there is nothing to leave to another pass; a larger rows_per_zone makes fewer",
        )
    }

    fn finish(mut self: Box<Self>) -> Result<BuiltIndex> {
        self.cutter.close(&mut self.content)?;
        let Builder { spec, rows_per_zone, cutter, content } = *self;
        let (low, high) = content.extrema.finish()?;
        let zones = Zones { null_counts: content.null_counts, nan_counts: content.nan_counts, places: cutter.places };
        encode(&spec, rows_per_zone, [low, high], zones, &cutter.nulls, cutter.rows)
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
    let count = zones.places.len();
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
    let order = zones.places.order();
    let [low, high] = bounds;
    let mut columns: Vec<ArrayRef> = vec![
        low,
        high,
        Arc::new(UInt32Array::from(zones.null_counts)),
        Arc::new(UInt32Array::from(zones.nan_counts)),
        Arc::new(UInt64Array::from(zones.places.fragments)),
        Arc::new(UInt64Array::from(zones.places.starts)),
        Arc::new(UInt64Array::from(zones.places.lengths)),
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
    let stats = collected([
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
