//! The plan of one compaction as a document: its tasks, what is left out and why, and what becomes of every segment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::advice;
use super::snapshot::snapshot;
use super::tagged::{Carried, check_compactable};
use crate::compaction::summary::outcome_name;
use crate::compaction::{CompactionOptions, Fate, Layout, Plan, Resolved, Standing, effects, plan};
use crate::error::Result;
use crate::refresh::plan::{Advice, FORMAT};
use crate::table::Table;

/// The `kind` of a plan to compact.
pub const COMPACTION: &str = "compaction";

/// Fragments that stay which a plan names one by one.
const MOST_SKIPPED: usize = 1000;

/// A plan to compact a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactionPlan {
    /// Format of this document.
    pub format: u32,
    /// Always `compaction`.
    pub kind: String,
    /// Address of the table.
    pub table: String,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Version the plan was made on.
    pub v_plan: u64,
    /// The options, with where each comes from.
    pub options: Resolved,
    /// What is rewritten together.
    pub tasks: Vec<PlannedTask>,
    /// The first thousand fragments that stay, and why.
    pub skipped: Vec<Skipped>,
    /// How many stay, by rule.
    pub skipped_counts: BTreeMap<String, u64>,
    /// What becomes of every segment.
    pub effects: Vec<SegmentEffect>,
    /// Fragments afterwards.
    pub fragments_after: u64,
    /// Whether a fragment reuse history is written.
    pub writes_history: bool,
    /// What it costs.
    pub estimate: CompactionEstimate,
    /// What one should know.
    pub warnings: Vec<Advice>,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedTask {
    /// Fragment ids, ascending.
    pub fragments: Vec<u32>,
    /// Live rows.
    pub rows: u64,
    /// Deleted rows, which go.
    pub deleted: u64,
    /// Ids and rows of the fragments written, if tasks end in this order.
    pub outputs: Vec<PlannedOutput>,
    /// Why these.
    pub why: String,
}

/// A fragment that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedOutput {
    /// Its id.
    pub fragment: u32,
    /// Its rows.
    pub rows: u64,
}

/// A fragment that stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The fragment.
    pub fragment: u32,
    /// `frozen`, `alone`, `large`, `excluded`, `held_back` or `over_budget`.
    pub rule: String,
    /// Why.
    pub why: String,
}

/// What becomes of a segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentEffect {
    /// Its index.
    pub index: String,
    /// The segment.
    pub uuid: Option<String>,
    /// What happens to it.
    pub fate: Fate,
    /// Fragments that it covers afterwards, ids that are gone included; a deferred compaction's through the reuse history.
    pub fragment_ids_after: Vec<u32>,
    /// Why.
    pub why: String,
}

/// What a compaction costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionEstimate {
    /// Rows read and written.
    pub rows: u64,
    /// Bytes of the data files read; null when sizes are not recorded.
    pub read_bytes: Option<u64>,
    /// Segments whose files are written again.
    pub segments_remapped: u64,
}

/// Plans a compaction of `table` as Lance 14 would. Nothing is written.
///
/// # Errors
/// `INVALID_ARGUMENT` for the options, and those of [`snapshot`].
pub async fn plan_compaction(table: &Table, options: &CompactionOptions) -> Result<CompactionPlan> {
    let manifest = &table.manifest().manifest;
    let seen = snapshot(table).await?;
    let layout = &seen.layout;
    let options = Resolved::new(options, &manifest.config, layout.stable_row_ids)?;
    if let Some(history) = &seen.history {
        check_compactable(&history.object, &options)?;
        history.check_supported()?;
    }
    let plan = plan(layout, &options)?;
    let effects = effects(layout, &plan, &options)?;
    let carried = match &seen.history {
        Some(history) => Some(Carried::of(history, &table.manifest().indices, layout, &plan, &effects)?),
        None => None,
    };
    let mut estimate = CompactionEstimate { read_bytes: Some(0), ..CompactionEstimate::default() };
    let mut tasks = Vec::with_capacity(plan.tasks.len());
    for (task, ids) in plan.tasks.iter().zip(&effects.outputs) {
        let sources = layout.pieces.get(task.clone()).unwrap_or_default();
        let rows = sources.iter().fold(0u64, |sum, piece| sum.saturating_add(piece.live_rows()));
        let deleted = sources.iter().fold(0u64, |sum, piece| sum.saturating_add(piece.deleted_rows));
        let bytes = sources.iter().try_fold(0u64, |sum, piece| sum.checked_add(piece.bytes?));
        estimate.rows = estimate.rows.saturating_add(rows);
        estimate.read_bytes = estimate.read_bytes.zip(bytes).and_then(|(sum, bytes)| sum.checked_add(bytes));
        let outputs = ids
            .clone()
            .zip(crate::compaction::effects::output_rows(rows, options.target_rows_per_fragment))
            .map(|(fragment, rows)| PlannedOutput { fragment, rows })
            .collect();
        let why = why_together(&plan, task, deleted, &options);
        tasks.push(PlannedTask { fragments: sources.iter().map(|piece| piece.id).collect(), rows, deleted, outputs, why });
    }
    let (skipped, skipped_counts) = skipped(layout, &plan, &options);
    let mut shown = Vec::with_capacity(layout.covers.len());
    for (at, ((cover, effect), before)) in effects.after.covers.iter().zip(&effects.segments).zip(&layout.covers).enumerate() {
        estimate.segments_remapped += u64::from(effect.fate == Fate::Remapped);
        let derived = carried.as_ref().and_then(|carried| carried.segment(at));
        let (fate, bitmap, why) = derived.unwrap_or_else(|| (effect.fate, &cover.bitmap, why_fate(effect.fate)));
        shown.push(SegmentEffect {
            index: layout.index_of(cover).to_owned(),
            uuid: before.uuid.map(|uuid| uuid.to_string()),
            fate,
            fragment_ids_after: bitmap.iter().collect(),
            why: why.to_owned(),
        });
    }
    let mut warnings = seen.notes;
    match &carried {
        Some(carried) => advice::of_carried(table, layout, carried, &mut warnings),
        None => advice::of_effects(table, layout, &effects, &mut warnings),
    }
    Ok(CompactionPlan {
        format: FORMAT,
        kind: COMPACTION.to_owned(),
        table: table.store().uri(),
        branch: manifest.branch.clone(),
        v_plan: manifest.version,
        options,
        tasks,
        skipped,
        skipped_counts,
        effects: shown,
        fragments_after: effects.after.pieces.len() as u64,
        writes_history: carried.as_ref().map_or(effects.writes_history, |carried| carried.writes_history),
        estimate,
        warnings,
    })
}

