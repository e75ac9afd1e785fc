//! The forecast: the layout as it is, and as it would be under each plan.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::advice;
use super::columns::{LayoutColumns, columns};
use super::history::Derivation;
use super::request::{Chosen, ForecastOptions};
use super::snapshot::snapshot;
use super::tagged::Carried;
use crate::compaction::steps::{Step, Took, take};
use crate::compaction::{Layout, Origin, Resolved, Summary, effects, plan, summarize};
use crate::error::{ErrorCode, Result};
use crate::refresh::plan::{Advice, FORMAT};
use crate::table::Table;

/// Layouts side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutForecast {
    /// Format of this document.
    pub format: u32,
    /// Always `forecast`.
    pub kind: String,
    /// Address of the table.
    pub table: String,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Version that was looked at.
    pub version: u64,
    /// Options of every compaction, with where each comes from.
    pub compaction: Resolved,
    /// The table as it is.
    pub before: LayoutReport,
    /// The table under each plan.
    pub plans: Vec<PlanForecast>,
    /// What to do, and why.
    pub advice: Vec<Advice>,
    /// What a forecast cannot know.
    pub warnings: Vec<Advice>,
}

/// A layout, in numbers and if asked for fragment by fragment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutReport {
    /// The numbers.
    #[serde(flatten)]
    pub summary: Summary,
    /// The columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<LayoutColumns>,
}

/// What becomes of the table under one plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanForecast {
    /// Name of the plan.
    pub name: String,
    /// What it does, in words.
    pub title: String,
    /// Its steps with what each did.
    pub steps: Vec<StepForecast>,
    /// The table afterwards.
    pub after: LayoutReport,
}

/// A step and what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepForecast {
    /// The step.
    #[serde(flatten)]
    pub step: Step,
    /// What it did.
    pub took: Took,
}

/// Forecasts the layout of `table` under the plans asked for. Nothing is written, and no column is read. Under a tagged reuse
/// history compactions are deferred unless somebody says otherwise, and a plan with a step that nobody does there is left out by
/// name.
///
/// # Errors
/// `INVALID_ARGUMENT` for plans or options that mean nothing, `INDEX_NOT_FOUND`, `HISTORY_UNSUPPORTED` under a reuse history that may
/// not be interpreted, and those of [`snapshot`].
pub async fn forecast(table: &Table, options: &ForecastOptions) -> Result<LayoutForecast> {
    let chosen = options.chosen()?;
    let seen = snapshot(table).await?;
    let file = table.manifest();
    let mut options = options.clone();
    let mut warnings = seen.notes;
    let mut history = None;
    let mut assumed = false;
    if let Some(tagged) = &seen.history {
        tagged.check_supported()?;
        history = Some(Derivation::new(tagged, &file.indices));
        let said = Resolved::new(&options.compaction, &file.manifest.config, seen.layout.stable_row_ids)?;
        assumed = said.from.get(DEFER) == Some(&Origin::Default);
        if assumed {
            options.compaction.defer_index_remap = Some(true);
            warnings.push(Advice::info("deferred", DEFERRED.to_owned()));
        }
    }
    let compared = compare(&seen.layout, history.as_ref(), chosen, &options, &file.manifest.config)?;
    let Compared { before, plans, mut compaction, left_out } = compared;
    let mut found = Vec::new();
    advice::of_layout(table, &before.summary, &plans, &mut found);
    warnings.extend(left_out);
    let planned = plan(&seen.layout, &compaction).and_then(|plan| Ok((effects(&seen.layout, &plan, &compaction)?, plan)));
    match (planned, &seen.history) {
        (Ok((effects, _)), None) => advice::of_effects(table, &seen.layout, &effects, &mut warnings),
        (Ok((effects, plan)), Some(tagged)) if compaction.defer_index_remap => {
            let carried = Carried::of(tagged, &file.indices, &seen.layout, &plan, &effects)?;
            advice::of_carried(table, &seen.layout, &carried, &mut warnings);
        }
        _ => {}
    }
    if assumed {
        compaction.from.insert(DEFER.to_owned(), Origin::Default);
    }
    Ok(LayoutForecast {
        format: FORMAT,
        kind: "forecast".to_owned(),
        table: table.store().uri(),
        branch: file.manifest.branch.clone(),
        version: file.manifest.version,
        compaction,
        before,
        plans,
        advice: found,
        warnings,
    })
}

