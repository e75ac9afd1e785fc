use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, Float32Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{Float64Type, UInt32Type, UInt64Type};
use futures::executor::block_on;
use serde_json::json;

use super::*;
use crate::format::schema::scalar_type;
use crate::index::testing::{Random, Rows, build, column, metadata, parts, store};
use crate::index::zones::{NULL_BITMAP, Places};

fn params(rows: u64) -> Params {
    Params::from_iter([(ROWS_PER_ZONE.to_owned(), rows.into())])
}

fn u32s(segment: &SegmentFiles, name: &str) -> Vec<u32> {
    column(segment, FILE, name, &DataType::UInt32, false).as_primitive::<UInt32Type>().values().to_vec()
}

fn u64s(segment: &SegmentFiles, name: &str) -> Vec<u64> {
    column(segment, FILE, name, &DataType::UInt64, false).as_primitive::<UInt64Type>().values().to_vec()
}

/// (fragment, start, length) of every zone.
fn placed(segment: &SegmentFiles) -> Vec<(u64, u64, u64)> {
    let fragments = u64s(segment, "fragment_id");
    fragments
        .into_iter()
        .zip(u64s(segment, "zone_start"))
        .zip(u64s(segment, "zone_length"))
        .map(|((f, s), l)| (f, s, l))
        .collect()
}

#[test]
fn zones_count_live_rows_and_span_physical_ones() {
    let mut random = Random(1);
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..20));
    let rows = [
        // Live: 1 2 4 5 7 8 10 11 13 14 16 17 19.
        Rows::without(0, &values, |offset| offset % 3 == 0),
        Rows::dense(4, values.slice(0, 4)),
        Rows::without(5, &values, |_| true),
        Rows::dense(7, values.slice(3, 5)),
    ];
    let segment = store(&build(&ZoneMap, "int64", 0, &params(4), &rows, &mut random));
    assert_eq!(placed(&segment), [(0, 1, 5), (0, 7, 5), (0, 13, 5), (0, 19, 1), (4, 0, 4), (7, 0, 4), (7, 4, 1)]);
    let bounds = |name| column(&segment, FILE, name, &DataType::Int64, true);
    assert_eq!(bounds("min").as_ref(), &Int64Array::from(vec![1, 7, 13, 19, 0, 3, 7]) as &dyn Array);
    assert_eq!(bounds("max").as_ref(), &Int64Array::from(vec![5, 11, 17, 19, 3, 6, 7]) as &dyn Array);
    assert_eq!(u32s(&segment, "null_count"), [0; 7]);
    let expected = [(NULL_BITMAP, "1"), (ROWS_PER_ZONE, "4")];
    assert_eq!(metadata(&segment, FILE), expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    let file = block_on(segment.open(FILE)).unwrap();
    assert_eq!(block_on(file.global_buffer(1)).unwrap().as_ref(), [0, 0, 0, 0]);
}

#[test]
fn fragments_given_out_of_order_are_written_in_order() {
    let mut random = Random(2);
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5));
    let rows = [Rows::dense(9, values.clone()), Rows::dense(2, values.slice(2, 3))];
    let segment = store(&build(&ZoneMap, "int64", 0, &params(3), &rows, &mut random));
    assert_eq!(placed(&segment), [(2, 0, 3), (9, 0, 3), (9, 3, 2)]);
    assert_eq!(column(&segment, FILE, "min", &DataType::Int64, true).as_ref(), &Int64Array::from(vec![2, 0, 3]) as &dyn Array);
}

