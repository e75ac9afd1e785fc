//! Deletion vector files (table-format §11.4): an Arrow IPC file of one `uint32` column, or a roaring bitmap.
//!
//! The Arrow form is read here rather than by the Arrow reader: its body is declared ZSTD, which the Arrow crate only
//! decodes through C code, and the whole file is one buffer behind two flatbuffers.

use std::io::Read;

use bytes::Bytes;
use roaring::RoaringBitmap;
use ruzstd::decoding::StreamingDecoder;

use super::bitmap::decode_roaring32;
use super::flat::{Table, i64_of};
use super::fragment::DeletionKind;
use crate::error::{Error, ErrorCode, Result};

const MAGIC: &[u8] = b"ARROW1";
/// Footer length and magic at the end of the file.
const TAIL: usize = 10;
/// Written before a message's length by every writer since Arrow 0.15.
const CONTINUATION: &[u8] = &[0xff; 4];
/// A buffer whose uncompressed length reads -1 is stored as it is.
const STORED_RAW: i64 = -1;
/// Window a zstd frame may ask for; a vector of this form holds some thousand values.
const MAX_WINDOW: u64 = 8 << 20;
const VALUE: usize = 4;

/// Field numbers of Arrow's messages, and what the fields hold.
mod arrow {
    pub const FOOTER_SCHEMA: usize = 1;
    pub const FOOTER_BATCHES: usize = 3;
    /// Offset, length of the message and of its body.
    pub const BLOCK: usize = 24;
    pub const SCHEMA_FIELDS: usize = 1;
    pub const FIELD_TYPE_KIND: usize = 2;
    pub const FIELD_TYPE: usize = 3;
    pub const KIND_INT: u8 = 2;
    pub const INT_BITS: usize = 0;
    pub const INT_SIGNED: usize = 1;
    pub const MESSAGE_KIND: usize = 1;
    pub const MESSAGE_HEADER: usize = 2;
    pub const KIND_BATCH: u8 = 3;
    pub const BATCH_ROWS: usize = 0;
    pub const BATCH_NODES: usize = 1;
    pub const BATCH_BUFFERS: usize = 2;
    pub const BATCH_COMPRESSION: usize = 3;
    /// Two 64-bit numbers: rows and nulls, or offset and length.
    pub const PAIR: usize = 16;
    pub const COMPRESSION_CODEC: usize = 0;
    pub const CODEC_ZSTD: u8 = 1;
}

/// Decodes a deletion vector file into the physical offsets it deletes; contradictions are `CORRUPT_FILE`, a compression other
/// than ZSTD is `UNSUPPORTED_ENCODING`.
pub fn decode_deletions(kind: DeletionKind, object: &str, bytes: &Bytes) -> Result<RoaringBitmap> {
    match kind {
        DeletionKind::Bitmap => decode_roaring32(object, bytes),
        DeletionKind::Arrow => decode_arrow(object, bytes),
    }
}

