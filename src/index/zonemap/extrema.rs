//! Lower and upper bounds of zones, for every kind of value.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, BooleanArray, make_array, new_null_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, DataType};

use crate::error::{Error, ErrorCode, Result};
use crate::index::order::{Key, KeyOrder, key_order, numbers, with_key};
use crate::index::sort::ByteSlots;
use crate::index::zones::valid_slots;

/// Collects the bounds of one zone after the other.
pub(super) trait Extrema {
    /// Takes the slots `range` of `values` into the open zone; returns how many were NaN.
    fn fold(&mut self, values: &ArrayRef, range: Range<usize>) -> Result<u32>;

    /// Closes the zone.
    fn close(&mut self);

    /// Bytes held.
    fn memory_bytes(&self) -> u64;

    /// `min` and `max` columns, one row a zone.
    fn finish(self: Box<Self>) -> Result<(ArrayRef, ArrayRef)>;
}

/// The collector for a column type; types without an order of their own get null bounds (index-formats §7.2).
pub(super) fn extrema(data_type: &DataType) -> Result<Box<dyn Extrema>> {
    Ok(match data_type {
        DataType::Boolean => Box::new(Bools::default()),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
            Box::new(Bytes::new(data_type.clone()))
        }
        DataType::FixedSizeBinary(_) => Box::new(Unbounded { data_type: data_type.clone(), zones: 0 }),
        other => with_key!(other, K => Box::new(Numbers::<K>::new(other.clone(), key_order(other))), else {
            return Err(Error::new(
                ErrorCode::UnsupportedType,
                format!("ZONEMAP does not index columns of type {other} here"),
            ));
        }),
    })
}

struct Numbers<K: Key> {
    data_type: DataType,
    order: KeyOrder<K>,
    open: Option<(K, K)>,
    open_nan: bool,
    lows: Vec<Option<K::Raw>>,
    highs: Vec<Option<K::Raw>>,
}

impl<K: Key> Numbers<K> {
    fn new(data_type: DataType, order: KeyOrder<K>) -> Numbers<K> {
        Numbers { data_type, order, open: None, open_nan: false, lows: Vec::new(), highs: Vec::new() }
    }
}

impl<K: Key> Extrema for Numbers<K> {
    fn fold(&mut self, values: &ArrayRef, range: Range<usize>) -> Result<u32> {
        let buffer = numbers::<K>(values).ok_or_else(|| Error::internal("a number array has no readable value buffer"))?;
        if range.end > buffer.len() {
            return Err(Error::internal("a zone reaches past its batch"));
        }
        let (order, floats) = (self.order, self.order.nan().is_some());
        let (mut low, mut high) = self.open.unwrap_or((K::MAX, K::default()));
        let (mut seen, mut nans) = (self.open.is_some(), 0u32);
        for slots in valid_slots(values, range).filter_map(|slots| buffer.get(slots)) {
            if floats {
                for value in slots {
                    if order.is_nan(*value) {
                        nans += 1;
                    } else {
                        let key = order.key(*value);
                        (low, high, seen) = (low.min(key), high.max(key), true);
                    }
                }
                continue;
            }
            seen = true;
            for value in slots {
                let key = order.key(*value);
                (low, high) = (low.min(key), high.max(key));
            }
        }
        self.open = seen.then_some((low, high));
        self.open_nan |= nans > 0;
        Ok(nans)
    }

    fn close(&mut self) {
        let open = self.open.take();
        self.lows.push(open.map(|(low, _)| self.order.raw(low)));
        let nan = if std::mem::take(&mut self.open_nan) { self.order.nan() } else { None };
        self.highs.push(nan.or(open.map(|(_, high)| self.order.raw(high))));
    }

    fn memory_bytes(&self) -> u64 {
        (2 * self.lows.capacity() * size_of::<Option<K::Raw>>() + 2 * self.lows.len() * size_of::<K>()) as u64
    }

    fn finish(self: Box<Self>) -> Result<(ArrayRef, ArrayRef)> {
        Ok((number_array(&self.data_type, &self.lows)?, number_array(&self.data_type, &self.highs)?))
    }
}

fn number_array<N: ArrowNativeType>(data_type: &DataType, values: &[Option<N>]) -> Result<ArrayRef> {
    let slots: Vec<N> = values.iter().map(|value| value.unwrap_or_default()).collect();
    let nulls = NullBuffer::from_iter(values.iter().map(Option::is_some));
    let data = ArrayData::builder(data_type.clone())
        .len(values.len())
        .nulls(Some(nulls).filter(|nulls| nulls.null_count() > 0))
        .add_buffer(Buffer::from_vec(slots))
        .build()
        .map_err(|error| Error::internal(format!("zone bounds do not form an array: {error}")))?;
    Ok(make_array(data))
}

#[derive(Default)]
struct Bools {
    open: Option<(bool, bool)>,
    lows: Vec<Option<bool>>,
    highs: Vec<Option<bool>>,
}

impl Extrema for Bools {
    fn fold(&mut self, values: &ArrayRef, range: Range<usize>) -> Result<u32> {
        let array = values
            .as_any()
            .downcast_ref::<BooleanArray>()
            .ok_or_else(|| Error::invalid(format!("a zone map over booleans was given values of type {}", values.data_type())))?;
        let bits: &BooleanBuffer = array.values();
        for slot in range.filter(|slot| array.is_valid(*slot)) {
            let value = bits.value(slot);
            self.open = Some(match self.open {
                Some((low, high)) => (low & value, high | value),
                None => (value, value),
            });
        }
        Ok(0)
    }

