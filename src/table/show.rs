//! The documents `show` and `fragments` of the public interface.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::describe::{DisplayName, IndexInfo, indexes};
use super::handle::Table;
use super::history::TaggedHistory;
use crate::error::{Error, ErrorCode, Result};
use crate::format::fragment::{DataFile, Fragment};
use crate::format::manifest::Manifest;
use crate::reuse::coverage::State;
use crate::reuse::explain;
use crate::reuse::transition::Mapping;
use crate::store::RequestCounts;

/// Largest integer that JSON numbers carry exactly.
const EXACT: u64 = 1 << 53;

/// Something to know or to do about a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// Short stable name of the rule.
    pub rule: String,
    /// `info`, `warning` or `error`.
    pub severity: String,
    /// One sentence with what it fired on.
    pub evidence: String,
    /// A command line and a call that act on it; null when there is nothing to do but know.
    pub action: Option<Action>,
}

/// What to do about an [`Advice`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// Command line.
    pub command: String,
    /// JavaScript call.
    pub js: String,
}

/// Sums over the fragments; null where some fragment does not record the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FragmentTotals {
    /// Number of fragments.
    pub count: u64,
    /// Live rows.
    pub rows: Option<u64>,
    /// Deleted rows.
    pub deleted: Option<u64>,
    /// Bytes of all data files.
    pub bytes: Option<u64>,
}

/// The document `show`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Show {
    /// Address without credentials.
    pub uri: String,
    /// Version.
    pub version: u64,
    /// Branch; null = main.
    pub branch: Option<String>,
    /// Live rows; null when some fragment does not record its counts.
    pub rows: Option<u64>,
    /// Format of the data files.
    pub data_storage_version: String,
    /// Stable row ids are on.
    pub has_stable_row_ids: bool,
    /// Features readers must know.
    pub reader_feature_flags: u64,
    /// Features writers must know.
    pub writer_feature_flags: u64,
    /// Sums over the fragments.
    pub fragments: FragmentTotals,
    /// Indexes by name.
    pub indices: Vec<IndexInfo>,
    /// What to know.
    pub warnings: Vec<Advice>,
    /// Requests since the target was opened.
    pub requests: RequestCounts,
}

/// A data file in the document `fragments`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFileInfo {
    /// Path below `data/`.
    pub path: String,
    /// Field ids; negative ones are reserved.
    pub fields: Vec<i32>,
    /// Column of each field; -1 = none.
    pub column_indices: Vec<i32>,
    /// Lance file version.
    pub file_version: String,
    /// Size in bytes; null when not recorded.
    pub size: Option<u64>,
    /// Base path; absent = the table's own root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_id: Option<u32>,
}

/// A fragment in the document `fragments`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FragmentInfo {
    /// Fragment id.
    pub id: u32,
    /// Rows including deleted ones; null when not recorded, which is not zero.
    pub physical_rows: Option<u64>,
    /// Deleted rows; null when not recorded.
    pub num_deletions: Option<u64>,
    /// Live rows; null when not recorded.
    pub rows: Option<u64>,
    /// Path of the deletion vector; null = nothing deleted.
    pub deletion_file: Option<String>,
    /// Data files.
    pub data_files: Vec<DataFileInfo>,
    /// Per index the segments that cover it.
    pub covered_by: BTreeMap<String, Vec<String>>,
}

/// Deleted rows; `None` = not recorded.
fn deleted(fragment: &Fragment) -> Option<u64> {
    match &fragment.deletion_file {
        None => Some(0),
        Some(file) => file.num_deleted_rows,
    }
}

fn sum(values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let mut total = 0u64;
    for value in values {
        total = total.checked_add(value?)?;
    }
    Some(total)
}

/// Sums over all fragments.
fn totals(manifest: &Manifest) -> FragmentTotals {
    let fragments = &manifest.fragments;
    FragmentTotals {
        count: fragments.len() as u64,
        rows: manifest.live_rows(),
        deleted: sum(fragments.iter().map(deleted)),
        bytes: sum(fragments.iter().flat_map(|f| f.files.iter().map(|file| file.size))),
    }
}

