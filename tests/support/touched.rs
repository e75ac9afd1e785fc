//! Which rows of the coverage table (`docs/encodings.md`) a page of a real file makes us read.
#![allow(dead_code)]

use std::collections::BTreeSet;

use prost::Message;
use whetstone::file::messages::container::{Any, ColumnMetadata, EncodingKind, Page};
use whetstone::file::messages::encoding20::{self as array, ArrayEncoding, ArrayKind, Nullability};
use whetstone::file::messages::encoding21::{Compressive, CompressiveEncoding, LayoutKind, MiniBlockLayout, PageLayout};
use whetstone::file::messages::encoding23::{PlanarLayout, SparseKind, StructureKind, Validity, ValuesKind};

/// Rows of the table, as `2.0 Flat`, `2.2 mini-block`, `chunks Rle`, `single values General`.
pub type Rows = BTreeSet<String>;

/// Version by the footer, and the metadata of every column. `None` for what is no such file.
pub fn columns(bytes: &[u8]) -> Option<(&'static str, Vec<ColumnMetadata>)> {
    let footer = bytes.get(bytes.len().checked_sub(40)?..)?;
    let table = usize::try_from(u64::from_le_bytes(footer.get(8..16)?.try_into().ok()?)).ok()?;
    let count = u32::from_le_bytes(footer.get(28..32)?.try_into().ok()?) as usize;
    let part = |at: usize| Some(u16::from_le_bytes(footer.get(at..at + 2)?.try_into().ok()?));
    let version = match (part(32)?, part(34)?) {
        (0, 3) => "2.0",
        (2, 1) => "2.1",
        (2, 2) => "2.2",
        (2, 3) => "2.3",
        _ => return None,
    };
    let entry = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?) as usize);
    let column = |column: usize| {
        let (position, size) = (entry(table + 16 * column)?, entry(table + 16 * column + 8)?);
        ColumnMetadata::decode(bytes.get(position..position.checked_add(size)?)?).ok()
    };
    (0..count).map(column).collect::<Option<Vec<_>>>().map(|columns| (version, columns))
}

