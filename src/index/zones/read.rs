//! The columns and buffers that every file of zones has.

use std::ops::Range;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, UInt32Type, UInt64Type};
use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::file::LanceFile;
use crate::format::treemap::decode_row_treemap;
use crate::index::SegmentFiles;
use crate::index::columns::{Rows, position, whole};
use crate::index::zones::Places;

/// Metadata key: number of the global buffer with the null rows.
pub const NULL_BITMAP: &str = "null_bitmap";

/// An open file of zones.
pub struct ZoneFile<'a> {
    segment: &'a SegmentFiles,
    name: &'static str,
    /// The file.
    pub file: LanceFile,
}

impl<'a> ZoneFile<'a> {
    /// Opens the file of that name.
    ///
    /// # Errors
    /// Those of [`SegmentFiles::open`].
    pub async fn open(segment: &'a SegmentFiles, name: &'static str) -> Result<ZoneFile<'a>> {
        Ok(ZoneFile { file: segment.open(name).await?, segment, name })
    }

    /// `CORRUPT_FILE` naming the file.
    pub fn corrupt(&self, what: impl std::fmt::Display) -> Error {
        Error::corrupt(&self.segment.label(self.name), what)
    }

    /// A whole column.
    ///
    /// # Errors
    /// `CORRUPT_FILE` when it is not there; those of decoding.
    pub async fn column(&self, name: &str, data_type: &DataType, nullable: bool) -> Result<ArrayRef> {
        let at = position(self.segment, self.name, &self.file, name)?;
        whole(&self.file, at, data_type, nullable).await
    }

    /// A column of counts.
    ///
    /// # Errors
    /// As [`ZoneFile::column`].
    pub async fn u32s(&self, name: &str) -> Result<Vec<u32>> {
        let array = self.column(name, &DataType::UInt32, false).await?;
        let values = array.as_primitive_opt::<UInt32Type>().map(|array| array.values().to_vec());
        values.ok_or_else(|| self.corrupt(format!("column `{name}` is not made of counts")))
    }

    async fn u64s(&self, name: &str) -> Result<Vec<u64>> {
        let array = self.column(name, &DataType::UInt64, false).await?;
        let values = array.as_primitive_opt::<UInt64Type>().map(|array| array.values().to_vec());
        values.ok_or_else(|| self.corrupt(format!("column `{name}` is not made of positions")))
    }

    /// Where the zones lie.
    ///
    /// # Errors
    /// As [`ZoneFile::column`].
    pub async fn places(&self) -> Result<Places> {
        Ok(Places {
            fragments: self.u64s("fragment_id").await?,
            starts: self.u64s("zone_start").await?,
            lengths: self.u64s("zone_length").await?,
        })
    }

    /// Several columns in step, over some of the zones.
    ///
    /// # Errors
    /// `CORRUPT_FILE` when one of them is not there.
    pub fn rows(&self, columns: &[(&str, DataType, bool)], zones: &Range<u64>) -> Result<Rows> {
        let mut found = Vec::with_capacity(columns.len());
        for (name, data_type, nullable) in columns {
            found.push((position(self.segment, self.name, &self.file, name)?, data_type.clone(), *nullable));
        }
        Ok(Rows::new(&self.file, &found, zones))
    }

    /// The null rows; `None` for a file written before they were stored.
    ///
    /// # Errors
    /// `CORRUPT_FILE` when the buffer named in the metadata is not one of them.
    pub async fn null_rows(&self) -> Result<Option<RoaringTreemap>> {
        let Some(text) = self.file.metadata().get(NULL_BITMAP) else { return Ok(None) };
        let number: u32 = text
            .parse()
            .map_err(|_| self.corrupt(format!("the metadata says null_bitmap {text}, which is not a buffer number")))?;
        let bytes = self.file.global_buffer(number).await?;
        decode_row_treemap(&self.segment.label(self.name), &bytes).map(Some)
    }
}

/// Rows of a set with addresses in a range.
pub fn count_in(rows: &RoaringTreemap, addresses: &std::ops::Range<u64>) -> u64 {
    let below = |end: u64| if end == 0 { 0 } else { rows.rank(end - 1) };
    below(addresses.end).saturating_sub(below(addresses.start))
}
