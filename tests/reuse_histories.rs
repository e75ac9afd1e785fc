//! Tagged fragment reuse histories: every fixture table decoded, its coverage derived and its rows carried along as Lance does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "support/reuse_commits.rs"]
mod commits;
mod common;
#[path = "support/reuse_maintenance.rs"]
mod maintenance;
#[path = "support/reuse_races.rs"]
mod races;
#[path = "support/reuse_reading.rs"]
mod reading;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use common::Fixture;
use futures::executor::block_on;
use roaring::RoaringBitmap;
use serde_json::{Value, json};
use whetstone::ErrorCode;
use whetstone::env::TestEnv;
use whetstone::format::row::RowAddress;
use whetstone::index::display_name;
use whetstone::reuse::coverage::{may_translate, plans};
use whetstone::reuse::ledger::Ledger;
use whetstone::reuse::transition::{Digest, Mapping, Transition};
use whetstone::store::{HostStore, LocalIo, Store, StoreKind};
use whetstone::table::history::TaggedHistory;
use whetstone::table::row_map::RowMaps;
use whetstone::table::show::show;
use whetstone::table::{At, Table};

fn store(root: &Path) -> Store {
    let object = Arc::new(HostStore::new(Arc::new(LocalIo::new(root))));
    Store::new(object, Default::default(), StoreKind::Host, Arc::new(TestEnv::new(1_700_000_000_000, 1)))
}

fn open(fixture: &Fixture) -> Table {
    block_on(Table::open(store(&fixture.path), At::Latest, None)).unwrap_or_else(|e| panic!("{}: {e}", fixture.name))
}

fn history(table: &Table) -> Option<Arc<TaggedHistory>> {
    block_on(table.history()).unwrap()
}

