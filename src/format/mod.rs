//! Bytes ↔ structs, nothing else: no I/O, no clock, no randomness.
//!
//! `manifest` reads manifest files, `next_manifest` writes the following one and `fragment_change` its fragments; `transaction` holds the operations that led
//! to them, `schema` the flattened field tree, `fragment` and `index_metadata` their parts, `bitmap` and `treemap` the roaring
//! codecs, `deletion` the two deletion vector files, `row_ids` stable id sequences, `flags` the feature gates, `naming` the
//! manifest name schemes, `refs` tags and branches, `reuse_v0` the version-0 fragment reuse mapping. `proto` and `wire` are the
//! protobuf layer below all of them: messages as declared, and messages as bytes.

pub mod bitmap;
pub mod deletion;
pub mod flags;
mod flat;
pub mod fragment;
pub mod fragment_change;
pub mod index_metadata;
pub mod manifest;
pub mod naming;
pub mod next_manifest;
pub mod proto;
pub mod refs;
pub mod reuse_v0;
pub mod row;
pub mod row_ids;
pub mod schema;
pub mod transaction;
pub mod treemap;
pub mod wire;

pub use next_manifest::NextManifest;