/// The rows that reading a page takes.
pub fn rows(version: &str, page: &Page) -> Rows {
    let mut rows = Rows::new();
    let Some(EncodingKind::Direct(direct)) = page.encoding.as_ref().and_then(|encoding| encoding.kind.as_ref()) else {
        return rows;
    };
    let Ok(any) = Any::decode(direct.encoding.as_ref()) else { return rows };
    let mut layout = |name: &str| rows.insert(format!("{version} {name}"));
    if any.type_url.ends_with("ArrayEncoding") {
        if let Ok(encoding) = ArrayEncoding::decode(any.value.as_ref()) {
            tree(&encoding, &mut rows);
        }
    } else if any.type_url.ends_with("PageLayout") {
        match PageLayout::decode(any.value.as_ref()).ok().and_then(|page| page.layout) {
            Some(LayoutKind::MiniBlock(mini)) => {
                layout("mini-block");
                mini_block(&mini, &mut rows);
            }
            Some(LayoutKind::FullZip(zip)) => {
                layout("full-zip");
                form("single values", zip.value_compression.as_ref(), &mut rows);
            }
            Some(LayoutKind::Constant(constant)) => {
                layout("constant");
                form("blocks", constant.rep_compression.as_ref(), &mut rows);
                form("blocks", constant.def_compression.as_ref(), &mut rows);
            }
            Some(LayoutKind::Blob(_)) | None => {}
        }
    } else if let Ok(planar) = PlanarLayout::decode(any.value.as_ref()) {
        let sparse =
            matches!(planar.structure.as_ref().and_then(|structure| structure.kind.as_ref()), Some(StructureKind::Sparse(_)));
        let values = planar.values.as_ref().and_then(|values| values.kind.as_ref());
        match values {
            _ if sparse => layout("sparse"),
            Some(ValuesKind::Chunked(_)) => layout("mini-block"),
            Some(ValuesKind::Zipped(_)) => layout("full-zip"),
            _ => layout("constant"),
        };
        match values {
            Some(ValuesKind::Chunked(chunked)) => {
                form("chunks", chunked.compression.as_ref(), &mut rows);
                form("blocks", chunked.dictionary.as_ref(), &mut rows);
                let levels = chunked.levels.as_ref();
                form("blocks", levels.and_then(|levels| levels.rep.as_ref()), &mut rows);
                form("blocks", levels.and_then(|levels| levels.def.as_ref()), &mut rows);
            }
            Some(ValuesKind::Zipped(zipped)) => form("single values", zipped.compression.as_ref(), &mut rows),
            _ => {}
        }
        if let Some(StructureKind::Sparse(sparse)) = planar.structure.and_then(|structure| structure.kind) {
            let positions = |validity: &Validity, rows: &mut Rows| form("sequences", validity.positions.as_ref(), rows);
            for layer in &sparse.layers {
                match &layer.kind {
                    Some(SparseKind::Validity(validity)) => positions(validity, &mut rows),
                    Some(SparseKind::List(list)) => {
                        form("sequences", list.non_empty_positions.as_ref(), &mut rows);
                        form("sequences", list.counts.as_ref(), &mut rows);
                        if let Some(validity) = &list.validity {
                            positions(validity, &mut rows);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    rows
}

fn mini_block(mini: &MiniBlockLayout, rows: &mut Rows) {
    form("chunks", mini.value_compression.as_ref(), rows);
    for block in [&mini.rep_compression, &mini.def_compression, &mini.dictionary] {
        form("blocks", block.as_ref(), rows);
    }
}

/// A compression in one of its forms, and those inside it that are read by readers of their own.
fn form(form_name: &str, encoding: Option<&CompressiveEncoding>, rows: &mut Rows) {
    let Some(kind) = encoding.and_then(|encoding| encoding.kind.as_ref()) else { return };
    let mut inner = |encoding: Option<&CompressiveEncoding>| form(form_name, encoding, rows);
    let name = match kind {
        Compressive::Flat(_) => "Flat",
        Compressive::Variable(variable) => {
            let offsets = variable.offsets.as_deref();
            if !matches!(offsets.and_then(|offsets| offsets.kind.as_ref()), Some(Compressive::Flat(_))) {
                form("sequences", offsets, rows);
            }
            "Variable"
        }
        Compressive::Constant(_) => "Constant",
        Compressive::OutOfLineBitpacking(_) => "OutOfLineBitpacking",
        Compressive::InlineBitpacking(_) => "InlineBitpacking",
        Compressive::Fsst(_) => "Fsst",
        Compressive::Dictionary(dictionary) => {
            inner(dictionary.indices.as_deref());
            inner(dictionary.items.as_deref());
            "Dictionary"
        }
        Compressive::Rle(_) => "Rle",
        Compressive::ByteStreamSplit(_) => "ByteStreamSplit",
        Compressive::General(general) => {
            inner(general.values.as_deref());
            "General"
        }
        Compressive::FixedSizeList(list) => {
            inner(list.values.as_deref());
            "FixedSizeList"
        }
        Compressive::PackedStruct(_) => "PackedStruct",
        Compressive::VariablePackedStruct(packed) => {
            packed.fields.iter().for_each(|field| inner(field.value.as_ref()));
            "VariablePackedStruct"
        }
        Compressive::Range(_) => "Range",
        Compressive::Delta(delta) => {
            inner(delta.deltas.as_deref());
            "Delta"
        }
    };
    rows.insert(format!("{form_name} {name}"));
}

/// The encodings of a 2.0 page.
fn tree(encoding: &ArrayEncoding, rows: &mut Rows) {
    let Some(kind) = &encoding.kind else { return };
    let mut inner = |encoding: &Option<Box<ArrayEncoding>>| encoding.iter().for_each(|encoding| tree(encoding, rows));
    let name = match kind {
        ArrayKind::Flat(_) => "Flat",
        ArrayKind::Nullable(nullable) => {
            match &nullable.nullability {
                Some(Nullability::NoNulls(no)) => inner(&no.values),
                Some(Nullability::SomeNulls(some)) => {
                    inner(&some.validity);
                    inner(&some.values);
                }
                _ => {}
            }
            "Nullable"
        }
        ArrayKind::FixedSizeList(list) => {
            inner(&list.items);
            "FixedSizeList"
        }
        ArrayKind::List(list) => {
            inner(&list.offsets);
            "List"
        }
        ArrayKind::Struct(_) => "Struct",
        ArrayKind::Binary(binary) => {
            inner(&binary.indices);
            inner(&binary.bytes);
            "Binary"
        }
        ArrayKind::Dictionary(dictionary) => {
            inner(&dictionary.indices);
            inner(&dictionary.items);
            "Dictionary"
        }
        ArrayKind::Fsst(fsst) => {
            inner(&fsst.binary);
            "Fsst"
        }
        ArrayKind::PackedStruct(array::PackedStruct { .. }) => "PackedStruct",
        ArrayKind::Bitpacked(_) => "Bitpacked",
        ArrayKind::FixedSizeBinary(fixed) => {
            inner(&fixed.bytes);
            "FixedSizeBinary"
        }
        ArrayKind::BitpackedForNonNeg(_) => "BitpackedForNonNeg",
    };
    rows.insert(format!("2.0 {name}"));
}
