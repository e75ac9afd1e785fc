//! Files of segments taken apart, changed and written again, as a fault would have left them.
#![allow(dead_code)] // every test binary uses its own part
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, LargeBinaryArray, ListArray, UInt32Array, UInt64Array, new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field};
use futures::executor::block_on;
use roaring::RoaringTreemap;
use whetstone::file::{FileWriter, LanceFile, WriterField};
use whetstone::format::index_metadata::IndexMetadata;
use whetstone::format::schema::scalar_type;
use whetstone::format::treemap::{decode_row_treemap, encode_row_treemap};
use whetstone::table::Table;

use super::shared::{Shared, rewrite};

/// One file of a segment, taken apart.
pub struct Parts {
    /// What they are.
    pub fields: Vec<WriterField>,
    /// Whole columns.
    pub columns: Vec<ArrayRef>,
    pub metadata: Vec<(String, String)>,
    buffer: Option<Vec<u8>>,
}

impl Parts {
    fn read(file: &LanceFile) -> Parts {
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for field in file.fields().iter().filter(|field| field.parent_id < 0) {
            let item = file.fields().iter().find(|item| item.parent_id == field.id);
            let (at, data_type) = match item {
                None => {
                    fields.push(WriterField::new(&*field.name, &*field.logical_type, field.nullable));
                    (file.column_index(&field.name).unwrap(), scalar_type(&field.logical_type).unwrap())
                }
                Some(item) => {
                    fields.push(WriterField::list(&*field.name, &*item.logical_type, item.nullable, field.nullable));
                    let of = Field::new("item", scalar_type(&item.logical_type).unwrap(), item.nullable);
                    (file.list_column(&field.name).unwrap(), DataType::List(Arc::new(of)))
                }
            };
            let mut scan = file.scan(at, &data_type, field.nullable, 0..file.rows());
            let mut arrays = Vec::new();
            while let Some(array) = block_on(scan.next()).unwrap() {
                arrays.push(array);
            }
            let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
            columns.push(arrow::compute::concat(&arrays).unwrap());
        }
        Parts {
            columns,
            fields,
            metadata: file.metadata().iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            buffer: (file.global_buffers() > 1).then(|| block_on(file.global_buffer(1)).unwrap().to_vec()),
        }
    }

    fn write(self) -> (Vec<bytes::Bytes>, u64) {
        let mut writer = FileWriter::new(self.fields);
        for (at, column) in self.columns.iter().enumerate() {
            writer.write_page(at, column).unwrap();
        }
        if let Some(buffer) = self.buffer {
            writer.global_buffer(buffer.into());
        }
        self.metadata.iter().for_each(|(key, value)| writer.metadata(key, value));
        let file = writer.finish().unwrap();
        (file.chunks, file.size)
    }

    pub fn at(&self, name: &str) -> usize {
        self.fields.iter().position(|field| field.name == name).unwrap_or_else(|| panic!("no column {name}"))
    }

    /// Takes these rows of every column, in this order.
    pub fn take(&mut self, rows: &[usize]) {
        let rows = UInt64Array::from_iter_values(rows.iter().map(|row| *row as u64));
        for column in &mut self.columns {
            *column = arrow::compute::take(column, &rows, None).unwrap();
        }
    }

    pub fn rows(&self) -> usize {
        self.columns[0].len()
    }

    pub fn u64s(&mut self, name: &str, change: impl FnOnce(&mut Vec<u64>)) {
        let at = self.at(name);
        let mut values = self.columns[at].as_any().downcast_ref::<UInt64Array>().unwrap().values().to_vec();
        change(&mut values);
        self.columns[at] = Arc::new(UInt64Array::from(values));
    }

    pub fn u32s(&mut self, name: &str, change: impl FnOnce(&mut Vec<u32>)) {
        let at = self.at(name);
        let mut values = self.columns[at].as_any().downcast_ref::<UInt32Array>().unwrap().values().to_vec();
        change(&mut values);
        self.columns[at] = Arc::new(UInt32Array::from(values));
    }

