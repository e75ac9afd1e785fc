//! A segment built in passes is the segment built in one go, to the byte.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Decimal256Array, FixedSizeBinaryArray, Int8Array, Int64Array, ListArray, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, i256};
use serde_json::json;

use crate::index::testing::Random;
use crate::index::{BuildSpec, BuiltIndex, SegmentBuilder, method_by_name};
use crate::table::scan::{BatchRows, ColumnBatch};

/// How the ids of a column's rows go.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ids {
    Addresses,
    /// As stable row ids may: up and down.
    Mixed,
}

fn batches(values: &ArrayRef, ids: Ids) -> Vec<ColumnBatch> {
    const ROWS: usize = 30_000;
    let id = |row: usize| (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    (0..values.len())
        .step_by(ROWS)
        .map(|start| {
            let length = ROWS.min(values.len() - start);
            let rows = match ids {
                Ids::Addresses => BatchRows::Range { start: start as u64 },
                Ids::Mixed => BatchRows::List((start..start + length).map(id).collect()),
            };
            ColumnBatch { fragment: 0, values: values.slice(start, length), rows }
        })
        .collect()
}

fn builder(method: &str, values: &ArrayRef, logical_type: &str) -> Box<dyn SegmentBuilder> {
    let method = method_by_name(method).unwrap();
    method
        .builder(BuildSpec {
            data_type: values.data_type().clone(),
            logical_type: logical_type.to_owned(),
            params: method.default_params(),
            index_version: method.max_index_version(),
            rows_hint: Some(values.len() as u64),
        })
        .unwrap()
}

/// Builds while holding no more than `limit` bytes; how many passes that took.
fn build(method: &str, values: &ArrayRef, logical_type: &str, ids: Ids, limit: u64) -> Option<(BuiltIndex, u64)> {
    let mut builder = builder(method, values, logical_type);
    let batches = batches(values, ids);
    for pass in 1..=40 {
        for batch in &batches {
            builder.push(batch.clone()).unwrap();
            while builder.memory_bytes() > limit {
                if !builder.narrow().unwrap() {
                    return None;
                }
            }
        }
        if !builder.again().unwrap() {
            return Some((builder.finish().unwrap(), pass));
        }
    }
    // Hardly anything fits beside the files.
    None
}

/// Compares the segment built in one go with those built under half of what that took and under less, as far as that goes.
fn check(method: &str, values: &ArrayRef, logical_type: &str, ids: Ids) {
    let at = format!("{method} of {logical_type}, {} rows, {ids:?}", values.len());
    let mut whole = builder(method, values, logical_type);
    batches(values, ids).into_iter().for_each(|batch| whole.push(batch).unwrap());
    let needed = whole.memory_bytes();
    let whole = whole.finish().unwrap();
    let size: u64 = whole.files.iter().map(|(_, file)| file.size).sum();
    let mut most = 0;
    for sixteenths in [13, 7] {
        let limit = size + (needed - size.min(needed)) * sixteenths / 16;
        let Some((built, passes)) = build(method, values, logical_type, ids, limit) else { continue };
        assert_eq!(built.rows, whole.rows, "{at}");
        for ((name, file), (_, expected)) in built.files.iter().zip(&whole.files) {
            assert!(file.to_bytes() == expected.to_bytes(), "{at}: {name} differs after {passes} passes");
        }
        assert_eq!((built.files.len(), &built.stats), (whole.files.len(), &whole.stats), "{at}");
        most = most.max(passes);
    }
    println!("{at}: {most} passes");
    assert!(most > 1, "{at}: never in passes");
}

fn column(logical_type: &str, rows: usize, random: &mut Random) -> ArrayRef {
    let raw: Vec<Option<u64>> = (0..rows).map(|_| (random.below(9) > 0).then(|| random.next())).collect();
    match logical_type {
        "int64" => Arc::new(Int64Array::from_iter(raw.iter().map(|raw| raw.map(|raw| raw as i64)))),
        "int8" => Arc::new(Int8Array::from_iter(raw.iter().map(|raw| raw.map(|raw| raw as i8)))),
        "decimal:256:76:3" => {
            let values = raw.iter().map(|raw| raw.map(|raw| i256::from_i128(i128::from(raw as i64) << 50)));
            Arc::new(Decimal256Array::from_iter(values).with_precision_and_scale(76, 3).unwrap())
        }
        "fixed_size_binary:5" => {
            let values = raw.iter().map(|raw| raw.map(|raw| raw.to_be_bytes()[..5].to_vec()));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 5).unwrap())
        }
        // Short strings are sorted as numbers, others by their bytes.
        "string" => Arc::new(StringArray::from_iter(raw.iter().map(|raw| raw.map(|raw| format!("user{}", raw % 100_000))))),
        "texts" => Arc::new(StringArray::from_iter(
            raw.iter()
                .map(|raw| raw.map(|raw| format!("{} {:x}", ["a long way", "over the hills"][(raw % 2) as usize], raw >> 9))),
        )),
        other => panic!("{other}"),
    }
}

