//! Plain values: bits restart in each chunk, wider values are whole bytes (file-format §6.1, §6.2).

use super::{BlockReader, ChunkReader, ItemReader, plain, single};
use crate::file::fault::{Decoded, corrupt, part};
use crate::file::messages::encoding21 as message;
use crate::file::values::{Physical, Values};

/// Plain values of the column's width.
pub(crate) struct Flat {
    physical: Physical,
}

impl Flat {
    pub(crate) fn new(message: &message::Flat, physical: &Physical) -> Decoded<Flat> {
        plain(message.data.as_ref(), "Flat")?;
        let Some(expected) = physical.plain_bits().filter(|_| !matches!(physical, Physical::List(..))) else {
            return corrupt("Flat in a column without fixed width");
        };
        if message.bits_per_value != expected {
            return corrupt(format!("Flat {} in a column of {expected}-bit values", message.bits_per_value));
        }
        Ok(Flat { physical: physical.clone() })
    }
}

impl BlockReader for Flat {
    fn read(&self, block: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        match (&self.physical, out) {
            (Physical::Fixed(width), out) => {
                let wanted = n.saturating_mul(*width);
                if block.len() != wanted {
                    return corrupt(format!("{} bytes of plain values, {n} of {width} bytes were announced", block.len()));
                }
                out.fixed(*width)?.extend_from_slice(block);
                Ok(())
            }
            (Physical::Bits, Values::Bits(bits)) => {
                let bytes = part(block, 0, n.div_ceil(8), "a bitmap")?;
                bits.append_packed_range(0..n, bytes);
                Ok(())
            }
            _ => corrupt("Flat in a column without fixed width"),
        }
    }
}

/// One plain value of a full-zip page; a bool is a whole byte there.
pub(crate) struct FlatItem {
    bits: bool,
    bytes: usize,
}

impl FlatItem {
    pub(crate) fn new(message: &message::Flat, physical: &Physical) -> Decoded<FlatItem> {
        plain(message.data.as_ref(), "Flat")?;
        let (bits, bytes) = match physical {
            Physical::Bits => (true, 1),
            Physical::Fixed(width) => (false, *width),
            _ => return corrupt("Flat in a column without fixed width"),
        };
        if message.bits_per_value != 8 * bytes as u64 {
            return corrupt(format!("Flat {} in a column of {bytes}-byte values", message.bits_per_value));
        }
        Ok(FlatItem { bits, bytes })
    }
}

impl ItemReader for FlatItem {
    fn read(&self, value: &[u8], out: &mut Values) -> Decoded<()> {
        match (out, value) {
            _ if value.len() != self.bytes => corrupt(format!("a value of {} bytes, not {}", value.len(), self.bytes)),
            (Values::Bits(bits), [byte]) if self.bits => {
                bits.append(*byte != 0);
                Ok(())
            }
            (out, _) => out.push_plain(value),
        }
    }
}

impl ChunkReader for Flat {
    fn read(&self, buffers: &[&[u8]], n: usize, out: &mut Values) -> Decoded<()> {
        BlockReader::read(self, single(buffers)?, n, out)
    }
}
