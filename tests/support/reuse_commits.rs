//! Refresh, create and drop on every tagged fixture: what Lance's reader serves afterwards, and what no commit may leave behind.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::executor::block_on;
use roaring::RoaringBitmap;
use serde_json::{Value, json};
use whetstone::format::index_metadata::{FRAG_REUSE_NAME, IndexMetadata};
use whetstone::index::display_name;
use whetstone::maintain::{
    MergeOptions, commit_drop, forecast, plan_create_index, plan_drop_index, plan_merge, plan_trim, run_trim,
};
use whetstone::refresh::{BuiltSegment, RefreshPlan, RefreshReport, build_segment, commit_segments, plan_refresh};
use whetstone::table::publish::tell_nobody;
use whetstone::table::show::show;
use whetstone::table::{At, Table};
use whetstone::{Error, ErrorCode};

use super::common::shared::{Shared, rewrite};
use super::common::{self, Fixture};

/// Histories that may not be interpreted.
const UNKNOWN: [&str; 4] = ["unknown_record", "unknown_mapping", "record_extra_field", "future_index_version"];
/// Its data lies below another absolute path, which is not there.
const ELSEWHERE: &str = "shallow_clone";

/// Each time another writer: they draw other uuids.
fn open(shared: &Shared) -> Table {
    static WRITER: AtomicU64 = AtomicU64::new(1);
    shared.open(WRITER.fetch_add(1, Ordering::Relaxed))
}

fn build(table: &Table, plan: &RefreshPlan) -> Vec<BuiltSegment> {
    // A plan is data.
    let plan: RefreshPlan = serde_json::from_str(&serde_json::to_string(plan).unwrap()).unwrap();
    let build = |task| block_on(build_segment(table.store(), table.manifest().clone(), task, &mut |_| {})).unwrap();
    plan.tasks.iter().map(build).collect()
}

fn refresh_plan(table: &Table, index: &str, options: Value) -> Result<RefreshPlan, Error> {
    block_on(plan_refresh(table, index, serde_json::from_value(options).unwrap()))
}

fn refresh(table: &Table, index: &str, options: Value) -> Result<(RefreshPlan, RefreshReport, Table), Error> {
    let plan = refresh_plan(table, index, options)?;
    let built = build(table, &plan);
    let (report, after) = block_on(commit_segments(table, &plan, &built))?;
    Ok((plan, report, after))
}

fn create_plan(table: &Table, name: &str, column: &str, method: &str, options: Value) -> Result<RefreshPlan, Error> {
    block_on(plan_create_index(table, name, column, method, serde_json::from_value(options).unwrap()))
}

/// What queries find through the index.
fn covered(table: &Table, index: &str) -> RoaringBitmap {
    let entries = block_on(table.indices()).unwrap().iter().filter(|e| e.name == index);
    entries.filter_map(|e| e.fragment_bitmap.clone()).fold(RoaringBitmap::new(), |all, b| all | b)
}

fn names(table: &Table) -> Vec<String> {
    let mut names: Vec<String> = table.manifest().indices.iter().filter(|e| !e.is_system()).map(|e| e.name.clone()).collect();
    names.dedup();
    names.sort();
    names.dedup();
    names
}

/// §8.1: no two segments of the name share an id, retired ones included.
fn nothing_twice(table: &Table, index: &str) {
    let mut all = RoaringBitmap::new();
    for entry in table.manifest().indices.iter().filter(|e| e.name == index) {
        let names = entry.fragment_bitmap.clone().unwrap_or_default();
        assert!(names.is_disjoint(&all), "{index}: {:?} of {} is named twice", &names & &all, entry.uuid);
        all |= names;
    }
}

/// Everything that is not of the index stays, byte for byte and in its order.
fn others_stay(before: &Table, after: &Table, index: &str) {
    let others =
        |table: &Table| -> Vec<IndexMetadata> { table.manifest().indices.iter().filter(|e| e.name != index).cloned().collect() };
    let raw = |table: &Table| others(table).iter().map(IndexMetadata::encode).collect::<Vec<_>>();
    assert_eq!(raw(before), raw(after), "{index}");
    assert_eq!(after.manifest().manifest.reader_flags, before.manifest().manifest.reader_flags);
    for other in others(before).iter().filter(|e| e.name != FRAG_REUSE_NAME) {
        assert_eq!(covered(before, &other.name), covered(after, &other.name), "{} beside {index}", other.name);
    }
}

