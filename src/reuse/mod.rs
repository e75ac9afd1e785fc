//! Fragment reuse histories as set logic (mission's second document): what a history says, what each segment covers through
//! it, where a row is now, and which records and segments are still needed.
//!
//! `content` cuts the stored bytes into records and splices those that stay; `ledger` decodes them into transitions in lineage
//! order (`transition`: one of them, with its mapping); `row_map` is the counts matrix of a stable partition. `segment` is what
//! matters about an index segment; `coverage` derives what each covers, with the reason; `walk` carries row addresses through.
//! `retention` decides what a trim keeps, `legacy` is its rule for version-0 records, `superseded` what a prune removes,
//! `withdraw` what an in-place rewrite takes away, `remap` what a segment could claim after its file is rewritten, `collect`
//! which row maps nobody names, `landing` what becomes of an index when segments are committed. `explain` says all of it in
//! sentences.

pub mod collect;
pub mod content;
pub mod coverage;
pub mod explain;
pub mod landing;
pub mod ledger;
pub mod legacy;
pub mod remap;
pub mod retention;
pub mod row_map;
pub mod segment;
pub mod superseded;
pub mod transition;
pub mod walk;
pub mod withdraw;

#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
