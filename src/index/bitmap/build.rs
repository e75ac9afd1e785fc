//! Building: number the distinct values as they come, collect the rows of each, write both in index order.

use arrow::array::Array;

use crate::error::{Error, ErrorCode, Result};
use crate::index::bitmap::{Bitmap, file};
use crate::index::bytes::ValueBytes;
use crate::index::distinct::Distinct;
use crate::index::keyed::{KEYS_AND_BITMAPS, KeyWriter};
use crate::index::order::{Comparison, comparison};
use crate::index::params::collected;
use crate::index::postings::{Layout, Postings};
use crate::index::sort::row_id;
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, SegmentBuilder};
use crate::table::scan::ColumnBatch;

/// List of the null rows; the value of number n has the list after.
const NULLS: u32 = 0;

pub(super) struct Builder {
    spec: BuildSpec,
    compare: Comparison,
    values: Distinct,
    postings: Postings,
    rows: u64,
}

impl Builder {
    pub(super) fn new(spec: BuildSpec) -> Result<Builder> {
        let compare = comparison(&spec.data_type).filter(|_| Bitmap.accepts(&spec.data_type)).ok_or_else(|| {
            Error::new(ErrorCode::UnsupportedType, format!("BITMAP does not index columns of type {}", spec.data_type))
        })?;
        Ok(Builder { compare, values: Distinct::new(&spec.data_type), postings: Postings::default(), spec, rows: 0 })
    }
}

impl SegmentBuilder for Builder {
    fn push(&mut self, batch: ColumnBatch) -> Result<()> {
        let ColumnBatch { values, rows, .. } = batch;
        if values.data_type() != &self.spec.data_type {
            let (wanted, given) = (&self.spec.data_type, values.data_type());
            return Err(Error::invalid(format!("a bitmap index over {wanted} was given values of type {given}")));
        }
        let bytes = ValueBytes::new(&values).ok_or_else(|| Error::internal("an array has no readable values"))?;
        let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0);
        for slot in 0..values.len() {
            let id = row_id(&rows, slot).ok_or_else(|| Error::internal("a batch has fewer row ids than values"))?;
            let list = match nulls {
                Some(nulls) if nulls.is_null(slot) => NULLS,
                _ => self.values.number(bytes.get(slot))?.saturating_add(1),
            };
            self.postings.push(list, id)?;
        }
        self.rows += values.len() as u64;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        // In the file a key takes its bytes and two positions; the order of the keys and the offsets of a page beside them.
        self.values.memory_bytes() + self.values.bytes() + 32 * self.values.len() as u64 + self.postings.memory_bytes()
    }

    fn finish(self: Box<Self>) -> Result<BuiltIndex> {
        let Builder { spec, compare, mut values, mut postings, rows } = *self;
        let nulls = postings.count(NULLS);
        let mut writer = KeyWriter::new(KEYS_AND_BITMAPS, &spec.data_type, &spec.logical_type);
        if nulls > 0 {
            writer.push(None, &mut |out| postings.encode(NULLS, Layout::RowTreemap, out))?;
        }
        for number in values.order(compare) {
            let list = number.saturating_add(1);
            writer.push(Some(values.get(number)), &mut |out| postings.encode(list, Layout::RowTreemap, out))?;
        }
        let stats = collected([("bitmaps".to_owned(), writer.count().into()), ("nulls".to_owned(), nulls.into())]);
        Ok(BuiltIndex {
            files: vec![file(writer)?],
            details: Bitmap.details(&spec.params, &spec.data_type),
            index_version: spec.index_version,
            rows,
            stats,
        })
    }
}