const DEFER: &str = "defer_index_remap";
const DEFERRED: &str = "compactions are taken to be deferred (defer_index_remap): Lance compacts a table with a tagged reuse history in no other \
    way, and this build does not run such compactions";

/// What [`compare`] finds.
pub struct Compared {
    /// The layout as it is.
    pub before: LayoutReport,
    /// Under each plan.
    pub plans: Vec<PlanForecast>,
    /// The options, as the table's configuration completes them.
    pub compaction: Resolved,
    /// Which plans were left out, and why.
    pub left_out: Vec<Advice>,
}

/// The pure part: the layout as it is, and under each plan. A plan that makes more segments than can be held is left out, and under a
/// history one with a step that nobody does there.
///
/// # Errors
/// As for [`forecast`].
pub fn compare(
    layout: &Layout,
    history: Option<&Derivation>,
    chosen: Vec<Chosen>,
    options: &ForecastOptions,
    config: &BTreeMap<String, String>,
) -> Result<Compared> {
    let compaction = Resolved::new(&options.compaction, config, layout.stable_row_ids)?;
    let start = Moved { layout: Cow::Borrowed(layout), history: history.map(Cow::Borrowed) };
    let mut found = Compared {
        before: start.report(&compaction, options.columns)?,
        plans: Vec::new(),
        compaction: compaction.clone(),
        left_out: Vec::new(),
    };
    let left_out = |code: ErrorCode| match code {
        ErrorCode::MemoryLimit => true,
        ErrorCode::UnsupportedFeature | ErrorCode::HistoryUnsupported | ErrorCode::PartialReplacement => history.is_some(),
        _ => false,
    };
    for Chosen { name, title, steps } in chosen {
        match start.walk(steps, options, config) {
            Ok((after, steps)) => {
                found.plans.push(PlanForecast { name, title, steps, after: after.report(&compaction, options.columns)? })
            }
            Err(error) if left_out(error.code()) => {
                found.left_out.push(Advice::info("plan_left_out", format!("plan {name} is left out: {}", error.message())));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// A layout that steps have moved on.
#[derive(Clone)]
struct Moved<'a> {
    /// What compactions group fragments by.
    layout: Cow<'a, Layout>,
    /// What else queries find, where that is not the same.
    history: Option<Cow<'a, Derivation>>,
}

impl<'a> Moved<'a> {
    fn report(&self, compaction: &Resolved, whole: bool) -> Result<LayoutReport> {
        let plan = plan(&self.layout, compaction)?;
        let mut summary = summarize(&self.layout, &plan);
        let served = self.history.as_ref().map(|history| history.served(&self.layout));
        if let Some(served) = &served {
            summary.cover_as(summarize(served, &plan));
        }
        let served = served.as_ref().unwrap_or(&self.layout);
        Ok(LayoutReport { summary, columns: whole.then(|| columns(served, &plan)) })
    }

    fn walk(
        &self,
        steps: Vec<Step>,
        options: &ForecastOptions,
        config: &BTreeMap<String, String>,
    ) -> Result<(Moved<'a>, Vec<StepForecast>)> {
        let mut taken = Vec::with_capacity(steps.len());
        let mut now = self.clone();
        for step in steps {
            let took = match &now.history {
                None => {
                    let (layout, took) = take(&now.layout, &step, &options.compaction, config)?;
                    now = Moved { layout: Cow::Owned(layout), history: None };
                    took
                }
                Some(history) => {
                    let (layout, history, took) = history.take(&now.layout, &step, &options.compaction, config)?;
                    now = Moved { layout: Cow::Owned(layout), history: Some(Cow::Owned(history)) };
                    took
                }
            };
            taken.push(StepForecast { step, took });
        }
        Ok((now, taken))
    }
}
