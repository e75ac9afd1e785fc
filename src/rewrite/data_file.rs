//! One data file: columns of rows → the bytes of the file → the fragment of a manifest that names it (table-format §4.3, §4.4).

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Field as ArrowField};
use bytes::Bytes;
use prost::Message;

use crate::error::{Error, ErrorCode, Result};
use crate::file::gather::concat;
use crate::file::messages::Field as FileField;
use crate::file::{EncodedFile, FileVersion, FileWriter, WriterField};
use crate::format::fragment::{DataFile, DeletionFile, DeletionKind};
use crate::format::schema::{Field, Schema, scalar_type};
use crate::format::{proto, wire};
use crate::table::column::field_type;

/// Bytes of values that make a page.
const PAGE_BYTES: usize = 8 << 20;
/// Rows that make a page, however small they are.
const PAGE_ROWS: usize = 1 << 20;
/// Inline version sequences of a fragment (table-format §4.3).
const LAST_UPDATED_AT: u32 = 7;
const CREATED_AT: u32 = 9;

/// How the rows of a table are written: one column per top-level field.
#[derive(Clone, Debug)]
pub struct DataLayout {
    version: FileVersion,
    /// As a manifest states it.
    numbers: (u32, u32),
    columns: Vec<DataColumn>,
    /// Every field of the schema, for the file's own copy of it.
    fields: Vec<Field>,
}

/// One column of a data file.
#[derive(Clone, Debug)]
pub struct DataColumn {
    /// Field id.
    pub field: i32,
    /// Column name.
    pub name: String,
    /// Type of its arrays.
    pub data_type: DataType,
    /// Whether it may hold nulls.
    pub nullable: bool,
    writer: WriterField,
    /// Field id of the items of a list.
    item: Option<i32>,
}

impl DataLayout {
    /// How tables of this schema and data storage version (`2.0`, `2.1`, `2.2`) are written.
    ///
    /// # Errors
    /// `UNSUPPORTED_TYPE` or `UNSUPPORTED_ENCODING` naming the first column that cannot be written, `UNSUPPORTED_FEATURE` for
    /// another storage version.
    pub fn of(schema: &Schema, storage_version: &str) -> Result<DataLayout> {
        let (version, numbers) = match storage_version {
            "2.0" => (FileVersion::V2_0, (2, 0)),
            "2.1" => (FileVersion::V2_1, (2, 1)),
            "2.2" => (FileVersion::V2_2, (2, 2)),
            other => {
                let text = format!("the table has data files of version {other}, which this build does not write");
                return Err(Error::new(ErrorCode::UnsupportedFeature, text).with("data_storage_version", other));
            }
        };
        let mut columns = Vec::new();
        for field in schema.fields.iter().filter(|field| field.parent_id < 0) {
            columns.push(column(schema, field, version)?);
        }
        if columns.is_empty() {
            return Err(Error::new(ErrorCode::UnsupportedFeature, "a table without columns cannot be written"));
        }
        Ok(DataLayout { version, numbers, columns, fields: schema.fields.clone() })
    }

    /// The columns, in the order of the schema.
    pub fn columns(&self) -> &[DataColumn] {
        &self.columns
    }

    /// Starts a file.
    pub fn writer(&self) -> DataFileWriter {
        let fields = self.columns.iter().map(|column| column.writer.clone()).collect();
        let mut writer = FileWriter::with_version(fields, self.version);
        writer.describe(self.fields.iter().map(described).collect());
        let pending = self.columns.iter().map(|_| Pending::default()).collect();
        DataFileWriter { layout: self.clone(), writer, pending, rows: vec![0; self.columns.len()] }
    }

    /// The manifest's entry of a file of this layout.
    pub fn entry(&self, path: String, size: u64) -> DataFile {
        let mut fields = Vec::new();
        for column in &self.columns {
            // Files of 2.0 have a column for a list and one for its items.
            fields.push(column.field);
            fields.extend(column.item);
        }
        let column_indices = (0..).take(fields.len()).collect();
        let (major, minor) = self.numbers;
        DataFile { path, fields, column_indices, major, minor, size: Some(size), base_id: None }
    }
}