#[test]
fn nan_and_null_rules() {
    let mut random = Random(3);
    let nan = Some(f64::NAN);
    let values: ArrayRef = Arc::new(Float64Array::from(vec![
        Some(1.0),
        nan,
        Some(-0.0), // a NaN makes the upper bound NaN, the lower stays finite
        nan,
        Some(-f64::NAN),
        nan, // only NaN, of either sign
        None,
        None,
        None, // only nulls
        None,
        nan,
        None, // no number
        Some(0.0),
        Some(-0.0),
        None, // both zeros
        Some(f64::INFINITY),
        Some(f64::NEG_INFINITY),
        Some(3.0),
    ]));
    let segment = store(&build(&ZoneMap, "double", 0, &params(3), &[Rows::dense(0, values)], &mut random));
    let bits = |name| -> Vec<Option<u64>> {
        let array = column(&segment, FILE, name, &DataType::Float64, true);
        array.as_primitive::<Float64Type>().iter().map(|value| value.map(f64::to_bits)).collect()
    };
    let of = |value: f64| Some(value.to_bits());
    assert_eq!(bits("min"), [of(-0.0), None, None, None, of(-0.0), of(f64::NEG_INFINITY)]);
    assert_eq!(bits("max"), [of(f64::NAN), of(f64::NAN), None, of(f64::NAN), of(0.0), of(f64::INFINITY)]);
    assert_eq!(u32s(&segment, "nan_count"), [1, 3, 0, 1, 0, 0]);
    assert_eq!(u32s(&segment, "null_count"), [0, 0, 3, 2, 1, 0]);
    let stored: Vec<u64> = block_on(ZoneMap.stored_rows(&segment)).unwrap().iter().collect();
    assert_eq!(stored, [6, 7, 8, 9, 11, 14]);
}

/// Cuts and bounds a column the slow way and compares.
fn check(logical_type: &str, rows_per_zone: usize, rows: &[Rows], random: &mut Random) {
    let data_type = scalar_type(logical_type).unwrap();
    let segment = store(&build(&ZoneMap, logical_type, 0, &params(rows_per_zone as u64), rows, random));
    let (mut places, mut nulls, mut lows, mut highs, mut null_rows) = (vec![], vec![], vec![], vec![], vec![]);
    for fragment in rows {
        for start in (0..fragment.offsets.len()).step_by(rows_per_zone) {
            let zone = fragment.values.slice(start, rows_per_zone.min(fragment.offsets.len() - start));
            let (first, last) = (fragment.offsets[start], fragment.offsets[start + zone.len() - 1]);
            places.push((u64::from(fragment.fragment), u64::from(first), u64::from(last - first + 1)));
            nulls.push(zone.null_count() as u32);
            null_rows.extend((0..zone.len()).filter(|row| zone.is_null(*row)).map(|row| fragment.address(start + row)));
            let order = arrow::compute::sort(&zone, None).unwrap();
            let known = zone.len() - zone.null_count();
            let of = |row: usize| {
                if known == 0 { arrow::array::new_null_array(&data_type, 1) } else { order.slice(zone.null_count() + row, 1) }
            };
            lows.push(of(0));
            highs.push(of(known.saturating_sub(1)));
        }
    }
    assert_eq!(placed(&segment), places);
    assert_eq!(u32s(&segment, "null_count"), nulls);
    let low = column(&segment, FILE, "min", &data_type, true);
    let high = column(&segment, FILE, "max", &data_type, true);
    for zone in 0..places.len() {
        assert_eq!(&low.slice(zone, 1), &lows[zone], "{logical_type} min of zone {zone}");
        assert_eq!(&high.slice(zone, 1), &highs[zone], "{logical_type} max of zone {zone}");
    }
    assert!(block_on(ZoneMap.stored_rows(&segment)).unwrap().iter().eq(null_rows));
}

#[test]
fn every_type_reads_back_as_the_model_says() {
    let mut random = Random(4);
    let raw: Vec<Option<u64>> = (0..3000).map(|_| (random.below(5) > 0).then(|| random.next())).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("int64", Arc::new(Int64Array::from_iter(raw.iter().map(|v| v.map(|v| v as i64))))),
        ("float", Arc::new(Float32Array::from_iter(raw.iter().map(|v| v.map(|v| (v % 1000) as f32 - 500.0))))),
        ("bool", Arc::new(BooleanArray::from_iter(raw.iter().map(|v| v.map(|v| v % 9 == 0))))),
        ("timestamp:us:-", Arc::new(TimestampMicrosecondArray::from_iter(raw.iter().map(|v| v.map(|v| (v >> 12) as i64))))),
        (
            "string",
            Arc::new(StringArray::from_iter(raw.iter().map(|v| v.map(|v| format!("{v:x}{}", "y".repeat((v % 40) as usize)))))),
        ),
    ];
    for (logical_type, values) in columns {
        let rows = [
            Rows::without(0, &values, |offset| offset % 5 == 0 || (1000..1400).contains(&offset)),
            Rows::dense(3, values.slice(100, 900)),
        ];
        for rows_per_zone in [1, 3, 64, 8192] {
            check(logical_type, rows_per_zone, &rows, &mut random);
        }
    }
}

