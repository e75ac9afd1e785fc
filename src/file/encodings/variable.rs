//! Offsets and bytes (file-format §6.1–6.3).

use super::{BlockReader, ChunkReader, ItemReader, plain, single};
use crate::file::fault::{Decoded, Fault, corrupt, le, part};
use crate::file::messages::encoding21::{self as message, Compressive};
use crate::file::values::{Physical, Texts, Values};

/// Plain variable-width values.
pub(crate) struct Variable {
    /// Bytes per offset: 4 or 8.
    pub(crate) offset: usize,
}

impl Variable {
    pub(crate) fn new(message: &message::Variable, physical: Physical) -> Decoded<Variable> {
        plain(message.values.as_ref(), "Variable")?;
        let offsets = message.offsets.as_ref().and_then(|offsets| offsets.kind.as_ref());
        let bits = match offsets {
            Some(Compressive::Flat(flat)) => {
                plain(flat.data.as_ref(), "Flat")?;
                flat.bits_per_value
            }
            _ => return Err(Fault::Unsupported("Variable with compressed offsets".to_owned())),
        };
        match (physical, bits) {
            (Physical::Variable(_), 32) => Ok(Variable { offset: 4 }),
            (Physical::Variable(_), 64) => Ok(Variable { offset: 8 }),
            _ => corrupt(format!("Variable with {bits}-bit offsets in a column of other values")),
        }
    }

    /// Calls `each` with every value of a buffer whose offsets begin at `head` and count from `base`.
    ///
    /// Returns the bytes of all values; offsets ascend and end inside the buffer.
    pub(crate) fn split<'a>(&self, buffer: &'a [u8], head: usize, n: usize, base: usize) -> Decoded<Slots<'a>> {
        let table = n.checked_add(1).and_then(|n| n.checked_mul(self.offset)).unwrap_or(usize::MAX);
        let table = part(buffer, head, table, "the offsets of strings")?;
        Ok(Slots { table, width: self.offset, bytes: buffer.get(base..).unwrap_or_default() })
    }
}

/// Values between consecutive offsets.
pub(crate) struct Slots<'a> {
    table: &'a [u8],
    width: usize,
    bytes: &'a [u8],
}

impl<'a> Slots<'a> {
    fn first(&self) -> u64 {
        le(self.table.get(..self.width).unwrap_or_default())
    }

    /// All values back to back, and the first offset.
    fn all(&self) -> Decoded<(&'a [u8], u64)> {
        let first = self.first();
        let last = le(self.table.get(self.table.len().saturating_sub(self.width)..).unwrap_or_default());
        let bytes = usize::try_from(first).ok().zip(usize::try_from(last).ok()).and_then(|(a, b)| self.bytes.get(a..b));
        match bytes {
            Some(bytes) => Ok((bytes, first)),
            None => corrupt(format!("string offsets {first} to {last} in {} bytes", self.bytes.len())),
        }
    }

    /// Appends the values as they are: one pass over the offsets, one copy of the bytes.
    pub(crate) fn copy_to(&self, out: &mut Texts) -> Decoded<()> {
        let (bytes, first) = self.all()?;
        let base = out.data.len();
        let end = i32::try_from(base + bytes.len());
        if end.is_err() {
            return Err(Fault::TooLarge("more than 2 GiB of strings in one slice".to_owned()));
        }
        // Offsets between first and last, ascending, so that base + offset - first fits the i32 checked above.
        let shift = (base as u64).wrapping_sub(first);
        let mut previous = first;
        let mut ascending = true;
        let rest = self.table.get(self.width..).unwrap_or_default();
        let mut push = |offset: u64| {
            ascending &= offset >= previous;
            previous = offset;
            out.offsets.push(offset.wrapping_add(shift) as i32);
        };
        if self.width == 4 {
            rest.as_chunks::<4>().0.iter().for_each(|o| push(u64::from(u32::from_le_bytes(*o))));
        } else {
            rest.as_chunks::<8>().0.iter().for_each(|o| push(u64::from_le_bytes(*o)));
        }
        if !ascending {
            return corrupt("string offsets that do not ascend");
        }
        out.data.extend_from_slice(bytes);
        Ok(())
    }

    /// Calls `each` with every value in order.
    pub(crate) fn for_each(&self, mut each: impl FnMut(&'a [u8]) -> Decoded<()>) -> Decoded<()> {
        let mut from = self.first();
        for offset in self.table.chunks_exact(self.width).skip(1) {
            let to = le(offset);
            let value = usize::try_from(from).ok().zip(usize::try_from(to).ok()).and_then(|(a, b)| self.bytes.get(a..b));
            match value {
                Some(value) => each(value)?,
                None => return corrupt(format!("string offsets {from} to {to} in {} bytes", self.bytes.len())),
            }
            from = to;
        }
        Ok(())
    }
}

impl ChunkReader for Variable {
    fn read(&self, buffers: &[&[u8]], n: usize, out: &mut Values) -> Decoded<()> {
        // Offsets count from the start of the buffer, which is also where they begin.
        self.split(single(buffers)?, 0, n, 0)?.copy_to(out.texts()?)
    }
}

impl BlockReader for Variable {
    fn read(&self, block: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        let word = self.offset;
        let bits = le(part(block, 0, word, "a block of strings")?);
        if bits != 8 * word as u64 {
            return Err(Fault::Unsupported(format!("a block of strings with header {bits}")));
        }
        let start = le(part(block, word, word, "a block of strings")?);
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        if start > block.len() {
            return corrupt(format!("a block of strings that begins at {start} of {} bytes", block.len()));
        }
        self.split(block, 2 * word, n, start)?.copy_to(out.texts()?)
    }
}

impl ItemReader for Variable {
    fn read(&self, value: &[u8], out: &mut Values) -> Decoded<()> {
        out.texts()?.push(value)
    }
}
