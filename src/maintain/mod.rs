//! Jobs on an index other than keeping it complete: making one, taking one away, holding one against its column.
//!
//! `create` and `merge` plan with the planner of a refresh, and their plans are built and committed like one; `drop` has nothing
//! to build. `history` tells what a reuse history says, `prune` and `trim` shorten it, `gc` removes row maps that nobody names.
//! `discard` and `orphans` remove `leftovers`: files that, after a look at every retained manifest (`references`), nothing names.
//! `audit`, `inspect`, `probe` and `forecast` change nothing; `reading` is how queries see
//! an index under a reuse history.

#[cfg(feature = "full")]
pub mod audit;
pub mod create;
pub mod discard;
pub mod drop;
pub mod forecast;
pub mod gc;
pub mod history;
#[cfg(feature = "full")]
pub mod inspect;
pub mod leftovers;
pub mod merge;
pub mod orphans;
#[cfg(feature = "full")]
pub mod probe;
pub mod prune;
#[cfg(feature = "full")]
mod reading;
mod references;
pub mod trim;

#[cfg(feature = "full")]
pub use audit::{AuditOptions, AuditReport, audit};
pub use create::{CreateOptions, plan_create_index};
pub use discard::{DISCARD, DiscardPlan, StagedSegment, check_discard, discard_staged, plan_discard};
pub use drop::{DROP, DropPlan, check_drop, commit_drop, plan_drop_index};
pub use forecast::{ForecastOptions, explain_pair, forecast, plan_compaction};
pub use gc::{GC, GcOptions, GcPlan, GcReport, plan_gc, run_gc};
pub use history::{History, history};
#[cfg(feature = "full")]
pub use inspect::{PartsOptions, inspect, parts};
pub use leftovers::{Left, Removal};
pub use merge::{MergeOptions, plan_merge};
pub use orphans::{ORPHANS, Orphan, OrphanOptions, Orphans, check_orphans, orphans, remove_orphans};
#[cfg(feature = "full")]
pub use probe::{Probe, probe};
pub use prune::{PRUNE, PrunePlan, PruneReport, plan_prune, run_prune};
#[cfg(feature = "full")]
pub use reading::Omitted;
pub use trim::{TRIM, TrimPlan, TrimReport, plan_trim, run_trim};
