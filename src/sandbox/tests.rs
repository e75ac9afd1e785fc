//! A table from its first version on, in memory: what was asked for is what is there.

use futures::executor::block_on;
use futures::future::LocalBoxFuture;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Int64Type};

use super::choose::RowChoice;
use super::condition::parse;
use super::generate::Value;
use super::*;
use crate::env::TestEnv;
use crate::error::{Changed, Error, ErrorCode, Result};
use crate::format::row::RowDomain;
use crate::store::Store;
use crate::table::Table;
use crate::table::publish::{Committing, tell_nobody};
use crate::table::scan::{FragmentScan, ScanContext};

fn column(name: &str, kind: &str) -> ColumnSpec {
    ColumnSpec { name: name.into(), kind: kind.into(), ..ColumnSpec::default() }
}

fn made(columns: Vec<ColumnSpec>, rows: u64, per_fragment: u64) -> Result<(Store, Table)> {
    let store = Store::memory(Arc::new(TestEnv::new(1_700_000_000_000, 9)));
    let request = SandboxRequest { columns, rows, rows_per_fragment: Some(per_fragment), ..SandboxRequest::default() };
    let table = block_on(create_sandbox(&store, &request, &count_no_rows))?;
    Ok((store, table))
}

fn change(table: &Table, request: ChangeRequest) -> Result<(ChangeReport, Table)> {
    block_on(async {
        let plan = plan_change(table, request).await?;
        run_change(table, &plan, &tell_nobody, &count_no_rows).await
    })
}

fn delete(choice: RowChoice) -> ChangeRequest {
    ChangeRequest { kind: "delete".into(), choice: Some(choice), ..ChangeRequest::default() }
}

fn rows_where(text: &str) -> RowChoice {
    RowChoice { condition: Some(text.into()), ..RowChoice::default() }
}

fn ids(table: &Table) -> Vec<i64> {
    let mut all = Vec::new();
    for fragment in &table.manifest().manifest.fragments {
        let context = ScanContext::new(table.store().clone(), table.manifest().clone(), 0, RowDomain::Address);
        block_on(async {
            let mut scan = FragmentScan::open(&context, fragment).await.unwrap();
            while let Some(batch) = scan.next().await.unwrap() {
                all.extend(batch.values.as_primitive::<Int64Type>().values().iter().copied());
            }
        });
    }
    all
}

#[test]
fn a_table_lives() {
    let (_, table) = made(vec![column("id", "int64"), column("tags", "labels"), column("word", "utf8")], 25, 10).unwrap();
    assert_eq!((table.version(), table.manifest().manifest.live_rows()), (1, Some(25)));
    let (report, table) =
        change(&table, ChangeRequest { kind: "append".into(), rows: Some(5), ..ChangeRequest::default() }).unwrap();
    assert_eq!((report.first_row, report.fragments_added), (Some(25), vec![3]));
    let (report, table) = change(&table, delete(rows_where("id < 10"))).unwrap();
    assert_eq!((report.rows, report.fragments_removed, report.fragments_changed), (10, vec![0], vec![]));
    let every = RowChoice { rows: Some((0, 10)), every: Some(5), ..RowChoice::default() };
    let (report, table) = change(&table, delete(every)).unwrap();
    assert_eq!((report.rows, report.fragments_changed), (2, vec![1]));
    assert!(!ids(&table).contains(&10) && !ids(&table).contains(&15));
    let set = [("id".to_owned(), Value::Whole(-1)), ("tags".to_owned(), Value::List(vec!["x".into(), "y".into()]))].into();
    let update = ChangeRequest {
        kind: "update".into(),
        choice: Some(rows_where("id BETWEEN 28 AND 100")),
        set: Some(set),
        ..ChangeRequest::default()
    };
    let (report, table) = change(&table, update).unwrap();
    assert_eq!((report.rows, report.fragments_added, report.version), (2, vec![4], 5));
    let mut expected: Vec<i64> = (11..28).filter(|id| *id != 15).collect();
    expected.extend([-1, -1]);
    assert_eq!(ids(&table), expected);
    let manifest = &table.manifest().manifest;
    assert_eq!((manifest.reader_flags & 1, manifest.max_fragment_id), (1, Some(4)));
    // Nothing left: the deletions are gone with their fragments, ids are not given again.
    let (_, table) = change(&table, delete(rows_where("true"))).unwrap();
    assert_eq!((table.manifest().manifest.fragments.len(), table.manifest().manifest.reader_flags & 1), (0, 0));
    let (report, table) =
        change(&table, ChangeRequest { kind: "append".into(), rows: Some(1), ..ChangeRequest::default() }).unwrap();
    assert_eq!((report.fragments_added, report.first_row), (vec![5], Some(30)));
    assert_eq!(ids(&table), [30]);
}

