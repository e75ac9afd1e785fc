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
        for (plane, byte) in planes.chunks_exact(n.max(1)).zip(0usize..) {
            for (slot, value) in target.iter_mut().skip(byte).step_by(width).zip(plane) {
                *slot = *value;
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
        assert!(reader(32).unwrap().read(&[&[1, 2, 3]], 1, &mut out).is_err());
        assert!(reader(64).is_err());
    }
}
