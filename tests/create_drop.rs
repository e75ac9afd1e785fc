//! Creating and dropping an index, and what others do to the table between plan and commit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use bytes::Bytes;
use common::shared::{Shared, rewrite};
use futures::executor::block_on;
use serde_json::{Value, json};
use uuid::Uuid;
use whetstone::format::index_metadata::IndexMetadata;
use whetstone::maintain::{DropPlan, commit_drop, plan_create_index, plan_drop_index, plan_merge};
use whetstone::refresh::{
    BuiltSegment, RefreshOptions, RefreshPlan, RefreshReport, build_segment, commit_segments, plan_refresh,
};
use whetstone::table::Table;
use whetstone::{Changed, Error, ErrorCode};

const TABLE: &str = "fragments_one_wide";

fn plan(table: &Table, name: &str, column: &str, method: &str, options: Value) -> Result<RefreshPlan, Error> {
    let plan = block_on(plan_create_index(table, name, column, method, serde_json::from_value(options).unwrap()))?;
    // A plan is data: it says the same after a journey.
    let again: RefreshPlan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!(again, plan);
    Ok(again)
}

fn build(table: &Table, plan: &RefreshPlan) -> Vec<BuiltSegment> {
    let one = |task| block_on(build_segment(table.store(), table.manifest().clone(), task, &mut |_| {})).unwrap();
    plan.tasks.iter().map(one).collect()
}

fn create(table: &Table, name: &str, options: Value) -> Result<(RefreshReport, Table), Error> {
    let plan = plan(table, name, "k", "BTREE", options)?;
    block_on(commit_segments(table, &plan, &build(table, &plan)))
}

fn drop_index(table: &Table, plan: &DropPlan) -> Result<(RefreshReport, Table), Error> {
    block_on(commit_drop(table, plan, &whetstone::table::publish::tell_nobody))
}

fn segments<'a>(table: &'a Table, name: &str) -> Vec<&'a IndexMetadata> {
    table.manifest().indices.iter().filter(|e| e.name == name).collect()
}

fn coverage(table: &Table, name: &str) -> Vec<Vec<u32>> {
    segments(table, name).iter().map(|e| e.fragment_bitmap.as_ref().unwrap().iter().collect()).collect()
}

#[test]
fn every_fragment_in_as_many_runs_as_asked_for() {
    let table = Shared::new(TABLE).open(1);
    let plan = plan(&table, "new", "k", "btree", json!({"segments": 3, "params": {"zone_size": 7}})).unwrap();
    assert_eq!((plan.kind.as_str(), plan.runs.len(), plan.index.params_from.as_str()), ("create_index", 3, "options"));
    assert_eq!((&plan.sets.unindexed, &plan.sets.covered), (&plan.sets.live, &Vec::new()));
    assert!(plan.segments.is_empty());
    let built = build(&table, &plan);
    let (report, after) = block_on(commit_segments(&table, &plan, &built)).unwrap();
    assert_eq!((report.segments_added, report.segments_removed, report.version), (3, 0, table.version() + 1));
    assert_eq!(report.established, plan.sets.live);
    assert_eq!(coverage(&after, "new"), plan.runs.iter().map(|run| run.fragments.clone()).collect::<Vec<_>>());
    let others = |t: &Table| t.manifest().indices.iter().filter(|e| e.name != "new").cloned().collect::<Vec<_>>();
    assert_eq!(others(&after), others(&table), "no other index is touched");
}

#[test]
fn a_deferred_index_covers_nothing_until_it_is_refreshed() {
    let table = Shared::new(TABLE).open(1);
    let (report, after) = create(&table, "later", json!({"train": false, "segments": 5, "params": {"zone_size": 9}})).unwrap();
    assert_eq!((report.fragments_indexed, report.segments_added), (0, 1));
    assert_eq!(coverage(&after, "later"), [Vec::<u32>::new()]);
    let plan = block_on(plan_refresh(&after, "later", RefreshOptions { segments: Some(2), ..Default::default() })).unwrap();
    assert_eq!(plan.index.target.params, json!({"zone_size": 9}).as_object().unwrap().clone(), "parameters are inherited");
    assert_eq!(plan.sets.unindexed, plan.sets.live);
    let (report, whole) = block_on(commit_segments(&after, &plan, &build(&after, &plan))).unwrap();
    assert_eq!((report.segments_added, report.segments_removed), (2, 1));
    assert_eq!(report.established, plan.sets.live);
    assert_eq!(coverage(&whole, "later").concat(), plan.sets.live);
}

