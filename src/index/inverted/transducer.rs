//! The token set, checked before it is followed: the library that reads it trusts what it points to, and a checksum proves only
//! that the bytes are those that somebody wrote.

use std::collections::BinaryHeap;

/// Version and type in front of the nodes.
const HEADER: usize = 16;
/// Number of keys, root and checksum behind them.
const TRAILER: usize = 20;
/// The one node that is not stored: an end without further letters.
const END: usize = 0;
/// Letters of all tokens together at most, bytes: nodes are shared, so that a few bytes can stand for any number of them.
const MOST: u64 = 1 << 30;

/// The set, or what is wrong with it.
pub(super) fn open(bytes: Vec<u8>) -> Result<fst::Map<Vec<u8>>, String> {
    let keys = check(&bytes).ok_or("its nodes contradict each other")?;
    let map = fst::Map::new(bytes).map_err(|e| e.to_string())?;
    map.as_fst().verify().map_err(|e| e.to_string())?;
    if map.len() as u64 != keys {
        return Err(format!("{keys} tokens where {} are announced", map.len()));
    }
    Ok(map)
}

/// A node that is reached, most often later ones first: all ways to a node are known before it is looked into.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Reached {
    at: usize,
    /// Ways from the root.
    ways: u64,
    /// Letters of all these ways together.
    letters: u64,
    /// Greatest sum of the numbers on one of them.
    sum: u64,
}

/// Number of keys, when every node is whole and points to earlier nodes only.
fn check(bytes: &[u8]) -> Option<u64> {
    let number = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk::<8>()?));
    let end = bytes.len().checked_sub(TRAILER).filter(|end| *end >= HEADER)?;
    // Only the newest version has a checksum, and only that is written.
    if number(0)? != 3 {
        return None;
    }
    let nodes = bytes.get(..end)?;
    let root = usize::try_from(number(end + 8)?).ok().filter(|root| *root == END || *root + 1 == end)?;
    let mut open = BinaryHeap::from([Reached { at: root, ways: 1, letters: 0, sum: 0 }]);
    let (mut keys, mut letters) = (0u64, 0u64);
    // Every way takes a byte at least; nodes that overlap could have more.
    let mut ways_left = bytes.len();
    let mut targets = Vec::new();
    while let Some(mut here) = open.pop() {
        while open.peek().is_some_and(|next| next.at == here.at) {
            let also = open.pop()?;
            here.ways = here.ways.checked_add(also.ways)?;
            here.letters = here.letters.checked_add(also.letters)?;
            here.sum = here.sum.max(also.sum);
        }
        targets.clear();
        if let Some(last) = node(nodes, here.at, &mut targets)? {
            keys = keys.checked_add(here.ways)?;
            letters = letters.checked_add(here.letters).filter(|letters| *letters <= MOST)?;
            here.sum.checked_add(last)?;
        }
        for (at, out) in &targets {
            let further = here.letters.checked_add(here.ways)?;
            ways_left = ways_left.checked_sub(1)?;
            open.push(Reached { at: *at, ways: here.ways, letters: further, sum: here.sum.checked_add(*out)? });
        }
    }
    Some(keys)
}

/// Takes the last bytes off; the header is never among them.
fn back<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let from = rest.len().checked_sub(length).filter(|from| *from >= HEADER)?;
    let (before, part) = rest.split_at_checked(from)?;
    *rest = before;
    Some(part)
}

/// Where a node points to, each with its number, and its own number where a key ends. Its bytes are read from the last one back.
fn node(nodes: &[u8], at: usize, targets: &mut Vec<(usize, u64)>) -> Option<Option<u64>> {
    if at == END {
        return Some(Some(0));
    }
    let mut rest = nodes.get(..=at)?;
    let byte = |part: &[u8]| part.first().copied().map(usize::from);
    let number = |part: &[u8]| part.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let state = byte(back(&mut rest, 1)?)?;
    let (kind, low) = (state >> 6, state & 63);
    if kind >= 2 {
        // One way on; its letter is in the state when it is a common one.
        back(&mut rest, usize::from(low == 0))?;
        if kind == 3 {
            // To the node before this one.
            targets.push((rest.len().checked_sub(1).filter(|at| *at >= HEADER)?, 0));
            return Some(None);
        }
    }
    let count = match (kind, low) {
        (2, _) => 1,
        (_, 0) => match byte(back(&mut rest, 1)?)? {
            1 => 256,
            other => other,
        },
        (_, low) => low,
    };
    let sizes = byte(back(&mut rest, 1)?)?;
    let (step, out) = (sizes >> 4, sizes & 15);
    if step > 8 || out > 8 || (step == 0 && count > 0) {
        return None;
    }
    if kind < 2 {
        back(&mut rest, count + if count > 32 { 256 } else { 0 })?;
    }
    let (steps, outs) = (back(&mut rest, count * step)?, back(&mut rest, count * out)?);
    let ends = kind == 1;
    let last = number(back(&mut rest, if ends { out } else { 0 })?);
    for index in 0..count {
        // The last one first.
        let part = |of: &[u8], size: usize| Some(number(of.get(index * size..(index + 1) * size)?));
        let way = usize::try_from(part(steps, step)?).ok()?;
        let to = if way == 0 { END } else { rest.len().checked_sub(way).filter(|to| *to >= HEADER)? };
        targets.push((to, part(outs, out)?));
    }
    Some(ends.then_some(last))
}

