use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, LargeStringArray, StringArray};
use arrow::datatypes::UInt32Type;
use futures::executor::block_on;
use serde_json::json;

use super::trigram::{Folder, NULL};
use super::*;
use crate::error::ErrorCode;
use crate::format::row::RowDomain;
use crate::format::treemap::encode_roaring64;
use crate::index::testing::{Random, Rows, build, column, metadata, parts, store};
use crate::table::scan::{BatchRows, ColumnBatch};

fn texts(rows: usize, random: &mut Random) -> Vec<Option<String>> {
    let letters: Vec<char> = "abcABC 12éßØ-日".chars().collect();
    let text = |random: &mut Random| {
        let length = random.below(12);
        (0..length).map(|_| letters[random.below(letters.len() as u64) as usize]).collect::<String>()
    };
    (0..rows).map(|_| (random.below(9) > 0).then(|| text(random))).collect()
}

/// The lists as a map from codes has them.
fn check(segment: &SegmentFiles, rows: &[Rows]) {
    let mut lists: BTreeMap<u32, RoaringTreemap> = BTreeMap::new();
    for fragment in rows {
        for row in 0..fragment.offsets.len() {
            let id = fragment.address(row);
            let values = arrow::compute::cast(&fragment.values, &DataType::Utf8).unwrap();
            if values.is_null(row) {
                lists.entry(NULL).or_default().insert(id);
            } else {
                Folder::new().codes(values.as_string::<i32>().value(row), |code| {
                    lists.entry(code).or_default().insert(id);
                });
            }
        }
    }
    let tokens = column(segment, FILE, "tokens", &DataType::UInt32, true);
    assert!(tokens.as_primitive::<UInt32Type>().values().iter().eq(lists.keys()));
    let bitmaps = column(segment, FILE, "posting_list", &DataType::Binary, false);
    for (row, list) in lists.values().enumerate() {
        assert_eq!(bitmaps.as_binary::<i32>().value(row), encode_roaring64(list));
    }
    assert!(metadata(segment, FILE).is_empty());
    assert_eq!(block_on(Ngram.inspect(segment)).unwrap()["problems"], json!([]));
}

#[test]
fn lists_are_those_of_a_map() {
    let mut random = Random(3);
    let small = texts(300, &mut random);
    for (logical_type, values) in [
        ("string", Arc::new(StringArray::from(small.clone())) as ArrayRef),
        ("large_string", Arc::new(LargeStringArray::from(small.clone()))),
    ] {
        let rows = [Rows::without(2, &values, |offset| offset % 4 == 1), Rows::dense(0, values.slice(20, 90))];
        let built = build(&Ngram, logical_type, 0, &Params::new(), &rows, &mut random);
        assert_eq!(built.rows, 225 + 90);
        assert_eq!(built.details, IndexDetails { type_url: TYPE_URL.to_owned(), value: Bytes::new() });
        let segment = store(&built);
        check(&segment, &rows);
        assert!(block_on(Ngram.stored_rows(&segment)).unwrap().is_empty());
        let copy = block_on(Ngram.copy_placed(&segment, &DataType::Utf8, &|id| (id >> 32 != 2).then_some(id))).unwrap().unwrap();
        check(&store(&copy), &rows[1..]);
    }
}

#[test]
fn no_rows_only_nulls_and_one_giant_text() {
    let mut random = Random(4);
    for values in [vec![], vec![None, None], vec![Some("ab".to_owned())], vec![Some("xyz1 ".repeat(200_000))]] {
        let rows = [Rows::dense(0, Arc::new(StringArray::from(values)) as ArrayRef)];
        check(&store(&build(&Ngram, "string", 0, &Params::new(), &rows, &mut random)), &rows);
    }
}

#[test]
fn inspection() {
    let mut random = Random(6);
    let values: ArrayRef = Arc::new(StringArray::from(vec![Some("The them"), None, Some("the"), Some("x")]));
    let segment = store(&build(&Ngram, "string", 0, &Params::new(), &[Rows::dense(0, values)], &mut random));
    let seen = block_on(Ngram.inspect(&segment)).unwrap();
    assert_eq!(
        seen,
        json!({
            "method": "NGRAM", "index_version": 0, "rows_with_tokens": 2, "nulls": 1, "tokens": 2, "postings": 3,
            "posting_bytes": seen["posting_bytes"],
            "largest": [{"token": "the", "rows": 2}, {"token": "hem", "rows": 1}], "problems": [], "remarks": [],
        })
    );
    assert!(seen["posting_bytes"].as_u64().unwrap() > 3 * 30);
    let listed = parts(&Ngram, &segment, 0..1000);
    let items = listed["items"].as_array().unwrap();
    let keys: Vec<_> = items.iter().map(|item| (item["key"].clone(), item["rows"].as_u64().unwrap())).collect();
    assert_eq!(keys, [(json!(null), 1), (json!("hem"), 1), (json!("the"), 2)]);
    let bytes: u64 = items.iter().map(|item| item["bytes"].as_u64().unwrap()).sum();
    assert_eq!(json!(bytes), seen["posting_bytes"]);
}

#[test]
fn refusals() {
    let spec = |data_type: DataType, logical_type: &str| BuildSpec {
        data_type,
        logical_type: logical_type.to_owned(),
        params: Params::new(),
        index_version: 0,
        rows_hint: None,
    };
    for (data_type, logical_type) in [(DataType::Binary, "binary"), (DataType::Int64, "int64")] {
        assert!(!Ngram.accepts(&data_type));
        assert_eq!(Ngram.builder(spec(data_type, logical_type)).err().unwrap().code(), ErrorCode::UnsupportedType);
    }
    let later = BuildSpec { index_version: 1, ..spec(DataType::Utf8, "string") };
    assert_eq!(Ngram.builder(later).err().unwrap().code(), ErrorCode::InvalidArgument);
    let mut builder = Ngram.builder(spec(DataType::Utf8, "string")).unwrap();
    let values: ArrayRef = Arc::new(LargeStringArray::from(vec!["a"]));
    let batch = ColumnBatch { fragment: 0, values, rows: BatchRows::Range { start: 0 } };
    assert_eq!(builder.push(batch).unwrap_err().code(), ErrorCode::InvalidArgument);
    assert_eq!((Ngram.row_domain(0, true), Ngram.row_domain(0, false)), (RowDomain::StableId, RowDomain::Address));
}
