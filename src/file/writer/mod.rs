//! Writing files with plain pages (file-format §10): of 2.0 for indexes, of 2.1 and 2.2 for data files of such tables.
//!
//! Every 2.x release of Lance reads those of 2.0, in tables of every version. The file is a list of chunks: where the format
//! allows it the buffers of the Arrow arrays are taken over as they are, never gathered into one block.

mod pages20;
mod pages21;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use bytes::Bytes;
use prost::Message;

use super::container::FileVersion;
use super::messages::{Any, ColumnMetadata, DirectEncoding, Encoding, EncodingKind, Field, FileDescriptor, Page, SchemaMessage};
use crate::error::{Error, ErrorCode, Result};
use crate::format::schema::scalar_type;

const ALIGNMENT: u64 = 64;
static PADDING: [u8; ALIGNMENT as usize] = [0x48; ALIGNMENT as usize];

/// One column of a new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterField {
    /// Column name.
    pub name: String,
    /// Logical type text, e.g. `uint64` (file-format §2.5).
    pub logical_type: String,
    /// Whether the column may hold nulls; a page with nulls of a column that may not is refused.
    pub nullable: bool,
    /// Of a list: the logical type of its items and whether they may be null. Only files of version 2.0 take lists here.
    pub item: Option<(String, bool)>,
    /// Type of its arrays where the logical type alone does not tell it: of fixed-size lists.
    pub wide: Option<DataType>,
}

impl WriterField {
    /// A field by name, logical type and nullability.
    pub fn new(name: impl Into<String>, logical_type: impl Into<String>, nullable: bool) -> WriterField {
        WriterField { name: name.into(), logical_type: logical_type.into(), nullable, item: None, wide: None }
    }

    /// A field of lists of scalars of logical type `item`.
    pub fn list(name: impl Into<String>, item: impl Into<String>, nullable_items: bool, nullable: bool) -> WriterField {
        let item = Some((item.into(), nullable_items));
        WriterField { name: name.into(), logical_type: "list".into(), nullable, item, wide: None }
    }

    /// A field of fixed-size lists of items of fixed width, as arrays of `data_type`. No item of a list that is there may be null.
    pub fn vectors(name: impl Into<String>, logical_type: impl Into<String>, data_type: DataType, nullable: bool) -> WriterField {
        WriterField { wide: Some(data_type), ..WriterField::new(name, logical_type, nullable) }
    }

    /// The type of its pages.
    fn data_type(&self) -> Result<DataType> {
        if let Some(data_type) = &self.wide {
            return Ok(data_type.clone());
        }
        match &self.item {
            None => scalar_type(&self.logical_type),
            Some((item, nullable)) => {
                Ok(DataType::List(Arc::new(arrow::datatypes::Field::new("item", scalar_type(item)?, *nullable))))
            }
        }
    }
}

/// A finished file: chunks to be written in order as one object.
#[derive(Clone, Debug, Default)]
pub struct EncodedFile {
    /// The bytes, in order.
    pub chunks: Vec<Bytes>,
    /// Sum of the chunk lengths, bytes.
    pub size: u64,
}

impl EncodedFile {
    /// All chunks in one buffer (copies the file; meant for small files and tests).
    pub fn to_bytes(&self) -> Bytes {
        self.chunks.iter().flat_map(|chunk| chunk.iter().copied()).collect::<Vec<u8>>().into()
    }
}

#[derive(Debug)]
struct WriterColumn {
    field: WriterField,
    pages: Vec<Page>,
    rows: u64,
    /// Pages of the items of a list, its second physical column.
    items: Vec<Page>,
}

/// Writes one file, page by page.
#[derive(Debug)]
pub struct FileWriter {
    version: FileVersion,
    columns: Vec<WriterColumn>,
    metadata: BTreeMap<String, Vec<u8>>,
    chunks: Vec<Bytes>,
    position: u64,
    globals: Vec<(u64, u64)>,
    /// The fields the file says it has, instead of those made up from the columns.
    described: Option<Vec<Field>>,
}

impl FileWriter {
    /// A file of version 2.0 with these columns, no rows yet.
    pub fn new(fields: Vec<WriterField>) -> FileWriter {
        FileWriter::with_version(fields, FileVersion::V2_0)
    }

    /// A file of version 2.0, 2.1 or 2.2; the unstable 2.3 is written as 2.2, which every release that knows 2.3 reads.
    pub fn with_version(fields: Vec<WriterField>, version: FileVersion) -> FileWriter {
        let column = |field| WriterColumn { field, pages: Vec::new(), rows: 0, items: Vec::new() };
        let columns = fields.into_iter().map(column).collect();
        let version = version.min(FileVersion::V2_2);
        FileWriter {
            version,
            columns,
            metadata: BTreeMap::new(),
            chunks: Vec::new(),
            position: 0,
            globals: Vec::new(),
            described: None,
        }
    }

