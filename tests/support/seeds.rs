//! Inputs for [`super::parsers`] cut out of real tables: what Lance wrote, in the form each parser takes it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use prost::Message;
use roaring::RoaringTreemap;
use whetstone::file::messages::container::{Any, DirectEncoding, Encoding, EncodingKind, Page};
use whetstone::file::messages::encoding20::{self as array, ArrayEncoding, ArrayKind};
use whetstone::format::index_metadata::{encode_index_section, parse_index_section};
use whetstone::format::manifest::ManifestFile;
use whetstone::format::treemap::{encode_roaring64, encode_row_treemap};

use super::parsers::page_types;
use super::touched;

/// Larger inputs are left out: they are slow, and say no more.
const LARGEST: usize = 48 * 1024;
/// Seeds of one parser.
const MOST: usize = 1500;
/// A page of one encoding is best no larger, bytes.
const SMALL: usize = 2048;
/// Pages of one encoding decoded as one type.
const OF_A_TYPE: usize = 12;

/// Name of a parser and an input for it.
pub type Seed = (&'static str, Vec<u8>);

/// Every seed that the files below `folders` give.
pub fn seeds(folders: &[PathBuf]) -> Vec<Seed> {
    let mut found = Vec::new();
    for folder in folders {
        for path in below(folder) {
            // Whole manifests and files may be larger than an input; their parts may still be small enough.
            if path.metadata().is_ok_and(|of| of.len() > 64 * LARGEST as u64) {
                continue;
            }
            let Ok(bytes) = std::fs::read(&path) else { continue };
            from_file(&path, &bytes, &mut found);
        }
    }
    treemaps(&mut found);
    found.retain(|(_, bytes)| bytes.len() <= LARGEST);
    found.sort();
    found.dedup();
    // Evenly over all tables, not the first of them.
    let mut kept = Vec::new();
    for name in super::parsers::TARGETS.iter().map(|(name, _)| *name) {
        let all: Vec<&Seed> = found.iter().filter(|(of, _)| *of == name).collect();
        let step = all.len().div_ceil(MOST).max(1);
        kept.extend(all.into_iter().step_by(step).cloned());
    }
    kept
}

/// The fixture tables hold few; these have every kind of container in several blocks.
fn treemaps(found: &mut Vec<Seed>) {
    let mut map: RoaringTreemap = (0..3000u64).map(|row| row * 7).collect();
    map.insert_range((1 << 32)..(1 << 32) + 70_000);
    map.extend((0..20u64).map(|row| (row << 33) + row));
    for bytes in [encode_row_treemap(&map), encode_roaring64(&map)] {
        found.push(("treemap", bytes.clone()));
        found.push(("treemap", bytes.get(..bytes.len() / 2).unwrap_or_default().to_vec()));
    }
    let words = [1u32, 0, 2, 3, 8, 0, 2, 1, 3, 3, 4, 4].into_iter().flat_map(u32::to_le_bytes);
    found.push(("row_map", b"LSPC".iter().copied().chain(words).collect()));
    // Two blocks selected as a whole, one without a bit.
    found.push(("treemap", [3u32, 0, 0, 5, 0, 9, 8, 12346, 0].iter().flat_map(|word| word.to_le_bytes()).collect()));
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

fn from_file(path: &Path, bytes: &[u8], found: &mut Vec<Seed>) {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let parent = path.parent().and_then(|p| p.file_name()).and_then(|n| n.to_str()).unwrap_or_default();
    if name.ends_with(".manifest") {
        found.push(("manifest", bytes.to_vec()));
        let Ok(file) = ManifestFile::parse("m", &Bytes::copy_from_slice(bytes)) else { return };
        let section = encode_index_section(&file.indices);
        if !section.is_empty() {
            found.push(("index_section", section.clone()));
        }
        for entry in parse_index_section("i", &section.into()).unwrap_or_default() {
            if let Some(details) = entry.details.filter(|details| details.type_url.contains("Reuse")) {
                found.push(("reuse_history", details.value.to_vec()));
            }
            if let Some(bitmap) = entry.fragment_bitmap {
                let mut bytes = Vec::new();
                bitmap.serialize_into(&mut bytes).expect("memory takes it");
                found.push(("bitmap", bytes));
            }
        }
        for fragment in &file.manifest.fragments {
            if let Some(whetstone::format::fragment::RowIdSource::Inline(ids)) = &fragment.row_ids {
                found.push(("row_ids", ids.to_vec()));
            }
        }
    } else if name.ends_with(".txn") {
        found.push(("transaction", bytes.to_vec()));
    } else if parent == "_deletions" {
        found.push((if name.ends_with(".bin") { "deletion_bitmap" } else { "deletion_arrow" }, bytes.to_vec()));
        if name.ends_with(".bin") {
            found.push(("bitmap", bytes.to_vec()));
        }
    } else if path.components().any(|part| part.as_os_str() == "_refs") && name.ends_with(".json") {
        found.push(("refs", bytes.to_vec()));
    } else if name.ends_with(".lance") {
        found.push(("container", bytes.to_vec()));
        found.push(("data_file", bytes.to_vec()));
        pages(bytes, found);
        index_files(path, name, bytes, found);
    }
}

fn index_files(path: &Path, name: &str, bytes: &[u8], found: &mut Vec<Seed>) {
    let mut one = |parser, types: &[u8]| found.extend(types.iter().map(|ty| (parser, [&[0u8, *ty][..], bytes].concat())));
    match name {
        "zonemap.lance" => one("zonemap", &[0]),
        "bloomfilter.lance" => one("bloomfilter", &[0, 1]),
        "ngram_postings.lance" => one("ngram", &[1]),
        // Keys are values, or items of lists; which of the two methods it is, the file does not say.
        "bitmap_page_lookup.lance" => {
            one("bitmap_index", &[0, 1, 3]);
            one("labellist", &[0, 1, 16, 17]);
        }
        "page_lookup.lance" => {
            let Ok(data) = std::fs::read(path.with_file_name("page_data.lance")) else { return };
            for ty in [0u8, 1, 4] {
                let size = (bytes.len() as u32).to_le_bytes();
                found.push(("btree", [&[ty % 2, ty], &size[..], bytes, &data].concat()));
            }
        }
        "metadata.lance" => {
            let mut input = vec![0u8, 1];
            for name in ["metadata.lance", "part_0_tokens.lance", "part_0_invert.lance"] {
                let Ok(file) = std::fs::read(path.with_file_name(name)) else { return };
                input.extend_from_slice(&(file.len() as u32).to_le_bytes());
                input.extend_from_slice(&file);
            }
            let Ok(docs) = std::fs::read(path.with_file_name("part_0_docs.lance")) else { return };
            input.extend_from_slice(&docs);
            found.push(("inverted", input));
        }
        _ => {}
    }
}

/// The pages of a file, each as one input.
fn pages(bytes: &[u8], found: &mut Vec<Seed>) {
    let Some((version, columns)) = touched::columns(bytes) else { return };
    for page in columns.iter().take(64).flat_map(|column| column.pages.iter().take(4)) {
        let Some(input) = page_input(version, page, bytes) else { continue };
        // The right type is among them; the wrong ones must be refused, and are inputs as well.
        found.extend((0..page_types().len()).map(|ty| ("page", with_type(&input, ty))));
    }
}

/// The input of the parser of pages, of the first type.
fn page_input(version: &str, page: &Page, bytes: &[u8]) -> Option<Vec<u8>> {
    let Some(EncodingKind::Direct(direct)) = page.encoding.as_ref().and_then(|e| e.kind.as_ref()) else { return None };
    let version = match version {
        "2.1" => 1,
        "2.2" => 2,
        "2.3" => 3,
        _ => 0,
    };
    let mut input = vec![0, version];
    input.extend_from_slice(&u32::try_from(page.length).ok()?.to_le_bytes());
    input.push(u8::try_from(page.buffer_offsets.len()).ok()?);
    input.extend_from_slice(&u16::try_from(direct.encoding.len()).ok()?.to_le_bytes());
    input.extend_from_slice(&direct.encoding);
    for (position, size) in page.buffer_offsets.iter().zip(&page.buffer_sizes) {
        let (position, size) = (*position as usize, *size as usize);
        input.extend_from_slice(&u32::try_from(size).ok()?.to_le_bytes());
        input.extend_from_slice(bytes.get(position..position.checked_add(size)?)?);
    }
    (input.len() <= LARGEST).then_some(input)
}

fn with_type(input: &[u8], ty: usize) -> Vec<u8> {
    let mut input = input.to_vec();
    input[0] = ty as u8;
    input
}

/// The smallest pages that decode, of each type, for every row of the coverage table: `row → inputs`.
pub fn pages_by_row(folders: &[PathBuf]) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut found: BTreeMap<String, BTreeMap<usize, Vec<Vec<u8>>>> = BTreeMap::new();
    let mut add = |version: &str, page: &Page, bytes: &[u8]| {
        let Some(input) = page_input(version, page, bytes).filter(|input| input.len() <= 12 * SMALL) else { return };
        let types: Vec<usize> = (0..page_types().len()).filter(|ty| super::parsers::page(&with_type(&input, *ty))).collect();
        for row in touched::rows(version, page) {
            let kept = found.entry(row).or_default();
            for ty in &types {
                kept.entry(*ty).or_default().push(with_type(&input, *ty));
            }
        }
    };
    for path in folders.iter().flat_map(|folder| below(folder)).filter(|path| path.extension().is_some_and(|e| e == "lance")) {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let Some((version, columns)) = touched::columns(&bytes) else { continue };
        columns.iter().flat_map(|column| column.pages.iter().take(2)).for_each(|page| add(version, page, &bytes));
    }
    for (page, buffers) in old_pages() {
        add("2.0", &page, &buffers);
    }
    let smallest = |mut inputs: Vec<Vec<u8>>| {
        inputs.sort_by_key(|input| (input.len() > SMALL, input.len()));
        inputs.dedup();
        // Not only pages of one row.
        let step = inputs.len().div_ceil(OF_A_TYPE).max(1);
        inputs.into_iter().step_by(step)
    };
    found.into_iter().map(|(row, types)| (row, types.into_values().flat_map(smallest).collect())).collect()
}

/// Pages of encodings that releases before Lance 14 wrote.
fn old_pages() -> Vec<(Page, Vec<u8>)> {
    let buffer = || Some(array::Buffer { buffer_index: 0, buffer_type: 0 });
    let bits: Vec<u8> = (0..384u32).map(|byte| (byte * 37) as u8).collect();
    let flat = array::Flat { bits_per_value: 8, buffer: buffer(), compression: None };
    let bytes = Some(Box::new(ArrayEncoding { kind: Some(ArrayKind::Flat(flat)) }));
    let bitpacked = |signed| array::Bitpacked { compressed_bits: 3, uncompressed_bits: 64, buffer: buffer(), signed };
    let groups = array::BitpackedForNonNeg { compressed_bits: 3, uncompressed_bits: 32, buffer: buffer() };
    let pages = [
        (ArrayKind::Bitpacked(bitpacked(false)), 1000, bits.clone()),
        (ArrayKind::Bitpacked(bitpacked(true)), 1000, bits.clone()),
        (ArrayKind::BitpackedForNonNeg(groups), 1000, bits),
        (ArrayKind::FixedSizeBinary(Box::new(array::FixedSizeBinary { bytes, byte_width: 3 })), 100, vec![b'x'; 300]),
    ];
    let page = |(kind, rows, bytes): (ArrayKind, u64, Vec<u8>)| {
        let value = ArrayEncoding { kind: Some(kind) }.encode_to_vec().into();
        let any = Any { type_url: "/lance.encodings.ArrayEncoding".to_owned(), value };
        let direct = EncodingKind::Direct(DirectEncoding { encoding: any.encode_to_vec().into() });
        let encoding = Some(Encoding { kind: Some(direct) });
        let page =
            Page { length: rows, encoding, buffer_offsets: vec![0], buffer_sizes: vec![bytes.len() as u64], ..Page::default() };
        (page, bytes)
    };
    pages.into_iter().map(page).collect()
}
