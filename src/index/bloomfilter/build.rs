//! Building: a filter for every zone, its values hashed as they pass.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt64Array};
use arrow::datatypes::DataType;
use roaring::RoaringTreemap;

use crate::error::{Error, ErrorCode, Result};
use crate::file::gather::{Run, gather, take};
use crate::file::{FileWriter, WriterField};
use crate::format::treemap::encode_row_treemap;
use crate::index::bloomfilter::filter::{OpenFilter, size};
use crate::index::bloomfilter::{BloomFilter, FILE, META_ITEMS, META_PROBABILITY, NUMBER_OF_ITEMS, PROBABILITY, sizing};
use crate::index::bytes::{ValueBytes, ValueColumn};
use crate::index::hash::{xxh64, xxh64_of_half, xxh64_of_word};
use crate::index::params::collected;
use crate::index::sort::PAGE_BYTES;
use crate::index::zones::{NULL_BITMAP, Places, ZoneContent, ZoneCutter, valid_slots};
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, Params, SegmentBuilder};
use crate::table::scan::ColumnBatch;

/// The filters of zones: the open one, a page that is being filled, and full pages.
pub(super) struct Filters {
    open: OpenFilter,
    page: ValueColumn,
    pages: Vec<ArrayRef>,
    held: u64,
    pub has_null: Vec<bool>,
}

impl Filters {
    pub(super) fn new(bytes: usize) -> Filters {
        Filters {
            open: OpenFilter::new(bytes),
            page: ValueColumn::new(&DataType::Binary),
            pages: Vec::new(),
            held: 0,
            has_null: Vec::new(),
        }
    }

    /// Appends a filter.
    pub(super) fn push(&mut self, filter: &[u8], has_null: bool) -> Result<()> {
        self.page.push(Some(filter));
        self.pushed(filter.len(), has_null)
    }

    fn pushed(&mut self, bytes: usize, has_null: bool) -> Result<()> {
        self.held += bytes as u64;
        self.has_null.push(has_null);
        if self.page.byte_len() >= PAGE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.page.len() > 0 {
            self.pages.push(self.page.finish()?);
        }
        Ok(())
    }

    /// The pages in another order of zones.
    fn reordered(&self, order: &[usize]) -> Result<Vec<ArrayRef>> {
        let starts: Vec<usize> = self
            .pages
            .iter()
            .scan(0, |end, page| {
                let start = *end;
                *end += page.len();
                Some(start)
            })
            .collect();
        let place = |zone: &usize| {
            let part = starts.partition_point(|start| start <= zone).saturating_sub(1);
            let row = zone - starts.get(part).copied().unwrap_or(0);
            Run { part, rows: row..row + 1 }
        };
        let per_page = self.pages.first().map_or(1, |page| page.len().max(1));
        order.chunks(per_page).map(|zones| gather(&self.pages, &zones.iter().map(place).collect::<Vec<Run>>())).collect()
    }
}

impl ZoneContent for Filters {
    fn fold(&mut self, values: &ArrayRef, range: Range<usize>) -> Result<()> {
        let bytes = ValueBytes::new(values).ok_or_else(|| Error::internal("an array has no readable values"))?;
        let open = &mut self.open;
        let slots = valid_slots(values, range);
        if let Some(words) = bytes.fixed::<8>() {
            let words = slots.filter_map(|slots| words.get(slots)).flatten();
            words.for_each(|word| open.insert(xxh64_of_word(u64::from_le_bytes(*word))));
        } else if let Some(halves) = bytes.fixed::<4>() {
            let halves = slots.filter_map(|slots| halves.get(slots)).flatten();
            halves.for_each(|half| open.insert(xxh64_of_half(u32::from_le_bytes(*half))));
        } else {
            slots.flatten().for_each(|slot| open.insert(xxh64(bytes.get(slot))));
        }
        Ok(())
    }

