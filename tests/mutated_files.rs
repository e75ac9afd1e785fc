//! Real files with bytes changed, cut off, doubled: every parser ends in time, without a panic, and within a stated memory.
//!
//! The inputs come from the fixture tables; `WHETSTONE_SEED` changes the mutations, `WHETSTONE_MUTATIONS` multiplies their number.
//! `make fuzz` looks further, guided by coverage.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(unsafe_code)] // an allocator is unsafe by its trait; it only counts and hands on

mod common;
#[path = "support/counting.rs"]
mod counting;
#[path = "support/parsers.rs"]
mod parsers;
#[path = "support/seeds.rs"]
mod seeds;
#[path = "support/touched.rs"]
mod touched;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::Rng;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// Bytes any input may make a parser hold: decoders make batches of up to half a million rows out of a page of few bytes.
const ANY_INPUT: usize = 48 << 20;
/// And for each byte of it: runs, constants and symbols expand, and each value is held encoded and decoded.
const PER_BYTE: usize = 1024;
/// One input may take no longer, on a busy machine and without optimisation.
const LONGEST: Duration = Duration::from_secs(20);
/// Mutations of one parser are ended after this time, once there were the fewest.
const BUDGET: Duration = Duration::from_secs(6);
const FEWEST: usize = 300;
const MOST: usize = 20_000;

fn mutate(rng: &mut Rng, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=rng.below(4) {
        if bytes.is_empty() {
            return vec![rng.below(256) as u8];
        }
        let at = rng.below(bytes.len());
        match rng.below(9) {
            0 | 1 => bytes[at] ^= 1 << rng.below(8),
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.below(5)],
            3 => bytes.truncate(at),
            4 => {
                let wide = [0u64, 1, 0x7fff_ffff, 0xffff_ffff, 1 << 32, 1 << 40, 1 << 62, u64::MAX][rng.below(8)].to_le_bytes();
                let width = [2, 4, 8][rng.below(3)];
                for (slot, byte) in bytes[at..].iter_mut().zip(&wide[..width]) {
                    *slot = *byte;
                }
            }
            5 => {
                let end = (at + 1 + rng.below(32)).min(bytes.len());
                bytes.drain(at..end);
            }
            6 => {
                let end = (at + 1 + rng.below(32)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            7 if !other.is_empty() => {
                let from = rng.below(other.len());
                let part = &other[from..(from + 1 + rng.below(64)).min(other.len())];
                let end = (at + part.len()).min(bytes.len());
                bytes.splice(at..end, part.iter().copied());
            }
            _ => bytes[at] = bytes[at].wrapping_add(rng.below(3) as u8).wrapping_sub(1),
        }
    }
    bytes
}

/// Milliseconds since the start at which the running input began; 0 = none runs.
static RUNNING: AtomicU64 = AtomicU64::new(0);

/// Ends the process when one input runs for ever: a hang is a failure, not a patience game.
fn watch(start: Instant) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let began = RUNNING.load(Ordering::Relaxed);
            if began > 0 && start.elapsed() > Duration::from_millis(began) + 3 * LONGEST {
                eprintln!("an input runs for over {:?}", 3 * LONGEST);
                std::process::abort();
            }
        }
    });
}

#[test]
fn mutated_files_do_no_harm() {
    let folder = common::root().join("fixtures");
    let all = seeds::seeds(&[folder]);
    let seed = std::env::var("WHETSTONE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let times: usize = std::env::var("WHETSTONE_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let start = Instant::now();
    watch(start);
    let mut done: BTreeMap<&str, (usize, usize, Duration)> = BTreeMap::new();
    for (name, parse) in parsers::TARGETS {
        let seeds: Vec<&[u8]> = all.iter().filter(|(of, _)| of == name).map(|(_, bytes)| bytes.as_slice()).collect();
        assert!(!seeds.is_empty(), "no input for {name}");
        let mut rng = Rng::new(seed ^ name.bytes().fold(7u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte))));
        let (began, mut accepted) = (Instant::now(), 0);
        let entry = done.entry(name).or_default();
        while entry.0 < MOST * times && (entry.0 < FEWEST * times || began.elapsed() < BUDGET * times as u32) {
            let (at, other) = (rng.below(seeds.len()), rng.below(seeds.len()));
            // The first inputs are the files as they are.
            let input = if entry.0.is_multiple_of(32) { seeds[at].to_vec() } else { mutate(&mut rng, seeds[at], seeds[other]) };
            RUNNING.store(start.elapsed().as_millis().max(1) as u64, Ordering::Relaxed);
            let (before, clock) = (counting::mark(), Instant::now());
            let outcome = std::panic::catch_unwind(|| parse(&input));
            accepted += usize::from(matches!(outcome, Ok(true)));
            let (peak, took) = (counting::peak() - before, clock.elapsed());
            RUNNING.store(0, Ordering::Relaxed);
            let keep = || {
                let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{seed}-{}", entry.0));
                std::fs::write(&path, &input).unwrap();
                path.display().to_string()
            };
            assert!(outcome.is_ok(), "{name} panicked; the input is {}", keep());
            let allowed = ANY_INPUT + PER_BYTE * input.len();
            assert!(peak <= allowed, "{name} held {peak} bytes for {} bytes, {}", input.len(), keep());
            assert!(took < LONGEST, "{name} took {took:?} for {} bytes, {}", input.len(), keep());
            *entry = (entry.0 + 1, entry.1.max(peak), entry.2.max(took));
        }
        assert!(accepted > entry.0 / 64, "{name} took {accepted} of {}: the inputs do not reach it", entry.0);
    }
    for (name, (runs, peak, took)) in done {
        println!("{name:<16} {runs:>7} inputs, at most {:>6} KiB and {} ms", peak >> 10, took.as_millis());
    }
}
