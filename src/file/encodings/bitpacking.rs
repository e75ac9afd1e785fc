//! Packed groups of 1024 values (file-format §7.1), with the width in front (inline) or in the message (out of line).

use arrow::buffer::MutableBuffer;

use super::unpack::{self, GROUP, Word};
use super::{BlockReader, ChunkReader, MAX_BLOCK_VALUES, plain, single, word_width};
use crate::file::fault::{Decoded, corrupt, part};
use crate::file::messages::encoding21::{self as message, Compressive};
use crate::file::values::{Physical, Values};

/// Unpacks one group of `width`-bit values onto the end of `out`.
fn unpack<T: Word>(width: usize, packed: &[u8], out: &mut MutableBuffer) -> Decoded<()> {
    let start = out.len() / T::BYTES;
    out.resize(out.len() + GROUP * T::BYTES, 0);
    if width == 0 && packed.is_empty() {
        return Ok(());
    }
    match out.typed_data_mut::<T>().get_mut(start..) {
        Some(target) => unpack::unpack(width, packed, target),
        None => corrupt("a packed group at an odd position"),
    }
}

/// Unpacks one group of `width`-bit values in words of `bytes` bytes onto the end of `out`.
pub(crate) fn unpack_group(bytes: usize, width: usize, packed: &[u8], out: &mut MutableBuffer) -> Decoded<()> {
    match bytes {
        1 => unpack::<u8>(width, packed, out),
        2 => unpack::<u16>(width, packed, out),
        4 => unpack::<u32>(width, packed, out),
        8 => unpack::<u64>(width, packed, out),
        other => corrupt(format!("packed values of {other} bytes")),
    }
}

/// One group of at most 1024 values, its width in the first word.
pub(crate) struct Inline {
    bytes: usize,
}

impl Inline {
    pub(crate) fn new(message: &message::InlineBitpacking, physical: &Physical) -> Decoded<Inline> {
        plain(message.values.as_ref(), "InlineBitpacking")?;
        Ok(Inline { bytes: word_width(message.uncompressed_bits, physical, "InlineBitpacking")? })
    }

    fn group<T: Word>(&self, block: &[u8], n: usize, out: &mut MutableBuffer) -> Decoded<()> {
        if n > GROUP {
            return corrupt(format!("{n} values in one packed group of {GROUP}"));
        }
        let width = part(block, 0, T::BYTES, "a packed group")?.iter().rev().fold(0u64, |w, b| w << 8 | u64::from(*b));
        let width = usize::try_from(width).unwrap_or(usize::MAX);
        let before = out.len();
        unpack::<T>(width, block.get(T::BYTES..).unwrap_or_default(), out)?;
        out.truncate(before + n * T::BYTES);
        Ok(())
    }
}

impl BlockReader for Inline {
    fn read(&self, block: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        let out = out.fixed(self.bytes)?;
        match self.bytes {
            1 => self.group::<u8>(block, n, out),
            2 => self.group::<u16>(block, n, out),
            4 => self.group::<u32>(block, n, out),
            _ => self.group::<u64>(block, n, out),
        }
    }
}

impl ChunkReader for Inline {
    fn read(&self, buffers: &[&[u8]], n: usize, out: &mut Values) -> Decoded<()> {
        BlockReader::read(self, single(buffers)?, n, out)
    }
}

/// Whole groups, then a tail that is packed or plain.
pub(crate) struct OutOfLine {
    bytes: usize,
    width: usize,
}

impl OutOfLine {
    pub(crate) fn new(message: &message::OutOfLineBitpacking, physical: &Physical) -> Decoded<OutOfLine> {
        let bytes = word_width(message.uncompressed_bits, physical, "OutOfLineBitpacking")?;
        let inner = message.values.as_ref().and_then(|values| values.kind.as_ref());
        let Some(Compressive::Flat(flat)) = inner else { return corrupt("OutOfLineBitpacking without its packed width") };
        plain(flat.data.as_ref(), "Flat")?;
        match usize::try_from(flat.bits_per_value) {
            Ok(width) if width <= 8 * bytes => Ok(OutOfLine { bytes, width }),
            _ => corrupt(format!("OutOfLineBitpacking of {} bits in {bytes}-byte words", flat.bits_per_value)),
        }
    }

    fn groups<T: Word>(&self, block: &[u8], n: usize, out: &mut MutableBuffer) -> Decoded<()> {
        let group = 128 * self.width;
        let tail = n % GROUP;
        let whole = (n / GROUP) * group;
        let rest = block.len().checked_sub(whole).unwrap_or(usize::MAX);
        if n > MAX_BLOCK_VALUES || !(rest == tail * T::BYTES || rest == if tail == 0 { 0 } else { group }) {
            return corrupt(format!("{} bytes of {}-bit packed values, {n} were announced", block.len(), self.width));
        }
        out.reserve(n.next_multiple_of(GROUP) * T::BYTES);
        for index in 0..n / GROUP {
            unpack::<T>(self.width, part(block, index * group, group, "a packed group")?, out)?;
        }
        let last = part(block, whole, rest, "a packed tail")?;
        if rest == tail * T::BYTES {
            out.extend_from_slice(last);
        } else {
            let before = out.len();
            unpack::<T>(self.width, last, out)?;
            out.truncate(before + tail * T::BYTES);
        }
        Ok(())
    }
}