#[test]
fn the_seed_is_that_of_the_first_row_too() {
    let make = |seed: u64, rows: u64| {
        let store = Store::memory(Arc::new(TestEnv::new(1_700_000_000_000, 9)));
        let v = ColumnSpec { shape: Some(super::generate::Shape::Random), ..column("v", "int64") };
        let request = SandboxRequest { columns: vec![v], rows, seed: Some(seed), ..SandboxRequest::default() };
        block_on(create_sandbox(&store, &request, &count_no_rows)).unwrap()
    };
    let append = |table: &Table| {
        change(table, ChangeRequest { kind: "append".into(), rows: Some(4), ..ChangeRequest::default() }).unwrap().1
    };
    assert_eq!(ids(&make(3, 9)), ids(&append(&make(3, 5))));
    assert_ne!(ids(&make(3, 9)), ids(&make(4, 9)));
}

#[test]
fn a_plan_is_stale_when_its_fragments_changed() {
    let (store, table) = made(vec![column("id", "int64")], 20, 10).unwrap();
    let plan = block_on(plan_change(&table, delete(rows_where("id < 3")))).unwrap();
    let (_, other) = change(&table, delete(rows_where("id = 12"))).unwrap();
    let (report, table) = block_on(run_change(&table, &plan, &tell_nobody, &count_no_rows)).unwrap();
    assert_eq!((report.version_before, report.version), (other.version(), other.version() + 1));
    let plan = block_on(plan_change(&table, delete(rows_where("id = 5")))).unwrap();
    let _ = change(&table, delete(rows_where("id = 6"))).unwrap();
    let before = block_on(store.list("_deletions")).unwrap().len();
    let error = block_on(run_change(&table, &plan, &tell_nobody, &count_no_rows)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StalePlan);
    assert_eq!(block_on(store.list("_deletions")).unwrap().len(), before, "nothing is left behind");
    assert!(made(vec![column("id", "int64")], 0, 1).is_ok(), "a table without rows");
    let request = SandboxRequest { columns: vec![column("a", "bool")], ..SandboxRequest::default() };
    let again = block_on(create_sandbox(&store, &request, &count_no_rows));
    assert!(again.unwrap_err().message().contains("already"));
}

#[test]
fn appends_that_race_number_their_rows_apart() {
    let (store, table) = made(vec![column("id", "int64")], 20, 10).unwrap();
    let append = || ChangeRequest { kind: "append".into(), rows: Some(5), ..ChangeRequest::default() };
    let plan = block_on(plan_change(&table, append())).unwrap();
    let (_, after) = change(&table, append()).unwrap();
    // Another append is faster at the first attempt to commit: after this one has written its rows.
    let told = std::cell::Cell::new(0u32);
    let racing = |_: Committing| -> LocalBoxFuture<'static, Result<()>> {
        told.set(told.get() + 1);
        let (first, other) = (told.get() == 1, after.clone());
        Box::pin(async move {
            if first {
                let plan =
                    plan_change(&other, ChangeRequest { kind: "append".into(), rows: Some(7), ..Default::default() }).await?;
                run_change(&other, &plan, &tell_nobody, &count_no_rows).await?;
            }
            Ok(())
        })
    };
    let (report, table) = block_on(run_change(&table, &plan, &racing, &count_no_rows)).unwrap();
    assert_eq!((plan.first_row, report.first_row, report.fragments_added), (Some(20), Some(32), vec![4]));
    assert_eq!(report.attempts.iter().map(|a| a.outcome.as_str()).collect::<Vec<_>>(), ["lost", "committed"]);
    assert_eq!(ids(&table), (0..37).collect::<Vec<i64>>());
    let manifest = &table.manifest().manifest;
    let named: usize = manifest.fragments.iter().map(|fragment| fragment.files.len()).sum();
    assert_eq!(block_on(store.list("data")).unwrap().len(), named, "rows that were made twice are not left behind");
}

