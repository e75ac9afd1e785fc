//! Reading columns of index files: whole when they are small, in step when they are not.

use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::file::gather::concat;
use crate::file::{ColumnScan, LanceFile};
use crate::index::SegmentFiles;

/// Reads a whole column of a small file.
///
/// # Errors
/// Those of decoding it.
pub async fn whole(file: &LanceFile, column: usize, data_type: &DataType, nullable: bool) -> Result<ArrayRef> {
    let mut parts = Vec::new();
    let mut scan = file.scan(column, data_type, nullable, 0..file.rows());
    while let Some(part) = scan.next().await? {
        parts.push(part);
    }
    concat(&parts, data_type)
}

/// Position of a column of an index file.
///
/// # Errors
/// `CORRUPT_FILE` naming the column when it is not there.
pub fn position(segment: &SegmentFiles, file_name: &str, file: &LanceFile, column: &str) -> Result<usize> {
    file.column_index(column).ok_or_else(|| Error::corrupt(&segment.label(file_name), format!("there is no column `{column}`")))
}

/// A column scan whose arrays can be taken in pieces.
pub struct Pieces {
    scan: ColumnScan,
    rest: Option<ArrayRef>,
}

impl Pieces {
    /// Pieces of a scan.
    pub fn new(scan: ColumnScan) -> Pieces {
        Pieces { scan, rest: None }
    }

    /// Rows that can be taken at once; 0 at the end.
    ///
    /// # Errors
    /// Those of decoding.
    pub async fn available(&mut self) -> Result<usize> {
        while self.rest.as_ref().is_none_or(|rest| rest.is_empty()) {
            self.rest = self.scan.next().await?;
            if self.rest.is_none() {
                return Ok(0);
            }
        }
        Ok(self.rest.as_ref().map_or(0, |rest| rest.len()))
    }

    /// The next `rows` rows, or as many as are available.
    pub fn take(&mut self, rows: usize) -> Option<ArrayRef> {
        let rest = self.rest.take()?;
        self.rest = (rows < rest.len()).then(|| rest.slice(rows, rest.len() - rows));
        Some(rest.slice(0, rows.min(rest.len())))
    }
}

/// Several columns of a file in step.
pub struct Rows(Vec<Pieces>);

impl Rows {
    /// Those `columns`, each with its type and whether it may have nulls, from the first of `rows` to the last.
    pub fn new(file: &LanceFile, columns: &[(usize, DataType, bool)], rows: &Range<u64>) -> Rows {
        let scan = |(at, data_type, nullable): &(usize, DataType, bool)| file.scan(*at, data_type, *nullable, rows.clone());
        Rows(columns.iter().map(|column| Pieces::new(scan(column))).collect())
    }

    /// The next rows of all columns; `None` at the end.
    ///
    /// # Errors
    /// Those of decoding.
    pub async fn next(&mut self) -> Result<Option<Vec<ArrayRef>>> {
        let mut rows = usize::MAX;
        for column in &mut self.0 {
            rows = rows.min(column.available().await?);
        }
        Ok(if rows == 0 || self.0.is_empty() { None } else { self.0.iter_mut().map(|column| column.take(rows)).collect() })
    }
}

/// The next rows of two columns in step; `None` at the end of either.
///
/// # Errors
/// Those of decoding.
pub async fn pair(left: &mut Pieces, right: &mut Pieces) -> Result<Option<(ArrayRef, ArrayRef)>> {
    let rows = left.available().await?.min(right.available().await?);
    Ok(if rows == 0 { None } else { left.take(rows).zip(right.take(rows)) })
}
