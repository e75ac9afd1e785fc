//! `FixedSizeBinary`: strings or binaries that all have one length, without offsets; written by old releases.

use std::ops::Range;

use async_trait::async_trait;

use super::{Node, Opening, Part, Read, numbers};
use crate::error::Result;
use crate::file::fault::{Decoded, Fault, corrupt};
use crate::file::messages::encoding20 as message;
use crate::file::page::PageSource;
use crate::file::values::{Column, Physical};

/// Strings of so many bytes.
pub(super) struct FixedSizeBinary {
    bytes: Box<dyn Node>,
    width: u64,
}

impl FixedSizeBinary {
    pub(super) fn new(message: &message::FixedSizeBinary, opening: &Opening<'_>) -> Decoded<FixedSizeBinary> {
        if !matches!(opening.physical, Physical::Variable(_)) {
            return corrupt("strings of one length in a column of fixed width");
        }
        let width = u64::from(message.byte_width);
        let Some(count) = opening.rows.checked_mul(width) else {
            return corrupt(format!("{} strings of {width} bytes", opening.rows));
        };
        Ok(FixedSizeBinary { bytes: opening.inner(message.bytes.as_deref(), count, Physical::Fixed(1))?, width })
    }
}

#[async_trait(?Send)]
impl Node for FixedSizeBinary {
    async fn prepare(&mut self, source: &PageSource) -> Result<()> {
        self.bytes.prepare(source).await
    }

    fn plan(&self, rows: &Range<u64>, wanted: &mut Vec<(usize, Range<u64>)>) {
        self.bytes.plan(&(rows.start * self.width..rows.end * self.width), wanted);
    }

    async fn finish(&self, source: &PageSource, rows: &Range<u64>, read: &mut Read) -> Result<Part> {
        let range = rows.start * self.width..rows.end * self.width;
        let bytes = numbers(&*self.bytes, source, &range, read, "the bytes of strings").await?;
        let offsets: Result<Vec<i32>, _> = (0..=rows.end - rows.start).map(|row| i32::try_from(row * self.width)).collect();
        let too_large = |_| Fault::TooLarge("more than 2 GiB of strings in one slice".to_owned());
        let offsets = source.check(offsets.map_err(too_large))?;
        Ok(Part { column: Some(Column::Variable(offsets, bytes)), nulls: None })
    }

    fn row_bytes(&self) -> u64 {
        self.width + 4
    }
}
