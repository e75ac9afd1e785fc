use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float64Array, Int64Array, StringArray,
};
use futures::executor::block_on;
use serde_json::json;

use super::*;
use crate::error::ErrorCode;
use crate::format::row::RowDomain;
use crate::format::schema::scalar_type;
use crate::format::treemap::{decode_row_treemap, encode_row_treemap};
use crate::index::keyed::KEYS_AND_BITMAPS;
use crate::index::testing::{Random, Rows, build, by_ties, column, metadata, model, parts, store};
use crate::table::scan::{BatchRows, ColumnBatch};

/// Three fragments with nulls; the second has deletions.
fn sample(logical_type: &str, random: &mut Random) -> Vec<Rows> {
    let mut values = |rows: usize| -> ArrayRef {
        let raw: Vec<Option<u64>> = (0..rows).map(|_| (random.below(7) > 0).then(|| random.below(40))).collect();
        let odd = [f64::NAN, -f64::NAN, -0.0, 0.0, f64::INFINITY, f64::from_bits(f64::NAN.to_bits() | 5)];
        match logical_type {
            "int64" => Arc::new(Int64Array::from_iter(raw.iter().map(|v| v.map(|v| v as i64 - 20)))),
            "double" => Arc::new(Float64Array::from_iter(
                raw.iter().map(|v| v.map(|v| odd.get(v as usize).copied().unwrap_or(v as f64 - 25.0))),
            )),
            "bool" => Arc::new(BooleanArray::from_iter(raw.iter().map(|v| v.map(|v| v % 3 == 0)))),
            "string" => Arc::new(StringArray::from_iter(raw.iter().map(|v| v.map(|v| "né".repeat(v as usize % 9))))),
            "decimal:128:9:2" => Arc::new(
                Decimal128Array::from_iter(raw.iter().map(|v| v.map(|v| i128::from(v) * 77 - 1000)))
                    .with_precision_and_scale(9, 2)
                    .unwrap(),
            ),
            "fixed_size_binary:2" => Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(raw.iter().map(|v| v.map(|v| [(v % 3) as u8, v as u8])), 2)
                    .unwrap(),
            ),
            other => panic!("{other}"),
        }
    };
    let first = Rows::dense(3, values(2500));
    let second = Rows::without(1, &values(1800), |offset| offset % 11 == 0 || (300..420).contains(&offset));
    vec![first, second, Rows::dense(9, values(40))]
}

/// Reads a segment back and compares it with the model: runs of equal values of the sorted column.
fn check(segment: &SegmentFiles, logical_type: &str, rows: &[Rows]) {
    let data_type = scalar_type(logical_type).unwrap();
    let (values, ids) = model(rows);
    let ids = by_ties(&values, ids);
    let data = |row: usize| values.slice(row, 1).to_data();
    let starts: Vec<usize> = (0..values.len()).filter(|row| *row == 0 || data(*row) != data(row - 1)).collect();
    let keys = column(segment, FILE, "keys", &data_type, true);
    let bitmaps = column(segment, FILE, "bitmaps", &DataType::Binary, true);
    assert_eq!(keys.len(), starts.len(), "{logical_type}");
    for (key, start) in starts.iter().enumerate() {
        let end = starts.get(key + 1).copied().unwrap_or(values.len());
        assert_eq!(keys.slice(key, 1).to_data(), data(*start), "{logical_type} key {key}");
        let expected: RoaringTreemap = ids[*start..end].iter().copied().collect();
        assert_eq!(bitmaps.as_binary::<i32>().value(key), encode_row_treemap(&expected), "{logical_type} key {key}");
    }
    let stats = format!("{{\"num_bitmaps\":{}}}", starts.len());
    assert_eq!(metadata(segment, FILE), [("lance:index_stats".to_owned(), stats)]);
}

#[test]
fn every_type_reads_back_as_the_model_says() {
    let mut random = Random(11);
    for logical_type in ["int64", "double", "bool", "string", "decimal:128:9:2", "fixed_size_binary:2"] {
        let rows = sample(logical_type, &mut random);
        let built = build(&Bitmap, logical_type, 0, &Params::new(), &rows, &mut random);
        let live: usize = rows.iter().map(|rows| rows.offsets.len()).sum();
        assert_eq!((built.rows, built.index_version), (live as u64, 0));
        assert_eq!(built.details, IndexDetails { type_url: TYPE_URL.to_owned(), value: Bytes::new() });
        let segment = store(&built);
        check(&segment, logical_type, &rows);
        let all: RoaringTreemap = rows.iter().flat_map(|rows| (0..rows.offsets.len()).map(|row| rows.address(row))).collect();
        assert_eq!(block_on(Bitmap.stored_rows(&segment)).unwrap(), all);
        assert_eq!(block_on(Bitmap.inspect(&segment)).unwrap()["problems"], json!([]), "{logical_type}");
        let data_type = scalar_type(logical_type).unwrap();
        let kept: Vec<Rows> = rows.into_iter().filter(|rows| rows.fragment != 1).collect();
        let copy = block_on(Bitmap.copy_placed(&segment, &data_type, &|id| (id >> 32 != 1).then_some(id))).unwrap().unwrap();
        check(&store(&copy), logical_type, &kept);
    }
}

