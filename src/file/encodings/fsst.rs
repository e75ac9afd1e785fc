//! FSST strings (file-format §7.3): a table of up to 255 symbols of 1 to 8 bytes, one code byte per symbol.

use super::variable::{Variable, number};
use super::{ChunkReader, ItemReader, kind, name, single};
use crate::file::fault::{Decoded, corrupt, le, part, unsupported};
use crate::file::messages::encoding21::{self as message, Compressive};
use crate::file::values::{Physical, Texts, Values, offset};

const TABLE_BYTES: usize = 2312;
const MAGIC: u64 = 0x4653_5354;
const ESCAPE: u8 = 255;

/// Codes decoded in one go.
const BLOCK: usize = 512;
/// In place of a start: the byte after an escape, at which no value ends.
const INSIDE: u16 = u16::MAX;

/// A parsed symbol table.
pub(crate) struct Symbols {
    /// Symbol of each code, padded to 8 bytes.
    symbols: Box<[u64; 256]>,
    /// Its length; 0 = no such code, or the escape.
    lengths: Box<[u8; 256]>,
    compressed: bool,
}

impl Symbols {
    pub(crate) fn parse(table: &[u8]) -> Decoded<Symbols> {
        if table.len() != TABLE_BYTES {
            return corrupt(format!("an FSST table of {} bytes, not {TABLE_BYTES}", table.len()));
        }
        let header = le(part(table, 0, 8, "an FSST table")?);
        if header >> 32 != MAGIC {
            return corrupt("an FSST table without its mark");
        }
        let count = (header & 0xFF) as usize;
        let stored = part(table, 8, 8 * count, "FSST symbols")?;
        let stored_lengths = part(table, 8 + 8 * count, count, "FSST symbol lengths")?;
        let (mut symbols, mut lengths) = (Box::new([0u64; 256]), Box::new([0u8; 256]));
        for (slot, symbol) in symbols.iter_mut().zip(stored.as_chunks::<8>().0) {
            *slot = u64::from_le_bytes(*symbol);
        }
        for (slot, length) in lengths.iter_mut().zip(stored_lengths) {
            if !(1..=8).contains(length) {
                return corrupt(format!("an FSST symbol of {length} bytes"));
            }
            *slot = *length;
        }
        Ok(Symbols { symbols, lengths, compressed: header >> 24 & 1 == 1 })
    }

    /// Appends the values whose codes lie back to back in `codes`; `ends` says where each ends.
    ///
    /// The codes of all values are one run and only afterwards cut into values: a loop that ends with each value would be
    /// mispredicted once a value, which costs as much as its few codes do.
    pub(crate) fn decode(&self, codes: &[u8], ends: impl IntoIterator<Item = usize>, out: &mut Texts) -> Decoded<()> {
        let mut ends = ends.into_iter().peekable();
        let mut starts = [0u16; BLOCK + 2];
        let (mut from, mut at, mut previous) = (0usize, out.data.len(), 0usize);
        loop {
            let taken = if self.compressed {
                self.block(codes.get(from..).unwrap_or_default(), &mut out.data, at, &mut starts)?
            } else {
                plain_block(codes.get(from..).unwrap_or_default(), &mut out.data, &mut starts)
            };
            let to = from + taken;
            while let Some(end) = ends.next_if(|end| *end <= to) {
                match end.checked_sub(from).and_then(|index| starts.get(index)) {
                    Some(start) if *start != INSIDE && end >= previous => out.offsets.push(offset(at + usize::from(*start))?),
                    _ => {
                        return corrupt(format!(
                            "a string that ends at byte {end} of FSST codes, inside an escape or before the last one"
                        ));
                    }
                }
                previous = end;
            }
            at += starts.get(taken).map_or(0, |start| usize::from(*start));
            from = to;
            if from >= codes.len() {
                break;
            }
        }
        out.data.truncate(at);
        match ends.next() {
            None => Ok(()),
            Some(end) => corrupt(format!("a string that ends at byte {end} of {} FSST codes", codes.len())),
        }
    }

