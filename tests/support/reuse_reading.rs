//! Audits, probes and plans of compactions on every tagged fixture: what queries of Lance answered, and what its own compaction did.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt16Array};
use futures::executor::block_on;
use prost::Message;
use roaring::RoaringBitmap;
use serde_json::{Value, json};
use uuid::Uuid;
use whetstone::ErrorCode;
use whetstone::compaction::{CompactionOptions, Fate, Origin};
use whetstone::file::{FileWriter, WriterField};
use whetstone::format::index_metadata::IndexMetadata;
use whetstone::format::row::RowAddress;
use whetstone::format::{proto, wire};
use whetstone::maintain::forecast::document::LayoutReport;
use whetstone::maintain::forecast::{CompactionPlan, LayoutForecast};
use whetstone::maintain::{
    AuditOptions, AuditReport, ForecastOptions, Probe, audit, explain_pair, forecast, plan_compaction, plan_trim, probe,
};
use whetstone::refresh::plan::Advice;
use whetstone::reuse::content::TRANSITION;
use whetstone::reuse::ledger::Ledger;
use whetstone::reuse::row_map::{COLUMN, COUNTS_KEY, FILE_NAME};
use whetstone::table::Table;
use whetstone::table::row_map::RowMaps;

use super::common::planted::{Parts, edit, first};
use super::common::shared::{Shared, rewrite};
use super::common::{self, Fixture};
use super::{open, set};

/// A condition that a probe can be asked about.
fn condition(filter: &str) -> Option<(&str, &str, String)> {
    let plain = |value: &str| value.trim().trim_matches('\'').to_owned();
    if let Some(column) = filter.strip_suffix(" IS NULL") {
        return Some((column, "is-null", String::new()));
    }
    for (function, op) in [("contains(", "contains"), ("array_has(", "has")] {
        if let Some(rest) = filter.strip_prefix(function) {
            let (column, value) = rest.trim_end_matches(')').split_once(',')?;
            return Some((column, op, plain(value)));
        }
    }
    match filter.split(' ').collect::<Vec<_>>()[..] {
        [column, op @ ("=" | "<" | ">"), value] => Some((column, op, plain(value))),
        _ => None,
    }
}

fn addresses(query: &Value) -> BTreeSet<u64> {
    query["row_addrs"].as_array().unwrap().iter().map(|row| row.as_u64().unwrap()).collect()
}

/// Live fragments that queries read an index for, as Lance lists its segments.
fn served(state: &Value, index: &str) -> Vec<RoaringBitmap> {
    let of = |s: &&Value| s["name"] == index && s["derived"]["listed"] == true;
    state["segments"].as_array().unwrap().iter().filter(of).map(|s| set(&s["derived"]["coverage"])).collect()
}

fn fragments(rows: &BTreeSet<u64>) -> RoaringBitmap {
    rows.iter().map(|row| RowAddress(*row).fragment()).collect()
}

fn check_probe(
    at: &str,
    found: &Probe,
    covered: &RoaringBitmap,
    live: &RoaringBitmap,
    wanted: &BTreeSet<u64>,
    rows: &BTreeSet<u64>,
) {
    let hit: RoaringBitmap = found.fragments.iter().copied().collect();
    assert_eq!(found.unindexed.iter().copied().collect::<RoaringBitmap>(), live - covered, "{at}");
    assert_eq!(&hit | found.pruned.iter().copied().collect::<RoaringBitmap>(), *covered, "{at}");
    let inside: BTreeSet<u64> = wanted.iter().copied().filter(|row| covered.contains(RowAddress(*row).fragment())).collect();
    assert!(fragments(&inside).is_subset(&hit), "{at}: {found:?} leaves out fragments of {inside:?}");
    let named: BTreeSet<u64> = found.first_rows.iter().map(|row| row.parse().unwrap()).collect();
    assert!(fragments(&named).is_subset(covered), "{at}: a row of a fragment that is gone or not covered is named: {named:?}");
    if found.rows.is_some() {
        // Deleted rows may be among them, for a reader leaves those out itself.
        let alive: BTreeSet<u64> = named.intersection(rows).copied().collect();
        assert!(inside.is_subset(&alive), "{at}: {inside:?} are not all in {alive:?}");
        assert!(!found.exact || alive == inside, "{at}: {alive:?} are named, {inside:?} match");
    }
    for zone in found.segments.iter().flat_map(|s| s.zones.iter().flatten()) {
        assert!(covered.contains(u32::try_from(zone.fragment).unwrap()), "{at}: {zone:?}");
    }
}

