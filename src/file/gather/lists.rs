//! Lists as runs of their items.

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::ArrowNativeType;

use super::{Run, buffer, cut, gather};
use crate::error::{Error, Result};

/// Offsets and items of the rows of lists that the runs name.
pub(super) fn lists<O: ArrowNativeType + TryFrom<usize>>(
    data: &[ArrayData],
    runs: &[Run],
    rows: usize,
) -> Result<(Buffer, ArrayData)> {
    let mut offsets: Vec<O> = Vec::with_capacity(rows + 1);
    offsets.push(O::default());
    let mut items = Vec::with_capacity(runs.len());
    let mut total = 0usize;
    let too_long = |()| Error::internal("taken lists have more items than one array can hold");
    for run in runs {
        let (offset, ends) = buffer(data, run, 0)?;
        let ends: &[O] = ends.typed_data();
        let ends = ends.get(offset + run.rows.start..=offset + run.rows.end).ok_or_else(cut)?;
        let (Some(first), Some(last)) = (ends.first().map(|o| o.as_usize()), ends.last().map(|o| o.as_usize())) else {
            return Err(cut());
        };
        for end in ends.iter().skip(1) {
            offsets.push(O::try_from(total + (end.as_usize() - first)).map_err(|_| ()).map_err(too_long)?);
        }
        total += last - first;
        items.push(Run { part: run.part, rows: first..last });
    }
    Ok((Buffer::from_vec(offsets), children(data, &items)?))
}

/// Items of the rows of fixed-size lists that the runs name.
pub(super) fn fixed_lists(data: &[ArrayData], runs: &[Run], dimension: usize) -> Result<ArrayData> {
    let items: Result<Vec<Run>> = runs
        .iter()
        .map(|run| {
            let offset = data.get(run.part).ok_or_else(cut)?.offset();
            Ok(Run { part: run.part, rows: (offset + run.rows.start) * dimension..(offset + run.rows.end) * dimension })
        })
        .collect();
    children(data, &items?)
}

fn children(data: &[ArrayData], runs: &[Run]) -> Result<ArrayData> {
    let parts: Option<Vec<ArrayRef>> = data.iter().map(|part| part.child_data().first().cloned().map(make_array)).collect();
    Ok(gather(&parts.ok_or_else(cut)?, runs)?.to_data())
}
