//! Bytes ↔ structs, nothing else: no I/O, no clock, no randomness.
//!
//! `manifest` reads and rewrites manifest files, `transaction` the operations that led to them, `schema` the flattened
//! field tree, `fragment` and `index_metadata` their parts, `bitmap` and `treemap` the roaring codecs, `deletion` the two
//! deletion vector files, `row_ids` stable id sequences, `flags` the feature gates, `naming` the two manifest name
//! schemes, `refs` tags and branches, `reuse_v0` the version-0 fragment reuse mapping of bitmaps.

pub mod fragment;
pub mod index_metadata;
pub mod manifest;
pub mod row;
pub mod schema;
