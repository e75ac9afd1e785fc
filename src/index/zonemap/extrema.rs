//! Lower and upper bounds of zones, for every kind of value.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, BinaryArray, BooleanArray, LargeBinaryArray, LargeStringArray, StringArray, make_array,
    new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::index::order::{Number, numbers, with_number};
use crate::index::sort::ByteSlots;

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
        other => with_number!(other, N => Box::new(Numbers::<N>::new(other.clone())), else {
            return Err(Error::new(
                crate::error::ErrorCode::UnsupportedType,
                format!("ZONEMAP does not index columns of type {other} here"),
            ));
        }),
    })
}

struct Numbers<N: Number> {
    data_type: DataType,
    open: Option<(N::Key, N::Key)>,
    open_nan: bool,
    lows: Vec<Option<N>>,
    highs: Vec<Option<N>>,
}

impl<N: Number> Numbers<N> {
    fn new(data_type: DataType) -> Numbers<N> {
        Numbers { data_type, open: None, open_nan: false, lows: Vec::new(), highs: Vec::new() }
    }
}

impl<N: Number> Extrema for Numbers<N> {
    fn fold(&mut self, values: &ArrayRef, range: Range<usize>) -> Result<u32> {
        let buffer = numbers::<N>(values).ok_or_else(|| Error::internal("a number array has no readable value buffer"))?;
        let slots = buffer.get(range.clone()).ok_or_else(|| Error::internal("a zone reaches past its batch"))?;
        let (mut open, mut nans) = (self.open, 0u32);
        let mut take = |value: N| {
            if value.is_nan() {
                nans += 1;
                return;
            }
            let key = value.to_key();
            open = Some(match open {
                Some((low, high)) => (low.min(key), high.max(key)),
                None => (key, key),
            });
        };
        match values.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => slots.iter().for_each(|value| take(*value)),
            Some(nulls) => {
                slots.iter().zip(range).filter(|(_, slot)| nulls.is_valid(*slot)).for_each(|(value, _)| take(*value));
            }
        }
        self.open = open;
        self.open_nan |= nans > 0;
        Ok(nans)
    }

    fn close(&mut self) {
        let open = self.open.take();
        self.lows.push(open.map(|(low, _)| N::from_key(low)));
        let nan = if std::mem::take(&mut self.open_nan) { N::nan() } else { None };
        self.highs.push(nan.or(open.map(|(_, high)| N::from_key(high))));
    }

    fn memory_bytes(&self) -> u64 {
        (2 * self.lows.capacity() * size_of::<Option<N>>() + 2 * self.lows.len() * size_of::<N>()) as u64
    }

    fn finish(self: Box<Self>) -> Result<(ArrayRef, ArrayRef)> {
        Ok((number_array(&self.data_type, &self.lows)?, number_array(&self.data_type, &self.highs)?))
    }
}

fn number_array<N: Number>(data_type: &DataType, values: &[Option<N>]) -> Result<ArrayRef> {
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
    lows: Vec<Option<Vec<u8>>>,
    highs: Vec<Option<Vec<u8>>>,
    held: usize,
}

impl Bytes {
    fn new(data_type: DataType) -> Bytes {
        Bytes { data_type, open: None, lows: Vec::new(), highs: Vec::new(), held: 0 }
    }
}

impl Extrema for Bytes {
    fn fold(&mut self, values: &ArrayRef, range: Range<usize>) -> Result<u32> {
        let slots = ByteSlots::new(values).ok_or_else(|| Error::internal("a byte array has no readable buffers"))?;
        // Bounds stay borrowed from the batch until its part of the zone is through.
        let mut bounds: Option<(&[u8], &[u8])> = None;
        for slot in range.filter(|slot| values.is_valid(*slot)) {
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
        let (low, high) = self.open.take().unzip();
        self.held += low.as_ref().map_or(0, Vec::len) + high.as_ref().map_or(0, Vec::len);
        self.lows.push(low);
        self.highs.push(high);
    }

    fn memory_bytes(&self) -> u64 {
        (2 * self.held + 2 * self.lows.capacity() * size_of::<Option<Vec<u8>>>()) as u64
    }

    fn finish(self: Box<Self>) -> Result<(ArrayRef, ArrayRef)> {
        let Bytes { data_type, lows, highs, .. } = *self;
        Ok((byte_array(&data_type, &lows)?, byte_array(&data_type, &highs)?))
    }
}

fn byte_array(data_type: &DataType, values: &[Option<Vec<u8>>]) -> Result<ArrayRef> {
    let bytes = || values.iter().map(Option::as_deref);
    let text = || -> Result<Vec<Option<&str>>> {
        bytes()
            .map(|value| value.map(std::str::from_utf8).transpose())
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| Error::internal(format!("a zone bound is not UTF-8: {error}")))
    };
    Ok(match data_type {
        DataType::Utf8 => Arc::new(StringArray::from_iter(text()?)),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from_iter(text()?)),
        DataType::LargeBinary => Arc::new(LargeBinaryArray::from_iter(bytes())),
        _ => Arc::new(BinaryArray::from_iter(bytes())),
    })
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
