//! The forecast: the layout as it is, and as it would be under each plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::advice;
use super::columns::{LayoutColumns, columns};
use super::request::{Chosen, ForecastOptions};
use super::snapshot::snapshot;
use crate::compaction::steps::{Step, Took, take};
use crate::compaction::{Layout, Resolved, Summary, plan, summarize};
use crate::error::{Error, ErrorCode, Result};
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

/// Forecasts the layout of `table` under the plans asked for. Nothing is written, and no column is read.
///
/// # Errors
/// `INVALID_ARGUMENT` for plans or options that mean nothing, `INDEX_NOT_FOUND`, `HISTORY_UNSUPPORTED` under a tagged reuse
/// history, and those of [`snapshot`].
pub async fn forecast(table: &Table, options: &ForecastOptions) -> Result<LayoutForecast> {
    let chosen = options.chosen()?;
    let seen = snapshot(table).await?;
    let file = table.manifest();
    if let Some(history) = &seen.history {
        let text = format!(
            "{}: orders of refreshes and compactions are not forecast on a table with a tagged reuse history; a plan of one compaction \
             (planCompaction) says what it does to every segment. Nothing was changed",
            history.object
        );
        return Err(Error::new(ErrorCode::HistoryUnsupported, text));
    }
    let Compared { before, plans, compaction, left_out } = compare(&seen.layout, chosen, options, &file.manifest.config)?;
    let mut found = Vec::new();
    advice::of_layout(table, &before.summary, &plans, &mut found);
    let mut warnings = seen.notes;
    warnings.extend(left_out);
    if let Some(effects) = advice::effects_of(&seen.layout, &compaction) {
        advice::of_effects(table, &seen.layout, &effects, &mut warnings);
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

/// The pure part: the layout as it is, and under each plan. A plan that makes more segments than can be held is left out.
///
/// # Errors
/// As for [`forecast`].
pub fn compare(
    layout: &Layout,
    chosen: Vec<Chosen>,
    options: &ForecastOptions,
    config: &BTreeMap<String, String>,
) -> Result<Compared> {
    let compaction = Resolved::new(&options.compaction, config, layout.stable_row_ids)?;
    let report = |layout: &Layout| -> Result<LayoutReport> {
        let plan = plan(layout, &compaction)?;
        Ok(LayoutReport { summary: summarize(layout, &plan), columns: options.columns.then(|| columns(layout, &plan)) })
    };
    let mut found = Compared { before: report(layout)?, plans: Vec::new(), compaction: compaction.clone(), left_out: Vec::new() };
    for Chosen { name, title, steps } in chosen {
        match walk(layout, steps, options, config) {
            Ok((after, steps)) => {
                found.plans.push(PlanForecast { name, title, steps, after: report(after.as_ref().unwrap_or(layout))? })
            }
            Err(error) if error.code() == ErrorCode::MemoryLimit => {
                found.left_out.push(Advice::info("plan_left_out", format!("plan {name} is left out: {}", error.message())));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn walk(
    layout: &Layout,
    steps: Vec<Step>,
    options: &ForecastOptions,
    config: &BTreeMap<String, String>,
) -> Result<(Option<Layout>, Vec<StepForecast>)> {
    let mut taken = Vec::with_capacity(steps.len());
    let mut moved: Option<Layout> = None;
    for step in steps {
        let (after, took) = take(moved.as_ref().unwrap_or(layout), &step, &options.compaction, config)?;
        moved = Some(after);
        taken.push(StepForecast { step, took });
    }
    Ok((moved, taken))
}
