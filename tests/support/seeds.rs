//! Inputs for [`super::parsers`] cut out of real tables: what Lance wrote, in the form each parser takes it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use bytes::Bytes;
use prost::Message;
use roaring::RoaringTreemap;
use whetstone::file::messages::container::{ColumnMetadata, EncodingKind};
use whetstone::format::index_metadata::{encode_index_section, parse_index_section};
use whetstone::format::manifest::ManifestFile;
use whetstone::format::treemap::{encode_roaring64, encode_row_treemap};

use super::parsers::page_types;

/// Larger inputs are left out: they are slow, and say no more.
const LARGEST: usize = 48 * 1024;
/// Seeds of one parser.
const MOST: usize = 1500;

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
    match name {
        "zonemap.lance" => found.push(("zonemap", [&[0u8, 0][..], bytes].concat())),
        "page_lookup.lance" => {
            let Ok(data) = std::fs::read(path.with_file_name("page_data.lance")) else { return };
            for ty in [0u8, 1, 4] {
                let size = (bytes.len() as u32).to_le_bytes();
                found.push(("btree", [&[ty % 2, ty], &size[..], bytes, &data].concat()));
            }
        }
        _ => {}
    }
}

/// The pages of a file, each as one input.
fn pages(bytes: &[u8], found: &mut Vec<Seed>) -> Option<()> {
    let footer = bytes.get(bytes.len().checked_sub(40)?..)?;
    let number = |at: usize| Some(u64::from_le_bytes(footer.get(at..at + 8)?.try_into().ok()?));
    let table = usize::try_from(number(8)?).ok()?;
    let columns = u32::from_le_bytes(footer.get(28..32)?.try_into().ok()?) as usize;
    let part = |at: usize| Some(u16::from_le_bytes(footer.get(at..at + 2)?.try_into().ok()?));
    let version = match (part(32)?, part(34)?) {
        (2, minor @ 1..=3) => minor as u8,
        _ => 0,
    };
    for column in 0..columns.min(64) {
        let at = table + 16 * column;
        let entry = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?) as usize);
        let (position, size) = (entry(at)?, entry(at + 8)?);
        let Ok(metadata) = ColumnMetadata::decode(bytes.get(position..position.checked_add(size)?)?) else { continue };
        for page in metadata.pages.iter().take(4) {
            let Some(EncodingKind::Direct(direct)) = page.encoding.as_ref().and_then(|e| e.kind.clone()) else { continue };
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
            if input.len() > LARGEST {
                continue;
            }
            // The right type is among them; the wrong ones must be refused, and are inputs as well.
            for ty in 0..u8::try_from(page_types().len()).ok()? {
                input[0] = ty;
                found.push(("page", input.clone()));
            }
        }
    }
    Some(())
}
