//! Refreshing the indexes of the fixture tables: every plan, build and commit on a copy of a table Lance wrote.
//!
//! With `WHETSTONE_REFRESHED` set to a folder, the refreshed copies stay there for `tests/oracle/check_refreshed.py`, which
//! asks Lance for every recorded query.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::Fixture;
use futures::executor::block_on;
use serde_json::{Value, json};
use whetstone::env::TestEnv;
use whetstone::index::{SegmentFiles, method_by_name};
use whetstone::refresh::task::CopyOf;
use whetstone::refresh::{
    BuildTask, BuiltSegment, RefreshOptions, RefreshPlan, RefreshReport, build_segment, commit_segments, plan_refresh,
};
use whetstone::store::{HostStore, LocalIo, Store, StoreKind};
use whetstone::table::{At, Table};
use whetstone::{Error, ErrorCode};

fn open(root: &Path) -> Table {
    let object = Arc::new(HostStore::new(Arc::new(LocalIo::new(root))));
    // Every handle draws uuids of its own.
    static HANDLES: AtomicU64 = AtomicU64::new(1);
    let seed = HANDLES.fetch_add(1, Ordering::Relaxed) << 32;
    let env = Arc::new(TestEnv::new(1_800_000_000_000, seed));
    block_on(Table::open(Store::new(object, Default::default(), StoreKind::Host, env), At::Latest, None)).unwrap()
}

/// A writable copy of a fixture table.
struct Copy {
    path: PathBuf,
    _temporary: Option<tempfile::TempDir>,
}

fn copy(fixture: &Fixture) -> Copy {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{}.lance", fixture.name));
    fixture.copy(&path);
    Copy { path, _temporary: Some(folder) }
}

/// A copy that stays where `WHETSTONE_REFRESHED` says, if it says.
fn copy_to_keep(fixture: &Fixture) -> Copy {
    let Some(folder) = std::env::var_os("WHETSTONE_REFRESHED") else { return copy(fixture) };
    let path = PathBuf::from(folder).join(format!("{}.lance", fixture.name));
    fixture.copy(&path);
    Copy { path, _temporary: None }
}

fn options(value: Value) -> RefreshOptions {
    serde_json::from_value(value).unwrap()
}

/// Plans are data: what is run is what came back from JSON.
fn plan(table: &Table, index: &str, with: Value) -> Result<RefreshPlan, Error> {
    let plan = block_on(plan_refresh(table, index, options(with)))?;
    let text = serde_json::to_string(&plan).unwrap();
    let back: RefreshPlan = serde_json::from_str(&text).unwrap();
    assert_eq!(back, plan, "a plan must survive JSON");
    Ok(back)
}

fn build(table: &Table, plan: &RefreshPlan) -> Result<Vec<BuiltSegment>, Error> {
    plan.tasks
        .iter()
        .map(|task| {
            let task: BuildTask = serde_json::from_str(&serde_json::to_string(task).unwrap()).unwrap();
            let mut done = 0;
            let built = block_on(build_segment(table.store(), table.manifest().clone(), &task, &mut |rows| done = rows))?;
            assert_eq!(done, task.rows, "progress ends at the rows of the task");
            let back: BuiltSegment = serde_json::from_str(&serde_json::to_string(&built).unwrap()).unwrap();
            assert_eq!(back, built);
            Ok(back)
        })
        .collect()
}

fn refresh(table: &Table, index: &str, with: Value) -> Result<(RefreshPlan, RefreshReport, Table), Error> {
    let plan = plan(table, index, with)?;
    let built = build(table, &plan)?;
    let (report, table) = block_on(commit_segments(table, &plan, &built))?;
    Ok((plan, report, table))
}

/// Effective coverage of each segment of an index, as stored.
fn coverage(table: &Table, index: &str) -> Vec<BTreeSet<u32>> {
    let live = table.manifest().manifest.live();
    let indices = block_on(table.indices()).unwrap();
    indices
        .iter()
        .filter(|e| e.name == index)
        .map(|e| e.fragment_bitmap.as_ref().map(|b| (b & &live).iter().collect()).unwrap_or_default())
        .collect()
}

