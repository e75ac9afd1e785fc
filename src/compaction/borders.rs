//! Where the set of covering segments changes: one pass over all coverage, its cost the number of stretches in it.

use roaring::RoaringBitmap;

use super::layout::{Layout, Piece};

/// From ids to positions in the list of fragments.
pub struct Positions<'a> {
    pieces: &'a [Piece],
    first: u32,
    /// Per id from `first` on, how many fragments have a smaller id; empty where ids are too sparse for it.
    ranks: Vec<u32>,
}

/// A table of ranks is made while it has at most so many places per fragment.
const SPARSEST: u64 = 16;

impl<'a> Positions<'a> {
    /// Over fragments ascending by id.
    pub fn new(pieces: &'a [Piece]) -> Positions<'a> {
        let (first, last) = match (pieces.first(), pieces.last()) {
            (Some(first), Some(last)) => (first.id, last.id),
            _ => return Positions { pieces, first: 0, ranks: Vec::new() },
        };
        let span = u64::from(last.saturating_sub(first)) + 2;
        let mut ranks = Vec::new();
        if span <= (pieces.len() as u64).saturating_mul(SPARSEST).saturating_add(1024) {
            ranks.reserve_exact(span as usize);
            for (at, piece) in pieces.iter().enumerate() {
                // Ids up to this fragment's see the fragments before it.
                while (ranks.len() as u64) <= u64::from(piece.id - first) {
                    ranks.push(at as u32);
                }
            }
            ranks.push(pieces.len() as u32);
        }
        Positions { pieces, first, ranks }
    }

    /// How many fragments have an id below `id`; `id` may be one past the largest.
    fn below(&self, id: u64) -> usize {
        if self.ranks.is_empty() {
            return self.pieces.partition_point(|piece| u64::from(piece.id) < id);
        }
        match id.checked_sub(u64::from(self.first)) {
            None => 0,
            Some(place) => usize::try_from(place)
                .ok()
                .and_then(|place| self.ranks.get(place))
                .map_or(self.pieces.len(), |rank| *rank as usize),
        }
    }

    /// Calls `each` with every stretch of neighbouring positions that the ids cover: as long as can be, ascending.
    pub fn stretches(&self, ids: &RoaringBitmap, mut each: impl FnMut(usize, usize)) {
        let mut open: Option<(usize, usize)> = None;
        let mut take = |first: u32, last: u32| {
            let (start, end) = (self.below(u64::from(first)), self.below(u64::from(last) + 1));
            if start >= end {
                return;
            }
            open = match open {
                // Ids between two runs that name no fragment separate nothing.
                Some((first, last)) if last == start => Some((first, end)),
                Some((first, last)) => {
                    each(first, last);
                    Some((start, end))
                }
                None => Some((start, end)),
            };
        };
        let mut runs = ids.iter();
        let mut single = 0;
        while let Some(run) = runs.next_range() {
            take(*run.start(), *run.end());
            single = if run.start() == run.end() { single + 1 } else { 0 };
            // Where ids stand alone it is faster to take them one by one than to look for where each run ends.
            if single >= SINGLE {
                for id in runs.by_ref().take(AT_ONCE) {
                    take(id, id);
                }
                single = 0;
            }
        }
        if let Some((first, last)) = open {
            each(first, last);
        }
    }
}

/// So many runs of one id in a row are a sign of more.
const SINGLE: u32 = 8;
/// So many ids are taken one by one before runs are looked for again.
const AT_ONCE: usize = 4096;

/// A set of gaps between neighbouring positions.
pub struct Gaps(Vec<u64>);

impl Gaps {
    /// No gap of `fragments` fragments is marked.
    pub fn none(fragments: usize) -> Gaps {
        Gaps(vec![0; fragments / 64 + 1])
    }

    /// Marks the gap before position `at`.
    pub fn mark(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    /// Whether the gap before position `at` is marked.
    pub fn has(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

impl Gaps {
    /// How many gaps are marked in both.
    pub fn common(&self, other: &Gaps) -> u64 {
        self.0.iter().zip(&other.0).map(|(a, b)| u64::from((a & b).count_ones())).sum()
    }
}

/// The gaps over which the set of covering segments is another. A segment that covers nothing live marks none.
pub fn borders(layout: &Layout, positions: &Positions<'_>) -> Gaps {
    let mut gaps = Gaps::none(layout.pieces.len());
    for cover in &layout.covers {
        positions.stretches(&cover.bitmap, |start, end| {
            gaps.mark(start);
            gaps.mark(end);
        });
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(ids: &[u32]) -> Vec<Piece> {
        ids.iter().map(|id| Piece { id: *id, ..Piece::default() }).collect()
    }

    fn stretches(ids: &[u32], set: &[u32]) -> Vec<(usize, usize)> {
        let pieces = pieces(ids);
        let mut found = Vec::new();
        Positions::new(&pieces).stretches(&set.iter().copied().collect(), |a, b| found.push((a, b)));
        found
    }

    #[test]
    fn ids_that_are_gone_separate_nothing() {
        assert_eq!(stretches(&[1, 2, 5, 6, 9], &[0, 2, 5, 7, 9]), [(1, 3), (4, 5)]);
        assert_eq!(stretches(&[1, 2, 5, 6, 9], &[0, 3, 4, 10, u32::MAX]), []);
        assert_eq!(stretches(&[1, 2, 5, 6, 9], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), [(0, 5)]);
        assert_eq!(stretches(&[], &[1]), []);
    }

    #[test]
    fn ids_that_stand_alone_are_stretches_too() {
        let ids: Vec<u32> = (0..20_000).collect();
        let alone: Vec<u32> = (0..5000).map(|n| n * 2).chain(10_000..12_000).chain([15_000]).collect();
        let found = stretches(&ids, &alone);
        assert_eq!(found.len(), 5002);
        assert_eq!(found[4999..], [(9998, 9999), (10_000, 12_000), (15_000, 15_001)]);
    }

    #[test]
    fn sparse_ids_give_the_same() {
        let sparse = [0, 70_000, 70_001, u32::MAX - 1, u32::MAX];
        assert!(Positions::new(&pieces(&sparse)).ranks.is_empty());
        assert_eq!(stretches(&sparse, &[0, 5, 70_000, u32::MAX]), [(0, 2), (4, 5)]);
        assert_eq!(stretches(&[u32::MAX - 1, u32::MAX], &[u32::MAX]), [(1, 2)]);
    }
}
