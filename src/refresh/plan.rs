//! The plan of a job that builds segments: every decision and its reason, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::task::{BuildTask, IndexTarget};
use crate::coverage::fate::SegmentFate;
use crate::coverage::prune::FragmentKey;

/// Format number of plans, tasks and built segments.
pub const FORMAT: u32 = 1;

/// A plan to bring one index up to the table, or to create one (design §7). It can be stored, sent and run elsewhere, or not
/// at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefreshPlan {
    /// Format of this document.
    pub format: u32,
    /// `refresh`, `create_index` or `merge`.
    pub kind: String,
    /// Address of the table.
    pub table: String,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Version the plan was made on; builds are pinned to it.
    pub v_plan: u64,
    /// What is refreshed or created.
    pub index: PlannedIndex,
    /// How the index is created; absent in a refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<Creation>,
    /// Live, covered and unindexed fragments at `v_plan`.
    pub sets: PlannedSets,
    /// Runs of neighbouring fragments, one segment each; empty = nothing to do.
    pub runs: Vec<PlannedRun>,
    /// Rows of the heaviest run.
    pub heaviest_run_rows: u64,
    /// What the commit will do with every existing segment.
    pub segments: Vec<SegmentFate>,
    /// Existing segments that are built or written anew, and why.
    pub absorbed: Vec<Absorbed>,
    /// Fragments a compaction with default options could merge before and after.
    pub groups: Groups,
    /// The building work, one task per run and one per copied segment.
    pub tasks: Vec<BuildTask>,
    /// Rough costs.
    pub estimate: Estimate,
    /// What one should know.
    pub warnings: Vec<Advice>,
    /// Facts of `v_plan` that the commit compares with, so that it works after that version was cleaned up.
    pub basis: Basis,
}

/// The job of a plan that builds segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Covers what an index does not cover.
    Refresh,
    /// Makes an index that was not there.
    Create,
    /// Makes few segments of many.
    Merge,
}

impl Job {
    /// The `kind` of its plans.
    pub fn kind(self) -> &'static str {
        match self {
            Job::Refresh => "refresh",
            Job::Create => "create_index",
            Job::Merge => "merge",
        }
    }
}

/// How an index is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Creation {
    /// False: only the definition is committed; a refresh indexes the rows.
    pub train: bool,
    /// An index that has the name already is replaced.
    pub replace: bool,
}

/// The index of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedIndex {
    /// What every task carries.
    #[serde(flatten)]
    pub target: IndexTarget,
    /// Where the parameters come from: the uuid of a segment, `defaults`, or `options` when the caller gave every one.
    pub params_from: String,
}

/// Sets of fragment ids, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedSets {
    /// Fragments of the manifest.
    pub live: Vec<u32>,
    /// Those that segments of known coverage cover.
    pub covered: Vec<u32>,
    /// The others.
    pub unindexed: Vec<u32>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Fragment ids, ascending.
    pub fragments: Vec<u32>,
    /// Live rows.
    pub rows: u64,
    /// Per fragment the files it was planned on.
    pub files: Vec<FragmentKey>,
}

/// An existing segment that is absorbed or copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absorbed {
    /// The segment.
    pub uuid: Uuid,
    /// `absorb`: its fragments are built anew; `copy`: it is written again without its stale rows.
    pub how: Cure,
    /// Fragments whose old rows it still holds; empty when it is absorbed by policy.
    pub stale: Vec<u32>,
    /// Why.
    pub why: String,
}

/// The two cures of refresh-and-compaction §2.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cure {
    /// Build its fragments anew.
    Absorb,
    /// Write it again without the stale rows; no table data is read.
    Copy,
}

/// Before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Groups {
    /// Fragments that could be merged now; null when counts are not recorded.
    pub before: Option<u64>,
    /// Fragments that could be merged after this refresh.
    pub after: Option<u64>,
}

/// Rough costs of running the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// Requests.
    pub requests: u64,
    /// Bytes of column data read; null when sizes are not recorded.
    pub read_bytes: Option<u64>,
    /// Bytes of index files written.
    pub write_bytes: Option<u64>,
    /// Bytes of memory the heaviest task needs at most.
    pub memory_bytes: Option<u64>,
}

/// Facts of `v_plan`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// Highest fragment id ever allocated.
    pub max_fragment_id: Option<u32>,
    /// Next unused stable row id.
    pub next_row_id: u64,
}

/// Advice: which rule fired, on what evidence, and what to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// Short stable name.
    pub rule: String,
    /// `info`, `warning` or `error`.
    pub severity: String,
    /// One sentence with the numbers it fired on.
    pub evidence: String,
    /// A command line and a JavaScript call; null when there is nothing to do but know.
    pub action: Option<Action>,
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// Command line.
    pub command: String,
    /// JavaScript call.
    pub js: String,
}

impl Advice {
    /// A note without an action.
    pub fn info(rule: &str, evidence: String) -> Advice {
        Advice { rule: rule.to_owned(), severity: "info".to_owned(), evidence, action: None }
    }

    /// A warning without an action.
    pub fn warning(rule: &str, evidence: String) -> Advice {
        Advice { severity: "warning".to_owned(), ..Advice::info(rule, evidence) }
    }

    /// The same with something to do about it.
    #[must_use]
    pub fn act(mut self, command: String, js: String) -> Advice {
        self.action = Some(Action { command, js });
        self
    }
}

impl RefreshPlan {
    /// What it is a plan for; `None` for a kind that builds nothing or is not known.
    pub fn job(&self) -> Option<Job> {
        let jobs = [Job::Refresh, Job::Create, Job::Merge];
        jobs.into_iter().find(|job| job.kind() == self.kind && (*job == Job::Create) == self.create.is_some())
    }

    /// How the index is created, when that is what the plan is for.
    pub fn creation(&self) -> Option<Creation> {
        self.create.filter(|_| self.job() == Some(Job::Create))
    }

    /// Whether running the plan would change nothing.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Per fragment that is built or copied, the files it was planned on.
    pub fn keys(&self) -> BTreeMap<u32, &FragmentKey> {
        let copied = self.tasks.iter().filter_map(|task| task.copy_of.as_ref()).flat_map(|copy| &copy.files);
        crate::lists::map_of(self.runs.iter().flat_map(|run| &run.files).chain(copied).map(|key| (key.fragment, key)))
    }
}
