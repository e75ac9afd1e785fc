//! Byte planes (file-format §6.1): plane `j` holds byte `j` of every value, so that floats compress better.

use super::{ChunkReader, kind, name, plain, single};
use crate::file::fault::{Decoded, corrupt, unsupported};
use crate::file::messages::encoding21::{self as message, Compressive};
use crate::file::values::{Physical, Values};

/// Values of so many bytes, one plane per byte.
pub(crate) struct ByteStreamSplit {
    width: usize,
}

impl ByteStreamSplit {
    pub(crate) fn new(message: &message::ByteStreamSplit, physical: &Physical) -> Decoded<ByteStreamSplit> {
        let flat = match kind(message.values.as_deref())? {
            Compressive::Flat(flat) => flat,
            other => return unsupported(format!("ByteStreamSplit over {}", name(other))),
        };
        plain(flat.data.as_ref(), "Flat")?;
        match physical {
            Physical::Fixed(width) if flat.bits_per_value == 8 * *width as u64 => Ok(ByteStreamSplit { width: *width }),
            _ => corrupt(format!("ByteStreamSplit of {}-bit values in a column of other values", flat.bits_per_value)),
        }
    }
}

/// Words of one byte of each plane, the lowest first.
#[inline(always)]
fn words([a, b, c, d]: [&[u8]; 4]) -> impl Iterator<Item = u32> {
    let low = a.iter().zip(b).map(|(a, b)| u32::from(*a) | u32::from(*b) << 8);
    let high = c.iter().zip(d).map(|(c, d)| u32::from(*c) << 16 | u32::from(*d) << 24);
    low.zip(high).map(|(low, high)| low | high)
}

impl ChunkReader for ByteStreamSplit {
    fn read(&self, buffers: &[&[u8]], n: usize, out: &mut Values) -> Decoded<()> {
        let planes = single(buffers)?;
        let width = self.width;
        if Some(planes.len()) != n.checked_mul(width) {
            return corrupt(format!("{} bytes of byte planes for {n} values of {width} bytes", planes.len()));
        }
        let out = out.fixed(width)?;
        let start = out.len();
        out.resize(start + planes.len(), 0);
        let target = out.as_slice_mut().get_mut(start..).unwrap_or_default();
        let plane = |index: usize| planes.get(index * n..(index + 1) * n).unwrap_or_default();
        let four = |first: usize| [plane(first), plane(first + 1), plane(first + 2), plane(first + 3)];
        match width {
            4 => target.as_chunks_mut::<4>().0.iter_mut().zip(words(four(0))).for_each(|(slot, word)| *slot = word.to_le_bytes()),
            8 => {
                let words = words(four(0)).zip(words(four(4)));
                for (slot, (low, high)) in target.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                    *slot = (u64::from(low) | u64::from(high) << 32).to_le_bytes();
                }
            }
            _ => {
                for (plane, byte) in planes.chunks_exact(n.max(1)).zip(0usize..) {
                    for (slot, value) in target.iter_mut().skip(byte).step_by(width).zip(plane) {
                        *slot = *value;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::messages::encoding21::{CompressiveEncoding, Flat};

    fn reader(bits: u64) -> Decoded<ByteStreamSplit> {
        let flat = CompressiveEncoding { kind: Some(Compressive::Flat(Flat { bits_per_value: bits, data: None })) };
        ByteStreamSplit::new(&message::ByteStreamSplit { values: Some(Box::new(flat)) }, &Physical::Fixed(4))
    }

    #[test]
    fn planes_become_values() {
        let mut out = Values::new(&Physical::Fixed(4), 3).unwrap();
        reader(32).unwrap().read(&[&[1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12]], 3, &mut out).unwrap();
        assert_eq!(out.fixed(4).unwrap().as_slice(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        let mut out = Values::new(&Physical::Fixed(8), 2).unwrap();
        let planes: Vec<u8> = (0..16).map(|at| at / 2 + 10 * (at % 2)).collect();
        ByteStreamSplit { width: 8 }.read(&[&planes], 2, &mut out).unwrap();
        assert_eq!(out.fixed(8).unwrap().as_slice(), [0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17]);
        let mut out = Values::new(&Physical::Fixed(2), 2).unwrap();
        ByteStreamSplit { width: 2 }.read(&[&[1, 3, 2, 4]], 2, &mut out).unwrap();
        assert_eq!(out.fixed(2).unwrap().as_slice(), [1, 2, 3, 4]);
        let mut out = Values::new(&Physical::Fixed(4), 3).unwrap();
        assert!(reader(32).unwrap().read(&[&[1, 2, 3]], 1, &mut out).is_err());
        assert!(reader(64).is_err());
    }
}
