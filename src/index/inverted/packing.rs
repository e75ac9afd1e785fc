//! Small integers as bytes: varints, and 128 values packed vertically in four lanes (index-formats §3.5, §11.8).

use crate::format::wire;

/// Values of a packed group.
pub(super) const GROUP: usize = 128;
const LANES: usize = 4;

/// Appends a LEB128 number.
#[inline]
pub(super) fn put_varint(out: &mut Vec<u8>, value: u32) {
    wire::put_varint(out, u64::from(value));
}

/// Bytes being read from the front; every read says `None` past the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Option<u32> {
        self.wide().and_then(|value| u32::try_from(value).ok())
    }

    /// A number of at most five bytes.
    #[inline]
    pub(super) fn wide(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Appends the 128 values of a packed group.
    pub(super) fn packed(&mut self, out: &mut Vec<u32>) -> Option<()> {
        let width = usize::from(self.byte()?);
        unpack(self.take(16 * width)?, width, out)
    }
}

/// Appends the width of the largest value and the packed values.
pub(super) fn put_packed(out: &mut Vec<u8>, values: &[u32; GROUP]) {
    let width = u32::BITS - values.iter().fold(0, |all, value| all | value).leading_zeros();
    out.push(width as u8);
    // The next bits of each lane, whose words come in turn.
    let (mut lanes, mut bits) = ([0u64; LANES], 0);
    for row in values.as_chunks::<LANES>().0 {
        lanes.iter_mut().zip(row).for_each(|(lane, value)| *lane |= u64::from(*value) << bits);
        bits += width;
        if bits >= u32::BITS {
            for lane in &mut lanes {
                out.extend_from_slice(&(*lane as u32).to_le_bytes());
                *lane >>= u32::BITS;
            }
            bits -= u32::BITS;
        }
    }
}

fn unpack(bytes: &[u8], width: usize, out: &mut Vec<u32>) -> Option<()> {
    if width > 32 {
        return None;
    }
    let (words, _) = bytes.as_chunks::<4>();
    let word = |index: usize| words.get(index).map_or(0, |word| u64::from(u32::from_le_bytes(*word)));
    let mask = (1u64 << width) - 1;
    out.extend((0..GROUP).map(|at| {
        let (lane, bit) = (at % LANES, at / LANES * width);
        let low = word(bit / 32 * LANES + lane);
        let high = word((bit / 32 + 1) * LANES + lane);
        ((low | high << 32) >> (bit % 32) & mask) as u32
    }));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_golden_block() {
        let values: [u32; GROUP] = std::array::from_fn(|i| i as u32);
        let mut out = Vec::new();
        put_packed(&mut out, &values);
        assert_eq!(out.len(), 1 + 112);
        assert_eq!(out[..17], [7, 0, 2, 0x82, 1, 0x81, 0x42, 0xa2, 0x11, 2, 0x83, 0xc2, 0x21, 0x83, 0xc3, 0xe2, 0x31]);
        let mut back = Vec::new();
        assert!(Reader(&out).packed(&mut back).is_some());
        assert_eq!(back, values);
    }

    #[test]
    fn every_width_comes_back() {
        for width in 0..=32u32 {
            let values: [u32; GROUP] =
                std::array::from_fn(|i| (0x9e37_79b9u32.wrapping_mul(i as u32 + 7)).checked_shr(32 - width).unwrap_or(0));
            let mut out = Vec::new();
            put_packed(&mut out, &values);
            let mut back = Vec::new();
            let mut reader = Reader(&out);
            reader.packed(&mut back).unwrap();
            assert!(reader.is_empty() && back == values, "width {width}");
            assert!(Reader(&out[..out.len() - 1]).packed(&mut Vec::new()).is_none() || out.len() == 1);
        }
        assert!(Reader(&[33; 1 + 16 * 33]).packed(&mut Vec::new()).is_none());
    }

    #[test]
    fn varints() {
        for value in [0, 1, 127, 128, 300, 1 << 21, u32::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut reader = Reader(&out);
            assert_eq!(reader.varint(), Some(value));
            assert!(reader.is_empty());
        }
        assert_eq!(Reader(&[0xff; 5]).varint(), None);
        assert_eq!(Reader(&[0x80]).varint(), None);
    }
}