/// A forecast of the refresh says what it did.
fn was_forecast(name: &str, before: &Table, index: &str, report: &RefreshReport, after: &Table) {
    let plan = json!({"name": "it", "steps": [{"step": "refresh", "index": index, "segments": 2}]});
    let told = block_on(forecast(before, &serde_json::from_value(json!({"plans": [plan]})).unwrap())).unwrap();
    let it = told.plans.first().unwrap_or_else(|| panic!("{name} {index}: {:?}", told.warnings));
    let took = it.steps[0].took;
    let counts = (took.segments_added, took.segments_removed);
    assert_eq!(counts, (report.segments_added, report.segments_removed), "{name} {index}: {report:?}");
    let own = it.after.summary.indexes.iter().find(|i| i.name == index).unwrap();
    let segments = after.manifest().indices.iter().filter(|e| e.name == index).count() as u64;
    assert_eq!((own.segments, own.covered_fragments), (segments, covered(after, index).len()), "{name} {index}");
}

#[test]
fn a_refresh_covers_what_lances_reader_does_not() {
    let (mut kept, mut lossless, mut replaced, mut refused, mut idle) = (0, 0, 0, 0, 0);
    for fixture in common::tagged().into_iter().filter(|f| f.name != ELSEWHERE && !f.expected["maintenance"].is_null()) {
        let (name, theirs) = (fixture.name.as_str(), &fixture.expected["maintenance"]["refresh"]);
        let shared = Shared::of(&fixture);
        for index in names(&open(&shared)) {
            let before = open(&shared);
            let live = before.manifest().manifest.live();
            let (plan, report, after) = match refresh(&before, &index, json!({"segments": 2})) {
                Ok(done) => done,
                Err(error) => {
                    assert!(UNKNOWN.contains(&name), "{name} {index}: {error}");
                    assert_eq!(error.code(), ErrorCode::HistoryUnsupported, "{name} {index}: {error}");
                    assert_eq!(open(&shared).version(), before.version(), "{name} {index}");
                    refused += 1;
                    continue;
                }
            };
            let theirs = &theirs["outcome"][&index];
            assert_eq!(json!(plan.sets.unindexed), theirs["unindexed"], "{name} {index}");
            was_forecast(name, &before, &index, &report, &after);
            if plan.is_empty() {
                assert_eq!((after.version(), plan.sets.unindexed.is_empty()), (before.version(), true), "{name} {index}");
                idle += 1;
                continue;
            }
            assert_eq!(after.version(), before.version() + 1, "{name} {index}");
            assert_eq!(covered(&after, &index), live, "{name} {index}: {:?}", after.manifest().indices);
            assert_eq!(report.established, plan.sets.unindexed, "{name} {index}");
            nothing_twice(&after, &index);
            others_stay(&before, &after, &index);
            // Every segment has the fate that the plan says.
            let there = |uuid| after.manifest().indices.iter().any(|e| e.uuid == uuid);
            for fate in &plan.segments {
                assert_eq!(there(fate.uuid), fate.fate == whetstone::coverage::fate::Fate::Kept, "{name} {index}: {fate:?}");
                let stored = before.manifest().indices.iter().find(|e| e.uuid == fate.uuid).unwrap();
                let only_translates = stored.fragment_bitmap.as_ref().is_some_and(|b| b.is_disjoint(&live));
                kept += u32::from(there(fate.uuid));
                lossless += u32::from(there(fate.uuid) && only_translates);
                replaced += u32::from(!there(fate.uuid));
            }
            let lossy = plan.warnings.iter().any(|w| w.rule == "read_through_history" && w.evidence.contains("to scans"));
            let keeps = plan.segments.iter().any(|f| {
                let stored = before.manifest().indices.iter().find(|e| e.uuid == f.uuid).unwrap();
                there(f.uuid) && stored.fragment_bitmap.as_ref().is_some_and(|b| b.is_disjoint(&live))
            });
            assert_eq!(lossy, keeps, "{name} {index}: {:?}", plan.warnings);
            // Nothing is left to do, here as for Lance.
            assert!(refresh_plan(&after, &index, json!({})).unwrap().is_empty(), "{name} {index}");
        }
    }
    assert!(
        kept >= 12 && lossless >= 10 && replaced >= 6 && refused >= 8 && idle >= 20,
        "{kept} kept, {lossless} of them only translate, {replaced} replaced, {refused} refused, {idle} idle"
    );
}

