//! What segments cover and what a commit of further segments does to it: pure functions over plain bitmaps.
//!
//! Nothing here asks where a bitmap came from (stored, carried through a version-0 reuse history, derived): callers hand in
//! what counts. `sets` holds the five sets, `batching` the runs of a refresh, `cuts` runs that do less harm, `fate` the commit rules, `prune` what a built
//! segment may still claim on a later version, `stale` the rule about rows a kept segment still holds, `numbers` the
//! figures of SHOW INDEXES. What a compaction makes of a layout is `compaction`'s matter.

pub mod batching;
pub mod cuts;
pub mod fate;
pub mod numbers;
pub mod prune;
pub mod sets;
pub mod stale;
