//! The portable 32-bit roaring serialization (table-format §6.3, index-formats §3.1).
//!
//! Foreign bytes are walked once before the roaring crate sees them, so that no size in them can make it allocate more than
//! the bytes at hand could describe.

use roaring::RoaringBitmap;

use crate::error::{Error, Result};

const COOKIE_PLAIN: u32 = 12346;
const COOKIE_RUNS: u32 = 12347;
const OFFSETS_FROM: usize = 4;
const ARRAY_MAX: usize = 4096;
const BITSET_BYTES: usize = 8192;

/// Decodes a whole buffer; trailing bytes are `CORRUPT_FILE`.
///
/// An empty buffer is an error too: where the format lets it mean "unknown", the caller has to tell that from the empty set.
pub fn decode_roaring32(object: &str, bytes: &[u8]) -> Result<RoaringBitmap> {
    let (bitmap, used) = decode_prefix(object, bytes)?;
    if used != bytes.len() {
        return Err(Error::corrupt(object, format!("a bitmap of {used} bytes is followed by {} more", bytes.len() - used)));
    }
    Ok(bitmap)
}

/// Decodes the bitmap at the start of `bytes`; returns it with the number of bytes it took.
pub fn decode_prefix(object: &str, bytes: &[u8]) -> Result<(RoaringBitmap, usize)> {
    let used = measure(bytes).map_err(|what| Error::corrupt(object, format!("bitmap: {what}")))?;
    let body = bytes.get(..used).ok_or_else(|| Error::internal("a measured bitmap is longer than its buffer"))?;
    let bitmap = RoaringBitmap::deserialize_from(body).map_err(|e| Error::corrupt(object, format!("bitmap: {e}")))?;
    Ok((bitmap, used))
}

/// Encodes with run containers wherever they are smaller, as Lance does for `fragment_bitmap`.
pub fn encode_roaring32(bitmap: &RoaringBitmap) -> Vec<u8> {
    let mut compact = bitmap.clone();
    compact.optimize();
    to_bytes(&compact)
}

/// Encodes with array and bitset containers only, as Lance writes bitmaps inside index files.
pub fn encode_roaring32_plain(bitmap: &RoaringBitmap) -> Vec<u8> {
    let mut plain = bitmap.clone();
    plain.remove_run_compression();
    to_bytes(&plain)
}

/// Encodes ascending values with array and bitset containers only, as [`encode_roaring32_plain`] does, without a bitmap between:
/// a value costs an append instead of a search.
#[derive(Default)]
pub struct PlainEncoder {
    /// Number and values, less one, of each closed container.
    table: Vec<(u16, u16)>,
    bodies: Vec<u8>,
    /// Where each of their bodies ends.
    ends: Vec<u32>,
    /// Number of the open container, and its values: as they are while they are few, else as bits.
    open: u16,
    values: Vec<u16>,
    bits: Vec<u8>,
    count: u32,
    last: Option<u32>,
}

impl PlainEncoder {
    /// Whether nothing was pushed since the last [`PlainEncoder::finish`].
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Adds a value, which is not below the last one; the last one again is passed over.
    #[inline]
    pub fn push(&mut self, value: u32) {
        let number = (value >> 16) as u16;
        if self.last == Some(value) {
            return;
        }
        if self.count > 0 && number != self.open {
            self.close();
        }
        (self.open, self.last) = (number, Some(value));
        let low = value as u16;
        if self.count < ARRAY_MAX as u32 {
            self.values.push(low);
        } else {
            self.set(low);
        }
        self.count += 1;
    }

    fn set(&mut self, low: u16) {
        if self.bits.is_empty() {
            self.bits.resize(BITSET_BYTES, 0);
            for low in std::mem::take(&mut self.values) {
                self.set(low);
            }
        }
        if let Some(byte) = self.bits.get_mut(usize::from(low / 8)) {
            *byte |= 1 << (low % 8);
        }
    }

