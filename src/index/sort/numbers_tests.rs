use arrow::array::{ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float16Type, Float32Type, Float64Type, Int8Type, Int32Type, Int64Type, TimestampMicrosecondType,
    UInt16Type, UInt64Type,
};
use half::f16;

use super::*;
use crate::index::sort::sorter;
use crate::index::testing::Random;

/// Shapes of data that take different ways through the sort.
const SHAPES: [&str; 9] = ["random", "sorted", "reversed", "few", "skewed", "equal", "nulls", "one", "none"];

/// Raw 64-bit patterns of a shape; the test maps them into its type.
fn shape(name: &str, rows: usize, random: &mut Random) -> Vec<Option<u64>> {
    let mut values: Vec<Option<u64>> = match name {
        "one" => vec![Some(random.next())],
        "none" => vec![],
        "few" => (0..rows).map(|_| Some(random.below(5).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect(),
        // Nearly all within a few values, some anywhere: one bucket of the first scatter takes almost everything.
        "skewed" => (0..rows).map(|_| Some(if random.below(1000) == 0 { random.next() } else { random.below(60_000) })).collect(),
        "equal" => vec![Some(42); rows],
        "nulls" => (0..rows).map(|_| if random.below(3) == 0 { None } else { Some(random.next()) }).collect(),
        _ => (0..rows).map(|_| Some(random.next())).collect(),
    };
    match name {
        "sorted" => values.sort(),
        "reversed" => {
            values.sort();
            values.reverse();
        }
        _ => {}
    }
    values
}

/// Feeds `values` in uneven batches, some by range and some by list, and returns (value, id) in the sorter's order.
fn sort<T: ArrowPrimitiveType>(values: &[Option<T::Native>], mixed: bool, random: &mut Random) -> Vec<(T::Native, u64)> {
    let mut sorter = sorter(&T::DATA_TYPE).unwrap();
    let mut start = 0;
    while start < values.len() {
        let length = (1 + random.below(70_000) as usize).min(values.len() - start);
        let array: ArrayRef = Arc::new(PrimitiveArray::<T>::from_iter(values[start..start + length].iter().copied()));
        let rows = if !mixed && random.below(2) == 0 {
            BatchRows::Range { start: id_of(start, false) }
        } else {
            BatchRows::List((start..start + length).map(|row| id_of(row, mixed)).collect())
        };
        sorter.push(&array, rows).unwrap();
        start += length;
    }
    assert!(sorter.memory_bytes() >= values.iter().flatten().count() as u64 * (size_of::<T::Native>() as u64 + 8));
    let sorted = sorter.finish().unwrap();
    let pages: Vec<ArrayRef> = sorted.pages.map(Result::unwrap).collect();
    let values = pages.iter().flat_map(|page| page.as_primitive::<T>().values().to_vec());
    let rows: Vec<_> = values.zip(sorted.ids.iter().copied()).collect();
    assert_eq!(rows.len(), sorted.ids.len());
    rows
}

/// The id of a row; mixed ones go up and down.
fn id_of(row: usize, mixed: bool) -> u64 {
    (7 << 32) + if mixed { row as u64 ^ 5 } else { row as u64 }
}

/// Compares with the standard sort by `order`: same order of values, those of one value by their ids.
fn check<T: ArrowPrimitiveType>(
    rows: usize,
    map: impl Fn(u64) -> T::Native,
    order: impl Fn(&T::Native, &T::Native) -> std::cmp::Ordering,
) {
    let mut random = Random(rows as u64);
    for name in SHAPES {
        let values: Vec<Option<T::Native>> = shape(name, rows, &mut random).into_iter().map(|bits| bits.map(&map)).collect();
        let mixed = random.below(2) == 0;
        let got = sort::<T>(&values, mixed, &mut random);
        let mut expected: Vec<(T::Native, u64)> =
            values.iter().enumerate().filter_map(|(row, value)| value.map(|value| (value, id_of(row, mixed)))).collect();
        expected.sort_by(|a, b| order(&a.0, &b.0).then(a.1.cmp(&b.1)));
        assert_eq!(got.len(), expected.len(), "{name}");
        for (got, expected) in got.iter().zip(&expected) {
            assert_eq!(got.1, expected.1, "{name}");
            assert!(order(&got.0, &expected.0).is_eq(), "{name}");
        }
    }
}

#[test]
fn integers_of_every_width() {
    check::<Int64Type>(80_000, |bits| bits as i64, i64::cmp);
    check::<UInt64Type>(10_000, |bits| bits, u64::cmp);
    check::<Int32Type>(20_000, |bits| bits as i32, i32::cmp);
    check::<UInt16Type>(70_000, |bits| bits as u16, u16::cmp);
    check::<Int8Type>(20_000, |bits| bits as i8, i8::cmp);
    check::<Decimal128Type>(10_000, |bits| i128::from(bits as i64) << 40, i128::cmp);
}

#[test]
fn times() {
    check::<Date32Type>(10_000, |bits| bits as i32, i32::cmp);
    check::<TimestampMicrosecondType>(10_000, |bits| (bits >> 20) as i64, i64::cmp);
}

#[test]
fn floats_by_total_order() {
    // Every eighth pattern becomes one of the values that partial orders get wrong.
    let odd = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, -f64::NAN, f64::MIN_POSITIVE, -1.0];
    let pick = |bits: u64| if bits.is_multiple_of(8) { odd[(bits / 8 % 8) as usize] } else { f64::from_bits(bits) };
    check::<Float64Type>(20_000, pick, f64::total_cmp);
    check::<Float32Type>(
        10_000,
        |bits| if bits.is_multiple_of(8) { pick(bits) as f32 } else { f32::from_bits(bits as u32) },
        f32::total_cmp,
    );
    check::<Float16Type>(20_000, |bits| f16::from_bits(bits as u16), f16::total_cmp);
}

#[test]
fn small_inputs() {
    for rows in [1, 2, 3, 15, 16, 17, 100, 8192, 8193] {
        check::<Int64Type>(rows, |bits| bits as i64, i64::cmp);
    }
}

#[test]
fn a_value_that_holds_nearly_everything_does_not_stall() {
    // Exponential spread: each division peels off only the outermost values.
    let mut random = Random(5);
    let values: Vec<Option<i64>> = (0..150_000).map(|row| Some(if row % 2 == 0 { 1 << (random.below(62)) } else { 0 })).collect();
    let got = sort::<Int64Type>(&values, false, &mut random);
    assert!(got.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    let mut ids: Vec<u64> = got.iter().map(|row| row.1).collect();
    ids.sort_unstable();
    assert!(ids.iter().copied().eq((0..150_000).map(|row| id_of(row, false))));
    assert!(got.iter().all(|(value, id)| values[(*id - id_of(0, false)) as usize] == Some(*value)));
}

#[test]
fn pages_are_cut_by_bytes() {
    let mut sorter = sorter(&DataType::Int64).unwrap();
    let rows = PAGE_BYTES / 8 + 1;
    let array: ArrayRef = Arc::new(PrimitiveArray::<Int64Type>::from_iter_values((0..rows as i64).rev()));
    sorter.push(&array, BatchRows::Range { start: 0 }).unwrap();
    let sorted = sorter.finish().unwrap();
    let pages: Vec<ArrayRef> = sorted.pages.map(Result::unwrap).collect();
    assert_eq!(pages.iter().map(|page| page.len()).collect::<Vec<_>>(), [PAGE_BYTES / 8, 1]);
}

#[test]
fn booleans() {
    let mut sorter = sorter(&DataType::Boolean).unwrap();
    let array: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true), Some(false)]));
    sorter.push(&array, BatchRows::Range { start: 10 }).unwrap();
    let sorted = sorter.finish().unwrap();
    let pages: Vec<ArrayRef> = sorted.pages.map(Result::unwrap).collect();
    assert_eq!(sorted.ids.to_vec(), [12, 14, 10, 13]);
    assert_eq!(pages[0].as_boolean(), &BooleanArray::from(vec![false, false, true, true]));
}

#[test]
fn a_batch_of_another_type_is_refused() {
    let mut sorter = sorter(&DataType::Int64).unwrap();
    let array: ArrayRef = Arc::new(PrimitiveArray::<UInt64Type>::from(vec![1]));
    assert_eq!(sorter.push(&array, BatchRows::Range { start: 0 }).unwrap_err().code(), ErrorCode::InvalidArgument);
}
