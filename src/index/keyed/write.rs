//! Writing such a file from keys that come in index order.

use arrow::datatypes::DataType;

use crate::error::Result;
use crate::file::{FileWriter, WriterField};
use crate::index::bytes::ValueColumn;
use crate::index::keyed::Names;
use crate::index::sort::{PAGE_BYTES, PAGE_ROWS};

/// Takes keys in index order, null first, each with its encoded bitmap.
pub struct KeyWriter {
    file: FileWriter,
    keys: ValueColumn,
    bitmaps: ValueColumn,
    count: u64,
}

impl KeyWriter {
    /// A file over keys of that type.
    pub fn new(names: Names, data_type: &DataType, logical_type: &str) -> KeyWriter {
        KeyWriter {
            file: FileWriter::new(vec![
                WriterField::new(names.key, logical_type, true),
                WriterField::new(names.bitmap, "binary", names.nullable),
            ]),
            keys: ValueColumn::new(data_type),
            bitmaps: ValueColumn::new(&DataType::Binary),
            count: 0,
        }
    }

    /// The next key in plain bytes, `None` for the null key; `encode` appends its bitmap.
    ///
    /// # Errors
    /// `MEMORY_LIMIT` for a bitmap or key that no page can hold.
    pub fn push(&mut self, key: Option<&[u8]>, encode: &mut dyn FnMut(&mut Vec<u8>)) -> Result<()> {
        self.keys.push(key);
        self.bitmaps.push_with(encode);
        self.count += 1;
        if self.keys.byte_len() + self.bitmaps.byte_len() >= PAGE_BYTES || self.keys.len() >= PAGE_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_page(0, &self.keys.finish()?)?;
        self.file.write_page(1, &self.bitmaps.finish()?)
    }

    /// Bytes written so far.
    pub fn position(&self) -> u64 {
        self.file.position() + (self.keys.byte_len() + self.bitmaps.byte_len()) as u64
    }

    /// Keys so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The file with all keys in it, for its metadata and buffers.
    ///
    /// # Errors
    /// Those of [`KeyWriter::push`].
    pub fn finish(mut self) -> Result<FileWriter> {
        self.flush()?;
        Ok(self.file)
    }
}