    /// Decodes at most [`BLOCK`] codes into `out` from `at` on, and says where each begins, counted from there.
    ///
    /// Returns the bytes taken, whose successor's start is the end. `out` is left too long.
    #[inline(always)]
    fn block(&self, codes: &[u8], out: &mut Vec<u8>, at: usize, starts: &mut [u16; BLOCK + 2]) -> Decoded<usize> {
        // Every symbol is stored as 8 bytes and overwritten past its length by the next one: no copy of variable length.
        let room = at + 8 * codes.len().min(BLOCK + 1) + 8;
        if out.len() < room {
            out.resize(room, 0);
        }
        let out = out.get_mut(at..).unwrap_or_default();
        let (mut index, mut end) = (0usize, 0usize);
        while index < BLOCK
            && let Some(code) = codes.get(index)
        {
            let code = usize::from(*code);
            let (Some(symbol), Some(length)) = (self.symbols.get(code), self.lengths.get(code)) else { break };
            let (mut symbol, mut length) = (*symbol, usize::from(*length));
            set(starts, index, end as u16);
            if length == 0 {
                if code != usize::from(ESCAPE) {
                    return corrupt(format!("FSST code {code}, which has no symbol"));
                }
                index += 1;
                let Some(literal) = codes.get(index) else { return corrupt("FSST codes that end inside an escape") };
                set(starts, index, INSIDE);
                (symbol, length) = (u64::from(*literal), 1);
            }
            match out.get_mut(end..).and_then(|room| room.first_chunk_mut::<8>()) {
                Some(slot) => *slot = symbol.to_le_bytes(),
                None => return corrupt("strings that outgrow their room"),
            }
            end += length;
            index += 1;
        }
        set(starts, index, end as u16);
        Ok(index)
    }
}

#[inline(always)]
fn set(starts: &mut [u16; BLOCK + 2], index: usize, start: u16) {
    if let Some(slot) = starts.get_mut(index) {
        *slot = start;
    }
}

/// As [`Symbols::block`], of strings that were not worth compressing.
fn plain_block(codes: &[u8], out: &mut Vec<u8>, starts: &mut [u16; BLOCK + 2]) -> usize {
    let taken = codes.get(..BLOCK).unwrap_or(codes);
    out.extend_from_slice(taken);
    for (slot, start) in starts.iter_mut().zip(0..=taken.len() as u16) {
        *slot = start;
    }
    taken.len()
}

fn parts(message: &message::Fsst, physical: &Physical) -> Decoded<(Symbols, Variable)> {
    let values = match kind(message.values.as_deref())? {
        Compressive::Variable(m) => Variable::new(m, physical)?,
        other => return unsupported(format!("Fsst over {}", name(other))),
    };
    Ok((Symbols::parse(&message.symbol_table)?, values))
}

/// Mini-block form.
pub(crate) struct FsstChunks {
    symbols: Symbols,
    values: Variable,
}

impl FsstChunks {
    pub(crate) fn new(message: &message::Fsst, physical: &Physical) -> Decoded<FsstChunks> {
        let (symbols, values) = parts(message, physical)?;
        Ok(FsstChunks { symbols, values })
    }
}

/// Where the values end, counted from the first one's start.
fn ends<const W: usize>(table: &[u8], first: u64) -> impl Iterator<Item = usize> {
    let numbers = table.as_chunks::<W>().0.iter().skip(1);
    numbers.map(move |end| usize::try_from(number(end).wrapping_sub(first)).unwrap_or(usize::MAX))
}

impl ChunkReader for FsstChunks {
    fn buffers(&self) -> usize {
        self.values.buffers()
    }

    fn read(&self, buffers: &[&[u8]], n: usize, out: &mut Values) -> Decoded<()> {
        let out = out.texts()?;
        out.offsets.reserve(n);
        let table = self.values.sequenced(buffers, n)?;
        let slots = match &table {
            None => self.values.split(single(buffers)?, 0, n, 0)?,
            Some((table, bytes)) => self.values.slots(table, bytes),
        };
        let (codes, first) = slots.all()?;
        match slots.width {
            4 => self.symbols.decode(codes, ends::<4>(slots.table, first), out),
            _ => self.symbols.decode(codes, ends::<8>(slots.table, first), out),
        }
    }
}