#[test]
fn probes_name_the_rows_that_lance_finds() {
    let (mut exact, mut inexact, mut refused, mut translated) = (0, 0, 0, 0);
    for fixture in common::tagged() {
        let (name, state) = (fixture.name.as_str(), &fixture.expected["state"]);
        if ["shallow_clone", "external_content"].contains(&name) {
            continue; // files below a path that is not here; 900 000 rows
        }
        let table = open(&fixture);
        let live = table.manifest().manifest.live();
        for query in fixture.expected["queries"].as_array().unwrap() {
            let Some((column, op, value)) = query["filter"].as_str().and_then(condition) else { continue };
            for index in fixture.expected["indexes"].as_array().unwrap().iter().filter(|index| index["column"] == column) {
                let index = index["name"].as_str().unwrap();
                let at = format!("{name} {index} {op} {value}");
                let covers = served(state, index);
                let found = match block_on(probe(&table, index, op, Some(&value).filter(|v| !v.is_empty()).map(|v| v.as_str()))) {
                    Ok(found) => found,
                    // The method answers something else.
                    Err(error) if error.code() == ErrorCode::InvalidArgument => continue,
                    Err(error) => {
                        assert!(covers.is_empty(), "{at}: {error}");
                        let known = [ErrorCode::UnsupportedFeature, ErrorCode::HistoryUnsupported];
                        assert!(known.contains(&error.code()), "{at}: {error:?}");
                        refused += 1;
                        continue;
                    }
                };
                assert!(!covers.is_empty(), "{at}: an index that queries do not read has no answer: {found:?}");
                let covered = covers.iter().fold(RoaringBitmap::new(), |all, one| all | one);
                let ours: Vec<RoaringBitmap> = found.segments.iter().map(|s| s.fragments.iter().copied().collect()).collect();
                assert_eq!(ours, covers, "{at}");
                check_probe(&at, &found, &covered, &live, &addresses(query), &addresses(&fixture.expected["all_rows"]));
                *if found.exact { &mut exact } else { &mut inexact } += 1;
                translated += usize::from(state["history"].is_object());
            }
        }
    }
    assert!(exact > 120 && inexact >= 10 && refused >= 20 && translated > 100, "{exact} {inexact} {refused} {translated}");
}

#[test]
fn full_text_searches_are_carried_along() {
    for name in ["all_types_partition", "all_types_compaction"] {
        let fixture = Fixture::tagged(name);
        let table = open(&fixture);
        // The word stands by itself in these texts, so whoever contains it has it.
        let query =
            fixture.expected["queries"].as_array().unwrap().iter().find(|q| q["filter"] == "contains(t, 'delta')").unwrap();
        let found = block_on(probe(&table, "t_inverted", "match", Some("delta"))).unwrap();
        let live = table.manifest().manifest.live();
        let covered = served(&fixture.expected["state"], "t_inverted").remove(0);
        assert!(!addresses(query).is_empty() && !covered.is_empty());
        check_probe(name, &found, &covered, &live, &addresses(query), &addresses(&fixture.expected["all_rows"]));
    }
}

fn run(table: &Table, index: &str) -> Result<AuditReport, whetstone::Error> {
    block_on(audit(table, index, AuditOptions::default(), &mut |_, _| {}))
}

