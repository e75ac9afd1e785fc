//! Jobs that write data files: rewriting fragments of a table (refresh-and-compaction §5).
//!
//! `data_file` is what they share: which columns can be written, rows → one data file → the fragment that names it. A compaction
//! is planned in `maintain::forecast`, and `plan` adds what keeps it from being run; `basis` refuses what cannot be run and holds the sources as they were planned on, `task`
//! writes the files of one group (in a worker), `moves` tells where every row goes, `lineage` what goes with it, `remap` writes a
//! segment with the new addresses, `history` records the way instead, `commit` reserves ids and exchanges the fragments, and
//! `report` says what became of it.

mod basis;
mod commit;
pub mod data_file;
mod history;
pub mod lineage;
pub mod moves;
mod plan;
mod remap;
pub mod report;
pub mod task;

pub use basis::{Prepared, check_compaction, prepare_compaction, refuse};
pub use commit::commit_compaction;
pub use plan::plan_compaction;
pub use report::CompactionReport;
pub use task::{BuiltRewrite, RewriteTask, rewrite_fragments};
