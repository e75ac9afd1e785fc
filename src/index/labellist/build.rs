//! Building: every row into the lists of its items.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use roaring::RoaringTreemap;

use crate::error::{Error, ErrorCode, Result};
use crate::format::schema::scalar_name;
use crate::index::bytes::ValueBytes;
use crate::index::keyed::{Groups, KEYS_AND_BITMAPS, KeyWriter};
use crate::index::labellist::{LabelList, file, item};
use crate::index::order::comparison;
use crate::index::params::collected;
use crate::index::postings::Layout;
use crate::index::sort::row_id;
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, SegmentBuilder};
use crate::table::scan::ColumnBatch;

pub(super) struct Builder {
    spec: BuildSpec,
    item: DataType,
    groups: Groups,
    writer: KeyWriter,
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
        let name = scalar_name(&item).ok_or_else(|| Error::internal(format!("items of type {item} have no name")))?;
        Ok(Builder {
            groups: Groups::new(&item, comparison(&item).ok_or_else(refused)?),
            writer: KeyWriter::new(KEYS_AND_BITMAPS, &item, &name),
            item,
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
                self.groups.push(items.is_valid(slot).then(|| bytes.get(slot)), id)?;
            }
        }
        if self.groups.first_pass() {
            self.rows += values.len() as u64;
        }
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        // The null lists are held and encoded.
        self.writer.position() + self.groups.memory_bytes() + 2 * self.null_lists.serialized_size() as u64
    }

    fn narrow(&mut self) -> Result<bool> {
        self.groups.narrow()
    }

    fn again(&mut self) -> Result<bool> {
        self.groups.again(&mut self.writer, Layout::RowTreemap)
    }

    fn file_bytes(&self) -> u64 {
        self.groups.file_bytes() + 2 * self.null_lists.serialized_size() as u64
    }

    fn finish(self: Box<Self>) -> Result<BuiltIndex> {
        let Builder { spec, mut groups, mut writer, null_lists, rows, .. } = *self;
        groups.write(&mut writer, Layout::RowTreemap)?;
        let stats = collected([
            ("bitmaps".to_owned(), writer.count().into()),
            ("null_items".to_owned(), groups.nulls().into()),
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
