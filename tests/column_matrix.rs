//! Columns written by pylance in 2.0 to 2.3 are read value for value: types × shapes × row counts × field metadata, several
//! pages, lists, nulls of ancestors, members of packed structs; random ranges and row lists; damaged files end in errors.
//!
//! `WHETSTONE_COLUMNS` names a folder that `tests/oracle/make_columns.py` filled; without it the test makes one: all of it
//! with `WHETSTONE_FULL=1`, else a sample by `WHETSTONE_SEED`. What pylance itself cannot write is printed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;
#[path = "support/touched.rs"]
mod touched;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{DataType, Field};
use futures::executor::block_on;
use whetstone::ErrorCode;
use whetstone::env::TestEnv;
use whetstone::file::LanceFile;
use whetstone::store::Store;

fn full() -> bool {
    std::env::var("WHETSTONE_FULL").is_ok_and(|full| full == "1")
}

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
        let tier = if full() { "full" } else { "sample" };
        support::run_oracle("make_columns.py", &[dir.as_os_str(), OsStr::new(tier)]);
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

/// Columns that pylance did not write, as `VERSION name`, with its reason.
fn unwritable() -> BTreeMap<String, String> {
    let text = fs::read_to_string(columns().join("unwritable.txt")).unwrap();
    let split = |line: &str| {
        let mut parts = line.splitn(3, '\t').map(str::to_owned);
        (format!("{} {}", parts.next().unwrap(), parts.next().unwrap()), parts.next().unwrap())
    };
    text.lines().map(split).collect()
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

/// A column of a file and how to ask for it.
struct Wanted {
    column: usize,
    member: Option<usize>,
    /// With the dictionary types that the expected values do not have.
    ty: DataType,
}

impl Wanted {
    /// `None` when the file has no such field.
    fn find(file: &LanceFile, name: &str, ty: &DataType) -> Option<Wanted> {
        let fields = file.fields();
        let child = |parent: i32, name: &str| fields.iter().position(|f| f.parent_id == parent && f.name == name);
        let (at, member) = match name.strip_prefix("p.") {
            Some(name) => {
                let parent = child(-1, "p")?;
                let member = fields.iter().filter(|f| f.parent_id == fields[parent].id).position(|f| f.name == name)?;
                (parent, Some(member))
            }
            None if name.starts_with("s.") => {
                let mut at = child(-1, "s")?;
                for part in name.split('.').skip(1) {
                    at = child(fields[at].id, part)?;
                }
                (at, None)
            }
            None => (child(-1, name)?, None),
        };
        let mut leaf = at;
        while let Some(inner) = fields.iter().skip(leaf + 1).position(|f| f.parent_id == fields[leaf].id && member.is_none()) {
            leaf += 1 + inner;
        }
        let ty = match fields[leaf].logical_type.starts_with("dict:") {
            true => dictionary(ty),
            false => ty.clone(),
        };
        Some(Wanted { column: file.field_column(at)?, member, ty })
    }

    fn read(&self, file: &LanceFile, rows: std::ops::Range<u64>, plain: &DataType) -> whetstone::Result<ArrayRef> {
        let scan = match self.member {
            Some(member) => file.scan_member(self.column, member, &self.ty, rows),
            None => file.scan(self.column, &self.ty, true, rows),
        };
        support::collect_scan(scan, plain)
    }

    fn take(&self, file: &LanceFile, rows: &[u64]) -> whetstone::Result<ArrayRef> {
        block_on(async {
            match self.member {
                Some(member) => file.take_member(self.column, member, &self.ty, rows).await,
                None => file.take(self.column, &self.ty, true, rows).await,
            }
        })
    }
}

/// The type with a dictionary around its values; the width of the keys is the file's business.
fn dictionary(ty: &DataType) -> DataType {
    let inner = |field: &Arc<Field>| Arc::new(field.as_ref().clone().with_data_type(dictionary(field.data_type())));
    match ty {
        DataType::List(field) => DataType::List(inner(field)),
        DataType::LargeList(field) => DataType::LargeList(inner(field)),
        other => DataType::Dictionary(Box::new(DataType::UInt8), Box::new(other.clone())),
    }
}

fn same(left: &ArrayRef, right: &ArrayRef) -> bool {
    // Equality of arrays ignores what null slots hold; floats are compared by their bits.
    left.to_data() == right.to_data()
}

fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut seed = seed.wrapping_mul(0x1234_5678_9abc_def1) | 1;
    move |below| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    }
}

