//! What a commit of further segments does with those that are there (refresh-and-compaction §2.1, steps 4 to 9).

use std::collections::HashSet;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::sets::{Coverage, effective};
use crate::error::{Error, ErrorCode};

/// What happens to an existing segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Fate {
    /// It stays: it covers live fragments and none of those that come in.
    Kept,
    /// It goes: what comes in covers everything it covered, or it covers nothing.
    Removed,
    /// It would lose fragments that nothing else covers: the commit is refused.
    Rejected,
}

/// The fate of one existing segment and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentFate {
    /// The segment.
    pub uuid: Uuid,
    /// What happens to it.
    pub fate: Fate,
    /// Why, for a person.
    pub why: String,
}

/// A segment that is already there under the name, in section order.
#[derive(Clone, Debug, PartialEq)]
pub struct ExistingSegment {
    /// Its id.
    pub uuid: Uuid,
    /// Key field ids, then carried ids.
    pub fields: Vec<i32>,
    /// The carried tail of `fields`.
    pub covering_fields: Vec<i32>,
    /// Type url of its details; `None` on entries without details.
    pub type_url: Option<String>,
    /// What it covers.
    pub coverage: Coverage,
}

/// A segment that is to be committed.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSegment {
    /// Its id.
    pub uuid: Uuid,
    /// Key field ids, then carried ids.
    pub fields: Vec<i32>,
    /// The carried tail of `fields`.
    pub covering_fields: Vec<i32>,
    /// Type url of its details.
    pub type_url: String,
    /// Fragments as declared by the builder.
    pub declared: RoaringBitmap,
    /// `declared` after the staleness prune: what it will claim.
    pub claimed: RoaringBitmap,
    /// Version whose rows it reflects.
    pub dataset_version: u64,
}

/// Everything the rules look at.
#[derive(Clone, Copy, Debug)]
pub struct Proposal<'a> {
    /// Index name, for the sentences only.
    pub name: &'a str,
    /// Live fragments of the manifest the commit builds on.
    pub live: &'a RoaringBitmap,
    /// Version of that manifest.
    pub version: u64,
    /// Field id of the indexed column there.
    pub field: i32,
    /// Segments of the name, section order, also those this build cannot read.
    pub existing: &'a [ExistingSegment],
    /// Segments to commit.
    pub new: &'a [NewSegment],
}

/// The rule that refused a commit, named as in the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// There is nothing to commit.
    NoSegments,
    /// A segment was built on a version newer than the one committed on.
    FutureVersion,
    /// A segment is keyed on another field, or on several.
    WrongField,
    /// The same uuid twice in one commit.
    DuplicateUuid,
    /// Two of the new segments declare the same fragment.
    OverlapIncoming,
    /// The new segments are of different types.
    MixedTypes,
    /// The name belongs to an index on another column.
    NameTaken,
    /// The type changes but not every live fragment is covered.
    PartialTypeChange,
    /// A segment of unknown coverage can only be replaced by exactly all live fragments.
    LegacyPartial,
    /// A segment would lose fragments.
    Orphans,
    /// A kept segment and the new ones carry different columns.
    FieldsDiffer,
}

impl Rule {
    /// The name the cases use.
    pub fn as_str(self) -> &'static str {
        match self {
            Rule::NoSegments => "NO_SEGMENTS",
            Rule::FutureVersion => "FUTURE_VERSION",
            Rule::WrongField => "WRONG_FIELD",
            Rule::DuplicateUuid => "DUPLICATE_UUID",
            Rule::OverlapIncoming => "OVERLAP_INCOMING",
            Rule::MixedTypes => "MIXED_TYPES",
            Rule::NameTaken => "NAME_TAKEN",
            Rule::PartialTypeChange => "PARTIAL_TYPE_CHANGE",
            Rule::LegacyPartial => "LEGACY_PARTIAL",
            Rule::Orphans => "ORPHANS",
            Rule::FieldsDiffer => "FIELDS_DIFFER",
        }
    }

    /// The public error code it is reported under.
    pub fn code(self) -> ErrorCode {
        match self {
            Rule::NoSegments => ErrorCode::NothingLeft,
            Rule::FutureVersion => ErrorCode::StalePlan,
            Rule::WrongField | Rule::FieldsDiffer => ErrorCode::IndexChanged,
            Rule::DuplicateUuid => ErrorCode::UuidInUse,
            Rule::OverlapIncoming => ErrorCode::Overlap,
            Rule::MixedTypes | Rule::PartialTypeChange => ErrorCode::TypeChanged,
            Rule::NameTaken => ErrorCode::IndexExists,
            Rule::LegacyPartial => ErrorCode::BitmapUnknown,
            Rule::Orphans => ErrorCode::PartialReplacement,
        }
    }
}

