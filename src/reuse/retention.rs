//! Which records of a history are still needed, and what a trim leaves (spec fragment-reuse §11).
//!
//! A transition stays while some segment holds rows of its sources and some destination is named by nobody itself. What stays
//! keeps everything downstream of it, so that no row ends on the way. Fragments are compared by id, live or not.

use std::collections::BTreeMap;

use bytes::Bytes;
use roaring::RoaringBitmap;
use uuid::Uuid;

use super::content::{check_known, records, splice};
use super::ledger::Ledger;
use super::legacy::{LegacyVersion, behind, chain};
use super::segment::Segment;
use crate::error::{Error, ErrorCode, Result};

/// Why a record stays.
#[derive(Clone, Debug, PartialEq)]
pub enum Need {
    /// Segments of an index are read through a transition.
    Translates {
        /// Position of the transition.
        position: usize,
        /// The index.
        index: String,
        /// Segments that hold rows of its sources.
        segments: Vec<Uuid>,
        /// Destinations that no usable segment of the index names.
        missing: RoaringBitmap,
    },
    /// A segment has not caught up with a version-0 compaction.
    NotCaughtUp {
        /// The index.
        index: String,
        /// The segment.
        segment: Uuid,
    },
    /// Rows pass through it after a transition that stays.
    Downstream {
        /// Position of that transition.
        of: usize,
        /// Position of the transition it keeps.
        position: usize,
    },
}

/// What a trim does.
#[derive(Clone, Debug, PartialEq)]
pub enum Trim {
    /// Every record is needed.
    Nothing,
    /// No record is needed: the entry goes.
    Delete,
    /// Some are.
    Replace {
        /// Their bytes, unchanged, in their order.
        content: Bytes,
        /// Fragments they name.
        ids: RoaringBitmap,
    },
}

