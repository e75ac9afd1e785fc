//! Segments that newer ones of the same index make needless (spec fragment-reuse §12).

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::coverage::Derived;
use super::segment::Segment;
use crate::lists::sorted_by;

/// A segment that goes, and the ones that justify it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superseded {
    /// Its place among the segments.
    pub segment: usize,
    /// Live fragments it covers, all of them named by newer segments that stay; empty when it covers nothing at all.
    pub covered: RoaringBitmap,
    /// Places of the newer segments that name them.
    pub by: Vec<usize>,
}

/// What a prune removes. Newest first: only segments that are usable count as covering, and only those that stay.
pub fn superseded(live: &RoaringBitmap, segments: &[Segment<'_>], derived: &[Derived]) -> Vec<Superseded> {
    let mut names: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, segment) in segments.iter().enumerate() {
        names.entry(segment.index).or_default().push(at);
    }
    let mut all = Vec::new();
    for members in names.into_values() {
        let age = |at: &usize| segments.get(*at).map(|s| (s.dataset_version, s.uuid));
        let newest_first = sorted_by(members, |a, b| age(b).cmp(&age(a)));
        let mut direct = RoaringBitmap::new();
        let mut kept: Vec<usize> = Vec::new();
        for at in newest_first {
            let Some(segment) = segments.get(at) else { continue };
            let Some(stored) = segment.stored.filter(|_| segment.usable) else {
                kept.push(at);
                continue;
            };
            let named = stored & live;
            let listed = derived.get(at).map(|d| &d.coverage & live).unwrap_or_default();
            let covered = &named | &listed;
            if !kept.is_empty() && covered.is_subset(&direct) {
                let names_some = |k: &usize| {
                    let other = segments.get(*k).filter(|other| other.usable).and_then(|other| other.stored);
                    other.is_some_and(|other| !other.is_disjoint(&covered))
                };
                let by = kept.iter().copied().filter(names_some).collect();
                all.push(Superseded { segment: at, covered, by });
            } else {
                kept.push(at);
                direct |= named;
            }
        }
    }
    all
}
