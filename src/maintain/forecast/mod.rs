//! What a table's layout lets a compaction do, and what it would become under several plans, before one is run.
//!
//! `snapshot` brings the layout of a table with what the pure planner asks for. `request` is what a caller may ask, `document`
//! what comes back, `advice` what to do about it. `compaction` is the plan of one compaction as a document, `pairs` the answer
//! to why two fragments are not rewritten together, `tagged` what a compaction makes of coverage under a tagged reuse history, `history`
//! what any step makes of it. Nothing here changes a table.

pub mod advice;
pub mod columns;
pub mod compaction;
pub mod document;
mod history;
pub mod pairs;
pub mod request;
pub mod snapshot;
mod tagged;

pub use compaction::{CompactionPlan, plan_compaction};
pub use document::{LayoutForecast, forecast};
pub use pairs::explain_pair;
pub use request::{ForecastOptions, NamedPlan, PlanChoice};
pub use snapshot::snapshot;