#[test]
fn fixed_size_binary_has_no_bounds() {
    let mut random = Random(5);
    let values =
        FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some([1u8, 2]), None, Some([0, 1])].into_iter(), 2).unwrap();
    let segment = store(&build(&ZoneMap, "fixed_size_binary:2", 0, &params(8), &[Rows::dense(0, Arc::new(values))], &mut random));
    let low = column(&segment, FILE, "min", &DataType::FixedSizeBinary(2), true);
    assert_eq!((low.len(), low.null_count()), (1, 1));
    assert_eq!(u32s(&segment, "null_count"), [1]);
}

#[test]
fn an_empty_segment_keeps_its_parameters() {
    let mut random = Random(6);
    let built = build(&ZoneMap, "string", 0, &params(5), &[], &mut random);
    let segment = store(&built);
    assert_eq!(placed(&segment), []);
    assert_eq!(built.details.value.as_ref(), [0x08, 5, 0x10, 1, 0x18, 1]);
    let recovered = block_on(ZoneMap.recover_params(&segment)).unwrap();
    assert_eq!(recovered, Params::from_iter([(ROWS_PER_ZONE.to_owned(), 5.into()), (USE_SEEDS.to_owned(), true.into())]));
    let again = ZoneMap.merge_params(recovered, &Params::new()).unwrap();
    assert_eq!(ZoneMap.details(&again, &DataType::Utf8), built.details);
}

#[test]
fn a_copy_loses_null_rows_and_whole_zones_only() {
    let mut random = Random(7);
    let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None, None, Some(1), None, Some(7)]));
    let rows = [Rows::dense(0, values.clone()), Rows::dense(1, values.clone()), Rows::dense(2, values)];
    let segment = store(&build(&ZoneMap, "int64", 0, &params(3), &rows, &mut random));
    // All of fragment 1, and the nulls of fragment 2's first zone.
    let drop = |address: u64| address >> 32 == 1 || address == (2 << 32) + 1 || address == (2 << 32) + 2;
    let copy =
        store(&block_on(ZoneMap.copy_placed(&segment, &DataType::Int64, &|row| (!drop(row)).then_some(row))).unwrap().unwrap());
    assert_eq!(placed(&copy), [(0, 0, 3), (0, 3, 3), (2, 0, 3), (2, 3, 3)]);
    assert_eq!(u32s(&copy, "null_count"), [2, 1, 0, 1]);
    assert_eq!(column(&copy, FILE, "max", &DataType::Int64, true).as_ref(), &Int64Array::from(vec![5, 7, 5, 7]) as &dyn Array);
    let stored: Vec<u64> = block_on(ZoneMap.stored_rows(&copy)).unwrap().iter().collect();
    assert_eq!(stored, [1, 2, 4, (2 << 32) + 4]);
    assert_eq!(copy.entry().details, segment.entry().details);
    assert_eq!(block_on(ZoneMap.inspect(&copy)).unwrap()["problems"], json!([]));
}

