//! Pages that say of themselves what is not so: each is refused as corrupt, naming file, column and page, and what disagrees.

use arrow::datatypes::DataType;
use prost::Message;

use super::super::messages::container::Page;
use super::super::messages::encoding20::{Binary, Dictionary as Dictionary20, Flat as Flat20};
use super::super::messages::encoding21::{
    BufferCompression, Compressive, CompressiveEncoding, ConstantLayout, Flat, Fsst, FullZipLayout, General, InlineBitpacking,
    LayoutKind, MiniBlockLayout, PageLayout, Rle, Variable, ZipWidth,
};
use super::*;

const ARRAY: &str = "/lance.encodings.ArrayEncoding";

fn of(kind: Compressive) -> Option<CompressiveEncoding> {
    Some(CompressiveEncoding { kind: Some(kind) })
}

fn flat(bits_per_value: u64) -> Option<CompressiveEncoding> {
    of(Compressive::Flat(Flat { bits_per_value, data: None }))
}

fn variable() -> Option<CompressiveEncoding> {
    of(Compressive::Variable(Box::new(Variable { offsets: flat(32).map(Box::new), values: None })))
}

/// A mini-block page of three values in one chunk of one buffer.
fn chunked(values: Option<CompressiveEncoding>, chunk: &[u8], more: &[&str], change: impl Fn(&mut MiniBlockLayout)) -> Bytes {
    let mut layout =
        MiniBlockLayout { value_compression: values, layers: vec![1], num_buffers: 1, num_items: 3, ..Default::default() };
    change(&mut layout);
    // No levels, the size of the buffer, padding, the buffer, padding.
    let mut bytes = vec![0, 0];
    bytes.extend((chunk.len() as u16).to_le_bytes());
    bytes.resize(8, 0);
    bytes.extend_from_slice(chunk);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let word = ((bytes.len() / 8 - 1) << 4) as u16;
    let words = hex_of(&word.to_le_bytes());
    let bytes = hex_of(&bytes);
    let buffers: Vec<&str> = [words.as_str(), bytes.as_str()].into_iter().chain(more.iter().copied()).collect();
    layout_file(LayoutKind::MiniBlock(layout), &buffers)
}

fn layout_file(layout: LayoutKind, buffers: &[&str]) -> Bytes {
    let message = PageLayout { layout: Some(layout) }.encode_to_vec();
    file((2, 2), 3, LAYOUT, &hex_of(&message), buffers)
}

fn array_file(kind: ArrayKind, buffers: &[&str]) -> Bytes {
    let message = ArrayEncoding { kind: Some(kind) }.encode_to_vec();
    file((0, 3), 3, ARRAY, &hex_of(&message), buffers)
}

fn flat20(bits_per_value: u64, buffer_index: u32) -> Option<Box<ArrayEncoding>> {
    let buffer = Some(array20::Buffer { buffer_index, buffer_type: 0 });
    Some(Box::new(ArrayEncoding { kind: Some(ArrayKind::Flat(Flat20 { bits_per_value, buffer, compression: None })) }))
}

fn longs_of(values: &[i64]) -> String {
    values.iter().map(|value| hex_of(&value.to_le_bytes())).collect()
}

/// A table of the symbols `a` and `bc`.
fn symbols(change: impl Fn(&mut Vec<u8>)) -> Option<CompressiveEncoding> {
    let mut table = (2u64 | 1 << 24 | 0x4653_5354 << 32).to_le_bytes().to_vec();
    table.extend(b"a\0\0\0\0\0\0\0bc\0\0\0\0\0\0\x01\x02");
    table.resize(2312, 0);
    change(&mut table);
    of(Compressive::Fsst(Box::new(Fsst { symbol_table: table.into(), values: variable().map(Box::new) })))
}

/// Offsets of 32 bits and what they point into.
fn strings(offsets: [u32; 4], bytes: &[u8]) -> Vec<u8> {
    offsets.iter().flat_map(|offset| offset.to_le_bytes()).chain(bytes.iter().copied()).collect()
}