/// What stays of a name whose coverage was withdrawn says what to build, and with which parameters.
#[test]
fn withdrawn_segments_tell_what_to_build() {
    for (name, index) in [("withdrawn_to_empty", "i_idx"), ("withdrawn", "i_idx"), ("empty_bitmap", "v_idx")] {
        let shared = Shared::of(&Fixture::tagged(name));
        let before = open(&shared);
        let stored: Vec<&IndexMetadata> = before.manifest().indices.iter().filter(|e| e.name == index).collect();
        assert!(stored.len() == 1 && stored[0].fragment_bitmap.as_ref().is_some_and(RoaringBitmap::is_empty), "{name}");
        let (plan, _, after) = refresh(&before, index, json!({})).unwrap();
        assert_eq!(plan.index.params_from, stored[0].uuid.to_string(), "{name}");
        assert!(plan.segments[0].why.contains("withdrawn"), "{name}: {}", plan.segments[0].why);
        assert!(after.manifest().indices.iter().all(|e| e.uuid != stored[0].uuid), "{name}");
    }
}

/// Rebuilding releases records: the next trim keeps less than it would have.
#[test]
fn what_is_built_anew_drains_the_history() {
    let kept = |table: &Table| block_on(plan_trim(table)).unwrap().records.iter().filter(|r| r.kept).count();
    let mut drained = 0;
    for name in ["partition_1hop", "compaction_2hop", "withdrawn_one_of_two", "partially_drained", "external_content"] {
        let shared = Shared::of(&Fixture::tagged(name));
        let mut counts = vec![kept(&open(&shared))];
        assert!(counts[0] > 0, "{name}");
        for index in names(&open(&shared)) {
            let table = open(&shared);
            let entry = table.manifest().indices.iter().find(|e| e.name == index).unwrap().clone();
            let column = table.manifest().manifest.schema.path_of(entry.fields[0]).unwrap();
            let method = if entry.type_name().unwrap().contains("Bitmap") { "BITMAP" } else { "BTREE" };
            let plan = create_plan(&table, &index, &column, method, json!({"replace": true})).unwrap();
            let built = build(&table, &plan);
            let before = kept(&table);
            let (_, after) = block_on(commit_segments(&table, &plan, &built)).unwrap();
            let told = plan.warnings.iter().any(|w| w.rule == "history_released");
            assert_eq!(told, kept(&after) < before, "{name} {index}: {:?}", plan.warnings);
            counts.push(kept(&after));
        }
        assert!(counts.is_sorted_by(|a, b| a >= b) && *counts.last().unwrap() == 0, "{name}: {counts:?}");
        let table = open(&shared);
        let (report, after) = block_on(run_trim(&table, &block_on(plan_trim(&table)).unwrap(), &tell_nobody)).unwrap();
        assert!(report.entry_removed && !after.has_tagged_history(), "{name}: {report:?}");
        drained += 1;
    }
    // A delta is enough where it names all that went through a record.
    let shared = Shared::of(&Fixture::tagged("partition_1hop"));
    for index in ["i_idx", "v_idx"] {
        let (plan, ..) = refresh(&open(&shared), index, json!({"absorb": "all"})).unwrap();
        assert_eq!(plan.sets.unindexed, [102], "{index}");
    }
    assert_eq!((drained, kept(&open(&shared))), (5, 0));
}

