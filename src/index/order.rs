//! The one value order of all index files (index-formats §4): stored integers, IEEE total order for floats.
//!
//! A number is compared through an unsigned key of its own width whose order is the index order. Code is generated for the
//! six widths; what a type's sign means is two masks ([`KeyOrder`]).

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{ArrowNativeType, DataType, i256};

/// An unsigned key: compared, and spread over slots by its distance from a minimum.
pub trait Key: Copy + Ord + Default + std::fmt::Debug {
    /// The number of the same width that Arrow has buffers of.
    type Raw: ArrowNativeType;

    /// The largest key.
    const MAX: Self;
    /// The key with the highest bit only.
    const TOP: Self;

    /// The stored bits as they are.
    fn from_bits(raw: Self::Raw) -> Self;

    /// The inverse of [`Key::from_bits`].
    fn to_bits(self) -> Self::Raw;

    /// The bits of a number whose plain bytes these are; `None` for another count of bytes.
    fn from_plain(bytes: &[u8]) -> Option<Self>;

    /// Bits in one and not in the other.
    fn xor(self, other: Self) -> Self;

    /// `other` when the highest bit is set, otherwise 0.
    fn if_top(self, other: Self) -> Self;

    /// Bits needed for `max - self`; 0 when equal. `self` must not be above `max`.
    fn bits_to(self, max: Self) -> u32;

    /// `(self - min) >> shift`, for differences that fit a `usize` after the shift.
    fn slot(self, min: Self, shift: u32) -> usize;
}

macro_rules! unsigned_key {
    ($($t:ty => $raw:ty),*) => { $(
        impl Key for $t {
            type Raw = $raw;

            const MAX: $t = <$t>::MAX;
            const TOP: $t = !(<$t>::MAX >> 1);

            #[inline(always)]
            fn from_bits(raw: $raw) -> $t {
                raw as $t
            }

            #[inline(always)]
            fn to_bits(self) -> $raw {
                self as $raw
            }

            fn from_plain(bytes: &[u8]) -> Option<$t> {
                bytes.try_into().ok().map(<$t>::from_le_bytes)
            }

            #[inline(always)]
            fn xor(self, other: $t) -> $t {
                self ^ other
            }

            #[inline(always)]
            fn if_top(self, other: $t) -> $t {
                (self.cast_signed() >> (<$t>::BITS - 1)).cast_unsigned() & other
            }

            #[inline(always)]
            fn bits_to(self, max: Self) -> u32 {
                <$t>::BITS - max.wrapping_sub(self).leading_zeros()
            }

            #[inline(always)]
            fn slot(self, min: Self, shift: u32) -> usize {
                self.wrapping_sub(min).checked_shr(shift).unwrap_or(0) as usize
            }
        }
    )* };
}

unsigned_key!(u8 => u8, u16 => u16, u32 => u32, u64 => u64, u128 => i128);

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
    type Raw = i256;

    const MAX: U256 = U256(u128::MAX, u128::MAX);
    const TOP: U256 = U256(u128::TOP, 0);

    fn from_bits(raw: i256) -> U256 {
        let (low, high) = raw.to_parts();
        U256(high.cast_unsigned(), low)
    }

    fn to_bits(self) -> i256 {
        i256::from_parts(self.1, self.0.cast_signed())
    }

    fn from_plain(bytes: &[u8]) -> Option<U256> {
        bytes.try_into().ok().map(|bytes| U256::from_bits(i256::from_le_bytes(bytes)))
    }

    fn xor(self, other: U256) -> U256 {
        U256(self.0 ^ other.0, self.1 ^ other.1)
    }

    fn if_top(self, other: U256) -> U256 {
        U256(self.0.if_top(other.0), self.0.if_top(other.1))
    }

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

/// How the bits of a fixed-width type become keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyOrder<K> {
    /// The sign bit, for types that have one: numbers without it move above those with it.
    sign: K,
    /// The other bits, for floats: below zero they run backwards.
    reversed: K,
    /// Bits of plus infinity and of the NaN that a zone map stores as an upper bound.
    float: Option<(K, K)>,
}

impl<K: Key> KeyOrder<K> {
    fn new(signed: bool, float: bool) -> KeyOrder<K> {
        KeyOrder {
            sign: if signed { K::TOP } else { K::default() },
            reversed: if float { K::MAX.xor(K::TOP) } else { K::default() },
            float: None,
        }
    }

    /// Bits that already are in order.
    pub fn unsigned() -> KeyOrder<K> {
        KeyOrder::new(false, false)
    }

    /// The key of a stored number.
    #[inline(always)]
    pub fn key(&self, raw: K::Raw) -> K {
        let bits = K::from_bits(raw);
        bits.xor(bits.if_top(self.reversed)).xor(self.sign)
    }

