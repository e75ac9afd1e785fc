//! Decoded values on their way into one Arrow array.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, BooleanBufferBuilder, GenericStringArray, OffsetSizeTrait, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, FieldRef};

use super::fault::{Decoded, Fault, corrupt, unsupported};

/// Items of a fixed-size list at most.
const MAX_DIMENSION: usize = 1 << 24;

/// How the values of a type lie in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Physical {
    /// No values at all.
    Null,
    /// One bit each.
    Bits,
    /// So many bytes each.
    Fixed(usize),
    /// Any number of bytes each; the offsets in a file are so many bits wide (2.1+).
    Variable(u64),
    /// So many items of another form each: fixed-size lists.
    List(usize, Box<Physical>),
    /// The member of that index of a packed struct.
    Member(usize, Box<Physical>),
}

impl Physical {
    /// The physical form of an Arrow type; of a dictionary type it is that of its values. Lists, whose structure is told
    /// apart from their values, and structs are refused.
    pub(crate) fn of(ty: &DataType) -> Decoded<Physical> {
        Ok(match ty {
            DataType::Dictionary(_, values) => Physical::of(values)?,
            DataType::FixedSizeList(item, dimension) => match usize::try_from(*dimension) {
                Ok(dimension @ 1..=MAX_DIMENSION) => match Physical::of(item.data_type())? {
                    Physical::Null | Physical::Variable(_) => return unsupported(format!("values of type {ty}")),
                    inner => Physical::List(dimension, Box::new(inner)),
                },
                _ => return unsupported(format!("values of type {ty}")),
            },
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

impl Physical {
    /// Bits of one value in plain form; `None` for other than fixed widths.
    pub(crate) fn plain_bits(&self) -> Option<u64> {
        match self {
            Physical::Bits => Some(1),
            Physical::Fixed(width) => 8u64.checked_mul(*width as u64),
            Physical::List(dimension, inner) => inner.plain_bits()?.checked_mul(*dimension as u64),
            Physical::Null | Physical::Variable(_) | Physical::Member(..) => None,
        }
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
    /// Fixed-size lists.
    List {
        /// Items per value.
        dimension: usize,
        /// Items of all values.
        items: Box<Values>,
        /// Which items are valid; `None` = all so far.
        valid: Option<BooleanBufferBuilder>,
    },
}

/// Finished values, before they get a type and nulls.
pub(crate) enum Column {
    /// Bits.
    Bits(BooleanBuffer),
    /// Fixed width.
    Fixed(Buffer),
    /// Offsets from 0, one more than values, and bytes.
    Variable(Vec<i32>, Buffer),
    /// Fixed-size lists: items, and which of them are null.
    List(Box<Column>, Option<NullBuffer>),
}

impl Column {
    /// The array of `rows` values.
    pub(crate) fn finish(self, ty: &DataType, rows: usize, nulls: Option<NullBuffer>) -> Decoded<ArrayRef> {
        match self {
            Column::Bits(bits) => {
                if bits.len() != rows {
                    return corrupt(format!("{} bits for {rows} rows", bits.len()));
                }
                array(ty, rows, vec![bits.sliced()], nulls)
            }
            Column::Fixed(data) => array(ty, rows, vec![data], nulls),
            Column::Variable(offsets, data) => variable(ty, offsets, data, nulls),
            Column::List(items, item_nulls) => {
                let DataType::FixedSizeList(item, dimension) = ty else { return corrupt(format!("fixed-size lists as {ty}")) };
                let count = rows.checked_mul(usize::try_from(*dimension).unwrap_or(usize::MAX));
                let count = count.ok_or_else(|| Fault::TooLarge(format!("{rows} rows of type {ty}")))?;
                let items = items.finish(item.data_type(), count, item_nulls)?;
                let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
                match ArrayData::builder(ty.clone()).len(rows).nulls(nulls).add_child_data(items.to_data()).build() {
                    Ok(data) => Ok(make_array(data)),
                    Err(error) => corrupt(format!("values that are no {ty}: {error}")),
                }
            }
        }
    }
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

/// An end of a value as an Arrow offset.
#[inline(always)]
pub(crate) fn offset(bytes: usize) -> Decoded<i32> {
    i32::try_from(bytes).map_err(|_| Fault::TooLarge(format!("{bytes} bytes of strings in one slice, the limit is 2 GiB")))
}

impl Values {
    /// No values yet; room for about `rows`.
    pub(crate) fn new(physical: &Physical, rows: usize) -> Decoded<Values> {
        Ok(match physical {
            Physical::Null => return unsupported("values in a column of type null"),
            Physical::Bits => Values::Bits(BooleanBufferBuilder::new(rows.min(1 << 23))),
            Physical::Fixed(width) => {
                // A hint only: foreign counts must not decide what is allocated.
                let bytes = rows.saturating_mul(*width).min(1 << 23);
                Values::Fixed { width: *width, data: MutableBuffer::with_capacity(bytes) }
            }
            Physical::Variable(_) => Values::Variable(Texts::with_capacity(rows)),
            Physical::List(dimension, inner) => {
                let items = Box::new(Values::new(inner, rows.saturating_mul(*dimension))?);
                Values::List { dimension: *dimension, items, valid: None }
            }
            Physical::Member(_, value) => Values::new(value, rows)?,
        })
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        match self {
            Values::Bits(bits) => bits.len(),
            Values::Fixed { width, data } => data.len() / (*width).max(1),
            Values::Variable(texts) => texts.len(),
            Values::List { dimension, items, .. } => items.len() / (*dimension).max(1),
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

    /// Appends values of whole bytes as they are stored, lists without null items included.
    pub(crate) fn push_plain(&mut self, bytes: &[u8]) -> Decoded<()> {
        match self {
            Values::Fixed { width, data } if bytes.len().is_multiple_of((*width).max(1)) => {
                data.extend_from_slice(bytes);
                Ok(())
            }
            Values::List { items, valid, .. } => {
                items.push_plain(bytes)?;
                if let Some(valid) = valid {
                    valid.append_n(items.len().saturating_sub(valid.len()), true);
                }
                Ok(())
            }
            _ => corrupt(format!("{} plain bytes in a column of other values", bytes.len())),
        }
    }

    /// Appends a slot that nobody will see.
    pub(crate) fn push_filler(&mut self) -> Decoded<()> {
        match self {
            Values::Bits(bits) => bits.append(false),
            Values::Fixed { width, data } => data.extend_zeros(*width),
            Values::Variable(texts) => texts.end_value()?,
            Values::List { dimension, items, valid } => {
                for _ in 0..*dimension {
                    items.push_filler()?;
                }
                if let Some(valid) = valid {
                    valid.append_n(*dimension, true);
                }
            }
        }
        Ok(())
    }

    /// The values as they are.
    pub(crate) fn build(self) -> Column {
        match self {
            Values::Bits(mut bits) => Column::Bits(bits.finish()),
            Values::Fixed { data, .. } => Column::Fixed(data.into()),
            Values::Variable(Texts { offsets, data }) => Column::Variable(offsets, data.into()),
            Values::List { items, valid, .. } => {
                let nulls = valid.map(|mut valid| NullBuffer::new(valid.finish()));
                Column::List(Box::new(items.build()), nulls)
            }
        }
    }

    /// The array of these values.
    pub(crate) fn finish(self, ty: &DataType, nulls: Option<NullBuffer>) -> Decoded<ArrayRef> {
        let rows = self.len();
        self.build().finish(ty, rows, nulls)
    }
}

/// The type of the arrays that come of a request for `ty`: dictionary types give their values.
pub(crate) fn decoded_type(ty: &DataType) -> DataType {
    let inner = |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(decoded_type(field.data_type())));
    match ty {
        DataType::Dictionary(_, values) => decoded_type(values),
        DataType::List(item) => DataType::List(inner(item)),
        DataType::LargeList(item) => DataType::LargeList(inner(item)),
        DataType::FixedSizeList(item, dimension) => DataType::FixedSizeList(inner(item), *dimension),
        other => other.clone(),
    }
}

/// An array of variable-width type from 32-bit offsets; UTF-8 is checked.
pub(crate) fn variable(ty: &DataType, offsets: Vec<i32>, data: Buffer, nulls: Option<NullBuffer>) -> Decoded<ArrayRef> {
    let rows = offsets.len().saturating_sub(1);
    let build = |offsets: Vec<i32>, data: Buffer| match ty {
        DataType::Utf8 => strings(ty, offsets, data, nulls.clone()),
        DataType::LargeUtf8 => strings(ty, offsets.into_iter().map(i64::from).collect(), data, nulls.clone()),
        DataType::LargeBinary => {
            let offsets = Buffer::from_vec(offsets.into_iter().map(i64::from).collect());
            array(ty, rows, vec![offsets, data], nulls.clone())
        }
        _ => array(ty, rows, vec![Buffer::from_vec(offsets), data], nulls.clone()),
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

/// A string array, checked in two plain passes: the general check of offsets and text costs more than most decoding.
fn strings<O: OffsetSizeTrait>(ty: &DataType, offsets: Vec<O>, data: Buffer, nulls: Option<NullBuffer>) -> Decoded<ArrayRef> {
    let rows = offsets.len().saturating_sub(1);
    if nulls.as_ref().is_some_and(|nulls| nulls.len() != rows) {
        return corrupt(format!("{rows} values, but levels for another number of rows"));
    }
    let inside = offsets.first().is_some_and(|first| *first >= O::default()) && offsets.is_sorted();
    if !inside {
        return corrupt(format!("values that are no {ty}: offsets that do not ascend"));
    }
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    match GenericStringArray::<O>::try_new(OffsetBuffer::new(offsets.into()), data, nulls) {
        Ok(array) => Ok(Arc::new(array)),
        Err(error) => corrupt(format!("values that are no {ty}: {error}")),
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
    let alignment = if width.is_power_of_two() { width.min(16) } else { 1 };
    if bytes.as_ptr().align_offset(alignment) == 0 { Buffer::from(bytes) } else { Buffer::from_slice_ref(&bytes[..]) }
}

/// `n` values of `width` bytes picked by index.
pub(crate) fn gather_fixed(items: &[u8], width: usize, indices: &[u32], out: &mut MutableBuffer) -> Decoded<()> {
    fn typed<const W: usize>(items: &[u8], indices: &[u32], out: &mut MutableBuffer) -> Decoded<()> {
        let (items, _) = items.as_chunks::<W>();
        let start = out.len();
        out.resize(start + indices.len() * W, 0);
        let slots = out.as_slice_mut().get_mut(start..).unwrap_or_default().as_chunks_mut::<W>().0;
        let mut missing = None;
        for (slot, index) in slots.iter_mut().zip(indices) {
            match items.get(*index as usize) {
                Some(item) => *slot = *item,
                None => missing = Some(*index),
            }
        }
        missing.map_or(Ok(()), |index| bad_index(index, items.len()))
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

/// Bytes that are copied at a time.
const COPIED: usize = 16;

/// Values picked by index: first the offsets, so that room is made once, then the bytes.
pub(crate) fn gather_texts(items: &Texts, indices: &[u32], out: &mut Texts) -> Decoded<()> {
    let base = out.data.len();
    let mut end = base;
    out.offsets.reserve(indices.len());
    for index in indices {
        let at = *index as usize;
        let (Some(from), Some(to)) = (items.offsets.get(at), items.offsets.get(at.saturating_add(1))) else {
            return bad_index(*index, items.len());
        };
        end = end.saturating_add((to - from) as usize);
        out.offsets.push(offset(end)?);
    }
    if items.data.len() / 4 > end - base {
        // Few rows of a large dictionary, which is not worth a copy.
        for index in indices {
            out.data.extend_from_slice(items.get(*index as usize).unwrap_or_default());
        }
        return Ok(());
    }
    // A few bytes past each item are copied with it, and overwritten by the next: no copy of variable length.
    out.data.resize(end + COPIED, 0);
    let source = [&items.data[..], &[0; COPIED]].concat();
    let mut at = base;
    for index in indices {
        let index = *index as usize;
        let (Some(from), Some(to)) = (items.offsets.get(index), items.offsets.get(index + 1)) else { break };
        let (from, to) = (*from as usize, *to as usize);
        let next = at + to.saturating_sub(from);
        if let (Some(item), Some(slot)) = (source.get(from..to + COPIED), out.data.get_mut(at..next + COPIED)) {
            for (slot, part) in slot.as_chunks_mut::<COPIED>().0.iter_mut().zip(item.as_chunks::<COPIED>().0) {
                *slot = *part;
            }
        }
        at = next;
    }
    out.data.truncate(end);
    Ok(())
}

/// Values of any form picked by index.
pub(crate) fn gather_values(items: &Values, indices: &[u32], out: &mut Values) -> Decoded<()> {
    match (items, out) {
        (Values::Fixed { width, data }, Values::Fixed { data: out, .. }) => gather_fixed(data, *width, indices, out),
        (Values::Variable(items), Values::Variable(out)) => gather_texts(items, indices, out),
        (Values::List { dimension, items, valid }, Values::List { items: out, valid: out_valid, .. }) => {
            let dimension = u32::try_from(*dimension).unwrap_or(u32::MAX);
            if let (Some(_), None) = (valid, &out_valid) {
                let mut bits = BooleanBufferBuilder::new(out.len());
                bits.append_n(out.len(), true);
                *out_valid = Some(bits);
            }
            for index in indices {
                let Some(range) = index.checked_mul(dimension).and_then(|from| Some(from..from.checked_add(dimension)?)) else {
                    return bad_index(*index, items.len());
                };
                gather_values(items, &range.clone().collect::<Vec<u32>>(), out)?;
                for item in range {
                    if let Some(out_valid) = out_valid.as_mut() {
                        let bit = |valid: &BooleanBufferBuilder| valid.len() <= item as usize || valid.get_bit(item as usize);
                        out_valid.append(valid.as_ref().is_none_or(bit));
                    }
                }
            }
            Ok(())
        }
        (Values::Bits(items), Values::Bits(out)) => {
            for index in indices {
                if *index as usize >= items.len() {
                    return bad_index(*index, items.len());
                }
                out.append(items.get_bit(*index as usize));
            }
            Ok(())
        }
        _ => unsupported("a dictionary of such values"),
    }
}

fn bad_index<T>(index: u32, items: usize) -> Decoded<T> {
    corrupt(format!("dictionary index {index} of {items} items"))
}
