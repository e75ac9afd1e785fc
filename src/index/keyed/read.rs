//! Reading such a file key by key.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray};
use arrow::datatypes::DataType;
use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::file::LanceFile;
use crate::format::schema::scalar_type;
use crate::format::treemap::{decode_roaring64, decode_row_treemap};
use crate::index::SegmentFiles;
use crate::index::columns::{Pieces, pair, position};
use crate::index::keyed::Names;
use crate::index::postings::Layout;

/// The keys of a file, in its order, with their bitmaps.
pub struct Keys {
    label: String,
    data_type: DataType,
    logical_type: String,
    layout: Layout,
    keys: Pieces,
    bitmaps: Pieces,
}

impl Keys {
    /// Starts with the first key of the file.
    ///
    /// # Errors
    /// `CORRUPT_FILE` for missing columns, `UNSUPPORTED_TYPE` for keys of a type this build has no name for.
    pub fn open(segment: &SegmentFiles, file_name: &str, file: &LanceFile, names: Names) -> Result<Keys> {
        Keys::open_at(segment, file_name, file, names, 0..file.rows())
    }

    /// The same of some of the keys only.
    ///
    /// # Errors
    /// As [`Keys::open`].
    pub fn open_at(segment: &SegmentFiles, file_name: &str, file: &LanceFile, names: Names, rows: Range<u64>) -> Result<Keys> {
        let (keys, bitmaps) = (position(segment, file_name, file, names.key)?, position(segment, file_name, file, names.bitmap)?);
        let logical_type = file.fields().get(keys).map(|field| field.logical_type.clone()).unwrap_or_default();
        let data_type = scalar_type(&logical_type)?;
        Ok(Keys {
            label: segment.label(file_name),
            layout: names.layout,
            keys: Pieces::new(file.scan(keys, &data_type, true, rows.clone())),
            bitmaps: Pieces::new(file.scan(bitmaps, &DataType::Binary, names.nullable, rows)),
            data_type,
            logical_type,
        })
    }

    /// The error of keys that are not in order.
    pub fn unsorted(&self) -> Error {
        Error::corrupt(&self.label, "its keys do not ascend")
    }

    /// Type of the keys.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The logical type of the keys.
    pub fn logical_type(&self) -> &str {
        &self.logical_type
    }

    /// The next keys and their encoded bitmaps; `None` at the end.
    ///
    /// # Errors
    /// Those of decoding.
    pub async fn next(&mut self) -> Result<Option<(ArrayRef, BinaryArray)>> {
        let Some((keys, bitmaps)) = pair(&mut self.keys, &mut self.bitmaps).await? else { return Ok(None) };
        let bitmaps = bitmaps.as_binary_opt::<i32>().filter(|bitmaps| bitmaps.null_count() == 0).cloned();
        let bitmaps = bitmaps.ok_or_else(|| Error::corrupt(&self.label, "there is a key without a bitmap"))?;
        Ok(Some((keys, bitmaps)))
    }

    /// The rows of all keys that are left.
    ///
    /// # Errors
    /// Those of decoding.
    pub async fn all_rows(mut self) -> Result<RoaringTreemap> {
        let mut all = RoaringTreemap::new();
        while let Some((_, bitmaps)) = self.next().await? {
            for row in 0..bitmaps.len() {
                all |= self.rows(&bitmaps, row)?;
            }
        }
        Ok(all)
    }

    /// Decodes a bitmap.
    ///
    /// # Errors
    /// `CORRUPT_FILE`.
    pub fn rows(&self, bitmaps: &BinaryArray, row: usize) -> Result<RoaringTreemap> {
        match self.layout {
            Layout::RowTreemap => decode_row_treemap(&self.label, bitmaps.value(row)),
            Layout::Roaring64 => decode_roaring64(&self.label, bitmaps.value(row)),
        }
    }
}
