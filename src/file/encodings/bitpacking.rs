//! Packed groups of 1024 values (file-format §7.1), with the width in front (inline) or in the message (out of line).

use arrow::buffer::MutableBuffer;
use arrow::datatypes::ArrowNativeType;
use lance_bitpacking::BitPacking;

use super::{BlockReader, ChunkReader, MAX_BLOCK_VALUES, plain, single, word_width};
use crate::file::fault::{Decoded, corrupt, part};
use crate::file::messages::encoding21::{self as message, Compressive};
use crate::file::values::{Physical, Values};

const GROUP: usize = 1024;

/// A word type the kernel knows.
trait Word: BitPacking + ArrowNativeType {
    const BYTES: usize;
    fn load(bytes: &[u8], into: &mut Vec<Self>);
}

macro_rules! word {
    ($($ty:ty),*) => { $(impl Word for $ty {
        const BYTES: usize = size_of::<$ty>();
        fn load(bytes: &[u8], into: &mut Vec<$ty>) {
            let (words, _) = bytes.as_chunks::<{ size_of::<$ty>() }>();
            into.clear();
            into.extend(words.iter().map(|word| <$ty>::from_le_bytes(*word)));
        }
    })* };
}
word!(u8, u16, u32, u64);

/// Unpacks one group of `width`-bit values onto the end of `out`. `scratch` is reused between groups.
#[allow(unsafe_code)]
fn unpack<T: Word>(width: usize, packed: &[u8], scratch: &mut Vec<T>, out: &mut MutableBuffer) -> Decoded<()> {
    if width > 8 * T::BYTES || packed.len() != 128 * width {
        return corrupt(format!("a packed group of {} bytes for {width}-bit values in {}-byte words", packed.len(), T::BYTES));
    }
    let start = out.len() / T::BYTES;
    out.resize(out.len() + GROUP * T::BYTES, 0);
    if width == 0 {
        return Ok(());
    }
    T::load(packed, scratch);
    let words = 128 * width / T::BYTES;
    let Some(target) = out.typed_data_mut::<T>().get_mut(start..start + GROUP) else {
        return corrupt("a packed group at an odd position");
    };
    if scratch.len() != words || target.len() != GROUP {
        return corrupt("a packed group of the wrong size");
    }
    // SAFETY: the kernel requires width <= bits of T (checked first), an input of exactly 1024 * width / T words and an
    // output of exactly 1024 values (both checked in the line above).
    unsafe { T::unchecked_unpack(width, scratch, target) };
    Ok(())
}

/// One group of at most 1024 values, its width in the first word.
pub(crate) struct Inline {
    bytes: usize,
}

impl Inline {
    pub(crate) fn new(message: &message::InlineBitpacking, physical: Physical) -> Decoded<Inline> {
        plain(message.values.as_ref(), "InlineBitpacking")?;
        Ok(Inline { bytes: word_width(message.uncompressed_bits, physical, "InlineBitpacking")? })
    }

    fn group<T: Word>(&self, block: &[u8], n: usize, out: &mut MutableBuffer) -> Decoded<()> {
        if n > GROUP {
            return corrupt(format!("{n} values in one packed group of {GROUP}"));
        }
        let width = part(block, 0, T::BYTES, "a packed group")?.iter().rev().fold(0u64, |w, b| w << 8 | u64::from(*b));
        let width = usize::try_from(width).unwrap_or(usize::MAX);
        let before = out.len();
        unpack::<T>(width, block.get(T::BYTES..).unwrap_or_default(), &mut Vec::new(), out)?;
        out.truncate(before + n * T::BYTES);
        Ok(())
    }
}

impl BlockReader for Inline {
    fn read(&self, block: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        let out = out.fixed(self.bytes)?;
        match self.bytes {
            1 => self.group::<u8>(block, n, out),
            2 => self.group::<u16>(block, n, out),
            4 => self.group::<u32>(block, n, out),
            _ => self.group::<u64>(block, n, out),
        }
    }
}

impl ChunkReader for Inline {
    fn read(&self, buffers: &[&[u8]], n: usize, out: &mut Values) -> Decoded<()> {
        BlockReader::read(self, single(buffers)?, n, out)
    }
}

/// Whole groups, then a tail that is packed or plain.
pub(crate) struct OutOfLine {
    bytes: usize,
    width: usize,
}

impl OutOfLine {
    pub(crate) fn new(message: &message::OutOfLineBitpacking, physical: Physical) -> Decoded<OutOfLine> {
        let bytes = word_width(message.uncompressed_bits, physical, "OutOfLineBitpacking")?;
        let inner = message.values.as_ref().and_then(|values| values.kind.as_ref());
        let Some(Compressive::Flat(flat)) = inner else { return corrupt("OutOfLineBitpacking without its packed width") };
        plain(flat.data.as_ref(), "Flat")?;
        match usize::try_from(flat.bits_per_value) {
            Ok(width) if width <= 8 * bytes => Ok(OutOfLine { bytes, width }),
            _ => corrupt(format!("OutOfLineBitpacking of {} bits in {bytes}-byte words", flat.bits_per_value)),
        }
    }

    fn groups<T: Word>(&self, block: &[u8], n: usize, out: &mut MutableBuffer) -> Decoded<()> {
        let group = 128 * self.width;
        let tail = n % GROUP;
        let whole = (n / GROUP) * group;
        let rest = block.len().checked_sub(whole).unwrap_or(usize::MAX);
        if n > MAX_BLOCK_VALUES || !(rest == tail * T::BYTES || rest == if tail == 0 { 0 } else { group }) {
            return corrupt(format!("{} bytes of {}-bit packed values, {n} were announced", block.len(), self.width));
        }
        out.reserve(n.next_multiple_of(GROUP) * T::BYTES);
        let mut scratch = Vec::new();
        for index in 0..n / GROUP {
            unpack::<T>(self.width, part(block, index * group, group, "a packed group")?, &mut scratch, out)?;
        }
        let last = part(block, whole, rest, "a packed tail")?;
        if rest == tail * T::BYTES {
            out.extend_from_slice(last);
        } else {
            let before = out.len();
            unpack::<T>(self.width, last, &mut scratch, out)?;
            out.truncate(before + tail * T::BYTES);
        }
        Ok(())
    }
}

impl BlockReader for OutOfLine {
    fn read(&self, block: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        let out = out.fixed(self.bytes)?;
        match self.bytes {
            1 => self.groups::<u8>(block, n, out),
            2 => self.groups::<u16>(block, n, out),
            4 => self.groups::<u32>(block, n, out),
            _ => self.groups::<u64>(block, n, out),
        }
    }
}
