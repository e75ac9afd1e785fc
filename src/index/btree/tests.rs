use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, FixedSizeBinaryArray, Float64Array, Int8Array, Int32Array,
    Int64Array, LargeStringArray, StringArray, TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow::datatypes::{UInt32Type, UInt64Type};
use futures::executor::block_on;
use serde_json::json;

use super::*;
use crate::error::ErrorCode;
use crate::file::{FileWriter, WriterField};
use crate::format::schema::scalar_type;
use crate::index::testing::{Random, Rows, build, by_ties, column, metadata, model, parts, store};

fn params(zone_size: u64) -> Params {
    Params::from_iter([(ZONE_SIZE.to_owned(), zone_size.into())])
}

/// Three fragments of a column of `logical_type` with nulls and odd values; the second has deletions.
fn sample(logical_type: &str, random: &mut Random) -> Vec<Rows> {
    let mut values = |rows: usize| -> ArrayRef {
        let mut some = || if random.below(7) == 0 { None } else { Some(random.next()) };
        let raw: Vec<Option<u64>> = (0..rows).map(|_| some()).collect();
        let each = |f: &dyn Fn(u64) -> i64| -> Vec<Option<i64>> { raw.iter().map(|value| value.map(f)).collect() };
        let odd = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY];
        match logical_type {
            "int8" => Arc::new(Int8Array::from_iter(raw.iter().map(|v| v.map(|v| v as i8)))),
            "int32" => Arc::new(Int32Array::from_iter(raw.iter().map(|v| v.map(|v| v as i32 % 500)))),
            "int64" => Arc::new(Int64Array::from(each(&|v| v as i64))),
            "uint64" => Arc::new(UInt64Array::from(raw)),
            "double" => Arc::new(Float64Array::from_iter(
                raw.iter().map(|v| v.map(|v| odd.get((v % 9) as usize).copied().unwrap_or((v % 1000) as f64 - 500.0))),
            )),
            "bool" => Arc::new(BooleanArray::from_iter(raw.iter().map(|v| v.map(|v| v % 2 == 0)))),
            "date32:day" => Arc::new(Date32Array::from_iter(raw.iter().map(|v| v.map(|v| v as i32 % 40_000)))),
            "timestamp:us:UTC" => Arc::new(TimestampMicrosecondArray::from(each(&|v| (v >> 14) as i64)).with_timezone("UTC")),
            "string" => Arc::new(StringArray::from_iter(raw.iter().map(|v| v.map(|v| format!("k{}", v % 700))))),
            "large_string" => Arc::new(LargeStringArray::from_iter(raw.iter().map(|v| v.map(|v| "é".repeat((v % 6) as usize))))),
            "binary" => {
                Arc::new(BinaryArray::from_iter(raw.iter().map(|v| v.map(|v| v.to_be_bytes()[..(v % 9) as usize].to_vec()))))
            }
            "fixed_size_binary:3" => Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                    raw.iter().map(|v| v.map(|v| v.to_le_bytes()[..3].to_vec())),
                    3,
                )
                .unwrap(),
            ),
            other => panic!("{other}"),
        }
    };
    let first = Rows::dense(3, values(2500));
    let second = Rows::without(1, &values(1800), |offset| offset % 11 == 0 || (300..420).contains(&offset));
    vec![first, second, Rows::dense(9, values(40))]
}

/// Reads a segment back and compares every row of both files with a plain model of index-formats §5.
fn check(segment: &SegmentFiles, logical_type: &str, zone_size: usize, rows: &[Rows]) {
    let data_type = scalar_type(logical_type).unwrap();
    let (values, ids) = model(rows);
    assert_eq!(&column(segment, PAGE_DATA, "values", &data_type, true), &values);
    let stored = column(segment, PAGE_DATA, "ids", &DataType::UInt64, false);
    assert_eq!(by_ties(&values, stored.as_primitive::<UInt64Type>().values().to_vec()), ids);

    let pages = values.len().div_ceil(zone_size);
    let min = column(segment, PAGE_LOOKUP, "min", &data_type, true);
    let max = column(segment, PAGE_LOOKUP, "max", &data_type, true);
    let nulls = column(segment, PAGE_LOOKUP, "null_count", &DataType::UInt32, false);
    let numbers = column(segment, PAGE_LOOKUP, "page_idx", &DataType::UInt32, false);
    assert_eq!(min.len(), pages);
    for page in 0..pages {
        let part = values.slice(page * zone_size, zone_size.min(values.len() - page * zone_size));
        assert_eq!(&min.slice(page, 1), &part.slice(0, 1), "min of page {page}");
        assert_eq!(&max.slice(page, 1), &part.slice(part.len() - 1, 1), "max of page {page}");
        assert_eq!(nulls.as_primitive::<UInt32Type>().value(page) as usize, part.null_count(), "nulls of page {page}");
    }
    assert_eq!(numbers.as_primitive::<UInt32Type>(), &UInt32Array::from_iter_values(0..pages as u32));
    let expected = [(BATCH_SIZE, zone_size.to_string()), (RANGE_PARTITIONED, "false".to_owned())];
    assert_eq!(metadata(segment, PAGE_LOOKUP), expected.map(|(key, value)| (key.to_owned(), value)));
    assert!(metadata(segment, PAGE_DATA).is_empty());
}

