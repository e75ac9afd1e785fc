//! Decoded values on their way into one Arrow array.

use arrow::array::{ArrayData, ArrayRef, BooleanBufferBuilder, make_array};
use arrow::buffer::{Buffer, MutableBuffer, NullBuffer};
use arrow::datatypes::DataType;

use super::fault::{Decoded, Fault, corrupt, unsupported};

/// How the values of a type lie in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Physical {
    /// No values at all.
    Null,
    /// One bit each.
    Bits,
    /// So many bytes each.
    Fixed(usize),
    /// Any number of bytes each; the offsets in a file are so many bits wide (2.1+).
    Variable(u64),
}

impl Physical {
    /// The physical form of an Arrow type; nested types are refused.
    pub(crate) fn of(ty: &DataType) -> Decoded<Physical> {
        Ok(match ty {
            DataType::Null => Physical::Null,
            DataType::Boolean => Physical::Bits,
            DataType::Utf8 | DataType::Binary => Physical::Variable(32),
            DataType::LargeUtf8 | DataType::LargeBinary => Physical::Variable(64),
            DataType::FixedSizeBinary(n) => match usize::try_from(*n) {
                Ok(n) if n > 0 => Physical::Fixed(n),
                _ => return unsupported(format!("values of type {ty}")),
            },
            other => match other.primitive_width() {
                Some(width) => Physical::Fixed(width),
                None => return unsupported(format!("values of type {ty}")),
            },
        })
    }
}

/// Values in the order of their slots; null slots hold some filler.
pub(crate) enum Values {
    /// Bits.
    Bits(BooleanBufferBuilder),
    /// Fixed width.
    Fixed {
        /// Bytes per value.
        width: usize,
        /// `len * width` bytes.
        data: MutableBuffer,
    },
    /// Variable width.
    Variable(Texts),
}

/// Variable-width values: offsets from 0 and bytes.
#[derive(Clone, Debug)]
pub(crate) struct Texts {
    /// One more than values.
    pub(crate) offsets: Vec<i32>,
    /// All values back to back.
    pub(crate) data: Vec<u8>,
}

impl Texts {
    /// No values, room for `rows`.
    pub(crate) fn with_capacity(rows: usize) -> Texts {
        let mut offsets = Vec::with_capacity(rows.min(1 << 20) + 1);
        offsets.push(0);
        Texts { offsets, data: Vec::new() }
    }

    /// Ends a value at the current end of `data`.
    pub(crate) fn end_value(&mut self) -> Decoded<()> {
        self.offsets.push(offset(self.data.len())?);
        Ok(())
    }

    /// Appends one value.
    pub(crate) fn push(&mut self, value: &[u8]) -> Decoded<()> {
        self.data.extend_from_slice(value);
        self.end_value()
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// One value.
    pub(crate) fn get(&self, index: usize) -> Option<&[u8]> {
        let from = *self.offsets.get(index)? as usize;
        let to = *self.offsets.get(index + 1)? as usize;
        self.data.get(from..to)
    }

    /// Length of the longest value.
    pub(crate) fn longest(&self) -> usize {
        self.offsets.windows(2).filter_map(|w| Some((w.get(1)? - w.first()?) as usize)).max().unwrap_or(0)
    }
}

fn offset(bytes: usize) -> Decoded<i32> {
    i32::try_from(bytes).map_err(|_| Fault::TooLarge(format!("{bytes} bytes of strings in one slice, the limit is 2 GiB")))
}

impl Values {
    /// No values yet; room for about `rows`.
    pub(crate) fn new(physical: Physical, rows: usize) -> Decoded<Values> {
        Ok(match physical {
            Physical::Null => return unsupported("values in a column of type null"),
            Physical::Bits => Values::Bits(BooleanBufferBuilder::new(rows.min(1 << 23))),
            Physical::Fixed(width) => {
                // A hint only: foreign counts must not decide what is allocated.
                let bytes = rows.saturating_mul(width).min(1 << 23);
                Values::Fixed { width, data: MutableBuffer::with_capacity(bytes) }
            }
            Physical::Variable(_) => Values::Variable(Texts::with_capacity(rows)),
        })
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        match self {
            Values::Bits(bits) => bits.len(),
            Values::Fixed { width, data } => data.len() / (*width).max(1),
            Values::Variable(texts) => texts.len(),
        }
    }

    /// The builder of fixed values of `width` bytes.
    pub(crate) fn fixed(&mut self, width: usize) -> Decoded<&mut MutableBuffer> {
        match self {
            Values::Fixed { width: have, data } if *have == width => Ok(data),
            _ => corrupt(format!("an encoding of {}-bit values in a column that has others", 8 * width)),
        }
    }

    /// The builder of variable values.
    pub(crate) fn texts(&mut self) -> Decoded<&mut Texts> {
        match self {
            Values::Variable(texts) => Ok(texts),
            _ => corrupt("an encoding of strings in a column of fixed width"),
        }
    }