    /// The inverse of [`KeyOrder::key`].
    #[inline(always)]
    pub fn raw(&self, key: K) -> K::Raw {
        let bits = key.xor(self.sign);
        bits.xor(bits.if_top(self.reversed)).to_bits()
    }

    /// Is it a float that is not a number? They sort by sign and payload like everything else.
    #[inline(always)]
    pub fn is_nan(&self, raw: K::Raw) -> bool {
        let bits = K::from_bits(raw);
        // Without its sign, a NaN is above infinity.
        self.float.is_some_and(|(infinity, _)| bits.xor(bits.if_top(K::TOP)) > infinity)
    }

    /// The NaN that a zone map stores as the upper bound of a zone holding any NaN; `None` for integers.
    pub fn nan(&self) -> Option<K::Raw> {
        self.float.map(|(_, nan)| nan.to_bits())
    }
}

fn is_unsigned(data_type: &DataType) -> bool {
    matches!(data_type, DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64)
}

fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float16 | DataType::Float32 | DataType::Float64)
}

/// The order of a fixed-width type, `Raw` being the native type of its width.
pub fn key_order<K: Key + TryFrom<u64>>(data_type: &DataType) -> KeyOrder<K> {
    let float = |infinity: u64, nan: u64| Some((K::try_from(infinity).ok()?, K::try_from(nan).ok()?));
    let float = match data_type {
        DataType::Float16 => float(0x7c00, 0x7e00),
        DataType::Float32 => float(0x7f80_0000, 0x7fc0_0000),
        DataType::Float64 => float(0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0000),
        _ => None,
    };
    KeyOrder { float, ..KeyOrder::new(!is_unsigned(data_type), is_float(data_type)) }
}

impl From<u64> for U256 {
    fn from(value: u64) -> U256 {
        U256(0, u128::from(value))
    }
}

/// Runs `$body` with `$k` standing for the [`Key`] of a fixed-width number's width; `$other` for every other type.
macro_rules! with_key {
    ($data_type:expr, $k:ident => $body:expr, else $other:expr) => {{
        use arrow::datatypes::DataType;
        macro_rules! run {
            ($t:ty) => {{
                type $k = $t;
                $body
            }};
        }
        match $data_type {
            DataType::Int8 | DataType::UInt8 => run!(u8),
            DataType::Int16 | DataType::UInt16 | DataType::Float16 => run!(u16),
            DataType::Int32 | DataType::UInt32 | DataType::Float32 | DataType::Date32 | DataType::Time32(_) => run!(u32),
            DataType::Int64
            | DataType::UInt64
            | DataType::Float64
            | DataType::Date64
            | DataType::Time64(_)
            | DataType::Timestamp(_, _)
            | DataType::Duration(_) => run!(u64),
            DataType::Decimal128(_, _) => run!(u128),
            DataType::Decimal256(_, _) => run!($crate::index::order::U256),
            _ => $other,
        }
    }};
}
pub(crate) use with_key;

/// How two values given as plain bytes (see [`bytes`](super::bytes)) compare.
pub type Comparison = fn(&[u8], &[u8]) -> Ordering;

/// Is a value given as plain bytes a float that is not a number?
pub fn is_nan(data_type: &DataType, bytes: &[u8]) -> bool {
    fn of<K: Key + TryFrom<u64>>(data_type: &DataType, bytes: &[u8]) -> bool {
        K::from_plain(bytes).is_some_and(|bits| key_order::<K>(data_type).is_nan(bits.to_bits()))
    }
    match data_type {
        DataType::Float16 => of::<u16>(data_type, bytes),
        DataType::Float32 => of::<u32>(data_type, bytes),
        DataType::Float64 => of::<u64>(data_type, bytes),
        _ => false,
    }
}

/// The index order of a type's values; `None` for types without one.
pub fn comparison(data_type: &DataType) -> Option<Comparison> {
    const UNSIGNED: u8 = 0;
    const SIGNED: u8 = 1;
    const FLOAT: u8 = 2;
    fn by_key<K: Key, const KIND: u8>(left: &[u8], right: &[u8]) -> Ordering {
        let order = KeyOrder::<K>::new(KIND != UNSIGNED, KIND == FLOAT);
        let key = |bytes: &[u8]| K::from_plain(bytes).map(|bits| order.key(bits.to_bits()));
        key(left).cmp(&key(right))
    }
    match data_type {
        DataType::Boolean
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::FixedSizeBinary(_) => Some(|left, right| left.cmp(right)),
        other => with_key!(other, K => Some(match (is_unsigned(other), is_float(other)) {
            (true, _) => by_key::<K, UNSIGNED>,
            (_, true) => by_key::<K, FLOAT>,
            _ => by_key::<K, SIGNED>,
        }), else None),
    }
}