#[test]
fn audits_find_nothing_in_what_lance_reads_rightly() {
    let (mut rows, mut audited, mut notes) = (0, 0, 0);
    for fixture in common::tagged() {
        let (name, state) = (fixture.name.as_str(), &fixture.expected["state"]);
        if ["shallow_clone", "external_content"].contains(&name) {
            continue; // files below a path that is not here; 900 000 rows
        }
        let table = open(&fixture);
        for index in fixture.expected["indexes"].as_array().unwrap() {
            let index = index["name"].as_str().unwrap();
            let covers = served(state, index);
            let report = match run(&table, index) {
                Ok(report) => report,
                Err(error) => {
                    assert!(covers.is_empty() && error.code() == ErrorCode::HistoryUnsupported, "{name} {index}: {error}");
                    continue;
                }
            };
            let covered = covers.iter().fold(RoaringBitmap::new(), |all, one| all | one);
            assert_eq!((report.segments, report.covered_fragments), (covers.len(), covered.len()), "{name} {index}");
            assert!(covers.is_empty() || report.rows > 0, "{name} {index}: {report:?}");
            let twice = name == "mutually_redundant" && index == "i_idx";
            let known = |code: &str| twice && code == "OVERLAP";
            assert!(report.findings.iter().all(|f| known(f.code)), "{name} {index}: {:?}", report.findings);
            assert_eq!(report.counts.contains_key("OVERLAP"), twice, "{name} {index}");
            let listed = state["segments"].as_array().unwrap().iter().filter(|s| s["name"] == index).count();
            assert!(report.notes.len() >= listed - covers.len(), "{name} {index}: {:?}", report.notes);
            (rows, audited, notes) = (rows + report.rows, audited + 1, notes + report.notes.len());
        }
    }
    assert!(rows > 1500 && audited > 70 && notes > 10, "{rows} rows, {audited} indexes, {notes} notes");
}

#[test]
fn faults_behind_a_history_are_found() {
    let file = "page_data.lance";
    type Fault = (&'static str, &'static str, fn(&mut Parts));
    let planted: [Fault; 3] = [
        ("ROW_MISSING", "partition_1hop", |parts| parts.take(&(1..parts.rows()).collect::<Vec<_>>())),
        ("ROW_MISSING", "compaction_2hop", |parts| parts.take(&(0..parts.rows() - 1).collect::<Vec<_>>())),
        ("ROW_TWICE", "partition_2hop", |parts| {
            parts.take(&(0..parts.rows()).chain([parts.rows() - 1]).collect::<Vec<_>>());
        }),
    ];
    for (code, name, change) in planted {
        let shared = Shared::of(&Fixture::tagged(name));
        assert!(run(&shared.open(1), "i_idx").unwrap().findings.is_empty(), "{name}");
        let report = run(&edit(&shared, "i_idx", file, change), "i_idx").unwrap();
        assert!(report.counts.contains_key(code), "{name}: wanted {code}, found {:?}", report.findings);
    }
    // Half of what went into the destinations is claimed for the whole of it.
    let shared = Shared::of(&Fixture::tagged("partition_1hop"));
    let table = rewrite(&shared.open(1), |section| {
        section.retain(|entry| entry.name != "v_idx" || entry.fragment_bitmap == Some([0].into()));
        let entry = first(section, "v_idx");
        *entry = entry.with_bitmap(Some([0, 1].into())).unwrap();
    });
    let report = run(&table, "v_idx").unwrap();
    assert!(report.counts.contains_key("ROW_MISSING"), "{:?}", report.findings);
}

