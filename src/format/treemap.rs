//! The two 64-bit bitmap encodings: Lance's row address treemap (index-formats §3.2) and the standard roaring treemap
//! (§3.3, table-format §6.5). They differ in the width of the count and in the length prefix.

use roaring::{RoaringBitmap, RoaringTreemap};

use super::bitmap::{decode_prefix, decode_roaring32, encode_roaring32_plain};
use crate::error::{Error, Result};

/// Decodes a row address treemap: `u32 n`, then n × (`u32 high`, `u32 length`, roaring32); length 0 = the whole high block.
///
/// Blocks that are selected as a whole become full bitmaps (2^32 values, 2.6 MiB of memory each), so at most 16 of them are
/// accepted. Lance selects no block as a whole in the bitmaps of index files.
pub fn decode_row_treemap(object: &str, bytes: &[u8]) -> Result<RoaringTreemap> {
    let count = u32_at(bytes, 0).ok_or_else(|| cut(object, bytes.len()))?;
    let mut at = 4usize;
    let mut previous = None;
    let mut full = 0u32;
    // Grown entry by entry: the count alone never reserves memory.
    let mut blocks: Vec<(u32, RoaringBitmap)> = Vec::new();
    for _ in 0..count {
        let (Some(high), Some(length)) = (u32_at(bytes, at), u32_at(bytes, at + 4)) else {
            return Err(cut(object, bytes.len()));
        };
        at += 8;
        ascending(object, &mut previous, high)?;
        if length == 0 {
            full += 1;
            if full > 16 {
                return Err(Error::corrupt(object, "row treemap: more than 16 blocks are selected as a whole"));
            }
            blocks.push((high, RoaringBitmap::full()));
            continue;
        }
        let end = usize::try_from(length).ok().and_then(|n| at.checked_add(n));
        let body = end.and_then(|end| bytes.get(at..end)).ok_or_else(|| cut(object, bytes.len()))?;
        blocks.push((high, decode_roaring32(object, body)?));
        at += body.len();
    }
    finish(object, bytes, at, blocks)
}

/// Encodes a row address treemap with array and bitset containers, as Lance does; full blocks are written out.
pub fn encode_row_treemap(map: &RoaringTreemap) -> Vec<u8> {
    let blocks: Vec<_> = map.bitmaps().filter(|(_, b)| !b.is_empty()).collect();
    let mut out = (blocks.len() as u32).to_le_bytes().to_vec();
    for (high, bitmap) in blocks {
        let body = encode_roaring32_plain(bitmap);
        out.extend_from_slice(&high.to_le_bytes());
        out.extend_from_slice(&(body.len() as u32).to_le_bytes());
        out.extend_from_slice(&body);
    }
    out
}

/// Decodes the standard roaring treemap: `u64 n`, then n × (`u32 high`, roaring32).
pub fn decode_roaring64(object: &str, bytes: &[u8]) -> Result<RoaringTreemap> {
    let count = bytes.get(..8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes).ok_or_else(|| cut(object, bytes.len()))?;
    let mut at = 8usize;
    let mut previous = None;
    let mut blocks = Vec::new();
    for _ in 0..count {
        let high = u32_at(bytes, at).ok_or_else(|| cut(object, bytes.len()))?;
        at += 4;
        ascending(object, &mut previous, high)?;
        let (bitmap, used) = decode_prefix(object, bytes.get(at..).unwrap_or_default())?;
        blocks.push((high, bitmap));
        at += used;
    }
    finish(object, bytes, at, blocks)
}

/// Encodes the standard roaring treemap with array and bitset containers.
pub fn encode_roaring64(map: &RoaringTreemap) -> Vec<u8> {
    let blocks: Vec<_> = map.bitmaps().filter(|(_, b)| !b.is_empty()).collect();
    let mut out = (blocks.len() as u64).to_le_bytes().to_vec();
    for (high, bitmap) in blocks {
        out.extend_from_slice(&high.to_le_bytes());
        out.extend_from_slice(&encode_roaring32_plain(bitmap));
    }
    out
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn cut(object: &str, len: usize) -> Error {
    Error::corrupt(object, format!("a treemap is cut off at byte {len}"))
}

fn ascending(object: &str, previous: &mut Option<u32>, high: u32) -> Result<()> {
    if previous.is_some_and(|p| p >= high) {
        return Err(Error::corrupt(object, format!("treemap: high word {high} follows one that is not smaller")));
    }
    *previous = Some(high);
    Ok(())
}

fn finish(object: &str, bytes: &[u8], at: usize, blocks: Vec<(u32, RoaringBitmap)>) -> Result<RoaringTreemap> {
    if at != bytes.len() {
        return Err(Error::corrupt(object, format!("a treemap of {at} bytes is followed by {} more", bytes.len() - at)));
    }
    Ok(RoaringTreemap::from_bitmaps(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        digits.chunks(2).map(|c| u8::from_str_radix(std::str::from_utf8(c).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn row_treemap_golden() {
        let map: RoaringTreemap = [1, 3, (2 << 32) + 5].into_iter().collect();
        let bytes = hex("02000000 00000000 14000000 3a300000 01000000 0000 0100 10000000 0100 0300
             02000000 12000000 3a300000 01000000 0000 0000 10000000 0500");
        assert_eq!(encode_row_treemap(&map), bytes);
        assert_eq!(decode_row_treemap("t", &bytes).unwrap(), map);
        assert_eq!(encode_row_treemap(&RoaringTreemap::new()), hex("00000000"));
        assert!(decode_row_treemap("t", &hex("00000000")).unwrap().is_empty());
        for cut in 0..bytes.len() {
            assert!(decode_row_treemap("t", &bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn roaring64_golden() {
        let map: RoaringTreemap = [1, (1 << 32) + 2].into_iter().collect();
        let bytes = hex("0200000000000000 00000000 3a300000 01000000 0000 0000 10000000 0100
             01000000 3a300000 01000000 0000 0000 10000000 0200");
        assert_eq!(encode_roaring64(&map), bytes);
        assert_eq!(decode_roaring64("t", &bytes).unwrap(), map);
        for cut in 0..bytes.len() {
            assert!(decode_roaring64("t", &bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_full_block_is_honoured_and_bounded() {
        let map = decode_row_treemap("t", &hex("01000000 07000000 00000000")).unwrap();
        assert!(map.contains(7 << 32) && map.contains((7 << 32) + u64::from(u32::MAX)));
        assert_eq!(map.len(), 1 << 32);
        let mut many = 100u32.to_le_bytes().to_vec();
        for high in 0u32..100 {
            many.extend_from_slice(&high.to_le_bytes());
            many.extend_from_slice(&[0; 4]);
        }
        assert!(decode_row_treemap("t", &many).unwrap_err().message().contains("as a whole"));
    }

    #[test]
    fn hostile_counts_cost_nothing() {
        assert!(decode_row_treemap("t", &hex("ffffffff")).is_err());
        assert!(decode_roaring64("t", &hex("ffffffffffffffff")).is_err());
        assert!(decode_row_treemap("t", &hex("02000000 01000000 00000000 01000000 00000000")).is_err(), "not ascending");
        assert!(decode_row_treemap("t", &hex("01000000 01000000 ffffffff 3a300000")).is_err());
        assert!(decode_row_treemap("t", &hex("00000000 00")).is_err(), "trailing");
    }
}
