//! Why two fragments are, or are not, rewritten together: the rule, in one sentence.

use serde::{Deserialize, Serialize};

use super::layout::{Cover, Layout, Piece};
use super::options::Resolved;
use super::plan::{Outcome, Plan, Standing};
use crate::error::{Error, Result};

/// A segment that covers one of two fragments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covering {
    /// Its index.
    pub index: String,
    /// The segment; null for one that does not exist yet.
    pub uuid: Option<String>,
}

/// What joins or separates two fragments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The one with the smaller id.
    pub a: u32,
    /// The other.
    pub b: u32,
    /// Whether a compaction rewrites them together.
    pub joined: bool,
    /// Short name of the rule that decides: `same_task`, `excluded`, `held_back`, `large`, `between`, `segments`, `size_cut`,
    /// `over_budget`, `alone`.
    pub rule: String,
    /// The rule in one sentence, with its numbers.
    pub why: String,
    /// Segments that cover `a` and not `b`.
    pub only_a: Vec<Covering>,
    /// Segments that cover `b` and not `a`.
    pub only_b: Vec<Covering>,
    /// The neighbours of each other that decide, where `a` and `b` are none: the first gap between them that separates.
    pub decided_at: [u32; 2],
}

/// Most segments a sentence names.
const NAMED: usize = 3;

/// Why `a` and `b` are or are not rewritten together.
///
/// # Errors
/// `INVALID_ARGUMENT` when one of them is no fragment of the table, or both are the same.
pub fn explain(layout: &Layout, plan: &Plan, options: &Resolved, a: u32, b: u32) -> Result<Pair> {
    let (a, b) = (a.min(b), a.max(b));
    let place = |id: u32| {
        layout.position(id).ok_or_else(|| {
            let gone = layout.max_fragment_id.is_some_and(|last| id <= last);
            let what = if gone { "is gone" } else { "was never there" };
            Error::invalid(format!("fragment {id} {what}: it is not in this version")).with("fragment", id)
        })
    };
    let (first, second) = (place(a)?, place(b)?);
    if first == second {
        return Err(Error::invalid(format!("fragment {a} was given twice: name two fragments")));
    }
    let question = Question { layout, plan, options };
    let mut pair = question.decide(first, second)?;
    (pair.a, pair.b) = (a, b);
    (pair.only_a, pair.only_b) = question.differing(a, b);
    Ok(pair)
}

struct Question<'a> {
    layout: &'a Layout,
    plan: &'a Plan,
    options: &'a Resolved,
}