fn column(schema: &Schema, field: &Field, version: FileVersion) -> Result<DataColumn> {
    let refuse = |code, what: String| {
        let text = format!("column {} {what}, which this build does not write", field.name);
        Error::new(code, text).with("column", field.name.as_str())
    };
    if field.metadata.contains_key("lance-encoding:blob") {
        return Err(refuse(ErrorCode::UnsupportedEncoding, "is a blob column".to_owned()));
    }
    let children: Vec<&Field> = schema.children(field.id).collect();
    let (data_type, writer, item) = match (field.logical_type.as_str(), children.as_slice()) {
        ("list", [item]) if version == FileVersion::V2_0 && schema.children(item.id).next().is_none() => {
            let item_type = scalar_type(&item.logical_type)
                .map_err(|_| refuse(ErrorCode::UnsupportedType, format!("is a list of {}", item.logical_type)))?;
            let inner = ArrowField::new(item.name.clone(), item_type, item.nullable);
            let writer = WriterField::list(&field.name, &item.logical_type, item.nullable, field.nullable);
            (DataType::List(Arc::new(inner)), writer, Some(item.id))
        }
        (logical, []) if logical.starts_with("fixed_size_list:") => {
            let refused = || refuse(ErrorCode::UnsupportedType, format!("is of type {logical}"));
            let data_type = field_type(schema, field).map_err(|_| refused())?;
            match &data_type {
                // Of items with a width of whole bytes.
                DataType::FixedSizeList(item, _) if is_plain(item.data_type()) => {}
                _ => return Err(refused()),
            }
            (data_type.clone(), WriterField::vectors(&field.name, logical, data_type, field.nullable), None)
        }
        (logical, []) => {
            let data_type =
                scalar_type(logical).map_err(|_| refuse(ErrorCode::UnsupportedType, format!("is of type {logical}")))?;
            (data_type, WriterField::new(&field.name, logical, field.nullable), None)
        }
        (logical, _) => {
            let what = format!("is of type {logical} in files of version {}", version.as_str());
            return Err(refuse(ErrorCode::UnsupportedType, what));
        }
    };
    Ok(DataColumn { field: field.id, name: field.name.clone(), data_type, nullable: field.nullable, writer, item })
}

fn is_plain(item: &DataType) -> bool {
    matches!(item, DataType::FixedSizeBinary(_)) || item.primitive_width().is_some()
}

/// A field as the file's own schema has it.
fn described(field: &Field) -> FileField {
    FileField {
        name: field.name.clone(),
        id: field.id,
        parent_id: field.parent_id,
        logical_type: field.logical_type.clone(),
        nullable: field.nullable,
        dictionary: None,
        metadata: field.metadata.iter().map(|(key, value)| (key.clone(), value.as_bytes().to_vec())).collect::<HashMap<_, _>>(),
    }
}

/// Values that wait until there are enough for a page.
#[derive(Default)]
struct Pending {
    parts: Vec<ArrayRef>,
    rows: usize,
    bytes: usize,
}

/// Writes one data file; columns may be written one after the other or side by side. Held in memory until it is stored.
pub struct DataFileWriter {
    layout: DataLayout,
    writer: FileWriter,
    pending: Vec<Pending>,
    rows: Vec<u64>,
}

impl DataFileWriter {
    /// Appends rows of one column, by its position in [`DataLayout::columns`]. Small arrays are gathered into pages of a few MB.
    ///
    /// # Errors
    /// `INTERNAL` for arrays of another type, `CORRUPT_FILE` for nulls in a column that takes none.
    pub fn push(&mut self, column: usize, values: &ArrayRef) -> Result<()> {
        let (Some(pending), Some(rows), Some(of)) =
            (self.pending.get_mut(column), self.rows.get_mut(column), self.layout.columns.get(column))
        else {
            return Err(Error::internal(format!("a data file has no column {column}")));
        };
        if !of.nullable && values.logical_null_count() > 0 {
            let what = format!("column {} holds nulls, and the schema says that it does not", of.name);
            return Err(Error::corrupt("a data file", what).with("column", of.name.as_str()));
        }
        let mut values = values.clone();
        while !values.is_empty() {
            let room = PAGE_ROWS.saturating_sub(pending.rows).clamp(1, values.len());
            let part = values.slice(0, room);
            *rows += part.len() as u64;
            pending.rows += part.len();
            pending.bytes = pending.bytes.saturating_add(part.to_data().get_slice_memory_size().unwrap_or(PAGE_BYTES));
            pending.parts.push(part);
            if pending.rows >= PAGE_ROWS || pending.bytes >= PAGE_BYTES {
                flush(&mut self.writer, column, pending, &of.data_type)?;
            }
            values = values.slice(room, values.len() - room);
        }
        Ok(())
    }

    /// Bytes held: what the file has so far and what waits for a page.
    pub fn memory_bytes(&self) -> u64 {
        self.pending.iter().fold(self.writer.position(), |sum, pending| sum.saturating_add(pending.bytes as u64))
    }

