//! Cuts that do less harm (refresh-and-compaction §4.4): of all partitions with the lightest possible heaviest run, the one
//! that separates the fewest fragments a compaction could otherwise join.

use super::batching::{Run, batch};
use crate::error::Result;
use crate::lists::sorted_by_key;

/// Steps the search may take; longer lists get the canonical runs.
const MOST_STEPS: u64 = 30_000_000;

/// Fewest harmful cuts, then the smallest sum of squared run sums.
type Cost = (u64, u128);

/// Exactly `min(n, fragments.len())` runs of `(id, rows)` with the smallest possible maximum; among these those with the fewest
/// harmful cuts, then the most even ones, then the earliest cuts. `harmful(a, b)` tells of two fragments next to each other in
/// the list whether separating them costs anything. Lists too long to search get the runs of [`batch`].
///
/// # Errors
/// Those of [`batch`].
pub fn batch_gap_aware(fragments: &[(u32, u64)], n: usize, harmful: &dyn Fn(u32, u32) -> bool) -> Result<Vec<Run>> {
    let canonical = batch(fragments, n)?;
    let Some(most) = canonical.iter().map(|run| run.rows).max() else { return Ok(canonical) };
    let list = sorted_by_key(fragments.to_vec(), |(id, _)| *id);
    let k = canonical.len();
    let search = Search { harm: harm(&list, harmful), reach: reach(&list, most), sums: sums(&list), k };
    match search.cuts() {
        Some(cuts) => Ok(runs(&list, &cuts)),
        None => Ok(canonical),
    }
}

/// Per fragment whether a cut before it is harmful.
fn harm(list: &[(u32, u64)], harmful: &dyn Fn(u32, u32) -> bool) -> Vec<bool> {
    let mut harm = vec![false];
    harm.extend(list.windows(2).map(|two| matches!(two, [(a, _), (b, _)] if harmful(*a, *b))));
    harm
}

fn sums(list: &[(u32, u64)]) -> Vec<u128> {
    let mut sum = 0u128;
    let mut sums = vec![0];
    sums.extend(list.iter().map(|(_, rows)| {
        sum += u128::from(*rows);
        sum
    }));
    sums
}

/// Per fragment where a run that begins with it has to end at the latest.
fn reach(list: &[(u32, u64)], most: u128) -> Vec<usize> {
    let (mut end, mut sum) = (0, 0u128);
    let mut reach = Vec::with_capacity(list.len());
    for (_, rows) in list {
        while let Some((_, next)) = list.get(end) {
            if sum + u128::from(*next) > most {
                break;
            }
            sum += u128::from(*next);
            end += 1;
        }
        reach.push(end);
        sum = sum.saturating_sub(u128::from(*rows));
    }
    reach
}

struct Search {
    harm: Vec<bool>,
    reach: Vec<usize>,
    sums: Vec<u128>,
    k: usize,
}

impl Search {
    /// Ends of the runs, the last one included; `None` when the search would be too long.
    fn cuts(&self) -> Option<Vec<usize>> {
        let n = self.reach.len();
        let width: u64 = self.reach.iter().enumerate().map(|(at, end)| end.saturating_sub(at) as u64).sum();
        if width.saturating_mul(self.k as u64) > MOST_STEPS || (n as u64).saturating_mul(self.k as u64) > MOST_STEPS {
            return None;
        }
        // From the end: the best way to cut what begins at each fragment into so many runs, and where its first run ends.
        let mut best: Vec<Option<Cost>> = vec![None; n + 1];
        if let Some(end) = best.get_mut(n) {
            *end = Some((0, 0));
        }
        let mut first_ends: Vec<Vec<u32>> = Vec::with_capacity(self.k);
        for _ in 0..self.k {
            let (next, ends) = self.one_more(&best);
            best = next;
            first_ends.push(ends);
        }
        best.first().copied().flatten()?;
        let mut at = 0usize;
        let mut cuts = Vec::with_capacity(self.k);
        for ends in first_ends.iter().rev() {
            at = *ends.get(at)? as usize;
            cuts.push(at);
        }
        Some(cuts)
    }

