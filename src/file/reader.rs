//! [`LanceFile`]: an opened column file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::DataType;
use bytes::Bytes;

use super::container::{self, Descriptor, FileVersion, Footer, TAIL};
use super::messages::ColumnMetadata;
use super::page::Request;
use super::scan::ColumnScan;
use crate::error::{Error, ErrorCode, Result};
use crate::format::schema::Field;
use crate::store::Store;

/// A column file on a store: its metadata in memory, its pages read on demand. Cheap to clone.
#[derive(Clone)]
pub struct LanceFile(Arc<Inner>);

struct Inner {
    store: Store,
    path: String,
    size: u64,
    version: FileVersion,
    /// The last bytes of the file, from `tail_start` on.
    tail: Bytes,
    tail_start: u64,
    globals: Vec<Range<u64>>,
    columns: Vec<Range<u64>>,
    parsed: Vec<OnceLock<Arc<ColumnMetadata>>>,
    descriptor: Descriptor,
}

impl std::fmt::Debug for LanceFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LanceFile({}, {}, {} rows)", self.0.path, self.0.version.as_str(), self.0.descriptor.rows)
    }
}

impl LanceFile {
    /// Opens a file of `size` bytes: one read of the last 64 KiB, a second one when the metadata is larger.
    ///
    /// Without a recorded size the whole object is read. `CORRUPT_FILE` when the tail contradicts itself or the size,
    /// `UNSUPPORTED_ENCODING` for versions other than 2.0 to 2.3.
    pub async fn open(store: &Store, path: &str, size: Option<u64>) -> Result<LanceFile> {
        let (mut tail, size) = match size {
            Some(size) => (store.get_range(path, size.saturating_sub(TAIL)..size).await?, size),
            None => {
                let whole = store.get(path, None).await?;
                let size = whole.len() as u64;
                (whole, size)
            }
        };
        let footer = Footer::parse(path, &tail, size)?;
        let mut start = size - tail.len() as u64;
        let mut extend_to = footer.global_table();
        let globals = loop {
            if extend_to < start {
                Footer::check_metadata_size(path, extend_to, size)?;
                let head = store.get_range(path, extend_to..start).await?;
                tail = [head, tail].concat().into();
                start = extend_to;
            }
            let globals = footer.globals(path, &tail, start)?;
            let first = globals.first().map_or(start, |schema| schema.start);
            if first >= start {
                break globals;
            }
            extend_to = first;
        };
        let columns = footer.columns(path, &tail, start)?;
        let held = |range: &Range<u64>| slice(&tail, start, range).ok_or_else(|| Error::internal("file metadata was not read"));
        let schema = globals.first().ok_or_else(|| Error::corrupt(path, "has no schema"))?;
        let descriptor = Descriptor::parse(path, held(schema)?, footer.version)?;
        let parsed = columns.iter().map(|_| OnceLock::new()).collect();
        let inner = Inner {
            store: store.clone(),
            path: path.to_owned(),
            size,
            version: footer.version,
            tail,
            tail_start: start,
            globals,
            columns,
            parsed,
            descriptor,
        };
        Ok(LanceFile(Arc::new(inner)))
    }

    /// Rows, as the file descriptor states them.
    pub fn rows(&self) -> u64 {
        self.0.descriptor.rows
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// Path below the store's root, as given.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// Version by the footer; it is independent of the table's.
    pub fn version(&self) -> FileVersion {
        self.0.version
    }

    /// Schema metadata, values as text.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.0.descriptor.metadata
    }

    /// Fields stored in this file, in pre-order.
    pub fn fields(&self) -> &[Field] {
        &self.0.descriptor.fields
    }

    /// Number of physical columns.
    pub fn columns(&self) -> usize {
        self.0.columns.len()
    }