    /// Ends the file. It is to be stored as `data/{path}`.
    ///
    /// # Errors
    /// `INTERNAL` when a column has fewer rows than another.
    pub fn finish(mut self, path: String) -> Result<WrittenFile> {
        for (column, (pending, of)) in self.pending.iter_mut().zip(&self.layout.columns).enumerate() {
            flush(&mut self.writer, column, pending, &of.data_type)?;
        }
        let rows = self.rows.first().copied().unwrap_or(0);
        let file = self.writer.finish()?;
        let entry = self.layout.entry(path, file.size);
        Ok(WrittenFile { file, entry, rows })
    }
}

fn flush(writer: &mut FileWriter, column: usize, pending: &mut Pending, data_type: &DataType) -> Result<()> {
    let parts = std::mem::take(&mut pending.parts);
    (pending.rows, pending.bytes) = (0, 0);
    match parts.as_slice() {
        [] => Ok(()),
        [one] => writer.write_page(column, one),
        several => writer.write_page(column, &concat(several, data_type)?),
    }
}

/// A finished data file, not yet stored.
pub struct WrittenFile {
    /// Its bytes.
    pub file: EncodedFile,
    /// What a fragment says of it.
    pub entry: DataFile,
    /// Its rows.
    pub rows: u64,
}

/// What a fragment is made of, for a manifest or a transaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewFragment {
    /// Id; 0 in a transaction whose commit assigns it.
    pub id: u32,
    /// Its files.
    pub files: Vec<DataFile>,
    /// Rows, deleted ones included.
    pub rows: u64,
    /// Its deletion vector.
    pub deletion_file: Option<DeletionFile>,
    /// The serialized sequence of stable row ids, on tables that have them.
    pub row_ids: Option<Bytes>,
    /// The serialized sequence of versions its rows were last updated at; `None` = not recorded.
    pub last_updated_at: Option<Bytes>,
    /// The serialized sequence of versions its rows were created at; `None` = not recorded.
    pub created_at: Option<Bytes>,
}

impl NewFragment {
    /// The `DataFragment` message.
    pub fn encode(&self) -> Bytes {
        let message = proto::DataFragment {
            id: u64::from(self.id),
            files: self.files.iter().map(data_file_message).collect(),
            deletion_file: self.deletion_file.as_ref().map(deletion_file_message),
            physical_rows: self.rows,
            row_ids: self.row_ids.clone().map(proto::RowIds::Inline),
            overlays: Vec::new(),
        };
        let mut raw = message.encode_to_vec();
        for (number, sequence) in [(LAST_UPDATED_AT, &self.last_updated_at), (CREATED_AT, &self.created_at)] {
            if let Some(sequence) = sequence {
                wire::put_len_field(&mut raw, number, sequence);
            }
        }
        raw.into()
    }
}

/// The `DataFile` message.
pub fn data_file_message(file: &DataFile) -> proto::DataFile {
    proto::DataFile {
        path: file.path.clone(),
        fields: file.fields.clone(),
        column_indices: file.column_indices.clone(),
        file_major_version: file.major,
        file_minor_version: file.minor,
        file_size_bytes: file.size.unwrap_or(0),
        base_id: file.base_id,
    }
}

