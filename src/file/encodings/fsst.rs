//! FSST strings (file-format §7.3): a table of up to 255 symbols of 1 to 8 bytes, one code byte per symbol.

use super::variable::Variable;
use super::{ChunkReader, ItemReader, kind, name};
use crate::file::fault::{Decoded, corrupt, le, part, unsupported};
use crate::file::messages::encoding21::{self as message, Compressive};
use crate::file::values::{Physical, Texts, Values};

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

    /// Appends the decoded form of one value to `out`.
    pub(crate) fn decode(&self, value: &[u8], out: &mut Vec<u8>) -> Decoded<()> {
        if !self.compressed {
            out.extend_from_slice(value);
            return Ok(());
        }
        // Every symbol is stored as 8 bytes and overwritten past its length by the next one: no copy of variable length.
        let start = out.len();
        out.resize(start + 8 * value.len(), 0);
        let mut rest = out.get_mut(start..).unwrap_or_default();
        let mut written = 0usize;
        let mut codes = value.iter();
        while let Some(code) = codes.next() {
            if *code == ESCAPE {
                let (Some(literal), Some(slot)) = (codes.next(), rest.first_mut()) else {
                    return corrupt("FSST codes that end inside an escape");
                };
                *slot = *literal;
                written += 1;
                rest = rest.get_mut(1..).unwrap_or_default();
                continue;
            }
            let Some((symbol, length)) = self.codes.get(usize::from(*code)).filter(|(_, length)| *length > 0) else {
                return corrupt(format!("FSST code {code}, which has no symbol"));
            };
            if let Some(slot) = rest.first_chunk_mut::<8>() {
                *slot = *symbol;
            }
            written += usize::from(*length);
            rest = rest.get_mut(usize::from(*length)..).unwrap_or_default();
        }
        out.truncate(start + written);
        Ok(())
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
        self.values.each(buffers, n, |value| value_to(&self.symbols, value, out))
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
        value_to(&self.symbols, value, out.texts()?)
    }
}

fn value_to(symbols: &Symbols, value: &[u8], out: &mut Texts) -> Decoded<()> {
    symbols.decode(value, &mut out.data)?;
    out.end_value()
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
        let mut out = b"kept".to_vec();
        symbols.decode(&[1, 2, 255, b'!', 0, 255, 255], &mut out).unwrap();
        assert_eq!(out, b"kepthello world!a\xff");
        assert!(symbols.decode(&[3], &mut out).is_err());
        assert!(symbols.decode(&[1, 255], &mut out).is_err());
        let mut plain = Vec::new();
        Symbols::parse(&table(&["a"], false)).unwrap().decode(&[255, 9], &mut plain).unwrap();
        assert_eq!(plain, [255, 9]);
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
