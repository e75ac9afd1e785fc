//! The one value order of all index files (index-formats §4): stored integers, IEEE total order for floats.
//!
//! A number is compared through an unsigned key of its own width whose order is the index order.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{ArrowNativeType, DataType, i256};
use half::f16;

/// An unsigned key: compared, and spread over slots by its distance from a minimum.
pub trait Key: Copy + Ord + Default + std::fmt::Debug {
    /// Bits needed for `max - self`; 0 when equal. `self` must not be above `max`.
    fn bits_to(self, max: Self) -> u32;

    /// `(self - min) >> shift`, for differences that fit a `usize` after the shift.
    fn slot(self, min: Self, shift: u32) -> usize;
}

macro_rules! unsigned_key {
    ($($t:ty),*) => { $(
        impl Key for $t {
            fn bits_to(self, max: Self) -> u32 {
                <$t>::BITS - max.wrapping_sub(self).leading_zeros()
            }

            fn slot(self, min: Self, shift: u32) -> usize {
                self.wrapping_sub(min).checked_shr(shift).unwrap_or(0) as usize
            }
        }
    )* };
}

unsigned_key!(u8, u16, u32, u64, u128);

/// 256 bits, most significant half first, so that the derived order is the numeric one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct U256(u128, u128);

impl U256 {
    fn minus(self, other: U256) -> U256 {
        let (low, borrow) = self.1.overflowing_sub(other.1);
        U256(self.0.wrapping_sub(other.0).wrapping_sub(u128::from(borrow)), low)
    }
}

impl Key for U256 {
    fn bits_to(self, max: Self) -> u32 {
        let distance = max.minus(self);
        if distance.0 == 0 { 128 - distance.1.leading_zeros() } else { 256 - distance.0.leading_zeros() }
    }

    fn slot(self, min: Self, shift: u32) -> usize {
        let U256(high, low) = self.minus(min);
        if shift >= 128 {
            return high.checked_shr(shift - 128).unwrap_or(0) as usize;
        }
        let carried = if shift == 0 { 0 } else { high.checked_shl(128 - shift).unwrap_or(0) };
        (low >> shift | carried) as usize
    }
}

/// A fixed-width number as Arrow stores it.
pub trait Number: ArrowNativeType {
    /// The unsigned key in index order.
    type Key: Key;

    /// The key of this number.
    fn to_key(self) -> Self::Key;

    /// The inverse of [`Number::to_key`].
    fn from_key(key: Self::Key) -> Self;

    /// The number whose plain bytes these are; `None` for another count of bytes.
    fn from_plain(bytes: &[u8]) -> Option<Self>;

    /// Is it a float that is not a number? They sort by sign and payload like everything else.
    fn is_nan(self) -> bool {
        false
    }

    /// The NaN that a zone map stores as the upper bound of a zone holding any NaN; `None` for integers.
    fn nan() -> Option<Self> {
        None
    }
}

macro_rules! unsigned_number {
    ($($t:ty),*) => { $(
        impl Number for $t {
            type Key = $t;

            fn to_key(self) -> $t {
                self
            }

            fn from_key(key: $t) -> $t {
                key
            }

            fn from_plain(bytes: &[u8]) -> Option<$t> {
                bytes.try_into().ok().map(<$t>::from_le_bytes)
            }
        }
    )* };
}

macro_rules! signed_number {
    ($($t:ty => $key:ty),*) => { $(
        impl Number for $t {
            type Key = $key;

            fn to_key(self) -> $key {
                self.cast_unsigned() ^ <$t>::MIN.cast_unsigned()
            }

            fn from_key(key: $key) -> $t {
                (key ^ <$t>::MIN.cast_unsigned()).cast_signed()
            }

            fn from_plain(bytes: &[u8]) -> Option<$t> {
                bytes.try_into().ok().map(<$t>::from_le_bytes)
            }
        }
    )* };
}

