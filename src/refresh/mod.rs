//! Refreshing one index: plan → tasks → built segments → verified commit → report (design §7).
//!
//! `plan`, `task` and `report` are the documents; `planner` decides, `resolve` finds the index by name, `freshness` is the
//! I/O half of the stale rule, `build` runs one task, `verify` recomputes every decision from the manifest of a commit
//! attempt, and `commit` is the loop that publishes.

pub mod options;
pub mod plan;
pub mod report;
pub mod task;

pub use options::{Absorb, RefreshOptions};
pub use plan::{Advice, RefreshPlan};
pub use report::RefreshReport;
pub use task::{BuildTask, BuiltSegment};
