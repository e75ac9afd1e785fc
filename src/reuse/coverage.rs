//! What each segment covers through a history, as Lance's reader derives it, and why (spec fragment-reuse §7).
//!
//! Stored bitmaps say what segments were built from. A live fragment is covered by whoever names it directly, else by everyone
//! who holds part of the rows that went into it, provided that no part is missing.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::ledger::Ledger;
use super::segment::{Capability, Segment};
use super::transition::Transition;

/// What the reader makes of one segment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Derived {
    /// Whether queries see it.
    pub listed: bool,
    /// Live fragments it covers; empty when it is not listed.
    pub coverage: RoaringBitmap,
    /// How it comes to that.
    pub state: State,
    /// Fragments whose rows it must not hand out, since another segment of the index holds them itself.
    pub excluded: RoaringBitmap,
    /// Transitions its rows pass through, by position.
    pub path: Vec<usize>,
}

/// Why a segment covers what it covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing it names has moved: read as stored.
    #[default]
    Direct,
    /// Read through the history.
    Translated,
    /// Its bitmap was emptied, because its values were rewritten in place.
    Withdrawn,
    /// Newer segments hold everything it would cover.
    Superseded,
    /// Some fragments that went into the same destinations are in no segment of the index.
    ContributorsMissing,
    /// No row it was built from is in a live fragment any more.
    Gone,
    /// A vector segment with files that covers nothing at present.
    Dormant,
    /// The history, its missing bitmap or its type does not allow to derive anything.
    Unsupported,
    /// It does not record what it is.
    Corrupt,
}

impl State {
    /// As the documents name it.
    pub fn name(self) -> &'static str {
        match self {
            State::Direct => "direct",
            State::Translated => "translated",
            State::Withdrawn => "withdrawn",
            State::Superseded => "superseded",
            State::ContributorsMissing => "contributors_missing",
            State::Gone => "gone",
            State::Dormant => "dormant",
            State::Unsupported => "unsupported",
            State::Corrupt => "corrupt",
        }
    }
}

/// Plan of one segment: what the set logic alone says, before types are asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Live fragments it covers.
    pub coverage: RoaringBitmap,
    /// Fragments other segments name and it does not.
    pub excluded: RoaringBitmap,
    /// Transitions it contributes through.
    pub path: Vec<usize>,
}

/// Whether a segment with this bitmap may hold addresses that moved.
pub fn may_translate(ledger: &Ledger, live: &RoaringBitmap, stored: Option<&RoaringBitmap>) -> bool {
    match stored {
        Some(stored) if ledger.supported => !stored.is_subset(live) || stored.iter().any(|f| ledger.mentions(f)),
        _ => true,
    }
}

/// Who names which fragment: pairs of fragment and segment, in that order.
struct Direct(Vec<u64>);

impl Direct {
    fn of(stored: &[&RoaringBitmap]) -> Direct {
        let pairs = (0u64..).zip(stored).flat_map(|(at, b)| b.iter().map(move |f| u64::from(f) << 32 | at));
        let mut pairs: Vec<u64> = pairs.collect();
        pairs.sort_unstable();
        Direct(pairs)
    }

    /// Segments that name a fragment, ascending.
    fn holders(&self, fragment: u32) -> impl Iterator<Item = u32> + '_ {
        let first = u64::from(fragment) << 32;
        let from = self.0.partition_point(|pair| *pair < first);
        let pairs = self.0.get(from..).unwrap_or_default().iter();
        pairs.take_while(move |pair| **pair >> 32 == u64::from(fragment)).map(|pair| *pair as u32)
    }

    fn any(&self, fragment: u32) -> bool {
        self.holders(fragment).next().is_some()
    }
}

/// The plans of the segments of one index with these stored bitmaps (§7.2).
pub fn plans(ledger: &Ledger, live: &RoaringBitmap, stored: &[&RoaringBitmap]) -> Vec<Plan> {
    let direct = Direct::of(stored);
    let contributors = contributors(ledger, live, &direct);
    let mut plans: Vec<Plan> = stored.iter().map(|_| Plan::default()).collect();
    for fragment in live {
        let mut held = false;
        for segment in direct.holders(fragment) {
            held = true;
            if let Some(plan) = plans.get_mut(segment as usize) {
                plan.coverage.insert(fragment);
            }
        }
        let made = ledger.producer(fragment).filter(|_| !held).and_then(|at| contributors.get(at)?.as_ref());
        for segment in made.into_iter().flatten() {
            if let Some(plan) = plans.get_mut(*segment as usize) {
                plan.coverage.insert(fragment);
            }
        }
    }
    for (position, segments) in contributors.iter().enumerate() {
        for segment in segments.iter().flatten() {
            if let Some(plan) = plans.get_mut(*segment as usize) {
                plan.path.push(position);
            }
        }
    }
    let mut all = RoaringBitmap::new();
    for stored in stored {
        all |= *stored;
    }
    for (plan, stored) in plans.iter_mut().zip(stored) {
        plan.excluded = &all - *stored;
    }
    plans
}