#[test]
fn no_rows_one_row_and_only_nulls() {
    let mut random = Random(1);
    for values in [vec![], vec![Some(5)], vec![None; 10], vec![None, Some(1)]] {
        let rows = [Rows::dense(0, Arc::new(Int64Array::from(values)))];
        check(&store(&build(&Bitmap, "int64", 0, &Params::new(), &rows, &mut random)), "int64", &rows);
    }
    let none = store(&build(&Bitmap, "string", 0, &Params::new(), &[], &mut random));
    assert_eq!(column(&none, FILE, "keys", &DataType::Utf8, true).len(), 0);
    assert_eq!(metadata(&none, FILE), [("lance:index_stats".to_owned(), "{\"num_bitmaps\":0}".to_owned())]);
    assert!(block_on(Bitmap.stored_rows(&none)).unwrap().is_empty());
}

fn spec(data_type: DataType, logical_type: &str) -> BuildSpec {
    BuildSpec { data_type, logical_type: logical_type.to_owned(), params: Params::new(), index_version: 0, rows_hint: None }
}

#[test]
fn stable_ids_in_any_order() {
    let mut builder = Bitmap.builder(spec(DataType::Int64, "int64")).unwrap();
    let batches = [(vec![9u64, 1 << 40, 3], vec![7, 8, 7]), (vec![1, 2], vec![7, 7])];
    let mut expected: BTreeMap<i64, RoaringTreemap> = BTreeMap::new();
    for (ids, values) in batches {
        ids.iter().zip(&values).for_each(|(id, value)| {
            expected.entry(*value).or_default().insert(*id);
        });
        let values: ArrayRef = Arc::new(Int64Array::from(values));
        builder.push(ColumnBatch { fragment: 0, values, rows: BatchRows::List(ids) }).unwrap();
    }
    let segment = store(&builder.finish().unwrap());
    let bitmaps = column(&segment, FILE, "bitmaps", &DataType::Binary, true);
    for (row, map) in expected.values().enumerate() {
        assert_eq!(&decode_row_treemap("t", bitmaps.as_binary::<i32>().value(row)).unwrap(), map);
    }
}

#[test]
fn ten_million_equal_values_and_one_giant_one() {
    let mut builder = Bitmap.builder(spec(DataType::Utf8, "string")).unwrap();
    let values: ArrayRef = Arc::new(StringArray::from(vec!["same"; 500_000]));
    for batch in 0..20u64 {
        let rows = BatchRows::Range { start: batch * 500_000 };
        builder.push(ColumnBatch { fragment: 0, values: values.clone(), rows }).unwrap();
    }
    let giant: ArrayRef = Arc::new(StringArray::from(vec!["z".repeat(20 << 20)]));
    builder.push(ColumnBatch { fragment: 1, values: giant, rows: BatchRows::Range { start: 1 << 32 } }).unwrap();
    assert!(builder.memory_bytes() < 100 << 20, "{}", builder.memory_bytes());
    let segment = store(&builder.finish().unwrap());
    let seen = block_on(Bitmap.inspect(&segment)).unwrap();
    assert_eq!((&seen["rows"], &seen["bitmaps"], &seen["problems"]), (&json!(10_000_001), &json!(2), &json!([])));
    assert_eq!(seen["largest"][0], json!({"key": "same", "rows": 10_000_000}));
}