#[test]
fn histories_that_are_not_whole_are_refused() {
    let question = |table: &Table| block_on(probe(table, "i_idx", "=", Some("7"))).map(|_| ()).unwrap_err();
    // A row map that is cut off, and one that is gone.
    let shared = Shared::of(&Fixture::tagged("partition_1hop"));
    let table = shared.open(1);
    let map = block_on(table.store().folders("_fri")).unwrap().remove(0);
    let path = format!("_fri/{map}/stable_partition.lance");
    let whole = block_on(table.store().get(&path, None)).unwrap();
    block_on(table.store().delete(&path)).unwrap();
    block_on(table.store().put(&path, vec![whole.slice(..whole.len() - 40)])).unwrap();
    assert_eq!(question(&shared.open(2)).code(), ErrorCode::CorruptFile);
    block_on(table.store().delete(&path)).unwrap();
    let gone = question(&shared.open(3));
    assert!(gone.message().contains(&map), "{gone}");
    // Two entries, of which nobody knows which is right.
    let twice = rewrite(&Shared::of(&Fixture::tagged("partition_1hop")).open(1), |section| {
        let entry = first(section, "__lance_frag_reuse").clone();
        section.push(IndexMetadata { uuid: Uuid::from_u128(9), raw: Default::default(), ..entry });
    });
    assert_eq!(question(&twice).code(), ErrorCode::CorruptFile);
    // The file with the content is gone.
    let shared = Shared::of(&Fixture::tagged("external_content"));
    let table = shared.open(1);
    let entry = table.manifest().indices.iter().find(|e| e.name == "__lance_frag_reuse").unwrap().uuid;
    block_on(table.store().delete(&format!("_indices/{entry}/details.binpb"))).unwrap();
    let error = block_on(plan_trim(&shared.open(2))).unwrap_err();
    assert!(error.message().contains("details.binpb"), "{error}");
}

fn deferred() -> CompactionOptions {
    serde_json::from_value(json!({"defer_index_remap": true})).unwrap()
}

fn asked(options: Value) -> ForecastOptions {
    serde_json::from_value(options).unwrap()
}

/// Live fragments that queries find through each index in a state, by name.
fn found(state: &Value) -> BTreeMap<String, u64> {
    let mut found: BTreeMap<String, RoaringBitmap> = BTreeMap::new();
    for segment in state["segments"].as_array().unwrap().iter().filter(|s| s["name"] != "__lance_frag_reuse") {
        *found.entry(segment["name"].as_str().unwrap().to_owned()).or_default() |= set(&segment["derived"]["coverage"]);
    }
    found.into_iter().map(|(name, covers)| (name, covers.len())).collect()
}

fn covered(report: &LayoutReport) -> BTreeMap<String, u64> {
    report.summary.indexes.iter().map(|index| (index.name.clone(), index.covered_fragments)).collect()
}

/// A forecast sees what is derived, compacts as the plan of one compaction says and as Lance did, and leaves out by name what nobody
/// does under a history.
fn forecasts_agree(name: &str, table: &Table, before: &Value, plan: &CompactionPlan, after: &Value) {
    let told = block_on(forecast(table, &asked(json!({"plans": ["compact"], "columns": true})))).unwrap();
    assert!(told.compaction.defer_index_remap && told.compaction.from["defer_index_remap"] == Origin::Default, "{name}");
    assert_eq!(covered(&told.before), found(before), "{name}");
    let [compacted] = told.plans.as_slice() else { panic!("{name}: {:?}", told.warnings) };
    assert_eq!(covered(&compacted.after), found(after), "{name}");
    let ids: Vec<Value> = compacted.after.columns.as_ref().unwrap().ids.iter().map(|id| json!(id)).collect();
    assert_eq!(json!(ids), after["live_fragments"], "{name}");
    let took = compacted.steps[0].took;
    assert_eq!(took.fragments_rewritten, plan.tasks.iter().map(|task| task.fragments.len() as u64).sum::<u64>(), "{name}");
    assert_eq!(compacted.after.summary.segments, plan.effects.len() as u64, "{name}: no segment comes or goes");
    let lost = |warnings: &[Advice]| warnings.iter().filter(|w| w.rule == "loses_coverage").cloned().collect::<Vec<_>>();
    assert_eq!(lost(&told.warnings), lost(&plan.warnings), "{name}");

    let all = block_on(forecast(table, &ForecastOptions::default())).unwrap();
    let left_out = |told: &LayoutForecast| -> Vec<String> {
        told.warnings.iter().filter(|w| w.rule == "plan_left_out").map(|w| w.evidence.clone()).collect()
    };
    assert_eq!((all.plans.len(), left_out(&all).len()), (8, 1), "{name}: {:?}", all.warnings);
    assert!(left_out(&all)[0].contains("plan merge") && left_out(&all)[0].contains("not merged"), "{name}: {:?}", left_out(&all));
    for plan in all.plans.iter().filter(|plan| plan.name.ends_with("refresh")) {
        assert!(
            plan.after.summary.indexes.iter().all(|i| i.unindexed_fragments == 0 || name == "unusable_segment"),
            "{name}: {plan:?}"
        );
    }
    let eager = block_on(forecast(table, &asked(json!({"compaction": {"defer_index_remap": false}})))).unwrap();
    assert_eq!((eager.plans.len(), left_out(&eager).len()), (0, 9), "{name}");
    assert_eq!(covered(&eager.before), found(before), "{name}");
}

