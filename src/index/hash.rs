//! XXH64 with seed 0: what bloom filters hash values with (index-formats §3.4), and the hash of our own tables.

const P1: u64 = 0x9e37_79b1_85eb_ca87;
const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const P3: u64 = 0x1656_67b1_9e37_79f9;
const P4: u64 = 0x85eb_ca77_c2b2_ae63;
const P5: u64 = 0x27d4_eb2f_1656_67c5;

#[inline]
fn round(lane: u64, input: u64) -> u64 {
    lane.wrapping_add(input.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

#[inline]
fn add_word(hash: u64, word: u64) -> u64 {
    (hash ^ round(0, word)).rotate_left(27).wrapping_mul(P1).wrapping_add(P4)
}

#[inline]
fn add_half(hash: u64, half: u32) -> u64 {
    (hash ^ u64::from(half).wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3)
}

#[inline]
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 33).wrapping_mul(P2);
    let hash = (hash ^ hash >> 29).wrapping_mul(P3);
    hash ^ hash >> 32
}

/// The hash of eight bytes, given as the little-endian number they are.
#[inline]
pub fn xxh64_of_word(word: u64) -> u64 {
    mixed(add_word(P5.wrapping_add(8), word))
}

/// The hash of four bytes, likewise.
#[inline]
pub fn xxh64_of_half(half: u32) -> u64 {
    mixed(add_half(P5.wrapping_add(4), half))
}

/// A hash for tables of our own, in no file: of short values, a fraction of the work.
#[inline]
pub fn table_hash(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = (bytes.len() as u64).wrapping_mul(P3);
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(P1);
        hash ^= hash >> 32;
    }
    let (halves, rest) = rest.as_chunks::<4>();
    let mut last = 0;
    for half in halves {
        last = u64::from(u32::from_le_bytes(*half));
    }
    for byte in rest {
        last = last << 8 | u64::from(*byte);
    }
    hash = (hash ^ last).wrapping_mul(P1);
    (hash ^ hash >> 29).wrapping_mul(P2) >> 20
}

/// The 64-bit hash of some bytes.
pub fn xxh64(bytes: &[u8]) -> u64 {
    let (stripes, rest) = bytes.as_chunks::<32>();
    let mut hash = if stripes.is_empty() {
        P5
    } else {
        let mut lanes = [P1.wrapping_add(P2), P2, 0, P1.wrapping_neg()];
        for stripe in stripes {
            for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<8>().0) {
                *lane = round(*lane, u64::from_le_bytes(*word));
            }
        }
        let [a, b, c, d] = lanes;
        let sum =
            [b.rotate_left(7), c.rotate_left(12), d.rotate_left(18)].iter().fold(a.rotate_left(1), |sum, x| sum.wrapping_add(*x));
        lanes.iter().fold(sum, |hash, lane| (hash ^ round(0, *lane)).wrapping_mul(P1).wrapping_add(P4))
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        hash = add_word(hash, u64::from_le_bytes(*word));
    }
    let (halves, rest) = rest.as_chunks::<4>();
    for half in halves {
        hash = add_half(hash, u32::from_le_bytes(*half));
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }
    mixed(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_vectors() {
        assert_eq!(xxh64(b""), 0xef46_db37_51d8_e999);
        assert_eq!(xxh64(b"a"), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(xxh64(b"k007"), 0x00bb_67a2_5d19_7f6d);
        assert_eq!(xxh64(&[b'x'; 40]), 0x926f_564e_1b3e_18d5);
        assert_eq!(xxh64(&7i32.to_le_bytes()), 0xb7ca_480e_9b96_0d0e);
        assert_eq!(xxh64(&7i64.to_le_bytes()), 0x0876_cd40_6afd_e455);
        assert_eq!(xxh64(&(-0.0f64).to_le_bytes()), 0x3f42_5eac_f015_44e0);
    }

    #[test]
    fn short_values_hash_alike_in_either_way() {
        for number in [0u64, 1, 255, 1 << 40, u64::MAX, 0x0123_4567_89ab_cdef] {
            assert_eq!(xxh64_of_word(number), xxh64(&number.to_le_bytes()));
            assert_eq!(xxh64_of_half(number as u32), xxh64(&(number as u32).to_le_bytes()));
        }
    }

    #[test]
    fn tables_spread_what_is_alike() {
        let spread = |values: Vec<Vec<u8>>| {
            let slots: std::collections::BTreeSet<u64> = values.iter().map(|value| table_hash(value) & 0xffff).collect();
            slots.len()
        };
        // 20 000 values in 65 536 slots: about 17 200 when they fall by chance.
        let ways: [fn(u64) -> Vec<u8>; 6] = [
            |n| n.to_le_bytes().to_vec(),
            |n| (n << 32).to_le_bytes().to_vec(),
            |n| (n as u32).to_le_bytes().to_vec(),
            |n| (n as f64).to_le_bytes().to_vec(),
            |n| format!("user{n}").into_bytes(),
            |n| format!("{n:030}").into_bytes(),
        ];
        for (at, way) in ways.iter().enumerate() {
            assert!(spread((0..20_000).map(way).collect()) > 16_500, "{at}");
        }
    }
}
