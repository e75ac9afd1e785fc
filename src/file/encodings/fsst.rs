//! FSST strings (file-format §7.3): a table of up to 255 symbols of 1 to 8 bytes, one code byte per symbol.

use super::variable::Variable;
use super::{ChunkReader, ItemReader, kind, name};
use crate::file::fault::{Decoded, corrupt, le, part, unsupported};
use crate::file::messages::encoding21::{self as message, Compressive};
use crate::file::values::{Physical, Values, offset};

const TABLE_BYTES: usize = 2312;
const MAGIC: u64 = 0x4653_5354;
const ESCAPE: u8 = 255;

/// A parsed symbol table.
pub(crate) struct Symbols {
    /// Bytes and length per code; length 0 = no such code.
    codes: Box<[([u8; 8], u8); 256]>,
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
        let symbols = part(table, 8, 8 * count, "FSST symbols")?;
        let lengths = part(table, 8 + 8 * count, count, "FSST symbol lengths")?;
        let mut codes = Box::new([([0u8; 8], 0u8); 256]);
        for ((code, symbol), length) in codes.iter_mut().zip(symbols.as_chunks::<8>().0).zip(lengths) {
            if !(1..=8).contains(length) {
                return corrupt(format!("an FSST symbol of {length} bytes"));
            }
            *code = (*symbol, *length);
        }
        Ok(Symbols { codes, compressed: header >> 24 & 1 == 1 })
    }

    /// Most bytes that `codes` bytes of code can stand for, and room for the last symbol.
    fn room(codes: usize) -> usize {
        8 * codes + 8
    }

    /// Appends one decoded value to `out`.
    pub(crate) fn append(&self, value: &[u8], out: &mut Vec<u8>) -> Decoded<()> {
        let at = out.len();
        out.resize(at + Symbols::room(value.len()), 0);
        let end = self.decode(value, out, at)?;
        out.truncate(end);
        Ok(())
    }

    /// Decodes one value into `out` from `at` on, where [`Symbols::room`] bytes are; returns where it ends.
    #[inline(always)]
    fn decode(&self, value: &[u8], out: &mut [u8], mut at: usize) -> Decoded<usize> {
        if !self.compressed {
            return match out.get_mut(at..at + value.len()) {
                Some(slot) => {
                    slot.copy_from_slice(value);
                    Ok(at + value.len())
                }
                None => corrupt("strings that outgrow their chunk"),
            };
        }
        let mut codes = value.iter();
        while let Some(code) = codes.next() {
            // Every symbol is stored as 8 bytes and overwritten past its length by the next one: no copy of variable length.
            let (symbol, length) = match self.codes.get(usize::from(*code)) {
                Some((symbol, length)) if *length > 0 => (*symbol, *length),
                _ if *code == ESCAPE => match codes.next() {
                    Some(literal) => ([*literal, 0, 0, 0, 0, 0, 0, 0], 1),
                    None => return corrupt("FSST codes that end inside an escape"),
                },
                _ => return corrupt(format!("FSST code {code}, which has no symbol")),
            };
            match out.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<8>()) {
                Some(slot) => *slot = symbol,
                None => return corrupt("strings that outgrow their chunk"),
            }
            at += usize::from(length);
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

impl ChunkReader for FsstChunks {
    fn buffers(&self) -> usize {
        self.values.buffers()
    }

    fn read(&self, buffers: &[&[u8]], n: usize, out: &mut Values) -> Decoded<()> {
        let out = out.texts()?;
        let mut at = out.data.len();
        // Room for all values at once: to make it value by value costs more than decoding.
        out.data.resize(at + Symbols::room(buffers.iter().map(|buffer| buffer.len()).sum()), 0);
        self.values.each(buffers, n, |value| {
            at = self.symbols.decode(value, &mut out.data, at)?;
            out.offsets.push(offset(at)?);
            Ok(())
        })?;
        out.data.truncate(at);
        Ok(())
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
        self.symbols.append(value, &mut out.data)?;
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
            let mut out = vec![0; 4 + Symbols::room(codes.len())];
            let end = symbols.decode(codes, &mut out, 4)?;
            Ok::<_, crate::file::fault::Fault>(out[4..end].to_vec())
        };
        assert_eq!(decode(&symbols, &[1, 2, 255, b'!', 0, 255, 255]).unwrap(), b"hello world!a\xff");
        assert_eq!(decode(&symbols, &[1, 1, 1]).unwrap(), b"hello wohello wohello wo");
        assert!(decode(&symbols, &[3]).is_err());
        assert!(decode(&symbols, &[1, 255]).is_err());
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
