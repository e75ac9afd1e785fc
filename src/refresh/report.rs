//! What a refresh, a creation, a merge or a drop did, read back from what was committed.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::coverage::prune::LeftOut;
use crate::store::RequestCounts;

pub use crate::table::publish::Attempt;

/// Report of a job on one index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefreshReport {
    /// Exact index name.
    pub index_name: String,
    /// Number of fragments established; 0 when nothing was committed.
    pub fragments_indexed: u64,
    /// Number of segments added.
    pub segments_added: u64,
    /// Number of segments removed.
    pub segments_removed: u64,
    /// Uuids of the added segments.
    pub added: Vec<Uuid>,
    /// Uuids of the removed segments.
    pub removed: Vec<Uuid>,
    /// Fragments the built segments declared.
    pub declared: Vec<u32>,
    /// Fragments our segments cover in the new version, as it was written.
    pub established: Vec<u32>,
    /// Declared fragments that were not committed, and why.
    pub left_out: Vec<LeftOut>,
    /// Version the commit was built on; equal to `version` when nothing was committed.
    pub version_before: u64,
    /// Version committed, or the one found current when there was nothing to do.
    pub version: u64,
    /// Every attempt.
    pub attempts: Vec<Attempt>,
    /// Uuid of the transaction; null when nothing was committed.
    pub transaction: Option<Uuid>,
    /// Milliseconds the verification and commit took.
    pub ms: u64,
    /// Requests of the table's store since the handle was made.
    pub requests: RequestCounts,
}