#[test]
fn a_name_is_taken_once() {
    let shared = Shared::new(TABLE);
    let (first, second) = (shared.open(1), shared.open(2));
    let mine = plan(&first, "twice", "k", "BTREE", json!({})).unwrap();
    let theirs = plan(&second, "twice", "k", "ZONEMAP", json!({"segments": 2})).unwrap();
    let (mine_built, theirs_built) = (build(&first, &mine), build(&second, &theirs));
    let (_, after) = block_on(commit_segments(&first, &mine, &mine_built)).unwrap();
    let error = block_on(commit_segments(&second, &theirs, &theirs_built)).unwrap_err();
    assert_eq!((error.code(), error.changed()), (ErrorCode::IndexExists, Changed::Staged));
    assert_eq!(shared.open(3).version(), after.version());
    let error = create(&after, "twice", json!({})).unwrap_err();
    assert_eq!((error.code(), error.changed()), (ErrorCode::IndexExists, Changed::Nothing));
    // Names differ by case.
    assert!(create(&after, "Twice", json!({})).is_ok());
}

#[test]
fn replacing_takes_all_segments_of_the_name_whatever_became_of_them() {
    let shared = Shared::new(TABLE);
    let table = shared.open(1);
    let old: Vec<Uuid> = segments(&table, "k_idx").iter().map(|e| e.uuid).collect();
    let plan = plan(&table, "k_idx", "k", "ZONEMAP", json!({"replace": true, "segments": 2})).unwrap();
    assert_eq!(plan.segments.iter().map(|s| s.uuid).collect::<Vec<_>>(), old);
    // Meanwhile another refresh completes the index.
    let other = shared.open(2);
    let refresh = block_on(plan_refresh(&other, "k_idx", RefreshOptions::default())).unwrap();
    let (refreshed, _) = block_on(commit_segments(&other, &refresh, &build(&other, &refresh))).unwrap();
    let (report, after) = block_on(commit_segments(&table, &plan, &build(&table, &plan))).unwrap();
    assert!(report.removed.contains(&refreshed.added[0]));
    assert_eq!(segments(&after, "k_idx").len(), 2);
    assert!(segments(&after, "k_idx").iter().all(|e| e.details.as_ref().unwrap().type_url.contains("ZoneMap")));
    assert_eq!(coverage(&after, "k_idx").concat(), plan.sets.live);
}

#[test]
fn another_columns_index_is_never_replaced() {
    let table = Shared::new(TABLE).open(1);
    let other = table.manifest().manifest.schema.fields.iter().find(|f| f.name != "k" && f.logical_type == "int64").unwrap();
    let error = plan(&table, "k_idx", &other.name.clone(), "BTREE", json!({"replace": true})).unwrap_err();
    assert_eq!(error.code(), ErrorCode::IndexExists);
}

#[test]
fn what_cannot_be_made_is_refused_before_anything_is_read_or_written() {
    let table = Shared::new(TABLE).open(1);
    let refused = |name: &str, column: &str, method: &str, options: Value| {
        let error = plan(&table, name, column, method, options).unwrap_err();
        assert_eq!(error.changed(), Changed::Nothing);
        error.code()
    };
    assert_eq!(refused("i", "nope", "BTREE", json!({})), ErrorCode::ColumnNotFound);
    assert_eq!(refused("i", "k", "IVF_PQ", json!({})), ErrorCode::UnsupportedMethod);
    assert_eq!(refused("i", "k", "FM", json!({})), ErrorCode::UnsupportedMethod);
    assert_eq!(refused("i", "k", "TREE", json!({})), ErrorCode::UnsupportedMethod);
    assert_eq!(refused("", "k", "BTREE", json!({})), ErrorCode::InvalidArgument);
    assert_eq!(refused("__lance_mine", "k", "BTREE", json!({})), ErrorCode::InvalidArgument);
    assert_eq!(refused("i", "k", "BTREE", json!({"segments": 0})), ErrorCode::InvalidArgument);
    assert_eq!(refused("i", "k", "BTREE", json!({"params": {"rows_per_zone": 4}})), ErrorCode::InvalidArgument);
    let nested = Shared::new("nested_fields").open(1);
    let list = nested.manifest().manifest.schema.fields.iter().find(|f| f.logical_type == "struct").unwrap().name.clone();
    assert_eq!(plan(&nested, "i", &list, "BTREE", json!({})).unwrap_err().code(), ErrorCode::UnsupportedType);
}

