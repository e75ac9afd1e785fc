//! New arrays from runs of rows of old ones, by byte width instead of by type.
//!
//! Arrow's own `take`, `filter` and `concat` do the same, but are compiled once per type and pair of types: they made the
//! engine four times as large as it is. A scalar column is one of four shapes (bits, fixed width, 32- or 64-bit offsets),
//! and copying runs of them needs nothing else; lists are runs of their items.

use std::ops::Range;

use arrow::array::{Array, ArrayData, ArrayRef, BooleanBufferBuilder, NullArray, make_array, new_empty_array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, DataType};

mod lists;
use lists::{fixed_lists, lists};

use crate::error::{Error, Result};

/// Rows `range` of part `part`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which of the arrays.
    pub part: usize,
    /// Rows of it.
    pub rows: Range<usize>,
}

/// The arrays one after another.
///
/// # Errors
/// `INTERNAL` for arrays of different types, or with structs in them.
pub fn concat(parts: &[ArrayRef], data_type: &DataType) -> Result<ArrayRef> {
    match parts {
        [] => Ok(new_empty_array(data_type)),
        [one] => Ok(one.clone()),
        _ => {
            let runs: Vec<Run> = parts.iter().enumerate().map(|(part, array)| Run { part, rows: 0..array.len() }).collect();
            gather(parts, &runs)
        }
    }
}

/// The rows of `array` for which `keep` is true; `keep` has one entry per row.
///
/// # Errors
/// `INTERNAL` when the lengths differ or there are structs in the type.
pub fn filter(array: &ArrayRef, keep: &[bool]) -> Result<ArrayRef> {
    if keep.len() != array.len() {
        return Err(Error::internal(format!("a mask of {} rows for an array of {}", keep.len(), array.len())));
    }
    gather(std::slice::from_ref(array), &runs_of(keep.iter().enumerate().filter_map(|(row, keep)| keep.then_some(row))))
}

/// The rows of `array` at `positions`, in that order.
///
/// # Errors
/// `INTERNAL` for a position past the end or structs in the type.
pub fn take(array: &ArrayRef, positions: impl Iterator<Item = usize>) -> Result<ArrayRef> {
    gather(std::slice::from_ref(array), &runs_of(positions))
}

fn runs_of(positions: impl Iterator<Item = usize>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for row in positions {
        match runs.last_mut() {
            Some(run) if run.rows.end == row => run.rows.end = row + 1,
            _ => runs.push(Run { part: 0, rows: row..row + 1 }),
        }
    }
    runs
}

/// The rows that the runs name, in their order, as one array of the parts' type.
///
/// # Errors
/// `INTERNAL` for parts of different types or with structs in them, for no part at all, and for a run past the end of its part.
pub fn gather(parts: &[ArrayRef], runs: &[Run]) -> Result<ArrayRef> {
    let Some(data_type) = parts.first().map(|part| part.data_type().clone()) else {
        return Err(Error::internal("rows are taken from no array"));
    };
    if parts.iter().any(|part| part.data_type() != &data_type) {
        return Err(Error::internal("rows are taken from arrays of different types"));
    }
    let sound = |run: &Run| run.rows.start <= run.rows.end && parts.get(run.part).is_some_and(|p| run.rows.end <= p.len());
    if !runs.iter().all(sound) {
        return Err(Error::internal("rows are taken from past the end of an array"));
    }
    let data: Vec<ArrayData> = parts.iter().map(|part| part.to_data()).collect();
    let rows = runs.iter().map(|run| run.rows.len()).sum();
    let builder = ArrayData::builder(data_type.clone()).len(rows).nulls(nulls_of(&data, runs, rows));
    let builder = match &data_type {
        DataType::Null => return Ok(std::sync::Arc::new(NullArray::new(rows))),
        DataType::Boolean => builder.add_buffer(bits(&data, runs, rows)?),
        DataType::Utf8 | DataType::Binary => {
            let (offsets, bytes) = strings::<i32>(&data, runs, rows)?;
            builder.add_buffer(offsets).add_buffer(bytes)
        }
        DataType::LargeUtf8 | DataType::LargeBinary => {
            let (offsets, bytes) = strings::<i64>(&data, runs, rows)?;
            builder.add_buffer(offsets).add_buffer(bytes)
        }
        DataType::List(_) => {
            let (offsets, items) = lists::<i32>(&data, runs, rows)?;
            builder.add_buffer(offsets).add_child_data(items)
        }
        DataType::LargeList(_) => {
            let (offsets, items) = lists::<i64>(&data, runs, rows)?;
            builder.add_buffer(offsets).add_child_data(items)
        }
        DataType::FixedSizeList(_, dimension) => {
            builder.add_child_data(fixed_lists(&data, runs, usize::try_from(*dimension).unwrap_or(0))?)
        }
        DataType::FixedSizeBinary(width) => builder.add_buffer(fixed(&data, runs, rows, usize::try_from(*width).unwrap_or(0))?),
        other => match other.primitive_width() {
            Some(width) => builder.add_buffer(fixed(&data, runs, rows, width)?),
            None => return Err(Error::internal(format!("rows cannot be taken from an array of type {other}"))),
        },
    };
    let built = builder.align_buffers(true).build();
    built.map(make_array).map_err(|error| Error::internal(format!("taken rows make no array of type {data_type}: {error}")))
}

