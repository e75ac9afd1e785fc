//! How many fragments a compaction with default options could still merge (refresh-and-compaction §5.2).
//!
//! Compaction groups two neighbours only when the identical set of segments covers both, so a refresh changes what it can
//! do. This is the count a plan shows beside itself, not the compaction planner.

use roaring::RoaringBitmap;

/// `target_rows_per_fragment` when nobody set it.
pub const DEFAULT_TARGET_ROWS: u64 = 1_048_576;
/// `materialize_deletions_threshold` when nobody set it.
pub const DEFAULT_DELETION_THRESHOLD: f32 = 0.1;

/// A fragment as the planner sees it, ascending by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupFragment {
    /// Fragment id.
    pub id: u32,
    /// Rows including deleted ones.
    pub physical_rows: u64,
    /// Deleted rows.
    pub deleted_rows: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Candidacy {
    /// Worth rewriting on its own: too many deleted rows.
    Alone,
    /// Small: worth merging with a neighbour.
    WithNeighbour,
}

fn candidacy(fragment: &GroupFragment, target: u64) -> Option<Candidacy> {
    let share = if fragment.physical_rows == 0 { 0.0 } else { fragment.deleted_rows as f32 / fragment.physical_rows as f32 };
    if share > DEFAULT_DELETION_THRESHOLD {
        Some(Candidacy::Alone)
    } else if fragment.physical_rows < target {
        Some(Candidacy::WithNeighbour)
    } else {
        None
    }
}

/// The groups a compaction would rewrite, as fragment ids in plan order; groups of one are fragments with many deletions.
///
/// `segments` are the bitmaps of all segments of all user indexes; those of unknown coverage are left out by the caller.
pub fn groups(fragments: &[GroupFragment], segments: &[RoaringBitmap], target: u64) -> Vec<Vec<u32>> {
    let mut runs: Vec<Vec<(GroupFragment, Candidacy)>> = Vec::new();
    let mut open: Option<Vec<usize>> = None;
    for fragment in fragments {
        let Some(candidacy) = candidacy(fragment, target) else {
            open = None;
            continue;
        };
        let key: Vec<usize> =
            segments.iter().enumerate().filter(|(_, bitmap)| bitmap.contains(fragment.id)).map(|(at, _)| at).collect();
        match runs.last_mut() {
            Some(run) if open.as_ref() == Some(&key) => run.push((*fragment, candidacy)),
            _ => {
                runs.push(vec![(*fragment, candidacy)]);
                open = Some(key);
            }
        }
    }
    runs.retain(|run| !matches!(run.as_slice(), [(_, Candidacy::WithNeighbour)]));
    runs.into_iter().flat_map(|run| split(&run, target)).collect()
}

/// Ends a group once it is large enough and enough is left for another.
fn split(run: &[(GroupFragment, Candidacy)], target: u64) -> Vec<Vec<u32>> {
    let live = |f: &GroupFragment| u128::from(f.physical_rows.saturating_sub(f.deleted_rows));
    let mut left: u128 = run.iter().map(|(f, _)| live(f)).sum();
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    let mut rows = 0u128;
    for (fragment, _) in run {
        rows += live(fragment);
        left -= live(fragment);
        piece.push(fragment.id);
        if rows >= u128::from(target) && left > 0 && left >= u128::from(target) {
            pieces.push(std::mem::take(&mut piece));
            rows = 0;
        }
    }
    // A piece only ends while as much as another one is left, so the rest is never too small.
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

/// Fragments that would become part of a larger one.
pub fn mergeable(fragments: &[GroupFragment], segments: &[RoaringBitmap], target: u64) -> u64 {
    groups(fragments, segments, target).iter().filter(|group| group.len() > 1).map(|group| group.len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ids: &[u32]) -> RoaringBitmap {
        ids.iter().copied().collect()
    }

    #[test]
    fn the_layout_table() {
        let four: Vec<GroupFragment> = (0..4).map(|id| GroupFragment { id, physical_rows: 100, deleted_rows: 0 }).collect();
        let count = |segments: &[&[u32]]| {
            let segments: Vec<_> = segments.iter().map(|ids| set(ids)).collect();
            let merged = groups(&four, &segments, 1000);
            4 - mergeable(&four, &segments, 1000) as usize + merged.len()
        };
        assert_eq!(count(&[]), 1);
        assert_eq!(count(&[&[0, 1, 2, 3]]), 1);
        assert_eq!(count(&[&[0, 1], &[2, 3]]), 2);
        assert_eq!(count(&[&[0, 2], &[1, 3]]), 4);
        assert_eq!(count(&[&[0], &[1], &[2], &[3]]), 4);
    }
}
