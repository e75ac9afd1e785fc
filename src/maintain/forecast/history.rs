//! A layout under a tagged reuse history, moved on by steps: what is stored decides what compactions group, what is derived from it
//! is what queries find (spec fragment-reuse §7, §8.1, §9.6).
//!
//! A refresh is predicted by what its planner and its commit ask, `reuse::landing` among it; a compaction by recording it. As
//! with other tables, what depends on the content of files (stale rows) is left to the plan of the refresh.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use uuid::Uuid;

use super::tagged::{check_compactable, with_compaction};
use crate::compaction::steps::{self, Absorbing, Cut, Ground, Step, Took};
use crate::compaction::{CompactionOptions, Cover, Kind, Layout, Resolved, effects, plan};
use crate::error::{Error, ErrorCode, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::lists::sorted_by_key;
use crate::reuse::coverage::derive;
use crate::reuse::explain::list;
use crate::reuse::landing::land;
use crate::reuse::ledger::Ledger;
use crate::reuse::segment::{Capability, Segment};
use crate::table::history::TaggedHistory;

/// The history beside a layout whose covers say what is stored.
#[derive(Clone)]
pub struct Derivation {
    object: String,
    ledger: Ledger,
    /// Per segment of the layout, in its order.
    facts: Vec<Facts>,
}

/// What matters about a segment beside what it stores.
#[derive(Clone, Copy)]
struct Facts {
    uuid: Uuid,
    dataset_version: u64,
    usable: bool,
    capability: Capability,
    described: bool,
    vector: bool,
}

impl Derivation {
    /// For the layout of these index entries.
    pub fn new(history: &TaggedHistory, indices: &[IndexMetadata]) -> Derivation {
        let facts = |(_, s): (usize, Segment<'_>)| Facts {
            uuid: s.uuid,
            dataset_version: s.dataset_version,
            usable: s.usable,
            capability: s.capability,
            described: s.described,
            vector: s.vector,
        };
        let facts = Segment::all(indices).into_iter().map(facts).collect();
        Derivation { object: history.object.clone(), ledger: history.ledger.clone(), facts }
    }

    /// The layout with what queries find through each segment in place of what is stored.
    pub fn served(&self, layout: &Layout) -> Layout {
        let places: Vec<usize> = (0..layout.covers.len()).collect();
        let mut served = layout.clone();
        for (cover, covers) in served.covers.iter_mut().zip(self.covers(layout, &places)) {
            cover.bitmap = covers;
        }
        served
    }

    fn covers(&self, layout: &Layout, places: &[usize]) -> Vec<RoaringBitmap> {
        let segments = self.segments(layout, places);
        derive(&self.ledger, &layout.live(), &segments).into_iter().map(|derived| derived.coverage).collect()
    }

    fn segments<'a>(&'a self, layout: &'a Layout, places: &[usize]) -> Vec<Segment<'a>> {
        let segment = |at: &usize| {
            let (cover, facts) = layout.covers.get(*at).zip(self.facts.get(*at))?;
            // What Lance takes a segment without a bitmap to cover groups fragments; nothing is derived from it.
            Some(facts.of(layout.index_of(cover), cover.known.then_some(&cover.bitmap)))
        };
        places.iter().filter_map(segment).collect()
    }

    /// Layout and history after a step.
    ///
    /// # Errors
    /// As for [`steps::take`]; `UNSUPPORTED_FEATURE` and `HISTORY_UNSUPPORTED` for what nobody does on such a table.
    pub fn take(
        &self,
        layout: &Layout,
        step: &Step,
        forecast: &CompactionOptions,
        config: &BTreeMap<String, String>,
    ) -> Result<(Layout, Derivation, Took)> {
        match step {
            Step::Append { .. } => {
                let (after, took) = steps::take(layout, step, forecast, config)?;
                Ok((after, self.clone(), took))
            }
            Step::Merge { .. } => {
                let text =
                    format!("{}: segments are not merged on a table with a tagged reuse history by this build", self.object);
                Err(Error::new(ErrorCode::HistoryUnsupported, text))
            }
            Step::Refresh { index, segments, cut, absorb } => {
                let (mut after, mut derivation, mut took) = (layout.clone(), self.clone(), Took::default());
                let ground = Ground::of(layout);
                for index in steps::chosen(layout, index.as_deref())? {
                    let order = Order { index, segments: *segments, cut: *cut, absorb: *absorb };
                    derivation.refresh(&mut after, &ground, &order, &mut took)?;
                }
                Ok((after, derivation, took))
            }
            Step::Compact { options } => {
                let resolved = Resolved::new(&options.over(forecast), config, layout.stable_row_ids)?;
                check_compactable(&self.object, &resolved)?;
                let plan = plan(layout, &resolved)?;
                let effects = effects(layout, &plan, &resolved)?;
                let ledger = with_compaction(&self.object, &self.ledger, layout, &plan, &effects)?;
                let took = steps::rewritten(layout, &plan, &effects);
                let after = Layout { covers: layout.covers.clone(), ..effects.after };
                Ok((after, Derivation { ledger, ..self.clone() }, took))
            }
        }
    }

    fn refresh(&mut self, layout: &mut Layout, ground: &Ground<'_>, order: &Order, took: &mut Took) -> Result<()> {
        let live = &ground.live;
        let known = |cover: &Cover, facts: &Facts| cover.index == order.index && cover.kind.readable() && facts.usable;
        let all = || layout.covers.iter().zip(&self.facts).enumerate();
        // Segments that nobody knows stay where they are, as long as there are others to go by.
        let own: Vec<usize> = all().filter(|(_, (cover, facts))| known(cover, facts)).map(|(at, _)| at).collect();
        let Some(kind) = own.first().and_then(|at| layout.covers.get(*at)).map(|cover| cover.kind) else { return Ok(()) };
        let held = all()
            .filter(|(_, (cover, facts))| cover.index == order.index && cover.known && !known(cover, facts))
            .fold(RoaringBitmap::new(), |held, (_, (cover, _))| held | &cover.bitmap);
        let members: Vec<Member> = own
            .iter()
            .zip(self.covers(layout, &own))
            .filter_map(|(at, covers)| {
                let cover = layout.covers.get(*at)?;
                Some(Member { names: cover.known.then(|| cover.bitmap.clone()), covers })
            })
            .collect();
        let Some(work) = work(&members, &held, ground, order.absorb)? else { return Ok(()) };
        let runs = steps::cut_into(layout, ground, order.index, &work, order.segments, order.cut)?;
        let new = self.fresh(&own);
        let index = layout.indexes.get(order.index).map(|index| index.name.clone()).unwrap_or_default();
        let incoming: Vec<Segment<'_>> = runs.iter().map(|run| new.of(&index, Some(run))).collect();
        let landing = land(&self.ledger, live, &self.segments(layout, &own), &incoming);
        if !landing.lost.is_empty() {
            let text =
                format!("a refresh of {index} would leave fragments {} to scans, which no commit may", list(&landing.lost));
            return Err(Error::new(ErrorCode::PartialReplacement, text));
        }
        let gone: Vec<usize> =
            own.iter().zip(&landing.remaining).filter(|(_, left)| left.is_empty()).map(|(at, _)| *at).collect();
        took.segments_removed += gone.len() as u64;
        took.segments_added += runs.len() as u64;
        took.rows_indexed = took.rows_indexed.saturating_add(ground.rows_of(&work));
        // From the back, so that the places before stay what they are.
        for at in gone.into_iter().rev() {
            layout.covers.remove(at);
            self.facts.remove(at);
        }
        self.facts.extend(runs.iter().map(|_| new));
        layout.covers.extend(runs.into_iter().map(|bitmap| new_cover(order.index, kind, bitmap)));
        Ok(())
    }

    /// What a segment built now is, going by its siblings.
    fn fresh(&self, own: &[usize]) -> Facts {
        let siblings = || own.iter().filter_map(|at| self.facts.get(*at));
        let translates = siblings().any(|facts| facts.capability == Capability::Translates);
        Facts {
            uuid: Uuid::nil(),
            dataset_version: siblings().map(|facts| facts.dataset_version).max().unwrap_or_default().saturating_add(1),
            usable: true,
            capability: if translates { Capability::Translates } else { Capability::IdentityOnly },
            described: true,
            vector: false,
        }
    }
}

impl Facts {
    fn of<'a>(&self, index: &'a str, stored: Option<&'a RoaringBitmap>) -> Segment<'a> {
        Segment {
            index,
            uuid: self.uuid,
            dataset_version: self.dataset_version,
            stored,
            usable: self.usable,
            capability: self.capability,
            described: self.described,
            vector: self.vector,
        }
    }
}

/// A refresh of one index.
struct Order {
    index: usize,
    segments: u64,
    cut: Cut,
    absorb: Absorbing,
}

/// A segment of the index that is refreshed.
struct Member {
    /// What it names, retired fragments included; `None` = not recorded.
    names: Option<RoaringBitmap>,
    /// Live fragments it covers.
    covers: RoaringBitmap,
}

/// The fragments that are built; `None` = there is nothing to do.
fn work(members: &[Member], held: &RoaringBitmap, ground: &Ground<'_>, absorb: Absorbing) -> Result<Option<RoaringBitmap>> {
    let covered = members.iter().fold(RoaringBitmap::new(), |all, member| all | &member.covers);
    // What records no coverage can only be replaced as a whole.
    let unknown = members.iter().any(|member| member.names.is_none());
    let mut work = if unknown { ground.live.clone() } else { &(&ground.live - covered) - held };
    if work.is_empty() {
        return Ok(None);
    }
    let free = |member: &&Member| member.covers.is_disjoint(held);
    match absorb {
        Absorbing::None => {}
        Absorbing::All => work = members.iter().filter(free).fold(work, |work, member| work | &member.covers),
        Absorbing::Tiered => {
            let trailing = members.iter().filter_map(|member| Some((member.covers.max()?, member))).collect();
            let mut behind = work.clone();
            for (_, member) in sorted_by_key(trailing, |(last, _)| std::cmp::Reverse(*last)) {
                if ground.rows_of(&member.covers) > ground.rows_of(&behind).saturating_mul(2) {
                    break;
                }
                behind |= &member.covers;
                if free(&member) {
                    work |= &member.covers;
                }
            }
        }
    }
    let nothing = RoaringBitmap::new();
    let names = |member: &Member| member.names.as_ref().unwrap_or(&nothing).clone();
    // No two segments may name the same fragment: of those that do, all is built anew.
    for (at, member) in members.iter().enumerate().filter(|(_, member)| !member.covers.is_empty()) {
        let mut others = members.iter().enumerate().filter(|(other, member)| *other != at && !member.covers.is_empty());
        if others.any(|(_, other)| !names(other).is_disjoint(&names(member))) {
            work |= &member.covers;
        }
    }
    // What names a part of the work cannot stay, so all that it covers joins the work.
    while let Some(member) = members.iter().find(|member| !names(member).is_disjoint(&work) && !member.covers.is_subset(&work)) {
        work |= &member.covers;
    }
    let refused = &work & held;
    if !refused.is_empty() {
        let text = format!(
            "fragments {} have to be built anew, and segments of a type or format version that this build does not know name them",
            list(&refused)
        );
        return Err(Error::new(ErrorCode::UnsupportedFeature, text));
    }
    Ok(Some(work))
}

fn new_cover(index: usize, kind: Kind, bitmap: RoaringBitmap) -> Cover {
    Cover { index, uuid: None, kind, bitmap, known: true, carried: RoaringBitmap::new() }
}