/// Methods this build maintains, as Lance calls them.
const MAINTAINED: [&str; 6] = ["BTree", "ZoneMap", "Bitmap", "BloomFilter", "NGram", "LabelList"];

/// Indexes of these methods.
fn ours(fixture: &Fixture) -> Vec<&Value> {
    let all = fixture.expected["indices"].as_array().unwrap();
    all.iter().filter(|i| MAINTAINED.contains(&i["type"].as_str().unwrap())).collect()
}

fn fragments(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|f| u32::try_from(f.as_u64().unwrap()).unwrap()).collect()
}

/// Tables with files that this build refuses by name; everywhere else a refusal is a failure.
fn may_refuse(name: &str) -> bool {
    matches!(name, "storage_legacy" | "storage_2_3" | "storage_next")
}

#[test]
fn every_index_of_a_maintained_method_ends_covered() {
    let (mut committed, mut refused, mut nothing) = (0, Vec::new(), 0);
    for fixture in common::tables() {
        let indices = ours(&fixture);
        if indices.is_empty() {
            continue;
        }
        let copied = copy_to_keep(&fixture);
        for index in indices {
            let table = open(&copied.path);
            let name = index["name"].as_str().unwrap();
            let at = format!("{} {name}", fixture.name);
            let unindexed = fragments(&index["unindexed_fragments"]);
            let (plan, report, after) = match refresh(&table, name, json!({"segments": 2})) {
                Ok(done) => done,
                Err(error) => {
                    let known = matches!(error.code(), ErrorCode::UnsupportedType | ErrorCode::UnsupportedEncoding);
                    assert!(known && may_refuse(&fixture.name), "{at}: {error:?}");
                    assert_eq!(error.changed(), whetstone::Changed::Nothing, "{at}: {error:?}");
                    assert_eq!(open(&copied.path).version(), table.version(), "{at}");
                    refused.push(at);
                    continue;
                }
            };
            assert_eq!(plan.sets.unindexed, unindexed, "{at}");
            assert_eq!(plan.sets.covered, fragments(&index["covered_live_fragments"]), "{at}");
            let live: BTreeSet<u32> = table.manifest().manifest.live().iter().collect();
            if plan.is_empty() {
                nothing += 1;
                assert!(unindexed.is_empty(), "{at}");
                assert_eq!((report.fragments_indexed, report.version, report.transaction), (0, table.version(), None), "{at}");
                assert_eq!(open(&copied.path).version(), table.version(), "{at}: nothing to do, yet a version was written");
                continue;
            }
            committed += 1;
            let segments = coverage(&after, name);
            assert_eq!(segments.iter().map(BTreeSet::len).sum::<usize>(), live.len(), "{at}: {segments:?} overlap or leave gaps");
            assert_eq!(segments.iter().flatten().copied().collect::<BTreeSet<_>>(), live, "{at}");
            assert_eq!(report.declared, report.established, "{at}");
            assert_eq!(report.left_out, [], "{at}");
            assert!(unindexed.iter().all(|f| report.established.contains(f)), "{at}");
            assert_eq!((report.version_before, report.version), (table.version(), table.version() + 1), "{at}");
            let (again, report, _) = refresh(&after, name, json!({})).unwrap();
            assert!(again.is_empty() && report.transaction.is_none(), "{at}: a second refresh finds {:?}", again.sets.unindexed);
        }
    }
    assert!(committed > 120, "{committed} committed, {nothing} with nothing to do, refused: {refused:?}");
}