fn nulls_of(data: &[ArrayData], runs: &[Run], rows: usize) -> Option<NullBuffer> {
    if data.iter().all(|part| part.null_count() == 0) {
        return None;
    }
    let mut valid = BooleanBufferBuilder::new(rows);
    for run in runs {
        match data.get(run.part).and_then(ArrayData::nulls) {
            None => valid.append_n(run.rows.len(), true),
            Some(nulls) => valid.append_buffer(&nulls.inner().slice(run.rows.start, run.rows.len())),
        }
    }
    Some(NullBuffer::new(valid.finish())).filter(|nulls| nulls.null_count() > 0)
}

fn buffer(data: &[ArrayData], run: &Run, at: usize) -> Result<(usize, Buffer)> {
    let part = data.get(run.part).ok_or_else(cut)?;
    Ok((part.offset(), part.buffers().get(at).ok_or_else(cut)?.clone()))
}

fn cut() -> Error {
    Error::internal("an array is shorter than its length says")
}

fn bits(data: &[ArrayData], runs: &[Run], rows: usize) -> Result<Buffer> {
    let mut out = BooleanBufferBuilder::new(rows);
    for run in runs {
        let (offset, bits) = buffer(data, run, 0)?;
        let range = offset + run.rows.start..offset + run.rows.end;
        if range.end.div_ceil(8) > bits.len() {
            return Err(cut());
        }
        out.append_packed_range(range, bits.as_slice());
    }
    Ok(out.finish().into_inner())
}

fn fixed(data: &[ArrayData], runs: &[Run], rows: usize, width: usize) -> Result<Buffer> {
    let mut out = Vec::with_capacity(rows * width);
    for run in runs {
        let (offset, values) = buffer(data, run, 0)?;
        let range = (offset + run.rows.start) * width..(offset + run.rows.end) * width;
        out.extend_from_slice(values.as_slice().get(range).ok_or_else(cut)?);
    }
    Ok(Buffer::from_vec(out))
}

