use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array, LargeStringArray, StringArray};
use arrow::datatypes::UInt64Type;
use futures::executor::block_on;
use serde_json::json;

use super::filter::{BLOCK, insert, may_contain, size};
use super::*;
use crate::error::ErrorCode;
use crate::format::schema::scalar_type;
use crate::index::bytes::ValueBytes;
use crate::index::testing::{Random, Rows, build, column, metadata, parts, store};
use crate::index::zones::NULL_BITMAP;
use crate::table::scan::{BatchRows, ColumnBatch};

fn params(items: u64, probability: f64) -> Params {
    Params::from_iter([(NUMBER_OF_ITEMS.to_owned(), items.into()), (PROBABILITY.to_owned(), probability.into())])
}

fn u64s(segment: &SegmentFiles, name: &str) -> Vec<u64> {
    column(segment, FILE, name, &DataType::UInt64, false).as_primitive::<UInt64Type>().values().to_vec()
}

fn placed(segment: &SegmentFiles) -> Vec<(u64, u64, u64)> {
    let (fragments, starts) = (u64s(segment, "fragment_id"), u64s(segment, "zone_start"));
    fragments.into_iter().zip(starts).zip(u64s(segment, "zone_length")).map(|((f, s), l)| (f, s, l)).collect()
}

/// Every zone as a model of index-formats §8 has it.
fn check(logical_type: &str, items: usize, probability: f64, rows: &[Rows], random: &mut Random) {
    let data_type = scalar_type(logical_type).unwrap();
    let built = build(&BloomFilter, logical_type, 0, &params(items as u64, probability), rows, random);
    assert_eq!(built.details, IndexDetails { type_url: TYPE_URL.to_owned(), value: Bytes::new() });
    let segment = store(&built);
    let filters = column(&segment, FILE, "bloom_filter_data", &DataType::Binary, false);
    let flags = column(&segment, FILE, "has_null", &DataType::Boolean, false);
    let (mut places, mut nulls) = (vec![], vec![]);
    let mut ascending: Vec<&Rows> = rows.iter().collect();
    ascending.sort_by_key(|rows| rows.fragment);
    for fragment in ascending {
        assert_eq!(fragment.values.data_type(), &data_type);
        let bytes = ValueBytes::new(&fragment.values).unwrap();
        for start in (0..fragment.offsets.len()).step_by(items) {
            let end = (start + items).min(fragment.offsets.len());
            let mut filter = vec![0; size(items as u64, probability)];
            for row in start..end {
                if fragment.values.is_valid(row) {
                    insert(&mut filter, bytes.get(row));
                } else {
                    nulls.push(fragment.address(row));
                }
            }
            let zone = places.len();
            assert!(filters.as_binary::<i32>().value(zone) == filter, "{logical_type} filter {zone}");
            let null = (start..end).any(|row| fragment.values.is_null(row));
            assert_eq!(flags.as_boolean().value(zone), null, "{logical_type} zone {zone}");
            let (first, last) = (fragment.offsets[start], fragment.offsets[end - 1]);
            places.push((u64::from(fragment.fragment), u64::from(first), u64::from(last - first + 1)));
        }
    }
    assert_eq!(placed(&segment), places);
    assert!(block_on(BloomFilter.stored_rows(&segment)).unwrap().iter().eq(nulls));
    let expected = [(META_ITEMS, items.to_string()), (META_PROBABILITY, probability.to_string()), (NULL_BITMAP, "1".to_owned())];
    assert_eq!(metadata(&segment, FILE), expected.map(|(key, value)| (key.to_owned(), value)));
    assert_eq!(block_on(BloomFilter.recover_params(&segment)).unwrap(), params(items as u64, probability));
    assert_eq!(block_on(BloomFilter.inspect(&segment)).unwrap()["problems"], json!([]), "{logical_type}");
}