    /// With one run more than `best` has.
    fn one_more(&self, best: &[Option<Cost>]) -> (Vec<Option<Cost>>, Vec<u32>) {
        let n = self.reach.len();
        let mut costs = vec![None; n + 1];
        let mut ends = vec![0; n + 1];
        for (at, reach) in self.reach.iter().enumerate() {
            let mut chosen: Option<(Cost, usize)> = None;
            for end in at + 1..=*reach {
                let Some((harmful, squares)) = best.get(end).copied().flatten() else { continue };
                let rows = match (self.sums.get(end), self.sums.get(at)) {
                    (Some(end), Some(at)) => end - at,
                    _ => 0,
                };
                let harm = u64::from(end < n && self.harm.get(end).copied().unwrap_or(false));
                let cost = (harmful + harm, squares.saturating_add(rows.saturating_mul(rows)));
                if chosen.is_none_or(|(least, _)| cost < least) {
                    chosen = Some((cost, end));
                }
            }
            if let (Some((cost, end)), Some(place), Some(first)) = (chosen, costs.get_mut(at), ends.get_mut(at)) {
                *place = Some(cost);
                *first = end as u32;
            }
        }
        (costs, ends)
    }
}

fn runs(list: &[(u32, u64)], cuts: &[usize]) -> Vec<Run> {
    let mut from = 0;
    cuts.iter()
        .map(|end| {
            let part = list.get(from..*end).unwrap_or_default();
            from = *end;
            Run {
                fragments: part.iter().map(|(id, _)| *id).collect(),
                rows: part.iter().map(|(_, rows)| u128::from(*rows)).sum(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(list: &[(u32, u64)], n: usize, harmful: &dyn Fn(u32, u32) -> bool) -> Vec<Vec<u32>> {
        batch_gap_aware(list, n, harmful).unwrap().into_iter().map(|run| run.fragments).collect()
    }

    #[test]
    fn the_examples_of_the_specification() {
        let list: Vec<(u32, u64)> = [0, 1, 6, 7, 8].map(|id| (id, 10)).into();
        assert_eq!(ids(&list, 2, &|a, b| a + 1 == b), [vec![0, 1], vec![6, 7, 8]]);
        let ten: Vec<(u32, u64)> = (0..10).map(|id| (id, 1)).collect();
        assert_eq!(ids(&ten, 4, &|_, _| true), [vec![0, 1], vec![2, 3], vec![4, 5, 6], vec![7, 8, 9]]);
    }

    /// Maximum, harmful cuts, squares, and the cuts themselves.
    type Tried = (u128, u64, u128, Vec<usize>);

    /// Every partition, tried.
    fn by_trying(list: &[(u32, u64)], k: usize, harmful: &dyn Fn(u32, u32) -> bool) -> Vec<Vec<u32>> {
        let n = list.len();
        let mut best: Option<(Tried, Vec<usize>)> = None;
        for mask in 0u32..1 << (n - 1) {
            let mut cuts: Vec<usize> = (1..n).filter(|at| mask >> (at - 1) & 1 == 1).collect();
            if cuts.len() + 1 != k {
                continue;
            }
            cuts.push(n);
            let made = runs(list, &cuts);
            let most = made.iter().map(|r| r.rows).max().unwrap();
            let harm = cuts.iter().filter(|c| **c < n && harmful(list[**c - 1].0, list[**c].0)).count() as u64;
            let squares = made.iter().map(|r| r.rows * r.rows).sum();
            let cost = (most, harm, squares, cuts.clone());
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, cuts));
            }
        }
        runs(list, &best.unwrap().1).into_iter().map(|run| run.fragments).collect()
    }

    #[test]
    fn as_good_as_trying_all() {
        let mut seed = 11u64;
        let mut next = |bound: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % bound
        };
        for _ in 0..400 {
            let n = 1 + next(9) as usize;
            let list: Vec<(u32, u64)> = (0..n).map(|i| (i as u32, next(5))).collect();
            let harm: Vec<bool> = (0..=n).map(|_| next(2) == 0).collect();
            let k = 1 + next(n as u64) as usize;
            let harmful = |_: u32, b: u32| harm[b as usize];
            assert_eq!(ids(&list, k, &harmful), by_trying(&list, k, &harmful), "{list:?} {k} {harm:?}");
        }
    }

    #[test]
    fn long_lists_get_the_canonical_runs() {
        let list: Vec<(u32, u64)> = (0..20_000).map(|id| (id, 1 + u64::from(id % 3))).collect();
        assert_eq!(batch_gap_aware(&list, 500, &|_, _| true).unwrap(), batch(&list, 500).unwrap());
        assert!(batch_gap_aware(&[], 2, &|_, _| true).unwrap().is_empty());
    }
}