#[test]
fn every_column_equals_what_pylance_wrote() {
    let store = support::folder_store(columns());
    let unwritable = unwritable();
    let (mut checked, mut failures) = (0usize, Vec::new());
    for (set, version) in files() {
        let want = expected(&set);
        let file = open(&store, &set, &version);
        assert_eq!(file.version().as_str(), version);
        assert_eq!(file.rows(), want.num_rows() as u64);
        for (field, values) in want.schema().fields().iter().zip(want.columns()) {
            let Some(wanted) = Wanted::find(&file, field.name(), field.data_type()) else {
                if !unwritable.contains_key(&format!("{version} {}", field.name())) {
                    failures.push(format!("{set}-{version} has no {}", field.name()));
                }
                continue;
            };
            match wanted.read(&file, 0..file.rows(), field.data_type()) {
                Ok(read) if same(&read, values) => checked += 1,
                Ok(_) => failures.push(format!("{set}-{version} {}: other values", field.name())),
                Err(error) => failures.push(format!("{set}-{version} {}: {error}", field.name())),
            }
        }
    }
    println!("{checked} combinations equal; pylance does not write {}:", unwritable.len());
    for (name, why) in &unwritable {
        println!("  {name}: {why}");
    }
    assert!(failures.is_empty(), "{} of {checked} failed:\n{}", failures.len(), failures.join("\n"));
    assert!(checked > 6000, "only {checked} columns were compared");
}

/// Rows of the coverage table that pylance 14 does not write for scalars, whatever it is asked; unit tests have pages made by hand.
const NOT_WRITTEN: &[&str] = &["2.0 Bitpacked", "2.0 BitpackedForNonNeg", "2.0 FixedSizeBinary", "sequences InlineBitpacking"];

/// What `docs/encodings.md` says is read, in the words of [`touched::rows`].
fn read_by_the_docs() -> BTreeSet<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/encodings.md")).unwrap();
    let (mut header, mut found) = (Vec::new(), BTreeSet::new());
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, forms @ ..] = cells.as_slice() else {
            header.clear();
            continue;
        };
        if header.is_empty() {
            header = forms.to_vec();
        }
        for (form, _) in header.iter().zip(forms).filter(|(_, status)| **status == "read") {
            found.insert(format!("{form} {name}"));
        }
    }
    assert!(found.len() > 40, "the table was not understood: {found:?}");
    found
}

#[test]
fn every_row_of_the_coverage_table_is_touched() {
    let mut touched = BTreeMap::<String, usize>::new();
    let (mut types, mut versions) = (BTreeMap::<DataType, BTreeSet<String>>::new(), BTreeSet::new());
    for (set, version) in files() {
        let bytes = fs::read(columns().join(format!("{set}-{version}.lance"))).unwrap();
        let (written, columns) = touched::columns(&bytes).unwrap();
        assert_eq!(written, version);
        for page in columns.iter().flat_map(|column| &column.pages) {
            touched::rows(&version, page).into_iter().for_each(|row| *touched.entry(row).or_default() += 1);
        }
        for field in expected(&set).schema().fields() {
            types.entry(field.data_type().clone()).or_default().insert(version.clone());
        }
        versions.insert(version);
    }
    let read = read_by_the_docs();
    for (row, pages) in &touched {
        println!("{row}: {pages} pages");
        assert!(read.contains(row), "pylance writes {row}, which the coverage table does not have");
    }
    let missing: Vec<&String> = read.iter().filter(|row| !touched.contains_key(*row)).collect();
    assert_eq!(missing, NOT_WRITTEN, "rows of the coverage table without a page");
    assert_eq!(versions.len(), 4);
    for (ty, of) in &types {
        assert!(of.len() == 4, "{ty} in {of:?} only");
    }
    let names: BTreeSet<String> =
        types.keys().map(|ty| format!("{ty}").chars().take_while(|c| c.is_alphanumeric()).collect()).collect();
    for name in [
        "Boolean",
        "Int8",
        "Int16",
        "Int32",
        "Int64",
        "UInt8",
        "UInt16",
        "UInt32",
        "UInt64",
        "Float16",
        "Float32",
        "Float64",
        "Date32",
        "Date64",
        "Time32",
        "Time64",
        "Timestamp",
        "Duration",
        "Decimal128",
        "Decimal256",
        "Utf8",
        "LargeUtf8",
        "Binary",
        "LargeBinary",
        "FixedSizeBinary",
        "List",
        "LargeList",
        "FixedSizeList",
        "Null",
    ] {
        assert!(names.contains(name), "no column of {name}: {names:?}");
    }
}