fn same(_: &mut MiniBlockLayout) {}

/// A file whose first page was changed.
fn paged(change: impl Fn(&mut Page)) -> Bytes {
    let good = file((2, 2), 3, LAYOUT, MINI_LONGS, &["30000000", MINI_LONGS_CHUNK]);
    let number = |at: usize| u64::from_le_bytes(good[at..at + 8].try_into().unwrap()) as usize;
    // The column table follows the column's metadata, which follows the schema.
    let table = number(good.len() - 32);
    let (start, size) = (number(table), number(table + 8));
    let mut column = ColumnMetadata::decode(&good[start..start + size]).unwrap();
    change(&mut column.pages[0]);
    let column = column.encode_to_vec();
    let mut out = good[..start].to_vec();
    out.extend_from_slice(&column);
    let shift = |number: u64| (number + column.len() as u64 - size as u64).to_le_bytes();
    out.extend_from_slice(&(start as u64).to_le_bytes());
    out.extend_from_slice(&(column.len() as u64).to_le_bytes());
    // Global buffers, then the footer: metadata start, two tables.
    let (globals, footer) = (&good[table + 16..good.len() - 40], &good[good.len() - 40..]);
    out.extend_from_slice(globals);
    out.extend_from_slice(&footer[..8]);
    out.extend_from_slice(&shift(table as u64));
    out.extend_from_slice(&shift(number(good.len() - 24) as u64));
    out.extend_from_slice(&footer[24..]);
    out.into()
}

fn refused(what: &str, bytes: Bytes, ty: &DataType, words: &str) {
    let error = match read(bytes, ty) {
        Ok(values) => panic!("{what}: {} values were read", values.len()),
        Err(error) => error,
    };
    assert_eq!(error.code(), ErrorCode::CorruptFile, "{what}: {error}");
    let message = error.message();
    assert!(message.starts_with("f.lance") && message.contains("column 0, page 0"), "{what}: {message}");
    assert!(message.contains(words), "{what}: {message}");
    assert_eq!(error.detail().get("object").and_then(|v| v.as_str()), Some("f.lance"), "{what}");
    assert_eq!(error.detail().get("column").and_then(|v| v.as_u64()), Some(0), "{what}");
    assert_eq!(error.detail().get("page").and_then(|v| v.as_u64()), Some(0), "{what}");
}

#[test]
fn page_sizes() {
    let long = DataType::Int64;
    assert_eq!(longs(&read(paged(|_| ()), &long).unwrap()), [1, 2, 3]);
    refused("a buffer past the end", paged(|page| page.buffer_offsets[1] = 1 << 40), &long, "in a file of");
    refused("a buffer too long", paged(|page| page.buffer_sizes[1] = u64::MAX), &long, "in a file of");
    refused("a buffer cut", paged(|page| page.buffer_sizes[1] = 24), &long, "chunks of 32 bytes");
    refused("a size missing", paged(|page| page.buffer_sizes.truncate(1)), &long, "2 buffer positions and 1 sizes");
    refused("other rows", paged(|page| page.length = 4), &long, "3 values for 4 rows");
    refused("no buffers", paged(|page| (page.buffer_offsets.clear(), page.buffer_sizes.clear()).0), &long, "buffer 0");
    refused("no encoding", paged(|page| page.encoding = None), &long, "no encoding");
}