    fn close(&mut self, nulls: u32) -> Result<()> {
        let open = &mut self.open;
        self.page.push_with(|out| open.take(out));
        self.pushed(self.open.size(), nulls > 0)
    }
}

pub(super) struct Builder {
    spec: BuildSpec,
    cutter: ZoneCutter,
    filters: Filters,
}

impl Builder {
    pub(super) fn new(spec: BuildSpec) -> Result<Builder> {
        if !BloomFilter.accepts(&spec.data_type) {
            let text = format!("BLOOMFILTER does not index columns of type {}", spec.data_type);
            return Err(Error::new(ErrorCode::UnsupportedType, text));
        }
        let (items, probability) = sizing(&spec.params)?;
        Ok(Builder { cutter: ZoneCutter::new(&spec.data_type, items), filters: Filters::new(size(items, probability)), spec })
    }
}

impl SegmentBuilder for Builder {
    fn push(&mut self, batch: ColumnBatch) -> Result<()> {
        self.cutter.push(batch, &mut self.filters)
    }

    fn memory_bytes(&self) -> u64 {
        let filters = self.filters.held + 2 * self.filters.open.size() as u64;
        let reordered = if self.cutter.ordered() { 0 } else { self.filters.held };
        filters + reordered + self.cutter.memory_bytes() + 2 * self.filters.has_null.len() as u64
    }

    fn indivisible(&self) -> Option<&'static str> {
        Some(
            "zones come in the order of the rows, so that there is nothing to leave to another pass; a larger probability or \
             number_of_items makes smaller filters or fewer",
        )
    }

    fn finish(mut self: Box<Self>) -> Result<BuiltIndex> {
        self.cutter.close(&mut self.filters)?;
        let Builder { spec, cutter, filters } = *self;
        encode(&spec.params, cutter.places, filters, &cutter.nulls, cutter.rows)
    }
}

/// Writes the file from finished zones; they may come in any order of fragments.
pub(super) fn encode(
    params: &Params,
    places: Places,
    mut filters: Filters,
    nulls: &RoaringTreemap,
    rows: u64,
) -> Result<BuiltIndex> {
    let (items, probability) = sizing(params)?;
    let mut file = FileWriter::new(vec![
        WriterField::new("fragment_id", "uint64", false),
        WriterField::new("zone_start", "uint64", false),
        WriterField::new("zone_length", "uint64", false),
        WriterField::new("has_null", "bool", false),
        WriterField::new("bloom_filter_data", "binary", false),
    ]);
    filters.flush()?;
    let order = places.order();
    let zones = places.len();
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from(places.fragments)),
        Arc::new(UInt64Array::from(places.starts)),
        Arc::new(UInt64Array::from(places.lengths)),
        Arc::new(BooleanArray::from(std::mem::take(&mut filters.has_null))),
    ];
    let mut pages = std::mem::take(&mut filters.pages);
    if let Some(order) = order {
        for column in &mut columns {
            *column = take(column, order.iter().copied())?;
        }
        filters.pages = pages;
        pages = filters.reordered(&order)?;
    }
    for (at, column) in columns.iter().enumerate() {
        file.write_page(at, column)?;
    }
    for page in &pages {
        file.write_page(columns.len(), page)?;
    }
    let buffer = file.global_buffer(encode_row_treemap(nulls).into());
    file.metadata(META_ITEMS, &items.to_string());
    file.metadata(META_PROBABILITY, &probability.to_string());
    file.metadata(NULL_BITMAP, &buffer.to_string());
    let stats = collected([
        ("zones".to_owned(), zones.into()),
        (NUMBER_OF_ITEMS.to_owned(), items.into()),
        (PROBABILITY.to_owned(), probability.into()),
        ("nulls".to_owned(), nulls.len().into()),
    ]);
    Ok(BuiltIndex {
        files: vec![(FILE.to_owned(), file.finish()?)],
        details: BloomFilter.details(params, &DataType::Null),
        index_version: 0,
        rows,
        stats,
    })
}
