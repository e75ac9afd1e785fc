//! Value compressions of 2.1 to 2.3 (file-format §6), one file each.
//!
//! The same message is read in three ways: as the buffers of a mini-block chunk ([`ChunkReader`]), as one block of a known
//! number of values ([`BlockReader`]: levels, dictionaries), as the bytes of a single value ([`ItemReader`]: full-zip).
//! [`READERS`] is the complete list of what this build decodes; `docs/encodings.md` is printed from it.

mod bitpacking;
mod byte_stream_split;
mod fixed_size_list;
mod flat;
mod fsst;
mod general;
mod packed_struct;
mod rle;
pub(crate) mod sequence;
mod unpack;
mod variable;
mod variable_packed_struct;

pub(crate) use bitpacking::unpack_group;
pub(crate) use fsst::Symbols;
pub(crate) use general::{Scheme, decompress};
pub(crate) use packed_struct::PackedStruct as PackedRows;

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
    /// How many values the block says it has, where it says so.
    fn count(&self, _block: &[u8]) -> Option<u64> {
        None
    }
}

/// Reads one value of a full-zip page.
pub(crate) trait ItemReader {
    /// Appends the value.
    fn read(&self, value: &[u8], out: &mut Values) -> Decoded<()>;
}

type Open<R> = fn(&Compressive, &Physical) -> Decoded<Box<R>>;

/// One member of the compression message and its readers; `None` = never written in that form, or not decoded. Some members
/// occur in 2.3 sequences only, which `sequence` reads.
pub(crate) struct Reader {
    /// Name in messages and documents.
    pub(crate) name: &'static str,
    is: fn(&Compressive) -> bool,
    /// Mini-block form.
    pub(crate) chunk: Option<Open<dyn ChunkReader>>,
    /// Block form.
    pub(crate) block: Option<Open<dyn BlockReader>>,
    /// Full-zip form.
    pub(crate) item: Option<Open<dyn ItemReader>>,
}

/// The opening function of a type whose `new` takes the member's message.
macro_rules! open {
    ($member:ident, $new:expr) => {
        Some(|message, physical| match message {
            Compressive::$member(message) => Ok(Box::new($new(message, physical)?)),
            _ => corrupt("a compression under another's name"),
        })
    };
}

macro_rules! reader {
    ($member:ident, $chunk:expr, $block:expr, $item:expr) => {
        Reader {
            name: stringify!($member),
            is: |message| matches!(message, Compressive::$member(_)),
            chunk: $chunk,
            block: $block,
            item: $item,
        }
    };
}

/// Every compression, in the order of the message.
pub(crate) static READERS: &[Reader] = &[
    reader!(Flat, open!(Flat, flat::Flat::new), open!(Flat, flat::Flat::new), open!(Flat, flat::FlatItem::new)),
    reader!(
        Variable,
        open!(Variable, variable::Variable::new),
        open!(Variable, variable::Variable::new),
        open!(Variable, variable::Variable::new)
    ),
    reader!(Constant, None, None, None),
    reader!(OutOfLineBitpacking, None, open!(OutOfLineBitpacking, bitpacking::OutOfLine::new), None),
    reader!(
        InlineBitpacking,
        open!(InlineBitpacking, bitpacking::Inline::new),
        open!(InlineBitpacking, bitpacking::Inline::new),
        None
    ),
    reader!(Fsst, open!(Fsst, fsst::FsstChunks::new), None, open!(Fsst, fsst::FsstItem::new)),
    reader!(Dictionary, None, None, None),
    reader!(Rle, open!(Rle, rle::Rle::new), open!(Rle, rle::Rle::new), None),
    reader!(ByteStreamSplit, open!(ByteStreamSplit, byte_stream_split::ByteStreamSplit::new), None, None),
    reader!(
        General,
        open!(General, general::GeneralChunks::new),
        open!(General, general::GeneralBlock::new),
        open!(General, general::GeneralItem::new)
    ),
    reader!(
        FixedSizeList,
        open!(FixedSizeList, fixed_size_list::ListChunks::new),
        open!(FixedSizeList, fixed_size_list::ListBlock::new),
        open!(FixedSizeList, fixed_size_list::ListItem::new)
    ),
    reader!(
        PackedStruct,
        open!(PackedStruct, packed_struct::PackedStruct::new),
        None,
        open!(PackedStruct, packed_struct::PackedStruct::new)
    ),
    reader!(VariablePackedStruct, None, None, open!(VariablePackedStruct, variable_packed_struct::VariablePackedStruct::new)),
    reader!(Range, None, None, None),
    reader!(Delta, None, None, None),
];