#[test]
fn every_kind_of_value_reads_back_as_the_model_says() {
    let mut random = Random(4);
    let raw: Vec<Option<u64>> = (0..3000).map(|_| (random.below(5) > 0).then(|| random.next())).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("int32", Arc::new(Int32Array::from_iter(raw.iter().map(|v| v.map(|v| v as i32 % 90))))),
        ("double", Arc::new(Float64Array::from_iter(raw.iter().map(|v| v.map(|v| if v % 9 == 0 { -0.0 } else { v as f64 }))))),
        ("string", Arc::new(StringArray::from_iter(raw.iter().map(|v| v.map(|v| format!("{v:x}")))))),
        ("large_string", Arc::new(LargeStringArray::from_iter(raw.iter().map(|v| v.map(|v| "y".repeat((v % 70) as usize)))))),
    ];
    for (logical_type, values) in columns {
        let rows = [
            Rows::without(7, &values, |offset| offset % 5 == 0 || (1000..1400).contains(&offset)),
            Rows::dense(3, values.slice(100, 900)),
            Rows::without(4, &values, |_| true),
        ];
        // One zone in 4 MiB fills a page; zones of many pages are put in the order of fragments.
        for (items, probability) in [(1, 0.5), (64, 0.01), (8192, 0.00057), (400, 1e-300)] {
            check(logical_type, items, probability, if items == 400 { &rows[1..2] } else { &rows }, &mut random);
        }
    }
}

#[test]
fn an_empty_segment_keeps_its_parameters() {
    let mut random = Random(6);
    let segment = store(&build(&BloomFilter, "string", 0, &params(5, 0.25), &[], &mut random));
    assert_eq!(placed(&segment), []);
    assert_eq!(block_on(BloomFilter.recover_params(&segment)).unwrap(), params(5, 0.25));
    let seen = block_on(BloomFilter.inspect(&segment)).unwrap();
    assert_eq!((&seen["zones"], &seen["false_positive_estimate"]), (&json!(0), &json!(null)));
}

#[test]
fn a_copy_loses_null_rows_and_whole_zones_only() {
    let mut random = Random(7);
    let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(5), None, None, Some(1), None, Some(7)]));
    let rows = [Rows::dense(0, values.clone()), Rows::dense(1, values.clone()), Rows::dense(2, values)];
    let segment = store(&build(&BloomFilter, "int32", 0, &params(3, 0.01), &rows, &mut random));
    // All of fragment 1, and the nulls of fragment 2's first zone.
    let drop = |address: u64| address >> 32 == 1 || address == (2 << 32) + 1 || address == (2 << 32) + 2;
    let copy = store(
        &block_on(BloomFilter.copy_placed(&segment, &DataType::Int32, &|row| (!drop(row)).then_some(row))).unwrap().unwrap(),
    );
    assert_eq!(placed(&copy), [(0, 0, 3), (0, 3, 3), (2, 0, 3), (2, 3, 3)]);
    let flags = column(&copy, FILE, "has_null", &DataType::Boolean, false);
    assert!(flags.as_boolean().values().iter().eq([true, true, false, true]));
    let filters = column(&copy, FILE, "bloom_filter_data", &DataType::Binary, false);
    for (zone, value) in [(0, 5i32), (1, 1), (1, 7), (2, 5), (3, 7)] {
        assert!(may_contain(filters.as_binary::<i32>().value(zone), &value.to_le_bytes()));
    }
    let stored: Vec<u64> = block_on(BloomFilter.stored_rows(&copy)).unwrap().iter().collect();
    assert_eq!(stored, [1, 2, 4, (2 << 32) + 4]);
    assert_eq!(block_on(BloomFilter.inspect(&copy)).unwrap()["problems"], json!([]));
}

