//! Building: collect values and ids, sort, hand the sorted buffers to the page writer.

use arrow::array::{Array, UInt64Array};
use arrow::datatypes::DataType;

use crate::error::{Error, ErrorCode, Result};
use crate::index::btree::batch_size;
use crate::index::btree::write::PageWriter;
use crate::index::sort::{Sorted, ValueSorter, null_ids, sorter};
use crate::index::{BuildSpec, BuiltIndex, SegmentBuilder};
use crate::table::scan::ColumnBatch;

pub(super) struct Builder {
    writer: PageWriter,
    sorter: Box<dyn ValueSorter>,
    /// Ids of null rows, in scan order.
    nulls: Vec<u64>,
    data_type: DataType,
}

impl Builder {
    pub(super) fn new(spec: BuildSpec) -> Result<Builder> {
        let sorter = sorter(&spec.data_type).ok_or_else(|| {
            Error::new(ErrorCode::UnsupportedType, format!("BTREE does not index columns of type {}", spec.data_type))
        })?;
        let writer = PageWriter::new(&spec.data_type, &spec.logical_type, batch_size(&spec.params)?, spec.index_version);
        Ok(Builder { writer, sorter, nulls: Vec::new(), data_type: spec.data_type })
    }
}

impl SegmentBuilder for Builder {
    fn push(&mut self, batch: ColumnBatch) -> Result<()> {
        let ColumnBatch { values, rows, .. } = batch;
        if let Some(nulls) = values.nulls() {
            null_ids(nulls, &rows, &mut self.nulls);
        }
        self.sorter.push(&values, rows)
    }

    fn memory_bytes(&self) -> u64 {
        self.sorter.memory_bytes() + 8 * self.nulls.capacity() as u64
    }

    fn finish(self: Box<Self>) -> Result<BuiltIndex> {
        let Builder { mut writer, sorter, nulls, data_type } = *self;
        writer.push_nulls(&data_type, UInt64Array::from(nulls))?;
        let Sorted { pages, ids } = sorter.finish()?;
        let ids = UInt64Array::new(ids, None);
        let mut start = 0;
        for page in pages {
            let page = page?;
            let page_ids = ids.slice(start, page.len().min(ids.len() - start));
            start += page_ids.len();
            writer.push(&page, page_ids)?;
        }
        writer.finish()
    }
}