/// The document `show`. Sends no request beyond those that opened the table (but one for a reuse history kept in a file).
pub async fn show(table: &Table, display: DisplayName) -> Result<Show> {
    let manifest = &table.manifest().manifest;
    let indices = indexes(table, display).await?;
    let warnings = warnings(table, &indices, table.history().await?.as_deref());
    let shown = Show {
        uri: table.store().uri(),
        version: manifest.version,
        branch: manifest.branch.clone(),
        rows: manifest.live_rows(),
        data_storage_version: manifest.data_storage_version.clone(),
        has_stable_row_ids: manifest.has_stable_row_ids(),
        reader_feature_flags: manifest.reader_flags,
        writer_feature_flags: manifest.writer_flags,
        fragments: totals(manifest),
        indices,
        warnings,
        requests: table.store().requests(),
    };
    exact("version", Some(shown.version))?;
    exact("rows", shown.rows)?;
    exact("bytes", shown.fragments.bytes)?;
    exact("reader_feature_flags", Some(shown.reader_feature_flags))?;
    exact("writer_feature_flags", Some(shown.writer_feature_flags))?;
    Ok(shown)
}

/// Numbers that JSON would round are refused, never rounded.
fn exact(name: &str, value: Option<u64>) -> Result<()> {
    match value {
        Some(value) if value > EXACT => {
            Err(Error::new(ErrorCode::NumberTooLarge, format!("{name} is {value}, more than JSON numbers carry exactly")))
        }
        _ => Ok(()),
    }
}

fn advice(rule: &str, severity: &str, evidence: String, action: Option<Action>) -> Advice {
    Advice { rule: rule.to_owned(), severity: severity.to_owned(), evidence, action }
}

fn warnings(table: &Table, indices: &[IndexInfo], history: Option<&TaggedHistory>) -> Vec<Advice> {
    let mut all = Vec::new();
    all.extend(history.and_then(uninterpreted));
    all.extend(history.and_then(|history| rewrite_costs(table, history)));
    for index in indices {
        let unknown = index.segments.iter().filter(|s| s.fragment_ids.is_none()).count();
        if unknown > 0 {
            let evidence = format!("{}: {unknown} segments record no coverage; covered is a lower bound", index.name);
            all.push(advice("unknown_coverage", "warning", evidence, Some(refresh(table, &index.name))));
        }
        let missing = &index.unindexed_fragments;
        if missing.is_empty() {
            continue;
        }
        let rows = index.num_rows_unindexed.map(|rows| format!(" ({rows} rows)")).unwrap_or_default();
        let evidence = format!("{}: {} fragments{rows} are not indexed", index.name, missing.len());
        all.push(advice("unindexed_fragments", "info", evidence, Some(refresh(table, &index.name))));
    }
    let uncounted = table.manifest().manifest.fragments.iter().filter(|f| f.live_rows().is_none()).count();
    if uncounted > 0 {
        let evidence = format!("{uncounted} fragments do not record how many rows they have; sums over them are unknown");
        all.push(advice("unknown_rows", "info", evidence, None));
    }
    all
}

/// A history that nobody here may draw conclusions from.
fn uninterpreted(history: &TaggedHistory) -> Option<Advice> {
    if history.ledger.supported {
        return None;
    }
    let what = match history.index_version {
        1 => "has records that this build does not know".to_owned(),
        version => format!("has version {version}"),
    };
    let evidence = format!(
        "HISTORY_UNSUPPORTED: the table's fragment reuse history {what}; queries of readers that do not know them scan, and nothing that \
         depends on the history is changed"
    );
    Some(advice("history_unsupported", "warning", evidence, None))
}

/// While indexes are read through a partition, rewriting their columns in place costs what they cover through it.
fn rewrite_costs(table: &Table, history: &TaggedHistory) -> Option<Advice> {
    let file = table.manifest();
    let partition = |at: &usize| {
        let mapping = history.ledger.transitions.get(*at).map(|t| &t.mapping);
        matches!(mapping, Some(Mapping::StablePartition(_)))
    };
    let through = history.derived.iter().filter(|(_, d)| d.state == State::Translated && d.path.iter().any(partition));
    let mut names = BTreeMap::new();
    let mut fragments = RoaringBitmap::new();
    for (place, derived) in through {
        if let Some(entry) = file.indices.get(*place) {
            names.insert(entry.name.as_str(), ());
        }
        fragments |= &derived.coverage;
    }
    if names.is_empty() {
        return None;
    }
    let names: Vec<&str> = names.into_keys().collect();
    let evidence = format!(
        "{} cover fragments {} through a stable partition: rewriting one of their columns in place, even in one of these fragments, \
         withdraws what they cover through it. Remap or rebuild them first",
        names.join(", "),
        explain::list(&fragments)
    );
    Some(advice("rewrite_in_place", "info", evidence, None))
}