#[test]
fn inspection() {
    let mut random = Random(6);
    let rows = [Rows::dense(2, Arc::new(Int64Array::from(vec![Some(30), None, Some(10), Some(30), None])))];
    let segment = store(&build(&Bitmap, "int64", 0, &Params::new(), &rows, &mut random));
    assert_eq!(
        block_on(Bitmap.inspect(&segment)).unwrap(),
        json!({
            "method": "BITMAP", "index_version": 0, "rows": 5, "bitmaps": 3, "nulls": 2, "min": 10, "max": 30,
            "largest": [{"key": 30, "rows": 2}, {"key": 10, "rows": 1}], "data_files": ["bitmap_page_lookup.lance"],
            "problems": [],
        })
    );
    let listed = parts(&Bitmap, &segment, 0..2);
    assert_eq!((&listed["kind"], &listed["count"], &listed["left_out"]), (&json!("keys"), &json!(3), &json!(1)));
    let items = listed["items"].as_array().unwrap();
    let seen: Vec<_> = items.iter().map(|item| (item["key"].clone(), item["rows"].as_u64().unwrap())).collect();
    assert_eq!(seen, [(json!(null), 2), (json!(10), 1)]);
    assert!(items.iter().all(|item| item["bytes"].as_u64().unwrap() > 20), "{listed}");
}

#[test]
fn inspection_names_a_file_that_would_mislead() {
    let of = |keys: &[Option<i64>], rows: &[&[u64]]| {
        let mut writer = KeyWriter::new(KEYS_AND_BITMAPS, &DataType::Int64, "int64");
        for (key, rows) in keys.iter().zip(rows) {
            let map: RoaringTreemap = rows.iter().copied().collect();
            let bytes = key.map(i64::to_le_bytes);
            let key = bytes.as_ref().map(|bytes| bytes.as_slice());
            writer.push(key, &mut |out| out.extend_from_slice(&encode_row_treemap(&map))).unwrap();
        }
        let mut built = build(&Bitmap, "int64", 0, &Params::new(), &[], &mut Random(1));
        built.files = vec![file(writer).unwrap()];
        block_on(Bitmap.inspect(&store(&built))).unwrap()["problems"].clone()
    };
    assert_eq!(of(&[None, Some(-1), Some(300)], &[&[1], &[2], &[3]]), json!([]));
    assert_eq!(of(&[Some(300), Some(-1)], &[&[1], &[2]]), json!(["1 keys do not come after the one before them"]));
    assert_eq!(of(&[Some(1), None], &[&[1], &[2]]), json!(["1 keys do not come after the one before them"]));
    assert_eq!(of(&[Some(1), Some(2)], &[&[1, 5], &[5]]), json!(["1 rows are under more than one key"]));
    assert_eq!(of(&[Some(1)], &[&[]]), json!(["key 1 has no row"]));
}

#[test]
fn shards_are_called_what_they_are() {
    let mut built =
        build(&Bitmap, "int64", 0, &Params::new(), &[Rows::dense(0, Arc::new(Int64Array::from(vec![1, 2])))], &mut Random(1));
    built.files[0].0 = format!("part_0_{FILE}");
    let segment = store(&built);
    let seen = block_on(Bitmap.inspect(&segment)).unwrap();
    assert_eq!(seen["problems"], json!(["only shards that no reader reads: part_0_bitmap_page_lookup.lance"]));
    assert_eq!(block_on(Bitmap.stored_rows(&segment)).unwrap().len(), 2);
    assert!(block_on(Bitmap.copy_placed(&segment, &DataType::Int64, &Some)).unwrap().is_none());
}

#[test]
fn refusals() {
    let refused = |spec: BuildSpec| Bitmap.builder(spec).err().unwrap().code();
    assert_eq!(refused(spec(DataType::new_list(DataType::Int8, true), "list")), ErrorCode::UnsupportedType);
    assert_eq!(refused(BuildSpec { index_version: 1, ..spec(DataType::Int64, "int64") }), ErrorCode::InvalidArgument);
    let given = Params::from_iter([("zone_size".to_owned(), 3.into())]);
    assert_eq!(Bitmap.merge_params(Params::new(), &given).unwrap_err().code(), ErrorCode::InvalidArgument);
    let segment = store(&build(&Bitmap, "int64", 0, &Params::new(), &[], &mut Random(1)));
    let error = block_on(Bitmap.copy_placed(&segment, &DataType::Int32, &Some)).err().unwrap();
    assert_eq!(error.code(), ErrorCode::CorruptFile);
    let mut builder = Bitmap.builder(spec(DataType::Int64, "int64")).unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let batch = ColumnBatch { fragment: 0, values: texts, rows: BatchRows::Range { start: 0 } };
    assert_eq!(builder.push(batch).unwrap_err().code(), ErrorCode::InvalidArgument);
    assert_eq!((Bitmap.row_domain(0, true), Bitmap.row_domain(0, false)), (RowDomain::StableId, RowDomain::Address));
}
