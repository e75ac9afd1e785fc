//! A column as it is handed out: ranges and address lists are slices of the whole, deleted rows are not there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;
mod support;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::UInt64Type;
use common::{Fixture, Rng};
use futures::executor::block_on;
use whetstone::ErrorCode;
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
