//! Others change the table between plan and commit: what is published is what is true on the version it is published on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use common::shared::{Shared, rewrite};
use futures::executor::block_on;
use serde_json::{Value, json};
use uuid::Uuid;
use whetstone::format::index_metadata::IndexMetadata;
use whetstone::refresh::{BuiltSegment, RefreshPlan, RefreshReport, build_segment, commit_segments, plan_refresh};
use whetstone::table::Table;
use whetstone::{Changed, Error, ErrorCode};

fn planned(table: &Table, index: &str, options: Value) -> (RefreshPlan, Vec<BuiltSegment>) {
    let plan = block_on(plan_refresh(table, index, serde_json::from_value(options).unwrap())).unwrap();
    let build = |task| block_on(build_segment(table.store(), table.manifest().clone(), task, &mut |_| {})).unwrap();
    let built = plan.tasks.iter().map(build).collect();
    (plan, built)
}

fn commit(table: &Table, (plan, built): &(RefreshPlan, Vec<BuiltSegment>)) -> Result<(RefreshReport, Table), Error> {
    block_on(commit_segments(table, plan, built))
}

fn folder_is_empty(shared: &Shared, built: &[BuiltSegment]) -> bool {
    built.iter().all(|b| block_on(shared.store(9).list(&format!("_indices/{}", b.uuid))).unwrap().is_empty())
}

#[test]
fn the_second_of_two_refreshes_has_nothing_to_do() {
    let shared = Shared::new("fragments_one_wide");
    let (first, second) = (shared.open(1), shared.open(2));
    let (mine, theirs) = (planned(&first, "k_idx", json!({"segments": 2})), planned(&second, "k_idx", json!({"segments": 3})));
    let (won, after) = commit(&first, &mine).unwrap();
    assert_eq!(won.established, mine.0.sets.unindexed);
    assert_eq!(won.segments_added, 2);
    let (lost, now) = commit(&second, &theirs).unwrap();
    assert_eq!((lost.fragments_indexed, lost.segments_added, lost.transaction), (0, 0, None));
    assert_eq!((lost.version_before, lost.version), (after.version(), after.version()));
    assert_eq!(now.version(), after.version());
    assert_eq!(lost.left_out.iter().map(|l| l.fragment).collect::<Vec<_>>(), mine.0.sets.unindexed);
    assert!(lost.left_out.iter().all(|l| l.why.contains("covers it already")), "{:?}", lost.left_out);
    assert_eq!(lost.attempts.last().unwrap().outcome, "nothing_to_do");
    assert!(folder_is_empty(&shared, &theirs.1), "its files are no use to anybody and go");
    assert!(!folder_is_empty(&shared, &mine.1));
}

#[test]
fn a_refresh_that_lost_the_put_tries_again_and_claims_only_what_is_left() {
    let shared = Shared::new("fragments_one_wide");
    let first = shared.open(1);
    let mine = planned(&first, "k_idx", json!({}));
    // Another refresh covers two of the fragments, after the attempt read the manifest and before it creates the next one.
    let second = shared.open(2);
    let mut theirs = planned(&second, "k_idx", json!({"segments": 7}));
    theirs.1.truncate(2);
    let taken: Vec<u32> = theirs.1.iter().flat_map(|b| b.fragments.clone()).collect();
    let once = AtomicBool::new(true);
    let theirs = Arc::new(theirs);
    first.store().on_request(Some(Arc::new(move |request| {
        if request.method == "PUT" && request.path.contains("_transactions/") && once.swap(false, Ordering::Relaxed) {
            let (second, theirs) = (second.clone(), theirs.clone());
            std::thread::spawn(move || commit(&second, &theirs).unwrap()).join().unwrap();
        }
    })));
    let (report, after) = commit(&first, &mine).unwrap();
    let outcomes: Vec<&str> = report.attempts.iter().map(|a| a.outcome.as_str()).collect();
    assert_eq!(outcomes, ["lost", "committed"]);
    let rest: Vec<u32> = mine.0.sets.unindexed.iter().copied().filter(|f| !taken.contains(f)).collect();
    assert_eq!(report.established, rest);
    assert_eq!(report.left_out.iter().map(|l| l.fragment).collect::<Vec<_>>(), taken);
    let mut all: Vec<u32> =
        after.manifest().indices.iter().filter(|e| e.name == "k_idx").flat_map(|e| e.fragment_bitmap.clone().unwrap()).collect();
    all.sort_unstable();
    assert_eq!(all, mine.0.sets.live, "every fragment once");
}