/// A refused commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The rule.
    pub rule: Rule,
    /// The segment it names: an existing one for `Orphans`, `LegacyPartial`, `PartialTypeChange`, `NameTaken` and
    /// `FieldsDiffer`, a new one otherwise.
    pub segment: Option<Uuid>,
    /// The fragments it is about: those that would be lost, overlap or are not covered.
    pub fragments: RoaringBitmap,
    /// One sentence.
    pub message: String,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        let mut error = Error::new(refusal.rule.code(), refusal.message).with("rule", refusal.rule.as_str());
        if let Some(uuid) = refusal.segment {
            error = error.with("segment", uuid.to_string());
        }
        if !refusal.fragments.is_empty() {
            error = error.with("fragments", refusal.fragments.iter().collect::<Vec<u32>>());
        }
        error
    }
}

/// What the segments cover afterwards where that has to be derived, because bitmaps say what a segment was built from.
#[derive(Clone, Copy, Debug)]
pub struct Derivation<'a> {
    /// Per existing segment what it covers beside the new ones.
    pub remaining: &'a [RoaringBitmap],
    /// Live fragments that nobody would cover any more.
    pub lost: &'a RoaringBitmap,
    /// The existing segment that covered some of them.
    pub loser: Option<Uuid>,
}

/// Applies the rules in their order; the first that fails wins. `Ok` has one fate per existing segment, in order, none
/// of them [`Fate::Rejected`].
pub fn decide(proposal: &Proposal<'_>) -> Result<Vec<SegmentFate>, Refusal> {
    decide_derived(proposal, None)
}

/// The same where coverage is derived: segments stay as long as they cover something beside the new ones.
pub fn decide_derived(proposal: &Proposal<'_>, derived: Option<&Derivation<'_>>) -> Result<Vec<SegmentFate>, Refusal> {
    check_new(proposal)?;
    let first = proposal.new.first().ok_or_else(|| no_segments(proposal))?;
    if let Some(other) = proposal.new.iter().find(|s| s.type_url != first.type_url) {
        return Err(refuse(
            Rule::MixedTypes,
            Some(other.uuid),
            RoaringBitmap::new(),
            format!(
                "index {}: the segments to commit are of different types, {} and {}",
                proposal.name, first.type_url, other.type_url
            ),
        ));
    }
    for segment in proposal.existing {
        if key_of(&segment.fields, &segment.covering_fields) != Some(proposal.field) {
            return Err(refuse(
                Rule::NameTaken,
                Some(segment.uuid),
                RoaringBitmap::new(),
                format!("the name {} belongs to an index on another column (segment {})", proposal.name, segment.uuid),
            ));
        }
    }
    let incoming = super::sets::declared(proposal.new.iter().map(|s| &s.claimed));
    let missing = proposal.live - &incoming;
    let changed = proposal.existing.iter().find(|s| s.type_url.as_deref() != Some(first.type_url.as_str()));
    if let Some(segment) = changed {
        if !missing.is_empty() {
            return Err(refuse(
                Rule::PartialTypeChange,
                Some(segment.uuid),
                missing.clone(),
                format!(
                    "index {}: segment {} is of type {}; replacing it by {} must cover every live fragment, and {} are not covered",
                    proposal.name,
                    segment.uuid,
                    segment.type_url.as_deref().unwrap_or("unknown"),
                    first.type_url,
                    missing.len()
                ),
            ));
        }
        return Ok(proposal
            .existing
            .iter()
            .map(|s| fate(s.uuid, Fate::Removed, "the index changes its type and everything is covered anew".to_owned()))
            .collect());
    }
    if let Some((derived, uuid)) = derived.and_then(|derived| Some((derived, derived.loser?))) {
        let text = format!(
            "index {}: segment {uuid} names fragments that the new segments name as well, so it cannot stay beside them; {} of those it \
             covers would be lost",
            proposal.name,
            derived.lost.len()
        );
        return Err(refuse(Rule::Orphans, Some(uuid), derived.lost.clone(), text));
    }
    let remains = |at: usize| derived.map(|derived| derived.remaining.get(at).cloned().unwrap_or_default());
    let all = proposal.existing.iter().enumerate();
    all.map(|(at, segment)| fate_of(segment, proposal, &incoming, first, remains(at))).collect()
}

