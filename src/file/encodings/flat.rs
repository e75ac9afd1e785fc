//! Plain values: bits restart in each chunk, wider values are whole bytes (file-format §6.1, §6.2).

use super::{BlockReader, ChunkReader, plain, single};
use crate::file::fault::{Decoded, corrupt, part};
use crate::file::messages::encoding21 as message;
use crate::file::values::{Physical, Values};

/// Plain values of the column's width.
pub(crate) struct Flat {
    physical: Physical,
}

impl Flat {
    pub(crate) fn new(message: &message::Flat, physical: Physical) -> Decoded<Flat> {
        plain(message.data.as_ref(), "Flat")?;
        let expected = match physical {
            Physical::Bits => 1,
            Physical::Fixed(width) => 8 * width as u64,
            Physical::Null | Physical::Variable(_) => return corrupt("Flat in a column without fixed width"),
        };
        if message.bits_per_value != expected {
            return corrupt(format!("Flat {} in a column of {expected}-bit values", message.bits_per_value));
        }
        Ok(Flat { physical })
    }
}

impl BlockReader for Flat {
    fn read(&self, block: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        match (self.physical, out) {
            (Physical::Fixed(width), out) => {
                let wanted = n.saturating_mul(width);
                if block.len() != wanted {
                    return corrupt(format!("{} bytes of plain values, {n} of {width} bytes were announced", block.len()));
                }
                out.fixed(width)?.extend_from_slice(block);
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

impl ChunkReader for Flat {
    fn read(&self, buffers: &[&[u8]], n: usize, out: &mut Values) -> Decoded<()> {
        BlockReader::read(self, single(buffers)?, n, out)
    }
}
