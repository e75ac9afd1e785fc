//! Columns written by pylance in 2.0, 2.1 and 2.2 are read value for value: types × shapes × row counts, several pages,
//! nulls of ancestors, random ranges; truncated and mutated files end in errors.
//!
//! `WHETSTONE_COLUMNS` names a folder that `tests/oracle/make_columns.py` filled; without it the test makes one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use futures::executor::block_on;
use whetstone::ErrorCode;
use whetstone::env::TestEnv;
use whetstone::file::{FileVersion, LanceFile};
use whetstone::store::Store;

fn columns() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        if let Some(given) = std::env::var_os("WHETSTONE_COLUMNS") {
            let given = PathBuf::from(given);
            assert!(given.join("done").exists(), "{} was not filled by make_columns.py", given.display());
            return given;
        }
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("columns");
        let _ = fs::remove_dir_all(&dir);
        support::run_oracle("make_columns.py", &[dir.as_os_str()]);
        dir
    })
}

fn expected(name: &str) -> RecordBatch {
    let file = fs::File::open(columns().join(format!("{name}.arrow"))).unwrap();
    let reader = arrow::ipc::reader::FileReader::try_new(file, None).unwrap();
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
    concat_batches(&schema, &batches).unwrap()
}

/// File names and the versions they were written in.
fn files() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(columns()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some((set, version)) = name.strip_suffix(".lance").and_then(|stem| stem.rsplit_once('-')) {
            found.push((set.to_owned(), version.to_owned()));
        }
    }
    found.sort();
    found
}

fn open(store: &Store, set: &str, version: &str) -> LanceFile {
    let path = format!("{set}-{version}.lance");
    let size = fs::metadata(columns().join(&path)).unwrap().len();
    block_on(LanceFile::open(store, &path, Some(size))).unwrap()
}

/// Physical column of the `index`-th expected column.
fn physical(file: &LanceFile, set: &str, name: &str) -> usize {
    if set.starts_with("nested") {
        return match (file.version(), name) {
            (FileVersion::V2_0, "s.a") => 1,
            (FileVersion::V2_0, _) => 3,
            (_, "s.a") => 0,
            _ => 1,
        };
    }
    file.column_index(name).unwrap_or_else(|| panic!("{set} has no column {name}"))
}

fn same(left: &ArrayRef, right: &ArrayRef) -> bool {
    // Equality of arrays ignores what null slots hold; floats are compared by their bits.
    left.to_data() == right.to_data()
}

#[test]
fn every_column_equals_what_pylance_wrote() {
    let store = support::folder_store(columns());
    let (mut checked, mut failures) = (0usize, Vec::new());
    for (set, version) in files() {
        let want = expected(&set);
        let file = open(&store, &set, &version);
        assert_eq!(file.version().as_str(), version);
        assert_eq!(file.rows(), want.num_rows() as u64);
        for (field, values) in want.schema().fields().iter().zip(want.columns()) {
            let column = physical(&file, &set, field.name());
            assert_eq!(file.column_rows(column).unwrap(), file.rows());
            let read = support::collect_scan(file.scan(column, field.data_type(), true, 0..file.rows()), field.data_type());
            match read {
                Ok(read) if same(&read, values) => checked += 1,
                Ok(_) => failures.push(format!("{set}-{version} {}: other values", field.name())),
                Err(error) => failures.push(format!("{set}-{version} {}: {error}", field.name())),
            }
        }
    }
    assert!(failures.is_empty(), "{} of {checked} failed:\n{}", failures.len(), failures.join("\n"));
    assert!(checked > 5000, "only {checked} columns were compared");
}

