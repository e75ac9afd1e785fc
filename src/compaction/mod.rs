//! What a compaction would do, and why: exactly as Lance 14 plans it, without touching anything.
//!
//! `layout` is what is looked at: fragments in id order and what every segment covers. `options` resolves what the caller and
//! the table's configuration say. `plan` cuts the fragments into tasks, `effects` says what tasks make of fragments and
//! segments, `explain` answers why two fragments do or do not share a task, `summary` counts what stays and why. `steps` moves a layout on through refreshes,
//! merges and compactions, so that plans can be compared before one is run. `gather` reads a layout off a manifest. `borders` is the one pass over the coverage they
//! share: it marks the gaps between neighbours at which the set of covering segments changes.

pub mod borders;
pub mod effects;
pub mod explain;
pub mod gather;
pub mod kinds;
pub mod layout;
pub mod options;
pub mod plan;
pub mod steps;
pub mod summary;

pub use effects::{Effects, Fate, effects};
pub use explain::{Pair, explain};
pub use kinds::Kind;
pub use layout::{Cover, Index, Layout, Piece};
pub use options::{CompactionOptions, Origin, Resolved};
pub use plan::{Outcome, Plan, Standing, plan};
pub use steps::{Step, Took, take};
pub use summary::{Summary, summarize};
