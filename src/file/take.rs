//! Reading scattered rows of a column: only the pages and chunks that hold them, neighbours by one request.

use std::ops::Range;
use std::rc::Rc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::gather;
use super::layout::PageDecoder;
use super::page::Request;
use super::reader::LanceFile;
use super::scan::{decode, open_page};
use super::values::decoded_type;
use crate::error::{Error, Result};

/// Rows no further apart than this are read together, bytes: a request costs as much as reading so many.
const GAP: u64 = 64 << 10;
/// Runs read at a time.
const AHEAD: usize = 6;

impl LanceFile {
    /// The values at `rows` of one physical column, in the order given; a row may be named more than once.
    ///
    /// The result is held whole: callers bound how many rows they ask for. `CORRUPT_FILE` for a row past the end of the
    /// column; types as for [`LanceFile::scan`].
    pub async fn take(&self, column: usize, data_type: &DataType, nullable: bool, rows: &[u64]) -> Result<ArrayRef> {
        let request = Request { column, data_type: data_type.clone(), nullable, member: None };
        self.take_request(Rc::new(request), rows).await
    }

    /// As [`LanceFile::take`], of the member of that index of a packed struct.
    pub async fn take_member(&self, column: usize, member: usize, data_type: &DataType, rows: &[u64]) -> Result<ArrayRef> {
        let request = Request { column, data_type: data_type.clone(), nullable: true, member: Some(member) };
        self.take_request(Rc::new(request), rows).await
    }

    async fn take_request(&self, request: Rc<Request>, rows: &[u64]) -> Result<ArrayRef> {
        let mut wanted = rows.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let mut parts: Vec<ArrayRef> = Vec::new();
        for (page, local) in self.pages_of(request.column, &wanted)? {
            // How many are wanted decides whether a small page is read whole, not how far apart they are.
            let (decoder, _) = open_page(self.clone(), request.clone(), page, 0..local.len() as u64).await?;
            let runs = runs(&*decoder, &local);
            let read = stream::iter(runs).map(|run| take_run(&*decoder, run)).buffered(AHEAD);
            parts.extend(read.try_collect::<Vec<ArrayRef>>().await?);
        }
        let found = gather::concat(&parts, &decoded_type(&request.data_type))?;
        if wanted == rows {
            return Ok(found);
        }
        let position = |row: &u64| wanted.binary_search(row).map_err(|_| Error::internal("a row that was not read"));
        let positions: Result<Vec<usize>> = rows.iter().map(position).collect();
        match positions?.as_slice() {
            [] => Ok(found),
            positions => gather::take(&found, positions.iter().copied()),
        }
    }

    /// The pages that hold these rows, which ascend, with the rows counted from the page's first.
    fn pages_of(&self, column: usize, rows: &[u64]) -> Result<Vec<(usize, Vec<u64>)>> {
        let metadata = self.column(column)?;
        let mut rest = rows;
        let mut first = 0u64;
        let mut pages = Vec::new();
        for (index, page) in metadata.pages.iter().enumerate() {
            let end = first + page.length;
            let (here, after) = rest.split_at(rest.partition_point(|row| *row < end));
            if !here.is_empty() {
                pages.push((index, here.iter().map(|row| row - first).collect()));
            }
            (rest, first) = (after, end);
        }
        match rest.first() {
            None => Ok(pages),
            Some(row) => {
                let what = format!("{} has {first} rows, row {row} was asked for", self.column_label(column));
                Err(Error::corrupt(self.path(), what).with("column", column))
            }
        }
    }
}

/// A stretch of rows to decode and the rows of it that are wanted.
struct TakeRun {
    rows: Range<u64>,
    wanted: Vec<u64>,
}

fn runs(decoder: &dyn PageDecoder, rows: &[u64]) -> Vec<TakeRun> {
    let source = decoder.source();
    let gap = GAP / (source.bytes() / source.rows.max(1)).max(1);
    let mut runs: Vec<TakeRun> = Vec::new();
    let mut limit = 0u64;
    for row in rows {
        match runs.last_mut() {
            Some(run) if *row - run.rows.end <= gap && *row < limit => {
                run.rows.end = row + 1;
                run.wanted.push(*row);
            }
            _ => {
                limit = decoder.slice_end(*row).max(row + 1);
                runs.push(TakeRun { rows: *row..row + 1, wanted: vec![*row] });
            }
        }
    }
    runs
}

async fn take_run(decoder: &dyn PageDecoder, run: TakeRun) -> Result<ArrayRef> {
    let start = run.rows.start;
    let array = decode(decoder, run.rows).await?;
    if run.wanted.len() == arrow::array::Array::len(&array) {
        return Ok(array);
    }
    gather::take(&array, run.wanted.iter().map(|row| (row - start) as usize))
}