    fn close(&mut self) {
        self.table.push((self.open, (self.count - 1) as u16));
        self.bodies.extend(self.values.drain(..).flat_map(u16::to_le_bytes));
        self.bodies.append(&mut self.bits);
        self.ends.push(self.bodies.len() as u32);
        self.count = 0;
    }

    /// Appends what was pushed; the encoder is empty again.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.count > 0 {
            self.close();
        }
        out.extend_from_slice(&COOKIE_PLAIN.to_le_bytes());
        out.extend_from_slice(&(self.table.len() as u32).to_le_bytes());
        for (number, less) in &self.table {
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(&less.to_le_bytes());
        }
        let first = 8 + 8 * self.table.len() as u32;
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.take(self.table.len()).for_each(|start| out.extend_from_slice(&(first + start).to_le_bytes()));
        out.extend_from_slice(&self.bodies);
        self.table.clear();
        self.ends.clear();
        self.bodies.clear();
        self.last = None;
    }
}

fn to_bytes(bitmap: &RoaringBitmap) -> Vec<u8> {
    let mut out = Vec::with_capacity(bitmap.serialized_size());
    // Writing to a Vec cannot fail.
    let _ = bitmap.serialize_into(&mut out);
    out
}

/// A cursor over borrowed bytes whose reads say what was missing.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize, what: &str) -> Result<&'a [u8], String> {
        let end = self.at.saturating_add(n);
        let slice = self
            .bytes
            .get(self.at..end)
            .ok_or_else(|| format!("{what} ends at byte {end}, past the end at {}", self.bytes.len()))?;
        self.at = end;
        Ok(slice)
    }

    fn u16(&mut self, what: &str) -> Result<u16, String> {
        Ok(self.take(2, what)?.try_into().map(u16::from_le_bytes).unwrap_or_default())
    }

    fn u32(&mut self, what: &str) -> Result<u32, String> {
        Ok(self.take(4, what)?.try_into().map(u32::from_le_bytes).unwrap_or_default())
    }
}