/// Built before a partition was committed, committed after it: it is read through the history (FRI-S-18, X-26).
#[test]
fn a_segment_built_before_a_partition_lands_translating() {
    let shared = Shared::of(&Fixture::tagged("staged_before_partition"));
    let latest = open(&shared);
    let sources: RoaringBitmap = [0, 1].into();
    let old = (1..=latest.version())
        .filter_map(|v| block_on(latest.at(At::Version(v))).ok())
        .rfind(|t| t.manifest().manifest.live() == sources)
        .expect("a version before the partition");
    for (index, method, segments) in [("one", "BTREE", 1), ("two", "BITMAP", 2)] {
        let before = open(&shared);
        let plan = create_plan(&old, index, "i", method, json!({"segments": segments})).unwrap();
        let built = build(&old, &plan);
        let (report, after) = block_on(commit_segments(&old, &plan, &built)).unwrap();
        assert_eq!((report.left_out.len(), report.segments_added), (0, segments), "{index}: {report:?}");
        assert_eq!(report.established, [10, 11], "{index}");
        assert_eq!(covered(&after, index), [10, 11].into(), "{index}");
        let stored: Vec<&IndexMetadata> = after.manifest().indices.iter().filter(|e| e.name == index).collect();
        let named = stored.iter().filter_map(|e| e.fragment_bitmap.clone()).fold(RoaringBitmap::new(), |all, b| all | b);
        assert_eq!(named, sources, "{index}: what it was built from stays");
        assert!(stored.iter().all(|e| e.dataset_version == old.version()), "{index}");
        nothing_twice(&after, index);
        others_stay(&before, &after, index);
    }

    // Half of what went in covers nothing, and is not committed (FRI-S-16, S-36).
    let plan = create_plan(&old, "half", "i", "BTREE", json!({"segments": 2})).unwrap();
    let built = build(&old, &plan);
    let error = block_on(commit_segments(&old, &plan, &built[..1])).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NothingLeft, "{error}");
    assert!(error.message().contains("nobody built"), "{error}");

    // Trigrams are not carried (FRI-S-17).
    let text = old.manifest().manifest.schema.fields.iter().find(|f| f.logical_type == "string").map(|f| f.name.clone());
    if let Some(column) = text {
        let plan = create_plan(&old, "grams", &column, "NGRAM", json!({})).unwrap();
        let error = block_on(commit_segments(&old, &plan, &build(&old, &plan))).unwrap_err();
        assert_eq!(error.code(), ErrorCode::NothingLeft, "{error}");
    }

    // Nobody knows what happened in versions that are gone (FRI-S-12).
    let plan = create_plan(&old, "late", "i", "BTREE", json!({})).unwrap();
    let built = build(&old, &plan);
    let gone = block_on(latest.at(At::Version(old.version() + 1))).unwrap().manifest_path();
    block_on(latest.store().delete(&gone)).unwrap();
    let (report, after) = block_on(commit_segments(&old, &plan, &built)).unwrap();
    assert_eq!((report.fragments_indexed, report.left_out.len()), (0, 2), "{report:?}");
    assert!(report.left_out[0].why.contains("cleaned up"), "{report:?}");
    assert_eq!(covered(&after, "late"), RoaringBitmap::new());
}

