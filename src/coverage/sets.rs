//! The five sets every refresh is built from (refresh-and-compaction §1.1).

use roaring::RoaringBitmap;

/// Coverage of one segment; `None` = unknown, which is not empty.
pub type Coverage = Option<RoaringBitmap>;

/// Fragments of one index on one manifest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexSets {
    /// Fragments present in the manifest.
    pub live: RoaringBitmap,
    /// Live fragments that some segment of known coverage covers.
    pub covered: RoaringBitmap,
    /// `live` minus `covered`: the work of a refresh.
    pub unindexed: RoaringBitmap,
    /// Segments whose coverage is unknown; while this is not zero `covered` is a lower bound.
    pub unknown_segments: usize,
}

impl IndexSets {
    /// The sets of the segments of one name.
    pub fn new<'a>(live: &RoaringBitmap, segments: impl IntoIterator<Item = Option<&'a RoaringBitmap>>) -> IndexSets {
        let mut covered = RoaringBitmap::new();
        let mut unknown_segments = 0;
        for bitmap in segments {
            match bitmap {
                Some(bitmap) => covered |= effective(bitmap, live),
                None => unknown_segments += 1,
            }
        }
        let unindexed = live - &covered;
        IndexSets { live: live.clone(), covered, unindexed, unknown_segments }
    }

    /// Whether every segment states what it covers.
    pub fn coverage_known(&self) -> bool {
        self.unknown_segments == 0
    }
}

/// The part of a bitmap that names live fragments.
pub fn effective(bitmap: &RoaringBitmap, live: &RoaringBitmap) -> RoaringBitmap {
    bitmap & live
}

/// The part of a bitmap that names fragments which are gone.
pub fn retired(bitmap: &RoaringBitmap, live: &RoaringBitmap) -> RoaringBitmap {
    bitmap - live
}

/// Union of the bitmaps of segments about to be committed.
pub fn declared<'a>(built: impl IntoIterator<Item = &'a RoaringBitmap>) -> RoaringBitmap {
    built.into_iter().fold(RoaringBitmap::new(), |all, bitmap| all | bitmap)
}

/// What a commit made true: the bitmaps our segments have in the new manifest, on its live fragments.
pub fn established<'a>(committed: impl IntoIterator<Item = &'a RoaringBitmap>, live: &RoaringBitmap) -> RoaringBitmap {
    declared(committed) & live
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ids: &[u32]) -> RoaringBitmap {
        ids.iter().copied().collect()
    }

    #[test]
    fn retired_ids_cover_nothing_and_unknown_is_not_empty() {
        let live = set(&[1, 2, 3]);
        let (a, b) = (set(&[0, 1]), set(&[]));
        let sets = IndexSets::new(&live, [Some(&a), Some(&b), None]);
        assert_eq!(sets.covered, set(&[1]));
        assert_eq!(sets.unindexed, set(&[2, 3]));
        assert!(!sets.coverage_known());
        assert!(IndexSets::new(&live, [Some(&b)]).coverage_known());
        assert_eq!(retired(&a, &live), set(&[0]));
    }

    #[test]
    fn established_counts_live_fragments_only() {
        let (a, b) = (set(&[4, 5]), set(&[9]));
        assert_eq!(declared([&a, &b]), set(&[4, 5, 9]));
        assert_eq!(established([&a, &b], &set(&[5, 9, 10])), set(&[5, 9]));
    }
}