#[test]
fn rows_are_counted_while_they_are_written_and_who_counts_may_end_it() {
    let columns = || vec![column("id", "int64"), column("word", "utf8")];
    let (store, table) = made(columns(), 10, 10).unwrap();
    let files = || block_on(store.list("data")).unwrap().len();
    let request = ChangeRequest { kind: "append".into(), rows: Some(25), rows_per_fragment: Some(10), ..Default::default() };
    let plan = block_on(plan_change(&table, request)).unwrap();
    let seen = std::cell::RefCell::new(Vec::new());
    let until = |most: u64| {
        let seen = &seen;
        move |rows: u64| -> LocalBoxFuture<'static, Result<()>> {
            seen.borrow_mut().push(rows);
            Box::pin(std::future::ready(if rows > most { Err(Error::new(ErrorCode::Aborted, "enough")) } else { Ok(()) }))
        }
    };
    let error = block_on(run_change(&table, &plan, &tell_nobody, &until(12))).unwrap_err();
    assert_eq!((error.code(), error.changed(), seen.take()), (ErrorCode::Aborted, Changed::Nothing, vec![5, 10, 15]));
    assert_eq!((files(), block_on(table.latest()).unwrap().version()), (1, 1), "the finished fragment is gone too");
    let (_, table) = block_on(run_change(&table, &plan, &tell_nobody, &until(25))).unwrap();
    assert_eq!((seen.take(), table.version()), (vec![5, 10, 15, 20, 22, 25], 2));
    let set = [("word".to_owned(), Value::Text("x".into()))].into();
    let update =
        ChangeRequest { kind: "update".into(), choice: Some(rows_where("id < 30")), set: Some(set), ..Default::default() };
    let plan = block_on(plan_change(&table, update)).unwrap();
    let before = files();
    assert!(block_on(run_change(&table, &plan, &tell_nobody, &until(20))).is_err());
    assert_eq!(files(), before);
    assert!(seen.take().is_sorted());
    let none = Store::memory(Arc::new(TestEnv::new(1_700_000_000_000, 9)));
    let request = SandboxRequest { columns: columns(), rows: 30, rows_per_fragment: Some(10), ..SandboxRequest::default() };
    assert_eq!(block_on(create_sandbox(&none, &request, &until(20))).unwrap_err().code(), ErrorCode::Aborted);
    assert!(block_on(none.list("data")).unwrap().is_empty());
}

#[test]
fn conditions() {
    let (_, table) =
        made(vec![column("id", "int64"), column("w", "utf8"), column("f", "float32"), column("l", "labels")], 1, 1).unwrap();
    let schema = &table.manifest().manifest.schema;
    for (good, parts) in [
        ("true", 0),
        ("id = -5", 1),
        ("\"id\" <> 5 and w in ('a', 'it''s')", 2),
        ("f BETWEEN 0.5 AND 1e1 AND w IS NOT NULL", 3),
        ("w NOT IN ('x') AND l IS NULL", 2),
    ] {
        assert_eq!(parse(schema, good).unwrap().len(), parts, "{good}");
    }
    for (bad, code) in [
        ("", ErrorCode::SqlSyntax),
        ("id", ErrorCode::SqlSyntax),
        ("id = ", ErrorCode::SqlSyntax),
        ("id = 1 2", ErrorCode::SqlSyntax),
        ("id = 1 OR id = 2", ErrorCode::SqlSyntax),
        ("id IN ()", ErrorCode::SqlSyntax),
        ("id NOT = 3", ErrorCode::SqlSyntax),
        ("id BETWEEN 1, 2", ErrorCode::SqlSyntax),
        ("id = 'unclosed", ErrorCode::SqlSyntax),
        ("id IS 3", ErrorCode::SqlSyntax),
        ("w = -'a'", ErrorCode::SqlSyntax),
        ("nope = 1", ErrorCode::ColumnNotFound),
        ("id = 'x'", ErrorCode::InvalidArgument),
        ("id = 99999999999999999999", ErrorCode::InvalidArgument),
        ("l = 'a'", ErrorCode::UnsupportedType),
    ] {
        assert_eq!(parse(schema, bad).unwrap_err().code(), code, "{bad}");
    }
    let part = &parse(schema, "f > 0.25").unwrap()[0];
    let values: arrow::array::ArrayRef =
        Arc::new(arrow::array::Float32Array::from(vec![Some(0.25), None, Some(f32::NAN), Some(-1.0), Some(0.3)]));
    assert_eq!(part.test(&values), [false, false, true, false, true]);
    assert_eq!(part.test(&values.slice(2, 3)), [true, false, true]);
    assert_eq!(values.data_type(), &DataType::Float32);
}