#[test]
fn every_type_reads_back_as_the_model_says() {
    let mut random = Random(11);
    for logical_type in [
        "int8",
        "int32",
        "int64",
        "uint64",
        "double",
        "bool",
        "date32:day",
        "timestamp:us:UTC",
        "string",
        "large_string",
        "binary",
        "fixed_size_binary:3",
    ] {
        let rows = sample(logical_type, &mut random);
        for zone_size in [1, 7, 100, 4096, 1 << 20] {
            let built = build(&Btree, logical_type, 0, &params(zone_size), &rows, &mut random);
            let live: usize = rows.iter().map(|rows| rows.offsets.len()).sum();
            assert_eq!((built.rows, built.index_version), (live as u64, 0));
            assert_eq!(built.details, IndexDetails { type_url: TYPE_URL.to_owned(), value: Bytes::new() });
            check(&store(&built), logical_type, zone_size as usize, &rows);
        }
    }
}

#[test]
fn no_rows_one_row_and_only_nulls() {
    let mut random = Random(1);
    for values in [vec![], vec![Some(5)], vec![None; 10], vec![None, Some(1)]] {
        let rows = [Rows::dense(0, Arc::new(Int64Array::from(values)))];
        let built = build(&Btree, "int64", 1, &params(4), &rows, &mut random);
        assert_eq!(built.index_version, 1);
        check(&store(&built), "int64", 4, &rows);
    }
    let none = build(&Btree, "string", 0, &Params::new(), &[], &mut random);
    let segment = store(&none);
    assert_eq!(column(&segment, PAGE_DATA, "values", &DataType::Utf8, true).len(), 0);
    assert_eq!(column(&segment, PAGE_LOOKUP, "min", &DataType::Utf8, true).len(), 0);
    assert_eq!(metadata(&segment, PAGE_LOOKUP)[0], (BATCH_SIZE.to_owned(), "4096".to_owned()));
}

#[test]
fn parameters_are_recovered_from_the_files() {
    let mut random = Random(2);
    let built = build(&Btree, "int64", 0, &params(77), &sample("int64", &mut random), &mut random);
    assert_eq!(block_on(Btree.recover_params(&store(&built))).unwrap(), params(77));
}

#[test]
fn stored_rows_are_all_ids() {
    let mut random = Random(3);
    let rows = sample("string", &mut random);
    let built = build(&Btree, "string", 0, &params(50), &rows, &mut random);
    let stored = block_on(Btree.stored_rows(&store(&built))).unwrap();
    let expected: RoaringTreemap = rows.iter().flat_map(|rows| (0..rows.offsets.len()).map(|row| rows.address(row))).collect();
    assert_eq!(stored, expected);
}

#[test]
fn a_copy_leaves_out_rows_and_keeps_everything_else() {
    let mut random = Random(4);
    for logical_type in ["int64", "double", "string", "bool"] {
        let mut rows = sample(logical_type, &mut random);
        let segment = store(&build(&Btree, logical_type, 1, &params(64), &rows, &mut random));
        let data_type = scalar_type(logical_type).unwrap();
        let copy = block_on(Btree.copy_placed(&segment, &data_type, &|id| (id >> 32 != 1).then_some(id))).unwrap().unwrap();
        rows.retain(|rows| rows.fragment != 1);
        assert_eq!(copy.index_version, 1);
        check(&store(&copy), logical_type, 64, &rows);
        let nothing = block_on(Btree.copy_placed(&segment, &data_type, &|_| None)).unwrap().unwrap();
        check(&store(&nothing), logical_type, 64, &[Rows::dense(0, arrow::array::new_empty_array(&data_type))]);
    }
}

#[test]
fn a_copy_refuses_a_column_of_another_type() {
    let mut random = Random(5);
    let segment = store(&build(&Btree, "int64", 0, &params(64), &sample("int64", &mut random), &mut random));
    let error = match block_on(Btree.copy_placed(&segment, &DataType::Int32, &Some)) {
        Ok(_) => panic!("copied"),
        Err(error) => error,
    };
    assert_eq!(error.code(), ErrorCode::CorruptFile);
}