    /// The array of these values.
    pub(crate) fn finish(self, ty: &DataType, nulls: Option<NullBuffer>) -> Decoded<ArrayRef> {
        let rows = self.len();
        match self {
            Values::Bits(mut bits) => array(ty, rows, vec![bits.finish().into_inner()], nulls),
            Values::Fixed { data, .. } => array(ty, rows, vec![data.into()], nulls),
            Values::Variable(Texts { offsets, data }) => variable(ty, offsets, data.into(), nulls),
        }
    }
}

/// An array of variable-width type from 32-bit offsets; UTF-8 is checked.
pub(crate) fn variable(ty: &DataType, offsets: Vec<i32>, data: Buffer, nulls: Option<NullBuffer>) -> Decoded<ArrayRef> {
    let rows = offsets.len().saturating_sub(1);
    let build = |offsets: Vec<i32>, data: Buffer| {
        let offsets = match ty {
            DataType::LargeUtf8 | DataType::LargeBinary => Buffer::from_vec(offsets.into_iter().map(i64::from).collect()),
            _ => Buffer::from_vec(offsets),
        };
        array(ty, rows, vec![offsets, data], nulls.clone())
    };
    let Some(valid) = nulls.as_ref().filter(|nulls| nulls.null_count() > 0 && nulls.len() == rows) else {
        return build(offsets, data);
    };
    match build(offsets.clone(), data.clone()) {
        // What null slots hold is filler, which need not be text: judge without it.
        Err(Fault::Corrupt(_)) => {
            let mut kept = Texts::with_capacity(rows);
            for (pair, valid) in offsets.windows(2).zip(valid.iter()) {
                if let (true, [from, to]) = (valid, pair) {
                    kept.data.extend_from_slice(data.get(*from as usize..*to as usize).unwrap_or_default());
                }
                kept.end_value()?;
            }
            build(kept.offsets, kept.data.into())
        }
        built => built,
    }
}

/// An array from its buffers, validated.
pub(crate) fn array(ty: &DataType, rows: usize, buffers: Vec<Buffer>, nulls: Option<NullBuffer>) -> Decoded<ArrayRef> {
    if nulls.as_ref().is_some_and(|nulls| nulls.len() != rows) {
        return corrupt(format!("{rows} values, but levels for another number of rows"));
    }
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    match ArrayData::builder(ty.clone()).len(rows).buffers(buffers).nulls(nulls).build() {
        Ok(data) => Ok(make_array(data)),
        Err(error) => corrupt(format!("values that are no {ty}: {error}")),
    }
}

/// The bytes as an Arrow buffer of values of `width` bytes: as they are when aligned, else copied once.
pub(crate) fn aligned(bytes: bytes::Bytes, width: usize) -> Buffer {
    let alignment = if width.is_power_of_two() { width.min(8) } else { 1 };
    if bytes.as_ptr().align_offset(alignment) == 0 { Buffer::from(bytes) } else { Buffer::from_slice_ref(&bytes[..]) }
}

/// `n` values of `width` bytes picked by index.
pub(crate) fn gather_fixed(items: &[u8], width: usize, indices: &[u32], out: &mut MutableBuffer) -> Decoded<()> {
    fn typed<const W: usize>(items: &[u8], indices: &[u32], out: &mut MutableBuffer) -> Decoded<()> {
        let (items, _) = items.as_chunks::<W>();
        out.reserve(indices.len() * W);
        for index in indices {
            match items.get(*index as usize) {
                Some(item) => out.extend_from_slice(item),
                None => return bad_index(*index, items.len()),
            }
        }
        Ok(())
    }
    match width {
        1 => typed::<1>(items, indices, out),
        2 => typed::<2>(items, indices, out),
        4 => typed::<4>(items, indices, out),
        8 => typed::<8>(items, indices, out),
        16 => typed::<16>(items, indices, out),
        32 => typed::<32>(items, indices, out),
        _ => {
            let count = items.len() / width.max(1);
            for index in indices {
                let at = (*index as usize).checked_mul(width);
                match at.and_then(|at| items.get(at..at.checked_add(width)?)) {
                    Some(item) => out.extend_from_slice(item),
                    None => return bad_index(*index, count),
                }
            }
            Ok(())
        }
    }
}

/// Values picked by index.
pub(crate) fn gather_texts(items: &Texts, indices: &[u32], out: &mut Texts) -> Decoded<()> {
    for index in indices {
        match items.get(*index as usize) {
            Some(item) => out.push(item)?,
            None => return bad_index(*index, items.len()),
        }
    }
    Ok(())
}

fn bad_index<T>(index: u32, items: usize) -> Decoded<T> {
    corrupt(format!("dictionary index {index} of {items} items"))
}
