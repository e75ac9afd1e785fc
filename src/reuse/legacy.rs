//! When a version-0 record is no longer needed (spec fragment-reuse §3.5). Their rule is about versions, not about coverage,
//! because version-0 bitmaps move on while files stay behind.

use roaring::RoaringBitmap;

use super::segment::Segment;
use super::transition::Transition;

/// Whether an index has caught up with a recorded compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaughtUp {
    /// It has: nothing in it depends on the record.
    Yes,
    /// It has not.
    No,
    /// It holds part of a group that was compacted as one: no mapping helps it, so the record is no use to it.
    Straddles,
}

/// Whether `segment` still depends on the compaction of `groups` (all of one record), stamped `stamp`; `chain` are all fragments
/// that any version-0 record of the history names.
pub fn caught_up(groups: &[&Transition], stamp: u64, chain: &RoaringBitmap, segment: &Segment<'_>) -> CaughtUp {
    if segment.stored.is_some_and(|stored| stored.is_disjoint(chain)) {
        return CaughtUp::Yes;
    }
    if segment.dataset_version <= stamp {
        return CaughtUp::No;
    }
    let Some(stored) = segment.stored else { return CaughtUp::Yes };
    for group in groups {
        let held = group.source_ids().filter(|id| stored.contains(*id)).count();
        if held == group.sources.len() {
            return CaughtUp::No;
        }
        if held > 0 {
            return CaughtUp::Straddles;
        }
    }
    CaughtUp::Yes
}