#[test]
fn chunk_words_and_headers() {
    let (plain, long) = (hex(LONGS), DataType::Int64);
    assert_eq!(longs(&read(chunked(flat(64), &plain, &[], same), &long).unwrap()), [1, 2, 3]);
    refused("values missing", chunked(flat(64), &plain[..16], &[], same), &long, "3 of 8 bytes were announced");
    refused("too many buffers", chunked(flat(64), &plain, &[], |page| page.num_buffers = 2), &long, "2 value buffers per chunk");
    refused("more values", chunked(flat(64), &plain, &[], |page| page.num_items = 4), &long, "4 values for 3 rows");
    refused("wide words", chunked(flat(64), &plain, &[], |page| page.has_large_chunk = true), &long, "chunk words");
    refused(
        "two words",
        layout_file(
            LayoutKind::MiniBlock(MiniBlockLayout {
                value_compression: flat(64),
                layers: vec![1],
                num_buffers: 1,
                num_items: 3,
                ..Default::default()
            }),
            &["00003000", MINI_LONGS_CHUNK],
        ),
        &long,
        "does not say how many values",
    );
    let packed = of(Compressive::InlineBitpacking(InlineBitpacking { uncompressed_bits: 64, values: None }));
    refused("a packed width", chunked(packed, &hex("4100000000000000"), &[], same), &long, "packed group");
}

#[test]
fn dictionary_indices() {
    let items = longs_of(&[7, 8]);
    let with = |indices: &[u8], items: &str, count: u64| {
        chunked(flat(8), indices, &[items], |page| {
            page.dictionary = flat(64);
            page.num_dictionary_items = count;
        })
    };
    assert_eq!(longs(&read(with(&[1, 0, 1], &items, 2), &DataType::Int64).unwrap()), [8, 7, 8]);
    refused("an index", with(&[1, 0, 2], &items, 2), &DataType::Int64, "dictionary index 2 of 2 items");
    refused("fewer items", with(&[1, 0, 1], &items, 3), &DataType::Int64, "3 of 8 bytes were announced");
    let texts = |index: u8| {
        let indices = flat20(8, 0);
        let binary = Binary { indices: flat20(64, 1), bytes: flat20(8, 2), null_adjustment: 4 };
        let items = Some(Box::new(ArrayEncoding { kind: Some(ArrayKind::Binary(Box::new(binary))) }));
        let dictionary = Dictionary20 { indices, items, num_dictionary_items: 2 };
        array_file(ArrayKind::Dictionary(Box::new(dictionary)), &[&format!("0100{index:02X}"), &longs_of(&[1, 3]), "78797A"])
    };
    assert!(read(texts(2), &DataType::Utf8).is_ok());
    refused("an index of 2.0", texts(3), &DataType::Utf8, "dictionary index 3 of 2 items");
}

#[test]
fn offsets_arrays() {
    let utf8 = DataType::Utf8;
    let page = |offsets, bytes: &[u8]| chunked(variable(), &strings(offsets, bytes), &[], same);
    assert_eq!(texts(&read(page([16, 17, 17, 19], b"abc"), &utf8).unwrap()), [Some("a"), Some(""), Some("bc")]);
    refused("descending", page([16, 18, 17, 19], b"abc"), &utf8, "do not ascend");
    refused("past the end", page([16, 17, 17, 20], b"abc"), &utf8, "16 to 20 in 19 bytes");
    refused("inside a character", page([16, 17, 18, 19], "aé".as_bytes()), &utf8, "no Utf8");
    refused("no text", page([16, 17, 18, 19], b"a\xffc"), &utf8, "no Utf8");
    refused("no room for offsets", chunked(variable(), &[0; 12], &[], same), &utf8, "the offsets of strings");
    let ends = |ends: &[i64]| {
        let binary = Binary { indices: flat20(64, 0), bytes: flat20(8, 1), null_adjustment: 0 };
        array_file(ArrayKind::Binary(Box::new(binary)), &[&longs_of(ends), "616263"])
    };
    assert!(read(ends(&[1, 2, 3]), &utf8).is_ok());
    refused("descending ends of 2.0", ends(&[1, 3, 2]), &utf8, "do not ascend");
    refused("ends of 2.0 past the bytes", ends(&[1, 2, 4]), &utf8, "buffer 1");
    let zip = |offsets: &str| {
        let layout = FullZipLayout {
            width: Some(ZipWidth::BitsPerOffset(32)),
            num_items: 3,
            num_visible_items: 3,
            value_compression: variable(),
            layers: vec![1],
            ..Default::default()
        };
        layout_file(LayoutKind::FullZip(layout), &["0100000061 0100000062 0100000063", offsets])
    };
    assert!(read(zip("00050A0F"), &utf8).is_ok());
    refused("row offsets that descend", zip("000A050F"), &utf8, "row offsets");
    refused("row offsets past the end", zip("00050A10"), &utf8, "buffer 0");
    refused("a length other than its entry's", zip("00060A0F"), &utf8, "a value of");
}

