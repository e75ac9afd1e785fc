//! The container: footer, tables of columns and global buffers, file descriptor (file-format §2).

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use prost::Message;

use super::fault::le;
use super::messages::{ColumnMetadata, FileDescriptor};
use crate::error::{Error, ErrorCode, Result};
use crate::format::schema::Field;
use crate::lists::map_of;

/// Bytes of the footer.
pub(crate) const FOOTER: u64 = 40;
/// The tail read when a file is opened, bytes.
pub(crate) const TAIL: u64 = 64 * 1024;
/// A larger metadata section is refused, bytes.
const MAX_METADATA: u64 = 256 << 20;

/// Version of a column file, by its footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileVersion {
    /// Footer (0,3) or (2,0).
    V2_0,
    /// Footer (2,1).
    V2_1,
    /// Footer (2,2).
    V2_2,
    /// Footer (2,3).
    V2_3,
}

impl FileVersion {
    /// e.g. `2.1`.
    pub fn as_str(self) -> &'static str {
        match self {
            FileVersion::V2_0 => "2.0",
            FileVersion::V2_1 => "2.1",
            FileVersion::V2_2 => "2.2",
            FileVersion::V2_3 => "2.3",
        }
    }
}

/// The footer, checked against the size of the file.
#[derive(Clone, Debug)]
pub(crate) struct Footer {
    pub(crate) version: FileVersion,
    columns_start: u64,
    cmo: u64,
    gbo: u64,
    globals: u64,
    columns: u64,
}

impl Footer {
    /// Reads the footer at the end of `tail`, the last bytes of a file of `size` bytes.
    pub(crate) fn parse(path: &str, tail: &[u8], size: u64) -> Result<Footer> {
        let Some(footer) = tail.last_chunk::<{ FOOTER as usize }>() else {
            return Err(Error::corrupt(path, format!("{size} bytes are too few for a Lance file")));
        };
        let number = |at: usize, len: usize| le(footer.get(at..at + len).unwrap_or_default());
        if footer.get(36..) != Some(b"LANC".as_slice()) {
            return Err(Error::corrupt(path, "does not end as a Lance file does: truncated, or its recorded size is wrong"));
        }
        let version = match (number(32, 2), number(34, 2)) {
            (0, 0..=2) => {
                let message = format!("{path} is a file of the legacy format 0.1, which this build does not read");
                return Err(Error::new(ErrorCode::UnsupportedEncoding, message).with("object", path));
            }
            (0, 3) | (2, 0) => FileVersion::V2_0,
            (2, 1) => FileVersion::V2_1,
            (2, 2) => FileVersion::V2_2,
            (2, 3) => FileVersion::V2_3,
            (major, minor) => {
                let message = format!("{path} is a file of format {major}.{minor}, which this build does not read");
                return Err(Error::new(ErrorCode::UnsupportedEncoding, message).with("object", path));
            }
        };
        let (columns_start, cmo, gbo) = (number(0, 8), number(8, 8), number(16, 8));
        let (globals, columns) = (number(24, 4), number(28, 4));
        let cmo_table = gbo.checked_sub(16 * columns);
        if gbo.checked_add(16 * globals + FOOTER) != Some(size)
            || cmo_table.is_none_or(|at| at < cmo || cmo < columns_start)
            || globals == 0
        {
            return Err(Error::corrupt(
                path,
                format!(
                    "its footer (columns at {columns_start}, tables at {cmo} and {gbo}, {columns} columns, {globals} global buffers) does not fit {size} bytes"
                ),
            ));
        }
        Ok(Footer { version, columns_start, cmo: cmo_table.unwrap_or(cmo), gbo, globals, columns })
    }

    /// Where the table of global buffers begins.
    pub(crate) fn global_table(&self) -> u64 {
        self.gbo
    }

    /// The global buffers; `tail` begins at file position `start` and reaches the end of the file.
    pub(crate) fn globals(&self, path: &str, tail: &[u8], start: u64) -> Result<Vec<Range<u64>>> {
        let table =
            self.gbo.checked_sub(start).and_then(|at| usize::try_from(at).ok()).and_then(|at| tail.get(at..)).unwrap_or_default();
        let globals: Vec<Range<u64>> = entries(path, table, self.globals, "global buffer", 0..self.gbo)?;
        match globals.first() {
            Some(schema) if schema.end <= self.columns_start => Ok(globals),
            _ => Err(Error::corrupt(path, "its schema does not lie before the column metadata")),
        }
    }

    /// The column metadata entries.
    pub(crate) fn columns(&self, path: &str, tail: &[u8], start: u64) -> Result<Vec<Range<u64>>> {
        let table =
            self.cmo.checked_sub(start).and_then(|at| usize::try_from(at).ok()).and_then(|at| tail.get(at..)).unwrap_or_default();
        entries(path, table, self.columns, "column metadata", self.columns_start..self.cmo)
    }

