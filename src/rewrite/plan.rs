//! The plan of a compaction, with what keeps this build from running it.

use super::basis::refuse;
use crate::compaction::CompactionOptions;
use crate::error::Result;
use crate::maintain::forecast::{self, CompactionPlan};
use crate::refresh::plan::Advice;
use crate::table::Table;

/// Plans a compaction of `table` as Lance 14 would. A plan that this build cannot run is a plan all the same: a warning of the
/// rule `cannot_run` says why. Nothing is written.
///
/// # Errors
/// Those of [`forecast::plan_compaction`].
pub async fn plan_compaction(table: &Table, options: &CompactionOptions) -> Result<CompactionPlan> {
    let mut plan = forecast::plan_compaction(table, options).await?;
    if !plan.tasks.is_empty()
        && let Err(error) = refuse(table.manifest(), &plan)
    {
        let text = format!("this build does not run the plan: {}", error.message());
        plan.warnings.push(Advice::warning("cannot_run", text));
    }
    Ok(plan)
}
