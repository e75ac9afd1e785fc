//! Refreshing or creating one index: plan → tasks → built segments → verified commit → report (design §7).
//!
//! `plan`, `task` and `report` are the documents; `planner` decides, `resolve` finds the index by name, `freshness` is the
//! I/O half of the stale rule, `lineage` what a tagged reuse history makes of all this, `check` refuses plans that cannot be run,
//! `sources` finds out which segments need not be read from their column again, `build` runs one task, `merge` one that takes
//! such segments from their files, `verify` recomputes every decision from the manifest of a commit attempt, and `commit`
//! publishes through the one loop of the table layer.

pub mod build;
pub mod check;
pub mod commit;
mod costs;
pub(crate) mod files;
mod freshness;
pub(crate) mod lineage;
mod merge;
pub mod options;
mod params;
pub mod plan;
mod planner;
pub mod report;
pub(crate) mod resolve;
mod sources;
pub mod task;
mod verify;

pub use build::{build_segment, build_segment_as, discard};
pub use check::{check_basis, check_plan};
pub use commit::{commit_segments, commit_segments_telling};
pub use options::{Absorb, RefreshOptions};
pub use plan::{Advice, Creation, RefreshPlan};
pub use planner::plan_refresh;
pub(crate) use planner::{plan_merge_of, plan_new};
pub use report::RefreshReport;
pub use task::{BuildTask, BuiltSegment};