#[test]
fn ranges_equal_slices_of_the_whole() {
    let store = support::folder_store(columns());
    let mut seed = 0x1234_5678_9abc_def1u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    for (set, version) in files() {
        if !["rows5000", "pages", "rows200000", "nested", "binaries"].contains(&set.as_str()) {
            continue;
        }
        let want = expected(&set);
        let file = open(&store, &set, &version);
        for (field, values) in want.schema().fields().iter().zip(want.columns()) {
            let column = physical(&file, &set, field.name());
            for _ in 0..4 {
                let start = random(file.rows());
                let rows = start..start + 1 + random((file.rows() - start).min(3000));
                let read = support::collect_scan(file.scan(column, field.data_type(), true, rows.clone()), field.data_type());
                let part = values.slice(rows.start as usize, (rows.end - rows.start) as usize);
                assert!(same(&read.unwrap(), &part), "{set}-{version} {} rows {rows:?}", field.name());
            }
        }
    }
}

#[test]
fn a_range_reads_only_what_it_needs() {
    let name = "rows200000-2.2.lance";
    let store = support::folder_store(columns());
    let file = open(&store, "rows200000", "2.2");
    let ty = arrow::datatypes::DataType::Int64;
    let column = file.column_index("int64 random").unwrap();
    let before = store.requests();
    let read = support::collect_scan(file.scan(column, &ty, true, 100_000..100_100), &ty).unwrap();
    assert_eq!(read.len(), 100);
    let after = store.requests();
    // The words of the page, then one or two chunks of some KB out of 1.6 MB.
    assert!(after.count - before.count <= 2, "{name}: {after:?}");
    assert!(after.bytes - before.bytes < 64 << 10, "{name}: {after:?}");
    assert!(support::collect_scan(file.scan(column, &ty, true, 199_999..200_001), &ty).is_err());
    assert!(support::collect_scan(file.scan(column, &arrow::datatypes::DataType::Int32, true, 0..5), &ty).is_err());
    assert!(support::collect_scan(file.scan(column, &arrow::datatypes::DataType::Utf8, true, 0..5), &ty).is_err());
    let nulls = file.column_index("int64 null_sparse").unwrap();
    let error = support::collect_scan(file.scan(nulls, &ty, false, 0..200_000), &ty).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CorruptFile);
}

#[test]
fn mutated_and_truncated_files_never_panic() {
    let mut seed = 77u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((seed >> 33) as usize) % below
    };
    let mut errors = 0usize;
    for version in ["2.0", "2.1", "2.2"] {
        for set in ["rows1025", "binaries", "nested_valid"] {
            let good = fs::read(columns().join(format!("{set}-{version}.lance"))).unwrap();
            let want = expected(set);
            for round in 0..60 {
                let mut bad = good.clone();
                match round % 3 {
                    0 => bad.truncate(random(good.len())),
                    1 => {
                        // Metadata sits at the end; most bytes before it are values, whose change is a change of values.
                        let tail = (good.len() / 3).min(60_000);
                        let at = good.len() - 1 - random(tail);
                        bad[at] ^= 1 << random(8);
                    }
                    _ => {
                        for _ in 0..200 {
                            let at = random(good.len() - 40);
                            bad[at] = random(256) as u8;
                        }
                    }
                }
                errors += usize::from(read_all(bad, &want, set).is_err());
            }
        }
    }
    assert!(errors > 200, "only {errors} of 540 damaged files were noticed");
}

fn read_all(bytes: Vec<u8>, want: &RecordBatch, set: &str) -> whetstone::Result<()> {
    let store = Store::memory(Arc::new(TestEnv::new(0, 1)));
    let size = bytes.len() as u64;
    block_on(store.put("f", vec![bytes.into()]))?;
    let file = block_on(LanceFile::open(&store, "f", Some(size)))?;
    let mut result = Ok(());
    for (at, field) in want.schema().fields().iter().enumerate() {
        let column = if set.starts_with("nested") { at } else { file.column_index(field.name()).unwrap_or(at) };
        let rows = file.rows().min(1 << 20);
        if let Err(error) = support::collect_scan(file.scan(column, field.data_type(), true, 0..rows), field.data_type()) {
            let known =
                [ErrorCode::CorruptFile, ErrorCode::UnsupportedEncoding, ErrorCode::UnsupportedType, ErrorCode::MemoryLimit];
            assert!(known.contains(&error.code()), "{error}");
            result = Err(error);
        }
    }
    result
}