#[test]
fn inspection() {
    let mut random = Random(8);
    let values: ArrayRef = Arc::new(Float64Array::from(vec![Some(2.5), None, Some(f64::NAN), Some(-1.0)]));
    let segment = store(&build(&ZoneMap, "double", 0, &params(2), &[Rows::dense(6, values)], &mut random));
    assert_eq!(
        block_on(ZoneMap.inspect(&segment)).unwrap(),
        json!({
            "method": "ZONEMAP", "index_version": 0, "rows_per_zone": 2, "zones": 2, "fragments": [6], "nulls": 1, "nans": 1,
            "null_rows_stored": true, "min": -1.0, "max": "NaN", "problems": [], "remarks": [],
        })
    );
    assert_eq!(
        parts(&ZoneMap, &segment, 0..1000),
        json!({ "kind": "zones", "count": 2, "offset": 0, "left_out": 0, "items": [
            { "fragment": 6, "start": 0, "length": 2, "min": 2.5, "max": 2.5, "nulls": 1, "nans": 0 },
            { "fragment": 6, "start": 2, "length": 2, "min": -1.0, "max": "NaN", "nulls": 0, "nans": 1 },
        ] })
    );
}

#[test]
fn rows_out_of_order_are_a_bug_of_the_caller() {
    let spec = BuildSpec {
        data_type: DataType::Int64,
        logical_type: "int64".to_owned(),
        params: params(10),
        index_version: 0,
        rows_hint: None,
    };
    let mut builder = ZoneMap.builder(spec).unwrap();
    let batch = |start: u64| crate::table::scan::ColumnBatch {
        fragment: 0,
        values: Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef,
        rows: crate::table::scan::BatchRows::Range { start },
    };
    builder.push(batch(4)).unwrap();
    assert!(builder.push(batch(2)).is_err());
    assert!(builder.push(batch(1 << 32)).is_err(), "an address of another fragment");
    builder.push(batch(6)).unwrap();
}

#[test]
fn parameters() {
    assert!(ZoneMap.merge_params(ZoneMap.default_params(), &params(0)).is_err());
    let seeds = Params::from_iter([(USE_SEEDS.to_owned(), "perhaps".into())]);
    assert!(ZoneMap.merge_params(ZoneMap.default_params(), &seeds).is_err());
    assert_eq!(ZoneMap.row_domain(0, true), RowDomain::Address);
}

#[test]
fn inspection_names_zones_that_cannot_be() {
    let spec = BuildSpec {
        data_type: DataType::Int64,
        logical_type: "int64".to_owned(),
        params: params(4),
        index_version: 0,
        rows_hint: None,
    };
    let inspect = |fragments: [u64; 2], starts: [u64; 2], lengths: [u64; 2], null_counts: [u32; 2], nulls: &[u64]| {
        let zones = build::Zones {
            null_counts: null_counts.to_vec(),
            nan_counts: vec![0, 0],
            places: Places { fragments: fragments.to_vec(), starts: starts.to_vec(), lengths: lengths.to_vec() },
        };
        let bounds = || -> ArrayRef { Arc::new(Int64Array::from(vec![1, 2])) };
        let nulls = nulls.iter().copied().collect();
        let built = build::encode(&spec, 4, [bounds(), bounds()], zones, &nulls, 0).unwrap();
        let seen = block_on(ZoneMap.inspect(&store(&built))).unwrap();
        if seen["problems"] == json!([]) { seen["remarks"].clone() } else { seen["problems"].clone() }
    };
    assert_eq!(inspect([0, 0], [0, 4], [4, 4], [1, 0], &[2]), json!([]));
    assert_eq!(inspect([0, 0], [0, 4], [4, 4], [1, 0], &[]), json!(["0 null rows are stored, the zones count 1"]));
    assert_eq!(inspect([0, 0], [0, 4], [4, 0], [0, 0], &[]), json!(["zone 1 spans 0 rows and counts 0 nulls and NaNs"]));
    assert_eq!(inspect([0, 1], [0, 4], [1, 4], [2, 0], &[0, 1]), json!(["zone 0 spans 1 rows and counts 2 nulls and NaNs"]));
    let overlap = "the zone of fragment 0 from row 3 on comes after the one of fragment 0 that ends at row 4";
    assert_eq!(inspect([0, 0], [0, 3], [4, 4], [0, 0], &[]), json!([overlap]));
}