#[test]
fn symbol_tables() {
    let utf8 = DataType::Utf8;
    let page = |table, codes: &[u8]| chunked(table, &strings([16, 17, 18, 18 + codes.len() as u32 - 2], codes), &[], same);
    let good = |_: &mut Vec<u8>| ();
    assert_eq!(texts(&read(page(symbols(good), b"\x00\x01\xffz"), &utf8).unwrap()), [Some("a"), Some("bc"), Some("z")]);
    refused("a short table", page(symbols(|table| table.truncate(100)), b"\0\x01\0"), &utf8, "table of 100 bytes");
    refused("no mark", page(symbols(|table| table[5] = 0), b"\0\x01\0"), &utf8, "without its mark");
    refused("a long symbol", page(symbols(|table| table[24] = 9), b"\0\x01\0"), &utf8, "symbol of 9 bytes");
    refused("an empty symbol", page(symbols(|table| table[24] = 0), b"\0\x01\0"), &utf8, "symbol of 0 bytes");
    refused("a code without symbol", page(symbols(good), b"\0\x02\0"), &utf8, "FSST code 2");
    refused("half an escape", page(symbols(good), b"\0\x01\xff"), &utf8, "inside an escape");
}

#[test]
fn runs_and_units() {
    let long = DataType::Int64;
    let rle = Compressive::Rle(Box::new(Rle { values: flat(64).map(Box::new), run_lengths: flat(8).map(Box::new) }));
    // Two buffers: their sizes, padding, values, lengths.
    let runs = |lengths: [u8; 2]| {
        let chunk = format!("0000 1000 0200 0000 {} {:02X}{:02X} 000000000000", longs_of(&[5, 6]), lengths[0], lengths[1]);
        let layout = MiniBlockLayout {
            value_compression: of(rle.clone()),
            layers: vec![1],
            num_buffers: 2,
            num_items: 3,
            ..Default::default()
        };
        layout_file(LayoutKind::MiniBlock(layout), &["3000", &chunk])
    };
    assert_eq!(longs(&read(runs([1, 2]), &long).unwrap()), [5, 6, 6]);
    refused("run lengths", runs([1, 1]), &long, "2 values in all, 3 were announced");
    let unit = |claim: u32| {
        let general = General { compression: Some(BufferCompression { scheme: 1 }), values: flat(64).map(Box::new) };
        let mut unit = lz4_flex::block::compress_prepend_size(&hex(LONGS));
        unit[..4].copy_from_slice(&claim.to_le_bytes());
        chunked(of(Compressive::General(Box::new(general))), &unit, &[], same)
    };
    assert_eq!(longs(&read(unit(24), &long).unwrap()), [1, 2, 3]);
    refused("the size of a unit", unit(25), &long, "LZ4 unit");
    refused("the size of a unit", unit(16), &long, "LZ4 unit");
}

#[test]
fn levels_and_constants() {
    let long = DataType::Int64;
    let constant = |levels: &str, value: &[u8], layers: Vec<i32>| {
        let layout = ConstantLayout { layers, inline_value: Some(Bytes::copy_from_slice(value)), ..Default::default() };
        layout_file(LayoutKind::Constant(layout), &["", levels])
    };
    let value = 9i64.to_le_bytes();
    assert_eq!(read(constant("000001000000", &value, vec![3]), &long).unwrap().null_count(), 1);
    refused("a level", constant("000002000000", &value, vec![3]), &long, "level");
    refused("levels missing", constant("00000100", &value, vec![3]), &long, "definition levels of 3 rows");
    refused("a value of other width", constant("000001000000", &value[..7], vec![3]), &long, "constant of 7 bytes");
}