impl BlockReader for OutOfLine {
    fn read(&self, block: &[u8], n: usize, out: &mut Values) -> Decoded<()> {
        let out = out.fixed(self.bytes)?;
        match self.bytes {
            1 => self.groups::<u8>(block, n, out),
            2 => self.groups::<u16>(block, n, out),
            4 => self.groups::<u32>(block, n, out),
            _ => self.groups::<u64>(block, n, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::messages::encoding21::{CompressiveEncoding, Flat};

    fn value(index: u64, width: u32) -> u64 {
        if width == 0 { 0 } else { index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - width) }
    }

    /// §7.1 as written there, one bit at a time.
    fn pack(values: &[u64], bits: usize, width: usize) -> Vec<u8> {
        const ORDER: [usize; 8] = [0, 4, 2, 6, 1, 5, 3, 7];
        let lanes = 1024 / bits;
        let mut packed = vec![0u8; 128 * width];
        for row in 0..bits {
            for lane in 0..lanes {
                let index = ORDER[row / 8] * 16 + (row % 8) * 128 + lane;
                for bit in 0..width {
                    let at = row * width + bit;
                    let word = (at / bits) * lanes + lane;
                    let position = word * bits + at % bits;
                    packed[position / 8] |= ((values[index] >> bit & 1) as u8) << (position % 8);
                }
            }
        }
        packed
    }

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0u32, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 })
        })
    }

    fn physical(bits: usize) -> Physical {
        Physical::Fixed(bits / 8)
    }

    fn inline(bits: usize) -> Inline {
        Inline::new(&message::InlineBitpacking { uncompressed_bits: bits as u64, values: None }, &physical(bits)).unwrap()
    }

    fn out_of_line(bits: usize, width: usize) -> Decoded<OutOfLine> {
        let flat = Compressive::Flat(Flat { bits_per_value: width as u64, data: None });
        let values = Some(Box::new(CompressiveEncoding { kind: Some(flat) }));
        OutOfLine::new(&message::OutOfLineBitpacking { uncompressed_bits: bits as u64, values }, &physical(bits))
    }

    fn decoded(reader: &dyn BlockReader, bits: usize, block: &[u8], n: usize) -> Decoded<Vec<u64>> {
        let mut out = Values::new(&physical(bits), n).unwrap();
        reader.read(block, n, &mut out)?;
        let data = out.fixed(bits / 8).unwrap().as_slice();
        Ok(data.chunks(bits / 8).map(crate::file::fault::le).collect())
    }

    #[test]
    fn golden_groups() {
        let golden = [
            (8, 3, 0x2751_370d),
            (16, 1, 0xec4b_348f),
            (16, 11, 0x990f_6725),
            (32, 5, 0x2c4b_81bf),
            (32, 17, 0x429b_80f4),
            (64, 1, 0x4a58_82be),
            (64, 13, 0xd3e7_b8f7),
            (64, 41, 0x2760_5345u32),
        ];
        for (bits, width, crc) in golden {
            let values: Vec<u64> = (0..1024).map(|i| value(i, width)).collect();
            let packed = pack(&values, bits, width as usize);
            assert_eq!(crc32(&packed), crc, "{bits} {width}");
            let mut block = (width as u64).to_le_bytes()[..bits / 8].to_vec();
            block.extend(&packed);
            assert_eq!(decoded(&inline(bits), bits, &block, 1024).unwrap(), values);
            assert_eq!(decoded(&inline(bits), bits, &block, 1000).unwrap(), values[..1000]);
        }
    }

    #[test]
    fn every_width() {
        for bits in [8usize, 16, 32, 64] {
            for width in 0..=bits {
                let values: Vec<u64> = (0..1024).map(|i| value(i, width as u32)).collect();
                let mut block = (width as u64).to_le_bytes()[..bits / 8].to_vec();
                block.extend(pack(&values, bits, width));
                assert_eq!(decoded(&inline(bits), bits, &block, 1024).unwrap(), values, "{bits} {width}");
            }
        }
    }

    #[test]
    fn inline_groups_are_checked() {
        assert!(decoded(&inline(8), 8, &[9], 1).is_err());
        assert!(decoded(&inline(8), 8, &[1; 128], 1).is_err());
        assert!(decoded(&inline(8), 8, &[0], 1025).is_err());
        assert!(decoded(&inline(64), 64, &[0; 7], 1).is_err());
        assert_eq!(decoded(&inline(8), 8, &[0], 3).unwrap(), [0, 0, 0]);
        assert!(Inline::new(&message::InlineBitpacking { uncompressed_bits: 32, values: None }, &physical(64)).is_err());
    }

    #[test]
    fn out_of_line_tails() {
        let values: Vec<u64> = (0..1024).map(|i| value(i, 5)).collect();
        let group = pack(&values, 16, 5);
        let reader = out_of_line(16, 5).unwrap();
        let mut plain = group.clone();
        plain.extend([1, 0, 2, 0]);
        let mut expected = values.clone();
        expected.extend([1, 2]);
        assert_eq!(decoded(&reader, 16, &plain, 1026).unwrap(), expected);
        let packed = [group.clone(), group.clone()].concat();
        assert_eq!(decoded(&reader, 16, &packed, 1324).unwrap(), [&values[..], &values[..300]].concat());
        assert!(decoded(&reader, 16, &plain, 1027).is_err());
        assert!(decoded(&reader, 16, &group, 2048).is_err());
        assert_eq!(decoded(&out_of_line(16, 0).unwrap(), 16, &[], 3000).unwrap(), vec![0; 3000]);
        assert!(decoded(&out_of_line(16, 0).unwrap(), 16, &[], MAX_BLOCK_VALUES + 1).is_err());
        assert!(out_of_line(16, 17).is_err());
    }
}