/// Where the column was rewritten in place after the partition, that transition's coverage is withdrawn (FRI-S-20, S-21, W-09).
#[test]
fn a_segment_built_before_an_in_place_rewrite_lands_without_it() {
    let before_partitions = |table: &Table| {
        let mut all = (1..=table.version()).filter_map(|v| block_on(table.at(At::Version(v))).ok());
        all.rfind(|t| block_on(t.history()).unwrap().is_none()).expect("a version before the partitions")
    };
    let shared = Shared::of(&Fixture::tagged("withdrawn_one_of_two"));
    let latest = open(&shared);
    let old = before_partitions(&latest);
    let plan = create_plan(&old, "fresh", "i", "BTREE", json!({})).unwrap();
    assert_eq!(plan.runs[0].fragments, [0, 1, 2, 3]);
    let (report, after) = block_on(commit_segments(&old, &plan, &build(&old, &plan))).unwrap();
    let stored = after.manifest().indices.iter().find(|e| e.name == "fresh").unwrap();
    assert_eq!(stored.fragment_bitmap, Some([2, 3].into()), "as Lance left its own segment");
    assert_eq!((report.established.as_slice(), covered(&after, "fresh")), ([12, 13].as_slice(), [12, 13].into()));
    assert_eq!(report.left_out.iter().map(|l| l.fragment).collect::<Vec<_>>(), [0, 1]);
    assert!(report.left_out[0].why.contains("rewritten in place"), "{report:?}");
    // What is left out is what the next refresh builds, and then all is covered.
    let (plan, report, after) = refresh(&after, "fresh", json!({})).unwrap();
    assert_eq!((report.established.as_slice(), plan.sets.unindexed.as_slice()), ([10, 11].as_slice(), [10, 11].as_slice()));
    assert_eq!(covered(&after, "fresh"), after.manifest().manifest.live());
    nothing_twice(&after, "fresh");
    // On a column that was not rewritten everything lands.
    let plan = create_plan(&old, "elsewhere", "v", "BITMAP", json!({})).unwrap();
    let (report, _) = block_on(commit_segments(&old, &plan, &build(&old, &plan))).unwrap();
    assert_eq!((report.established, report.left_out.len()), (vec![10, 11, 12, 13], 0));

    // All of it withdrawn: the definition stays as the record of what to build (FRI-S-21), as Lance leaves it.
    let shared = Shared::of(&Fixture::tagged("withdrawn_to_empty"));
    let latest = open(&shared);
    let old = before_partitions(&latest);
    let plan = create_plan(&old, "fresh", "i", "BTREE", json!({"segments": 2})).unwrap();
    let (report, after) = block_on(commit_segments(&old, &plan, &build(&old, &plan))).unwrap();
    assert_eq!((report.segments_added, report.fragments_indexed), (1, 0), "{report:?}");
    let entry = after.manifest().indices.iter().find(|e| e.name == "fresh").unwrap();
    assert_eq!(entry.fragment_bitmap, Some(RoaringBitmap::new()));
    let (_, report, _) = refresh(&after, "fresh", json!({})).unwrap();
    assert_eq!(report.established, [10, 11]);
    // Built after the partition and before the rewrite: only what was rewritten is left out (FRI-S-20, X-29, W-23).
    let mut tagged = (1..=latest.version()).filter_map(|v| block_on(latest.at(At::Version(v))).ok());
    let whole = |t: &Table| t.has_tagged_history() && covered(t, "i_idx") == [10, 11].into();
    let between = tagged.rfind(whole).expect("a version between the partition and the rewrite");
    let plan = create_plan(&between, "between", "i", "BTREE", json!({})).unwrap();
    let (report, after) = block_on(commit_segments(&between, &plan, &build(&between, &plan))).unwrap();
    assert_eq!((report.established.as_slice(), covered(&after, "between")), ([11].as_slice(), [11].into()), "{report:?}");
    assert_eq!(report.left_out.iter().map(|l| l.fragment).collect::<Vec<_>>(), [10]);
    // A refresh of the same commits nothing, and what was there stays.
    let plan = refresh_plan(&old, "v_idx", json!({}));
    assert!(plan.is_ok_and(|plan| plan.is_empty()));
}

#[test]
fn an_index_is_created_and_dropped_under_every_history() {
    let (mut created, mut refused) = (0, 0);
    for fixture in common::tagged().into_iter().filter(|f| f.name != ELSEWHERE) {
        let (name, shared) = (fixture.name.as_str(), Shared::of(&fixture));
        let before = open(&shared);
        let create = || create_plan(&before, "made", "i", "BTREE", json!({"segments": 2}));
        if UNKNOWN.contains(&name) {
            for error in [create().unwrap_err(), block_on(plan_drop_index(&before, "v_idx")).unwrap_err()] {
                assert_eq!(error.code(), ErrorCode::HistoryUnsupported, "{name}: {error}");
            }
            refused += 1;
            continue;
        }
        let Ok(plan) = create() else { continue };
        let (report, after) = block_on(commit_segments(&before, &plan, &build(&before, &plan))).unwrap();
        let live = before.manifest().manifest.live();
        assert_eq!((covered(&after, "made"), report.left_out.len()), (live, 0), "{name}");
        nothing_twice(&after, "made");
        others_stay(&before, &after, "made");
        let (_, dropped) =
            block_on(commit_drop(&after, &block_on(plan_drop_index(&after, "made")).unwrap(), &tell_nobody)).unwrap();
        others_stay(&before, &dropped, "made");
        assert_eq!(dropped.manifest().indices.len(), before.manifest().indices.len(), "{name}");
        created += 1;
    }
    assert!(created > 25 && refused == 4, "{created} created, {refused} refused");
}