// Total order as unsigned: negative numbers (sign bit set) run backwards, so all their bits flip; the others move above.
macro_rules! float_number {
    ($($t:ty => $key:ty),*) => { $(
        impl Number for $t {
            type Key = $key;

            fn to_key(self) -> $key {
                const SIGN: $key = !(<$key>::MAX >> 1);
                let bits = self.to_bits();
                if bits & SIGN == 0 { bits | SIGN } else { !bits }
            }

            fn from_key(key: $key) -> $t {
                const SIGN: $key = !(<$key>::MAX >> 1);
                <$t>::from_bits(if key & SIGN == 0 { !key } else { key & !SIGN })
            }

            fn from_plain(bytes: &[u8]) -> Option<$t> {
                bytes.try_into().ok().map(<$t>::from_le_bytes)
            }

            fn is_nan(self) -> bool {
                <$t>::is_nan(self)
            }

            fn nan() -> Option<$t> {
                Some(<$t>::NAN)
            }
        }
    )* };
}

unsigned_number!(u8, u16, u32, u64);
signed_number!(i8 => u8, i16 => u16, i32 => u32, i64 => u64, i128 => u128);
float_number!(f16 => u16, f32 => u32, f64 => u64);

const TOP: u128 = 1 << 127;

impl Number for i256 {
    type Key = U256;

    fn to_key(self) -> U256 {
        let (low, high) = self.to_parts();
        U256(high.cast_unsigned() ^ TOP, low)
    }

    fn from_key(key: U256) -> i256 {
        i256::from_parts(key.1, (key.0 ^ TOP).cast_signed())
    }

    fn from_plain(bytes: &[u8]) -> Option<i256> {
        bytes.try_into().ok().map(i256::from_le_bytes)
    }
}

/// Runs `$body` with `$n` standing for the native number type of a fixed-width `DataType`; `$other` for every other type.
macro_rules! with_number {
    ($data_type:expr, $n:ident => $body:expr, else $other:expr) => {{
        use arrow::datatypes::{DataType, i256};
        macro_rules! run {
            ($t:ty) => {{
                type $n = $t;
                $body
            }};
        }
        match $data_type {
            DataType::Int8 => run!(i8),
            DataType::Int16 => run!(i16),
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) => run!(i32),
            DataType::Int64 | DataType::Date64 | DataType::Time64(_) | DataType::Timestamp(_, _) | DataType::Duration(_) => {
                run!(i64)
            }
            DataType::UInt8 => run!(u8),
            DataType::UInt16 => run!(u16),
            DataType::UInt32 => run!(u32),
            DataType::UInt64 => run!(u64),
            DataType::Float16 => run!(half::f16),
            DataType::Float32 => run!(f32),
            DataType::Float64 => run!(f64),
            DataType::Decimal128(_, _) => run!(i128),
            DataType::Decimal256(_, _) => run!(i256),
            _ => $other,
        }
    }};
}
pub(crate) use with_number;

/// How two values given as plain bytes (see [`bytes`](super::bytes)) compare.
pub type Comparison = fn(&[u8], &[u8]) -> Ordering;

/// Is a value given as plain bytes a float that is not a number?
pub fn is_nan(data_type: &DataType, bytes: &[u8]) -> bool {
    fn of<N: Number>(bytes: &[u8]) -> bool {
        N::from_plain(bytes).is_some_and(N::is_nan)
    }
    match data_type {
        DataType::Float16 => of::<f16>(bytes),
        DataType::Float32 => of::<f32>(bytes),
        DataType::Float64 => of::<f64>(bytes),
        _ => false,
    }
}

/// The index order of a type's values; `None` for types without one.
pub fn comparison(data_type: &DataType) -> Option<Comparison> {
    fn by_number<N: Number>(left: &[u8], right: &[u8]) -> Ordering {
        N::from_plain(left).map(N::to_key).cmp(&N::from_plain(right).map(N::to_key))
    }
    match data_type {
        DataType::Boolean
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::FixedSizeBinary(_) => Some(|left, right| left.cmp(right)),
        other => with_number!(other, N => Some(by_number::<N>), else None),
    }
}