/// Per record the reasons for which it stays; none = a trim removes it.
pub fn needs(ledger: &Ledger, segments: &[Segment<'_>]) -> Vec<Vec<Need>> {
    let mut needs: Vec<Vec<Need>> = ledger.records.iter().map(|_| Vec::new()).collect();
    for_translation(ledger, segments, &mut needs);
    for_legacy(ledger, segments, &mut needs);
    downstream(ledger, &mut needs);
    needs
}

struct Held {
    provenance: RoaringBitmap,
    direct: RoaringBitmap,
}

fn for_translation(ledger: &Ledger, segments: &[Segment<'_>], needs: &mut [Vec<Need>]) {
    let mut names: BTreeMap<&str, Held> = BTreeMap::new();
    for segment in segments {
        let held = Held { provenance: RoaringBitmap::new(), direct: RoaringBitmap::new() };
        let held = names.entry(segment.index).or_insert(held);
        if let Some(stored) = segment.stored {
            held.provenance |= stored;
            if segment.usable {
                held.direct |= stored;
            }
        }
    }
    for (position, transition) in ledger.transitions.iter().enumerate().filter(|(_, t)| t.legacy_stamp.is_none()) {
        for (index, held) in &names {
            if !transition.source_ids().any(|id| held.provenance.contains(id)) {
                continue;
            }
            let missing: RoaringBitmap = transition.destination_ids().filter(|id| !held.direct.contains(*id)).collect();
            let Some(needs) = needs.get_mut(transition.record).filter(|_| !missing.is_empty()) else { continue };
            let holds = |s: &&Segment<'_>| {
                s.index == *index && s.stored.is_some_and(|stored| transition.source_ids().any(|id| stored.contains(id)))
            };
            let segments = segments.iter().filter(holds).map(|s| s.uuid).collect();
            needs.push(Need::Translates { position, index: (*index).to_owned(), segments, missing });
        }
    }
}

fn for_legacy(ledger: &Ledger, segments: &[Segment<'_>], needs: &mut [Vec<Need>]) {
    let mut versions: BTreeMap<usize, LegacyVersion> = BTreeMap::new();
    for transition in &ledger.transitions {
        if let Some(stamp) = transition.legacy_stamp {
            let first = || LegacyVersion { record: transition.record, stamp, groups: Vec::new() };
            let version = versions.entry(transition.record).or_insert_with(first);
            version.groups.push((transition.source_ids().collect(), transition.destination_ids().collect()));
        }
    }
    let versions: Vec<LegacyVersion> = versions.into_values().collect();
    fill_legacy(&versions, segments, needs);
}

fn fill_legacy(versions: &[LegacyVersion], segments: &[Segment<'_>], needs: &mut [Vec<Need>]) {
    let chain = chain(versions);
    for version in versions {
        let Some(needs) = needs.get_mut(version.record) else { continue };
        for segment in behind(version, &chain, segments) {
            needs.push(Need::NotCaughtUp { index: segment.index.to_owned(), segment: segment.uuid });
        }
    }
}

/// Per record of a version-0 history the reasons for which it stays (§3.5).
pub fn needs_of_legacy(records: usize, versions: &[LegacyVersion], segments: &[Segment<'_>]) -> Vec<Vec<Need>> {
    let mut needs: Vec<Vec<Need>> = (0..records).map(|_| Vec::new()).collect();
    fill_legacy(versions, segments, &mut needs);
    needs
}

/// What a trim of a version-0 history does. Its entry always stays, if need be with nothing in it.
///
/// # Errors
/// `CORRUPT_FILE`, `HISTORY_UNSUPPORTED`.
pub fn trim_legacy(object: &str, content: &Bytes, segments: &[Segment<'_>]) -> Result<Trim> {
    let records = records(object, content)?;
    let versions = LegacyVersion::of(object, &records)?;
    let needs = needs_of_legacy(records.len(), &versions, segments);
    let kept = |at: usize| needs.get(at).is_some_and(|needs| !needs.is_empty());
    if (0..records.len()).all(kept) {
        return Ok(Trim::Nothing);
    }
    let content = splice(records.iter().enumerate().filter(|(at, _)| kept(*at)).map(|(_, record)| record));
    let ids = versions.iter().filter(|version| kept(version.record)).flat_map(LegacyVersion::written).collect();
    Ok(Trim::Replace { content, ids })
}

/// Keeps what follows on what stays. A version-0 record stays with all its groups, and so with what follows on any of them.
fn downstream(ledger: &Ledger, needs: &mut [Vec<Need>]) {
    let mut of_record: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (position, transition) in ledger.transitions.iter().enumerate() {
        of_record.entry(transition.record).or_default().push(position);
    }
    let mut open: Vec<usize> = (0..needs.len()).filter(|record| needs.get(*record).is_some_and(|n| !n.is_empty())).collect();
    while let Some(record) = open.pop() {
        for of in of_record.get(&record).into_iter().flatten() {
            let Some(transition) = ledger.transitions.get(*of) else { continue };
            for position in transition.destination_ids().filter_map(|id| ledger.consumer(id)) {
                let Some(next) = ledger.transitions.get(position).filter(|next| next.record != record) else { continue };
                let Some(needs) = needs.get_mut(next.record) else { continue };
                if needs.is_empty() {
                    open.push(next.record);
                }
                let need = Need::Downstream { of: *of, position };
                if !needs.contains(&need) {
                    needs.push(need);
                }
            }
        }
    }
}

/// What a trim of this history does.
///
/// # Errors
/// `HISTORY_UNSUPPORTED` when there is something in it that this build does not know.
pub fn trim(object: &str, ledger: &Ledger, segments: &[Segment<'_>]) -> Result<Trim> {
    check_supported(object, ledger)?;
    let kept: Vec<bool> = needs(ledger, segments).iter().map(|needs| !needs.is_empty()).collect();
    if kept.iter().all(|kept| *kept) {
        return Ok(Trim::Nothing);
    }
    if !kept.contains(&true) {
        return Ok(Trim::Delete);
    }
    let content = splice(ledger.records.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(record, _)| record));
    // What is published must be readable again, whatever the splicing did.
    let again = Ledger::decode(object, &content)?;
    if !again.supported {
        return Err(Error::internal("a trimmed history is not understood any more"));
    }
    Ok(Trim::Replace { content, ids: ledger.ids_of(&kept) })
}

/// Refuses a history with something unknown in it, for whoever wants to change it or rely on it.
///
/// # Errors
/// `HISTORY_UNSUPPORTED`.
pub fn check_supported(object: &str, ledger: &Ledger) -> Result<()> {
    check_known(object, &ledger.records)?;
    if ledger.supported {
        return Ok(());
    }
    let text = format!("{object}: the history has transitions with fields this build does not know; nothing was changed");
    Err(Error::new(ErrorCode::HistoryUnsupported, text))
}
