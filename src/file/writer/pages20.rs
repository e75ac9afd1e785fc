//! Pages of 2.0: `Flat`, `Nullable`, `Binary`, `List` (file-format §3.1, §10.2).

use arrow::array::{Array, ArrayRef, AsArray, ListArray};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::DataType;
use bytes::Bytes;

use super::{byte_width, owned, plain, vectors};
use crate::error::{Error, Result};
use crate::file::messages::container::Empty;
use crate::file::messages::encoding20::{self as page, ArrayEncoding, ArrayKind, Nullability};

/// One page: its message and its buffers.
pub(super) fn encode(values: &ArrayRef) -> Result<(ArrayEncoding, Vec<Bytes>)> {
    match values.data_type() {
        DataType::Utf8 => variable(values.as_string::<i32>()),
        DataType::LargeUtf8 => variable(values.as_string::<i64>()),
        DataType::Binary => variable(values.as_binary::<i32>()),
        DataType::LargeBinary => variable(values.as_binary::<i64>()),
        DataType::Null => Ok((all_nulls(), Vec::new())),
        DataType::Boolean => {
            let bits = values.as_boolean().values().sliced();
            fixed(values.len(), &|buffer| flat(1, buffer), owned(bits), values.nulls())
        }
        DataType::FixedSizeList(_, _) => {
            let (dimension, width, items) = vectors(values)?;
            let dimension = u32::try_from(dimension).map_err(|_| Error::internal(format!("vectors of {dimension} items")))?;
            let encoding = |buffer| {
                let items = Some(Box::new(no_nulls(flat(8 * width as u64, buffer))));
                let list = page::FixedSizeList { dimension, items, has_validity: false };
                ArrayEncoding { kind: Some(ArrayKind::FixedSizeList(Box::new(list))) }
            };
            fixed(values.len(), &encoding, owned(items), values.nulls())
        }
        other => {
            let width = byte_width(other)?;
            fixed(values.len(), &|buffer| flat(8 * width as u64, buffer), owned(plain(values, width)?), values.nulls())
        }
    }
}

fn flat(bits_per_value: u64, buffer_index: u32) -> ArrayEncoding {
    let buffer = Some(page::Buffer { buffer_index, buffer_type: 0 });
    ArrayEncoding { kind: Some(ArrayKind::Flat(page::Flat { bits_per_value, buffer, compression: None })) }
}

fn nullable(nullability: Nullability) -> ArrayEncoding {
    ArrayEncoding { kind: Some(ArrayKind::Nullable(Box::new(page::Nullable { nullability: Some(nullability) }))) }
}

fn no_nulls(values: ArrayEncoding) -> ArrayEncoding {
    nullable(Nullability::NoNulls(Box::new(page::NoNulls { values: Some(Box::new(values)) })))
}

fn all_nulls() -> ArrayEncoding {
    nullable(Nullability::AllNulls(Empty {}))
}

/// Values of a fixed width; `values` is their encoding in the buffer of that number.
fn fixed(
    rows: usize,
    values: &dyn Fn(u32) -> ArrayEncoding,
    plain: Bytes,
    nulls: Option<&NullBuffer>,
) -> Result<(ArrayEncoding, Vec<Bytes>)> {
    Ok(match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => (no_nulls(values(0)), vec![plain]),
        Some(nulls) if nulls.null_count() == rows => (all_nulls(), Vec::new()),
        Some(nulls) => {
            let some = page::SomeNulls { validity: Some(Box::new(flat(1, 0))), values: Some(Box::new(values(1))) };
            (nullable(Nullability::SomeNulls(Box::new(some))), vec![owned(nulls.inner().sliced()), plain])
        }
    })
}

/// `Binary`: u64 end offsets; a null is its end plus `bytes + 1` and has no bytes.
fn variable<T: arrow::datatypes::ByteArrayType>(
    values: &arrow::array::GenericByteArray<T>,
) -> Result<(ArrayEncoding, Vec<Bytes>)> {
    use arrow::datatypes::ArrowNativeType;
    let offsets = values.value_offsets();
    let position = |offset: T::Offset| offset.as_usize();
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
        return Err(Error::internal("an array of strings without offsets"));
    };
    let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0);
    if nulls.is_some_and(|nulls| nulls.null_count() == values.len()) {
        return Ok((all_nulls(), Vec::new()));
    }
    let filled_null =
        nulls.is_some_and(|nulls| offsets.windows(2).enumerate().any(|(row, w)| nulls.is_null(row) && w.first() != w.last()));
    let bytes = if filled_null {
        // Arrow lets a null slot own bytes; this format does not.
        let kept: Vec<u8> = values.iter().flatten().flat_map(|value| value_bytes::<T>(value).iter().copied()).collect();
        kept.into()
    } else {
        owned(values.values().slice_with_length(position(first), position(last) - position(first)))
    };
    let adjustment = bytes.len() as u64 + 1;
    let mut ends: Vec<u64> = Vec::with_capacity(values.len());
    match nulls {
        None => ends.extend(offsets.iter().skip(1).map(|end| (position(*end) - position(first)) as u64)),
        Some(nulls) => {
            let mut end = 0u64;
            for (row, pair) in offsets.windows(2).enumerate() {
                if nulls.is_null(row) {
                    ends.push(end + adjustment);
                } else if let [from, to] = pair {
                    end += (position(*to) - position(*from)) as u64;
                    ends.push(end);
                }
            }
        }
    }
    let encoding = page::Binary {
        indices: Some(Box::new(no_nulls(flat(64, 0)))),
        bytes: Some(Box::new(flat(8, 1))),
        null_adjustment: adjustment,
    };
    let encoding = ArrayEncoding { kind: Some(ArrayKind::Binary(Box::new(encoding))) };
    Ok((encoding, vec![owned(Buffer::from_vec(ends)), bytes]))
}

fn value_bytes<T: arrow::datatypes::ByteArrayType>(value: &T::Native) -> &[u8] {
    value.as_ref()
}

/// The offsets column of lists: u64 ends from the page's first item, a null is its end plus `items + 1` and has no items.
pub(super) fn list_offsets(lists: &ListArray) -> Result<(ArrayEncoding, Vec<Bytes>, ArrayRef)> {
    let offsets = lists.value_offsets();
    let position = |offset: Option<&i32>| offset.and_then(|o| usize::try_from(*o).ok()).unwrap_or(0);
    let (first, last) = (position(offsets.first()), position(offsets.last()));
    let filled_null = |row: usize| lists.is_null(row) && offsets.get(row) != offsets.get(row + 1);
    if (0..lists.len()).any(filled_null) {
        return Err(Error::internal("a null list that has items cannot be written"));
    }
    let adjustment = (last - first) as u64 + 1;
    let ends = offsets.iter().skip(1).enumerate().map(|(row, end)| {
        let end = (position(Some(end)) - first) as u64;
        if lists.is_null(row) { end + adjustment } else { end }
    });
    let encoding = page::List {
        offsets: Some(Box::new(no_nulls(flat(64, 0)))),
        null_offset_adjustment: adjustment,
        num_items: (last - first) as u64,
    };
    let encoding = ArrayEncoding { kind: Some(ArrayKind::List(Box::new(encoding))) };
    Ok((encoding, vec![owned(Buffer::from_vec(ends.collect()))], lists.values().slice(first, last - first)))
}