/// Per transition that some live fragment needs: the segments its rows come from, `None` when a source is nobody's.
fn contributors(ledger: &Ledger, live: &RoaringBitmap, direct: &Direct) -> Vec<Option<Vec<u32>>> {
    let mut asked = vec![false; ledger.transitions.len()];
    let ask = |asked: &mut Vec<bool>, fragment: u32| {
        if let Some(slot) = ledger.producer(fragment).filter(|_| !direct.any(fragment)).and_then(|at| asked.get_mut(at)) {
            *slot = true;
        }
    };
    for fragment in live {
        ask(&mut asked, fragment);
    }
    // Producers stand before consumers: down for what is needed, up for what that yields.
    for (at, transition) in ledger.transitions.iter().enumerate().rev() {
        if asked.get(at) == Some(&true) {
            transition.source_ids().for_each(|source| ask(&mut asked, source));
        }
    }
    let mut all: Vec<Option<Vec<u32>>> = Vec::with_capacity(asked.len());
    for (transition, asked) in ledger.transitions.iter().zip(asked) {
        let found = if asked { gather(ledger, transition, direct, &all) } else { None };
        all.push(found);
    }
    all
}

fn gather(ledger: &Ledger, transition: &Transition, direct: &Direct, earlier: &[Option<Vec<u32>>]) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for source in transition.source_ids() {
        let before = found.len();
        found.extend(direct.holders(source));
        if found.len() == before {
            found.extend(earlier.get(ledger.producer(source)?)?.as_ref()?);
        }
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// What the reader makes of all segments of a table, in their order (§7.3, §7.4).
pub fn derive(ledger: &Ledger, live: &RoaringBitmap, segments: &[Segment<'_>]) -> Vec<Derived> {
    let mut derived: Vec<Derived> = segments.iter().map(|_| Derived::default()).collect();
    let mut names: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, segment) in segments.iter().enumerate() {
        names.entry(segment.index).or_default().push(at);
    }
    for members in names.into_values() {
        derive_index(ledger, live, segments, &members, &mut derived);
    }
    derived
}

fn derive_index(ledger: &Ledger, live: &RoaringBitmap, segments: &[Segment<'_>], members: &[usize], out: &mut [Derived]) {
    let supported = |segment: &Segment<'_>| {
        ledger.supported
            && segment.usable
            && (!may_translate(ledger, live, segment.stored)
                || segment.stored.is_some() && segment.capability == Capability::Translates)
    };
    let of = |members: &[usize]| -> (Vec<usize>, Vec<Plan>) {
        let usable = |at: &usize| Some((*at, segments.get(*at).and_then(|s| s.stored)?));
        let (places, stored): (Vec<usize>, Vec<&RoaringBitmap>) = members.iter().filter_map(usable).unzip();
        let plans = plans(ledger, live, &stored);
        (places, plans)
    };
    let candidates: Vec<usize> = members.iter().copied().filter(|at| segments.get(*at).is_some_and(supported)).collect();
    let (places, first) = of(&candidates);
    let listed: Vec<usize> = places.iter().zip(&first).filter(|(_, plan)| !plan.coverage.is_empty()).map(|(at, _)| *at).collect();
    // Exclusions and paths follow from the segments queries see; the others are not there for them.
    let again = (listed.len() < places.len()).then(|| of(&listed));
    for (at, plan) in places.iter().zip(first) {
        if let Some(derived) = out.get_mut(*at) {
            (derived.listed, derived.coverage) = (!plan.coverage.is_empty(), plan.coverage);
            if again.is_none() {
                (derived.excluded, derived.path) = (plan.excluded, plan.path);
            }
        }
    }
    for (at, plan) in again.into_iter().flat_map(|(places, plans)| places.into_iter().zip(plans)) {
        if let Some(derived) = out.get_mut(at) {
            (derived.excluded, derived.path) = (plan.excluded, plan.path);
        }
    }
    let mut direct = RoaringBitmap::new();
    for stored in listed.iter().filter_map(|at| segments.get(*at)?.stored) {
        direct |= stored;
    }
    for at in members {
        if let (Some(segment), Some(derived)) = (segments.get(*at), out.get_mut(*at)) {
            derived.state = state(ledger, live, segment, derived.listed, &direct);
        }
    }
}

fn state(ledger: &Ledger, live: &RoaringBitmap, segment: &Segment<'_>, listed: bool, direct: &RoaringBitmap) -> State {
    let stored = match segment.stored {
        Some(stored) if stored.is_empty() => return State::Withdrawn,
        stored => stored,
    };
    if !may_translate(ledger, live, stored) {
        return State::Direct;
    }
    if listed {
        return State::Translated;
    }
    let Some(stored) = stored.filter(|_| ledger.supported) else { return State::Unsupported };
    if !segment.described || segment.capability == Capability::Unknown {
        return State::Corrupt;
    }
    if segment.capability == Capability::IdentityOnly || !segment.usable {
        return State::Unsupported;
    }
    if segment.vector {
        return State::Dormant;
    }
    let reached = (ledger.reach(stored) | stored) & live;
    if reached.is_empty() {
        State::Gone
    } else if reached.is_subset(direct) {
        State::Superseded
    } else {
        State::ContributorsMissing
    }
}