#[test]
fn a_dropped_index_stays_dropped() {
    let shared = Shared::new("fragments_one_wide");
    let table = shared.open(1);
    let mine = planned(&table, "k_idx", json!({}));
    let dropped = rewrite(&table, |section| section.retain(|e| e.name != "k_idx"));
    let error = commit(&table, &mine).unwrap_err();
    assert_eq!((error.code(), error.changed()), (ErrorCode::IndexDropped, Changed::Staged));
    assert_eq!(error.detail().get("staged").and_then(Value::as_array).map(Vec::len), Some(mine.1[0].staged.len()));
    assert_eq!(shared.open(3).version(), dropped.version());
}

#[test]
fn an_index_dropped_and_made_again_is_another_index() {
    let shared = Shared::new("fragments_one_wide");
    let table = shared.open(1);
    let mine = planned(&table, "k_idx", json!({}));
    let old = table.manifest().indices.iter().find(|e| e.name == "k_idx").cloned().unwrap();
    rewrite(&table, |section| section.retain(|e| e.name != "k_idx"));
    let again = IndexMetadata { uuid: Uuid::from_u128(77), fragment_bitmap: Some(Default::default()), raw: Bytes::new(), ..old };
    let made = rewrite(&table, |section| section.push(again));
    let error = commit(&table, &mine).unwrap_err();
    assert_eq!(error.code(), ErrorCode::IndexChanged);
    assert_eq!(shared.open(3).version(), made.version());
}

#[test]
fn a_uuid_in_use_is_never_overwritten() {
    let shared = Shared::new("fragments_one_wide");
    let table = shared.open(1);
    let mine = planned(&table, "k_idx", json!({}));
    let (_, after) = commit(&table, &mine).unwrap();
    let error = commit(&after, &mine).unwrap_err();
    assert_eq!(error.code(), ErrorCode::UuidInUse);
}

#[test]
fn only_files_of_the_segments_own_folder_are_ever_deleted() {
    let shared = Shared::new("fragments_one_wide");
    let (first, second) = (shared.open(1), shared.open(2));
    let (mine, mut theirs) = (planned(&first, "k_idx", json!({})), planned(&second, "k_idx", json!({})));
    let precious = format!("_indices/{}/{}", mine.1[0].uuid, mine.1[0].files[0].path);
    theirs.1[0].staged.push(precious.clone());
    let around = format!("_indices/{}/../{}/{}", theirs.1[0].uuid, mine.1[0].uuid, mine.1[0].files[0].path);
    theirs.1[0].staged.push(around);
    commit(&first, &mine).unwrap();
    assert_eq!(commit(&second, &theirs).unwrap().0.fragments_indexed, 0);
    assert!(block_on(shared.store(3).get(&precious, None)).is_ok());
}

#[test]
fn truncated_files_are_not_published() {
    let shared = Shared::new("fragments_one_wide");
    let table = shared.open(1);
    let mine = planned(&table, "k_idx", json!({}));
    block_on(shared.store(5).put(&mine.1[0].staged[0], vec![Bytes::from_static(b"short")])).unwrap();
    let error = commit(&table, &mine).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CorruptFile);
    assert_eq!(shared.open(3).version(), table.version());
}

#[test]
fn documents_that_do_not_fit_together_are_refused() {
    let shared = Shared::new("fragments_one_wide");
    let table = shared.open(1);
    let (plan, built) = planned(&table, "k_idx", json!({}));
    assert_eq!(commit(&table, &(plan.clone(), vec![])).unwrap_err().code(), ErrorCode::InvalidArgument);
    let elsewhere = RefreshPlan { branch: Some("dev".into()), ..plan.clone() };
    assert_eq!(commit(&table, &(elsewhere, built.clone())).unwrap_err().code(), ErrorCode::InvalidArgument);
    let mut other = built.clone();
    other[0].field_id += 1;
    assert_eq!(commit(&table, &(plan.clone(), other)).unwrap_err().code(), ErrorCode::InvalidArgument);
    let mut more = built;
    more[0].fragments.insert(0, 0);
    assert_eq!(commit(&table, &(plan, more)).unwrap_err().code(), ErrorCode::InvalidArgument);
}