#[test]
fn segments_that_overlap_are_refused() {
    let table = Shared::new(TABLE).open(1);
    let plan = plan(&table, "new", "k", "BTREE", json!({"segments": 2})).unwrap();
    let mut built = build(&table, &plan);
    let shared = built[0].fragments[0];
    built[1].fragments.insert(0, shared);
    let error = block_on(commit_segments(&table, &plan, &built)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Overlap);
    assert_eq!(error.detail().get("rule"), Some(&json!("OVERLAP_INCOMING")));
}

#[test]
fn a_dropped_index_is_gone_and_dropping_it_again_is_nothing_to_do() {
    let shared = Shared::new(TABLE);
    let table = shared.open(1);
    let plan = block_on(plan_drop_index(&table, "K_IDX")).unwrap();
    assert_eq!((plan.kind.as_str(), plan.index.name.as_str()), ("drop_index", "k_idx"));
    let count = segments(&table, "k_idx").len() as u64;
    let (report, after) = drop_index(&table, &plan).unwrap();
    assert_eq!((report.segments_removed, report.segments_added, report.version), (count, 0, table.version() + 1));
    assert!(segments(&after, "k_idx").is_empty());
    assert_eq!(after.manifest().indices.len() as u64, table.manifest().indices.len() as u64 - count);
    let transaction = block_on(after.transaction(after.version())).unwrap().unwrap();
    let Value::String(uuid) = json!(report.transaction.unwrap()) else { panic!() };
    assert_eq!(transaction.uuid, uuid);
    let (again, now) = drop_index(&table, &plan).unwrap();
    assert_eq!((again.transaction, again.segments_removed, now.version()), (None, 0, after.version()));
    assert_eq!(again.attempts.last().unwrap().outcome, "nothing_to_do");
    assert_eq!(block_on(plan_drop_index(&after, "k_idx")).unwrap_err().code(), ErrorCode::IndexNotFound);
}

#[test]
fn a_drop_takes_the_segments_it_finds_not_those_it_was_planned_on() {
    let shared = Shared::new(TABLE);
    let table = shared.open(1);
    let plan = block_on(plan_drop_index(&table, "k_idx")).unwrap();
    // A compaction gives every segment a new uuid.
    rewrite(&shared.open(2), |section| {
        for (n, entry) in (1u128..).zip(section.iter_mut()) {
            entry.uuid = Uuid::from_u128(n);
            entry.raw = Bytes::new();
        }
    });
    let (report, after) = drop_index(&table, &plan).unwrap();
    assert!(report.removed.contains(&Uuid::from_u128(1)));
    assert!(segments(&after, "k_idx").is_empty());
}

#[test]
fn an_index_made_again_is_not_dropped_by_an_older_plan() {
    let shared = Shared::new(TABLE);
    let table = shared.open(1);
    let plan = block_on(plan_drop_index(&table, "k_idx")).unwrap();
    let dropped = rewrite(&table, |section| section.retain(|e| e.name != "k_idx"));
    let (_, made) = create(&dropped, "k_idx", json!({})).unwrap();
    let error = drop_index(&table, &plan).unwrap_err();
    assert_eq!((error.code(), error.changed()), (ErrorCode::IndexChanged, Changed::Nothing));
    assert_eq!(shared.open(3).version(), made.version());
}

#[test]
fn lances_own_entries_are_not_dropped() {
    let shared = Shared::new(TABLE);
    let table = rewrite(&shared.open(1), |section| {
        let entry = section[0].clone();
        section.push(IndexMetadata { name: "__lance_mem_wal".into(), uuid: Uuid::from_u128(5), raw: Bytes::new(), ..entry });
    });
    assert_eq!(block_on(plan_drop_index(&table, "__lance_mem_wal")).unwrap_err().code(), ErrorCode::UnsupportedMethod);
}

fn refresh(table: &Table, options: Value) -> (RefreshPlan, Table) {
    let plan = block_on(plan_refresh(table, "k_idx", serde_json::from_value(options).unwrap())).unwrap();
    let (_, after) = block_on(commit_segments(table, &plan, &build(table, &plan))).unwrap();
    (plan, after)
}

