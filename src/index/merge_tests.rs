//! Segments made one from their files are what a build of all rows would have been, by every method.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, Int64Array, ListArray, StringArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field};
use futures::executor::block_on;
use roaring::RoaringTreemap;
use serde_json::json;

use crate::index::check::Check;
use crate::index::testing::{Random, Rows, column, store};
use crate::index::{BuildSpec, BuiltIndex, IndexMethod, Source, method_by_name};

const METHODS: [&str; 7] = ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER", "NGRAM", "LABEL_LIST", "INVERTED"];

fn values(method: &str, rows: usize, random: &mut Random) -> ArrayRef {
    let known: Vec<bool> = (0..rows).map(|_| random.below(9) > 0).collect();
    match method {
        "NGRAM" | "INVERTED" => Arc::new(StringArray::from_iter(known.iter().map(|known| {
            known.then(|| (0..random.below(12)).map(|_| format!("word{} ", random.below(60))).collect::<String>())
        }))),
        "LABEL_LIST" => {
            let lengths: Vec<usize> = known.iter().map(|_| random.below(4) as usize).collect();
            let items = StringArray::from_iter(
                (0..lengths.iter().sum()).map(|_| (random.below(7) > 0).then(|| format!("label{}", random.below(20)))),
            );
            let field = Arc::new(Field::new("item", DataType::Utf8, true));
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(ListArray::new(field, offsets, Arc::new(items), Some(NullBuffer::from(known))))
        }
        "ZONEMAP" => Arc::new(Float64Array::from_iter(
            known
                .iter()
                .map(|known| known.then(|| if random.below(30) == 0 { f64::NAN } else { random.below(1000) as f64 / 4.0 })),
        )),
        _ => Arc::new(Int64Array::from_iter(known.iter().map(|known| known.then(|| random.below(300) as i64 - 150)))),
    }
}

fn spec(method: &dyn IndexMethod, data_type: &DataType, rows: u64) -> BuildSpec {
    let given = match method.name() {
        "BTREE" => json!({"zone_size": 70}),
        "ZONEMAP" => json!({"rows_per_zone": 40}),
        "BLOOMFILTER" => json!({"number_of_items": 60, "probability": 0.01}),
        "INVERTED" => json!({"with_position": true, "stem": false}),
        _ => json!({}),
    };
    let params = method.merge_params(method.default_params(), given.as_object().unwrap()).unwrap();
    let logical_type = crate::format::schema::scalar_name(data_type).unwrap_or_else(|| "list".to_owned());
    let index_version = method.index_version(false);
    BuildSpec { data_type: data_type.clone(), logical_type, params, index_version, rows_hint: Some(rows) }
}

fn build(method: &dyn IndexMethod, rows: &[&Rows], random: &mut Random) -> BuiltIndex {
    let count = rows.iter().map(|rows| rows.offsets.len() as u64).sum();
    let mut builder = method.builder(spec(method, rows[0].values.data_type(), count)).unwrap();
    for batch in rows.iter().flat_map(|rows| rows.batches(90, random)) {
        builder.push(batch).unwrap();
    }
    builder.finish().unwrap()
}

fn addresses(rows: &[&Rows]) -> RoaringTreemap {
    rows.iter().flat_map(|rows| (0..rows.offsets.len()).map(|row| rows.address(row))).collect()
}

/// Merges segments of some fragments each, of which only the rows of `live` are to stay.
fn merged(method: &dyn IndexMethod, apart: &[Vec<&Rows>], live: &[Vec<&Rows>], random: &mut Random) -> Option<BuiltIndex> {
    let segments: Vec<_> = apart.iter().map(|rows| store(&build(method, rows, random))).collect();
    let rows: Vec<RoaringTreemap> = live.iter().map(|rows| addresses(rows)).collect();
    let sources: Vec<Source<'_>> = segments.iter().zip(&rows).map(|(files, rows)| Source { files, rows }).collect();
    let count = rows.iter().map(RoaringTreemap::len).sum();
    block_on(method.merge(&sources, &spec(method, apart[0][0].values.data_type(), count))).unwrap()
}

fn same(method: &dyn IndexMethod, one: &BuiltIndex, two: &BuiltIndex, at: &str) {
    assert_eq!((&one.details, one.index_version, one.rows), (&two.details, two.index_version, two.rows), "{at}");
    if method.name() == "BTREE" {
        // Pages of the file may be cut elsewhere: a build has its nulls in one of their own.
        let (one, two) = (store(one), store(two));
        let parts = [("page_data.lance", "values", true), ("page_lookup.lance", "min", true), ("page_lookup.lance", "max", true)];
        for (file, name, nullable) in parts {
            let of = |segment| column(segment, file, name, &DataType::Int64, nullable);
            assert_eq!(&of(&one), &of(&two), "{at} {name}");
        }
        let ids = |segment| column(segment, "page_data.lance", "ids", &DataType::UInt64, false);
        assert_eq!(&ids(&one), &ids(&two), "{at}");
        return;
    }
    if method.name() == "INVERTED" {
        // Tokens are numbered as they first come, rows that are left out included: the same lists in another order.
        assert_eq!(one.stats, two.stats, "{at}");
        let entries = |built: &BuiltIndex| {
            let (segment, mut entries) = (store(built), Vec::new());
            assert!(block_on(method.faults(&segment, &DataType::Utf8)).unwrap().is_empty(), "{at}");
            let Some(Check::Keys(check)) = block_on(method.check(&segment, &DataType::Utf8)).unwrap() else { panic!("{at}") };
            block_on(check.entries(&segment, &mut |sum, key, row| entries.push((sum, key, row)))).unwrap();
            entries.sort_unstable();
            entries
        };
        assert!(entries(one) == entries(two), "{at}");
        return;
    }
    assert_eq!(one.files.len(), two.files.len(), "{at}");
    for ((name, one), (_, two)) in one.files.iter().zip(&two.files) {
        assert_eq!(one.to_bytes(), two.to_bytes(), "{at} {name}");
    }
}

