//! Offsets and bytes (file-format §6.1–6.3).

use bytes::Bytes;

use super::{BlockReader, ChunkReader, ItemReader, plain, sequence, single};
use crate::file::fault::{Decoded, Fault, corrupt, le, part, unsupported};
use crate::file::messages::encoding21::{self as message, Compressive, CompressiveEncoding};
use crate::file::values::{Physical, Texts, Values};

/// Plain variable-width values.
pub(crate) struct Variable {
    /// Bytes per offset: 4 or 8.
    pub(crate) offset: usize,
    /// 2.3 chunks: offsets from 0 as a sequence, and whether it has a buffer of its own in front.
    sequence: Option<(CompressiveEncoding, bool)>,
}

impl Variable {
    pub(crate) fn new(message: &message::Variable, physical: &Physical) -> Decoded<Variable> {
        plain(message.values.as_ref(), "Variable")?;
        let offsets = message.offsets.as_ref().and_then(|offsets| offsets.kind.as_ref());
        let bits = match offsets {
            Some(Compressive::Flat(flat)) => {
                plain(flat.data.as_ref(), "Flat")?;
                flat.bits_per_value
            }
            Some(_) if matches!(physical, Physical::Variable(_)) => {
                let offsets = message.offsets.as_deref().cloned();
                let payload = sequence::has_payload(offsets.as_ref())?;
                return Ok(Variable { offset: 8, sequence: offsets.map(|offsets| (offsets, payload)) });
            }
            _ => return corrupt("Variable without the width of its offsets"),
        };
        match (physical, bits) {
            (Physical::Variable(_), 32) => Ok(Variable { offset: 4, sequence: None }),
            (Physical::Variable(_), 64) => Ok(Variable { offset: 8, sequence: None }),
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

impl Variable {
    /// The form without alignment that earlier writers used: one byte of width, count, start, offsets from 0, bytes.
    fn old_block(&self, block: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        let word = self.offset;
        let bits = le(part(block, 0, 1, "a block of strings")?);
        let count = le(part(block, 1, word, "a block of strings")?);
        let start = usize::try_from(le(part(block, 1 + word, word, "a block of strings")?)).unwrap_or(usize::MAX);
        if bits != 8 * word as u64 || count != n as u64 || start > block.len() {
            return corrupt(format!("a block of {count} strings with {bits}-bit offsets, {n} were announced"));
        }
        self.split(block, 1 + 2 * word, n, start)?.copy_to(out.texts()?)
    }
}

/// Values between consecutive offsets.
pub(crate) struct Slots<'a> {
    /// One more offsets than values.
    pub(crate) table: &'a [u8],
    /// Bytes of an offset.
    pub(crate) width: usize,
    /// What the offsets point into.
    pub(crate) bytes: &'a [u8],
}

/// A little-endian number of up to 8 bytes.
#[inline(always)]
pub(crate) fn number<const W: usize>(bytes: &[u8; W]) -> u64 {
    let mut wide = [0u8; 8];
    if let Some(low) = wide.first_chunk_mut::<W>() {
        *low = *bytes;
    }
    u64::from_le_bytes(wide)
}

/// Appends offsets with `shift` added; whether they ascend from `previous`.
#[inline(always)]
fn shifted<const W: usize>(offsets: &[[u8; W]], mut previous: u64, shift: u64, out: &mut Vec<i32>) -> bool {
    let mut ascending = true;
    out.extend(offsets.iter().map(|offset| {
        let offset = number(offset);
        ascending &= offset >= previous;
        previous = offset;
        offset.wrapping_add(shift) as i32
    }));
    ascending
}

impl<'a> Slots<'a> {
    fn first(&self) -> u64 {
        le(self.table.get(..self.width).unwrap_or_default())
    }

    /// All values back to back, and the first offset.
    pub(crate) fn all(&self) -> Decoded<(&'a [u8], u64)> {
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
        let rest = self.table.get(self.width..).unwrap_or_default();
        let ascending = match self.width {
            4 => shifted(rest.as_chunks::<4>().0, first, shift, &mut out.offsets),
            _ => shifted(rest.as_chunks::<8>().0, first, shift, &mut out.offsets),
        };
        if !ascending {
            return corrupt("string offsets that do not ascend");
        }
        out.data.extend_from_slice(bytes);
        Ok(())
    }
}

impl Variable {
    /// The offsets of a 2.3 chunk as plain ones, and its bytes.
    pub(crate) fn sequenced<'a>(&self, buffers: &[&'a [u8]], n: usize) -> Decoded<Option<(Vec<u8>, &'a [u8])>> {
        let Some((offsets, payload)) = &self.sequence else { return Ok(None) };
        let (offsets_at, bytes) = match buffers {
            [bytes] if !payload => (&[][..], *bytes),
            [offsets, bytes] if *payload => (*offsets, *bytes),
            other => return corrupt(format!("{} value buffers of strings", other.len())),
        };
        let offsets = sequence::read(Some(offsets), n as u64 + 1, &Bytes::copy_from_slice(offsets_at))?;
        Ok(Some((offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect(), bytes)))
    }

    /// The values between offsets, which begin where `bytes` does.
    pub(crate) fn slots<'a>(&self, table: &'a [u8], bytes: &'a [u8]) -> Slots<'a> {
        Slots { table, width: self.offset, bytes }
    }
}

impl ChunkReader for Variable {
    fn buffers(&self) -> usize {
        if matches!(self.sequence, Some((_, true))) { 2 } else { 1 }
    }

    fn read(&self, buffers: &[&[u8]], n: usize, out: &mut Values) -> Decoded<()> {
        if let Some((table, bytes)) = self.sequenced(buffers, n)? {
            return self.slots(&table, bytes).copy_to(out.texts()?);
        }
        // Offsets count from the start of the buffer, which is also where they begin.
        self.split(single(buffers)?, 0, n, 0)?.copy_to(out.texts()?)
    }
}

impl BlockReader for Variable {
    fn read(&self, block: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        if self.sequence.is_some() {
            return unsupported("Variable with compressed offsets in block form");
        }
        let word = self.offset;
        if part(block, 1, 3, "a block of strings")? != [0; 3] {
            return self.old_block(block, n, out);
        }
        let bits = le(part(block, 0, word, "a block of strings")?);
        if bits != 8 * word as u64 {
            return corrupt(format!("a block of strings with header {bits}"));
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