/// The numbers of a fixed-width array, null slots included, without copying. The caller has matched `N` to the type.
pub fn numbers<N: Number>(array: &dyn arrow::array::Array) -> Option<ScalarBuffer<N>> {
    let data = array.to_data();
    let buffer = data.buffers().first()?.clone();
    let end = data.offset().checked_add(data.len())?.checked_mul(size_of::<N>())?;
    // Both are preconditions of ScalarBuffer::new, which panics; a valid array satisfies them.
    (buffer.len() >= end && buffer.as_ptr().align_offset(align_of::<N>()) == 0)
        .then(|| ScalarBuffer::new(buffer, data.offset(), data.len()))
}

/// Runs `$body` with `$key` giving a row's value in index order; a null is `None` and so before all values. `$other` for types
/// without an order.
macro_rules! with_order {
    ($array:expr, $key:ident => $body:expr, else $other:expr) => {{
        let array: &ArrayRef = $array;
        macro_rules! keyed {
            ($row:ident => $value:expr) => {{
                let $key = |$row: usize| if array.is_valid($row) { $value } else { None };
                $body
            }};
        }
        match array.data_type() {
            DataType::Boolean => keyed!(row => Some(array.as_boolean_opt()?.value(row))),
            DataType::Utf8 => keyed!(row => Some(array.as_string_opt::<i32>()?.value(row).as_bytes())),
            DataType::LargeUtf8 => keyed!(row => Some(array.as_string_opt::<i64>()?.value(row).as_bytes())),
            DataType::Binary => keyed!(row => Some(array.as_binary_opt::<i32>()?.value(row))),
            DataType::LargeBinary => keyed!(row => Some(array.as_binary_opt::<i64>()?.value(row))),
            DataType::FixedSizeBinary(_) => keyed!(row => Some(array.as_fixed_size_binary_opt()?.value(row))),
            other => with_number!(other, N => {
                let numbers = numbers::<N>(array)?;
                keyed!(row => Some(numbers.get(row)?.to_key()))
            }, else $other),
        }
    }};
}

/// The row of the smallest (or with `descending` the largest) value that is not null; of equal ones the first.
/// `None` when there is none, and for types without an order.
pub fn extreme(array: &ArrayRef, descending: bool) -> Option<usize> {
    fn best<K: Ord>(rows: usize, descending: bool, key: impl Fn(usize) -> Option<K>) -> Option<usize> {
        let better = |best: (K, usize), next: (K, usize)| {
            let wins = if descending { next.0 > best.0 } else { next.0 < best.0 };
            if wins { next } else { best }
        };
        (0..rows).filter_map(|row| Some((key(row)?, row))).reduce(better).map(|(_, row)| row)
    }
    with_order!(array, key => best(array.len(), descending, key), else None)
}

