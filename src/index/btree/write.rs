//! Writing the two files from rows that are in index order already.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array, UInt64Array, new_null_array};
use arrow::datatypes::DataType;
use bytes::Bytes;

use crate::error::{Error, ErrorCode, Result};
use crate::file::gather::{concat, take};
use crate::file::{FileWriter, WriterField};
use crate::format::index_metadata::IndexDetails;
use crate::index::BuiltIndex;
use crate::index::btree::{BATCH_SIZE, PAGE_DATA, PAGE_LOOKUP, RANGE_PARTITIONED, TYPE_URL};
use crate::index::params::collected;
use crate::index::sort::PAGE_ROWS;

/// Takes rows in index order, nulls first, and writes `page_data.lance` and `page_lookup.lance`.
pub(super) struct PageWriter {
    data: FileWriter,
    data_type: DataType,
    logical_type: String,
    batch_size: u64,
    index_version: i32,
    rows: u64,
    nulls: u64,
    firsts: Vec<ArrayRef>,
    lasts: Vec<ArrayRef>,
    /// The row pushed last, which ends a short last page.
    tail: Option<ArrayRef>,
}

impl PageWriter {
    pub(super) fn new(data_type: &DataType, logical_type: &str, batch_size: u64, index_version: i32) -> PageWriter {
        let data =
            FileWriter::new(vec![WriterField::new("values", logical_type, true), WriterField::new("ids", "uint64", false)]);
        PageWriter {
            data,
            data_type: data_type.clone(),
            logical_type: logical_type.to_owned(),
            batch_size: batch_size.max(1),
            index_version,
            rows: 0,
            nulls: 0,
            firsts: Vec::new(),
            lasts: Vec::new(),
            tail: None,
        }
    }

    /// Bytes written so far.
    pub(super) fn position(&self) -> u64 {
        self.data.position()
    }

    /// The null rows, before any other.
    pub(super) fn push_nulls(&mut self, data_type: &DataType, ids: UInt64Array) -> Result<()> {
        for start in (0..ids.len()).step_by(PAGE_ROWS) {
            let length = PAGE_ROWS.min(ids.len() - start);
            self.push(&new_null_array(data_type, length), ids.slice(start, length))?;
        }
        Ok(())
    }

    /// The next rows in order: one page of the file.
    pub(super) fn push(&mut self, values: &ArrayRef, ids: UInt64Array) -> Result<()> {
        if values.len() != ids.len() {
            return Err(Error::internal(format!("{} sorted values have {} ids", values.len(), ids.len())));
        }
        if values.is_empty() {
            return Ok(());
        }
        let nulls = values.null_count() as u64;
        let leading = (0..values.len()).take_while(|row| values.is_null(*row)).count() as u64;
        if nulls > 0 && (leading != nulls || self.nulls != self.rows) {
            return Err(Error::internal("nulls come before all values in a BTREE"));
        }
        let end = self.rows + values.len() as u64;
        self.note_boundaries(values, end)?;
        self.data.write_page(0, values)?;
        let ids: ArrayRef = Arc::new(ids);
        self.data.write_page(1, &ids)?;
        self.rows = end;
        self.nulls += nulls;
        Ok(())
    }

    /// Copies the rows at which lookup pages begin and end.
    fn note_boundaries(&mut self, values: &ArrayRef, end: u64) -> Result<()> {
        let (start, size) = (self.rows, self.batch_size);
        let local = |from: u64| (from..end).step_by(step(size)).map(move |row| (row - start) as usize);
        let first = start.next_multiple_of(size);
        let last = (start + 1).next_multiple_of(size) - 1;
        self.firsts.push(take(values, local(first))?);
        self.lasts.push(take(values, local(last))?);
        self.tail = Some(take(values, std::iter::once((end - 1 - start) as usize))?);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<BuiltIndex> {
        let pages = self.rows.div_ceil(self.batch_size);
        if u32::try_from(pages).is_err() {
            return Err(Error::new(
                ErrorCode::MemoryLimit,
                format!("{pages} pages of {} rows are more than a BTREE can number; give a larger zone_size", self.batch_size),
            ));
        }
        if !self.rows.is_multiple_of(self.batch_size)
            && let Some(tail) = self.tail.take()
        {
            self.lasts.push(tail);
        }
        let mut lookup = FileWriter::new(vec![
            WriterField::new("min", &*self.logical_type, true),
            WriterField::new("max", &*self.logical_type, true),
            WriterField::new("null_count", "uint32", false),
            WriterField::new("page_idx", "uint32", false),
        ]);
        lookup.metadata(BATCH_SIZE, &self.batch_size.to_string());
        lookup.metadata(RANGE_PARTITIONED, "false");
        if pages > 0 {
            let nulls_of = |page: u64| self.nulls.saturating_sub(page * self.batch_size).min(self.batch_size) as u32;
            let columns: [ArrayRef; 4] = [
                concat(&self.firsts, &self.data_type)?,
                concat(&self.lasts, &self.data_type)?,
                Arc::new(UInt32Array::from_iter_values((0..pages).map(nulls_of))),
                Arc::new(UInt32Array::from_iter_values(0..pages as u32)),
            ];
            for (column, values) in columns.iter().enumerate() {
                if values.len() as u64 != pages {
                    return Err(Error::internal(format!("lookup column {column} has {} rows for {pages} pages", values.len())));
                }
                lookup.write_page(column, values)?;
            }
        }
        let stats = collected([
            ("pages".to_owned(), pages.into()),
            ("batch_size".to_owned(), self.batch_size.into()),
            ("nulls".to_owned(), self.nulls.into()),
            ("type".to_owned(), self.data_type.to_string().into()),
        ]);
        Ok(BuiltIndex {
            files: vec![(PAGE_DATA.to_owned(), self.data.finish()?), (PAGE_LOOKUP.to_owned(), lookup.finish()?)],
            details: IndexDetails { type_url: TYPE_URL.to_owned(), value: Bytes::new() },
            index_version: self.index_version,
            rows: self.rows,
            stats,
        })
    }
}

fn step(size: u64) -> usize {
    // A page size beyond usize has at most one boundary in any array, and so has the largest step.
    usize::try_from(size).unwrap_or(usize::MAX)
}
