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
use whetstone::env::TestEnv;
use whetstone::format::index_metadata::IndexMetadata;
use whetstone::maintain::{OrphanOptions, commit_drop, discard_staged, orphans, plan_discard, plan_drop_index, remove_orphans};
use whetstone::refresh::{BuiltSegment, RefreshPlan, RefreshReport, build_segment, commit_segments, plan_refresh};
use whetstone::store::{Store, StoreKind};
use whetstone::table::publish::tell_nobody;
use whetstone::table::{At, Table};
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
    let mut mine = planned(&table, "k_idx", json!({}));
    block_on(shared.store(5).put(&mine.1[0].staged[0], vec![Bytes::from_static(b"short")])).unwrap();
    // They are looked at once after they were written, and again when that is long ago (or never was).
    assert!(mine.1[0].seen_ms.take().is_some());
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

/// What --json prints of an error.
fn document(error: &Error) -> Value {
    json!({"error": {"code": error.code().as_str(), "message": error.message(), "detail": error.detail(), "changed": error.changed()}})
}

fn manifest_name(version: u64) -> String {
    format!("_versions/{:020}.manifest", u64::MAX - version)
}

/// While `table` commits, after it wrote its transaction: what `meanwhile` does, once.
fn meanwhile(table: &Table, meanwhile: impl Fn() + Send + Sync + 'static) {
    let once = AtomicBool::new(true);
    let job = Arc::new(meanwhile);
    table.store().on_request(Some(Arc::new(move |request| {
        if request.method == "PUT" && request.path.contains("_transactions/") && once.swap(false, Ordering::Relaxed) {
            let job = job.clone();
            std::thread::spawn(move || job()).join().unwrap();
        }
    })));
}

#[test]
fn what_was_staged_is_discarded_once_it_is_certain() {
    let shared = Shared::new("fragments_one_wide");
    let table = shared.open(1);
    let mine = planned(&table, "k_idx", json!({}));
    let kept = planned(&table, "k_idx", json!({}));
    rewrite(&table, |section| section.retain(|e| e.name != "k_idx"));
    let error = commit(&table, &mine).unwrap_err();
    let plan = block_on(plan_discard(&table, &document(&error))).unwrap();
    assert_eq!(plan.segments.iter().map(|s| s.uuid).collect::<Vec<_>>(), mine.1.iter().map(|b| b.uuid).collect::<Vec<_>>());
    let removal = block_on(discard_staged(&table, &plan)).unwrap();
    assert_eq!((removal.removed.len(), removal.left.len()), (mine.1.iter().map(|b| b.staged.len()).sum(), 0));
    assert!(folder_is_empty(&shared, &mine.1));
    assert!(!folder_is_empty(&shared, &kept.1), "only what the document names");
    // The segments themselves are a document too.
    let plan = block_on(plan_discard(&table, &serde_json::to_value(&kept.1).unwrap())).unwrap();
    block_on(discard_staged(&table, &plan)).unwrap();
    assert!(folder_is_empty(&shared, &kept.1));
    assert_eq!(block_on(plan_discard(&table, &json!({"added": []}))).unwrap_err().code(), ErrorCode::InvalidArgument);
}

