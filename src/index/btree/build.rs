//! Building: collect values and ids, sort, hand the sorted buffers to the page writer; in several passes when memory is short.

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::datatypes::DataType;

use crate::error::{Error, ErrorCode, Result};
use crate::file::gather::take;
use crate::index::btree::batch_size;
use crate::index::btree::window::{Bound, Window};
use crate::index::btree::write::PageWriter;
use crate::index::sort::{ByteSlots, Sorted, ValueSorter, null_ids, sorter};
use crate::index::{BuildSpec, BuiltIndex, SegmentBuilder};
use crate::table::scan::{BatchRows, ColumnBatch};

pub(super) struct Builder {
    writer: PageWriter,
    sorter: Box<dyn ValueSorter>,
    /// Ids of null rows, in scan order.
    nulls: Vec<u64>,
    data_type: DataType,
    window: Window,
    /// Rows in the sorter that an earlier pass brought: they begin the next page, which was not full.
    carried: usize,
    first_pass: bool,
    /// Bytes of the values and ids pushed in the first pass.
    seen: u64,
}

impl Builder {
    pub(super) fn new(spec: BuildSpec) -> Result<Builder> {
        let sorter = new_sorter(&spec.data_type)?;
        let writer = PageWriter::new(&spec.data_type, &spec.logical_type, batch_size(&spec.params)?, spec.index_version);
        let window = Window::new(&spec.data_type)?;
        let data_type = spec.data_type;
        Ok(Builder { writer, sorter, nulls: Vec::new(), data_type, window, carried: 0, first_pass: true, seen: 0 })
    }

    /// What the sorter holds, in order; it is empty then.
    fn sort(&mut self) -> Result<Sorted> {
        std::mem::replace(&mut self.sorter, new_sorter(&self.data_type)?).finish()
    }

    /// The null rows come before all others.
    fn write_nulls(&mut self) -> Result<()> {
        if self.first_pass {
            self.writer.push_nulls(&self.data_type, UInt64Array::from(std::mem::take(&mut self.nulls)))?;
        }
        self.first_pass = false;
        Ok(())
    }
}

/// Bytes of the values, with the ends of those that have them.
fn plain_bytes(values: &ArrayRef) -> u64 {
    match values.data_type().primitive_width() {
        Some(width) => (width * values.len()) as u64,
        None => ByteSlots::new(values).map_or(values.len() as u64, |slots| slots.bytes()),
    }
}

fn new_sorter(data_type: &DataType) -> Result<Box<dyn ValueSorter>> {
    let refused = || Error::new(ErrorCode::UnsupportedType, format!("BTREE does not index columns of type {data_type}"));
    sorter(data_type).ok_or_else(refused)
}

/// The first rows of a page, in buffers of their own: those they come from are to be freed.
fn copied(page: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    take(page, 0..rows)
}

impl SegmentBuilder for Builder {
    fn push(&mut self, batch: ColumnBatch) -> Result<()> {
        let ColumnBatch { values, rows, .. } = batch;
        if self.first_pass {
            if let Some(nulls) = values.nulls() {
                null_ids(nulls, &rows, &mut self.nulls);
            }
            self.seen += plain_bytes(&values) + 8 * values.len() as u64;
        }
        match self.window.select(&values, &rows)? {
            None => self.sorter.push(&values, rows),
            Some((values, _)) if values.is_empty() => Ok(()),
            Some((values, ids)) => self.sorter.push(&values, BatchRows::List(ids)),
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.writer.position() + self.sorter.memory_bytes() + 8 * self.nulls.capacity() as u64
    }

    fn narrow(&mut self) -> Result<bool> {
        let Sorted { pages, ids } = self.sort()?;
        let cut = self.carried + ids.len().saturating_sub(self.carried) / 2;
        if cut == self.carried {
            return Ok(false);
        }
        let mut kept = Vec::new();
        let mut start = 0;
        for page in pages {
            let page = page?;
            let rows = page.len().min(cut - start);
            if rows > 0 {
                kept.push((copied(&page, rows)?, ids.get(start..start + rows).unwrap_or_default().to_vec()));
            }
            start += rows;
            if rows < page.len() {
                let id = ids.get(start).copied().unwrap_or_default();
                self.window.ceiling = Some(Bound::at(&page, rows, id)?);
                break;
            }
        }
        drop(ids);
        for (values, ids) in kept {
            self.sorter.push(&values, BatchRows::List(ids))?;
        }
        Ok(true)
    }

    fn again(&mut self) -> Result<bool> {
        let Some(ceiling) = self.window.ceiling.take() else { return Ok(false) };
        self.write_nulls()?;
        let Sorted { pages, ids } = self.sort()?;
        let mut start = 0;
        for page in pages {
            let page = page?;
            let page_ids = ids.get(start..start + page.len()).unwrap_or_default().to_vec();
            start += page_ids.len();
            if start < ids.len() {
                self.writer.push(&copied(&page, page.len())?, UInt64Array::from(page_ids))?;
            } else {
                // The next pass may fill the last page up.
                self.carried = page.len();
                self.sorter.push(&copied(&page, page.len())?, BatchRows::List(page_ids))?;
            }
        }
        self.window.floor = Some(ceiling);
        Ok(true)
    }

    fn file_bytes(&self) -> u64 {
        self.seen
    }

    fn finish(mut self: Box<Self>) -> Result<BuiltIndex> {
        self.write_nulls()?;
        let Builder { mut writer, sorter, .. } = *self;
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