fn strings<O: ArrowNativeType + TryFrom<usize>>(data: &[ArrayData], runs: &[Run], rows: usize) -> Result<(Buffer, Buffer)> {
    let mut offsets: Vec<O> = Vec::with_capacity(rows + 1);
    offsets.push(O::default());
    let mut bytes = Vec::new();
    let too_long = |_| Error::internal("taken strings are longer than one array can hold");
    for run in runs {
        let (offset, ends) = buffer(data, run, 0)?;
        let (_, values) = buffer(data, run, 1)?;
        let ends: &[O] = ends.typed_data();
        let ends = ends.get(offset + run.rows.start..=offset + run.rows.end).ok_or_else(cut)?;
        let (Some(first), Some(last)) = (ends.first().map(|o| o.as_usize()), ends.last().map(|o| o.as_usize())) else {
            return Err(cut());
        };
        let base = bytes.len();
        bytes.extend_from_slice(values.as_slice().get(first..last).ok_or_else(cut)?);
        for end in ends.iter().skip(1) {
            offsets.push(O::try_from(base + (end.as_usize() - first)).map_err(|_| ()).map_err(too_long)?);
        }
    }
    Ok((Buffer::from_vec(offsets), Buffer::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BinaryArray, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray, Float64Array, Int64Array, LargeListArray,
        LargeStringArray, ListArray, StringArray,
    };
    use arrow::datatypes::Int32Type;

    use super::*;

    fn arrays() -> Vec<ArrayRef> {
        let numbers: Vec<Option<i64>> = (0..40).map(|i| (i % 7 != 0).then_some(i * i)).collect();
        let texts: Vec<Option<String>> =
            numbers.iter().map(|n| n.map(|n| "x".repeat((n % 5) as usize) + &n.to_string())).collect();
        let lists: Vec<Option<Vec<Option<i32>>>> =
            numbers.iter().map(|n| n.map(|n| (0..n % 4).map(|i| (i != 1).then_some(n as i32)).collect())).collect();
        vec![
            Arc::new(Int64Array::from(numbers.clone())),
            Arc::new(Float64Array::from_iter_values((0..40).map(|i| f64::from(i) / 3.0))),
            Arc::new(BooleanArray::from_iter(numbers.iter().map(|n| n.map(|n| n % 2 == 0)))),
            Arc::new(StringArray::from_iter(texts.iter())),
            Arc::new(LargeStringArray::from_iter(texts.iter())),
            Arc::new(BinaryArray::from_iter(texts.iter().map(|t| t.as_ref().map(|t| t.as_bytes())))),
            Arc::new(FixedSizeBinaryArray::try_from_iter((0..40u8).map(|i| [i, i + 1, i + 2])).unwrap()),
            Arc::new(NullArray::new(40)),
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists.clone())),
            Arc::new(LargeListArray::from_iter_primitive::<Int32Type, _, _>(lists.clone())),
            Arc::new(FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
                numbers.iter().map(|n| n.map(|n| [Some(n as i32), None, Some(3)])),
                3,
            )),
        ]
    }

    /// Arrow's own kernels are the model, on whole arrays and on slices with odd offsets.
    #[test]
    fn agrees_with_arrow() {
        for whole in arrays() {
            for array in [whole.clone(), whole.slice(3, 33), whole.slice(9, 1), whole.slice(5, 0)] {
                let keep: Vec<bool> = (0..array.len()).map(|row| row % 3 != 1).collect();
                let expected = arrow::compute::filter(&array, &BooleanArray::from(keep.clone())).unwrap();
                assert_eq!(&filter(&array, &keep).unwrap(), &expected, "{:?}", array.data_type());

                let positions: Vec<usize> = (0..array.len()).rev().chain(0..array.len() / 2).collect();
                let indices = arrow::array::UInt64Array::from_iter_values(positions.iter().map(|p| *p as u64));
                let expected = arrow::compute::take(&array, &indices, None).unwrap();
                assert_eq!(&take(&array, positions.into_iter()).unwrap(), &expected, "{:?}", array.data_type());

                let parts = [array.clone(), array.slice(array.len() / 2, array.len() - array.len() / 2), array.clone()];
                let expected = arrow::compute::concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>()).unwrap();
                assert_eq!(&concat(&parts, array.data_type()).unwrap(), &expected, "{:?}", array.data_type());
            }
        }
    }

    #[test]
    fn refuses_what_does_not_fit() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        assert!(take(&numbers, [2].into_iter()).is_err());
        assert!(filter(&numbers, &[true]).is_err());
        assert!(concat(&[numbers, texts], &DataType::Int64).is_err());
        assert!(gather(&[], &[]).is_err());
        assert_eq!(concat(&[], &DataType::Utf8).unwrap().len(), 0);
    }
}
