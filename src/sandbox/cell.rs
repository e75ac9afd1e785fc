//! One value of a column, so that it can be compared with another.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayData, ArrayRef};
use arrow::datatypes::{ArrowNativeType, DataType};

/// A value that is not null.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell<'a> {
    /// A number that is stored whole: dates and times too.
    Whole(i128),
    /// Any other number.
    Real(f64),
    /// Text or bytes.
    Bytes(&'a [u8]),
}

impl Cell<'_> {
    /// The order that Lance compares by: of floating-point numbers the total one.
    pub(super) fn compare(&self, other: &Cell<'_>) -> Option<Ordering> {
        Some(match (self, other) {
            (Cell::Whole(a), Cell::Whole(b)) => a.cmp(b),
            (Cell::Real(a), Cell::Real(b)) => a.total_cmp(b),
            (Cell::Bytes(a), Cell::Bytes(b)) => a.cmp(b),
            _ => return None,
        })
    }
}

/// The cell that plain bytes of a type are; `None` for types that are not compared here.
pub(super) fn cell<'a>(bytes: &'a [u8], data_type: &DataType) -> Option<Cell<'a>> {
    Some(match data_type {
        DataType::Float32 => Cell::Real(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
        DataType::Float64 => Cell::Real(f64::from_le_bytes(bytes.try_into().ok()?)),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => Cell::Bytes(bytes),
        other => Cell::Whole(whole(bytes, other)?),
    })
}

/// Plain bytes of a type whose values are whole numbers.
pub(super) fn whole(bytes: &[u8], data_type: &DataType) -> Option<i128> {
    if bytes.len() > 8 || bytes.is_empty() || data_type.is_floating() {
        return None;
    }
    let fill = if data_type.is_unsigned_integer() || *data_type == DataType::Boolean || bytes.last().is_some_and(|b| *b < 128) {
        0
    } else {
        0xff
    };
    let mut wide = [fill; 16];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i128::from_le_bytes(wide))
}

/// The values of an array, one by one.
pub(super) struct Cells {
    data: ArrayData,
    data_type: DataType,
}

impl Cells {
    pub(super) fn new(array: &ArrayRef) -> Cells {
        Cells { data: array.to_data(), data_type: array.data_type().clone() }
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.data_type == DataType::Null || self.data.is_null(row)
    }

    /// `None` for a null.
    pub(super) fn get(&self, row: usize) -> Option<Cell<'_>> {
        if self.is_null(row) {
            return None;
        }
        let at = self.data.offset().checked_add(row)?;
        let buffers = self.data.buffers();
        match &self.data_type {
            DataType::Boolean => {
                let byte = buffers.first()?.as_slice().get(at / 8)?;
                Some(Cell::Whole(i128::from(byte >> (at % 8) & 1)))
            }
            DataType::Utf8 | DataType::Binary => {
                Some(Cell::Bytes(slice(buffers.get(1)?, between::<i32>(buffers.first()?, at)?)?))
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                Some(Cell::Bytes(slice(buffers.get(1)?, between::<i64>(buffers.first()?, at)?)?))
            }
            other => {
                let width = other.primitive_width()?;
                let start = at.checked_mul(width)?;
                cell(buffers.first()?.as_slice().get(start..start.checked_add(width)?)?, other)
            }
        }
    }
}

fn between<T: ArrowNativeType>(offsets: &arrow::buffer::Buffer, at: usize) -> Option<(usize, usize)> {
    let offsets = offsets.typed_data::<T>();
    Some((offsets.get(at)?.to_usize()?, offsets.get(at + 1)?.to_usize()?))
}

fn slice(bytes: &arrow::buffer::Buffer, (from, to): (usize, usize)) -> Option<&[u8]> {
    bytes.as_slice().get(from..to)
}
