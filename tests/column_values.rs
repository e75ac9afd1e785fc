//! A column as it is handed out: ranges and address lists are slices of the whole, deleted rows are not there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;
mod support;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::UInt64Type;
use common::{Fixture, Rng};
use futures::executor::block_on;
use whetstone::ErrorCode;
use whetstone::format::fragment::RowIdSource;
use whetstone::format::manifest::ManifestFile;
use whetstone::format::row::RowDomain;
use whetstone::table::scan::{FragmentScan, ScanContext};
use whetstone::table::values::{ColumnRequest, ColumnValues};
use whetstone::table::{At, Table};

fn open(fixture: &Fixture) -> Table {
    block_on(Table::open(support::folder_store(&fixture.path), At::Latest, None)).unwrap()
}

fn read(table: &Table, path: &str, request: ColumnRequest) -> Result<RecordBatch, whetstone::Error> {
    let bytes = block_on(ColumnValues::new(table, path, request)?.ipc())?;
    let reader = arrow::ipc::reader::StreamReader::try_new(bytes.as_slice(), None).unwrap();
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
    Ok(concat_batches(&schema, &batches).unwrap())
}

fn addresses(batch: &RecordBatch) -> Vec<u64> {
    batch.column(1).as_primitive::<UInt64Type>().values().to_vec()
}

fn pick(batch: &RecordBatch, rows: &[usize]) -> (ArrayRef, Vec<u64>) {
    let rows = arrow::array::UInt64Array::from_iter_values(rows.iter().map(|row| *row as u64));
    (
        take(batch.column(0), &rows, None).unwrap(),
        take(batch.column(1), &rows, None).unwrap().as_primitive::<UInt64Type>().values().to_vec(),
    )
}

#[test]
fn parts_are_slices_of_the_whole() {
    for (name, column) in [("deletions_large", "k"), ("deletions_small", "k"), ("columns_added", "extra"), ("fragments_200", "k")]
    {
        let table = open(&Fixture::table(name));
        let Ok(whole) = read(&table, column, ColumnRequest::default()) else {
            let fields: Vec<_> = table.manifest().manifest.schema.fields.iter().map(|f| f.name.clone()).collect();
            panic!("{name} has {fields:?}");
        };
        let all = addresses(&whole);
        assert_eq!(Some(all.len() as u64), table.manifest().manifest.live_rows());
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{name}: ascending");
        let mut rng = Rng::new(11);
        for _ in 0..12 {
            let (offset, limit) = (rng.below(all.len() + 2), rng.below(all.len()));
            let request = ColumnRequest { offset: offset as u64, limit: Some(limit as u64), ..Default::default() };
            let part = read(&table, column, request).unwrap();
            let rows: Vec<usize> = (offset..(offset + limit).min(all.len()).max(offset)).filter(|row| *row < all.len()).collect();
            let (values, ids) = pick(&whole, &rows);
            assert_eq!((part.column(0), addresses(&part)), (&values, ids), "{name}: {limit} rows after {offset}");
            let mut rows: Vec<usize> = (0..1 + rng.below(20)).map(|_| rng.below(all.len())).collect();
            let asked = rows.iter().map(|row| all[*row].to_string()).collect();
            rows.sort_unstable();
            rows.dedup();
            let part = read(&table, column, ColumnRequest { addresses: Some(asked), ..Default::default() }).unwrap();
            let (values, ids) = pick(&whole, &rows);
            assert_eq!((part.column(0), addresses(&part)), (&values, ids), "{name}: rows {rows:?}");
        }
        let fragment = table.manifest().manifest.fragments.last().unwrap().id;
        let part = read(&table, column, ColumnRequest { fragment: Some(fragment), ..Default::default() }).unwrap();
        let want: Vec<u64> = all.iter().copied().filter(|id| id >> 32 == u64::from(fragment)).collect();
        assert_eq!(addresses(&part), want);
    }
}

