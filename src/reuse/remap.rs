//! What a segment could claim once its file is rewritten along the history (spec fragment-reuse §14). Planning only.

use roaring::RoaringBitmap;

use super::coverage::{Derived, State};
use super::ledger::Ledger;
use super::segment::Segment;
use super::transition::Mapping;

/// What rewriting a segment's file would lead to.
#[derive(Clone, Debug, PartialEq)]
pub enum RemapPlan {
    /// Nothing of it moved.
    Identity,
    /// It holds only part of what went through a partition, or its record is gone already: this fragment.
    Blocked(u32),
    /// It can be carried on.
    Remap {
        /// Transitions to apply, by position; none = only its bitmap changes.
        hops: Vec<usize>,
        /// Fragments it covers afterwards.
        coverage: RoaringBitmap,
        /// Fragments whose rows its file may hold on the way.
        admitted: RoaringBitmap,
    },
}

/// What a segment was built from, when a version-0 reader has moved its bitmap on already: the moves are taken back.
pub fn effective_provenance(ledger: &Ledger, stored: &RoaringBitmap, dataset_version: u64) -> RoaringBitmap {
    let mut from = stored.clone();
    for transition in ledger.transitions.iter().rev() {
        if transition.legacy_stamp.is_none_or(|stamp| dataset_version > stamp) || transition.destinations.is_empty() {
            continue;
        }
        let moved =
            transition.destination_ids().all(|id| from.contains(id)) && !transition.source_ids().any(|id| from.contains(id));
        if moved {
            transition.destination_ids().for_each(|id| {
                from.remove(id);
            });
            from.extend(transition.source_ids());
        }
    }
    from
}

/// Plans a remap of a segment built from `provenance`. `lineage` is the reuse entry's own bitmap: fragments it names and the
/// history does not are those whose record was trimmed.
pub fn plan_remap(ledger: &Ledger, provenance: &RoaringBitmap, live: &RoaringBitmap, lineage: &RoaringBitmap) -> RemapPlan {
    let (mut coverage, mut admitted) = (provenance.clone(), provenance.clone());
    let mut hops = Vec::new();
    let (mut restamped, mut changed) = (false, false);
    for (position, transition) in ledger.transitions.iter().enumerate() {
        let held: RoaringBitmap = transition.source_ids().filter(|id| coverage.contains(*id)).collect();
        let Some(first) = held.min() else { continue };
        let partition = matches!(transition.mapping, Mapping::StablePartition(_));
        if held.len() == transition.sources.len() as u64 {
            coverage.extend(transition.destination_ids());
            admitted.extend(transition.destination_ids());
            hops.push(position);
            restamped |= partition;
        } else if partition || restamped {
            return RemapPlan::Blocked(first);
        }
        coverage -= held;
        changed = true;
    }
    let lost = |id: &u32| lineage.contains(*id) && !ledger.mentions(*id);
    if let Some(id) = (&coverage - live).iter().find(lost) {
        return RemapPlan::Blocked(id);
    }
    if changed { RemapPlan::Remap { hops, coverage, admitted } } else { RemapPlan::Identity }
}

/// What rewriting one segment would publish.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Nothing: the reader derives no coverage for it.
    Skip,
    /// Nothing: none of it moved.
    Identity,
    /// Nothing: this fragment stands in the way.
    Blocked(u32),
    /// The same files under another bitmap.
    Keep(RoaringBitmap),
    /// New files, which cover this.
    Rewrite(RoaringBitmap),
}

/// The outcome for a segment whose derived coverage is `derived`.
pub fn outcome(
    ledger: &Ledger,
    live: &RoaringBitmap,
    lineage: &RoaringBitmap,
    segment: &Segment<'_>,
    derived: &Derived,
) -> Outcome {
    let readable = matches!(derived.state, State::Direct | State::Translated);
    let Some(stored) = segment.stored.filter(|_| readable) else { return Outcome::Skip };
    let provenance = effective_provenance(ledger, stored, segment.dataset_version);
    match plan_remap(ledger, &provenance, live, lineage) {
        RemapPlan::Identity => Outcome::Identity,
        RemapPlan::Blocked(fragment) => Outcome::Blocked(fragment),
        RemapPlan::Remap { hops, coverage, .. } if hops.is_empty() => Outcome::Keep(coverage),
        // Only what the file can hold is published: rows that siblings name themselves were never this segment's to claim.
        RemapPlan::Remap { coverage, .. } => Outcome::Rewrite(coverage & &derived.coverage),
    }
}
