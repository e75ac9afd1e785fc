//! `PackedStruct`: rows of fixed width, of which one member is read.

use std::ops::Range;

use async_trait::async_trait;

use super::{Node, Opening, Part, Read, next};
use crate::error::Result;
use crate::file::encodings::PackedRows;
use crate::file::fault::{Decoded, corrupt, unsupported};
use crate::file::messages::encoding20::{self as message, ArrayEncoding, ArrayKind, Nullability};
use crate::file::page::PageSource;
use crate::file::values::{Physical, Values};

/// Where the member lies.
pub(super) struct PackedStruct {
    buffer: usize,
    rows: PackedRows,
    value: Physical,
}

/// Bits of a member.
fn bits(encoding: &ArrayEncoding) -> Decoded<u64> {
    match &encoding.kind {
        Some(ArrayKind::Flat(flat)) => Ok(flat.bits_per_value),
        Some(ArrayKind::FixedSizeList(list)) => {
            let items = list.items.as_deref().map_or_else(|| corrupt("FixedSizeList without items"), bits)?;
            items.checked_mul(u64::from(list.dimension)).map_or_else(|| corrupt("a packed member of absurd width"), Ok)
        }
        Some(ArrayKind::Nullable(nullable)) => match &nullable.nullability {
            Some(Nullability::NoNulls(inner)) => inner.values.as_deref().map_or_else(|| corrupt("Nullable without values"), bits),
            _ => unsupported("PackedStruct with nullable members"),
        },
        _ => unsupported("PackedStruct with such a member"),
    }
}

impl PackedStruct {
    pub(super) fn new(message: &message::PackedStruct, opening: &Opening<'_>) -> Decoded<PackedStruct> {
        let Physical::Member(index, value) = &opening.physical else {
            return corrupt("PackedStruct in a column that is no struct");
        };
        let widths: Decoded<Vec<u64>> = message.inner.iter().map(bits).collect();
        let rows = PackedRows::at(&widths?, None, *index, value)?;
        let size = opening.rows.checked_mul(rows.row_bytes() as u64);
        let buffer = opening.buffer(message.buffer.as_ref(), size, "PackedStruct")?;
        Ok(PackedStruct { buffer, rows, value: (**value).clone() })
    }
}

#[async_trait(?Send)]
impl Node for PackedStruct {
    fn plan(&self, rows: &Range<u64>, wanted: &mut Vec<(usize, Range<u64>)>) {
        let row = self.rows.row_bytes() as u64;
        wanted.push((self.buffer, rows.start * row..rows.end * row));
    }

    async fn finish(&self, source: &PageSource, rows: &Range<u64>, read: &mut Read) -> Result<Part> {
        let bytes = next(source, read)?;
        let count = (rows.end - rows.start) as usize;
        let mut values = source.check(Values::new(&self.value, count))?;
        source.check(self.rows.rows(&bytes, count, &mut values))?;
        Ok(Part { column: Some(values.build()), nulls: None })
    }

    fn row_bytes(&self) -> u64 {
        self.rows.row_bytes() as u64
    }
}
