//! The split block bloom filter of Parquet: size, setting and asking (index-formats §8.2, §8.3).

use crate::index::hash::xxh64;

/// Bytes of a block: eight 32-bit words, in each of which a value sets one bit.
pub const BLOCK: usize = 32;
const SALT: [u32; 8] = [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];
/// Powers of two a filter's bytes may be.
const LEAST: u32 = 5;
const MOST: u32 = 27;
/// Terms of the sum over how many values share a block.
const TERMS: u32 = 750;

/// Bytes of a filter for so many values at a rate of false answers.
pub fn size(items: u64, probability: f64) -> usize {
    let (mut low, mut high) = (0u32, 64u32);
    while high > low + 1 {
        let middle = (low + high) / 2;
        if false_rate(items, 2f64.powi(middle as i32)) <= probability {
            high = middle;
        } else {
            low = middle;
        }
    }
    1 << high.clamp(LEAST, MOST)
}

/// The rate of false answers of a filter of so many bytes that holds so many values.
fn false_rate(items: u64, bytes: f64) -> f64 {
    let items = items as f64;
    if items == 0.0 {
        return 0.0;
    }
    if items / (8.0 * bytes) > 2.0 {
        return 1.0;
    }
    // Values of a block are Poisson distributed; each sets one of the 32 bits of every word.
    let lambda = 256.0 / (8.0 * bytes / items);
    let (mut sum, mut chance, mut unset) = (0.0, (-lambda).exp(), 1.0f64);
    for count in 0..TERMS {
        sum += chance * (1.0 - unset).powi(8);
        chance *= lambda / f64::from(count + 1);
        unset *= 1.0 - 1.0 / 32.0;
    }
    sum.min(1.0)
}

/// A filter that is being filled.
pub struct OpenFilter(Vec<[u32; SALT.len()]>);

impl OpenFilter {
    /// An empty filter of so many bytes, which make whole blocks.
    pub fn new(bytes: usize) -> OpenFilter {
        OpenFilter(vec![[0; SALT.len()]; bytes / BLOCK])
    }

    /// Its bytes.
    pub fn size(&self) -> usize {
        self.0.len() * BLOCK
    }

    /// Sets the bits of a value with this [hash](xxh64).
    #[inline]
    pub fn insert(&mut self, hash: u64) {
        let block = ((hash >> 32) * self.0.len() as u64) >> 32;
        if let Some(block) = self.0.get_mut(block as usize) {
            for (word, salt) in block.iter_mut().zip(SALT) {
                *word |= 1 << ((hash as u32).wrapping_mul(salt) >> 27);
            }
        }
    }

    /// Appends the filter as it is stored, and empties it.
    pub fn take(&mut self, out: &mut Vec<u8>) {
        for block in &mut self.0 {
            out.extend(std::mem::take(block).iter().flat_map(|word| word.to_le_bytes()));
        }
    }
}

/// Byte and mask of the eight bits of a value in a filter of so many bytes.
fn bits(length: usize, value: &[u8]) -> impl Iterator<Item = (usize, u8)> {
    let hash = xxh64(value);
    let block = ((hash >> 32) * (length / BLOCK) as u64) >> 32;
    let start = block as usize * BLOCK;
    SALT.iter().zip((start..).step_by(4)).map(move |(salt, word)| {
        let bit = (hash as u32).wrapping_mul(*salt) >> 27;
        // Words are little-endian: bit 8 of a word is bit 0 of its second byte.
        (word + bit as usize / 8, 1 << (bit % 8))
    })
}

/// Sets the bits of a value, given as its plain bytes; bit by bit, as the format describes it.
#[cfg(test)]
pub fn insert(filter: &mut [u8], value: &[u8]) {
    for (byte, mask) in bits(filter.len(), value) {
        if let Some(byte) = filter.get_mut(byte) {
            *byte |= mask;
        }
    }
}