    fn close(&mut self) {
        let open = self.open.take();
        self.lows.push(open.map(|(low, _)| low));
        self.highs.push(open.map(|(_, high)| high));
    }

    fn memory_bytes(&self) -> u64 {
        2 * self.lows.capacity() as u64
    }

    fn finish(self: Box<Self>) -> Result<(ArrayRef, ArrayRef)> {
        Ok((Arc::new(BooleanArray::from(self.lows)), Arc::new(BooleanArray::from(self.highs))))
    }
}

/// Strings and binaries, kept in full: a shortened upper bound would lose rows.
struct Bytes {
    data_type: DataType,
    open: Option<(Vec<u8>, Vec<u8>)>,
    lows: ByteColumn,
    highs: ByteColumn,
}

impl Bytes {
    fn new(data_type: DataType) -> Bytes {
        Bytes { data_type, open: None, lows: ByteColumn::default(), highs: ByteColumn::default() }
    }
}

/// One bound of every zone, end to end.
#[derive(Default)]
struct ByteColumn {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<u64>,
    known: Vec<bool>,
}

impl ByteColumn {
    fn push(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.ends.push(self.bytes.len() as u64);
        self.known.push(value.is_some());
    }

    /// What is held, and with it the offsets of the array and those that the file wants.
    fn memory_bytes(&self) -> u64 {
        (self.bytes.capacity() + 8 * self.ends.capacity() + self.known.capacity() + 2 * 8 * self.ends.len()) as u64
    }

    fn finish(self, data_type: &DataType) -> Result<ArrayRef> {
        let ByteColumn { bytes, ends, known } = self;
        let offsets = match data_type {
            DataType::LargeUtf8 | DataType::LargeBinary => offsets::<i64>(&ends),
            _ => offsets::<i32>(&ends),
        };
        let offsets = offsets.ok_or_else(|| {
            let text = format!("the bounds of {} zones come to {} bytes; give a larger rows_per_zone", ends.len(), bytes.len());
            Error::new(ErrorCode::MemoryLimit, text)
        })?;
        drop(ends);
        let data = ArrayData::builder(data_type.clone())
            .len(known.len())
            .nulls(Some(NullBuffer::from(known)).filter(|nulls| nulls.null_count() > 0))
            .buffers(vec![offsets, Buffer::from_vec(bytes)])
            .build()
            .map_err(|error| Error::internal(format!("zone bounds do not form an array: {error}")))?;
        Ok(make_array(data))
    }
}

/// Offsets of an array whose values end there; `None` when they are too large for `T`.
fn offsets<T: ArrowNativeType + TryFrom<u64>>(ends: &[u64]) -> Option<Buffer> {
    let mut offsets: Vec<T> = Vec::with_capacity(ends.len() + 1);
    offsets.push(T::default());
    for end in ends {
        offsets.push(T::try_from(*end).ok()?);
    }
    Some(Buffer::from_vec(offsets))
}

impl Extrema for Bytes {
    fn fold(&mut self, values: &ArrayRef, range: Range<usize>) -> Result<u32> {
        let slots = ByteSlots::new(values).ok_or_else(|| Error::internal("a byte array has no readable buffers"))?;
        // Bounds stay borrowed from the batch until its part of the zone is through.
        let mut bounds: Option<(&[u8], &[u8])> = None;
        for slot in valid_slots(values, range).flatten() {
            let value = slots.get(slot);
            bounds = Some(match bounds {
                Some((low, high)) => (low.min(value), high.max(value)),
                None => (value, value),
            });
        }
        if let Some((low, high)) = bounds {
            match &mut self.open {
                None => self.open = Some((low.to_vec(), high.to_vec())),
                Some((open_low, open_high)) => {
                    if low < open_low.as_slice() {
                        *open_low = low.to_vec();
                    }
                    if high > open_high.as_slice() {
                        *open_high = high.to_vec();
                    }
                }
            }
        }
        Ok(0)
    }

    fn close(&mut self) {
        let open = self.open.take();
        self.lows.push(open.as_ref().map(|(low, _)| low.as_slice()));
        self.highs.push(open.as_ref().map(|(_, high)| high.as_slice()));
    }

    fn memory_bytes(&self) -> u64 {
        self.lows.memory_bytes() + self.highs.memory_bytes()
    }

    fn finish(self: Box<Self>) -> Result<(ArrayRef, ArrayRef)> {
        let Bytes { data_type, lows, highs, .. } = *self;
        Ok((lows.finish(&data_type)?, highs.finish(&data_type)?))
    }
}

struct Unbounded {
    data_type: DataType,
    zones: usize,
}

impl Extrema for Unbounded {
    fn fold(&mut self, _values: &ArrayRef, _range: Range<usize>) -> Result<u32> {
        Ok(0)
    }

    fn close(&mut self) {
        self.zones += 1;
    }

    fn memory_bytes(&self) -> u64 {
        0
    }

    fn finish(self: Box<Self>) -> Result<(ArrayRef, ArrayRef)> {
        let column = new_null_array(&self.data_type, self.zones);
        Ok((column.clone(), column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_that_do_not_fit_are_no_array() {
        assert!(offsets::<i32>(&[5, i32::MAX as u64]).is_some());
        assert!(offsets::<i32>(&[5, i32::MAX as u64 + 1]).is_none());
        assert!(offsets::<i64>(&[5, i32::MAX as u64 + 1]).is_some());
    }
}
