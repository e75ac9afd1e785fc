//! Why two fragments are, or are not, rewritten together.

use super::snapshot::snapshot;
use crate::compaction::explain::{Pair, explain};
use crate::compaction::{CompactionOptions, Resolved, plan};
use crate::error::Result;
use crate::table::Table;

/// The rule that joins or separates two fragments in a compaction of the table.
///
/// # Errors
/// `INVALID_ARGUMENT` for options or fragments that are none, and those of [`snapshot`].
pub async fn explain_pair(table: &Table, a: u32, b: u32, options: &CompactionOptions) -> Result<Pair> {
    let layout = snapshot(table).await?.layout;
    let options = Resolved::new(options, &table.manifest().manifest.config, layout.stable_row_ids)?;
    let plan = plan(&layout, &options)?;
    explain(&layout, &plan, &options, a, b)
}