/// Tasks, ids, and what every segment covers afterwards, as Lance's own deferred compaction left them.
#[test]
fn compactions_are_predicted_with_what_they_lose() {
    let (mut lost, mut kept, mut refused, mut warned) = (0, 0, 0, 0);
    for fixture in common::tagged().into_iter().filter(|f| !f.expected["maintenance"].is_null()) {
        let name = fixture.name.as_str();
        if name == "shallow_clone" {
            continue; // files below a path that is not here
        }
        let (state, maintenance) = (&fixture.expected["state"], &fixture.expected["maintenance"]);
        let table = open(&fixture);
        let eager = block_on(plan_compaction(&table, &CompactionOptions::default()));
        assert_eq!(json!(eager.is_ok()), maintenance["compact_eager"]["outcome"]["ok"], "{name}: {eager:?}");
        let theirs = &maintenance["compact_deferred"];
        let plan = match block_on(plan_compaction(&table, &deferred())) {
            Ok(plan) => plan,
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::HistoryUnsupported, "{name}");
                assert_eq!(theirs["outcome"]["ok"], json!(false), "{name}");
                refused += 1;
                continue;
            }
        };
        assert_eq!(theirs["outcome"]["ok"], json!(true), "{name}");
        let after = &theirs["after"]["state"];
        let records = |state: &Value| state["history"]["records"].as_array().cloned().unwrap_or_default();
        let ids = |list: &Value| -> Vec<u64> { list.as_array().unwrap().iter().map(|d| d["id"].as_u64().unwrap()).collect() };
        let added: Vec<(Vec<u64>, Vec<u64>)> = records(after)
            .iter()
            .skip(if state["history"].is_null() { 0 } else { records(state).len() })
            .map(|record| (ids(&record["sources"]), ids(&record["destinations"])))
            .collect();
        let tasks: Vec<(Vec<u64>, Vec<u64>)> = plan
            .tasks
            .iter()
            .map(|task| {
                let outputs = task.outputs.iter().map(|output| u64::from(output.fragment));
                (task.fragments.iter().map(|id| u64::from(*id)).collect(), outputs.collect())
            })
            .collect();
        assert_eq!(tasks, added, "{name}");
        assert_eq!(plan.writes_history, !added.is_empty(), "{name}");
        assert_eq!(plan.fragments_after, after["live_fragments"].as_array().unwrap().len() as u64, "{name}");
        let segments: Vec<&Value> =
            after["segments"].as_array().unwrap().iter().filter(|s| s["name"] != "__lance_frag_reuse").collect();
        assert_eq!(plan.effects.len(), segments.len(), "{name}");
        for (ours, theirs) in plan.effects.iter().zip(segments) {
            assert_eq!(ours.uuid.as_deref(), theirs["uuid"].as_str(), "{name}");
            let covers: RoaringBitmap = ours.fragment_ids_after.iter().copied().collect();
            let live = set(&after["live_fragments"]);
            assert_eq!(&covers & &live, set(&theirs["derived"]["coverage"]), "{name} {ours:?}");
            match ours.fate {
                Fate::Stripped => lost += 1,
                Fate::Deferred => kept += 1,
                _ => {}
            }
        }
        let warns = plan.warnings.iter().any(|w| w.rule == "loses_coverage");
        assert_eq!(warns, plan.effects.iter().any(|e| e.fate == Fate::Stripped), "{name}: {:?}", plan.warnings);
        warned += usize::from(warns);
        if !state["history"].is_null() {
            forecasts_agree(name, &table, state, &plan, after);
        }
    }
    assert!(lost > 10 && kept > 20 && refused >= 4 && warned > 3, "{lost} {kept} {refused} {warned}");
    // Why two fragments are joined is told by what is stored too.
    let table = open(&Fixture::tagged("partition_1hop"));
    let pair = block_on(explain_pair(&table, 10, 11, &deferred())).unwrap();
    assert!(pair.joined, "{pair:?}");
}

