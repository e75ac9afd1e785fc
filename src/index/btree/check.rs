//! Pages held against the lookup rows that lead to them, and entries for an audit.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use async_trait::async_trait;

use crate::error::Result;
use crate::index::SegmentFiles;
use crate::index::btree::PAGE_DATA;
use crate::index::btree::read::{PageBounds, columns, ids_of, layout, page_bounds, unreadable};
use crate::index::bytes::ValueBytes;
use crate::index::check::{KeyCheck, value_keys};
use crate::index::columns::{Pieces, pair};
use crate::index::order::comparison;

pub(super) struct Entries(pub DataType);

#[async_trait(?Send)]
impl KeyCheck for Entries {
    fn keys(&self, values: &ArrayRef, each: &mut dyn FnMut(u64)) -> Result<()> {
        value_keys(values, each)
    }

    async fn entries(&self, segment: &SegmentFiles, each: &mut dyn FnMut(usize, u64, u64)) -> Result<()> {
        for name in layout(segment).await?.data {
            let file = segment.open(&name).await?;
            let (values, ids) = columns(segment, &name, &file)?;
            let mut values = Pieces::new(file.scan(values, &self.0, true, 0..file.rows()));
            let mut ids = Pieces::new(file.scan(ids, &DataType::UInt64, false, 0..file.rows()));
            while let Some((values, ids)) = pair(&mut values, &mut ids).await? {
                let ids = ids_of(segment, &name, &ids)?;
                let mut ids = ids.values().iter();
                value_keys(&values, &mut |key| {
                    if let Some(id) = ids.next() {
                        each(0, key, *id);
                    }
                })?;
            }
        }
        Ok(())
    }
}

/// Pages whose rows the lookup file would lead past.
pub(super) async fn page_faults(segment: &SegmentFiles, data_type: &DataType) -> Result<Vec<String>> {
    let layout = layout(segment).await?;
    let (Some(name), false) = (layout.lookup.first(), layout.parts) else { return Ok(Vec::new()) };
    let PageBounds { size, low, high, counts } = page_bounds(segment, name, data_type).await?;
    let bounds = ValueBytes::new(&low).zip(ValueBytes::new(&high)).zip(comparison(data_type));
    let ((lows, highs), compare) = bounds.ok_or_else(unreadable)?;
    let file = segment.open(PAGE_DATA).await?;
    let mut faults = Vec::new();
    let mut seen_nulls = vec![0u32; low.len()];
    let mut scan = file.scan(0, data_type, true, 0..file.rows());
    let mut row = 0u64;
    let mut last_fault = None;
    while let Some(values) = scan.next().await? {
        let bytes = ValueBytes::new(&values).ok_or_else(unreadable)?;
        for slot in 0..values.len() {
            let page = usize::try_from(row / size).unwrap_or(usize::MAX);
            row += 1;
            let Some(nulls) = seen_nulls.get_mut(page) else { continue };
            if values.is_null(slot) {
                *nulls += 1;
                continue;
            }
            let below = low.is_valid(page) && compare(bytes.get(slot), lows.get(page)).is_lt();
            let above = high.is_null(page) || compare(bytes.get(slot), highs.get(page)).is_gt();
            if (below || above) && last_fault != Some(page) {
                last_fault = Some(page);
                faults.push(format!("page {page} holds values outside the bounds that lead to it"));
            }
        }
    }
    for (page, (seen, counted)) in seen_nulls.iter().zip(counts.values()).enumerate() {
        if seen != counted {
            faults.push(format!("page {page} holds {seen} nulls, its lookup row counts {counted}"));
        }
    }
    Ok(faults)
}
