//! Decisions about a history as sentences.

use roaring::RoaringBitmap;

use super::coverage::{Derived, State};
use super::ledger::Ledger;
use super::retention::Need;
use super::segment::Segment;
use super::transition::Transition;

/// "3, 4, 9" with the middle of long lists left out.
pub fn list(ids: &RoaringBitmap) -> String {
    const SHOWN: usize = 12;
    let mut words: Vec<String> = ids.iter().take(SHOWN).map(|id| id.to_string()).collect();
    if ids.len() > SHOWN as u64 {
        words.push(format!("and {} more", ids.len() - SHOWN as u64));
    }
    words.join(", ")
}

/// "0, 1 → 10, 11".
pub fn arrow_of(from: &RoaringBitmap, to: &RoaringBitmap) -> String {
    if to.is_empty() { format!("{} → nothing", list(from)) } else { format!("{} → {}", list(from), list(to)) }
}

/// The same for a transition.
pub fn arrow(transition: &Transition) -> String {
    arrow_of(&transition.source_ids().collect(), &transition.destination_ids().collect())
}

/// Why a record stays, in a sentence.
pub fn need(ledger: &Ledger, need: &Need) -> String {
    let arrow_of = |position: usize| ledger.transitions.get(position).map(arrow).unwrap_or_default();
    match need {
        Need::Translates { position, index, segments, missing } => {
            let many = if segments.len() == 1 { "segment" } else { "segments" };
            let names: Vec<String> = segments.iter().map(uuid::Uuid::to_string).collect();
            let verb = if segments.len() == 1 { "translates" } else { "translate" };
            format!(
                "{many} {} of {index} still {verb} {} through it, and no usable segment of {index} names {}; rebuild or remap to release it",
                names.join(", "),
                arrow_of(*position),
                list(missing)
            )
        }
        Need::NotCaughtUp { index, segment } => format!(
            "segment {segment} of {index} was built before this version-0 compaction was followed; remap or rebuild it to release the record"
        ),
        Need::Downstream { of, position } => format!(
            "rows that pass {} go on through {}: it stays as long as transition {of} does",
            arrow_of(*of),
            arrow_of(*position)
        ),
    }
}

/// Why a segment covers what it covers, in a sentence; `None` = it covers what it names.
pub fn state(ledger: &Ledger, live: &RoaringBitmap, segment: &Segment<'_>, derived: &Derived) -> Option<String> {
    let stored = segment.stored.cloned().unwrap_or_default();
    Some(match derived.state {
        State::Direct if !derived.listed && !segment.usable => {
            "its type or format version is newer than Lance 14 reads, so queries leave it out".to_owned()
        }
        State::Direct => return None,
        State::Translated => {
            format!(
                "built from {}; read through {} transitions it covers {}",
                list(&stored),
                derived.path.len(),
                list(&derived.coverage)
            )
        }
        State::Withdrawn => {
            "its values were rewritten in place and its coverage was withdrawn; it stays as the record of what to build"
                .to_owned()
        }
        State::Superseded => {
            let reached = (ledger.reach(&stored) | &stored) & live;
            format!("newer segments name {} themselves, which is all it would cover", list(&reached))
        }
        State::ContributorsMissing => {
            let missing = missing(ledger, live, &stored);
            format!(
                "it holds only part of what went into {}; rows of the rest are in no segment it could be read with",
                list(&missing)
            )
        }
        State::Gone => "no row it was built from is in a live fragment".to_owned(),
        State::Dormant => "its files cover no live fragment at present".to_owned(),
        State::Unsupported if segment.stored.is_none() => "it records no bitmap, so nothing can be derived".to_owned(),
        State::Unsupported if !ledger.supported => {
            "the history has something in it that this build does not know, so nothing may be derived".to_owned()
        }
        State::Unsupported => "segments of its type cannot be read through a history".to_owned(),
        State::Corrupt => "it does not record a type that is known".to_owned(),
    })
}

fn missing(ledger: &Ledger, live: &RoaringBitmap, stored: &RoaringBitmap) -> RoaringBitmap {
    (ledger.reach(stored) | stored) & live
}

/// Why a prune removes a segment.
pub fn pruned(segments: &[Segment<'_>], gone: &super::superseded::Superseded) -> String {
    let by: Vec<String> = gone.by.iter().filter_map(|at| Some(segments.get(*at)?.uuid.to_string())).collect();
    if gone.covered.is_empty() {
        return "it covers nothing, and a newer segment of its index stays".to_owned();
    }
    format!("all it covers ({}) is named by newer segments of its index that stay: {}", list(&gone.covered), by.join(", "))
}