/// Whether a value may be in the filter; `false` is certain. A filter without blocks says yes.
pub fn may_contain(filter: &[u8], value: &[u8]) -> bool {
    filter.len() < BLOCK || bits(filter.len(), value).all(|(byte, mask)| filter.get(byte).is_some_and(|byte| byte & mask != 0))
}

/// The chance that a value which is not in the filter looks as if it were, from the bits that are set.
pub fn fill_rate(filter: &[u8]) -> f64 {
    let (blocks, _) = filter.as_chunks::<BLOCK>();
    let chance = |block: &[u8; BLOCK]| -> f64 {
        block.as_chunks::<4>().0.iter().map(|word| f64::from(u32::from_le_bytes(*word).count_ones()) / 32.0).product()
    };
    if blocks.is_empty() { 1.0 } else { blocks.iter().map(chance).sum::<f64>() / blocks.len() as f64 }
}

/// The share of a filter's bits that are set; `None` of a filter without bits.
pub fn set_bits(filter: &[u8]) -> Option<f64> {
    let set: u64 = filter.iter().map(|byte| u64::from(byte.count_ones())).sum();
    (!filter.is_empty()).then(|| set as f64 / (8.0 * filter.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(filter: &[u8]) -> Vec<u32> {
        filter.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    #[test]
    fn sizes_of_the_table() {
        for (items, probability, bytes) in [
            (8192, 0.00057, 32_768),
            (8192, 0.001, 32_768),
            (8192, 0.01, 16_384),
            (8192, 0.1, 8192),
            (65_536, 0.01, 131_072),
            (1000, 0.01, 2048),
            (1000, 0.001, 4096),
            (100, 0.01, 256),
            (10, 0.01, 32),
            (1, 0.5, 32),
            (1_000_000, 1e-6, 8_388_608),
            (u64::MAX, 0.5, 1 << 27),
            (8192, f64::MIN_POSITIVE, 1 << 27),
        ] {
            assert_eq!(size(items, probability), bytes, "{items} {probability}");
        }
    }

    #[test]
    fn golden_filters() {
        let mut filter = [0; 32];
        insert(&mut filter, &7i32.to_le_bytes());
        let stored = "02000000 00002000 00000080 02000000 00002000 01000000 00200000 00100000";
        let hex: String = filter
            .chunks(4)
            .map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect())
            .collect::<Vec<String>>()
            .join(" ");
        assert_eq!(hex, stored);
        let mut two = [0; 64];
        insert(&mut two, b"k007");
        assert_eq!(words(&two[..32]), [0x4000, 0x10000, 0x10, 0x10, 0x400000, 0x40000000, 0x2000000, 0x100]);
        assert_eq!(two[32..], [0; 32]);
    }

    #[test]
    fn filling_sets_the_same_bits() {
        for bytes in [32, 64, 8192] {
            let (mut open, mut plain, mut stored) = (OpenFilter::new(bytes), vec![0; bytes], Vec::new());
            assert_eq!(open.size(), bytes);
            for value in 0..50u64 {
                open.insert(xxh64(&value.to_le_bytes()));
                insert(&mut plain, &value.to_le_bytes());
            }
            open.take(&mut stored);
            assert_eq!(stored, plain);
            open.take(&mut stored);
            assert!(stored.len() == 2 * bytes && stored[bytes..].iter().all(|byte| *byte == 0), "empty again");
        }
    }

    #[test]
    fn what_was_put_in_is_found_and_little_else() {
        let mut filter = vec![0; size(1000, 0.01)];
        for value in 0..1000i64 {
            insert(&mut filter, &value.to_le_bytes());
        }
        assert!((0..1000i64).all(|value| may_contain(&filter, &value.to_le_bytes())));
        let wrong = (1000..101_000i64).filter(|value| may_contain(&filter, &value.to_le_bytes())).count() as f64 / 100_000.0;
        assert!(wrong < 0.01 && (wrong - fill_rate(&filter)).abs() < 0.002, "{wrong} {}", fill_rate(&filter));
        assert!(!may_contain(&[0; 32], b"x") && may_contain(&[], b"x") && may_contain(&[0xff; 96], b"x"));
    }
}