#[test]
fn btree_of_every_kind_of_value() {
    let mut random = Random(11);
    // Over a page of eight-byte values and of texts, so that pages fill up over passes.
    for (kind, logical_type, rows) in [
        ("int64", "int64", 400_000),
        ("decimal:256:76:3", "decimal:256:76:3", 60_000),
        ("fixed_size_binary:5", "fixed_size_binary:5", 500_000),
        ("string", "string", 300_000),
        ("texts", "string", 100_000),
    ] {
        check("BTREE", &column(kind, rows, &mut random), logical_type, Ids::Addresses);
    }
    for (kind, logical_type, rows) in [("int64", "int64", 400_000), ("texts", "string", 100_000)] {
        check("BTREE", &column(kind, rows, &mut random), logical_type, Ids::Mixed);
    }
}

#[test]
fn ten_million_equal_values_and_sorted_ones() {
    let equal: ArrayRef = Arc::new(Int8Array::from(vec![7; 10_000_000]));
    let (built, passes) = build("BTREE", &equal, "int8", Ids::Addresses, u64::MAX).unwrap();
    assert_eq!((built.rows, passes), (10_000_000, 1));
    check("BTREE", &equal.slice(0, 3_000_000), "int8", Ids::Addresses);
    let ascending: ArrayRef = Arc::new(Int64Array::from_iter_values(0..300_000));
    check("BTREE", &ascending, "int64", Ids::Addresses);
    let descending: ArrayRef = Arc::new(Int64Array::from_iter_values((0..300_000).rev()));
    check("BTREE", &descending, "int64", Ids::Addresses);
    // All rows of one key are one bitmap, which cannot be built in part.
    let mut whole = builder("BITMAP", &equal, "int8");
    batches(&equal, Ids::Addresses).into_iter().for_each(|batch| whole.push(batch).unwrap());
    let needed = whole.memory_bytes();
    assert!(needed < 30_000_000, "{needed}");
    assert!(build("BITMAP", &equal, "int8", Ids::Addresses, needed).is_some());
    assert!(build("BITMAP", &equal, "int8", Ids::Addresses, needed / 4).is_none());
}

#[test]
fn one_giant_value() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a".to_owned()), Some("g".repeat(20 << 20)), None]));
    for method in ["BTREE", "BITMAP"] {
        assert!(build(method, &texts, "string", Ids::Addresses, 8 << 20).is_none(), "{method}");
        let (built, passes) = build(method, &texts, "string", Ids::Addresses, 128 << 20).unwrap();
        assert_eq!((built.rows, passes), (3, 1), "{method}");
    }
    // It has five trigrams at most, and none of it is held.
    let (built, _) = build("NGRAM", &texts, "string", Ids::Addresses, 8 << 20).unwrap();
    assert_eq!(built.rows, 3);
}

#[test]
fn bitmaps_and_trigrams() {
    let mut random = Random(12);
    for ids in [Ids::Addresses, Ids::Mixed] {
        check("BITMAP", &column("int64", 100_000, &mut random), "int64", ids);
        check("BITMAP", &column("string", 200_000, &mut random), "string", ids);
        check("BITMAP", &column("int8", 100_000, &mut random), "int8", ids);
        check("NGRAM", &column("texts", 60_000, &mut random), "string", ids);
    }
}

#[test]
fn label_lists() {
    let mut random = Random(13);
    let rows = 100_000;
    let ends: Vec<usize> = (0..rows).map(|_| random.below(5) as usize).collect();
    let items: Vec<Option<String>> =
        (0..ends.iter().sum()).map(|_| (random.below(20) > 0).then(|| format!("label {}", random.below(20_000)))).collect();
    let nulls = (0..rows).map(|_| random.below(10) > 0).collect::<Vec<bool>>().into();
    let field = Arc::new(Field::new("item", DataType::Utf8, true));
    let items = Arc::new(StringArray::from(items));
    let lists: ArrayRef = Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(ends), items, Some(nulls)));
    for ids in [Ids::Addresses, Ids::Mixed] {
        check("LABEL_LIST", &lists, "list", ids);
    }
}

#[test]
fn full_text_goes_into_partitions() {
    let mut random = Random(14);
    let texts = (0..40_000).map(|_| (0..20).map(|_| format!("w{}", random.below(60) * random.below(60))).collect::<Vec<_>>());
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts.map(|words| words.join(" "))));
    let mut whole = builder("INVERTED", &texts, "string");
    batches(&texts, Ids::Addresses).into_iter().for_each(|batch| whole.push(batch).unwrap());
    let needed = whole.memory_bytes();
    let whole = whole.finish().unwrap();
    let (built, passes) = build("INVERTED", &texts, "string", Ids::Addresses, needed * 7 / 10).unwrap();
    assert_eq!(passes, 1);
    assert!(built.stats["partitions"].as_u64() > Some(1));
    assert_eq!(
        (&built.stats["documents"], &built.stats["total_tokens"]),
        (&whole.stats["documents"], &whole.stats["total_tokens"])
    );
    assert_eq!(built.details, whole.details);
}

#[test]
fn nulls_alone() {
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![None; 100_000]));
    for method in ["BTREE", "BITMAP"] {
        let (whole, _) = build(method, &nulls, "int64", Ids::Addresses, u64::MAX).unwrap();
        assert_eq!(whole.stats["nulls"], json!(100_000));
        assert!(build(method, &nulls, "int64", Ids::Addresses, 1000).is_none(), "{method}");
    }
}