#[test]
fn inspection() {
    let mut random = Random(6);
    let rows = [Rows::dense(2, Arc::new(Int64Array::from(vec![Some(30), None, Some(10), Some(20), None])))];
    let segment = store(&build(&Btree, "int64", 0, &params(2), &rows, &mut random));
    assert_eq!(
        block_on(Btree.inspect(&segment)).unwrap(),
        json!({
            "method": "BTREE", "index_version": 0, "rows": 5, "pages": 3, "batch_size": 2, "nulls": 2, "min": 10, "max": 30,
            "range_partitioned": false, "data_files": ["page_data.lance"], "problems": [],
        })
    );
    assert_eq!(
        parts(&Btree, &segment, 0..1000),
        json!({ "kind": "pages", "count": 3, "offset": 0, "left_out": 0, "items": [
            { "page": 0, "rows": 2, "min": null, "max": null, "nulls": 2 },
            { "page": 1, "rows": 2, "min": 10, "max": 20, "nulls": 0 },
            { "page": 2, "rows": 1, "min": 30, "max": 30, "nulls": 0 },
        ] })
    );
    let second = parts(&Btree, &segment, 1..2);
    assert_eq!((&second["offset"], &second["left_out"], &second["items"][0]["page"]), (&json!(1), &json!(2), &json!(1)));
    let empty = store(&build(&Btree, "int64", 0, &params(2), &[], &mut random));
    assert_eq!(parts(&Btree, &empty, 0..9)["items"], json!([]));
    let seen = block_on(Btree.inspect(&empty)).unwrap();
    assert_eq!((&seen["rows"], &seen["pages"], &seen["min"], &seen["max"]), (&json!(0), &json!(0), &json!(null), &json!(null)));
}

#[test]
fn inspection_names_a_lookup_that_would_mislead() {
    let mut random = Random(8);
    let rows = [Rows::dense(0, Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5, 6])))];
    let mut lookup = |mins: Vec<i64>, numbers: Vec<u32>| {
        let mut built = build(&Btree, "int64", 0, &params(2), &rows, &mut random);
        let mut file = FileWriter::new(vec![
            WriterField::new("min", "int64", true),
            WriterField::new("max", "int64", true),
            WriterField::new("null_count", "uint32", false),
            WriterField::new("page_idx", "uint32", false),
        ]);
        file.metadata(BATCH_SIZE, "2");
        let count = mins.len();
        let mins: ArrayRef = Arc::new(Int64Array::from(mins));
        let counts: ArrayRef = Arc::new(UInt32Array::from(vec![0; count]));
        for (column, values) in [mins.clone(), mins, counts, Arc::new(UInt32Array::from(numbers))].iter().enumerate() {
            file.write_page(column, values).unwrap();
        }
        built.files[1].1 = file.finish().unwrap();
        block_on(Btree.inspect(&store(&built))).unwrap()["problems"].clone()
    };
    assert_eq!(lookup(vec![1, 3, 5], vec![0, 1, 2]), json!([]));
    assert_eq!(lookup(vec![1, 5, 3], vec![0, 1, 2]), json!(["page 2 begins before page 1"]));
    assert_eq!(lookup(vec![1, 3, 5], vec![0, 2, 1]), json!(["lookup row 1 is for page 2"]));
    assert_eq!(lookup(vec![1, 3], vec![0, 1]), json!(["2 lookup rows for 6 rows in pages of 2"]));
}

#[test]
fn legacy_range_parts_are_recognised_and_not_copied() {
    let mut random = Random(7);
    let (low, high) = (
        [Rows::dense(0, Arc::new(Int64Array::from(vec![1, 2, 3])))],
        [Rows::dense(1, Arc::new(Int64Array::from(vec![Some(8), Some(9), None])))],
    );
    let mut parts = build(&Btree, "int64", 0, &params(2), &low, &mut random);
    let second = build(&Btree, "int64", 0, &params(2), &high, &mut random);
    for (name, _) in &mut parts.files {
        *name = format!("part_0_{name}");
    }
    parts.files.extend(second.files.into_iter().map(|(name, file)| (format!("part_4294967296_{name}"), file)));
    let segment = store(&parts);
    let seen = block_on(Btree.inspect(&segment)).unwrap();
    assert_eq!((&seen["rows"], &seen["pages"], &seen["range_partitioned"]), (&json!(6), &json!(4), &json!(true)));
    assert_eq!(block_on(Btree.stored_rows(&segment)).unwrap().len(), 6);
    assert!(block_on(Btree.copy_placed(&segment, &DataType::Int64, &Some)).unwrap().is_none());
    assert_eq!(block_on(Btree.recover_params(&segment)).unwrap(), params(2));
}

#[test]
fn domains_versions_and_parameters() {
    assert_eq!((Btree.index_version(false), Btree.index_version(true)), (0, 1));
    assert_eq!(Btree.row_domain(0, false), RowDomain::Address);
    assert_eq!(Btree.row_domain(0, true), RowDomain::StableId);
    assert_eq!(Btree.row_domain(1, true), RowDomain::Address);
    assert!(Btree.merge_params(Btree.default_params(), &params(0)).is_err());
    assert!(!Btree.accepts(&DataType::Null));
    assert!(!Btree.accepts(&DataType::new_list(DataType::Int8, true)));
    let spec = BuildSpec {
        data_type: DataType::Int64,
        logical_type: "int64".to_owned(),
        params: Params::new(),
        index_version: 2,
        rows_hint: None,
    };
    assert!(Btree.builder(spec).is_err());
}