    /// Takes the fields that the file describes itself with: those of a table's schema, with their own ids, in pre-order.
    pub fn describe(&mut self, fields: Vec<Field>) {
        self.described = Some(fields);
    }

    /// Sets a key of the schema metadata.
    pub fn metadata(&mut self, key: &str, value: &str) {
        self.metadata.insert(key.to_owned(), value.as_bytes().to_vec());
    }

    /// Adds a global buffer; the result is its index (1 is the first after the schema).
    pub fn global_buffer(&mut self, data: Bytes) -> u32 {
        let placed = self.push(data);
        self.globals.push(placed);
        u32::try_from(self.globals.len()).unwrap_or(u32::MAX)
    }

    /// Bytes written so far, without the tail.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Appends `values` to column `column` as one page; an empty array adds nothing.
    ///
    /// The array's type must be the one of the column's logical type (`INTERNAL` otherwise).
    pub fn write_page(&mut self, column: usize, values: &ArrayRef) -> Result<()> {
        let Some(target) = self.columns.get(column) else {
            return Err(Error::internal(format!("the file being written has no column {column}")));
        };
        let expected = target.field.data_type()?;
        if *values.data_type() != expected {
            return Err(Error::internal(format!(
                "column {} of the file being written is {}, the page given is {}",
                target.field.name,
                target.field.logical_type,
                values.data_type()
            )));
        }
        if !target.field.nullable && values.null_count() > 0 {
            return Err(Error::internal(format!("column {} of the file being written takes no nulls", target.field.name)));
        }
        if values.is_empty() {
            return Ok(());
        }
        let first_row = target.rows;
        let (page, items) = match values.as_list_opt::<i32>() {
            Some(_) if self.version != FileVersion::V2_0 => {
                return Err(Error::internal("lists are only written into files of version 2.0"));
            }
            Some(lists) => {
                let (message, ends, items) = pages20::list_offsets(lists)?;
                let encoding = direct("/lance.encodings.ArrayEncoding", message.encode_to_vec().into());
                let offsets = self.page(lists.len(), encoding, ends, first_row);
                let items = if items.is_empty() { None } else { Some(self.values_page(&items, 0)?) };
                (offsets, items)
            }
            None => (self.values_page(values, first_row)?, None),
        };
        if let Some(target) = self.columns.get_mut(column) {
            target.rows += page.length;
            target.pages.push(page);
            target.items.extend(items);
        }
        Ok(())
    }

    fn values_page(&mut self, values: &ArrayRef, first_row: u64) -> Result<Page> {
        let (encoding, buffers) = if self.version == FileVersion::V2_0 {
            let (message, buffers) = pages20::encode(values)?;
            (direct("/lance.encodings.ArrayEncoding", message.encode_to_vec().into()), buffers)
        } else {
            let (message, buffers) = pages21::encode(values)?;
            (direct("/lance.encodings21.PageLayout", message.encode_to_vec().into()), buffers)
        };
        Ok(self.page(values.len(), encoding, buffers, first_row))
    }

    fn page(&mut self, rows: usize, encoding: Encoding, buffers: Vec<Bytes>, first_row: u64) -> Page {
        let placed: Vec<(u64, u64)> = buffers.into_iter().map(|buffer| self.push(buffer)).collect();
        Page {
            buffer_offsets: placed.iter().map(|p| p.0).collect(),
            buffer_sizes: placed.iter().map(|p| p.1).collect(),
            length: rows as u64,
            encoding: Some(encoding),
            priority: if self.version == FileVersion::V2_0 { 0 } else { first_row },
        }
    }

    /// Writes the tail. All columns must have the same number of rows.
    pub fn finish(mut self) -> Result<EncodedFile> {
        let rows = self.columns.first().map_or(0, |column| column.rows);
        if let Some(other) = self.columns.iter().find(|column| column.rows != rows) {
            return Err(Error::internal(format!(
                "column {} of the file being written has {} rows, the first column {rows}",
                other.field.name, other.rows
            )));
        }
        self.align();
        let descriptor = FileDescriptor {
            schema: Some(SchemaMessage {
                fields: self.described.take().unwrap_or_else(|| fields(self.columns.iter().map(|column| &column.field))),
                metadata: std::mem::take(&mut self.metadata),
            }),
            length: rows,
        };
        let mut tail = Vec::new();
        let start = self.position;
        let at = |tail: &Vec<u8>| start + tail.len() as u64;
        descriptor.encode(&mut tail).map_err(|e| Error::internal(e.to_string()))?;
        let mut globals = vec![(start, tail.len() as u64)];
        globals.append(&mut self.globals);

        let columns_start = at(&tail);
        let mut columns = Vec::with_capacity(self.columns.len());
        let physical = |column: WriterColumn| [Some(column.pages), column.field.item.map(|_| column.items)];
        for pages in self.columns.drain(..).flat_map(physical).flatten() {
            let message = ColumnMetadata {
                encoding: Some(direct("/lance.encodings.ColumnEncoding", Bytes::from_static(&[0x0A, 0x00]))),
                pages,
            };
            let bytes = message.encode_to_vec();
            columns.push((at(&tail), bytes.len() as u64));
            tail.extend_from_slice(&bytes);
        }
        let cmo = at(&tail);
        table(&mut tail, &columns);
        let gbo = at(&tail);
        table(&mut tail, &globals);
        for position in [columns_start, cmo, gbo] {
            tail.extend_from_slice(&position.to_le_bytes());
        }
        tail.extend_from_slice(&count(globals.len())?.to_le_bytes());
        tail.extend_from_slice(&count(columns.len())?.to_le_bytes());
        let (major, minor): (u16, u16) = match self.version {
            FileVersion::V2_0 => (0, 3),
            FileVersion::V2_1 => (2, 1),
            FileVersion::V2_2 | FileVersion::V2_3 => (2, 2),
        };
        tail.extend_from_slice(&major.to_le_bytes());
        tail.extend_from_slice(&minor.to_le_bytes());
        tail.extend_from_slice(b"LANC");
        self.position += tail.len() as u64;
        self.chunks.push(tail.into());
        Ok(EncodedFile { chunks: self.chunks, size: self.position })
    }