impl Question<'_> {
    fn piece(&self, at: usize) -> Result<&Piece> {
        self.layout.piece(at).ok_or_else(|| Error::internal("a position past the fragments"))
    }

    fn standing(&self, at: usize) -> Standing {
        self.plan.standing.get(at).copied().unwrap_or(Standing::Large)
    }

    fn decide(&self, first: usize, second: usize) -> Result<Pair> {
        if let (Outcome::Task(one), Outcome::Task(other)) = (self.plan.outcome(first), self.plan.outcome(second))
            && one == other
        {
            let (a, b) = (self.piece(first)?.id, self.piece(second)?.id);
            let count = self.plan.tasks.get(one).map_or(0, |task| task.len());
            let set = self.set_sentence(a);
            return Ok(pair(
                "same_task",
                true,
                [a, b],
                format!(
                    "fragments {a} and {b} are rewritten together, in task {one} of {count} fragments: both are candidates, neighbours of each other, and {set}"
                ),
            ));
        }
        // What is wrong with one of the two comes before what lies between them.
        for at in [first, second] {
            if let Some((rule, why)) = self.unfit(at)? {
                let ids = [self.piece(first)?.id, self.piece(second)?.id];
                return Ok(pair(rule, false, ids, why));
            }
        }
        for at in first + 1..=second {
            let (left, right) = (self.piece(at - 1)?.id, self.piece(at)?.id);
            if at < second
                && let Some((_, why)) = self.unfit(at)?
            {
                return Ok(pair(
                    "between",
                    false,
                    [left, right],
                    format!("{why}; it lies between them, and only neighbours are rewritten together"),
                ));
            }
            if self.plan.borders.has(at) {
                return Ok(pair("segments", false, [left, right], self.border_sentence(left, right)));
            }
        }
        // One stretch of candidates under the same segments: it was cut by size, or a budget ended the plan.
        let ids = [self.piece(first)?.id, self.piece(second)?.id];
        let target = self.options.target_rows_per_fragment;
        for at in [first, second] {
            if self.plan.outcome(at) == Outcome::OverBudget {
                let id = self.piece(at)?.id;
                return Ok(pair(
                    "over_budget",
                    false,
                    ids,
                    format!(
                        "fragment {id} is in a task that would exceed the plan's budget ({}), so the plan ends before it",
                        self.budget()
                    ),
                ));
            }
        }
        Ok(pair(
            "size_cut",
            false,
            ids,
            format!(
                "fragments {} and {} are covered alike, but the task of {} reached {target} live rows (target_rows_per_fragment) and at least as many were left for the next one",
                ids[0], ids[1], ids[0]
            ),
        ))
    }

    /// Why a fragment is not rewritten with anything.
    fn unfit(&self, at: usize) -> Result<Option<(&'static str, String)>> {
        let piece = self.piece(at)?;
        let (id, rows, target) = (piece.id, piece.physical_rows, self.options.target_rows_per_fragment);
        Ok(match self.standing(at) {
            Standing::Small | Standing::Dirty => None,
            Standing::Excluded => Some(("excluded", format!("fragment {id} is excluded (excluded_fragment_ids)"))),
            Standing::HeldBack => {
                let held = self.layout.covers.iter().find(|cover| !cover.kind.readable() && cover.bitmap.contains(id));
                let index = held.map_or("an index", |cover| self.layout.index_of(cover));
                Some((
                    "held_back",
                    format!(
                        "fragment {id} is covered by a segment of {index} whose type or format Lance cannot read, so its rows must not move"
                    ),
                ))
            }
            Standing::Large => Some((
                "large",
                format!(
                    "fragment {id} is no candidate: it has {rows} rows, the target is {target}, and {}",
                    self.deletions_sentence(piece)
                ),
            )),
        })
    }

    fn deletions_sentence(&self, piece: &Piece) -> String {
        if !self.options.materialize_deletions {
            return "deleted rows are left where they are (materialize_deletions is off)".to_owned();
        }
        let threshold = self.options.materialize_deletions_threshold;
        format!("{} of them are deleted, not more than {} of all", piece.deleted_rows, threshold)
    }

    fn budget(&self) -> String {
        let limits = [
            ("max_source_fragments", self.options.max_source_fragments),
            ("max_source_rows", self.options.max_source_rows),
            ("max_source_bytes", self.options.max_source_bytes),
        ];
        let set: Vec<String> = limits.iter().filter_map(|(name, limit)| Some(format!("{name} = {}", (*limit)?))).collect();
        set.join(", ")
    }

    fn set_sentence(&self, id: u32) -> String {
        match self.layout.covers.iter().filter(|cover| cover.bitmap.contains(id)).count() {
            0 => "no segment covers either".to_owned(),
            1 => "the same one segment covers both".to_owned(),
            several => format!("the same {several} segments cover both"),
        }
    }

    fn border_sentence(&self, a: u32, b: u32) -> String {
        let (only_a, only_b) = self.differing(a, b);
        let part = |id: u32, only: &[Covering]| match only {
            [] => None,
            _ => Some(format!("{} only {id}", named(only))),
        };
        let parts: Vec<String> = [part(a, &only_a), part(b, &only_b)].into_iter().flatten().collect();
        format!("different segments cover fragments {a} and {b}: {}", parts.join(", "))
    }

    fn differing(&self, a: u32, b: u32) -> (Vec<Covering>, Vec<Covering>) {
        let only = |one: u32, other: u32| {
            let covers = self.layout.covers.iter().filter(|cover| cover.bitmap.contains(one) && !cover.bitmap.contains(other));
            covers.map(|cover| covering(self.layout, cover)).collect()
        };
        (only(a, b), only(b, a))
    }
}

fn pair(rule: &str, joined: bool, decided_at: [u32; 2], why: String) -> Pair {
    let [a, b] = decided_at;
    Pair { a, b, joined, rule: rule.to_owned(), why, only_a: Vec::new(), only_b: Vec::new(), decided_at }
}

pub(super) fn covering(layout: &Layout, cover: &Cover) -> Covering {
    Covering { index: layout.index_of(cover).to_owned(), uuid: cover.uuid.map(|uuid| uuid.to_string()) }
}

fn named(covers: &[Covering]) -> String {
    let mut names: Vec<String> = covers
        .iter()
        .take(NAMED)
        .map(|cover| match &cover.uuid {
            Some(uuid) => format!("{} of {}", uuid.get(..8).unwrap_or(uuid), cover.index),
            None => format!("a segment to be of {}", cover.index),
        })
        .collect();
    if covers.len() > NAMED {
        names.push(format!("{} more", covers.len() - NAMED));
    }
    let verb = if covers.len() == 1 { "covers" } else { "cover" };
    format!("{} {verb}", names.join(", "))
}