#[test]
fn what_is_not_done_under_a_history_is_refused_by_name() {
    for fixture in common::tagged() {
        let table = super::open(&fixture);
        if !table.has_tagged_history() || fixture.name == ELSEWHERE {
            continue;
        }
        for index in names(&table) {
            let error = block_on(plan_merge(&table, &index, MergeOptions::default())).unwrap_err();
            assert_eq!(error.code(), ErrorCode::HistoryUnsupported, "{} {index}: {error}", fixture.name);
        }
    }
    // A plan to merge of before the table had a history is refused when it is committed.
    let shared = Shared::of(&Fixture::tagged("partition_1hop"));
    let latest = open(&shared);
    let mut old = (1..latest.version()).filter_map(|v| block_on(latest.at(At::Version(v))).ok());
    let two = |t: &Table| t.manifest().indices.iter().filter(|e| e.name == "v_idx").count() == 2 && !t.has_tagged_history();
    let old = old.rfind(two).expect("a version with two segments and no history");
    let plan = block_on(plan_merge(&old, "v_idx", MergeOptions::default())).unwrap();
    let error = block_on(commit_segments(&old, &plan, &build(&old, &plan))).unwrap_err();
    assert_eq!(error.code(), ErrorCode::HistoryUnsupported, "{error}");
}

/// Others change the table between plan and commit: every attempt derives coverage from the version it would replace.
#[test]
fn a_commit_decides_by_what_is_covered_then() {
    // Another segment names the fragments by now: there is nothing left to do.
    let shared = Shared::of(&Fixture::tagged("withdrawn_to_empty"));
    let (mine, theirs) = (open(&shared), open(&shared));
    let plan = refresh_plan(&mine, "i_idx", json!({})).unwrap();
    let built = build(&mine, &plan);
    let (_, _, after) = refresh(&theirs, "i_idx", json!({"segments": 2})).unwrap();
    let (report, now) = block_on(commit_segments(&mine, &plan, &built)).unwrap();
    assert_eq!((report.transaction, now.version()), (None, after.version()), "{report:?}");

    // A translating segment gets a sibling that names what it was built from: the new one goes beside both, and none is lost.
    let shared = Shared::of(&Fixture::tagged("partition_1hop"));
    let mine = open(&shared);
    let plan = refresh_plan(&mine, "v_idx", json!({})).unwrap();
    let built = build(&mine, &plan);
    let narrowed = rewrite(&open(&shared), |section| {
        for entry in section.iter_mut().filter(|e| e.name == "v_idx" && e.fragment_bitmap == Some([1].into())) {
            *entry = entry.with_bitmap(Some(RoaringBitmap::new())).unwrap();
        }
    });
    assert_eq!(covered(&narrowed, "v_idx"), RoaringBitmap::new(), "half of a partition covers nothing");
    let (report, after) = block_on(commit_segments(&mine, &plan, &built)).unwrap();
    assert_eq!((report.established.as_slice(), covered(&after, "v_idx")), ([102].as_slice(), [102].into()));
    assert_eq!(report.segments_removed, 2, "what covers nothing goes: {report:?}");

    // A segment of a format nobody knows keeps what it names.
    let shared = Shared::of(&Fixture::tagged("unusable_segment"));
    let table = rewrite(&open(&shared), |section| {
        for entry in section.iter_mut().filter(|e| e.name == "i_idx" && e.index_version == Some(0)) {
            *entry = entry.with_bitmap(Some(RoaringBitmap::new())).unwrap();
        }
    });
    let plan = refresh_plan(&table, "i_idx", json!({})).unwrap();
    assert!(plan.is_empty(), "{:?}", plan.runs);
    let warning = plan.warnings.iter().find(|w| w.rule == "segment_unknown").unwrap();
    assert!(warning.evidence.contains("fragments 10, 11"), "{warning:?}");
}