#[cfg(test)]
mod tests {
    use fst::Streamer;

    use super::*;

    fn checksum(bytes: &[u8]) -> u32 {
        let mut sum = !0u32;
        for byte in bytes {
            sum ^= u32::from(*byte);
            for _ in 0..8 {
                sum = if sum & 1 == 1 { sum >> 1 ^ 0x82f6_3b78 } else { sum >> 1 };
            }
        }
        (!sum).rotate_right(15).wrapping_add(0xa282_ead8)
    }

    fn built(words: &mut Vec<String>) -> Vec<u8> {
        words.sort();
        words.dedup();
        let mut map = fst::MapBuilder::memory();
        for (id, word) in words.iter().enumerate() {
            map.insert(word, (id as u64).wrapping_mul(0x9e37_79b9) >> 3).unwrap();
        }
        map.into_inner().unwrap()
    }

    /// Words that make nodes of every kind: many letters after one, common ends, one letter only.
    fn words() -> Vec<String> {
        let mut words: Vec<String> =
            (0..300u32).map(|i| format!("{}{}", char::from_u32(0x61 + i % 80).unwrap(), i * i)).collect();
        words.extend(["", "a", "über", "überall", "zzzzzzzzzzz"].map(str::to_owned));
        words
    }

    #[test]
    fn what_was_built_is_sound() {
        for mut some in [vec![], vec![String::new()], vec!["one".to_owned()], words()] {
            let bytes = built(&mut some);
            assert_eq!(check(&bytes), Some(some.len() as u64));
            let map = open(bytes).unwrap();
            let mut stream = map.stream();
            for word in &some {
                assert_eq!(stream.next().unwrap().0, word.as_bytes());
            }
            assert!(stream.next().is_none());
        }
    }

    #[test]
    fn crafted_sets_are_refused_or_harmless() {
        let good = built(&mut words());
        let (mut refused, mut read, mut seed) = (0, 0, 7u64);
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for round in 0..4_000 {
            let mut bytes = good.clone();
            for _ in 0..=random(3) {
                // The nodes near the root, and the trailer, lead to all others.
                let at =
                    if round % 3 == 0 { bytes.len() - 4 - 1 - random(60) } else { HEADER + random(bytes.len() - HEADER - 4) };
                bytes[at] = [0, 1, 0x40, 0x80, 0xc0, 0xff, random(256) as u8][random(7)];
            }
            let end = bytes.len() - 4;
            let sum = checksum(&bytes[..end]).to_le_bytes();
            bytes[end..].copy_from_slice(&sum);
            match open(bytes) {
                Err(_) => refused += 1,
                Ok(map) => {
                    read += 1;
                    let (mut stream, mut keys) = (map.stream(), 0);
                    while let Some((key, _)) = stream.next() {
                        assert!(key.len() < good.len());
                        keys += 1;
                    }
                    assert_eq!(keys, map.len());
                    map.get("überall");
                }
            }
        }
        assert!(refused > 100 && read > 100, "{refused} refused, {read} read");
    }

    #[test]
    fn shared_nodes_are_counted_before_they_are_followed() {
        // Sixty nodes with two ways each to the one before: 2^60 keys in a few hundred bytes.
        let mut bytes = [3u64, 0].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        for node in 0..60 {
            let way = if node == 0 { 0 } else { 1 };
            bytes.extend([way, way, b'b', b'a', 0x10, 2]);
        }
        let root = bytes.len() as u64 - 1;
        bytes.extend((1u64 << 60).to_le_bytes());
        bytes.extend(root.to_le_bytes());
        let sum = checksum(&bytes).to_le_bytes();
        bytes.extend(sum);
        assert_eq!(check(&bytes), None);
        assert!(open(bytes).is_err());
    }
}