/// The stored bits of a fixed-width array, null slots included, without copying. The caller has matched `K` to the type.
pub fn numbers<K: Key>(array: &dyn arrow::array::Array) -> Option<ScalarBuffer<K::Raw>> {
    let data = array.to_data();
    let buffer = data.buffers().first()?.clone();
    let end = data.offset().checked_add(data.len())?.checked_mul(size_of::<K::Raw>())?;
    // Both are preconditions of ScalarBuffer::new, which panics; a valid array satisfies them.
    (buffer.len() >= end && buffer.as_ptr().align_offset(align_of::<K::Raw>()) == 0)
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
            other => with_key!(other, K => {
                let (numbers, order) = (numbers::<K>(array)?, key_order::<K>(other));
                keyed!(row => Some(order.key(*numbers.get(row)?)))
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
    use arrow::array::{ArrowPrimitiveType, PrimitiveArray};
    use arrow::datatypes::{
        Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type, Int8Type, Int64Type, UInt32Type,
    };
    use half::f16;

    use super::*;

    /// Keys of the values, through an array as everything else gets them.
    fn keys<T: ArrowPrimitiveType, K: Key + TryFrom<u64>>(values: &[T::Native]) -> Vec<K> {
        let array = PrimitiveArray::<T>::from_iter_values(values.iter().copied());
        let order = key_order::<K>(&T::DATA_TYPE);
        let raw = numbers::<K>(&array).unwrap();
        for bits in raw.iter() {
            assert_eq!(order.raw(order.key(*bits)), *bits);
        }
        raw.iter().map(|bits| order.key(*bits)).collect()
    }

    fn ascend<T: ArrowPrimitiveType, K: Key + TryFrom<u64>>(values: &[T::Native]) {
        let keys = keys::<T, K>(values);
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}: {keys:?}");
    }

    #[test]
    fn total_order_of_floats() {
        let negative_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63);
        ascend::<Float64Type, u64>(&[
            negative_nan,
            f64::NEG_INFINITY,
            -1.5,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            1.0,
            f64::INFINITY,
            f64::NAN,
        ]);
        ascend::<Float32Type, u32>(&[f32::NEG_INFINITY, f32::MIN, -0.0, 0.0, 1.0, f32::INFINITY, f32::NAN]);
        let halves = [f16::NEG_INFINITY, f16::NEG_ONE, f16::NEG_ZERO, f16::ZERO, f16::ONE, f16::INFINITY, f16::NAN];
        ascend::<Float16Type, u16>(&halves);
    }

    #[test]
    fn what_is_not_a_number() {
        let order = key_order::<u64>(&DataType::Float64);
        for value in [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)] {
            assert!(order.is_nan(value.to_bits()), "{value}");
        }
        for value in [f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, f64::MAX, -1.0] {
            assert!(!order.is_nan(value.to_bits()), "{value}");
        }
        assert_eq!(order.nan(), Some(f64::NAN.to_bits()));
        assert_eq!(key_order::<u32>(&DataType::Float32).nan(), Some(f32::NAN.to_bits()));
        assert_eq!(key_order::<u16>(&DataType::Float16).nan(), Some(f16::NAN.to_bits()));
        let integers = key_order::<u64>(&DataType::Int64);
        assert!(!integers.is_nan(u64::MAX) && integers.nan().is_none());
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
        let signed: Vec<u64> = keys::<Float64Type, u64>(&[1.0, -1.0]).into_iter().map(|key| key ^ (1 << 63)).collect();
        assert_eq!(signed, [0x3ff0_0000_0000_0000, 0xc00f_ffff_ffff_ffff]);
    }

    #[test]
    fn integers_keep_their_order_and_come_back() {
        ascend::<Int8Type, u8>(&[i8::MIN, -1, 0, 1, i8::MAX]);
        ascend::<Int64Type, u64>(&[i64::MIN, -1, 0, 1, i64::MAX]);
        ascend::<UInt32Type, u32>(&[0u32, 1, u32::MAX]);
        ascend::<Decimal128Type, u128>(&[i128::MIN, -1, 0, 1, i128::MAX]);
        ascend::<Decimal256Type, U256>(&[i256::MIN, i256::MINUS_ONE, i256::ZERO, i256::ONE, i256::MAX]);
    }

    #[test]
    fn wide_slots_equal_those_of_a_plain_shift() {
        let order = key_order::<U256>(&DataType::Decimal256(76, 0));
        let key = |value| order.key(value);
        let (min, max) = (key(i256::from_i128(-5)), key(i256::from_parts(7, 1 << 20)));
        assert_eq!(min.bits_to(max), 128 + 21);
        assert_eq!(max.slot(min, 128 + 11), 1 << 9);
        assert_eq!(key(i256::from_i128(1000)).slot(min, 0), 1005);
        assert_eq!(key(i256::from_i128(1 << 70)).slot(key(i256::ZERO), 65), 32);
        assert_eq!(7u64.bits_to(7), 0);
        assert_eq!(0u64.bits_to(u64::MAX), 64);
        assert_eq!(u64::MAX.slot(0, 64), 0);
    }
}