/// Step 4: each new segment by itself and against those before it.
fn check_new(proposal: &Proposal<'_>) -> Result<(), Refusal> {
    let name = proposal.name;
    if proposal.new.is_empty() {
        return Err(no_segments(proposal));
    }
    let mut seen = HashSet::new();
    let mut taken = RoaringBitmap::new();
    for segment in proposal.new {
        let uuid = segment.uuid;
        if segment.dataset_version > proposal.version {
            let text = format!(
                "index {name}: segment {uuid} was built on version {}, the table is at version {}",
                segment.dataset_version, proposal.version
            );
            return Err(refuse(Rule::FutureVersion, Some(uuid), RoaringBitmap::new(), text));
        }
        if key_of(&segment.fields, &segment.covering_fields) != Some(proposal.field) {
            let text =
                format!("index {name}: segment {uuid} is keyed on fields {:?}, not on field {}", segment.fields, proposal.field);
            return Err(refuse(Rule::WrongField, Some(uuid), RoaringBitmap::new(), text));
        }
        if !seen.insert(uuid) {
            let text = format!("index {name}: segment {uuid} is given twice");
            return Err(refuse(Rule::DuplicateUuid, Some(uuid), RoaringBitmap::new(), text));
        }
        let shared = &taken & &segment.declared;
        if !shared.is_empty() {
            let text = format!(
                "index {name}: segment {uuid} declares {} fragments that another new segment declares as well",
                shared.len()
            );
            return Err(refuse(Rule::OverlapIncoming, Some(uuid), shared, text));
        }
        taken |= &segment.declared;
    }
    Ok(())
}

/// Step 9 for one existing segment of the same type.
fn fate_of(
    segment: &ExistingSegment,
    proposal: &Proposal<'_>,
    incoming: &RoaringBitmap,
    first: &NewSegment,
    remains: Option<RoaringBitmap>,
) -> Result<SegmentFate, Refusal> {
    let uuid = segment.uuid;
    let Some(bitmap) = &segment.coverage else {
        if incoming == proposal.live {
            return Ok(fate(
                uuid,
                Fate::Removed,
                "its coverage is not recorded and every live fragment is covered anew".to_owned(),
            ));
        }
        return Err(refuse(
            Rule::LegacyPartial,
            Some(uuid),
            proposal.live - incoming,
            format!(
                "index {}: segment {uuid} has no recorded coverage, so only a refresh of exactly all {} live fragments may replace it",
                proposal.name,
                proposal.live.len()
            ),
        ));
    };
    let covers = effective(bitmap, proposal.live);
    if covers.is_empty() && remains.as_ref().is_none_or(RoaringBitmap::is_empty) {
        let why = if bitmap.is_empty() { "it covers nothing" } else { "every fragment it covered is gone" };
        return Ok(fate(uuid, Fate::Removed, why.to_owned()));
    }
    // Where coverage is derived, segments may cover a fragment together.
    if remains.as_ref().map_or(covers.is_disjoint(incoming), |remains| !remains.is_empty()) {
        if segment.fields != first.fields || segment.covering_fields != first.covering_fields {
            return Err(refuse(
                Rule::FieldsDiffer,
                Some(uuid),
                RoaringBitmap::new(),
                format!("index {}: segment {uuid} would stay but carries other columns than the new segments", proposal.name),
            ));
        }
        let covers = remains.unwrap_or(covers);
        return Ok(fate(uuid, Fate::Kept, format!("it alone covers {} live fragments", covers.len())));
    }
    let lost = if remains.is_some() { RoaringBitmap::new() } else { &covers - incoming };
    if lost.is_empty() {
        return Ok(fate(uuid, Fate::Removed, format!("the new segments cover all of its {} live fragments", covers.len())));
    }
    let text = format!(
        "index {}: segment {uuid} is covered only partly by the new segments; {} of its fragments would be lost",
        proposal.name,
        lost.len()
    );
    Err(refuse(Rule::Orphans, Some(uuid), lost, text))
}

