//! Whetstone maintains the scalar indexes of real Lance tables where they lie, on HTTP object storage.
//!
//! The layers, top to bottom (an arrow only ever points down):
//! `js` → `sql` → `sandbox` → `rewrite` → `maintain` → `refresh` → `index` → `table` → `file` → `store`, and below them the pure ones:
//! `compaction`, `coverage`, `reuse` and `format` (and `document`, the reading of JSON), which know no I/O, no clock and no randomness.
//!
//! Without the feature `full` this is the core engine: methods and exports that only the full one has are left out where they
//! are entered, and what only they need is compiled but not linked.

#![cfg_attr(not(feature = "full"), allow(dead_code, unused_imports))]

pub mod compaction;
pub mod coverage;
pub mod document;
pub mod env;
pub mod error;
pub mod file;
pub mod format;
pub mod index;
#[cfg(target_arch = "wasm32")]
pub mod js;
mod lists;
pub mod maintain;
pub mod refresh;
pub mod reuse;
#[cfg(feature = "full")]
pub mod rewrite;
#[cfg(feature = "full")]
pub mod sandbox;
pub mod sql;
pub mod store;
pub mod table;

pub use error::{Changed, Error, ErrorCode, Result};
