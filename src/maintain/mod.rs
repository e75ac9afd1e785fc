//! Jobs on an index other than keeping it complete: making one, taking one away, holding one against its column.
//!
//! `create` and `merge` plan with the planner of a refresh, and their plans are built and committed like one; `drop` has nothing
//! to build; `audit`, `inspect` and `probe` change nothing.

pub mod audit;
pub mod create;
pub mod drop;
pub mod inspect;
pub mod merge;
pub mod probe;

pub use audit::{AuditOptions, AuditReport, audit};
pub use create::{CreateOptions, plan_create_index};
pub use drop::{DROP, DropPlan, check_drop, commit_drop, plan_drop_index};
pub use inspect::inspect;
pub use merge::{MergeOptions, plan_merge};
pub use probe::{Probe, probe};
