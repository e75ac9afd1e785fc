use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Builder, LargeListBuilder, ListBuilder, StringBuilder};
use arrow::datatypes::Int32Type;
use futures::executor::block_on;
use serde_json::json;

use super::*;
use crate::error::ErrorCode;
use crate::format::row::RowDomain;
use crate::index::testing::{Random, column, metadata, parts, store};
use crate::table::scan::{BatchRows, ColumnBatch};

type Lists = Vec<Option<Vec<Option<String>>>>;

fn strings(lists: &Lists) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new());
    lists.iter().for_each(|list| builder.append_option(list.clone()));
    Arc::new(builder.finish())
}

fn spec(data_type: DataType) -> BuildSpec {
    BuildSpec { data_type, logical_type: "list".to_owned(), params: Params::new(), index_version: 1, rows_hint: None }
}

fn sample(rows: usize, random: &mut Random) -> Lists {
    let label = |random: &mut Random| (random.below(9) > 0).then(|| format!("l{}", random.below(20)));
    (0..rows)
        .map(|_| {
            let length = random.below(6);
            (random.below(8) > 0).then(|| (0..length).map(|_| label(random)).collect())
        })
        .collect()
}

/// The bitmaps as a map from labels has them.
fn check(segment: &SegmentFiles, rows: &[(u64, &Lists)]) {
    let mut expected: BTreeMap<Option<String>, RoaringTreemap> = BTreeMap::new();
    let mut null_lists = RoaringTreemap::new();
    for (first, lists) in rows {
        for (id, list) in (*first..).zip(lists.iter()) {
            match list {
                None => {
                    null_lists.insert(id);
                }
                Some(items) => items.iter().for_each(|item| {
                    expected.entry(item.clone()).or_default().insert(id);
                }),
            }
        }
    }
    let keys = column(segment, FILE, "keys", &DataType::Utf8, true);
    assert!(keys.as_string::<i32>().iter().map(|key| key.map(str::to_owned)).eq(expected.keys().cloned()));
    let bitmaps = column(segment, FILE, "bitmaps", &DataType::Binary, true);
    for (row, map) in expected.values().enumerate() {
        assert_eq!(bitmaps.as_binary::<i32>().value(row), encode_row_treemap(map));
    }
    let file = block_on(segment.open(FILE)).unwrap();
    assert_eq!(block_on(file.global_buffer(1)).unwrap().as_ref(), encode_row_treemap(&null_lists));
    let stats = format!("{{\"num_bitmaps\":{}}}", expected.len());
    let expected_metadata = [("lance:index_stats", stats), (NULL_LISTS, "1".to_owned())];
    assert_eq!(metadata(segment, FILE), expected_metadata.map(|(key, value)| (key.to_owned(), value)));
    let all = expected.values().fold(null_lists, |all, map| all | map);
    assert_eq!(block_on(LabelList.stored_rows(segment)).unwrap(), all);
    assert_eq!(block_on(LabelList.inspect(segment)).unwrap()["problems"], json!([]));
}

#[test]
fn bitmaps_are_those_of_a_map() {
    let mut random = Random(9);
    let (first, second) = (sample(700, &mut random), sample(300, &mut random));
    let values = strings(&first);
    let mut builder = LabelList.builder(spec(values.data_type().clone())).unwrap();
    // In slices, whose offsets do not begin at zero.
    for start in (0..700).step_by(90) {
        let length = 90.min(700 - start);
        let rows = BatchRows::Range { start: start as u64 };
        builder.push(ColumnBatch { fragment: 0, values: values.slice(start, length), rows }).unwrap();
    }
    let rows = BatchRows::List((1 << 32..(1 << 32) + 300).collect());
    builder.push(ColumnBatch { fragment: 1, values: strings(&second), rows }).unwrap();
    let built = builder.finish().unwrap();
    assert_eq!((built.rows, built.index_version), (1000, 1));
    let segment = store(&built);
    check(&segment, &[(0, &first), (1 << 32, &second)]);
    let copy =
        block_on(LabelList.copy_placed(&segment, values.data_type(), &|id| (id >> 32 != 1).then_some(id))).unwrap().unwrap();
    check(&store(&copy), &[(0, &first)]);
}

#[test]
fn nothing_null_lists_and_empty_lists() {
    let one: Lists = vec![Some(vec![None])];
    for lists in [vec![], vec![None, None], vec![Some(vec![]), Some(vec![])], one] {
        let values = strings(&lists);
        let mut builder = LabelList.builder(spec(values.data_type().clone())).unwrap();
        builder.push(ColumnBatch { fragment: 0, values, rows: BatchRows::Range { start: 0 } }).unwrap();
        check(&store(&builder.finish().unwrap()), &[(0, &lists)]);
    }
}

#[test]
fn large_lists_of_numbers() {
    let mut builder = LargeListBuilder::new(Int32Builder::new());
    builder.append_value([Some(300), Some(-1), Some(300)]);
    builder.append_value([Some(-1), None]);
    let values: ArrayRef = Arc::new(builder.finish());
    let mut builder = LabelList.builder(spec(values.data_type().clone())).unwrap();
    builder.push(ColumnBatch { fragment: 0, values, rows: BatchRows::Range { start: 0 } }).unwrap();
    let segment = store(&builder.finish().unwrap());
    let keys = column(&segment, FILE, "keys", &DataType::Int32, true);
    assert!(keys.as_primitive::<Int32Type>().iter().eq([None, Some(-1), Some(300)]));
    assert_eq!(
        block_on(LabelList.inspect(&segment)).unwrap(),
        json!({
            "method": "LABEL_LIST", "index_version": 1, "rows_with_labels": 2, "null_lists": 0, "labels": 2, "postings": 4,
            "rows_with_null_items": 1, "min": -1, "max": 300,
            "largest": [{"label": -1, "rows": 2}, {"label": 300, "rows": 1}], "problems": [],
        })
    );
    let listed = parts(&LabelList, &segment, 1..1000);
    assert_eq!((&listed["count"], &listed["left_out"], &listed["items"][1]["key"]), (&json!(3), &json!(1), &json!(300)));
}

#[test]
fn refusals() {
    let refused = |spec: BuildSpec| LabelList.builder(spec).err().unwrap().code();
    let lists = DataType::new_list(DataType::new_list(DataType::Int8, true), true);
    assert_eq!(refused(spec(lists)), ErrorCode::UnsupportedType);
    assert_eq!(refused(spec(DataType::Utf8)), ErrorCode::UnsupportedType);
    let ok = DataType::new_list(DataType::Int8, true);
    assert_eq!(refused(BuildSpec { index_version: 2, ..spec(ok.clone()) }), ErrorCode::InvalidArgument);
    let mut builder = LabelList.builder(spec(ok)).unwrap();
    let values = strings(&vec![Some(vec![])]);
    let batch = ColumnBatch { fragment: 0, values, rows: BatchRows::Range { start: 0 } };
    assert_eq!(builder.push(batch).unwrap_err().code(), ErrorCode::InvalidArgument);
    assert_eq!((LabelList.row_domain(1, true), LabelList.row_domain(1, false)), (RowDomain::StableId, RowDomain::Address));
}