/// Segments of a name that name a fragment twice make Lance open all of them at its next commit (spec fragment-reuse §8.1): a refresh
/// with something to do parts them.
#[test]
fn segments_that_share_a_fragment_are_built_anew() {
    let shared = Shared::of(&Fixture::tagged("mutually_redundant"));
    let table = rewrite(&open(&shared), |section| {
        for entry in section.iter_mut().filter(|e| e.name == "i_idx") {
            let names = entry.fragment_bitmap.clone().unwrap() & RoaringBitmap::from([10]);
            *entry = entry.with_bitmap(Some(names)).unwrap();
        }
    });
    assert_eq!(covered(&table, "i_idx"), [10].into());
    let (plan, report, after) = refresh(&table, "i_idx", json!({})).unwrap();
    assert_eq!((plan.sets.unindexed.as_slice(), plan.absorbed.len()), ([11].as_slice(), 2), "{:?}", plan.absorbed);
    assert_eq!((report.established, report.segments_removed), (vec![10, 11], 3));
    nothing_twice(&after, "i_idx");

    // What others made so since the plan is refused: their segments are not what was planned with.
    let shared = Shared::of(&Fixture::tagged("partition_1hop"));
    let mine = open(&shared);
    let plan = refresh_plan(&mine, "v_idx", json!({})).unwrap();
    let built = build(&mine, &plan);
    rewrite(&open(&shared), |section| {
        for entry in section.iter_mut().filter(|e| e.name == "v_idx") {
            *entry = entry.with_bitmap(Some([0, 1].into())).unwrap();
        }
    });
    let error = block_on(commit_segments(&mine, &plan, &built)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::IndexChanged, "{error}");

    // A segment that does not say what it is cannot be judged.
    let shared = Shared::of(&Fixture::tagged("partition_1hop"));
    let table = rewrite(&open(&shared), |section| {
        let last = section.iter_mut().rfind(|e| e.name == "v_idx").unwrap();
        *last = IndexMetadata { details: None, raw: Default::default(), ..last.clone() };
    });
    let error = refresh_plan(&table, "v_idx", json!({})).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CorruptFile, "{error}");
}

/// An in-place rewrite costs all that is covered through a partition: said while it can still be avoided.
#[test]
fn a_table_says_what_a_rewrite_in_place_would_cost() {
    let warned = |table: &Table| {
        let shown = block_on(show(table, display_name)).unwrap();
        shown.warnings.into_iter().find(|w| w.rule == "rewrite_in_place").map(|w| w.evidence)
    };
    let shared = Shared::of(&Fixture::tagged("partition_1hop"));
    let evidence = warned(&open(&shared)).unwrap();
    assert!(evidence.contains("i_idx, v_idx cover fragments 10, 11 through a stable partition"), "{evidence}");
    for index in ["i_idx", "v_idx"] {
        refresh(&open(&shared), index, json!({"absorb": "all"})).unwrap();
    }
    assert_eq!(warned(&open(&shared)), None, "what is built anew loses only what is rewritten");
    assert_eq!(warned(&super::open(&Fixture::tagged("compaction_1hop"))), None);
}

/// The states of the fixtures and what a plan makes of them, one by one (spec fragment-reuse §7.4).
#[test]
fn each_reason_has_its_fate() {
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for fixture in common::tagged().into_iter().filter(|f| f.name != ELSEWHERE && !UNKNOWN.contains(&f.name.as_str())) {
        let table = super::open(&fixture);
        let Some(history) = block_on(table.history()).unwrap() else { continue };
        for index in names(&table) {
            let plan = refresh_plan(&table, &index, json!({})).unwrap();
            if plan.is_empty() {
                continue;
            }
            for fate in &plan.segments {
                let state = history.of_segment(&table.manifest().indices, fate.uuid).unwrap().state.name();
                let list = seen.entry(format!("{state} {:?}", fate.fate)).or_default();
                list.push(format!("{} {index}", fixture.name));
            }
        }
    }
    let keys: Vec<&str> = seen.keys().map(String::as_str).collect();
    for wanted in ["contributors_missing Removed", "direct Kept", "translated Kept", "unsupported Removed", "withdrawn Removed"] {
        assert!(keys.contains(&wanted), "{wanted} is not among {seen:?}");
    }
    assert!(!keys.iter().any(|k| matches!(*k, "translated Removed" | "direct Removed" | "withdrawn Kept")), "{seen:?}");
}