fn merge(table: &Table, options: Value) -> Result<RefreshPlan, Error> {
    block_on(plan_merge(table, "k_idx", serde_json::from_value(options).unwrap()))
}

#[test]
fn segments_are_merged_into_as_few_as_asked_for() {
    let shared = Shared::new(TABLE);
    let (_, table) = refresh(&shared.open(1), json!({"segments": 4}));
    let before = coverage(&table, "k_idx");
    assert!(before.len() > 4);
    let plan = merge(&table, json!({"segments": 2})).unwrap();
    assert_eq!((plan.kind.as_str(), plan.runs.len(), plan.absorbed.len()), ("merge", 2, before.len()));
    assert!(plan.groups.after >= plan.groups.before, "fewer segments never split what a compaction can group");
    let (report, after) = block_on(commit_segments(&table, &plan, &build(&table, &plan))).unwrap();
    assert_eq!((report.segments_added, report.segments_removed), (2, before.len() as u64));
    assert_eq!(coverage(&after, "k_idx").concat(), plan.sets.live);
    let again = merge(&after, json!({"segments": 2})).unwrap();
    assert!(again.tasks.is_empty() && again.segments.iter().all(|s| s.why.contains("nothing to add")));
}

#[test]
fn only_the_chosen_segments_are_merged() {
    let shared = Shared::new(TABLE);
    let (_, table) = refresh(&shared.open(1), json!({"segments": 3}));
    let all = segments(&table, "k_idx");
    let chosen: Vec<Uuid> = all.iter().rev().take(2).map(|e| e.uuid).collect();
    let plan = merge(&table, json!({"only": chosen})).unwrap();
    let (report, after) = block_on(commit_segments(&table, &plan, &build(&table, &plan))).unwrap();
    assert_eq!(report.removed.iter().collect::<std::collections::BTreeSet<_>>(), chosen.iter().collect());
    assert_eq!(segments(&after, "k_idx").len(), all.len() - 1);
    let error = merge(&table, json!({"only": [Uuid::from_u128(4)]})).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    let unknown = Shared::new("missing_bitmap").open(1);
    let index = unknown.manifest().indices.iter().find(|e| e.fragment_bitmap.is_none()).unwrap().name.clone();
    let error = block_on(plan_merge(&unknown, &index, Default::default())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::BitmapUnknown);
}

#[test]
fn a_merge_yields_to_a_drop() {
    let shared = Shared::new(TABLE);
    let (_, table) = refresh(&shared.open(1), json!({"segments": 2}));
    let plan = merge(&table, json!({})).unwrap();
    let built = build(&table, &plan);
    rewrite(&table, |section| section.retain(|e| e.name != "k_idx"));
    assert_eq!(block_on(commit_segments(&table, &plan, &built)).unwrap_err().code(), ErrorCode::IndexDropped);
}

#[test]
fn trailing_segments_are_absorbed_while_they_are_small() {
    let shared = Shared::new(TABLE);
    let table = shared.open(1);
    let plain = block_on(plan_refresh(&table, "k_idx", RefreshOptions::default())).unwrap();
    let (plan, after) = refresh(&table, json!({"absorb": "tiered"}));
    let rows =
        |ids: &[u32]| -> u64 { ids.iter().map(|id| table.manifest().manifest.fragment(*id).unwrap().live_rows().unwrap()).sum() };
    let built: Vec<u32> = plan.runs.iter().flat_map(|run| run.fragments.clone()).collect();
    // Whatever stays is more than twice what was built behind it.
    for kept in plan.segments.iter().filter(|s| s.fate == whetstone::coverage::fate::Fate::Kept) {
        let entry = after.manifest().indices.iter().find(|e| e.uuid == kept.uuid).unwrap();
        let covers: Vec<u32> = entry.fragment_bitmap.as_ref().unwrap().iter().collect();
        assert!(rows(&covers) > 2 * rows(&built), "{covers:?} beside {built:?}");
    }
    assert!(built.len() >= plain.sets.unindexed.len());
    assert_eq!(plan.absorbed.len(), plan.segments.iter().filter(|s| s.fate == whetstone::coverage::fate::Fate::Removed).count());
    let mut all = coverage(&after, "k_idx").concat();
    all.sort_unstable();
    assert_eq!(all, plan.sets.live);
}