#[test]
fn ranges_and_row_lists_equal_slices_of_the_whole() {
    let store = support::folder_store(columns());
    let mut random = random(7);
    let mut checked = 0usize;
    for (set, version) in files() {
        let want = expected(&set);
        if want.num_rows() < 1000 {
            continue;
        }
        let file = open(&store, &set, &version);
        for (field, values) in want.schema().fields().iter().zip(want.columns()) {
            let Some(wanted) = Wanted::find(&file, field.name(), field.data_type()) else { continue };
            let at = || format!("{set}-{version} {}", field.name());
            for _ in 0..2 {
                let start = random(file.rows());
                let rows = start..start + 1 + random((file.rows() - start).min(3000));
                let read = wanted.read(&file, rows.clone(), field.data_type()).unwrap_or_else(|e| panic!("{}: {e}", at()));
                let part = values.slice(rows.start as usize, (rows.end - rows.start) as usize);
                assert!(same(&read, &part), "{} rows {rows:?}", at());
            }
            let many = 1 + random(40);
            let mut rows: Vec<u64> = (0..many).map(|_| random(file.rows())).collect();
            rows.push(rows[0]);
            let read = wanted.take(&file, &rows).unwrap_or_else(|e| panic!("{}: {e}", at()));
            let part = take(values, &UInt64Array::from(rows.clone()), None).unwrap();
            assert!(same(&read, &part), "{} rows {rows:?}", at());
            checked += 1;
        }
    }
    assert!(checked > 3000, "only {checked} columns were compared");
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
    let before = store.requests();
    let rows: Vec<u64> = (0..20).map(|i| 150_000 + 7 * i).chain([10, 11, 199_999]).collect();
    assert_eq!(block_on(file.take(column, &ty, true, &rows)).unwrap().len(), 23);
    let after = store.requests();
    // The words of the page, then one stretch of chunks for each of the three places.
    assert!(after.count - before.count <= 4, "{name}: {after:?}");
    assert!(after.bytes - before.bytes < 200 << 10, "{name}: {after:?}");
    assert_eq!(block_on(file.take(column, &ty, true, &[])).unwrap().len(), 0);
    assert!(block_on(file.take(column, &ty, true, &[200_000])).is_err());
    let nulls = file.column_index("int64 null_sparse").unwrap();
    let error = support::collect_scan(file.scan(nulls, &ty, false, 0..200_000), &ty).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CorruptFile);
}

#[test]
fn mutated_and_truncated_files_never_panic() {
    let mut next = random(77);
    let mut random = |below: usize| next(below as u64) as usize;
    let mut errors = 0usize;
    for version in ["2.0", "2.1", "2.2", "2.3"] {
        for set in ["rows1025", "binaries", "nested_valid", "lists1025", "fixed1025", "packed"] {
            let good = fs::read(columns().join(format!("{set}-{version}.lance"))).unwrap();
            let want = expected(set);
            for round in 0..30 {
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
                errors += usize::from(read_all(bad, &want).is_err());
            }
        }
    }
    assert!(errors > 250, "only {errors} of 720 damaged files were noticed");
}

fn read_all(bytes: Vec<u8>, want: &RecordBatch) -> whetstone::Result<()> {
    let store = Store::memory(Arc::new(TestEnv::new(0, 1)));
    let size = bytes.len() as u64;
    block_on(store.put("f", vec![bytes.into()]))?;
    let file = block_on(LanceFile::open(&store, "f", Some(size)))?;
    let mut result = Ok(());
    for (at, field) in want.schema().fields().iter().enumerate() {
        let wanted = Wanted::find(&file, field.name(), field.data_type());
        let wanted = wanted.unwrap_or(Wanted { column: at, member: None, ty: field.data_type().clone() });
        let rows = file.rows().min(1 << 20);
        if let Err(error) = wanted.read(&file, 0..rows, field.data_type()) {
            let known =
                [ErrorCode::CorruptFile, ErrorCode::UnsupportedEncoding, ErrorCode::UnsupportedType, ErrorCode::MemoryLimit];
            assert!(known.contains(&error.code()), "{error}");
            result = Err(error);
        }
    }
    result
}
