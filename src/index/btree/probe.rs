//! Which pages a condition reads, and the rows in them that meet it.

use arrow::array::Array;
use arrow::datatypes::DataType;
use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::index::SegmentFiles;
use crate::index::btree::PAGE_DATA;
use crate::index::btree::read::{PageBounds, columns, ids_of, layout, page_bounds, unreadable};
use crate::index::bytes::ValueBytes;
use crate::index::columns::{Pieces, pair};
use crate::index::probe::{Matches, Op, Query};

pub(super) async fn probe(segment: &SegmentFiles, data_type: &DataType, query: &Query) -> Result<Matches> {
    let layout = layout(segment).await?;
    let (Some(name), false) = (layout.lookup.first(), layout.parts) else {
        return Err(Error::corrupt(&segment.label("page_lookup.lance"), "the pages of this older layout are not probed"));
    };
    let PageBounds { size, low, high, counts } = page_bounds(segment, name, data_type).await?;
    let (lows, highs) = ValueBytes::new(&low).zip(ValueBytes::new(&high)).ok_or_else(unreadable)?;
    let may_match = |page: usize| match query.op {
        Op::IsNull => counts.values().get(page).is_some_and(|count| *count > 0),
        // A page without an upper bound holds nulls only; one without a lower bound begins with some.
        _ if high.is_null(page) => false,
        _ => query.may_match_between(low.is_valid(page).then(|| lows.get(page)), Some(highs.get(page))),
    };
    let pages: Vec<u64> = (0..low.len()).filter(|page| may_match(*page)).map(|page| page as u64).collect();
    let file = segment.open(PAGE_DATA).await?;
    let (values_at, ids_at) = columns(segment, PAGE_DATA, &file)?;
    let mut found = RoaringTreemap::new();
    // Neighbouring pages are read in one go.
    for run in pages.chunk_by(|page, next| page + 1 == *next) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        let rows = first.saturating_mul(size)..last.saturating_add(1).saturating_mul(size).min(file.rows());
        let mut values = Pieces::new(file.scan(values_at, data_type, true, rows.clone()));
        let mut ids = Pieces::new(file.scan(ids_at, &DataType::UInt64, false, rows));
        while let Some((values, ids)) = pair(&mut values, &mut ids).await? {
            let ids = ids_of(segment, PAGE_DATA, &ids)?;
            let bytes = ValueBytes::new(&values).ok_or_else(unreadable)?;
            for (slot, id) in ids.values().iter().enumerate() {
                if query.matches(values.is_valid(slot).then(|| bytes.get(slot))) {
                    found.insert(*id);
                }
            }
        }
    }
    Ok(Matches { exact: true, rows: Some(found), pages: Some(pages), zones: None })
}