/// One row asks for the footer, the counts and one block of labels, however long the row map is; all of them for each block once.
#[test]
fn row_maps_are_read_block_by_block() {
    const ROWS: u32 = 1 << 20;
    const BLOCK: u32 = 1 << 13;
    let label = |row: u32| (row.wrapping_mul(2_654_435_761) >> 16 & 1) as u16;
    let labels: Vec<u16> = (0..ROWS).map(label).collect();
    let mut totals = [0u32; 2];
    let mut places = Vec::with_capacity(labels.len());
    let mut counts = b"LSPC".to_vec();
    [1, 0, 2, BLOCK, ROWS, 0].into_iter().for_each(|word: u32| counts.extend(word.to_le_bytes()));
    for block in labels.chunks(BLOCK as usize) {
        for label in block {
            places.push(RowAddress::new(1 + u32::from(*label), totals[usize::from(*label)]));
            totals[usize::from(*label)] += 1;
        }
        totals.iter().for_each(|total| counts.extend(total.to_le_bytes()));
    }
    let mut file = FileWriter::new(vec![WriterField::new(COLUMN, "uint16", true)]);
    file.write_page(0, &(Arc::new(UInt16Array::from(labels)) as ArrayRef)).unwrap();
    let index = file.global_buffer(counts.into());
    file.metadata(COUNTS_KEY, &index.to_string());
    let bytes = file.finish().unwrap().to_bytes();

    let map_id = Uuid::from_u128(7).to_string();
    let digest =
        |id: u64, rows: u32| proto::FragmentDigest { id, physical_rows: u64::from(rows), num_deleted_rows: 0 }.encode_to_vec();
    let mut transition = Vec::new();
    wire::put_len_field(&mut transition, 1, &digest(0, ROWS));
    wire::put_len_field(&mut transition, 2, &digest(1, totals[0]));
    wire::put_len_field(&mut transition, 2, &digest(2, totals[1]));
    let partition = proto::StablePartition { map_id: map_id.clone(), map_size_bytes: bytes.len() as u64, base_id: None };
    wire::put_len_field(&mut transition, 4, &partition.encode_to_vec());
    let mut content = Vec::new();
    wire::put_len_field(&mut content, TRANSITION, &transition);
    let ledger = Ledger::decode("the history", &content.into()).unwrap();

    let shared = Shared::of(&Fixture::tagged("no_index"));
    let table = shared.open(1);
    let manifest = &table.manifest().manifest;
    let size = bytes.len() as u64;
    block_on(shared.store(1).put(&format!("_fri/{map_id}/{FILE_NAME}"), vec![bytes])).unwrap();
    let (live, nothing) = ([1, 2].into(), RoaringBitmap::new());
    let store = shared.store(2);
    let row = ROWS / 2 + 5;
    let found = block_on(RowMaps::new(&store, manifest, &ledger).translate(&live, &nothing, &[RowAddress::new(0, row)])).unwrap();
    assert_eq!(found, [Some(places[row as usize])]);
    let asked = store.requests();
    assert!(asked.bytes > 0 && asked.bytes * 8 < size, "{asked:?} of {size} bytes");

    let store = shared.store(3);
    let all: Vec<RowAddress> = (0..ROWS).map(|row| RowAddress::new(0, row)).collect();
    let found = block_on(RowMaps::new(&store, manifest, &ledger).translate(&live, &nothing, &all)).unwrap();
    assert!(found.iter().zip(&places).all(|(found, place)| *found == Some(*place)));
    let asked = store.requests();
    assert!(asked.bytes < size * 5 / 4, "{asked:?} of {size} bytes");
}
