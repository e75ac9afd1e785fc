//! Trim, prune and collect on every tagged fixture: the outcome is the one Lance's own maintenance had on a copy of it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use futures::executor::block_on;
use roaring::RoaringBitmap;
use serde_json::{Value, json};
use whetstone::env::TestEnv;
use whetstone::format::index_metadata::IndexMetadata;
use whetstone::format::transaction::Operation;
use whetstone::maintain::{
    GcOptions, GcPlan, PrunePlan, TrimPlan, TrimReport, history, plan_gc, plan_prune, plan_trim, run_gc, run_prune, run_trim,
};
use whetstone::reuse::collect::MapState;
use whetstone::store::{HostStore, LocalIo, Store, StoreKind};
use whetstone::table::publish::tell_nobody;
use whetstone::table::{At, Table};
use whetstone::{Error, ErrorCode};

use super::common::shared::{Shared, rewrite};
use super::common::{self, Fixture};
use super::{digests, hex, set};

fn trim(table: &Table) -> Result<(TrimReport, Table), Error> {
    let plan = block_on(plan_trim(table))?;
    // A plan is data: it says the same after a journey.
    let again: TrimPlan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!(again, plan);
    let (report, after) = block_on(run_trim(table, &again, &tell_nobody))?;
    let pruned: Vec<_> = report.segments_removed.iter().map(|p| p.uuid).collect();
    assert_eq!(pruned, plan.prune.iter().map(|p| p.uuid).collect::<Vec<_>>(), "the plan says what is pruned");
    let kept = plan.records.iter().filter(|r| r.kept).count() as u64;
    assert_eq!(report.records_after.unwrap_or(0), kept, "the plan says what is kept");
    Ok((report, after))
}

/// The index section as the fixtures describe it, without what differs from run to run.
fn section(table: &Table) -> Value {
    let history = block_on(table.history()).unwrap();
    let describe = |(at, e): (usize, &IndexMetadata)| {
        let system = e.is_system();
        let derived = history.as_ref().and_then(|h| h.of(at).cloned());
        let coverage: Option<RoaringBitmap> = match (&derived, &history) {
            (Some(derived), _) => derived.listed.then(|| derived.coverage.clone()),
            (None, _) => e.fragment_bitmap.clone(),
        };
        json!({
            "name": e.name,
            "uuid": if system { Value::Null } else { json!(e.uuid.to_string()) },
            "stored_bitmap": e.fragment_bitmap.as_ref().map(|b| b.iter().collect::<Vec<_>>()),
            "dataset_version": e.dataset_version,
            "index_version": e.index_version,
            "coverage": coverage.map(|b| b.iter().collect::<Vec<_>>()),
        })
    };
    table.manifest().indices.iter().enumerate().map(describe).collect()
}