fn why_together(plan: &Plan, task: &std::ops::Range<usize>, deleted: u64, options: &Resolved) -> String {
    let dirty = plan.standing.get(task.clone()).unwrap_or_default().iter().filter(|s| **s == Standing::Dirty).count();
    let target = options.target_rows_per_fragment;
    match (task.len(), dirty) {
        (1, _) => format!("{deleted} deleted rows are more than {} of it", options.materialize_deletions_threshold),
        (several, 0) => format!("{several} neighbours of fewer than {target} rows that the same segments cover"),
        (several, dirty) => format!(
            "{several} neighbours that the same segments cover: {dirty} with many deleted rows, the others of fewer than {target} rows"
        ),
    }
}

fn skipped(layout: &Layout, plan: &Plan, options: &Resolved) -> (Vec<Skipped>, BTreeMap<String, u64>) {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut list = Vec::new();
    for (at, piece) in layout.pieces.iter().enumerate() {
        let rule = outcome_name(plan, at);
        if rule == "grouped" {
            continue;
        }
        match counts.get_mut(rule) {
            Some(count) => *count += 1,
            None => {
                counts.insert(rule.to_owned(), 1);
            }
        }
        if list.len() < MOST_SKIPPED {
            list.push(Skipped { fragment: piece.id, rule: rule.to_owned(), why: why_skipped(layout, plan, options, at, rule) });
        }
    }
    (list, counts)
}

fn why_skipped(layout: &Layout, plan: &Plan, options: &Resolved, at: usize, rule: &str) -> String {
    // A neighbour that would do, or any, tells the reason.
    let next = |at: usize| layout.piece(at).map(|piece| piece.id);
    let own = next(at);
    let candidate = |at: usize| plan.standing.get(at).is_some_and(|standing| standing.candidate());
    let before = at.checked_sub(1);
    let partner = match (before.filter(|before| candidate(*before)), candidate(at + 1)) {
        (_, true) => next(at + 1),
        (Some(before), false) => next(before),
        _ => next(at + 1).or_else(|| before.and_then(next)),
    };
    let explained = match (own, partner, rule) {
        (Some(_), _, "alone") | (_, None, _) => None,
        (Some(own), Some(partner), _) => crate::compaction::explain(layout, plan, options, own, partner).ok(),
        _ => None,
    };
    match (explained, rule) {
        (Some(pair), _) => pair.why,
        (None, "alone") => "it is small, and none of its neighbours is a candidate".to_owned(),
        (None, "excluded") => "it is excluded (excluded_fragment_ids)".to_owned(),
        (None, "held_back") => "a segment of a type or format that Lance cannot read covers it".to_owned(),
        (None, _) => format!("it has as many rows as an output should, {}", options.target_rows_per_fragment),
    }
}

fn why_fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Kept => "it covers none of the rewritten fragments",
        Fate::Remapped => "its files are written again with the new row addresses, under a new uuid",
        Fate::Followed => "it names rows by stable ids: only its coverage changes",
        Fate::Stripped => "its type cannot follow rows into new fragments: they are unindexed afterwards",
        Fate::Retired => "its type cannot be remapped: it stays and names fragments that are gone, so their rows are unindexed",
        Fate::Deferred => "nothing of it is touched: the fragment reuse history carries its coverage over",
    }
}