/// The `DeletionFile` message.
pub fn deletion_file_message(file: &DeletionFile) -> proto::DeletionFile {
    proto::DeletionFile {
        file_type: match file.kind {
            DeletionKind::Arrow => 0,
            DeletionKind::Bitmap => 1,
        },
        read_version: file.read_version,
        id: file.id,
        num_deleted_rows: file.num_deleted_rows.unwrap_or(0),
        base_id: file.base_id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{BooleanArray, FixedSizeListArray, Int64Array, ListArray, StringArray};
    use arrow::datatypes::{Float32Type, Int32Type};
    use futures::executor::block_on;

    use crate::env;
    use crate::file::LanceFile;
    use crate::format::manifest::Manifest;
    use crate::store::Store;

    fn field(id: i32, parent_id: i32, name: &str, logical_type: &str, nullable: bool) -> Field {
        let (name, logical_type) = (name.to_owned(), logical_type.to_owned());
        Field { id, parent_id, name, logical_type, nullable, metadata: Default::default(), has_dictionary: false }
    }

    fn schema(fields: Vec<Field>) -> Schema {
        Schema { fields, metadata: Default::default() }
    }

    #[test]
    fn rows_go_in_and_come_out_again() {
        let flat = vec![
            field(4, -1, "n", "int64", false),
            field(7, -1, "s", "string", true),
            field(9, -1, "b", "bool", true),
            field(11, -1, "e", "fixed_size_list:float:2", true),
        ];
        let mut with_list = flat.clone();
        with_list.extend([field(2, -1, "l", "list", true), field(3, 2, "item", "int32", true)]);
        for (version, fields) in [("2.0", with_list), ("2.1", flat.clone()), ("2.2", flat)] {
            let layout = DataLayout::of(&schema(fields), version).unwrap();
            let columns: Vec<ArrayRef> = vec![
                Arc::new(Int64Array::from_iter_values(0..5)),
                Arc::new(StringArray::from(vec![Some("a"), None, Some(""), Some("cc"), None])),
                Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true), None])),
                Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
                    [Some([1.5, 2.0]), None, Some([0.0, -1.0]), None, Some([7.0, 8.0])].map(|v| v.map(|v| v.map(Some))),
                    2,
                )),
                Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([
                    Some(vec![Some(1), None]),
                    None,
                    Some(vec![]),
                    Some(vec![Some(2)]),
                    Some(vec![Some(3)]),
                ])),
            ];
            let mut writer = layout.writer();
            for (at, column) in layout.columns().iter().enumerate() {
                // In pieces of any size.
                writer.push(at, &columns[at].slice(0, 2)).unwrap();
                writer.push(at, &columns[at].slice(2, 3)).unwrap();
                assert_eq!(&column.data_type, columns[at].data_type());
            }
            let written = writer.finish("x.lance".to_owned()).unwrap();
            assert_eq!(written.rows, 5);
            let store = Store::memory(env::system());
            block_on(store.put("data/x.lance", written.file.chunks.clone())).unwrap();
            let file = block_on(LanceFile::open(&store, "data/x.lance", Some(written.file.size))).unwrap();
            for (at, column) in layout.columns().iter().enumerate() {
                let position = written.entry.fields.iter().position(|id| *id == column.field).unwrap();
                let index = written.entry.column_indices[position] as usize;
                let mut scan = file.scan(index, &column.data_type, true, 0..5);
                let read = block_on(scan.next()).unwrap().unwrap();
                assert_eq!(&read, &columns[at], "{} of {version}", column.name);
                assert!(block_on(scan.next()).unwrap().is_none(), "small pieces become one page");
            }
        }
    }

    #[test]
    fn a_fragment_is_read_back_as_it_was_meant() {
        let layout = DataLayout::of(&schema(vec![field(0, -1, "n", "int64", false)]), "2.1").unwrap();
        let file = layout.entry("a.lance".to_owned(), 77);
        let deletion_file =
            DeletionFile { kind: DeletionKind::Bitmap, read_version: 3, id: u64::MAX, num_deleted_rows: Some(2), base_id: None };
        let fragment = NewFragment {
            id: 8,
            files: vec![file.clone()],
            rows: 9,
            deletion_file: Some(deletion_file.clone()),
            ..NewFragment::default()
        };
        let mut manifest = Vec::new();
        wire::put_len_field(&mut manifest, 2, &fragment.encode());
        let read = Manifest::parse("m", manifest.into()).unwrap();
        let read = read.fragment(8).unwrap();
        assert_eq!((&read.files, read.physical_rows, &read.deletion_file), (&vec![file], Some(9), &Some(deletion_file)));
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let refused = |fields: Vec<Field>, version: &str| DataLayout::of(&schema(fields), version).unwrap_err();
        let nested = vec![field(0, -1, "n", "int64", true), field(1, -1, "s", "struct", true), field(2, 1, "x", "int64", true)];
        let list = vec![field(0, -1, "tags", "list", true), field(1, 0, "item", "string", true)];
        for (fields, version, column) in [(nested, "2.0", "s"), (list.clone(), "2.1", "tags"), (vec![], "2.0", "without columns")]
        {
            let error = refused(fields, version);
            assert!(error.message().contains(column), "{error}");
        }
        assert!(DataLayout::of(&schema(list), "2.0").is_ok());
        assert_eq!(refused(vec![field(0, -1, "n", "int64", true)], "2.3").code(), ErrorCode::UnsupportedFeature);
        let layout = DataLayout::of(&schema(vec![field(0, -1, "n", "int64", false)]), "2.1").unwrap();
        let nulls: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(1)]));
        assert_eq!(layout.writer().push(0, &nulls).unwrap_err().code(), ErrorCode::CorruptFile);
    }
}