fn set(value: &Value) -> RoaringBitmap {
    value.as_array().into_iter().flatten().map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn digests(list: &[Digest]) -> Value {
    list.iter().map(|d| json!({"id": d.id, "num_deleted_rows": d.deleted_rows, "physical_rows": d.physical_rows})).collect()
}

/// Row addresses as runs `[fragment, first, last]`.
fn runs(transition: &Transition) -> Value {
    let mut runs: Vec<[u64; 3]> = Vec::new();
    for source in &transition.sources {
        for offset in 0..source.physical_rows {
            if transition.map(RowAddress::new(source.id, offset)).unwrap().is_none() {
                continue;
            }
            let (id, offset) = (u64::from(source.id), u64::from(offset));
            match runs.last_mut().filter(|run| run[0] == id && run[2] + 1 == offset) {
                Some(run) => run[2] = offset,
                None => runs.push([id, offset, offset]),
            }
        }
    }
    runs.sort_unstable();
    json!(runs)
}

/// One stored record the way the fixtures describe it; records of unknown content only by field and bytes.
fn described(ledger: &Ledger, at: usize, expected: &Value) -> Value {
    let record = &ledger.records[at];
    let mut out = json!({"field": record.field, "kind": expected["kind"], "raw_len": record.raw.len()});
    if !expected["raw_hex"].is_null() {
        out["raw_hex"] = json!(hex(&record.raw));
    }
    let of: Vec<&Transition> = ledger.transitions.iter().filter(|t| t.record == at).collect();
    match of.as_slice() {
        [] => {
            for key in ["sources", "destinations", "map_id", "map_size_bytes", "base_id", "changed_row_addrs"] {
                if !expected[key].is_null() || key == "base_id" && expected.get(key).is_some() {
                    out[key] = expected[key].clone();
                }
            }
            assert!(!ledger.supported, "a record without a transition under a supported history");
        }
        [first, ..] if first.legacy_stamp.is_some() => {
            out["kind"] = json!("legacy_version");
            out["dataset_version"] = json!(first.legacy_stamp);
            out["groups"] = of
                .iter()
                .map(|t| json!({"changed_row_addrs": runs(t), "old_fragments": digests(&t.sources), "new_fragments": digests(&t.destinations)}))
                .collect();
        }
        [one] => {
            out["kind"] = json!(one.kind());
            out["sources"] = digests(&one.sources);
            out["destinations"] = digests(&one.destinations);
            match &one.mapping {
                Mapping::OrderedCompaction(_) => out["changed_row_addrs"] = runs(one),
                Mapping::StablePartition(map) => {
                    out["map_id"] = json!(map.map_id.to_string());
                    out["map_size_bytes"] = json!(map.size);
                    out["base_id"] = json!(map.base_id);
                }
            }
        }
        more => panic!("{} transitions of one tagged record", more.len()),
    }
    out
}

#[test]
fn every_history_decodes_as_lance_reads_it() {
    let (mut records, mut external) = (0, 0);
    for fixture in common::tagged() {
        let name = fixture.name.as_str();
        let expected = &fixture.expected["state"]["history"];
        let table = open(&fixture);
        let Some(history) = history(&table) else {
            assert!(expected.is_null(), "{name}: its history was not found");
            continue;
        };
        assert_eq!(json!(history.index_version), expected["index_version"], "{name}");
        assert_eq!(history.uuid.to_string(), expected["uuid"].as_str().unwrap(), "{name}");
        assert_eq!(history.lineage, set(&expected["fragment_bitmap"]), "{name}");
        external += usize::from(history.object.ends_with("details.binpb"));
        assert_eq!(history.object.ends_with("details.binpb"), expected["stored_as"]["content"] == "external", "{name}");
        if history.index_version != 1 {
            assert!(!history.ledger.supported && history.ledger.transitions.is_empty(), "{name}");
            continue;
        }
        let theirs = expected["records"].as_array().unwrap();
        assert_eq!(history.ledger.records.len(), theirs.len(), "{name}");
        for (at, theirs) in theirs.iter().enumerate() {
            let mut ours = described(&history.ledger, at, theirs);
            // The long bitmap is described by its number of runs only.
            if !theirs["changed_row_addrs"].is_array() && !theirs["changed_row_addrs"].is_null() {
                ours["changed_row_addrs"] = theirs["changed_row_addrs"].clone();
            }
            let (ours, theirs) = (ours.as_object().unwrap(), theirs.as_object().unwrap());
            for (key, value) in ours {
                assert_eq!(Some(value), theirs.get(key), "{name} record {at}: {key}");
            }
            records += 1;
        }
        let known = theirs.iter().all(|r| !r["kind"].as_str().unwrap().starts_with("unknown")) && name != "record_extra_field";
        assert_eq!(history.ledger.supported, known, "{name}");
    }
    assert!(records > 40 && external == 1, "{records} records, {external} in files");
}

#[test]
fn every_segment_covers_what_lance_derives() {
    let mut states: BTreeMap<&str, u32> = BTreeMap::new();
    for fixture in common::tagged() {
        let name = fixture.name.as_str();
        let state = &fixture.expected["state"];
        let table = open(&fixture);
        let Some(history) = history(&table) else { continue };
        let file = table.manifest();
        let covering = block_on(table.indices()).unwrap();
        for (at, (entry, theirs)) in file.indices.iter().zip(state["segments"].as_array().unwrap()).enumerate() {
            let Some(derived) = history.of(at) else { continue };
            *states.entry(derived.state.name()).or_default() += 1;
            // Lance refuses to list under a newer version; there as here nothing is derived.
            let listed = theirs["derived"]["listed"].as_bool().unwrap_or(false);
            assert_eq!(derived.listed, listed, "{name} {} {}", entry.name, entry.uuid);
            assert_eq!(derived.coverage, set(&theirs["derived"]["coverage"]), "{name} {} {}", entry.name, entry.uuid);
            let known = entry.fragment_bitmap.is_some().then_some(&derived.coverage);
            assert_eq!(covering[at].fragment_bitmap.as_ref(), known, "{name}");
            assert_eq!(covering[at].encode(), entry.encode(), "{name}: what is stored stays");
        }
        // The algorithm itself, before anybody asks for types.
        let live = file.manifest.live();
        for (index, theirs) in state["reader_plan"]["segments"].as_object().into_iter().flatten() {
            let stored: Vec<RoaringBitmap> =
                file.indices.iter().filter(|e| e.name == *index).map(|e| e.fragment_bitmap.clone().unwrap_or_default()).collect();
            let absent = file.indices.iter().filter(|e| e.name == *index).map(|e| e.fragment_bitmap.is_none());
            let mut known = history.ledger.clone();
            let plans = plans(&known, &live, &stored.iter().collect::<Vec<_>>());
            for (((plan, theirs), stored), absent) in plans.iter().zip(theirs.as_array().unwrap()).zip(&stored).zip(absent) {
                let at = format!("{name} {index} {}", theirs["uuid"]);
                assert_eq!(plan.coverage, set(&theirs["coverage"]), "{at}");
                assert_eq!(plan.excluded, set(&theirs["excluded"]), "{at}");
                assert_eq!(json!(plan.path), theirs["path"], "{at}");
                let may = may_translate(&known, &live, (!absent).then_some(stored));
                assert_eq!(json!(may), theirs["may_need_translation"], "{at}");
            }
            known.supported = false;
            assert!(may_translate(&known, &live, stored.first()));
        }
    }
    for state in ["direct", "translated", "withdrawn", "superseded", "contributors_missing", "unsupported"] {
        assert!(states.contains_key(state), "no fixture shows {state}: {states:?}");
    }
}

#[test]
fn every_row_goes_where_lance_carries_it() {
    let (mut rows, mut tables) = (0, 0);
    for fixture in common::tagged() {
        let theirs = fixture.expected["state"]["reader_plan"]["translations"].as_array().cloned().unwrap_or_default();
        let table = open(&fixture);
        let Some(history) = history(&table).filter(|_| !theirs.is_empty()) else { continue };
        let file = table.manifest();
        let from: Vec<RowAddress> = theirs.iter().map(|pair| RowAddress(pair[0].as_u64().unwrap())).collect();
        let maps = RowMaps::new(table.store(), &file.manifest, &history.ledger);
        let to = match block_on(maps.translate(&file.manifest.live(), &RoaringBitmap::new(), &from)) {
            Ok(to) => to,
            // Its row map is below an absolute path that is not here.
            Err(error) if fixture.name == "shallow_clone" => {
                assert_ne!(error.code(), ErrorCode::Internal, "{error}");
                continue;
            }
            Err(error) => panic!("{}: {error}", fixture.name),
        };
        for (pair, to) in theirs.iter().zip(&to) {
            assert_eq!(to.map(|a| a.0), pair[1].as_u64(), "{}: row {}", fixture.name, pair[0]);
        }
        rows += to.len();
        tables += 1;
    }
    assert!(rows > 500 && tables > 25, "{rows} rows of {tables} tables");
}

#[test]
fn tagged_tables_are_shown_with_what_lance_serves() {
    for fixture in common::tagged() {
        let (name, state) = (fixture.name.as_str(), &fixture.expected["state"]);
        let table = open(&fixture);
        let shown = serde_json::to_value(block_on(show(&table, display_name)).unwrap()).unwrap();
        let live = table.manifest().manifest.live();
        let mut of_index: BTreeMap<&str, RoaringBitmap> = BTreeMap::new();
        for theirs in state["segments"].as_array().unwrap() {
            *of_index.entry(theirs["name"].as_str().unwrap()).or_default() |= set(&theirs["derived"]["coverage"]);
        }
        let read = state["history"].is_null() || history(&table).is_some_and(|h| h.ledger.supported);
        let warned = shown["warnings"].as_array().unwrap().iter().any(|w| w["rule"] == "history_unsupported");
        assert_eq!(warned, !read, "{name}");
        for index in shown["indices"].as_array().unwrap() {
            let covered = &of_index[index["name"].as_str().unwrap()] & &live;
            assert_eq!(set(&index["covered_live_fragments"]), covered, "{name} {}", index["name"]);
            assert_eq!(set(&index["unindexed_fragments"]), &live - &covered, "{name} {}", index["name"]);
            let recorded = index["segments"].as_array().unwrap().iter().all(|s| !s["fragment_ids"].is_null());
            assert_eq!(index["coverage_known"], json!(read && recorded), "{name} {}", index["name"]);
            for segment in index["segments"].as_array().unwrap() {
                let plain = matches!(segment["status"].as_str().unwrap(), "direct" | "ok");
                assert_eq!(segment["status_reason"].is_null(), plain || segment["status"] == "direct", "{name} {segment}");
            }
        }
    }
}