fn decode_arrow(object: &str, file: &Bytes) -> Result<RoaringBitmap> {
    let corrupt = |what: String| Error::corrupt(object, what);
    let tail = file.len().checked_sub(TAIL).filter(|_| file.starts_with(MAGIC) && file.ends_with(MAGIC));
    let tail = tail.ok_or_else(|| corrupt("is no Arrow IPC file: ARROW1 is missing at an end".into()))?;
    let footer_length = i32_at(file, tail).and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
    let footer = tail.checked_sub(footer_length).and_then(|at| file.get(at..tail));
    let footer = footer.ok_or_else(|| corrupt(format!("a footer of {footer_length} bytes in a file of {}", file.len())))?;
    let footer = Table::root(footer).ok_or_else(|| corrupt("the footer does not decode".into()))?;

    let fields = footer.table(arrow::FOOTER_SCHEMA).map(|schema| schema.tables(arrow::SCHEMA_FIELDS)).unwrap_or_default();
    let int = match fields.as_slice() {
        [field] if field.byte(arrow::FIELD_TYPE_KIND) == arrow::KIND_INT => field.table(arrow::FIELD_TYPE),
        _ => None,
    };
    if !int.is_some_and(|int| int.i32(arrow::INT_BITS) == 32 && int.byte(arrow::INT_SIGNED) == 0) {
        return Err(corrupt("its schema is not one uint32 column".into()));
    }
    let blocks: Vec<_> = footer.vector(arrow::FOOTER_BATCHES, arrow::BLOCK).collect();
    let [block] = blocks.as_slice() else { return Err(corrupt(format!("has {} record batches, not one", blocks.len()))) };
    let (offset, body_length) = (i64_of(block, 0), i64_of(block, 16));
    let metadata_length = i64::from(i32_at(block, 8).unwrap_or(0));

    let part = |start: i64, length: i64| {
        let start = usize::try_from(start).ok()?;
        file.get(start..start.checked_add(usize::try_from(length).ok()?)?)
    };
    let metadata = part(offset, metadata_length);
    let metadata = metadata.ok_or_else(|| corrupt("its record batch lies outside the file".into()))?;
    let body = offset.checked_add(metadata_length).and_then(|at| part(at, body_length));
    let body = body.ok_or_else(|| corrupt("the body of its record batch lies outside the file".into()))?;
    let message = metadata.strip_prefix(CONTINUATION).unwrap_or(metadata).get(VALUE..);
    let message = message.ok_or_else(|| corrupt("the record batch message is cut off".into()))?;
    let message = Table::root(message).ok_or_else(|| corrupt("the record batch message does not decode".into()))?;
    let batch = message.table(arrow::MESSAGE_HEADER).filter(|_| message.byte(arrow::MESSAGE_KIND) == arrow::KIND_BATCH);
    let batch = batch.ok_or_else(|| corrupt("its message is no record batch".into()))?;

    let rows = batch.i64(arrow::BATCH_ROWS);
    let rows = u64::try_from(rows).map_err(|_| corrupt(format!("{rows} rows")))?;
    if batch.vector(arrow::BATCH_NODES, arrow::PAIR).any(|node| i64_of(node, 8) != 0) {
        return Err(corrupt("holds null offsets".into()));
    }
    let buffers: Vec<_> = batch.vector(arrow::BATCH_BUFFERS, arrow::PAIR).collect();
    let [_, values] = buffers.as_slice() else {
        return Err(corrupt(format!("its column has {} buffers, not a validity and a value buffer", buffers.len())));
    };
    let stored = usize::try_from(i64_of(values, 0)).ok().zip(usize::try_from(i64_of(values, 8)).ok());
    let stored = stored.and_then(|(at, length)| body.get(at..at.checked_add(length)?));
    let stored = stored.ok_or_else(|| corrupt("its value buffer lies outside the record batch".into()))?;
    let wanted = rows.checked_mul(VALUE as u64).ok_or_else(|| corrupt(format!("{rows} rows")))?;

    let Some(compression) = batch.table(arrow::BATCH_COMPRESSION) else { return collect(object, stored, rows) };
    let codec = compression.byte(arrow::COMPRESSION_CODEC);
    if codec != arrow::CODEC_ZSTD {
        let text = format!("{object}: a deletion vector with compression {codec} cannot be read by this build, only ZSTD (1)");
        return Err(Error::new(ErrorCode::UnsupportedEncoding, text).with("object", object));
    }
    if rows == 0 {
        return Ok(RoaringBitmap::new());
    }
    let (head, data) = stored.split_at_checked(8).ok_or_else(|| corrupt("its value buffer is cut off".into()))?;
    let length = head.try_into().map(i64::from_le_bytes).unwrap_or(0);
    if length == STORED_RAW {
        return collect(object, data, rows);
    }
    if u64::try_from(length).ok().is_none_or(|length| length < wanted) {
        return Err(corrupt(format!("{rows} rows in a buffer of {length} bytes")));
    }
    let decoder = StreamingDecoder::new_with_max_window_size(data, MAX_WINDOW);
    let decoder = decoder.map_err(|e| corrupt(format!("its zstd frame does not decode: {e}")))?;
    collect(object, decoder, rows)
}