#[test]
fn stale_pages_are_absorbed_or_copied() {
    for (name, index) in
        [("stale_pages_pruned", "k_idx"), ("pruned_update_columns", "k_idx"), ("pruned_data_replacement", "k_idx")]
    {
        let fixture = Fixture::table(name);
        let copied = copy(&fixture);
        let table = open(&copied.path);
        let plan = plan(&table, index, json!({})).unwrap();
        assert_eq!(plan.absorbed.len(), 1, "{name} {index}: {:?}", plan.absorbed);
        let cured = &plan.absorbed[0];
        assert_eq!(cured.stale, plan.sets.unindexed, "{name}");
        let fate = plan.segments.iter().find(|s| s.uuid == cured.uuid).unwrap();
        assert_eq!(fate.fate, whetstone::coverage::fate::Fate::Removed, "{name}");
    }
    // A zone map answers only nulls without looking at the rows again: no stale null, nothing to cure.
    let fixture = Fixture::table("stale_pages_pruned");
    let copied = copy(&fixture);
    assert_eq!(plan(&open(&copied.path), "z_idx", json!({})).unwrap().absorbed, []);
    // Fragments appended after the segment was published are proved clean by a manifest alone.
    let fixture = Fixture::table("deletions_small");
    let copied = copy(&fixture);
    let table = open(&copied.path);
    let before = table.store().requests().count;
    let plan = plan(&table, "k_idx", json!({})).unwrap();
    assert_eq!(plan.absorbed, []);
    let requests = table.store().requests().count - before;
    assert!(requests <= 4, "{requests} requests to plan on a table that only grew");
}

#[test]
fn a_copy_leaves_the_stale_rows_out() {
    for (name, index) in [("pruned_update_columns", "k_idx"), ("stale_pages_pruned", "k_idx")] {
        let fixture = Fixture::table(name);
        let copied = copy(&fixture);
        let table = open(&copied.path);
        let mut plan = plan(&table, index, json!({})).unwrap();
        let stale = plan.absorbed[0].clone();
        let old = table.manifest().indices.iter().find(|e| e.uuid == stale.uuid).unwrap().clone();
        let covers: Vec<u32> = plan.sets.covered.clone();
        // These tables are so small that building anew is the cheaper cure; the plan is turned into the other one.
        let mut copying = plan.tasks[0].clone();
        copying.copy_of = Some(CopyOf {
            uuid: old.uuid,
            dataset_version: old.dataset_version,
            without: stale.stale.clone(),
            files: plan.runs[0].files.iter().filter(|key| covers.contains(&key.fragment)).cloned().collect(),
        });
        copying.fragments = covers.clone();
        plan.tasks[0].fragments = plan.sets.unindexed.clone();
        plan.tasks[0].rows = table.manifest().manifest.fragment(plan.sets.unindexed[0]).unwrap().live_rows().unwrap();
        copying.rows = plan.runs[0].rows - plan.tasks[0].rows;
        plan.tasks.push(copying);
        let built = build(&table, &plan).unwrap();
        assert_eq!(built[1].copy_of, Some(old.uuid), "{name}");
        assert_eq!(built[1].dataset_version, old.dataset_version);
        let (report, after) = block_on(commit_segments(&table, &plan, &built)).unwrap();
        assert_eq!((report.segments_added, report.segments_removed), (2, 1));
        let entry = after.manifest().indices.iter().find(|e| e.uuid == built[1].uuid).unwrap();
        assert_eq!(entry.fragment_bitmap.as_ref().unwrap().iter().collect::<Vec<_>>(), covers);
        let folder = after.store().child(&format!("_indices/{}", entry.uuid)).unwrap();
        let method = method_by_name("BTREE").unwrap();
        let rows = block_on(method.stored_rows(&SegmentFiles::new(folder, entry.clone()))).unwrap();
        let fragments: BTreeSet<u32> = rows.bitmaps().map(|(fragment, _)| fragment).collect();
        assert_eq!(fragments, covers.into_iter().collect(), "{name}: rows of {:?} have to be gone", stale.stale);
    }
}

#[test]
fn unknown_coverage_widens_the_plan_to_all_live_fragments() {
    for name in ["missing_bitmap", "missing_bitmap_mixed"] {
        let fixture = Fixture::table(name);
        let copied = copy(&fixture);
        let plan = plan(&open(&copied.path), "K_IDX", json!({"segments": 2})).unwrap();
        assert_eq!(plan.index.target.name, "k_idx", "the name resolves when case is ignored");
        assert_eq!(plan.runs.iter().flat_map(|r| r.fragments.clone()).collect::<Vec<_>>(), plan.sets.live, "{name}");
        assert!(plan.warnings.iter().any(|w| w.rule == "unknown_coverage"), "{name}: {:?}", plan.warnings);
    }
}