fn expected_section(state: &Value) -> Value {
    let one = |s: &Value| {
        let system = s["name"].as_str().unwrap().starts_with("__lance");
        json!({
            "name": s["name"],
            "uuid": if system { Value::Null } else { s["uuid"].clone() },
            "stored_bitmap": s["stored_bitmap"],
            "dataset_version": s["dataset_version"],
            "index_version": s["index_version"],
            "coverage": s["derived"]["coverage"],
        })
    };
    state["segments"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn trims_end_as_lances_own() {
    let (mut deleted, mut shortened, mut pruned, mut refused, mut nothing) = (0, 0, 0, 0, 0);
    for fixture in common::tagged().into_iter().filter(|f| !f.expected["maintenance"].is_null()) {
        let name = fixture.name.as_str();
        let theirs = &fixture.expected["maintenance"]["trim"];
        let shared = Shared::of(&fixture);
        let table = shared.open(1);
        let before = table.version();
        let (report, after) = match trim(&table) {
            Ok(done) => done,
            Err(error) => {
                assert_eq!(theirs["outcome"]["ok"], json!(false), "{name}: {error}");
                assert_eq!(error.code(), ErrorCode::HistoryUnsupported, "{name}: {error}");
                let refusal = block_on(plan_prune(&table)).unwrap_err();
                assert_eq!(refusal.code(), ErrorCode::HistoryUnsupported, "{name}");
                assert_eq!(shared.open(2).version(), before, "{name}");
                refused += 1;
                continue;
            }
        };
        assert_eq!(json!(after.version()), theirs["outcome"]["version_after"], "{name}");
        assert_eq!(report.transactions.len() as u64, after.version() - before, "{name}");
        let state = &theirs["after"]["state"];
        assert_eq!(section(&after), expected_section(state), "{name}");
        assert_eq!(json!(after.manifest().manifest.reader_flags), state["reader_feature_flags"], "{name}");
        assert_eq!(json!(after.manifest().manifest.writer_flags), state["writer_feature_flags"], "{name}");
        match (block_on(after.history()).unwrap(), state["history"].as_object()) {
            (None, None) => deleted += u32::from(report.entry_removed),
            (Some(ours), Some(theirs)) => {
                let raw: Vec<String> = ours.ledger.records.iter().map(|r| hex(&r.raw)).collect();
                let expected: Vec<&Value> = theirs["records"].as_array().unwrap().iter().map(|r| &r["raw_hex"]).collect();
                assert_eq!(json!(raw), json!(expected), "{name}: what stays stays byte for byte");
                assert_eq!(ours.lineage, set(&theirs["fragment_bitmap"]), "{name}");
                shortened += u32::from(report.records_before != report.records_after);
                assert!(digests(&ours.ledger.transitions[0].sources).is_array());
            }
            (ours, _) => panic!("{name}: a history is {}", if ours.is_some() { "left" } else { "gone" }),
        }
        pruned += report.segments_removed.len();
        nothing += u32::from(report.transactions.is_empty());
        // The second call has nothing to do, and does nothing.
        let (again, unchanged) = trim(&after).unwrap();
        assert_eq!((again.transactions.len(), unchanged.version()), (0, after.version()), "{name}");
        assert_eq!(shared.open(3).version(), after.version(), "{name}");
    }
    assert!(
        deleted >= 2 && shortened > 2 && pruned > 2 && refused > 3 && nothing > 10,
        "{deleted} {shortened} {pruned} {refused} {nothing}"
    );
}

#[test]
fn a_prune_marks_its_transaction_and_a_trim_does_not() {
    let table = Shared::of(&Fixture::tagged("superseded")).open(1);
    let plan = block_on(plan_prune(&table)).unwrap();
    assert_eq!(serde_json::from_str::<PrunePlan>(&serde_json::to_string(&plan).unwrap()).unwrap(), plan);
    assert!(plan.segments.len() == 1 && plan.segments[0].why.contains("newer segments name 10, 11 themselves"), "{plan:?}");
    let (report, pruned) = block_on(run_prune(&table, &plan, &tell_nobody)).unwrap();
    assert_eq!((report.version, report.segments_removed.len()), (table.version() + 1, 1));
    let transaction = block_on(pruned.transaction(pruned.version())).unwrap().unwrap();
    assert_eq!(transaction.properties.get("__lance.frag_reuse.superseded_prune").map(String::as_str), Some("true"));
    assert!(matches!(&transaction.operation, Operation::CreateIndex { new, removed } if new.is_empty() && removed.len() == 1));

    let drained = Shared::of(&Fixture::tagged("partially_drained")).open(1);
    let (_, after) = trim(&drained).unwrap();
    let transaction = block_on(after.transaction(after.version())).unwrap().unwrap();
    assert!(transaction.properties.is_empty());
    assert!(matches!(&transaction.operation, Operation::CreateIndex { new, removed } if new.len() == 1 && removed.len() == 1));
}

/// FRI-X-01, X-04, X-06, P-25 and two trims at once: every attempt decides from the version it would replace.
#[test]
fn nothing_lands_that_the_last_version_does_not_justify() {
    let change = |table: &Table, of: &str, bitmap: RoaringBitmap| {
        rewrite(table, |section| {
            for entry in section.iter_mut().filter(|e| e.name == of && e.fragment_bitmap.as_ref().is_some_and(|b| !b.is_empty()))
            {
                *entry = entry.with_bitmap(Some(bitmap.clone())).unwrap();
            }
        })
    };
    // The index that had released the record is replaced by one that needs it: nothing may land, and that is no failure.
    let fixture = Fixture::tagged("fully_drained");
    let shared = Shared::of(&fixture);
    let stale = shared.open(1);
    let plan = block_on(plan_trim(&stale)).unwrap();
    assert_eq!(plan.outcome, "delete");
    let narrowed = change(&shared.open(2), "i_idx", [0, 1].into());
    let (report, after) = block_on(run_trim(&stale, &plan, &tell_nobody)).unwrap();
    assert!(report.transactions.is_empty() && after.version() == narrowed.version(), "{report:?}");
    assert_eq!(report.records_after, report.records_before);

    // The segment that justified a prune is narrowed.
    let shared = Shared::of(&Fixture::tagged("superseded"));
    let stale = shared.open(1);
    let plan = block_on(plan_prune(&stale)).unwrap();
    let newest = stale.manifest().indices.iter().filter(|e| e.name == "i_idx").map(|e| e.dataset_version).max().unwrap();
    let narrowed = rewrite(&shared.open(2), |section| {
        for entry in section.iter_mut().filter(|e| e.name == "i_idx" && e.dataset_version == newest) {
            *entry = entry.with_bitmap(Some([10].into())).unwrap();
        }
    });
    let (report, after) = block_on(run_prune(&stale, &plan, &tell_nobody)).unwrap();
    assert!(report.segments_removed.is_empty() && after.version() == narrowed.version(), "{report:?}");

    // Two trims: the second finds nothing left.
    let shared = Shared::of(&fixture);
    let (first, second) = (shared.open(1), shared.open(2));
    let plan = block_on(plan_trim(&second)).unwrap();
    let (_, trimmed) = trim(&first).unwrap();
    let (report, after) = block_on(run_trim(&second, &plan, &tell_nobody)).unwrap();
    assert!(report.transactions.is_empty() && after.version() == trimmed.version());
    // A plan of a version that is not there yet is refused.
    let error = block_on(run_trim(&fixture_at(&fixture, 1), &plan, &tell_nobody)).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StalePlan);
}

fn fixture_at(fixture: &Fixture, version: u64) -> Table {
    // The same table before the history was there.
    let shared = Shared::of(fixture);
    let table = shared.open(1);
    for v in version + 1..=table.version() {
        let path = block_on(table.at(At::Version(v))).unwrap().manifest_path();
        block_on(table.store().delete(&path)).unwrap();
    }
    shared.open(2)
}

const NOW: i64 = 1_790_000_000_000;
const DAY: i64 = 24 * 3600 * 1000;

fn local(root: &Path) -> Table {
    let object = Arc::new(HostStore::new(Arc::new(LocalIo::new(root))));
    let store = Store::new(object, Default::default(), StoreKind::Host, Arc::new(TestEnv::new(NOW, 1)));
    block_on(Table::open(store, At::Latest, None)).unwrap()
}

fn age(folder: &Path, ms: i64) {
    for file in common::files_below(folder, "") {
        let at = UNIX_EPOCH + Duration::from_millis((NOW - ms) as u64);
        File::options().write(true).open(&file).unwrap().set_modified(at).unwrap();
    }
}

fn maps_left(root: &Path) -> Vec<String> {
    let folder = root.join("_fri");
    if !folder.is_dir() {
        return Vec::new();
    }
    let mut left: Vec<String> = common::files_below(&folder, "")
        .iter()
        .map(|f| f.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    left.sort();
    left.dedup();
    left
}

fn collect(table: &Table) -> (GcPlan, Vec<String>) {
    let plan = block_on(plan_gc(table, GcOptions::default())).unwrap();
    let plan: GcPlan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    let report = block_on(run_gc(table, &plan)).unwrap();
    assert_eq!(report.disabled, plan.disabled);
    (plan, report.removed)
}

fn dirs(value: &Value) -> Vec<String> {
    let mut all: Vec<String> = value.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

/// Row maps are collected as Lance does while all versions are kept, and when all but the last (and what tags and branches keep)
/// are gone.
#[test]
fn row_maps_are_collected_as_lance_does() {
    let (mut removed, mut disabled) = (0, 0);
    for fixture in common::tagged().into_iter().filter(|f| !f.expected["maintenance"].is_null()) {
        let name = fixture.name.as_str();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("t.lance");
        fixture.copy(&root);
        let maintenance = &fixture.expected["maintenance"];
        let kept = &maintenance["gc_old_files_all_versions_kept"]["after"];
        // A branch that lies below another absolute path cannot be looked into: nothing is removed then.
        age(&root, 30 * DAY);
        let (plan, gone) = collect(&local(&root));
        assert_eq!(maps_left(&root), dirs(&kept["fri_dirs"]), "{name}: all versions kept: {plan:?}");
        removed += gone.len();
        disabled += u32::from(plan.disabled.is_some());

        // The old versions are cleaned up, but for those that Lance keeps too.
        let versions = maintenance["gc_old_files"]["after"]["versions"].clone();
        let table = local(&root);
        for info in block_on(table.versions()).unwrap() {
            if !versions.as_array().unwrap().contains(&json!(info.version)) {
                let path = block_on(table.at(At::Version(info.version))).unwrap().manifest_path();
                std::fs::remove_file(root.join(path)).unwrap();
            }
        }
        let (_, gone) = collect(&local(&root));
        assert_eq!(maps_left(&root), dirs(&maintenance["gc_old_files"]["after"]["fri_dirs"]), "{name}: expired");
        removed += gone.len();
    }
    assert!(removed >= 2 && disabled >= 4, "{removed} maps removed, {disabled} runs disabled");
}

#[test]
fn young_maps_stay_and_a_plan_removes_nothing() {
    let fixture = Fixture::tagged("orphan_row_maps");
    let orphans = ["unreferenced_new_map", "unreferenced_old_map"].map(|key| fixture.expected["extra"][key].as_str().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("t.lance");
    fixture.copy(&root);
    age(&root, DAY);
    age(&root.join("_fri").join(orphans[1]), 8 * DAY);
    let before = maps_left(&root);
    let table = local(&root);
    let plan = block_on(plan_gc(&table, GcOptions::default())).unwrap();
    assert_eq!(maps_left(&root), before, "planning changes nothing");
    let state = |id: &str| plan.row_maps.iter().find(|m| m.map_id == id).unwrap().state;
    assert_eq!((state(orphans[0]), state(orphans[1])), (MapState::Young, MapState::Aged));
    let named = plan.row_maps.iter().find(|m| m.state == MapState::Referenced).unwrap();
    assert!(named.referenced_by.iter().any(|v| v.contains("of main")), "{named:?}");
    // What became young again, or is named again, after the plan stays.
    age(&root.join("_fri").join(orphans[1]), DAY);
    assert!(block_on(run_gc(&table, &plan)).unwrap().removed.is_empty());
    age(&root.join("_fri").join(orphans[1]), 8 * DAY);
    let report = block_on(run_gc(&table, &plan)).unwrap();
    assert_eq!(report.removed, [orphans[1]]);
    assert_eq!(maps_left(&root).len(), before.len() - 1);
    let error = block_on(plan_gc(&table, GcOptions { older_than_ms: Some(1) })).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    // An older age keeps more.
    age(&root.join("_fri").join(orphans[0]), 8 * DAY);
    let longer = block_on(plan_gc(&table, GcOptions { older_than_ms: Some(9 * DAY as u64) })).unwrap();
    assert!(longer.row_maps.iter().all(|m| m.state != MapState::Aged));
}

#[test]
fn histories_say_why_each_part_is_there() {
    for fixture in common::tagged() {
        let (name, table) = (fixture.name.as_str(), super::open(&fixture));
        let told = block_on(history(&table)).unwrap();
        let json = serde_json::to_value(&told).unwrap();
        let state = &fixture.expected["state"];
        assert_eq!(json["index_version"], state["history"]["index_version"], "{name}");
        assert_eq!(json["live"], state["live_fragments"], "{name}");
        let records = state["history"]["records"].as_array().cloned().unwrap_or_default();
        let named: Vec<&Value> = records.iter().filter(|r| r["kind"] == "stable_partition").map(|r| &r["map_id"]).collect();
        if told.supported {
            let mut maps: Vec<Value> = told.row_maps.iter().map(|m| json!(m.map_id)).collect();
            let mut named: Vec<Value> = named.into_iter().cloned().collect();
            maps.sort_by_key(Value::to_string);
            named.sort_by_key(Value::to_string);
            assert_eq!(maps, named, "{name}");
        }
        for transition in &told.transitions {
            assert_eq!(transition.kept, !transition.why.is_empty(), "{name}: {transition:?}");
        }
        for segment in &told.segments {
            assert!(!segment.why.is_empty(), "{name}: {segment:?}");
        }
        // What the document says would stay is what a trim keeps.
        if told.supported && told.index_version.is_some() && name != "shallow_clone" {
            let plan = block_on(plan_trim(&table)).unwrap();
            for transition in &told.transitions {
                assert_eq!(plan.records[transition.record].kept, transition.kept, "{name}");
            }
            let pruned = told.segments.iter().filter(|s| !s.kept).count();
            assert_eq!(pruned, plan.prune.len(), "{name}");
        }
    }
    let one = block_on(history(&super::open(&Fixture::tagged("partition_1hop")))).unwrap();
    let why = &one.transitions[0].why;
    assert!(why.iter().any(|w| w.contains("of i_idx still translates 0, 1 → 10, 11 through it")), "{why:?}");
    let none = block_on(history(&super::open(&Fixture::tagged("tag_pins_row_map")))).unwrap();
    assert_eq!((none.index_version, none.transitions.len()), (None, 0));
}
