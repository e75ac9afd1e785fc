//! Value compressions of 2.1 and 2.2 (file-format §6), one file each.
//!
//! The same message is read in three ways: as the buffers of a mini-block chunk ([`ChunkReader`]), as one block of a known
//! number of values ([`BlockReader`]: levels, dictionaries), as the bytes of a single value ([`ItemReader`]: full-zip). The
//! three functions below are the complete list of what this build decodes.

mod bitpacking;
mod flat;
mod fsst;
mod general;
mod rle;
mod variable;

use super::fault::{Decoded, corrupt, unsupported};
use super::messages::encoding21::{BufferCompression, Compressive, CompressiveEncoding};
use super::values::{Physical, Values};

/// No block holds more values than this: the counts of some encodings are not backed by bytes.
pub(crate) const MAX_BLOCK_VALUES: usize = 1 << 26;

/// Reads the value buffers of one mini-block chunk.
pub(crate) trait ChunkReader {
    /// Value buffers per chunk.
    fn buffers(&self) -> usize {
        1
    }
    /// Appends the chunk's `n` values.
    fn read(&self, buffers: &[&[u8]], n: usize, out: &mut Values) -> Decoded<()>;
}

/// Reads one block of values.
pub(crate) trait BlockReader {
    /// Appends the block's `n` values.
    fn read(&self, block: &[u8], n: usize, out: &mut Values) -> Decoded<()>;
}

/// Reads one value of a full-zip page.
pub(crate) trait ItemReader {
    /// Appends the value.
    fn read(&self, value: &[u8], out: &mut Values) -> Decoded<()>;
}

/// The reader of a mini-block value stream (form M).
pub(crate) fn chunk_reader(encoding: Option<&CompressiveEncoding>, physical: Physical) -> Decoded<Box<dyn ChunkReader>> {
    Ok(match kind(encoding)? {
        Compressive::Flat(m) => Box::new(flat::Flat::new(m, physical)?),
        Compressive::InlineBitpacking(m) => Box::new(bitpacking::Inline::new(m, physical)?),
        Compressive::Variable(m) => Box::new(variable::Variable::new(m, physical)?),
        Compressive::Fsst(m) => Box::new(fsst::FsstChunks::new(m, physical)?),
        Compressive::Rle(m) => Box::new(rle::Rle::new(m, physical)?),
        Compressive::General(m) => {
            let inner = chunk_reader(m.values.as_deref(), physical)?;
            Box::new(general::GeneralChunks { scheme: general::Scheme::new(m)?, inner })
        }
        other => return unsupported(format!("{} in mini-block form", name(other))),
    })
}

/// The reader of a block (form B).
pub(crate) fn block_reader(encoding: Option<&CompressiveEncoding>, physical: Physical) -> Decoded<Box<dyn BlockReader>> {
    Ok(match kind(encoding)? {
        Compressive::Flat(m) => Box::new(flat::Flat::new(m, physical)?),
        Compressive::InlineBitpacking(m) => Box::new(bitpacking::Inline::new(m, physical)?),
        Compressive::OutOfLineBitpacking(m) => Box::new(bitpacking::OutOfLine::new(m, physical)?),
        Compressive::Variable(m) => Box::new(variable::Variable::new(m, physical)?),
        Compressive::Rle(m) => Box::new(rle::Rle::new(m, physical)?),
        Compressive::General(m) => {
            let inner = block_reader(m.values.as_deref(), physical)?;
            Box::new(general::GeneralBlock { scheme: general::Scheme::new(m)?, inner })
        }
        other => return unsupported(format!("{} in block form", name(other))),
    })
}

/// The reader of single variable-width values (form P).
pub(crate) fn item_reader(encoding: Option<&CompressiveEncoding>, physical: Physical) -> Decoded<Box<dyn ItemReader>> {
    Ok(match kind(encoding)? {
        Compressive::Variable(m) => Box::new(variable::Variable::new(m, physical)?),
        Compressive::Fsst(m) => Box::new(fsst::FsstItem::new(m, physical)?),
        Compressive::General(m) => {
            let inner = item_reader(m.values.as_deref(), physical)?;
            Box::new(general::GeneralItem { scheme: general::Scheme::new(m)?, inner })
        }
        other => return unsupported(format!("{} in full-zip form", name(other))),
    })
}

/// Refuses anything but plain values of `bits` bits: fixed-width full-zip pages.
pub(crate) fn expect_flat(encoding: Option<&CompressiveEncoding>, bits: u64) -> Decoded<()> {
    match kind(encoding)? {
        Compressive::Flat(m) => {
            plain(m.data.as_ref(), "Flat")?;
            if m.bits_per_value == bits { Ok(()) } else { corrupt(format!("Flat {} where {bits} bits are", m.bits_per_value)) }
        }
        other => unsupported(format!("{} in full-zip form", name(other))),
    }
}

fn kind(encoding: Option<&CompressiveEncoding>) -> Decoded<&Compressive> {
    match encoding {
        None => corrupt("a page message without its value compression"),
        Some(CompressiveEncoding { kind: None }) => unsupported("a compression that this build does not know"),
        Some(CompressiveEncoding { kind: Some(kind) }) => Ok(kind),
    }
}

/// Lance 14 never sets the buffer compression of plain, packed and variable values.
fn plain(compression: Option<&BufferCompression>, of: &str) -> Decoded<()> {
    match compression {
        None => Ok(()),
        Some(_) => unsupported(format!("{of} with a compressed buffer")),
    }
}

fn name(kind: &Compressive) -> &'static str {
    match kind {
        Compressive::Flat(_) => "Flat",
        Compressive::Variable(_) => "Variable",
        Compressive::Constant(_) => "Constant",
        Compressive::OutOfLineBitpacking(_) => "OutOfLineBitpacking",
        Compressive::InlineBitpacking(_) => "InlineBitpacking",
        Compressive::Fsst(_) => "Fsst",
        Compressive::Dictionary(_) => "Dictionary",
        Compressive::Rle(_) => "Rle",
        Compressive::ByteStreamSplit(_) => "ByteStreamSplit",
        Compressive::General(_) => "General",
        Compressive::FixedSizeList(_) => "FixedSizeList",
        Compressive::PackedStruct(_) => "PackedStruct",
        Compressive::VariablePackedStruct(_) => "VariablePackedStruct",
        Compressive::Range(_) => "Range",
        Compressive::Delta(_) => "Delta",
    }
}

/// The width in bytes of a fixed-width type that an encoding of `bits`-bit words can hold.
fn word_width(bits: u64, physical: Physical, of: &str) -> Decoded<usize> {
    match physical {
        Physical::Fixed(width) if bits == 8 * width as u64 && matches!(bits, 8 | 16 | 32 | 64) => Ok(width),
        _ => corrupt(format!("{of} of {bits}-bit words in a column of other values")),
    }
}

/// The only buffer of a chunk.
fn single<'a>(buffers: &[&'a [u8]]) -> Decoded<&'a [u8]> {
    match buffers {
        [one] => Ok(one),
        other => corrupt(format!("{} value buffers where one belongs", other.len())),
    }
}