/// The one key field, when there is exactly one.
fn key_of(fields: &[i32], covering: &[i32]) -> Option<i32> {
    match fields.strip_suffix(covering)? {
        [key] => Some(*key),
        _ => None,
    }
}

fn fate(uuid: Uuid, fate: Fate, why: String) -> SegmentFate {
    SegmentFate { uuid, fate, why }
}

fn no_segments(proposal: &Proposal<'_>) -> Refusal {
    refuse(Rule::NoSegments, None, RoaringBitmap::new(), format!("index {}: there are no segments to commit", proposal.name))
}

fn refuse(rule: Rule, segment: Option<Uuid>, fragments: RoaringBitmap, message: String) -> Refusal {
    Refusal { rule, segment, fragments, message }
}

/// The first uuid of `new` that the table's index section uses already, under whatever name.
///
/// Core lets the new entry displace the old one silently (§8.1, hole 7); we refuse.
pub fn uuid_in_use(new: impl IntoIterator<Item = Uuid>, section: impl IntoIterator<Item = Uuid>) -> Option<Uuid> {
    let used: HashSet<Uuid> = section.into_iter().collect();
    new.into_iter().find(|uuid| used.contains(uuid))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ids: &[u32]) -> RoaringBitmap {
        ids.iter().copied().collect()
    }

    fn old(n: u128, coverage: Option<&[u32]>) -> ExistingSegment {
        ExistingSegment {
            uuid: Uuid::from_u128(n),
            fields: vec![3],
            covering_fields: vec![],
            type_url: Some("/t".into()),
            coverage: coverage.map(set),
        }
    }

    fn new(n: u128, ids: &[u32]) -> NewSegment {
        NewSegment {
            uuid: Uuid::from_u128(n),
            fields: vec![3],
            covering_fields: vec![],
            type_url: "/t".into(),
            declared: set(ids),
            claimed: set(ids),
            dataset_version: 1,
        }
    }

    fn run(existing: &[ExistingSegment], new: &[NewSegment]) -> Result<Vec<Fate>, Rule> {
        let live = set(&[0, 1, 2, 3]);
        decide(&Proposal { name: "i", live: &live, version: 5, field: 3, existing, new })
            .map(|fates| fates.into_iter().map(|f| f.fate).collect())
            .map_err(|refusal| refusal.rule)
    }

    #[test]
    fn the_tree() {
        let fates = run(&[old(1, Some(&[0])), old(2, Some(&[1])), old(3, Some(&[9])), old(4, Some(&[]))], &[new(9, &[1, 2])]);
        assert_eq!(fates.unwrap(), [Fate::Kept, Fate::Removed, Fate::Removed, Fate::Removed]);
        assert_eq!(run(&[old(1, Some(&[0, 1]))], &[new(9, &[1, 2])]), Err(Rule::Orphans));
        assert_eq!(run(&[old(1, None)], &[new(9, &[0, 1, 2])]), Err(Rule::LegacyPartial));
        assert_eq!(run(&[old(1, None)], &[new(9, &[0, 1]), new(8, &[2, 3])]).unwrap(), [Fate::Removed]);
    }

    #[test]
    fn a_kept_segment_with_other_columns_is_refused() {
        let carrying = ExistingSegment { fields: vec![3, 7], covering_fields: vec![7], ..old(1, Some(&[0])) };
        assert_eq!(run(std::slice::from_ref(&carrying), &[new(9, &[1])]), Err(Rule::FieldsDiffer));
        assert_eq!(run(&[carrying], &[new(9, &[0])]).unwrap(), [Fate::Removed]);
    }

    #[test]
    fn refusals_become_typed_errors() {
        let live = set(&[0, 1]);
        let existing = [old(1, Some(&[0, 1]))];
        let built = [new(9, &[1])];
        let error: Error = decide(&Proposal { name: "i", live: &live, version: 5, field: 3, existing: &existing, new: &built })
            .unwrap_err()
            .into();
        assert_eq!(error.code(), ErrorCode::PartialReplacement);
        assert_eq!(error.detail().get("fragments"), Some(&serde_json::json!([0])));
    }

    #[test]
    fn a_used_uuid_is_found_under_any_name() {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!(uuid_in_use([a, b], [b]), Some(b));
        assert_eq!(uuid_in_use([a], [b]), None);
    }
}
