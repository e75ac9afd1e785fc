//! Batching, commit rules and compaction groups against the recorded cases: pylance's answers and a brute-force search.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use serde_json::Value;
use uuid::Uuid;
use whetstone::coverage::batching::batch;
use whetstone::coverage::fate::{ExistingSegment, Fate, NewSegment, Proposal, decide, uuid_in_use};
use whetstone::coverage::groups::{DEFAULT_TARGET_ROWS, GroupFragment, groups};
use whetstone::coverage::prune::prune_as_core;

fn cases(name: &str, count: usize) -> Vec<Value> {
    let all = common::read_json(&common::root().join("cases").join(name));
    let all = all.as_array().unwrap().clone();
    assert_eq!(all.len(), count, "{name}");
    all
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn id(value: &Value) -> u32 {
    u32::try_from(number(value)).unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(id).collect()
}

fn set(value: &Value) -> RoaringBitmap {
    ids(value).into_iter().collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn batching_finds_the_optimum_and_the_canonical_runs() {
    for case in cases("batching.json", 280) {
        let name = &case["name"];
        let fragments: Vec<(u32, u64)> =
            case["fragments"].as_array().unwrap().iter().map(|f| (id(&f[0]), f[1].as_str().unwrap().parse().unwrap())).collect();
        let runs = batch(&fragments, number(&case["num_segments"]) as usize).unwrap();
        let expected: Vec<Vec<u32>> = case["runs"].as_array().unwrap().iter().map(ids).collect();
        assert_eq!(runs.iter().map(|r| r.fragments.clone()).collect::<Vec<_>>(), expected, "{name}");
        let heaviest = runs.iter().map(|r| r.rows).max().unwrap_or(0);
        assert_eq!(heaviest.to_string(), case["heaviest"], "{name}");
    }
}

/// Case uuids are words; the rules only compare them.
fn uuid(word: &str) -> Uuid {
    let mut bytes = [0; 16];
    bytes[..word.len()].copy_from_slice(word.as_bytes());
    Uuid::from_bytes(bytes)
}

fn keys(version: &Value) -> BTreeMap<u32, String> {
    version["fragments"].as_object().unwrap().iter().map(|(f, key)| (f.parse().unwrap(), text(key))).collect()
}

#[test]
fn commits_end_as_lance_ends_them() {
    let (mut refused, mut displaced) = (0, 0);
    for case in cases("segment-commit.json", 220) {
        let (name, input, expected) = (&case["name"], &case["input"], &case["expected"]);
        let version = number(&input["version"]);
        let at = |v: u64| keys(&input["versions"][v.to_string()]);
        let index = text(&input["name"]);
        let all: Vec<(String, ExistingSegment)> = input["existing"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| {
                let segment = ExistingSegment {
                    uuid: uuid(e["uuid"].as_str().unwrap()),
                    fields: vec![number(&e["field"]) as i32],
                    covering_fields: vec![],
                    type_url: Some(text(&e["type"])),
                    coverage: (!e["fragments"].is_null()).then(|| set(&e["fragments"])),
                };
                (text(&e["name"]), segment)
            })
            .collect();
        let existing: Vec<ExistingSegment> = all.iter().filter(|(n, _)| *n == index).map(|(_, e)| e.clone()).collect();
        let new: Vec<NewSegment> = input["new"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| {
                let dataset_version = number(&n["dataset_version"]);
                let declared = set(&n["fragments"]);
                let claimed = if dataset_version < version {
                    prune_as_core(&declared, Some(&at(dataset_version)), &at(version))
                } else {
                    declared.clone()
                };
                NewSegment {
                    uuid: uuid(n["uuid"].as_str().unwrap()),
                    fields: vec![number(&n["field"]) as i32],
                    covering_fields: vec![],
                    type_url: text(&n["type"]),
                    declared,
                    claimed,
                    dataset_version,
                }
            })
            .collect();
        let live = set(&input["live"]);
        let field = number(&input["field"]) as i32;
        let outcome = decide(&Proposal { name: &index, live: &live, version, field, existing: &existing, new: &new });
        let fates = match outcome {
            Ok(fates) => fates,
            Err(refusal) => {
                refused += 1;
                assert_eq!(refusal.rule.as_str(), expected["error"], "{name}: {}", refusal.message);
                let blamed = expected["existing"].as_object().unwrap().iter().find(|(_, fate)| **fate == "REJECTED");
                if let Some((word, _)) = blamed {
                    assert_eq!(refusal.segment, Some(uuid(word)), "{name}");
                }
                continue;
            }
        };
        assert_eq!(expected["ok"], true, "{name}: accepted, Lance says {}", expected["error"]);
        let removed: Vec<Uuid> = fates.iter().filter(|f| f.fate == Fate::Removed).map(|f| f.uuid).collect();
        let recorded: Vec<Uuid> =
            expected["transaction"]["removed"].as_array().unwrap().iter().map(|w| uuid(w.as_str().unwrap())).collect();
        assert_eq!(removed, recorded, "{name}");
        let incoming: Vec<Uuid> = new.iter().map(|n| n.uuid).collect();
        for (word, fate) in expected["existing"].as_object().unwrap() {
            let ours = fates.iter().find(|f| f.uuid == uuid(word)).unwrap();
            let wanted = if fate == "REMOVED" { Fate::Removed } else { Fate::Kept };
            assert_eq!(ours.fate, wanted, "{name}: {word} is {fate}, ours because {}", ours.why);
            // Core lets a re-used uuid displace the old entry; our own commit refuses it.
            if fate == "REPLACED_SAME_UUID" {
                displaced += 1;
                assert_eq!(uuid_in_use(incoming.iter().copied(), existing.iter().map(|e| e.uuid)), Some(uuid(word)), "{name}");
            }
        }
        let mut section: Vec<(Uuid, Option<RoaringBitmap>)> = all
            .iter()
            .map(|(_, e)| e)
            .filter(|e| !removed.contains(&e.uuid) && !incoming.contains(&e.uuid))
            .map(|e| (e.uuid, e.coverage.clone()))
            .chain(new.iter().map(|n| (n.uuid, Some(n.claimed.clone()))))
            .collect();
        let mut wanted: Vec<(Uuid, Option<RoaringBitmap>)> = expected["section"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| (uuid(e["uuid"].as_str().unwrap()), (!e["fragments"].is_null()).then(|| set(&e["fragments"]))))
            .collect();
        section.sort_by_key(|(uuid, _)| *uuid);
        wanted.sort_by_key(|(uuid, _)| *uuid);
        assert_eq!(section, wanted, "{name}");
    }
    assert_eq!((refused, displaced), (135, 7));
}

#[test]
fn compaction_groups_are_those_lance_plans() {
    let mut compared = 0;
    for case in cases("compaction-plans.json", 414) {
        let options = case["options"].as_object().unwrap();
        // The count beside a refresh plan knows the target only; the planner proper is another matter.
        if options.keys().any(|key| key != "target_rows_per_fragment") {
            continue;
        }
        let segments = case["table"]["segments"].as_array().unwrap();
        if segments.iter().any(|s| s["readable"] == false) {
            continue;
        }
        let target = options.get("target_rows_per_fragment").map_or(DEFAULT_TARGET_ROWS, number);
        let fragments: Vec<GroupFragment> = case["table"]["fragments"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| GroupFragment {
                id: id(&f["id"]),
                physical_rows: number(&f["physical_rows"]),
                deleted_rows: number(&f["deleted_rows"]),
            })
            .collect();
        let bitmaps: Vec<RoaringBitmap> = segments.iter().map(|s| set(&s["fragments"])).collect();
        let expected: Vec<Vec<u32>> = case["tasks"].as_array().unwrap().iter().map(ids).collect();
        assert_eq!(groups(&fragments, &bitmaps, target), expected, "{}", case["name"]);
        compared += 1;
    }
    assert!(compared >= 20, "only {compared} plans with default options");
}
