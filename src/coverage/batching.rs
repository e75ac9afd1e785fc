//! Cutting the unindexed fragments into contiguous runs whose heaviest is as light as possible
//! (refresh-and-compaction §4.3).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::lists::sorted_by_key;

/// One run: consecutive entries of the work list, one segment to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Fragment ids, ascending.
    pub fragments: Vec<u32>,
    /// Sum of their rows; 128 bits because the sum of u64 counts may not fit 64.
    pub rows: u128,
}

/// Exactly `min(n, fragments.len())` non-empty runs of `(id, rows)` in id order with the smallest possible maximum.
///
/// The order given does not matter. `n == 0` is `INVALID_ARGUMENT`; an empty list has no runs.
pub fn batch(fragments: &[(u32, u64)], n: usize) -> Result<Vec<Run>> {
    if n == 0 {
        return Err(Error::invalid("the number of segments must be at least 1; nothing was planned"));
    }
    let list = sorted_by_key(fragments.to_vec(), |(id, _)| *id);
    let sums = Prefix::new(&list);
    let k = n.min(list.len());
    let ranges = split(pack(&sums, budget(&list, &sums, k)), &sums, k);
    Ok(ranges
        .into_iter()
        .map(|range| Run {
            rows: sums.of(&range),
            fragments: list.get(range).unwrap_or_default().iter().map(|(id, _)| *id).collect(),
        })
        .collect())
}

/// `at(i)` = rows of the first `i` fragments.
struct Prefix(Vec<u128>);

impl Prefix {
    fn new(list: &[(u32, u64)]) -> Prefix {
        let mut sums = Vec::with_capacity(list.len() + 1);
        let mut sum = 0u128;
        sums.push(sum);
        for (_, rows) in list {
            sum += u128::from(*rows);
            sums.push(sum);
        }
        Prefix(sums)
    }

    fn len(&self) -> usize {
        self.0.len() - 1
    }

    fn at(&self, i: usize) -> u128 {
        self.0.get(i).or(self.0.last()).copied().unwrap_or(0)
    }

    fn of(&self, range: &Range<usize>) -> u128 {
        self.at(range.end) - self.at(range.start)
    }

    /// First index in `range` (both ends included) whose prefix sum satisfies `reached`, which is monotone.
    fn first(&self, range: Range<usize>, reached: impl Fn(u128) -> bool) -> usize {
        let (mut lo, mut hi) = (range.start, range.end);
        while lo < hi {
            let mid = lo + (hi - lo) / 2;
            if reached(self.at(mid)) { hi = mid } else { lo = mid + 1 }
        }
        lo
    }
}

/// The smallest budget that a packing into at most `k` runs can respect.
fn budget(list: &[(u32, u64)], sums: &Prefix, k: usize) -> u128 {
    if k == 0 {
        return 0;
    }
    let total = sums.at(sums.len());
    let widest = list.iter().map(|(_, rows)| u128::from(*rows)).max().unwrap_or(0);
    let (mut lo, mut hi) = (widest.max(total.div_ceil(k as u128)), total);
    while lo < hi {
        let mid = lo + (hi - lo) / 2;
        if pack(sums, mid).len() <= k { hi = mid } else { lo = mid + 1 }
    }
    lo
}

/// Fills runs from the left while their sum stays within `budget`, which no single fragment exceeds.
fn pack(sums: &Prefix, budget: u128) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut start = 0;
    for end in 1..=sums.len() {
        if sums.of(&(start..end)) > budget {
            runs.push(start..end - 1);
            start = end - 1;
        }
    }
    if start < sums.len() {
        runs.push(start..sums.len());
    }
    runs
}

/// Cuts the heaviest run again and again until there are `k`.
fn split(runs: Vec<Range<usize>>, sums: &Prefix, k: usize) -> Vec<Range<usize>> {
    let missing = k.saturating_sub(runs.len());
    if missing == 0 {
        return runs;
    }
    let key = |run: Range<usize>| (sums.of(&run), run.len(), Reverse(run.start));
    let (open, mut done): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.len() >= 2);
    let mut heap: BinaryHeap<_> = open.into_iter().map(key).collect();
    for _ in 0..missing {
        let Some((_, len, Reverse(start))) = heap.pop() else { break };
        let cut = cut_of(start..start + len, sums);
        for half in [start..cut, cut..start + len] {
            if half.len() >= 2 { heap.push(key(half)) } else { done.push(half) }
        }
    }
    done.extend(heap.into_iter().map(|(_, len, Reverse(start))| start..start + len));
    sorted_by_key(done, |run| run.start)
}

/// The cut `c` inside a run of two or more that minimises `(max(left, right), |len - 2c|, c)`.
fn cut_of(run: Range<usize>, sums: &Prefix) -> usize {
    let (from, to) = (run.start, run.end);
    let (low, high) = (sums.at(from), sums.at(to));
    let worse = |cut: usize| (sums.at(cut) - low).max(high - sums.at(cut));
    // `left` only grows and `right` only shrinks, so the best maximum lies where they cross.
    let cross = sums.first(from + 1..to - 1, |sum| sum - low >= high - sum);
    let best = if cross > from + 1 { worse(cross).min(worse(cross - 1)) } else { worse(cross) };
    // Cuts that reach it form one interval; the even one in it is nearest to the middle.
    let first = sums.first(from + 1..to - 1, |sum| high - sum <= best);
    let past = sums.first(first..to, |sum| sum - low > best);
    let last = past.saturating_sub(1).clamp(first, to - 1);
    (from + (to - from) / 2).clamp(first, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The specification's loop, word for word.
    fn cut_by_trying(run: Range<usize>, sums: &Prefix) -> usize {
        let len = run.len();
        (1..len)
            .min_by_key(|c| {
                let cut = run.start + c;
                (sums.of(&(run.start..cut)).max(sums.of(&(cut..run.end))), len.abs_diff(2 * c), *c)
            })
            .unwrap()
            + run.start
    }

    #[test]
    fn cuts_agree_with_trying_all() {
        let mut seed = 7u64;
        let mut next = |bound: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % bound
        };
        for _ in 0..3000 {
            let len = 2 + next(9) as usize;
            let list: Vec<(u32, u64)> = (0..len).map(|i| (i as u32, if next(3) == 0 { 0 } else { next(6) })).collect();
            let sums = Prefix::new(&list);
            assert_eq!(cut_of(0..len, &sums), cut_by_trying(0..len, &sums), "{list:?}");
        }
    }

    #[test]
    fn zero_segments_is_a_usage_error() {
        assert_eq!(batch(&[(0, 1)], 0).unwrap_err().code(), crate::ErrorCode::InvalidArgument);
        assert!(batch(&[], 3).unwrap().is_empty());
    }

    #[test]
    fn a_hundred_thousand_fragments_stay_cheap() {
        let list: Vec<(u32, u64)> = (0..100_000).map(|i| (i, u64::from(i % 7))).collect();
        let runs = batch(&list, 30_000).unwrap();
        assert_eq!(runs.len(), 30_000);
        assert_eq!(runs.iter().map(|r| r.fragments.len()).sum::<usize>(), 100_000);
    }
}