/// Full-zip form.
pub(crate) struct FsstItem {
    symbols: Symbols,
}

impl FsstItem {
    pub(crate) fn new(message: &message::Fsst, physical: &Physical) -> Decoded<FsstItem> {
        let (symbols, _) = parts(message, physical)?;
        Ok(FsstItem { symbols })
    }
}

impl ItemReader for FsstItem {
    fn read(&self, value: &[u8], out: &mut Values) -> Decoded<()> {
        self.symbols.decode(value, [value.len()], out.texts()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(symbols: &[&str], compressed: bool) -> Vec<u8> {
        let header = symbols.len() as u64 | u64::from(compressed) << 24 | MAGIC << 32;
        let mut table = header.to_le_bytes().to_vec();
        for symbol in symbols {
            let mut padded = symbol.as_bytes().to_vec();
            padded.resize(8, 0xEE);
            table.extend(padded);
        }
        table.extend(symbols.iter().map(|s| s.len() as u8));
        table.resize(TABLE_BYTES, 0xAA);
        table
    }

    #[test]
    fn symbols_escapes_and_corruption() {
        let symbols = Symbols::parse(&table(&["a", "hello wo", "rld"], true)).unwrap();
        let values = |symbols: &Symbols, codes: &[u8], ends: &[usize]| {
            let mut out = Texts::with_capacity(0);
            out.data.extend([0; 4]);
            symbols.decode(codes, ends.iter().copied(), &mut out)?;
            Ok::<_, crate::file::fault::Fault>((out.data[4..].to_vec(), out.offsets[1..].to_vec()))
        };
        let decode =
            |symbols: &Symbols, codes: &[u8]| Ok::<_, crate::file::fault::Fault>(values(symbols, codes, &[codes.len()])?.0);
        assert_eq!(decode(&symbols, &[1, 2, 255, b'!', 0, 255, 255]).unwrap(), b"hello world!a\xff");
        assert_eq!(decode(&symbols, &[1, 1, 1]).unwrap(), b"hello wohello wohello wo");
        assert!(decode(&symbols, &[3]).is_err());
        assert!(decode(&symbols, &[1, 255]).is_err());
        let long: Vec<u8> = [1; 63].into_iter().chain([255, b'!', 2]).collect();
        let want = [b"hello wo".repeat(63), b"!rld".to_vec()].concat();
        assert_eq!(decode(&symbols, &long).unwrap(), want);
        assert!(decode(&symbols, &long[..64]).is_err());
        let plain = Symbols::parse(&table(&["a"], false)).unwrap();
        assert_eq!(decode(&plain, &[255, 9]).unwrap(), [255, 9]);
        assert_eq!(values(&plain, &[7; 1500], &[0, 512, 700, 1500]).unwrap().1, [4, 516, 704, 1504]);

        // Values that begin and end at every place around the edges of blocks, an escape across one of them.
        let codes: Vec<u8> = [0u8; BLOCK - 1].into_iter().chain([255, b'!', 1, 2]).chain([0; BLOCK]).collect();
        let ends = [0, 0, BLOCK - 1, BLOCK + 1, BLOCK + 2, BLOCK + 2, BLOCK + 3, 2 * BLOCK + 3];
        let (text, offsets) = values(&symbols, &codes, &ends).unwrap();
        assert_eq!(text, [b"a".repeat(BLOCK - 1), b"!hello world".to_vec(), b"a".repeat(BLOCK)].concat());
        assert_eq!(offsets, [4, 4, 515, 516, 524, 524, 527, 1039]);
        for wrong in [&[BLOCK, codes.len()][..], &[5, 4], &[BLOCK + 3, 7], &[codes.len() + 1]] {
            assert!(values(&symbols, &codes, wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn bad_tables_are_refused() {
        let good = table(&["a"], true);
        assert!(Symbols::parse(&good[1..]).is_err());
        let mut unmarked = good.clone();
        unmarked[7] = 0;
        assert!(Symbols::parse(&unmarked).is_err());
        let mut long = good;
        long[16] = 9;
        assert!(Symbols::parse(&long).is_err());
    }
}