fn find(encoding: Option<&CompressiveEncoding>) -> Decoded<(&'static Reader, &Compressive)> {
    let message = kind(encoding)?;
    match READERS.iter().find(|reader| (reader.is)(message)) {
        Some(reader) => Ok((reader, message)),
        None => unsupported("a compression that this build does not know"),
    }
}

/// The reader of a mini-block value stream (form M).
pub(crate) fn chunk_reader(encoding: Option<&CompressiveEncoding>, physical: &Physical) -> Decoded<Box<dyn ChunkReader>> {
    let (reader, message) = find(encoding)?;
    match reader.chunk {
        Some(open) => open(message, physical),
        None => unsupported(format!("{} in mini-block form", reader.name)),
    }
}

/// The reader of a block (form B).
pub(crate) fn block_reader(encoding: Option<&CompressiveEncoding>, physical: &Physical) -> Decoded<Box<dyn BlockReader>> {
    let (reader, message) = find(encoding)?;
    match reader.block {
        Some(open) => open(message, physical),
        None => unsupported(format!("{} in block form", reader.name)),
    }
}

/// The reader of single values (form P).
pub(crate) fn item_reader(encoding: Option<&CompressiveEncoding>, physical: &Physical) -> Decoded<Box<dyn ItemReader>> {
    let (reader, message) = find(encoding)?;
    match reader.item {
        Some(open) => open(message, physical),
        None => unsupported(format!("{} in full-zip form", reader.name)),
    }
}

/// Bits of one value, when values are stored plainly and none of their items can be null.
pub(crate) fn plain_bits(encoding: Option<&CompressiveEncoding>) -> Option<u64> {
    match encoding?.kind.as_ref()? {
        Compressive::Flat(flat) if flat.data.is_none() => Some(flat.bits_per_value),
        Compressive::FixedSizeList(list) if !list.has_validity => {
            plain_bits(list.values.as_deref())?.checked_mul(list.items_per_value)
        }
        _ => None,
    }
}

/// Width in bits of the unpacked values of an encoding of integers: dictionary indices have any of four.
pub(crate) fn integer_bits(encoding: Option<&CompressiveEncoding>) -> Option<u64> {
    match encoding?.kind.as_ref()? {
        Compressive::Flat(flat) => Some(flat.bits_per_value),
        Compressive::InlineBitpacking(packed) => Some(packed.uncompressed_bits),
        Compressive::OutOfLineBitpacking(packed) => Some(packed.uncompressed_bits),
        Compressive::Rle(runs) => integer_bits(runs.values.as_deref()),
        Compressive::General(general) => integer_bits(general.values.as_deref()),
        Compressive::ByteStreamSplit(split) => integer_bits(split.values.as_deref()),
        Compressive::Range(range) => Some(range.bits),
        Compressive::Delta(delta) => Some(delta.bits),
        Compressive::Dictionary(dictionary) => integer_bits(dictionary.items.as_deref()),
        _ => None,
    }
}

/// The name of a compression, for messages.
fn name(kind: &Compressive) -> &'static str {
    READERS.iter().find(|reader| (reader.is)(kind)).map_or("?", |reader| reader.name)
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

/// The width in bytes of a fixed-width type that an encoding of `bits`-bit words can hold.
fn word_width(bits: u64, physical: &Physical, of: &str) -> Decoded<usize> {
    match physical {
        Physical::Fixed(width) if bits == 8 * *width as u64 && matches!(bits, 8 | 16 | 32 | 64) => Ok(*width),
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
