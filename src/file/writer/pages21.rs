//! Pages of 2.1 and 2.2 without chunks: full-zip rows, constant pages of nulls (file-format §10.3).
//!
//! Legal for every scalar type and any size of value; fixed-width columns without nulls are one plain array, as in 2.0.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{ArrowNativeType, ByteArrayType, DataType};
use bytes::Bytes;

use super::{byte_width, owned, plain, vectors};
use crate::error::{Error, Result};
use crate::file::messages::encoding21::{
    Compressive, CompressiveEncoding, ConstantLayout, FixedSizeList, Flat, FullZipLayout, LayoutKind, PageLayout, Variable,
    ZipWidth,
};

/// Layer numbers of §4: nothing is null, values can be null.
const VALID: i32 = 1;
const NULLABLE: i32 = 3;

/// One page: its message and its buffers.
pub(super) fn encode(values: &ArrayRef) -> Result<(PageLayout, Vec<Bytes>)> {
    if values.data_type() == &DataType::Null || values.null_count() == values.len() {
        let constant = ConstantLayout { layers: vec![NULLABLE], ..ConstantLayout::default() };
        return Ok((PageLayout { layout: Some(LayoutKind::Constant(constant)) }, Vec::new()));
    }
    match values.data_type() {
        DataType::Utf8 => variable(values.as_string::<i32>(), 32),
        DataType::LargeUtf8 => variable(values.as_string::<i64>(), 64),
        DataType::Binary => variable(values.as_binary::<i32>(), 32),
        DataType::LargeBinary => variable(values.as_binary::<i64>(), 64),
        DataType::Boolean => {
            let bytes: Vec<u8> = values.as_boolean().values().iter().map(u8::from).collect();
            fixed(bytes.into(), 1, flat(8), values.nulls())
        }
        DataType::FixedSizeList(_, _) => {
            let (dimension, width, items) = vectors(values)?;
            let list = FixedSizeList {
                items_per_value: dimension as u64,
                values: Some(Box::new(flat(8 * width as u64))),
                has_validity: false,
            };
            let encoding = CompressiveEncoding { kind: Some(Compressive::FixedSizeList(Box::new(list))) };
            fixed(owned(items), dimension * width, encoding, values.nulls())
        }
        other => {
            let width = byte_width(other)?;
            fixed(owned(plain(values, width)?), width, flat(8 * width as u64), values.nulls())
        }
    }
}

fn flat(bits: u64) -> CompressiveEncoding {
    CompressiveEncoding { kind: Some(Compressive::Flat(Flat { bits_per_value: bits, data: None })) }
}

fn layout(rows: usize, nullable: bool, width: ZipWidth, values: CompressiveEncoding) -> Result<PageLayout> {
    let rows = u32::try_from(rows).map_err(|_| Error::internal(format!("a page cannot have {rows} rows")))?;
    let layout = FullZipLayout {
        bits_rep: 0,
        bits_def: u32::from(nullable),
        width: Some(width),
        num_items: rows,
        num_visible_items: rows,
        value_compression: Some(values),
        layers: vec![if nullable { NULLABLE } else { VALID }],
    };
    Ok(PageLayout { layout: Some(LayoutKind::FullZip(layout)) })
}

/// Plain values, each after a byte that says whether it is null when some are.
fn fixed(
    plain: Bytes,
    width: usize,
    values: CompressiveEncoding,
    nulls: Option<&NullBuffer>,
) -> Result<(PageLayout, Vec<Bytes>)> {
    let rows = plain.len() / width.max(1);
    let bits = u32::try_from(8 * width).map_err(|_| Error::internal(format!("values of {width} bytes")))?;
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    let message = layout(rows, nulls.is_some(), ZipWidth::BitsPerValue(bits), values)?;
    let Some(nulls) = nulls else { return Ok((message, vec![plain])) };
    let mut entries = Vec::with_capacity(rows * (1 + width));
    for (value, valid) in plain.chunks_exact(width.max(1)).zip(nulls.iter()) {
        entries.push(u8::from(!valid));
        entries.extend_from_slice(value);
    }
    Ok((message, vec![entries.into()]))
}

/// Length and bytes of each value, and where each row begins.
fn variable<T: ByteArrayType>(values: &arrow::array::GenericByteArray<T>, bits: u32) -> Result<(PageLayout, Vec<Bytes>)> {
    let rows = values.len();
    let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0);
    let kind = Compressive::Variable(Box::new(Variable { offsets: Some(Box::new(flat(u64::from(bits)))), values: None }));
    let encoding = CompressiveEncoding { kind: Some(kind) };
    let message = layout(rows, nulls.is_some(), ZipWidth::BitsPerOffset(bits), encoding)?;
    let offsets = values.value_offsets();
    let bytes = values.value_data();
    let mut entries: Vec<u8> = Vec::with_capacity(bytes.len() + rows * (bits as usize / 8 + 1));
    let mut begins = Vec::with_capacity(rows + 1);
    for (row, pair) in offsets.windows(2).enumerate() {
        let [from, to] = pair else { continue };
        begins.push(entries.len() as u64);
        if let Some(nulls) = nulls {
            let null = nulls.is_null(row);
            entries.push(u8::from(null));
            if null {
                continue;
            }
        }
        let value = bytes.get(from.as_usize()..to.as_usize()).ok_or_else(|| Error::internal("strings past their bytes"))?;
        entries.extend_from_slice((value.len() as u64).to_le_bytes().get(..bits as usize / 8).unwrap_or_default());
        entries.extend_from_slice(value);
    }
    begins.push(entries.len() as u64);
    let width = match entries.len() as u64 {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    };
    let table: Vec<u8> = begins.iter().flat_map(|at| at.to_le_bytes().into_iter().take(width)).collect();
    Ok((message, vec![entries.into(), table.into()]))
}
