//! Every scalar column of every fixture table, fragment by fragment, equals what pylance reads: values, row addresses,
//! stable row ids. What this build does not read is refused by code, never misread.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, new_empty_array};
use arrow::compute::{concat, concat_batches};
use arrow::datatypes::UInt64Type;
use futures::executor::block_on;
use whetstone::format::fragment::Fragment;
use whetstone::format::row::RowDomain;
use whetstone::table::scan::{FragmentScan, ScanContext};
use whetstone::table::{At, Table};
use whetstone::{ErrorCode, Result};

fn read(table: &Table, field: i32, domain: RowDomain) -> Result<(Option<ArrayRef>, Vec<u64>)> {
    let context = ScanContext::new(table.store().clone(), table.manifest().clone(), field, domain);
    let (mut arrays, mut ids) = (Vec::new(), Vec::new());
    for fragment in &table.manifest().manifest.fragments {
        let mut scan = block_on(FragmentScan::open(&context, fragment))?;
        let mut live = 0u64;
        while let Some(batch) = block_on(scan.next())? {
            assert!(!batch.values.is_empty());
            assert_eq!(batch.fragment, fragment.id);
            live += batch.values.len() as u64;
            ids.extend((0..batch.values.len()).map(|row| batch.rows.get(row).unwrap()));
            arrays.push(batch.values);
        }
        assert_eq!(live, scan.live_rows());
    }
    let parts: Vec<&dyn Array> = arrays.iter().map(|a| a.as_ref()).collect();
    Ok((if parts.is_empty() { None } else { Some(concat(&parts).unwrap()) }, ids))
}

fn expected(path: &Path) -> RecordBatch {
    let reader = arrow::ipc::reader::FileReader::try_new(fs::File::open(path).unwrap(), None).unwrap();
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
    concat_batches(&schema, &batches).unwrap()
}

fn hidden(want: &RecordBatch, name: &str) -> Option<Vec<u64>> {
    want.column_by_name(name).map(|column| column.as_primitive::<UInt64Type>().values().to_vec())
}

#[test]
fn every_column_of_every_fixture() {
    let dir = tempfile::tempdir().unwrap();
    let printed = support::run_oracle("dump_fixtures.py", &[dir.path().as_os_str()]);
    let tables = PathBuf::from(printed.lines().last().unwrap());
    let (mut columns, mut refused, mut failures) = (0usize, HashMap::<String, usize>::new(), Vec::new());
    let mut names: Vec<PathBuf> = fs::read_dir(&tables).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for path in names {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let table = block_on(Table::open(support::folder_store(&path), At::Latest, None)).unwrap();
        let manifest = &table.manifest().manifest;
        let unread = manifest.data_storage_version == "0.1";
        let want = expected(&dir.path().join(format!("{name}.arrow")));
        let addresses = hidden(&want, "_rowaddr").unwrap_or_default();
        for (field, values) in want.schema().fields().iter().zip(want.columns()) {
            let Some(id) = field.metadata().get("id") else { continue };
            let id: i32 = id.parse().unwrap();
            assert_eq!(manifest.schema.path_of(id).as_ref(), Some(field.name()), "{name}");
            match read(&table, id, RowDomain::Address) {
                Ok((read, rows)) => {
                    let read = read.unwrap_or_else(|| new_empty_array(field.data_type()));
                    columns += 1;
                    if read.to_data() != values.to_data() {
                        failures.push(format!("{name} {}: other values", field.name()));
                    }
                    if rows != addresses {
                        failures.push(format!("{name} {}: other row addresses", field.name()));
                    }
                }
                Err(error) if unread && error.code() == ErrorCode::UnsupportedEncoding => {
                    *refused.entry(name.clone()).or_default() += 1;
                }
                Err(error) => failures.push(format!("{name} {}: {error}", field.name())),
            }
            if let Some(stable) = hidden(&want, "_rowid") {
                match read(&table, id, RowDomain::StableId) {
                    Ok((_, rows)) if rows == stable => {}
                    Ok(_) => failures.push(format!("{name} {}: other stable row ids", field.name())),
                    Err(error) => failures.push(format!("{name} {}: {error}", field.name())),
                }
            }
        }
        let skipped = fs::read_to_string(dir.path().join(format!("{name}.skipped"))).unwrap();
        for line in skipped.lines() {
            let id: i32 = line.split('\t').nth(1).unwrap().parse().unwrap();
            match read(&table, id, RowDomain::Address) {
                Err(error) if matches!(error.code(), ErrorCode::UnsupportedType | ErrorCode::UnsupportedEncoding) => {}
                other => {
                    if !manifest.fragments.is_empty() {
                        failures.push(format!("{name} {line}: was not refused: {:?}", other.map(|(_, rows)| rows.len())));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(columns > 150, "only {columns} columns were compared");
    let mut refused: Vec<String> = refused.into_keys().collect();
    refused.sort();
    assert_eq!(refused, ["storage_legacy"]);
}

#[test]
fn fragments_that_disagree_with_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let printed = support::run_oracle("dump_fixtures.py", &[dir.path().as_os_str()]);
    let path = PathBuf::from(printed.lines().last().unwrap()).join("storage_2_2.lance");
    let table = block_on(Table::open(support::folder_store(&path), At::Latest, None)).unwrap();
    let manifest = table.manifest();
    let good = manifest.manifest.fragments.first().unwrap().clone();
    let field = manifest.manifest.schema.fields.iter().find(|f| f.logical_type == "int64").unwrap().id;
    let open = |fragment: &Fragment, field| {
        let context = ScanContext::new(table.store().clone(), manifest.clone(), field, RowDomain::Address);
        block_on(FragmentScan::open(&context, fragment))
    };
    let rows = open(&good, field).unwrap().physical_rows();

    let mut unrecorded = good.clone();
    unrecorded.physical_rows = None;
    assert_eq!(open(&unrecorded, field).unwrap().physical_rows(), rows);

    let mut absent = good.clone();
    for file in &mut absent.files {
        file.fields.iter_mut().filter(|id| **id == field).for_each(|id| *id = -2);
    }
    let mut scan = open(&absent, field).unwrap();
    let batch = block_on(scan.next()).unwrap().unwrap();
    assert_eq!(batch.values.null_count(), batch.values.len());
    assert_eq!(batch.rows.get(0), Some(u64::from(good.id) << 32));

    let code = |change: &dyn Fn(&mut Fragment)| {
        let mut fragment = good.clone();
        change(&mut fragment);
        open(&fragment, field).unwrap_err().code()
    };
    assert_eq!(code(&|f| f.physical_rows = Some(rows + 1)), ErrorCode::CorruptFile);
    assert_eq!(code(&|f| f.has_overlays = true), ErrorCode::UnsupportedFeature);
    assert_eq!(code(&|f| f.files.push(f.files[0].clone())), ErrorCode::CorruptFile);
    assert_eq!(code(&|f| f.files[0].column_indices.clear()), ErrorCode::CorruptFile);
    assert_eq!(code(&|f| f.files[0].size = Some(1000)), ErrorCode::CorruptFile);
    assert_eq!(code(&|f| f.files[0].base_id = Some(99)), ErrorCode::CorruptFile);
    assert_eq!(open(&good, 9999).unwrap_err().code(), ErrorCode::ColumnNotFound);
    let context = ScanContext::new(table.store().clone(), manifest.clone(), field, RowDomain::StableId);
    assert_eq!(block_on(FragmentScan::open(&context, &good)).unwrap_err().code(), ErrorCode::CorruptFile);
}