    /// Refuses a metadata section (from `start` to the end of a file of `size` bytes) that is too large to hold.
    pub(crate) fn check_metadata_size(path: &str, start: u64, size: u64) -> Result<()> {
        let bytes = size.saturating_sub(start);
        if bytes <= MAX_METADATA {
            return Ok(());
        }
        let message = format!("{path}: {bytes} bytes of metadata, the limit is {MAX_METADATA}");
        Err(Error::new(ErrorCode::MemoryLimit, message).with("object", path))
    }
}

fn entries(path: &str, table: &[u8], count: u64, what: &str, inside: Range<u64>) -> Result<Vec<Range<u64>>> {
    let (rows, _) = table.as_chunks::<16>();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let Some(rows) = rows.get(..count) else {
        return Err(Error::corrupt(path, format!("its table of {count} {what} entries is cut off")));
    };
    rows.iter()
        .zip(0u32..)
        .map(|(row, index)| {
            let (position, size) = (le(row.get(..8).unwrap_or_default()), le(row.get(8..).unwrap_or_default()));
            match position.checked_add(size) {
                Some(end) if position >= inside.start && end <= inside.end => Ok(position..end),
                _ => {
                    Err(Error::corrupt(path, format!("{what} {index} lies at {position} with {size} bytes, outside its section")))
                }
            }
        })
        .collect()
}

/// Global buffer 0, decoded.
#[derive(Clone, Debug)]
pub(crate) struct Descriptor {
    pub(crate) rows: u64,
    pub(crate) fields: Vec<Field>,
    pub(crate) metadata: BTreeMap<String, String>,
    /// Physical column of each field, in the order of `fields`; `None` = the field has none, or it cannot be told.
    pub(crate) columns: Vec<Option<usize>>,
}

fn text(map: impl IntoIterator<Item = (String, Vec<u8>)>) -> BTreeMap<String, String> {
    map_of(map.into_iter().map(|(key, value)| (key, String::from_utf8_lossy(&value).into_owned())))
}

impl Descriptor {
    pub(crate) fn parse(path: &str, bytes: Bytes, version: FileVersion) -> Result<Descriptor> {
        let message =
            FileDescriptor::decode(bytes).map_err(|e| Error::corrupt(path, format!("its schema does not decode: {e}")))?;
        let schema = message.schema.unwrap_or_default();
        let fields: Vec<Field> = schema
            .fields
            .into_iter()
            .map(|field| Field {
                id: field.id,
                parent_id: field.parent_id,
                name: field.name,
                logical_type: field.logical_type,
                nullable: field.nullable,
                metadata: text(field.metadata),
                has_dictionary: false,
            })
            .collect();
        let columns = physical_columns(&fields, version);
        Ok(Descriptor { rows: message.length, fields, metadata: text(schema.metadata), columns })
    }

    /// Name of the field that a physical column holds, for messages.
    pub(crate) fn name_of(&self, column: usize) -> Option<&str> {
        let at = self.columns.iter().position(|c| *c == Some(column))?;
        self.fields.get(at).map(|field| field.name.as_str())
    }
}

/// Assigns columns depth-first (file-format §2.8): 2.0 gives every field one, 2.1+ only the leaves; a packed struct is one.
fn physical_columns(fields: &[Field], version: FileVersion) -> Vec<Option<usize>> {
    let mut next = 0usize;
    let mut inside_packed: Vec<i32> = Vec::new();
    fields
        .iter()
        .map(|field| {
            if inside_packed.contains(&field.parent_id) {
                inside_packed.push(field.id);
                return None;
            }
            let packed = field.metadata.contains_key("packed") || field.metadata.contains_key("lance-encoding:packed");
            let parent = fields.iter().any(|other| other.parent_id == field.id);
            if packed && parent {
                inside_packed.push(field.id);
            } else if version > FileVersion::V2_0 && parent {
                return None;
            }
            next = next.checked_add(1)?;
            next.checked_sub(1)
        })
        .collect()
}

/// Column metadata, decoded and checked against the size of the file.
pub(crate) fn parse_column(path: &str, bytes: Bytes, column: usize, size: u64) -> Result<ColumnMetadata> {
    let message = ColumnMetadata::decode(bytes)
        .map_err(|e| Error::corrupt(path, format!("column {column}: its metadata does not decode: {e}")))?;
    let mut rows = 0u64;
    for (index, page) in message.pages.iter().enumerate() {
        let bad = |what: String| {
            Error::corrupt(path, format!("column {column}, page {index}: {what}")).with("column", column).with("page", index)
        };
        if page.buffer_offsets.len() != page.buffer_sizes.len() {
            return Err(bad(format!("{} buffer positions and {} sizes", page.buffer_offsets.len(), page.buffer_sizes.len())));
        }
        for (position, len) in page.buffer_offsets.iter().zip(&page.buffer_sizes) {
            if position.checked_add(*len).is_none_or(|end| end > size) {
                return Err(bad(format!("a buffer at {position} with {len} bytes in a file of {size}")));
            }
        }
        rows = rows.checked_add(page.length).ok_or_else(|| bad("more rows than can be counted".to_owned()))?;
    }
    Ok(message)
}
