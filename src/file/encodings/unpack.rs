//! The kernel of bit packing: groups of 1024 values (file-format §7.1).
//!
//! Written once for any width, with the width as a number: row after row of a group is a shift and a mask over 128 bytes,
//! which the compiler turns into vector instructions as it is. Code for each of the 120 widths, as libraries have it, is
//! 200 KB and no faster.

use arrow::datatypes::ArrowNativeType;

use crate::file::fault::{Decoded, corrupt};

/// Values of a group.
pub(crate) const GROUP: usize = 1024;
/// Bytes of one word of every lane, whatever the size of words.
const PLANE: usize = 128;
/// Order of the blocks of eight rows.
const ORDER: [usize; 8] = [0, 4, 2, 6, 1, 5, 3, 7];

/// A word that values are packed in.
pub(crate) trait Word: ArrowNativeType {
    /// Bytes.
    const BYTES: usize;

    /// Values of one row, from the plane they begin in and the next one.
    fn row(low: &[u8; PLANE], high: &[u8; PLANE], shift: usize, width: usize, out: &mut [Self]);
}

macro_rules! word {
    ($($ty:ty),*) => { $(impl Word for $ty {
        const BYTES: usize = size_of::<$ty>();

        #[inline(always)]
        fn row(low: &[u8; PLANE], high: &[u8; PLANE], shift: usize, width: usize, out: &mut [$ty]) {
            const BYTES: usize = size_of::<$ty>();
            const BITS: usize = 8 * BYTES;
            let mask = <$ty>::MAX >> (BITS - width.clamp(1, BITS));
            let (low, high) = (low.as_chunks::<BYTES>().0, high.as_chunks::<BYTES>().0);
            if shift + width <= BITS {
                for (out, low) in out.iter_mut().zip(low) {
                    *out = <$ty>::from_le_bytes(*low) >> shift & mask;
                }
            } else {
                for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
                    *out = (<$ty>::from_le_bytes(*low) >> shift | <$ty>::from_le_bytes(*high) << (BITS - shift)) & mask;
                }
            }
        }
    })* };
}
word!(u8, u16, u32, u64);

/// Unpacks a group of values of `width` bits, at least 1, from `128 * width` bytes.
pub(crate) fn unpack<T: Word>(width: usize, packed: &[u8], out: &mut [T]) -> Decoded<()> {
    let bits = 8 * T::BYTES;
    let (planes, rest) = packed.as_chunks::<PLANE>();
    if width == 0 || width > bits || planes.len() != width || !rest.is_empty() || out.len() != GROUP {
        return corrupt(format!("a packed group of {} bytes for {width}-bit values in {bits}-bit words", packed.len()));
    }
    let lanes = GROUP / bits;
    for row in 0..bits {
        let (plane, shift) = (row * width / bits, row * width % bits);
        let start = ORDER.get(row / 8).copied().unwrap_or(0) * 16 + row % 8 * 128;
        // The last row ends with its plane.
        let Some(low) = planes.get(plane) else { break };
        let high = planes.get(plane + 1).unwrap_or(low);
        if let Some(out) = out.get_mut(start..start + lanes) {
            T::row(low, high, shift, width, out);
        }
    }
    Ok(())
}