/// The first row whose value is smaller than the one before it, nulls first; `None` when all ascend, and for types
/// without an order.
pub fn descent(array: &ArrayRef) -> Option<usize> {
    with_order!(array, key => (1..array.len()).find(|row| key(row - 1) > key(*row)), else None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_ascend<N: Number + std::fmt::Debug + arrow::datatypes::ToByteSlice>(values: &[N]) {
        for value in values {
            assert_eq!(N::from_plain(value.to_byte_slice()).unwrap().to_key(), value.to_key());
            assert!(N::from_plain(&[1; 3]).is_none());
        }
        for pair in values.windows(2) {
            assert!(pair[0].to_key() < pair[1].to_key(), "{:?} before {:?}", pair[0], pair[1]);
        }
        for value in values {
            assert_eq!(N::from_key(value.to_key()).to_key(), value.to_key());
        }
    }

    #[test]
    fn total_order_of_floats() {
        let negative_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63);
        keys_ascend(&[negative_nan, f64::NEG_INFINITY, -1.5, -0.0, 0.0, f64::MIN_POSITIVE, 1.0, f64::INFINITY, f64::NAN]);
        keys_ascend(&[f32::NEG_INFINITY, f32::MIN, -0.0, 0.0, 1.0, f32::INFINITY, f32::NAN]);
        keys_ascend(&[f16::NEG_INFINITY, f16::NEG_ONE, f16::NEG_ZERO, f16::ZERO, f16::ONE, f16::INFINITY, f16::NAN]);
    }

    #[test]
    fn extremes_skip_nulls_and_follow_the_order() {
        use std::sync::Arc;
        let floats: ArrayRef =
            Arc::new(arrow::array::Float64Array::from(vec![None, Some(0.0), Some(-0.0), Some(f64::NAN), Some(7.0)]));
        assert_eq!((extreme(&floats, false), extreme(&floats, true)), (Some(2), Some(3)));
        let texts: ArrayRef = Arc::new(arrow::array::StringArray::from(vec![Some("b"), None, Some("a"), Some("b")]));
        assert_eq!((extreme(&texts, false), extreme(&texts, true)), (Some(2), Some(0)));
        assert_eq!(extreme(&texts.slice(1, 1), false), None);
        assert_eq!((descent(&floats), descent(&floats.slice(2, 2)), descent(&texts)), (Some(2), None, Some(1)));
    }

    #[test]
    fn bytes_compare_as_their_values_do() {
        use std::sync::Arc;

        use crate::index::bytes::ValueBytes;
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(arrow::array::Int32Array::from(vec![i32::MIN, -1, 0, 255, 256, i32::MAX])),
            Arc::new(arrow::array::UInt16Array::from(vec![0, 1, 255, 256, u16::MAX])),
            Arc::new(arrow::array::Float64Array::from(vec![f64::NEG_INFINITY, -1.0, -0.0, 0.0, 5e-324, f64::NAN])),
            Arc::new(arrow::array::Decimal128Array::from(vec![i128::MIN, -1, 0, i128::MAX])),
            Arc::new(arrow::array::BooleanArray::from(vec![false, true])),
            Arc::new(arrow::array::StringArray::from(vec!["", "a", "aa", "b", "é"])),
            Arc::new(arrow::array::TimestampNanosecondArray::from(vec![-5, 3, 256])),
        ];
        for array in arrays {
            let (bytes, compare) = (ValueBytes::new(&array).unwrap(), comparison(array.data_type()).unwrap());
            for left in 0..array.len() {
                for right in 0..array.len() {
                    assert_eq!(compare(bytes.get(left), bytes.get(right)), left.cmp(&right), "{}", array.data_type());
                }
            }
        }
        assert!(comparison(&DataType::new_list(DataType::Int8, true)).is_none());
    }

    #[test]
    fn golden_total_order_keys() {
        // index-formats §18 gives the signed key; ours is the same with the sign bit flipped.
        let signed = |value: f64| (value.to_key() ^ (1 << 63)).cast_signed();
        assert_eq!(signed(1.0), 0x3ff0_0000_0000_0000);
        assert_eq!(signed(-1.0).cast_unsigned(), 0xc00f_ffff_ffff_ffff);
    }

    #[test]
    fn integers_keep_their_order_and_come_back() {
        keys_ascend(&[i8::MIN, -1, 0, 1, i8::MAX]);
        keys_ascend(&[i64::MIN, -1, 0, 1, i64::MAX]);
        keys_ascend(&[0u32, 1, u32::MAX]);
        keys_ascend(&[i128::MIN, -1, 0, 1, i128::MAX]);
        keys_ascend(&[i256::MIN, i256::MINUS_ONE, i256::ZERO, i256::ONE, i256::MAX]);
        for value in [i256::MIN, i256::MINUS_ONE, i256::ONE, i256::MAX] {
            assert_eq!(i256::from_key(value.to_key()), value);
        }
    }

    #[test]
    fn wide_slots_equal_those_of_a_plain_shift() {
        let (min, max) = (i256::from_i128(-5).to_key(), i256::from_parts(7, 1 << 20).to_key());
        assert_eq!(min.bits_to(max), 128 + 21);
        assert_eq!(max.slot(min, 128 + 11), 1 << 9);
        assert_eq!(i256::from_i128(1000).to_key().slot(min, 0), 1005);
        assert_eq!(i256::from_i128(1 << 70).to_key().slot(i256::ZERO.to_key(), 65), 32);
        assert_eq!(7u64.bits_to(7), 0);
        assert_eq!(0u64.bits_to(u64::MAX), 64);
        assert_eq!(u64::MAX.slot(0, 64), 0);
    }
}