fn refresh(table: &Table, index: &str) -> Action {
    let branch = table.manifest().manifest.branch.as_deref();
    Action { command: refresh_command(&table.store().uri(), branch, index, ""), js: format!("table.refresh({})", js_text(index)) }
}

/// The command line that refreshes `index` of the table at `uri`, to be pasted into a shell: names and addresses come from
/// anybody, and nothing in them may mean anything to the shell or be taken for an option. `options` is ours.
pub(crate) fn refresh_command(uri: &str, branch: Option<&str>, index: &str, options: &str) -> String {
    job_command("refresh", uri, branch, index, options)
}

/// The same for another job on an index; `job` is ours.
pub(crate) fn job_command(job: &str, uri: &str, branch: Option<&str>, index: &str, options: &str) -> String {
    let mut words = vec![format!("whetstone {job}")];
    // The root of a branch names the branch by itself.
    let branch = branch.filter(|name| !uri.trim_end_matches('/').ends_with(&format!("/tree/{name}")));
    words.extend(branch.map(|name| format!("--branch={}", shell_word(name))));
    words.extend((!options.is_empty()).then(|| options.to_owned()));
    words.extend(index.starts_with('-').then(|| "--".to_owned()));
    words.extend([shell_word(uri), shell_word(index)]);
    words.join(" ")
}

fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// `text` as a literal of JavaScript: those of JSON are.
pub(crate) fn js_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn file_info(file: &DataFile) -> DataFileInfo {
    DataFileInfo {
        path: file.path.clone(),
        fields: file.fields.clone(),
        column_indices: file.column_indices.clone(),
        file_version: format!("{}.{}", file.major, file.minor),
        size: file.size,
        base_id: file.base_id,
    }
}

/// The document `fragments`: those with the ids in `only`, or all, ascending.
pub async fn fragments(table: &Table, only: Option<&RoaringBitmap>) -> Result<Vec<FragmentInfo>> {
    let segments: Vec<_> = table.indices().await?.iter().filter(|entry| !entry.is_system()).collect();
    let chosen = table.manifest().manifest.fragments.iter().filter(|f| only.is_none_or(|only| only.contains(f.id)));
    let info = |fragment: &Fragment| {
        let mut covered_by: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entry in segments.iter().filter(|e| e.fragment_bitmap.as_ref().is_some_and(|b| b.contains(fragment.id))) {
            covered_by.entry(entry.name.clone()).or_default().push(entry.uuid.to_string());
        }
        FragmentInfo {
            id: fragment.id,
            physical_rows: fragment.physical_rows,
            num_deletions: deleted(fragment),
            rows: fragment.live_rows(),
            deletion_file: fragment.deletion_file.as_ref().map(|file| file.path(fragment.id)),
            data_files: fragment.files.iter().map(file_info).collect(),
            covered_by,
        }
    };
    Ok(chosen.map(info).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_to_paste_means_nothing_else_to_a_shell() {
        assert_eq!(refresh_command("file:///t/users.lance", None, "k_idx", ""), "whetstone refresh file:///t/users.lance k_idx");
        let odd = refresh_command("file:///a b", Some("f/x;y"), "$(id)`'\"", "--num-segments 2");
        assert_eq!(odd, "whetstone refresh --branch='f/x;y' --num-segments 2 'file:///a b' '$(id)`'\\''\"'");
        assert_eq!(refresh_command("s3://b/t/tree/f/x", Some("f/x"), "k", ""), "whetstone refresh s3://b/t/tree/f/x k");
        assert_eq!(refresh_command("s3://b/t/tree/f", Some("x"), "k", ""), "whetstone refresh --branch=x s3://b/t/tree/f k");
        assert_eq!(refresh_command("s3://b/t", None, "--json", ""), "whetstone refresh -- s3://b/t --json");
        assert_eq!(refresh_command("s3://b/t", None, "", ""), "whetstone refresh s3://b/t ''");
    }

    #[test]
    fn a_call_to_paste_holds_the_name_as_one_literal() {
        assert_eq!(js_text("a\"b\\\u{1b}\n"), r#""a\"b\\\u001b\n""#);
    }
}