    pub fn blobs(&mut self, name: &str, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
        let at = self.at(name);
        let array = self.columns[at].as_any().downcast_ref::<BinaryArray>().unwrap();
        let mut values: Vec<Vec<u8>> = (0..array.len()).map(|row| array.value(row).to_vec()).collect();
        change(&mut values);
        self.columns[at] = Arc::new(BinaryArray::from_iter_values(values));
    }

    pub fn bitmap(&mut self, row: usize, change: impl FnOnce(&mut RoaringTreemap)) {
        self.blobs("bitmaps", |blobs| {
            let mut map = decode_row_treemap("t", &blobs[row]).unwrap();
            change(&mut map);
            blobs[row] = encode_row_treemap(&map);
        });
    }

    pub fn nulls(&mut self, change: impl FnOnce(&mut RoaringTreemap)) {
        let mut map = decode_row_treemap("t", self.buffer.as_ref().unwrap()).unwrap();
        change(&mut map);
        self.buffer = Some(encode_row_treemap(&map));
    }

    pub fn set_metadata(&mut self, key: &str, value: &str) {
        self.metadata.retain(|(other, _)| other != key);
        self.metadata.push((key.to_owned(), value.to_owned()));
    }

    /// Blobs with wide offsets.
    pub fn large_blobs(&mut self, name: &str, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
        let at = self.at(name);
        let array = self.columns[at].as_binary::<i64>();
        let mut values: Vec<Vec<u8>> = (0..array.len()).map(|row| array.value(row).to_vec()).collect();
        change(&mut values);
        self.columns[at] = Arc::new(LargeBinaryArray::from_iter_values(values));
    }

    /// Lists of blobs.
    pub fn lists(&mut self, name: &str, change: impl FnOnce(&mut Vec<Vec<Vec<u8>>>)) {
        let at = self.at(name);
        let lists = self.columns[at].as_list::<i32>();
        let blobs = |row: usize| {
            let items = lists.value(row);
            let items = items.as_binary::<i64>();
            (0..items.len()).map(|item| items.value(item).to_vec()).collect()
        };
        let mut values: Vec<Vec<Vec<u8>>> = (0..lists.len()).map(blobs).collect();
        change(&mut values);
        let items = LargeBinaryArray::from_iter_values(values.iter().flatten());
        let field = Arc::new(Field::new("item", DataType::LargeBinary, true));
        let offsets = OffsetBuffer::from_lengths(values.iter().map(Vec::len));
        self.columns[at] = Arc::new(ListArray::new(field, offsets, Arc::new(items), None));
    }

    /// Replaces a column by nulls, or by one value everywhere.
    pub fn blank(&mut self, name: &str) {
        let at = self.at(name);
        self.columns[at] = new_null_array(self.columns[at].data_type(), self.columns[at].len());
    }
}

/// The first segment of an index, in the entries of a manifest.
pub fn first<'a>(entries: &'a mut [IndexMetadata], index: &str) -> &'a mut IndexMetadata {
    let entry = entries.iter_mut().find(|entry| entry.name == index).unwrap();
    // Written anew instead of as it was read.
    entry.raw = Default::default();
    entry
}

/// Changes a file of the first segment of an index, with the manifest keeping up.
pub fn edit(shared: &Shared, index: &str, file: &str, change: impl FnOnce(&mut Parts)) -> Table {
    let table = shared.open(1);
    let mut entries = table.manifest().indices.clone();
    let entry = first(&mut entries, index).clone();
    let path = format!("_indices/{}/{file}", entry.uuid);
    let mut parts = Parts::read(&block_on(LanceFile::open(table.store(), &path, None)).unwrap());
    change(&mut parts);
    let (chunks, size) = parts.write();
    block_on(table.store().put(&path, chunks)).unwrap();
    rewrite(&table, |entries| {
        let entry = first(entries, index);
        entry.files.iter_mut().filter(|known| known.path == file).for_each(|known| known.size_bytes = size);
    })
}