#[test]
fn what_must_not_be_refreshed_is_refused_by_name() {
    let code = |name: &str, index: &str| {
        let fixture = Fixture::table(name);
        block_on(plan_refresh(&open(&fixture.path), index, RefreshOptions::default())).unwrap_err().code()
    };
    assert_eq!(code("btree_all_types", "no_such"), ErrorCode::IndexNotFound);
    assert_eq!(code("other_index_kinds", "t_fm"), ErrorCode::UnsupportedMethod);
    assert_eq!(code("legacy_fri_one_round", "__lance_frag_reuse"), ErrorCode::UnsupportedMethod);
    let tagged = Fixture::tagged("unknown_record");
    let refused = block_on(plan_refresh(&open(&tagged.path), "i_idx", RefreshOptions::default())).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::HistoryUnsupported);
    // Once the history is trimmed to nothing the table is an ordinary one again.
    let drained = Fixture::tagged("tag_pins_row_map");
    assert!(plan(&open(&drained.path), "i_idx", json!({})).unwrap().is_empty());
    let zero = plan(&open(&Fixture::table("all_null").path), "k_idx", json!({"segments": 0})).unwrap_err();
    assert_eq!(zero.code(), ErrorCode::InvalidArgument);
}

#[test]
fn absorbing_all_leaves_one_generation_of_segments() {
    let fixture = Fixture::table("segments_interleaved");
    let copied = copy(&fixture);
    let (plan, report, after) = refresh(&open(&copied.path), "k_idx", json!({"absorb": true, "segments": 2})).unwrap();
    assert_eq!((report.segments_added, report.segments_removed), (2, 2));
    assert_eq!(plan.absorbed.len(), 2);
    assert_eq!(coverage(&after, "k_idx").len(), 2);
}

#[test]
fn a_plan_says_what_it_does_to_later_compactions() {
    let table = open(&Fixture::table("fragments_one_wide").path);
    let groups = |segments: u32| {
        let groups = plan(&table, "k_idx", json!({"segments": segments})).unwrap().groups;
        (groups.before, groups.after)
    };
    assert_eq!(groups(1), (Some(7), Some(7)));
    assert_eq!(groups(7), (Some(7), Some(0)), "one segment per fragment freezes them all");
}

#[test]
fn a_memory_limit_stops_the_build_and_leaves_nothing() {
    let fixture = Fixture::table("segments_interleaved");
    let copied = copy(&fixture);
    let table = open(&copied.path);
    let plan = plan(&table, "k_idx", json!({"max_bytes": 1})).unwrap();
    assert!(plan.warnings.iter().any(|w| w.rule == "memory_estimate"));
    let error = build(&table, &plan).unwrap_err();
    assert_eq!((error.code(), error.changed()), (ErrorCode::MemoryLimit, whetstone::Changed::Nothing));
    assert_eq!(error.detail().get("divisible"), Some(&json!(true)));
    assert!(error.message().contains("even in passes"), "{}", error.message());
    // Methods of zones are not built in passes, and say so.
    for (method, advice) in [("ZONEMAP", "rows_per_zone"), ("BLOOMFILTER", "number_of_items")] {
        let with = serde_json::from_value(json!({"max_bytes": 1})).unwrap();
        let plan = block_on(whetstone::maintain::plan_create_index(&table, "zones", "k", method, with)).unwrap();
        let error = build(&table, &plan).unwrap_err();
        assert_eq!((error.code(), error.changed()), (ErrorCode::MemoryLimit, whetstone::Changed::Nothing), "{method}");
        assert_eq!(error.detail().get("divisible"), Some(&json!(false)));
        let text = error.message();
        assert!(text.contains(advice) && text.contains("more segments") && !text.contains("even in passes"), "{text}");
        assert!(error.detail().get("needed_bytes").and_then(Value::as_u64).is_some_and(|bytes| bytes > 1), "{text}");
    }
}
