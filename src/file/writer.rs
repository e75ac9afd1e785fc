//! Writing files of version 2.0 with plain pages: `Flat`, `Nullable`, `Binary` (file-format §10.2, §10.5).
//!
//! Every 2.x release of Lance reads them, in tables of every version. The file is a list of chunks: the buffers of the
//! Arrow arrays are taken over as they are, never gathered into one block.

use std::collections::{BTreeMap, HashMap};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::DataType;
use bytes::Bytes;
use prost::Message;

use super::messages::encoding20::{self as page, ArrayEncoding, ArrayKind, Nullability};
use super::messages::{
    Any, ColumnMetadata, DirectEncoding, Encoding, EncodingKind, Field, FileDescriptor, Page, SchemaMessage, container::Empty,
};
use crate::error::{Error, Result};
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
}

impl WriterField {
    /// A field by name, logical type and nullability.
    pub fn new(name: impl Into<String>, logical_type: impl Into<String>, nullable: bool) -> WriterField {
        WriterField { name: name.into(), logical_type: logical_type.into(), nullable }
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
}

/// Writes one file of version 2.0, page by page.
#[derive(Debug)]
pub struct FileWriter {
    columns: Vec<WriterColumn>,
    metadata: BTreeMap<String, Vec<u8>>,
    chunks: Vec<Bytes>,
    position: u64,
    globals: Vec<(u64, u64)>,
}

impl FileWriter {
    /// A file with these columns, no rows yet.
    pub fn new(fields: Vec<WriterField>) -> FileWriter {
        let columns = fields.into_iter().map(|field| WriterColumn { field, pages: Vec::new(), rows: 0 }).collect();
        FileWriter { columns, metadata: BTreeMap::new(), chunks: Vec::new(), position: 0, globals: Vec::new() }
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
        let expected = scalar_type(&target.field.logical_type)?;
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
        let (encoding, buffers) = encode(values)?;
        let placed: Vec<(u64, u64)> = buffers.into_iter().map(|buffer| self.push(buffer)).collect();
        let message = Page {
            buffer_offsets: placed.iter().map(|p| p.0).collect(),
            buffer_sizes: placed.iter().map(|p| p.1).collect(),
            length: values.len() as u64,
            encoding: Some(direct("/lance.encodings.ArrayEncoding", encoding.encode_to_vec().into())),
            priority: 0,
        };
        if let Some(target) = self.columns.get_mut(column) {
            target.rows += message.length;
            target.pages.push(message);
        }
        Ok(())
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
                fields: self.columns.iter().zip(0..).map(|(column, id)| column.field.message(id)).collect(),
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
        for column in self.columns.drain(..) {
            let message = ColumnMetadata {
                encoding: Some(direct("/lance.encodings.ColumnEncoding", Bytes::from_static(&[0x0A, 0x00]))),
                pages: column.pages,
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
        tail.extend_from_slice(&0u16.to_le_bytes());
        tail.extend_from_slice(&3u16.to_le_bytes());
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

impl WriterField {
    fn message(&self, id: i32) -> Field {
        Field {
            name: self.name.clone(),
            id,
            parent_id: -1,
            logical_type: self.logical_type.clone(),
            nullable: self.nullable,
            dictionary: None,
            metadata: HashMap::new(),
        }
    }
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

fn encode(values: &ArrayRef) -> Result<(ArrayEncoding, Vec<Bytes>)> {
    match values.data_type() {
        DataType::Utf8 => variable(values.as_string::<i32>()),
        DataType::LargeUtf8 => variable(values.as_string::<i64>()),
        DataType::Binary => variable(values.as_binary::<i32>()),
        DataType::LargeBinary => variable(values.as_binary::<i64>()),
        DataType::Null => Ok((all_nulls(), Vec::new())),
        DataType::Boolean => {
            let bits = values.as_boolean().values().sliced();
            fixed(values.len(), 1, owned(bits), values.nulls())
        }
        other => {
            let width = match other {
                DataType::FixedSizeBinary(n) => usize::try_from(*n).ok(),
                _ => other.primitive_width(),
            };
            let width = width.ok_or_else(|| Error::internal(format!("{other} values cannot be written to a file")))?;
            let data = values.to_data();
            let buffer = data.buffers().first().ok_or_else(|| Error::internal("an array without a value buffer"))?;
            let plain = buffer.slice_with_length(data.offset() * width, data.len() * width);
            fixed(values.len(), 8 * width as u64, owned(plain), values.nulls())
        }
    }
}

/// The buffer as `Bytes`, without copying.
fn owned(buffer: Buffer) -> Bytes {
    Bytes::from_owner(buffer)
}

fn flat(bits_per_value: u64, buffer_index: u32) -> ArrayEncoding {
    let buffer = Some(page::Buffer { buffer_index, buffer_type: 0 });
    ArrayEncoding { kind: Some(ArrayKind::Flat(page::Flat { bits_per_value, buffer, compression: None })) }
}

fn nullable(nullability: Nullability) -> ArrayEncoding {
    ArrayEncoding { kind: Some(ArrayKind::Nullable(Box::new(page::Nullable { nullability: Some(nullability) }))) }
}

fn no_nulls(values: ArrayEncoding) -> ArrayEncoding {
    nullable(Nullability::NoNulls(Box::new(page::NoNulls { values: Some(Box::new(values)) })))
}

fn all_nulls() -> ArrayEncoding {
    nullable(Nullability::AllNulls(Empty {}))
}

fn fixed(rows: usize, bits: u64, plain: Bytes, nulls: Option<&NullBuffer>) -> Result<(ArrayEncoding, Vec<Bytes>)> {
    Ok(match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => (no_nulls(flat(bits, 0)), vec![plain]),
        Some(nulls) if nulls.null_count() == rows => (all_nulls(), Vec::new()),
        Some(nulls) => {
            let some = page::SomeNulls { validity: Some(Box::new(flat(1, 0))), values: Some(Box::new(flat(bits, 1))) };
            (nullable(Nullability::SomeNulls(Box::new(some))), vec![owned(nulls.inner().sliced()), plain])
        }
    })
}

/// `Binary`: u64 end offsets; a null is its end plus `bytes + 1` and has no bytes.
fn variable<T: arrow::datatypes::ByteArrayType>(
    values: &arrow::array::GenericByteArray<T>,
) -> Result<(ArrayEncoding, Vec<Bytes>)> {
    use arrow::datatypes::ArrowNativeType;
    let offsets = values.value_offsets();
    let position = |offset: T::Offset| offset.as_usize();
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
        return Err(Error::internal("an array of strings without offsets"));
    };
    let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0);
    if nulls.is_some_and(|nulls| nulls.null_count() == values.len()) {
        return Ok((all_nulls(), Vec::new()));
    }
    let filled_null =
        nulls.is_some_and(|nulls| offsets.windows(2).enumerate().any(|(row, w)| nulls.is_null(row) && w.first() != w.last()));
    let bytes = if filled_null {
        // Arrow lets a null slot own bytes; this format does not.
        let kept: Vec<u8> = values.iter().flatten().flat_map(|value| value_bytes::<T>(value).iter().copied()).collect();
        kept.into()
    } else {
        owned(values.values().slice_with_length(position(first), position(last) - position(first)))
    };
    let adjustment = bytes.len() as u64 + 1;
    let mut ends: Vec<u64> = Vec::with_capacity(values.len());
    match nulls {
        None => ends.extend(offsets.iter().skip(1).map(|end| (position(*end) - position(first)) as u64)),
        Some(nulls) => {
            let mut end = 0u64;
            for (row, pair) in offsets.windows(2).enumerate() {
                if nulls.is_null(row) {
                    ends.push(end + adjustment);
                } else if let [from, to] = pair {
                    end += (position(*to) - position(*from)) as u64;
                    ends.push(end);
                }
            }
        }
    }
    let encoding = page::Binary {
        indices: Some(Box::new(no_nulls(flat(64, 0)))),
        bytes: Some(Box::new(flat(8, 1))),
        null_adjustment: adjustment,
    };
    let encoding = ArrayEncoding { kind: Some(ArrayKind::Binary(Box::new(encoding))) };
    Ok((encoding, vec![owned(Buffer::from_vec(ends)), bytes]))
}

fn value_bytes<T: arrow::datatypes::ByteArrayType>(value: &T::Native) -> &[u8] {
    value.as_ref()
}