/// Walks one serialized bitmap, checks everything that sizes depend on, and returns its length in bytes.
fn measure(bytes: &[u8]) -> Result<usize, String> {
    let mut r = Reader { bytes, at: 0 };
    let cookie = r.u32("the cookie")?;
    let (count, run_flags) = if cookie == COOKIE_PLAIN {
        (r.u32("the container count")? as usize, None)
    } else if cookie & 0xffff == COOKIE_RUNS {
        let count = (cookie >> 16) as usize + 1;
        (count, Some(r.take(count.div_ceil(8), "the run flags")?))
    } else {
        return Err(format!("cookie {cookie} is none of the format"));
    };
    if count > 1 << 16 {
        return Err(format!("{count} containers, of which there can be 65536 at most"));
    }
    let keys = r.take(count * 4, "the container keys")?;
    if run_flags.is_none() || count >= OFFSETS_FROM {
        r.take(count * 4, "the container offsets")?;
    }
    let mut previous_key = None;
    for (i, entry) in keys.chunks_exact(4).enumerate() {
        let (Some(key), Some(cardinality)) = (u16_at(entry, 0), u16_at(entry, 2)) else {
            return Err("the container keys are cut".into());
        };
        if previous_key.is_some_and(|p| p >= key) {
            return Err(format!("container key {key} follows a key that is not smaller"));
        }
        previous_key = Some(key);
        let cardinality = usize::from(cardinality) + 1;
        let is_run = run_flags.and_then(|f| f.get(i / 8)).is_some_and(|byte| byte >> (i % 8) & 1 == 1);
        if is_run {
            check_runs(&mut r, key, cardinality)?;
        } else if cardinality <= ARRAY_MAX {
            check_array(r.take(cardinality * 2, "an array container")?, key)?;
        } else {
            let words = r.take(BITSET_BYTES, "a bitset container")?;
            let ones: usize = words.iter().map(|b| b.count_ones() as usize).sum();
            if ones != cardinality {
                return Err(format!("container {key} announces {cardinality} values and holds {ones}"));
            }
        }
    }
    Ok(r.at)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn check_array(values: &[u8], key: u16) -> Result<(), String> {
    let mut previous = None;
    for value in values.chunks_exact(2).filter_map(|pair| u16_at(pair, 0)) {
        if previous.is_some_and(|p| p >= value) {
            return Err(format!("the values of container {key} are not ascending"));
        }
        previous = Some(value);
    }
    Ok(())
}

fn check_runs(r: &mut Reader<'_>, key: u16, cardinality: usize) -> Result<(), String> {
    let runs = usize::from(r.u16("a run count")?);
    let pairs = r.take(runs * 4, "a run container")?;
    let mut next_allowed = 0u32;
    let mut held = 0usize;
    for pair in pairs.chunks_exact(4) {
        let (Some(start), Some(length)) = (u16_at(pair, 0), u16_at(pair, 2)) else {
            return Err("a run container is cut".into());
        };
        let end = u32::from(start) + u32::from(length);
        if u32::from(start) < next_allowed || end > u32::from(u16::MAX) {
            return Err(format!("the runs of container {key} overlap or leave it"));
        }
        next_allowed = end + 1;
        held += usize::from(length) + 1;
    }
    if held != cardinality {
        return Err(format!("container {key} announces {cardinality} values and its runs hold {held}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        digits.chunks(2).map(|c| u8::from_str_radix(std::str::from_utf8(c).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn golden_vectors() {
        let empty = decode_roaring32("b", &hex("3a300000 00000000")).unwrap();
        assert!(empty.is_empty());
        assert_eq!(encode_roaring32(&empty), hex("3a300000 00000000"));
        let three: RoaringBitmap = [0, 1, 2].into();
        assert_eq!(encode_roaring32_plain(&three), hex("3a300000 01000000 0000 0200 10000000 0000 0100 0200"));
        assert_eq!(decode_roaring32("b", &encode_roaring32_plain(&three)).unwrap(), three);
        // A run of four is smaller as a run container: cookie 12347, one run flag byte, no offsets.
        let four: RoaringBitmap = (0..4).collect();
        assert_eq!(encode_roaring32(&four), hex("3b300000 01 0000 0300 0100 0000 0300"));
    }

    #[test]
    fn every_container_kind_round_trips() {
        let mut b = RoaringBitmap::new();
        b.insert_range(5..70_000); // runs across two keys
        b.extend((0..5000u32).map(|i| (3 << 16) + i * 3)); // bitset
        b.extend([4 << 16, (4 << 16) + 9, u32::MAX]); // arrays
        for bytes in [encode_roaring32(&b), encode_roaring32_plain(&b)] {
            assert_eq!(decode_roaring32("b", &bytes).unwrap(), b);
            for cut in 0..bytes.len() {
                assert!(decode_roaring32("b", &bytes[..cut]).is_err(), "cut at {cut}");
            }
        }
        assert!(encode_roaring32(&b).len() < encode_roaring32_plain(&b).len());
    }

    #[test]
    fn hostile_bytes_name_the_object_and_the_fault() {
        let cases = [
            ("", "cookie"),
            ("3a300000 ffffffff", "containers"),
            ("3a300000 00000100", "container keys ends"),
            ("3a300000 01000000 0000 0100 10000000 0300 0100", "not ascending"),
            ("3a300000 02000000 0100 0000 0000 0000 18000000 1a000000 0000 0000", "not smaller"),
            ("3b300000 01 0000 0400 0100 0000 0300", "announces 5"),
            ("3b300000 01 0000 0300 0200 0000 0200 0100 0000", "overlap"),
            ("3b300000 01 0000 0300 0100 ffff 0300", "leave"),
            ("3a300000 00000000 00", "followed by 1 more"),
            ("00000000", "cookie 0"),
        ];
        for (bytes, part) in cases {
            let error = decode_roaring32("some/object", &hex(bytes)).unwrap_err();
            assert!(error.message().starts_with("some/object: ") && error.message().contains(part), "{bytes}: {error}");
        }
    }
}