/// Takes `rows` little-endian values from a stream. A value that comes twice ends it, so that a small frame which expands to
/// much of the same costs nothing.
fn collect(object: &str, mut source: impl Read, rows: u64) -> Result<RoaringBitmap> {
    let mut deleted = RoaringBitmap::new();
    for _ in 0..rows {
        let mut value = [0u8; VALUE];
        source
            .read_exact(&mut value)
            .map_err(|e| Error::corrupt(object, format!("has {} of the {rows} values it announces: {e}", deleted.len())))?;
        let value = u32::from_le_bytes(value);
        if !deleted.insert(value) {
            return Err(Error::corrupt(object, format!("lists offset {value} twice")));
        }
    }
    Ok(deleted)
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three offsets as Lance writes them: declared ZSTD, stored raw.
    const ARROW: &str = "4152524f57310000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
        0000000000000000ffffffff780000001000000000000a000c000a00090004000a0000001000000000010400080008000000040008000000\
        04000000010000001400000010001600100000000f0004000000080010000000180000001c00000000000002180000000000060008000400\
        06000000200000000000000006000000726f775f69640000ffffffffb8000000100000000c00140012001100040008000c0000001c000000\
        8000000000000000000304000c001c0010000c00080004000c0000005c0000002c0000001000000003000000000000000000000001000000\
        0300000000000000000000000000000000000000020000000000000000000000090000000000000040000000000000001400000000000000\
        000006000800070006000000000000010000000000000000000000000000000000000000000000000000000000000000ffffffffffffffff\
        ff00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
        ffffffffffffffff1a0000000800000011000000000000000000000000000000000000000000000000000000000000000000000000000000\
        0000000000000000ffffffff0000000014000000000000000c00140012000c00080004000c0000006c000000880000001000000000000400\
        08000800000004000800000004000000010000001400000010001600100000000f0004000000080010000000180000001c00000000000002\
        18000000000006000800040006000000200000000000000006000000726f775f6964000001000000c000000000000000c000000000000000\
        80000000000000000000000000000000a80000004152524f5731";
    /// 0, 2, … 198 as pyarrow writes them, in a real frame.
    const ZSTD: &str = "4152524f57310000ffffffff780000001000000000000a000c000600050008000a000000000104000c000000080008000000040008000000\
        040000000100000014000000100014000800000007000c000000100010000000000000021000000020000000040000000000000006000000\
        726f775f6964000000000600080004000600000020000000ffffffffa000000014000000000000000c0018000600050008000c000c000000\
        000304001c000000d000000000000000000000000c001e001000040008000c000c0000005000000024000000180000006400000000000000\
        000000000000060008000700060000000000000102000000000000000000000000000000000000000000000000000000cd00000000000000\
        000000000100000064000000000000000000000000000000900100000000000028b52ffd609000dd050006d92d2900d9ddaee6e6d5dcbc9a\
        9b5773f36a6e5ecdcdabb9793537afc6e66a73b5b9da5c6dae36579bab2da41f0022002300d73d77dc6fb7bd76da67973d76d85f77bd75d6\
        57573d75d44f37bd74d2471f9fb8c4230ef1873bbce10c5fb8c2138ef0831bbce0041fb8c0030ef0df7def9df75d67f9ca559e72949fdce4\
        2527f9c8451e72907fdce31de7f8c6359e718c5fdce215a7082f3ad1872ef4a003fde73eef39cf77aef39ce3fce636af39cd672ef398c3fc\
        e52e6f0900000000ffffffff00000000100000000c001400060008000c0010000c0000000000040034000000240000000400000001000000\
        8800000000000000a800000000000000d0000000000000000000000008000800000004000800000004000000010000001400000010001400\
        0800000007000c000000100010000000000000021000000020000000040000000000000006000000726f775f696400000000060008000400\
        0600000020000000a00000004152524f5731";

    fn hex(text: &str) -> Bytes {
        let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        digits.chunks(2).map(|c| u8::from_str_radix(std::str::from_utf8(c).unwrap(), 16).unwrap()).collect::<Vec<_>>().into()
    }

    #[test]
    fn raw_and_compressed_arrow_files() {
        let raw = decode_deletions(DeletionKind::Arrow, "d", &hex(ARROW)).unwrap();
        assert_eq!(raw, [26, 8, 17].into());
        let packed = decode_deletions(DeletionKind::Arrow, "d", &hex(ZSTD)).unwrap();
        assert_eq!(packed, (0..100).map(|i| i * 2).collect());
    }

    #[test]
    fn every_cut_and_flip_is_an_answer_or_an_error() {
        for bytes in [hex(ARROW), hex(ZSTD)] {
            for cut in 0..bytes.len() {
                assert!(decode_deletions(DeletionKind::Arrow, "d", &bytes.slice(..cut)).is_err(), "cut at {cut}");
            }
            for at in 0..bytes.len() * 8 {
                let mut flipped = bytes.to_vec();
                flipped[at / 8] ^= 1 << (at % 8);
                let _ = decode_deletions(DeletionKind::Arrow, "d", &flipped.into());
            }
        }
    }

    #[test]
    fn bitmaps() {
        let bytes = hex("3a300000 01000000 0000 0200 10000000 0000 0100 0200");
        assert_eq!(decode_deletions(DeletionKind::Bitmap, "d", &bytes).unwrap(), [0, 1, 2].into());
        let error = decode_deletions(DeletionKind::Arrow, "_deletions/1-2-3.arrow", &bytes).unwrap_err();
        assert_eq!(error.message(), "_deletions/1-2-3.arrow: is no Arrow IPC file: ARROW1 is missing at an end");
    }

    #[test]
    fn duplicates_are_refused() {
        let bytes = [5u32, 6, 5].map(u32::to_le_bytes).concat();
        assert!(collect("d", &bytes[..], 3).unwrap_err().message().contains("offset 5 twice"));
        assert!(collect("d", &bytes[..8], 3).unwrap_err().message().contains("2 of the 3"));
    }
}
