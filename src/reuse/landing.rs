//! What becomes of the segments of one index when others come in under a history (spec fragment-reuse §7, §8.1).
//!
//! Lance's own commit asks which stored bitmaps name a live fragment, and throws segments away that only translate. Here it is
//! asked what its reader will serve afterwards: a segment stays as long as it covers something then. No two segments of a name
//! may name the same fragment, retired ones included: Lance opens all of them to find out, and panics for some types.

use roaring::RoaringBitmap;

use super::coverage::derive;
use super::ledger::Ledger;
use super::segment::Segment;

/// The index after the commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Landing {
    /// Per existing segment the live fragments it covers beside the new ones; empty = it goes.
    pub remaining: Vec<RoaringBitmap>,
    /// Per new segment the live fragments it covers.
    pub covers: Vec<RoaringBitmap>,
    /// Live fragments that were covered and are not any more.
    pub lost: RoaringBitmap,
    /// The existing segment, by place, that has to go for what it names and covered some of them.
    pub loser: Option<usize>,
}

/// Puts `new` beside those of `existing` that name none of their fragments. All are segments of one index, those a reader does
/// not know left out.
pub fn land(ledger: &Ledger, live: &RoaringBitmap, existing: &[Segment<'_>], new: &[Segment<'_>]) -> Landing {
    let mut named = RoaringBitmap::new();
    for stored in new.iter().filter_map(|s| s.stored) {
        named |= stored;
    }
    let stays: Vec<bool> = existing.iter().map(|s| s.stored.is_none_or(|b| b.is_disjoint(&named))).collect();
    let kept = existing.iter().zip(&stays).filter(|(_, stays)| **stays).map(|(segment, _)| segment);
    let beside: Vec<Segment<'_>> = kept.chain(new).cloned().collect();
    let mut after = derive(ledger, live, &beside).into_iter().map(|derived| derived.coverage);
    let remaining: Vec<RoaringBitmap> =
        stays.iter().map(|stays| if *stays { after.next().unwrap_or_default() } else { RoaringBitmap::new() }).collect();
    let covers: Vec<RoaringBitmap> = after.collect();
    let served = remaining.iter().chain(&covers).fold(RoaringBitmap::new(), |all, covers| all | covers);
    let mut lost = RoaringBitmap::new();
    let mut loser = None;
    for (at, before) in derive(ledger, live, existing).into_iter().enumerate() {
        let gone = before.coverage - &served;
        if !gone.is_empty() {
            loser = loser.or(Some(at)).filter(|first| stays.get(*first) == Some(&false)).or(Some(at));
            lost |= gone;
        }
    }
    Landing { remaining, covers, lost, loser }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reuse::testing::{facts, ledger, segments, set};

    /// `live`, history, existing, new; then remaining, covers and lost as text.
    fn landed(live: &str, history: &str, existing: &str, new: &str) -> (Vec<String>, Vec<String>, String) {
        let (existing, new) = (segments(existing), segments(new));
        let landing = land(&ledger(history), &set(live), &facts(&existing), &facts(&new));
        assert_eq!(landing.loser.is_some(), !landing.lost.is_empty());
        let shown = |sets: &[RoaringBitmap]| sets.iter().map(text).collect();
        (shown(&landing.remaining), shown(&landing.covers), text(&landing.lost))
    }

    fn text(set: &RoaringBitmap) -> String {
        crate::reuse::explain::list(set).replace(' ', "")
    }

    const P: &str = "SP{0,1}→{10,11}";

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(|w| w.trim_matches('-').to_owned()).collect()
    }

    #[test]
    fn what_only_translates_stays_beside_new_fragments() {
        // FRI-S-24, where Lance removes A and leaves 10 and 11 to scans.
        assert_eq!(landed("{10,11,12}", P, "A{0,1}@2", "N{12}@5"), (words("10,11"), words("12"), String::new()));
        // FRI-O-17, FRI-S-19.
        assert_eq!(landed("{7,10,11}", P, "A{0}@2; B{1}@2", "N{7}@5").0, words("10,11 10,11"));
    }

    #[test]
    fn what_is_covered_anew_goes() {
        assert_eq!(landed("{10,11}", P, "A{0,1}@2", "N{10,11}@5"), (words("-"), words("10,11"), String::new()));
        // Half of it: the other half is still read through the history (FRI-O-01).
        assert_eq!(landed("{10,11}", P, "A{0,1}@2", "N{10}@5"), (words("11"), words("10"), String::new()));
        // FRI-O-05: a withdrawn segment is the record of what to build, and goes when it is built.
        assert_eq!(landed("{10,11}", P, "A∅@2", "N{10,11}@5"), (words("-"), words("10,11"), String::new()));
    }

    #[test]
    fn the_parts_of_a_transition_cover_together() {
        // FRI-S-36: half of a partition covers nothing, both halves cover all.
        assert_eq!(landed("{10,11}", P, "none", "N{0}@2").1, words("-"));
        assert_eq!(landed("{10,11}", P, "none", "N{0}@2; M{1}@2").1, words("10,11 10,11"));
        assert_eq!(landed("{10,11}", P, "A{0}@2", "N{1}@2"), (words("10,11"), words("10,11"), String::new()));
    }

    #[test]
    fn nothing_is_named_twice() {
        // FRI-H-08: the old segment and the new ones name retired fragments in common; the old one would lose fragment 2.
        let (remaining, covers, lost) = landed("{2,10,11}", P, "O{0,1,2}@1", "N{0}@2; M{1}@2");
        assert_eq!((remaining, covers, lost.as_str()), (words("-"), words("10,11 10,11"), "2"));
        // Where nothing is lost it goes.
        assert_eq!(landed("{10,11}", P, "O{0}@1", "N{0,1}@2"), (words("-"), words("10,11"), String::new()));
        assert_eq!(landed("{10,11,30}", P, "D{10,30}@5", "N{10,11}@6").2, "30", "FRI-S-22");
        assert_eq!(landed("{10,11}", P, "D{10}@5", "N{10,11}@6").2, "", "FRI-S-23");
    }

    #[test]
    fn a_segment_of_unknown_coverage_is_never_in_the_way() {
        let (remaining, covers, lost) = landed("{10,11}", P, "A?@2", "N{10,11}@5");
        assert_eq!((remaining, covers, lost), (words("-"), words("10,11"), String::new()));
    }
}
