//! FSST strings (file-format §7.3): a table of up to 255 symbols of 1 to 8 bytes, one code byte per symbol.

use super::variable::{Slots, Variable, number};
use super::{ChunkReader, ItemReader, kind, name, single};
use crate::file::fault::{Decoded, corrupt, le, part, unsupported};
use crate::file::messages::encoding21::{self as message, Compressive};
use crate::file::values::{Physical, Texts, Values, offset};

const TABLE_BYTES: usize = 2312;
const MAGIC: u64 = 0x4653_5354;
const ESCAPE: u8 = 255;

/// The output grows by so much at a time, so that no more is cleared than is written.
const STEP: usize = 2 << 10;

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

    /// Decodes one value into `out` from `at` on; returns where it ends. `out` is at least so long afterwards: what is past the
    /// last value's end is to be cut off.
    #[inline(always)]
    pub(crate) fn decode(&self, value: &[u8], out: &mut Vec<u8>, mut at: usize) -> Decoded<usize> {
        if !self.compressed {
            out.truncate(at);
            out.extend_from_slice(value);
            return Ok(out.len());
        }
        // Every symbol is stored as 8 bytes and overwritten past its length by the next one: no copy of variable length.
        let room = at + 8 * value.len() + 8;
        if out.len() < room {
            out.resize(room + STEP, 0);
        }
        let out = out.as_mut_slice();
        let mut codes = value.iter();
        while let Some(code) = codes.next() {
            let code = usize::from(*code);
            let (Some(symbol), Some(length)) = (self.symbols.get(code), self.lengths.get(code)) else { continue };
            let (mut symbol, mut length) = (*symbol, usize::from(*length));
            if length == 0 {
                if code != usize::from(ESCAPE) {
                    return corrupt(format!("FSST code {code}, which has no symbol"));
                }
                let Some(literal) = codes.next() else { return corrupt("FSST codes that end inside an escape") };
                (symbol, length) = (u64::from(*literal), 1);
            }
            match out.get_mut(at..).and_then(|room| room.first_chunk_mut::<8>()) {
                Some(slot) => *slot = symbol.to_le_bytes(),
                None => return corrupt("strings that outgrow their room"),
            }
            at += length;
        }
        Ok(at)
    }
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

impl FsstChunks {
    /// All values, whose ends are numbers of `W` bytes.
    fn decode<const W: usize>(&self, slots: &Slots<'_>, out: &mut Texts) -> Decoded<()> {
        let mut at = out.data.len();
        let mut from = 0usize;
        for (index, end) in slots.table.as_chunks::<W>().0.iter().enumerate() {
            let to = usize::try_from(number(end)).unwrap_or(usize::MAX);
            if index > 0 {
                let Some(value) = slots.bytes.get(from..to) else {
                    return corrupt(format!("string offsets {from} to {to} in {} bytes", slots.bytes.len()));
                };
                at = self.symbols.decode(value, &mut out.data, at)?;
                out.offsets.push(offset(at)?);
            }
            from = to;
        }
        out.data.truncate(at);
        Ok(())
    }
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
        if slots.width == 4 { self.decode::<4>(&slots, out) } else { self.decode::<8>(&slots, out) }
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
        let out = out.texts()?;
        let at = out.data.len();
        let end = self.symbols.decode(value, &mut out.data, at)?;
        out.data.truncate(end);
        out.end_value()
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
        let decode = |symbols: &Symbols, codes: &[u8]| {
            let mut out = vec![0; 4];
            let end = symbols.decode(codes, &mut out, 4)?;
            Ok::<_, crate::file::fault::Fault>(out[4..end].to_vec())
        };
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