    fn push(&mut self, data: Bytes) -> (u64, u64) {
        self.align();
        let placed = (self.position, data.len() as u64);
        self.position += placed.1;
        if !data.is_empty() {
            self.chunks.push(data);
        }
        placed
    }

    fn align(&mut self) {
        let missing = self.position.next_multiple_of(ALIGNMENT) - self.position;
        if let Some(padding) = PADDING.get(..missing as usize).filter(|p| !p.is_empty()) {
            self.chunks.push(Bytes::from_static(padding));
            self.position += missing;
        }
    }
}

/// The fields in pre-order, a list before its items.
fn fields<'a>(columns: impl Iterator<Item = &'a WriterField>) -> Vec<Field> {
    let mut out: Vec<Field> = Vec::new();
    let mut push = |parent_id: i32, name: &str, logical_type: &str, nullable: bool| {
        let id = i32::try_from(out.len()).unwrap_or(i32::MAX);
        out.push(Field {
            name: name.to_owned(),
            id,
            parent_id,
            logical_type: logical_type.to_owned(),
            nullable,
            dictionary: None,
            metadata: HashMap::new(),
        });
        id
    };
    for field in columns {
        let id = push(-1, &field.name, &field.logical_type, field.nullable);
        if let Some((item, nullable)) = &field.item {
            push(id, "item", item, *nullable);
        }
    }
    out
}

fn count(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| Error::internal(format!("a file cannot have {n} columns or global buffers")))
}

fn table(out: &mut Vec<u8>, entries: &[(u64, u64)]) {
    for (position, size) in entries {
        out.extend_from_slice(&position.to_le_bytes());
        out.extend_from_slice(&size.to_le_bytes());
    }
}

fn direct(type_url: &str, value: Bytes) -> Encoding {
    let any = Any { type_url: type_url.to_owned(), value };
    Encoding { kind: Some(EncodingKind::Direct(DirectEncoding { encoding: any.encode_to_vec().into() })) }
}

/// Bytes of a value of fixed width; `INTERNAL` for types that no file written here has.
fn byte_width(ty: &DataType) -> Result<usize> {
    let width = match ty {
        DataType::FixedSizeBinary(n) => usize::try_from(*n).ok(),
        other => other.primitive_width(),
    };
    width.ok_or_else(|| Error::internal(format!("{ty} values cannot be written to a file")))
}

/// The values of an array of fixed width, without copying.
fn plain(values: &ArrayRef, width: usize) -> Result<Buffer> {
    let data = values.to_data();
    let buffer = data.buffers().first().ok_or_else(|| Error::internal("an array without a value buffer"))?;
    Ok(buffer.slice_with_length(data.offset() * width, data.len() * width))
}

/// Items per value, bytes of one, and all items of fixed-size lists, without copying.
fn vectors(values: &ArrayRef) -> Result<(usize, usize, Buffer)> {
    let lists =
        values.as_fixed_size_list_opt().ok_or_else(|| Error::internal("an array that is not made of fixed-size lists"))?;
    let dimension = usize::try_from(lists.value_length()).unwrap_or(0);
    let items = lists.values();
    let width = byte_width(items.data_type())?;
    if let Some(nulls) = items.nulls().filter(|nulls| nulls.null_count() > 0) {
        let null_item = |row: usize| (row * dimension..(row + 1) * dimension).any(|at| nulls.is_null(at));
        if (0..lists.len()).any(|row| lists.is_valid(row) && null_item(row)) {
            return Err(Error::new(ErrorCode::UnsupportedEncoding, "vectors with null items cannot be written by this build"));
        }
    }
    Ok((dimension, width, plain(items, width)?.slice_with_length(0, lists.len() * dimension * width)))
}

/// The buffer as `Bytes`, without copying.
fn owned(buffer: Buffer) -> Bytes {
    Bytes::from_owner(buffer)
}
