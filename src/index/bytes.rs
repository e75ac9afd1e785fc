//! Values as their plain bytes, whatever the type: numbers little-endian in their own width, booleans as one byte.
//!
//! Hashing, grouping and comparing values through their bytes needs one piece of code instead of one per type. What the bytes
//! mean is only asked by [`comparison`](super::order::comparison).

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, BooleanArray, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::DataType;

use crate::error::{Error, ErrorCode, Result};
use crate::index::sort::ByteSlots;

/// The plain bytes of an array's slots, without copying.
pub struct ValueBytes(Slots);

enum Slots {
    Fixed { data: Buffer, width: usize },
    Variable(ByteSlots),
    Bits(BooleanBuffer),
}

impl ValueBytes {
    /// A view of a scalar array; `None` for nested and other types without plain bytes.
    pub fn new(array: &dyn Array) -> Option<ValueBytes> {
        if let Some(bits) = array.as_any().downcast_ref::<BooleanArray>() {
            return Some(ValueBytes(Slots::Bits(bits.values().clone())));
        }
        let Some(width) = array.data_type().primitive_width() else {
            return ByteSlots::new(array).map(|slots| ValueBytes(Slots::Variable(slots)));
        };
        let data = array.to_data();
        let buffer = data.buffers().first()?;
        let (start, bytes) = (data.offset().checked_mul(width)?, data.len().checked_mul(width)?);
        (start.checked_add(bytes)? <= buffer.len())
            .then(|| ValueBytes(Slots::Fixed { data: buffer.slice_with_length(start, bytes), width }))
    }

    /// All slots, of values that take `N` bytes each.
    pub fn fixed<const N: usize>(&self) -> Option<&[[u8; N]]> {
        match &self.0 {
            Slots::Fixed { data, width } if *width == N => Some(data.as_chunks().0),
            _ => None,
        }
    }

    /// Bytes of slot `index`, those of a null slot mean nothing; empty for a slot outside.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        match &self.0 {
            Slots::Fixed { data, width } => data.get(index * width..(index + 1) * width).unwrap_or(&[]),
            Slots::Variable(slots) => slots.get(index),
            Slots::Bits(bits) if index < bits.len() => {
                if bits.value(index) {
                    &[1]
                } else {
                    &[0]
                }
            }
            Slots::Bits(_) => &[],
        }
    }
}

/// Collects plain bytes into an array of a scalar type.
pub struct ValueColumn {
    data_type: DataType,
    bytes: Vec<u8>,
    /// Where each value ends; not kept for values of one width.
    ends: Vec<u64>,
    known: Vec<bool>,
    width: Option<usize>,
}

impl ValueColumn {
    /// An empty column.
    pub fn new(data_type: &DataType) -> ValueColumn {
        ValueColumn {
            width: fixed_width(data_type),
            data_type: data_type.clone(),
            bytes: Vec::new(),
            ends: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Appends a value, or a null.
    pub fn push(&mut self, value: Option<&[u8]>) {
        match (self.width, value) {
            (Some(width), None) => self.bytes.resize(self.bytes.len() + width, 0),
            (_, value) => self.bytes.extend_from_slice(value.unwrap_or_default()),
        }
        if self.width.is_none() {
            self.ends.push(self.bytes.len() as u64);
        }
        self.known.push(value.is_some());
    }

    /// Appends a value that `write` puts at the end of the buffer.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        if self.width.is_none() {
            self.ends.push(self.bytes.len() as u64);
        }
        self.known.push(true);
    }

    /// Values so far.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Bytes of all values so far.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// The array; the column is empty again.
    ///
    /// # Errors
    /// `MEMORY_LIMIT` when the bytes are more than 32-bit offsets reach, `INTERNAL` for values of a wrong width.
    pub fn finish(&mut self) -> Result<ArrayRef> {
        let (bytes, ends, known) =
            (std::mem::take(&mut self.bytes), std::mem::take(&mut self.ends), std::mem::take(&mut self.known));
        let rows = known.len();
        let nulls = Some(NullBuffer::from(known)).filter(|nulls| nulls.null_count() > 0);
        if self.data_type == DataType::Boolean {
            let bits = BooleanBuffer::collect_bool(rows, |row| bytes.get(row) == Some(&1));
            return Ok(Arc::new(BooleanArray::new(bits, nulls)));
        }
        let buffers = match self.data_type {
            DataType::LargeUtf8 | DataType::LargeBinary => {
                vec![Buffer::from_vec(std::iter::once(0).chain(ends).map(|end| end as i64).collect()), Buffer::from_vec(bytes)]
            }
            DataType::Utf8 | DataType::Binary => {
                let offsets: Option<Vec<i32>> = std::iter::once(0).chain(ends).map(|end| i32::try_from(end).ok()).collect();
                let offsets = offsets.ok_or_else(|| {
                    let text = format!("{rows} values of an index page come to {} bytes, more than a page can hold", bytes.len());
                    Error::new(ErrorCode::MemoryLimit, text)
                })?;
                vec![Buffer::from_vec(offsets), Buffer::from_vec(bytes)]
            }
            _ => vec![Buffer::from_vec(bytes)],
        };
        let built =
            ArrayData::builder(self.data_type.clone()).len(rows).nulls(nulls).buffers(buffers).align_buffers(true).build();
        built.map(make_array).map_err(|error| Error::internal(format!("values of an index do not form an array: {error}")))
    }
}

/// Plain bytes of a value; `None` for strings and binaries.
pub fn fixed_width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Boolean => Some(1),
        DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
        other => other.primitive_width(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BinaryArray, Decimal256Array, FixedSizeBinaryArray, Float16Array, Int64Array, LargeStringArray, StringArray,
        TimestampSecondArray,
    };
    use arrow::datatypes::i256;

    use super::*;

    #[test]
    fn every_kind_comes_back_from_its_bytes() {
        let fixed = [Some([1u8, 2]), None, Some([3, 4])].into_iter();
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(-1), None, Some(7)])),
            Arc::new(Float16Array::from_iter([Some(half::f16::NAN), None, Some(half::f16::NEG_ZERO)])),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
            Arc::new(StringArray::from(vec![Some("é"), None, Some("")])),
            Arc::new(LargeStringArray::from(vec![Some("a"), None, Some("bc")])),
            Arc::new(BinaryArray::from(vec![Some(&b"\0"[..]), None, Some(b"")])),
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed, 2).unwrap()),
            Arc::new(
                Decimal256Array::from(vec![Some(i256::MINUS_ONE), None, Some(i256::MAX)])
                    .with_precision_and_scale(76, 3)
                    .unwrap(),
            ),
            Arc::new(TimestampSecondArray::from(vec![Some(5), None, Some(6)]).with_timezone("UTC")),
        ];
        for array in arrays {
            for (start, length) in [(0, 3), (1, 2), (2, 1), (0, 0)] {
                let array = array.slice(start, length);
                let bytes = ValueBytes::new(array.as_ref()).unwrap();
                let mut column = ValueColumn::new(array.data_type());
                (0..length).for_each(|row| column.push(array.is_valid(row).then(|| bytes.get(row))));
                assert_eq!(column.finish().unwrap().to_data(), array.to_data(), "{}", array.data_type());
                assert_eq!(column.len(), 0);
                assert!(bytes.get(length + 1).is_empty());
            }
        }
    }

    #[test]
    fn nested_values_have_no_bytes() {
        let list = arrow::array::new_null_array(&DataType::new_list(DataType::Int8, true), 2);
        assert!(ValueBytes::new(list.as_ref()).is_none());
    }
}
