use std::sync::Arc;

use arrow::array::{AsArray, BinaryArray, FixedSizeBinaryArray, LargeBinaryArray, LargeStringArray, StringArray};

use super::*;
use crate::index::sort::{PAGE_BYTES, sorter};
use crate::index::testing::Random;

fn text(random: &mut Random, longest: u64, letters: u64) -> Vec<u8> {
    (0..random.below(longest + 1)).map(|_| b'a' + random.below(letters) as u8).collect()
}

/// Data that takes different ways through the sort.
fn shapes(rows: usize, random: &mut Random) -> Vec<(&'static str, Vec<Option<Vec<u8>>>)> {
    let some = |value: String| Some(value.into_bytes());
    let mut keys: Vec<_> = (0..rows).map(|_| some(format!("user_{:010}", random.below(1 << 40)))).collect();
    let random_keys = keys.clone();
    keys.sort();
    let mut reversed = keys.clone();
    reversed.reverse();
    // A long common start after the first byte, except for one outlier: prefixes tell nothing until the second level.
    let mut urls: Vec<_> = (0..rows)
        .map(|_| {
            some(format!(
                "http{}://www.example.org/some/where/{}",
                if random.below(2) == 0 { "s" } else { "" },
                random.below(1 << 30)
            ))
        })
        .collect();
    if let Some(first) = urls.first_mut() {
        *first = some("x".to_owned());
    }
    vec![
        ("random keys", random_keys),
        ("sorted", keys),
        ("reversed", reversed),
        ("letters", (0..rows).map(|_| Some(text(random, 12, 3))).collect()),
        ("few", (0..rows).map(|_| some(format!("https://tenant-{}.example.org", random.below(4)))).collect()),
        (
            "mostly one",
            (0..rows).map(|_| if random.below(50) == 0 { Some(text(random, 20, 26)) } else { some("same".to_owned()) }).collect(),
        ),
        ("equal", vec![some("the same text".to_owned()); rows]),
        ("empty", vec![Some(Vec::new()); rows]),
        // Equal after padding with zeros: only lengths tell them apart.
        ("zeros", (0..rows).map(|_| Some(vec![0; random.below(20) as usize])).collect()),
        ("urls", urls),
        ("nulls", (0..rows).map(|_| if random.below(3) == 0 { None } else { Some(text(random, 30, 26)) }).collect()),
    ]
}

fn array(data_type: &DataType, values: &[Option<Vec<u8>>]) -> ArrayRef {
    let bytes = || values.iter().map(Option::as_deref);
    let text = || bytes().map(|value| value.map(|value| std::str::from_utf8(value).unwrap()));
    match data_type {
        DataType::Utf8 => Arc::new(StringArray::from_iter(text())),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from_iter(text())),
        DataType::Binary => Arc::new(BinaryArray::from_iter(bytes())),
        DataType::LargeBinary => Arc::new(LargeBinaryArray::from_iter(bytes())),
        DataType::FixedSizeBinary(width) => {
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes(), *width).unwrap())
        }
        other => panic!("{other}"),
    }
}

fn sort(data_type: &DataType, values: &[Option<Vec<u8>>], mixed: bool, random: &mut Random) -> Vec<(Vec<u8>, u64)> {
    let mut sorter = sorter(data_type).unwrap();
    let mut start = 0;
    while start < values.len() {
        let length = (1 + random.below(40_000) as usize).min(values.len() - start);
        // A slice, so that offsets do not start at 0.
        let whole = array(data_type, &values[start.saturating_sub(1)..start + length]);
        let part = whole.slice(whole.len() - length, length);
        let rows = if !mixed && random.below(2) == 0 {
            BatchRows::Range { start: start as u64 }
        } else {
            BatchRows::List((start..start + length).map(|row| id_of(row, mixed)).collect())
        };
        sorter.push(&part, rows).unwrap();
        start += length;
    }
    let sorted = sorter.finish().unwrap();
    let pages: Vec<ArrayRef> = sorted.pages.map(Result::unwrap).collect();
    let mut found = Vec::new();
    for page in &pages {
        assert_eq!(page.data_type(), data_type);
        assert_eq!(page.null_count(), 0);
        match data_type {
            DataType::Utf8 => found.extend(page.as_string::<i32>().iter().map(|v| v.unwrap().as_bytes().to_vec())),
            DataType::LargeUtf8 => found.extend(page.as_string::<i64>().iter().map(|v| v.unwrap().as_bytes().to_vec())),
            DataType::Binary => found.extend(page.as_binary::<i32>().iter().map(|v| v.unwrap().to_vec())),
            DataType::LargeBinary => found.extend(page.as_binary::<i64>().iter().map(|v| v.unwrap().to_vec())),
            _ => found.extend(page.as_fixed_size_binary().iter().map(|v| v.unwrap().to_vec())),
        }
    }
    assert_eq!(found.len(), sorted.ids.len());
    found.into_iter().zip(sorted.ids.iter().copied()).collect()
}

/// The id of a row; mixed ones go up and down.
fn id_of(row: usize, mixed: bool) -> u64 {
    if mixed { row as u64 ^ 5 } else { row as u64 }
}

fn check(data_type: &DataType, name: &str, values: &[Option<Vec<u8>>], random: &mut Random) {
    let mixed = random.below(2) == 0;
    let got = sort(data_type, values, mixed, random);
    let mut expected: Vec<(Vec<u8>, u64)> =
        values.iter().enumerate().filter_map(|(row, value)| value.clone().map(|value| (value, id_of(row, mixed)))).collect();
    expected.sort();
    assert!(got.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{data_type} {name}: out of order");
    assert!(got == expected, "{data_type} {name}: other rows");
}

#[test]
fn strings_and_binaries_of_every_shape() {
    for rows in [0, 1, 2, 100, 80_000] {
        let mut random = Random(rows as u64 + 1);
        for (name, values) in shapes(rows, &mut random) {
            check(&DataType::Utf8, name, &values, &mut random);
            if rows <= 100 {
                for data_type in [DataType::LargeUtf8, DataType::Binary, DataType::LargeBinary] {
                    check(&data_type, name, &values, &mut random);
                }
            }
        }
    }
}

#[test]
fn bytes_compare_unsigned() {
    let mut random = Random(3);
    let values: Vec<_> = (0..5000).map(|_| Some(random.next().to_be_bytes()[..random.below(9) as usize].to_vec())).collect();
    check(&DataType::Binary, "bytes", &values, &mut random);
    let fixed: Vec<_> = (0..5000).map(|_| (random.below(9) > 0).then(|| random.next().to_be_bytes()[..5].to_vec())).collect();
    check(&DataType::FixedSizeBinary(5), "fixed", &fixed, &mut random);
}

#[test]
fn pages_are_cut_by_bytes_and_a_long_value_stands_alone() {
    let mut random = Random(4);
    let long = Some(vec![b'm'; PAGE_BYTES + 10]);
    let values = vec![Some(b"z".to_vec()), long.clone(), Some(b"a".to_vec()), Some(b"b".to_vec())];
    check(&DataType::Utf8, "long", &values, &mut random);
    let mut sorter = sorter(&DataType::Utf8).unwrap();
    sorter.push(&array(&DataType::Utf8, &values), BatchRows::Range { start: 0 }).unwrap();
    let sorted = sorter.finish().unwrap();
    let pages: Vec<ArrayRef> = sorted.pages.map(Result::unwrap).collect();
    assert_eq!(pages.iter().map(|page| page.len()).collect::<Vec<_>>(), [2, 1, 1]);
}