#[test]
fn what_is_not_there_is_refused() {
    let table = open(&Fixture::table("deletions_small"));
    let all = addresses(&read(&table, "k", ColumnRequest::default()).unwrap());
    let dead = (0..u64::MAX).find(|id| !all.contains(id)).unwrap();
    let refused = |request: ColumnRequest| read(&table, "k", request).unwrap_err().code();
    let asked = |texts: &[String]| ColumnRequest { addresses: Some(texts.to_vec()), ..Default::default() };
    assert_eq!(refused(asked(&[dead.to_string()])), ErrorCode::InvalidArgument, "a deleted row");
    assert_eq!(refused(asked(&[(7u64 << 40).to_string()])), ErrorCode::InvalidArgument, "a fragment that is not there");
    assert_eq!(refused(asked(&["1e3".to_owned()])), ErrorCode::InvalidArgument);
    assert_eq!(refused(ColumnRequest { limit: Some(1), ..asked(&[]) }), ErrorCode::InvalidArgument);
    assert_eq!(refused(ColumnRequest { fragment: Some(99), ..Default::default() }), ErrorCode::InvalidArgument);
    assert_eq!(read(&table, "nope", ColumnRequest::default()).unwrap_err().code(), ErrorCode::ColumnNotFound);
    assert_eq!(read(&table, "k", asked(&[])).unwrap().num_rows(), 0);
}

/// The live rows of a column of a manifest that was changed in memory.
fn scanned(table: &Table, manifest: ManifestFile, field: i32, domain: RowDomain) -> Vec<(u32, Vec<u64>, ArrayRef)> {
    let context = ScanContext::new(table.store().clone(), Arc::new(manifest), field, domain);
    let mut found = Vec::new();
    for fragment in &context.manifest.manifest.fragments {
        let mut scan = block_on(FragmentScan::open(&context, fragment)).unwrap();
        while let Some(batch) = block_on(scan.next()).unwrap() {
            let ids = (0..batch.values.len()).map(|at| batch.rows.get(at).unwrap()).collect();
            found.push((batch.fragment, ids, batch.values));
        }
    }
    found
}

#[test]
fn fragment_ids_up_to_the_last() {
    let fixture = Fixture::table("fragments_one_wide");
    let table = open(&fixture);
    let before = scanned(&table, (**table.manifest()).clone(), 1, RowDomain::Address);
    let mut manifest = (**table.manifest()).clone();
    let last = manifest.manifest.fragments.last_mut().unwrap();
    assert!(last.deletion_file.is_none(), "its name holds the id");
    last.id = u32::MAX;
    let after = scanned(&table, manifest, 1, RowDomain::Address);
    let (fragment, ids, values) = after.last().unwrap();
    assert_eq!(*fragment, u32::MAX);
    assert_eq!(ids[0], u64::from(u32::MAX) << 32);
    assert_eq!(values, &before.last().unwrap().2);
}

#[test]
fn row_ids_in_a_hidden_column() {
    // No released writer makes them (§4.4): the column of some other field stands in for the hidden one.
    let table = open(&Fixture::table("stable_row_ids"));
    let schema = &table.manifest().manifest.schema;
    let numbers = schema.fields.iter().find(|field| field.logical_type == "int64" && field.name != "k").unwrap().id;
    let key = schema.resolve("k").unwrap().id;
    let standing = scanned(&table, (**table.manifest()).clone(), numbers, RowDomain::Address);
    let mut manifest = (**table.manifest()).clone();
    for fragment in &mut manifest.manifest.fragments {
        fragment.row_ids = Some(RowIdSource::Column);
        for file in &mut fragment.files {
            if let Some(at) = file.fields.iter().position(|id| *id == numbers) {
                file.fields.push(-3);
                file.column_indices.push(file.column_indices[at]);
            }
        }
    }
    let read = scanned(&table, manifest.clone(), key, RowDomain::StableId);
    let ids: Vec<u64> = read.iter().flat_map(|(_, ids, _)| ids.clone()).collect();
    let want: Vec<u64> = standing
        .iter()
        .flat_map(|(_, _, values)| {
            values.as_primitive::<arrow::datatypes::Int64Type>().values().iter().map(|v| *v as u64).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(ids, want);
    for file in manifest.manifest.fragments.iter_mut().flat_map(|fragment| &mut fragment.files) {
        file.fields.iter_mut().filter(|id| **id == -3).for_each(|id| *id = -2);
    }
    let context = ScanContext::new(table.store().clone(), Arc::new(manifest), key, RowDomain::StableId);
    let error = block_on(FragmentScan::open(&context, &context.manifest.manifest.fragments[0])).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CorruptFile, "{error}");
}