    /// Physical column of a top-level field of a stand-alone file: a scalar, or a list of scalars.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        let descriptor = &self.0.descriptor;
        let at = descriptor.fields.iter().position(|field| field.parent_id < 0 && field.name == name)?;
        self.field_column(at)
    }

    /// Physical column of field number `at` of [`LanceFile::fields`], which of a list is where it is read (2.0: its offsets,
    /// later: its values), and of a packed struct that of all its members. `None` for other structs.
    pub fn field_column(&self, at: usize) -> Option<usize> {
        let descriptor = &self.0.descriptor;
        let field = descriptor.fields.get(at)?;
        let list = matches!(field.logical_type.as_str(), "list" | "large_list");
        let packed = field.metadata.contains_key("packed") || field.metadata.contains_key("lance-encoding:packed");
        let child = descriptor.fields.iter().position(|child| child.parent_id == field.id);
        match child {
            Some(child) if list && self.0.version > FileVersion::V2_0 => self.field_column(child),
            Some(_) if !list && !packed => None,
            _ => *descriptor.columns.get(at)?,
        }
    }

    /// Physical column by which a top-level list of scalars of a stand-alone file is read: its offsets in 2.0, its items later.
    pub fn list_column(&self, name: &str) -> Option<usize> {
        let descriptor = &self.0.descriptor;
        let at = descriptor.fields.iter().position(|field| field.parent_id < 0 && field.name == name)?;
        let id = descriptor.fields.get(at)?.id;
        let mut items = descriptor.fields.iter().enumerate().filter(|(_, child)| child.parent_id == id);
        let (item, _) = items.next()?;
        if items.next().is_some() {
            return None;
        }
        (*descriptor.columns.get(at)?).or(*descriptor.columns.get(item)?)
    }

    /// Global buffers including the schema (index 0).
    pub fn global_buffers(&self) -> usize {
        self.0.globals.len()
    }

    /// A global buffer; 0 is the schema, users' buffers begin at 1. `CORRUPT_FILE` when there is none of that number.
    pub async fn global_buffer(&self, index: u32) -> Result<Bytes> {
        let range = usize::try_from(index).ok().and_then(|index| self.0.globals.get(index)).cloned();
        let range = range.ok_or_else(|| Error::corrupt(&self.0.path, format!("there is no global buffer {index}")))?;
        self.read(&[range]).await?.pop().ok_or_else(|| Error::internal("a global buffer was not read"))
    }

    /// Reads rows `rows` of one physical column as arrays of `data_type`, in order and in bounded memory.
    ///
    /// Columns of lists are read as their list type, whose column is the offsets column in 2.0 and the only one later; of a
    /// dictionary type the values are read. Structs are read leaf by leaf: a leaf is null where a struct around it is.
    /// With `nullable` false a null is `CORRUPT_FILE`. Errors arrive with the first [`ColumnScan::next`].
    pub fn scan(&self, column: usize, data_type: &DataType, nullable: bool, rows: Range<u64>) -> ColumnScan {
        let request = Request { column, data_type: data_type.clone(), nullable, member: None };
        ColumnScan::new(self.clone(), request, rows)
    }

    /// As [`LanceFile::scan`], of the member of that index of a packed struct, which is one column (file-format §8.3).
    pub fn scan_member(&self, column: usize, member: usize, data_type: &DataType, rows: Range<u64>) -> ColumnScan {
        let request = Request { column, data_type: data_type.clone(), nullable: true, member: Some(member) };
        ColumnScan::new(self.clone(), request, rows)
    }

    /// Rows of one physical column, by its pages.
    pub fn column_rows(&self, column: usize) -> Result<u64> {
        Ok(self.column(column)?.pages.iter().map(|page| page.length).sum())
    }

    /// `column 3 (name)` for messages.
    pub(crate) fn column_label(&self, column: usize) -> String {
        match self.0.descriptor.name_of(column) {
            Some(name) => format!("column {column} ({name})"),
            None => format!("column {column}"),
        }
    }

    /// Metadata of a column, parsed once.
    pub(crate) fn column(&self, column: usize) -> Result<Arc<ColumnMetadata>> {
        let inner = &self.0;
        let (Some(range), Some(cell)) = (inner.columns.get(column), inner.parsed.get(column)) else {
            return Err(Error::corrupt(&inner.path, format!("there is no column {column}, it has {}", inner.columns.len())));
        };
        if let Some(parsed) = cell.get() {
            return Ok(parsed.clone());
        }
        let bytes = slice(&inner.tail, inner.tail_start, range).ok_or_else(|| Error::internal("column metadata was not read"))?;
        let parsed = Arc::new(container::parse_column(&inner.path, bytes, column, inner.size)?);
        Ok(cell.get_or_init(|| parsed).clone())
    }

    /// Byte ranges of the file; those inside the tail cost no request.
    pub(crate) async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let inner = &self.0;
        let held: Vec<Option<Bytes>> = ranges.iter().map(|range| slice(&inner.tail, inner.tail_start, range)).collect();
        let missing: Vec<Range<u64>> =
            ranges.iter().zip(&held).filter(|(_, held)| held.is_none()).map(|(range, _)| range.clone()).collect();
        if missing.iter().any(|range| usize::try_from(range.end.saturating_sub(range.start)).is_err()) {
            let message = format!("{}: a range that this machine cannot hold in memory", inner.path);
            return Err(Error::new(ErrorCode::MemoryLimit, message).with("object", inner.path.as_str()));
        }
        let mut read = match missing.as_slice() {
            [] => Vec::new(),
            [one] => vec![inner.store.get_range(&inner.path, one.clone()).await?],
            several => inner.store.get_ranges(&inner.path, several).await?,
        }
        .into_iter();
        held.into_iter().map(|held| held.or_else(|| read.next()).ok_or_else(|| Error::internal("a range was not read"))).collect()
    }
}

/// `range` of the file out of `tail`, when it is inside.
fn slice(tail: &Bytes, start: u64, range: &Range<u64>) -> Option<Bytes> {
    let from = usize::try_from(range.start.checked_sub(start)?).ok()?;
    let to = usize::try_from(range.end.checked_sub(start)?).ok()?;
    (from <= to && to <= tail.len()).then(|| tail.slice(from..to))
}