#[test]
fn segments_made_one_are_what_a_build_of_all_would_be() {
    for name in METHODS {
        let method = method_by_name(name).unwrap();
        let mut random = Random(11);
        let all: Vec<Rows> = (0..5).map(|id| Rows::dense(id, values(name, 150 + 31 * id as usize, &mut random))).collect();
        let of = |ids: &[usize]| ids.iter().map(|id| &all[*id]).collect::<Vec<_>>();
        let whole = build(method, &of(&[0, 1, 2, 3, 4]), &mut random);
        let neighbours = [of(&[0, 1]), of(&[2]), of(&[3, 4])];
        same(method, &merged(method, &neighbours, &neighbours, &mut random).unwrap(), &whole, name);
        let scattered = [of(&[0, 3]), of(&[1]), of(&[2, 4])];
        same(method, &merged(method, &scattered, &scattered, &mut random).unwrap(), &whole, name);
        // A part of what a segment holds.
        let chosen = [of(&[1]), of(&[2]), of(&[3])];
        let middle = build(method, &of(&[1, 2, 3]), &mut random);
        same(method, &merged(method, &neighbours, &chosen, &mut random).unwrap(), &middle, name);
    }
}

#[test]
fn deleted_rows_are_left_out() {
    for name in ["BTREE", "BITMAP", "NGRAM", "LABEL_LIST", "INVERTED"] {
        let method = method_by_name(name).unwrap();
        let mut random = Random(5);
        let parts: Vec<ArrayRef> = (0..3).map(|id| values(name, 200 + id, &mut random)).collect();
        let before: Vec<Rows> = (0u32..).zip(&parts).map(|(id, values)| Rows::dense(id, values.clone())).collect();
        let after: Vec<Rows> = (0u32..).zip(&parts).map(|(id, values)| Rows::without(id, values, |o| o % 3 == 1)).collect();
        let apart = [vec![&before[0]], vec![&before[1], &before[2]]];
        let live = [vec![&after[0]], vec![&after[1], &after[2]]];
        let whole = build(method, &after.iter().collect::<Vec<_>>(), &mut random);
        same(method, &merged(method, &apart, &live, &mut random).unwrap(), &whole, name);
    }
}

#[test]
fn zones_of_deleted_rows_keep_bounding_the_others() {
    for name in ["ZONEMAP", "BLOOMFILTER"] {
        let method = method_by_name(name).unwrap();
        let mut random = Random(6);
        let parts: Vec<ArrayRef> = (0..2).map(|_| values(name, 300, &mut random)).collect();
        let before: Vec<Rows> = (0u32..).zip(&parts).map(|(id, values)| Rows::dense(id, values.clone())).collect();
        // All of some zones and a part of others.
        let after: Vec<Rows> =
            (0u32..).zip(&parts).map(|(id, values)| Rows::without(id, values, |o| o < 130 || o % 7 == 2)).collect();
        let (apart, live) = ([vec![&before[0]], vec![&before[1]]], [vec![&after[0]], vec![&after[1]]]);
        let merged = merged(method, &apart, &live, &mut random).unwrap();
        assert_eq!(merged.rows, after.iter().map(|rows| rows.offsets.len() as u64).sum::<u64>(), "{name}");
        let seen = block_on(method.inspect(&store(&merged))).unwrap();
        assert_eq!(seen["problems"], json!([]), "{name}");
        assert!(seen["zones"].as_u64().unwrap() < 2 * 300 / 40, "{name}: zones without rows are gone");
    }
}

#[test]
fn other_parameters_need_the_column() {
    for (name, key, value) in [
        ("ZONEMAP", "rows_per_zone", json!(41)),
        ("BLOOMFILTER", "number_of_items", json!(61)),
        ("INVERTED", "stem", json!(true)),
    ] {
        let method = method_by_name(name).unwrap();
        let rows = Rows::dense(0, values(name, 100, &mut Random(1)));
        let segment = store(&build(method, &[&rows], &mut Random(1)));
        let live = addresses(&[&rows]);
        let mut spec = spec(method, rows.values.data_type(), 100);
        spec.params.insert(key.to_owned(), value);
        let sources = [Source { files: &segment, rows: &live }];
        assert!(block_on(method.merge(&sources, &spec)).unwrap().is_none(), "{name}");
    }
}