#[test]
fn inspection() {
    let mut random = Random(8);
    let values: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b"), Some("c")]));
    let segment = store(&build(&BloomFilter, "string", 0, &params(2, 0.1), &[Rows::dense(6, values)], &mut random));
    let seen = block_on(BloomFilter.inspect(&segment)).unwrap();
    assert!(seen["false_positive_estimate"].as_f64().is_some_and(|rate| rate > 0.0 && rate < 1e-6), "{seen}");
    let mut seen = seen;
    seen["false_positive_estimate"] = json!(0);
    assert_eq!(
        seen,
        json!({
            "method": "BLOOMFILTER", "index_version": 0, "number_of_items": 2, "probability": 0.1, "zones": 2, "fragments": [6],
            "filter_bytes": BLOCK, "false_positive_estimate": 0, "nulls": 1, "null_rows_stored": true, "problems": [],
            "remarks": [],
        })
    );
    let listed = parts(&BloomFilter, &segment, 1..2);
    assert_eq!(
        (&listed["kind"], &listed["left_out"], &listed["items"].as_array().unwrap().len()),
        (&json!("zones"), &json!(1), &1)
    );
    let zone = &listed["items"][0];
    assert_eq!(
        (&zone["fragment"], &zone["start"], &zone["length"], &zone["nulls"]),
        (&json!(6), &json!(2), &json!(2), &json!(0))
    );
    // Two values set eight bits each of the 256, or fewer where they meet.
    assert!(zone["fill"].as_f64().is_some_and(|fill| (8.0 / 256.0..=16.0 / 256.0).contains(&fill)), "{zone}");
    assert_eq!(
        (&zone["filter_bytes"], parts(&BloomFilter, &segment, 0..1)["items"][0]["nulls"].as_u64()),
        (&json!(BLOCK), Some(1))
    );
}

#[test]
fn inspection_names_zones_that_cannot_be() {
    let inspect = |places: [(u64, u64, u64); 2], flags: [bool; 2], bytes: usize, nulls: &[u64]| {
        let mut filters = build::Filters::new(0);
        flags.iter().for_each(|flag| filters.push(&vec![1; bytes], *flag).unwrap());
        let mut all = crate::index::zones::Places::default();
        places.into_iter().for_each(|place| all.push(place));
        let built = build::encode(&params(2, 0.1), all, filters, &nulls.iter().copied().collect(), 0).unwrap();
        block_on(BloomFilter.inspect(&store(&built))).unwrap()["problems"].clone()
    };
    let (two, none) = ([(0, 0, 4), (0, 4, 4)], [false, false]);
    assert_eq!(inspect(two, [true, false], 32, &[2]), json!([]));
    assert_eq!(inspect(two, [true, false], 32, &[]), json!(["no null rows are stored for zone 0, which says that it has some"]));
    assert_eq!(inspect(two, none, 32, &[5]), json!(["some null rows are stored for zone 1, which says that it has none"]));
    assert_eq!(inspect(two, none, 32, &[9]), json!(["1 null rows are stored that lie in no zone"]));
    assert_eq!(
        inspect(two, none, 33, &[]),
        json!(["the filter of zone 0 has 33 bytes, which are no blocks", "a filter has 33 bytes where its parameters give 32"])
    );
    assert_eq!(inspect([(0, 0, 4), (0, 4, 0)], none, 32, &[]), json!(["zone 1 spans no rows"]));
}

#[test]
fn refusals() {
    let spec = |data_type: DataType, logical_type: &str| BuildSpec {
        data_type,
        logical_type: logical_type.to_owned(),
        params: params(10, 0.5),
        index_version: 0,
        rows_hint: None,
    };
    let refused = |spec: BuildSpec| BloomFilter.builder(spec).err().unwrap().code();
    for (data_type, logical_type) in [
        (DataType::Boolean, "bool"),
        (DataType::Float16, "halffloat"),
        (DataType::Decimal128(9, 2), "decimal:128:9:2"),
        (DataType::FixedSizeBinary(4), "fixed_size_binary:4"),
    ] {
        assert_eq!(refused(spec(data_type, logical_type)), ErrorCode::UnsupportedType);
    }
    assert_eq!(refused(BuildSpec { index_version: 1, ..spec(DataType::Int8, "int8") }), ErrorCode::InvalidArgument);
    for given in [params(0, 0.5), params(1, 0.0), params(1, 1.0)] {
        let error = BloomFilter.merge_params(BloomFilter.default_params(), &given).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
    }
    let mut builder = BloomFilter.builder(spec(DataType::Int32, "int32")).unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let batch = ColumnBatch { fragment: 0, values: texts, rows: BatchRows::Range { start: 0 } };
    assert_eq!(builder.push(batch).unwrap_err().code(), ErrorCode::InvalidArgument);
    assert_eq!(BloomFilter.row_domain(0, true), RowDomain::Address);
}
