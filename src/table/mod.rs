//! A table at one version: which version, what its manifest says, where its files are, and the lowest step of a commit.
//!
//! `handle` is the snapshot, `latest` finds the newest version on any kind of store, `reading` fetches a manifest cheaply,
//! `refs` reads tags and branches, `base` resolves files of other roots, `describe` and `show` make the documents of the
//! public interface, `column` finds a field's column in the files, `scan` reads it for a fragment, `values` hands it out,
//! `history` reads the reuse history and `row_map` the files of its partitions,
//! `commit` puts the next manifest and finds out what became of it, `succession` whether that version is part of the history,
//! `publish` is the loop around it.

pub mod base;
pub mod column;
pub mod commit;
pub mod describe;
mod handle;
pub mod history;
mod ipc;
mod latest;
pub mod publish;
mod reading;
pub mod refs;
pub mod row_map;
pub mod scan;
pub mod show;
mod succession;
pub mod values;

pub use handle::{At, Table, VersionInfo, mapped_indices};
pub use reading::{Fetched, read_manifest};