#[test]
fn nothing_that_was_or_may_be_committed_is_discarded() {
    let shared = Shared::new("fragments_one_wide");
    let table = shared.open(1);
    let mine = planned(&table, "k_idx", json!({}));
    let staged: Vec<String> = mine.1.iter().flat_map(|b| b.staged.clone()).collect();
    let next = table.version() + 1;
    // The answer to the request for the next version was lost, and the version is not there: it may still come.
    let unknown = |transaction: &str| json!({"error": {"code": "COMMIT_UNKNOWN", "detail": {"version": next, "transaction": transaction, "staged": staged}}});
    let error = block_on(plan_discard(&table, &unknown(&Uuid::from_u128(3).to_string()))).unwrap_err();
    assert_eq!((error.code(), error.changed()), (ErrorCode::CommitUnknown, Changed::Nothing));
    // It came after all: the plan made before that removes nothing.
    let early = block_on(plan_discard(&table, &serde_json::to_value(&mine.1).unwrap())).unwrap();
    let (report, _) = commit(&table, &mine).unwrap();
    let removal = block_on(discard_staged(&table, &early)).unwrap();
    assert_eq!((removal.removed.len(), removal.left.len()), (0, mine.1.len()));
    for landed in [unknown(&report.transaction.unwrap().to_string()), serde_json::to_value(&report).unwrap()] {
        let error = block_on(plan_discard(&table, &landed)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        assert!(error.message().contains("was committed"), "{error}");
    }
    assert!(!folder_is_empty(&shared, &mine.1));
}

#[test]
fn once_another_writer_has_the_version_the_outcome_is_certain() {
    let shared = Shared::new("fragments_one_wide");
    let table = shared.open(1);
    let mine = planned(&table, "k_idx", json!({}));
    let staged: Vec<String> = mine.1.iter().flat_map(|b| b.staged.clone()).collect();
    let lost =
        json!({"detail": {"version": table.version() + 1, "transaction": Uuid::from_u128(3).to_string(), "staged": staged}});
    rewrite(&table, |_| {});
    let plan = block_on(plan_discard(&table, &lost)).unwrap();
    assert!(plan.why.contains("another transaction"), "{}", plan.why);
    block_on(discard_staged(&table, &plan)).unwrap();
    assert!(folder_is_empty(&shared, &mine.1));
}

#[test]
fn orphans_are_what_no_version_names_and_only_old_ones_go() {
    const DAY: u64 = 24 * 3_600_000;
    let shared = Shared::new("fragments_one_wide");
    let table = shared.open(1);
    let mine = planned(&table, "k_idx", json!({}));
    let theirs = planned(&table, "k_idx", json!({}));
    let (_, after) = commit(&table, &mine).unwrap();
    let old_segments: Vec<Uuid> = table.manifest().indices.iter().map(|e| e.uuid).collect();
    rewrite(&after, |section| section.retain(|e| e.name != "k_idx"));
    block_on(shared.store(2).put("_transactions/3-lost.txn", vec![Bytes::from_static(b"x")])).unwrap();
    block_on(shared.store(2).put("_fri/0a/stable_partition.lance", vec![Bytes::from_static(b"x")])).unwrap();
    // Ten days from now, by a clock of its own: the memory store stamps with the real one.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    let env = Arc::new(TestEnv::new(now + 10 * DAY as i64, 5));
    let later =
        block_on(Table::open(Store::new(shared.memory(), Default::default(), StoreKind::Memory, env), At::Latest, None)).unwrap();
    let young = block_on(orphans(&later, &OrphanOptions { older_than_ms: Some(30 * DAY) })).unwrap();
    let old = block_on(orphans(&later, &OrphanOptions::default())).unwrap();
    let paths = |list: &whetstone::maintain::Orphans| list.orphans.iter().map(|o| o.path.clone()).collect::<Vec<_>>();
    let mut expected: Vec<String> = theirs.1.iter().map(|b| format!("_indices/{}", b.uuid)).collect();
    expected.extend(["_fri/0a".to_owned(), "_transactions/3-lost.txn".to_owned()]);
    assert_eq!(paths(&old), expected, "a dropped index is still named by the versions before");
    assert_eq!(paths(&young), expected);
    assert!(young.orphans.iter().all(|o| !o.removable && o.why.contains("young")));
    assert!(old.orphans.iter().all(|o| o.removable && o.age_ms.is_some_and(|age| age / DAY >= 9)));
    assert_eq!(
        block_on(orphans(&later, &OrphanOptions { older_than_ms: Some(DAY - 1) })).unwrap_err().code(),
        ErrorCode::InvalidArgument
    );
    assert!(block_on(remove_orphans(&later, &young)).unwrap().removed.is_empty());
    let removal = block_on(remove_orphans(&later, &old)).unwrap();
    assert_eq!(removal.bytes, old.removable_bytes);
    assert!(removal.left.is_empty() && block_on(orphans(&later, &OrphanOptions::default())).unwrap().orphans.is_empty());
    for uuid in old_segments.into_iter().chain(mine.1.iter().map(|b| b.uuid)) {
        assert!(!block_on(shared.store(9).list(&format!("_indices/{uuid}"))).unwrap().is_empty(), "{uuid} was in use");
    }
}

#[test]
fn an_orphan_that_a_version_names_by_now_stays() {
    let shared = Shared::new("fragments_one_wide");
    let table = shared.open(1);
    let mine = planned(&table, "k_idx", json!({}));
    let env = Arc::new(TestEnv::new(4_000_000_000_000, 5));
    let later =
        block_on(Table::open(Store::new(shared.memory(), Default::default(), StoreKind::Memory, env), At::Latest, None)).unwrap();
    let list = block_on(orphans(&later, &OrphanOptions::default())).unwrap();
    assert_eq!(list.orphans.len(), 1);
    commit(&table, &mine).unwrap();
    let removal = block_on(remove_orphans(&later, &list)).unwrap();
    assert_eq!((removal.removed.len(), removal.left.len()), (0, 1));
    assert!(!folder_is_empty(&shared, &mine.1));
}

#[test]
fn a_number_that_a_cleanup_set_free_is_no_version() {
    let shared = Shared::new("fragments_one_wide");
    let table = shared.open(1);
    let plan = block_on(plan_drop_index(&table, "k_idx")).unwrap();
    let (other, store, base) = (shared.open(2), shared.store(3), table.version());
    // The writer sleeps; two versions come, and the versions before the newest are cleaned up.
    meanwhile(&table, move || {
        let newest = rewrite(&rewrite(&other, |_| {}), |_| {});
        assert_eq!(newest.version(), base + 2);
        for version in 1..newest.version() {
            block_on(store.delete(&manifest_name(version))).unwrap();
        }
    });
    let (report, after) = block_on(commit_drop(&table, &plan, &tell_nobody)).unwrap();
    assert_eq!(
        report.attempts.iter().map(|a| (a.version - base, a.outcome.as_str())).collect::<Vec<_>>(),
        [(1, "lost"), (3, "committed")]
    );
    assert!(report.attempts[0].why.as_deref().unwrap().contains("cleaned up"), "{:?}", report.attempts);
    assert_eq!(after.version(), base + 3);
    let there: Vec<u64> = block_on(after.versions()).unwrap().iter().map(|v| v.version).collect();
    assert_eq!(there, [base + 2, base + 3], "what was written into the gap is gone again");
    assert_eq!(block_on(after.transaction(base + 3)).unwrap().unwrap().uuid, report.transaction.unwrap().to_string());
}

#[test]
fn where_the_order_of_versions_cannot_be_told_nothing_is_claimed() {
    let shared = Shared::new("fragments_one_wide");
    let table = shared.open(1);
    let mine = planned(&table, "k_idx", json!({}));
    let (other, store, base) = (shared.open(2), shared.store(3), table.version());
    meanwhile(&table, move || {
        let newest = rewrite(&rewrite(&rewrite(&other, |_| {}), |_| {}), |_| {});
        for version in 1..newest.version() {
            block_on(store.delete(&manifest_name(version))).unwrap();
        }
    });
    let error = commit(&table, &mine).unwrap_err();
    assert_eq!((error.code(), error.changed()), (ErrorCode::CommitUnknown, Changed::Unknown));
    assert_eq!(error.detail().get("version"), Some(&json!(base + 1)));
    assert!(error.message().contains("whetstone transaction"), "{error}");
    let staged: Vec<&String> = mine.1.iter().flat_map(|b| &b.staged).collect();
    assert_eq!(error.detail().get("staged"), Some(&json!(staged)));
    assert_eq!(error.detail()["attempts"][0]["outcome"], "unknown");
    assert!(!folder_is_empty(&shared, &mine.1));
}

/// What a tagged history names is no orphan, and what none names is one, as Lance says of the same table.
#[test]
fn row_maps_that_a_history_names_are_no_orphans() {
    let fixture = common::Fixture::tagged("orphan_row_maps");
    let store = Store::new(
        Arc::new(object_store::local::LocalFileSystem::new_with_prefix(&fixture.path).unwrap()),
        Default::default(),
        StoreKind::Memory,
        Arc::new(TestEnv::new(4_000_000_000_000, 5)),
    );
    let table = block_on(Table::open(store.clone(), At::Latest, None)).unwrap();
    let list = block_on(orphans(&table, &OrphanOptions::default())).unwrap();
    let found: Vec<&str> = list.orphans.iter().filter_map(|o| o.path.strip_prefix("_fri/")).collect();
    let all = block_on(store.folders("_fri")).unwrap();
    assert!(!found.is_empty() && found.len() < all.len(), "{found:?} of {all:?}");
    assert!(list.orphans.iter().filter(|o| o.what == "row_map").all(|o| o.removable));
}
