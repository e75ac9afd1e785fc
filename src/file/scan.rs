//! Reading a range of rows of one column: only the pages and chunks needed, a few slices ahead of the caller.

use std::ops::Range;
use std::rc::Rc;

use arrow::array::{Array, ArrayRef};
use futures::stream::{self, LocalBoxStream, StreamExt, TryStreamExt};

use super::layout::{self, PageDecoder};
use super::page::{PageSource, Request};
use super::reader::LanceFile;
use crate::error::{Error, Result};

/// Pages whose metadata is read ahead.
const PAGES_AHEAD: usize = 2;
/// Slices read ahead, the one being waited for included.
const SLICES_AHEAD: usize = 3;

/// Consecutive arrays of a range of rows. At most a few slices of some MB are in memory at a time.
pub struct ColumnScan {
    arrays: LocalBoxStream<'static, Result<ArrayRef>>,
}

impl std::fmt::Debug for ColumnScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ColumnScan")
    }
}

impl ColumnScan {
    pub(crate) fn new(file: LanceFile, request: Request, rows: Range<u64>) -> ColumnScan {
        let request = Rc::new(request);
        let column = request.column;
        let arrays = stream::once(async move { pages(&file, column, rows).map(|pages| (file, pages)) })
            .map_ok(move |(file, pages)| {
                let request = request.clone();
                stream::iter(pages)
                    .map(move |(index, local)| open_page(file.clone(), request.clone(), index, local))
                    .buffered(PAGES_AHEAD)
            })
            .try_flatten()
            .map_ok(|(decoder, rows)| stream::iter(Slices { decoder, rows }).map(Ok))
            .try_flatten()
            .map(|slice: Result<(Rc<dyn PageDecoder>, Range<u64>)>| async move {
                let (decoder, rows) = slice?;
                decode(&*decoder, rows).await
            })
            .buffered(SLICES_AHEAD)
            .boxed_local();
        ColumnScan { arrays }
    }

    /// The next array, `None` after the last row. After an error there is nothing more.
    #[allow(clippy::should_implement_trait)]
    pub async fn next(&mut self) -> Result<Option<ArrayRef>> {
        let next = self.arrays.next().await.transpose();
        if next.is_err() {
            self.arrays = stream::empty().boxed_local();
        }
        next
    }
}

pub(crate) async fn decode(decoder: &dyn PageDecoder, rows: Range<u64>) -> Result<ArrayRef> {
    let wanted = rows.end - rows.start;
    let array = decoder.decode(rows).await?;
    decoder.source().check_nulls(array.null_count())?;
    if array.len() as u64 != wanted || array.data_type() != &decoder.source().data_type {
        let (rows, ty) = (array.len(), array.data_type());
        return Err(decoder.source().corrupt(format!("{rows} rows of {ty} were decoded where {wanted} were asked for")));
    }
    Ok(array)
}

/// The pages that hold `rows`, with their local ranges.
fn pages(file: &LanceFile, column: usize, rows: Range<u64>) -> Result<Vec<(usize, Range<u64>)>> {
    let metadata = file.column(column)?;
    let mut first = 0u64;
    let mut pages = Vec::new();
    for (index, page) in metadata.pages.iter().enumerate() {
        let end = first + page.length;
        let (from, to) = (rows.start.max(first), rows.end.min(end));
        if from < to {
            pages.push((index, from - first..to - first));
        }
        first = end;
    }
    if rows.start < rows.end && rows.end > first {
        let label = file.column_label(column);
        return Err(Error::corrupt(
            file.path(),
            format!("{label} has {first} rows, rows {}-{} were asked for", rows.start, rows.end),
        )
        .with("column", column));
    }
    Ok(pages)
}

pub(crate) async fn open_page(
    file: LanceFile,
    request: Rc<Request>,
    index: usize,
    rows: Range<u64>,
) -> Result<(Rc<dyn PageDecoder>, Range<u64>)> {
    let metadata = file.column(request.column)?;
    let page = metadata.pages.get(index).ok_or_else(|| Error::internal("a page that does not exist"))?;
    let source = PageSource::new(file.clone(), &request, index, page)?;
    let decoder = layout::open(source, page, &rows).await?;
    Ok((decoder, rows))
}

/// Cuts a range of rows where the page's decoder wants it cut.
pub(crate) struct Slices {
    pub(crate) decoder: Rc<dyn PageDecoder>,
    pub(crate) rows: Range<u64>,
}

impl Iterator for Slices {
    type Item = (Rc<dyn PageDecoder>, Range<u64>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rows.start >= self.rows.end {
            return None;
        }
        let start = self.rows.start;
        let end = self.decoder.slice_end(start).clamp(start + 1, self.rows.end);
        self.rows.start = end;
        Some((self.decoder.clone(), start..end))
    }
}
