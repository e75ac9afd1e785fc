//! Building: number the distinct values as they come, collect the rows of each, write both in index order.

use arrow::array::Array;

use crate::error::{Error, ErrorCode, Result};
use crate::index::bitmap::{Bitmap, file};
use crate::index::bytes::ValueBytes;
use crate::index::keyed::{Groups, KEYS_AND_BITMAPS, KeyWriter};
use crate::index::order::comparison;
use crate::index::params::collected;
use crate::index::postings::Layout;
use crate::index::sort::row_id;
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, SegmentBuilder};
use crate::table::scan::ColumnBatch;

pub(super) struct Builder {
    spec: BuildSpec,
    groups: Groups,
    writer: KeyWriter,
    rows: u64,
}

impl Builder {
    pub(super) fn new(spec: BuildSpec) -> Result<Builder> {
        let compare = comparison(&spec.data_type).filter(|_| Bitmap.accepts(&spec.data_type)).ok_or_else(|| {
            Error::new(ErrorCode::UnsupportedType, format!("BITMAP does not index columns of type {}", spec.data_type))
        })?;
        let writer = KeyWriter::new(KEYS_AND_BITMAPS, &spec.data_type, &spec.logical_type);
        Ok(Builder { groups: Groups::new(&spec.data_type, compare), writer, spec, rows: 0 })
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
            let null = nulls.is_some_and(|nulls| nulls.is_null(slot));
            self.groups.push((!null).then(|| bytes.get(slot)), id)?;
        }
        if self.groups.first_pass() {
            self.rows += values.len() as u64;
        }
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        self.writer.position() + self.groups.memory_bytes()
    }

    fn narrow(&mut self) -> Result<bool> {
        self.groups.narrow()
    }

    fn again(&mut self) -> Result<bool> {
        self.groups.again(&mut self.writer, Layout::RowTreemap)
    }

    fn file_bytes(&self) -> u64 {
        self.groups.file_bytes()
    }

    fn finish(self: Box<Self>) -> Result<BuiltIndex> {
        let Builder { spec, mut groups, mut writer, rows } = *self;
        groups.write(&mut writer, Layout::RowTreemap)?;
        let stats = collected([("bitmaps".to_owned(), writer.count().into()), ("nulls".to_owned(), groups.nulls().into())]);
        Ok(BuiltIndex {
            files: vec![file(writer)?],
            details: Bitmap.details(&spec.params, &spec.data_type),
            index_version: spec.index_version,
            rows,
            stats,
        })
    }
}
