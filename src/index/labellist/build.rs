//! Building: every row into the lists of its items.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use roaring::RoaringTreemap;

use crate::error::{Error, ErrorCode, Result};
use crate::format::schema::scalar_name;
use crate::index::bytes::ValueBytes;
use crate::index::distinct::Distinct;
use crate::index::keyed::{KEYS_AND_BITMAPS, KeyWriter};
use crate::index::labellist::{LabelList, file, item};
use crate::index::order::{Comparison, comparison};
use crate::index::params::collected;
use crate::index::postings::{Layout, Postings};
use crate::index::sort::row_id;
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, SegmentBuilder};
use crate::table::scan::ColumnBatch;

/// List of the rows with a null item; the label of number n has the list after.
const NULLS: u32 = 0;

pub(super) struct Builder {
    spec: BuildSpec,
    item: DataType,
    compare: Comparison,
    labels: Distinct,
    postings: Postings,
    null_lists: RoaringTreemap,
    rows: u64,
}

impl Builder {
    pub(super) fn new(spec: BuildSpec) -> Result<Builder> {
        let refused = || {
            let text = format!("LABEL_LIST indexes lists of scalars, not columns of type {}", spec.data_type);
            Error::new(ErrorCode::UnsupportedType, text)
        };
        let item = item(&spec.data_type).filter(|_| LabelList.accepts(&spec.data_type)).ok_or_else(refused)?.clone();
        Ok(Builder {
            compare: comparison(&item).ok_or_else(refused)?,
            labels: Distinct::new(&item),
            item,
            postings: Postings::default(),
            null_lists: RoaringTreemap::new(),
            spec,
            rows: 0,
        })
    }
}

/// Which items a row has.
type ItemsOf<'a> = Box<dyn Fn(usize) -> Range<usize> + 'a>;

/// The items of all rows, and which of them a row has.
pub(super) fn lists(values: &ArrayRef) -> Option<(ArrayRef, ItemsOf<'_>)> {
    fn ranges<O: TryInto<usize> + Copy>(offsets: &[O]) -> impl Fn(usize) -> Range<usize> + '_ {
        move |row| {
            let at = |row: usize| offsets.get(row).and_then(|offset| (*offset).try_into().ok()).unwrap_or(0);
            at(row)..at(row + 1)
        }
    }
    match values.data_type() {
        DataType::List(_) => {
            values.as_list_opt::<i32>().map(|list| (list.values().clone(), Box::new(ranges(list.value_offsets())) as _))
        }
        _ => values.as_list_opt::<i64>().map(|list| (list.values().clone(), Box::new(ranges(list.value_offsets())) as _)),
    }
}

impl SegmentBuilder for Builder {
    fn push(&mut self, batch: ColumnBatch) -> Result<()> {
        let ColumnBatch { values, rows, .. } = batch;
        let (items, items_of) = lists(&values).filter(|(items, _)| items.data_type() == &self.item).ok_or_else(|| {
            let (wanted, given) = (&self.spec.data_type, values.data_type());
            Error::invalid(format!("a label list index over {wanted} was given values of type {given}"))
        })?;
        let bytes = ValueBytes::new(&items).ok_or_else(|| Error::internal("an array has no readable values"))?;
        for row in 0..values.len() {
            let id = row_id(&rows, row).ok_or_else(|| Error::internal("a batch has fewer row ids than values"))?;
            if values.is_null(row) {
                self.null_lists.insert(id);
                continue;
            }
            for slot in items_of(row) {
                let list = if items.is_null(slot) { NULLS } else { self.labels.number(bytes.get(slot))?.saturating_add(1) };
                self.postings.push(list, id)?;
            }
        }
        self.rows += values.len() as u64;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        // As for BITMAP; the null lists are held and encoded.
        let labels = self.labels.memory_bytes() + self.labels.bytes() + 32 * self.labels.len() as u64;
        labels + self.postings.memory_bytes() + 2 * self.null_lists.serialized_size() as u64
    }

    fn finish(self: Box<Self>) -> Result<BuiltIndex> {
        let Builder { spec, item, compare, mut labels, mut postings, null_lists, rows } = *self;
        let name = scalar_name(&item).ok_or_else(|| Error::internal(format!("items of type {item} have no name")))?;
        let nulls = postings.count(NULLS);
        let mut writer = KeyWriter::new(KEYS_AND_BITMAPS, &item, &name);
        if nulls > 0 {
            writer.push(None, &mut |out| postings.encode(NULLS, Layout::RowTreemap, out))?;
        }
        for number in labels.order(compare) {
            let list = number.saturating_add(1);
            writer.push(Some(labels.get(number)), &mut |out| postings.encode(list, Layout::RowTreemap, out))?;
        }
        let stats = collected([
            ("bitmaps".to_owned(), writer.count().into()),
            ("null_items".to_owned(), nulls.into()),
            ("null_lists".to_owned(), null_lists.len().into()),
        ]);
        Ok(BuiltIndex {
            files: vec![file(writer, &null_lists)?],
            details: LabelList.details(&spec.params, &spec.data_type),
            index_version: spec.index_version,
            rows,
            stats,
        })
    }
}
