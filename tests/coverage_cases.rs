//! Batching, commit rules, compaction plans and their effects against the recorded cases: pylance's answers and a brute-force search.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use serde_json::Value;
use uuid::Uuid;
use whetstone::compaction::{self, CompactionOptions, Cover, Index, Kind, Layout, Piece, Resolved};
use whetstone::coverage::batching::batch;
use whetstone::coverage::fate::{ExistingSegment, Fate, NewSegment, Proposal, decide, uuid_in_use};
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

fn layout(case: &Value) -> Layout {
    let table = &case["table"];
    let pieces = table["fragments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| Piece {
            id: id(&f["id"]),
            physical_rows: number(&f["physical_rows"]),
            deleted_rows: number(&f["deleted_rows"]),
            bytes: f["bytes"].as_u64(),
            lineage_only: false,
        })
        .collect();
    let stable_row_ids = table["stable_row_ids"].as_bool().unwrap_or(false);
    let mut layout = Layout { pieces, stable_row_ids, ..Layout::default() };
    layout.max_fragment_id = table["max_fragment_id"].as_u64().map(|id| u32::try_from(id).unwrap());
    for segment in table["segments"].as_array().unwrap() {
        let name = text(&segment["index"]);
        let index = layout.indexes.iter().position(|index| index.name == name).unwrap_or_else(|| {
            layout.indexes.push(Index { name, method: None });
            layout.indexes.len() - 1
        });
        let kind = match segment["type"].as_str() {
            // BTREE segments on tables with stable row ids name addresses.
            Some(kind) => Kind::of(Some(kind), i32::from(kind == "BTREE" && stable_row_ids)),
            None if segment["readable"] == true => Kind::of(Some("BTREE"), 0),
            None => Kind::Opaque,
        };
        let uuid = Some(Uuid::from_u128(layout.covers.len() as u128));
        layout.covers.push(Cover {
            index,
            uuid,
            kind,
            bitmap: set(&segment["fragments"]),
            known: true,
            carried: RoaringBitmap::new(),
        });
    }
    layout
}

fn options(case: &Value, stable_row_ids: bool) -> Resolved {
    let given: CompactionOptions = serde_json::from_value(case["options"].clone()).unwrap();
    Resolved::new(&given, &BTreeMap::new(), stable_row_ids).unwrap()
}

fn tasks(layout: &Layout, plan: &compaction::Plan) -> Vec<Vec<u32>> {
    plan.tasks.iter().map(|task| layout.pieces[task.clone()].iter().map(|p| p.id).collect()).collect()
}

fn expected_tasks(case: &Value) -> Vec<Vec<u32>> {
    case["tasks"].as_array().unwrap().iter().map(ids).collect()
}

#[test]
fn compactions_are_planned_as_lance_plans_them() {
    for case in cases("compaction-plans.json", 414) {
        let layout = layout(&case);
        let options = options(&case, layout.stable_row_ids);
        let plan = compaction::plan(&layout, &options).unwrap();
        assert_eq!(tasks(&layout, &plan), expected_tasks(&case), "{}", case["name"]);
        every_pair_is_explained(&layout, &plan, &options, &case["name"]);
    }
}

/// Each neighbour is joined exactly when it shares a task, by a rule that holds of it.
fn every_pair_is_explained(layout: &Layout, plan: &compaction::Plan, options: &Resolved, name: &Value) {
    for (at, two) in layout.pieces.windows(2).enumerate() {
        let pair = compaction::explain(layout, plan, options, two[1].id, two[0].id).unwrap();
        let together = plan.task_of(at).is_some() && plan.task_of(at) == plan.task_of(at + 1);
        assert_eq!((pair.joined, pair.rule == "same_task"), (together, together), "{name}: {pair:?}");
        let differ = !pair.only_a.is_empty() || !pair.only_b.is_empty();
        match pair.rule.as_str() {
            "same_task" | "size_cut" => assert!(!differ, "{name}: {pair:?}"),
            "segments" => assert!(differ, "{name}: {pair:?}"),
            "excluded" => assert!(two.iter().any(|p| options.excluded_fragment_ids.contains(&p.id)), "{name}: {pair:?}"),
            "large" => assert!(two.iter().any(|p| p.physical_rows >= options.target_rows_per_fragment), "{name}: {pair:?}"),
            "held_back" => {
                let held = |p: &Piece| layout.covers.iter().any(|c| c.kind == Kind::Opaque && c.bitmap.contains(p.id));
                assert!(two.iter().any(held), "{name}: {pair:?}");
            }
            "over_budget" => assert!(!plan.over_budget.is_empty(), "{name}: {pair:?}"),
            other => panic!("{name}: neighbours decided by {other}"),
        }
    }
}

#[test]
fn compactions_leave_what_lance_leaves() {
    for case in cases("compaction-after.json", 150) {
        let (name, layout) = (&case["name"], layout(&case));
        let options = options(&case, layout.stable_row_ids);
        let plan = compaction::plan(&layout, &options).unwrap();
        assert_eq!(tasks(&layout, &plan), expected_tasks(&case), "{name}");
        let effects = compaction::effects(&layout, &plan, &options).unwrap();
        let fragments: Vec<(u32, u64, u64)> =
            effects.after.pieces.iter().map(|p| (p.id, p.physical_rows, p.deleted_rows)).collect();
        let expected = &case["expected"];
        let wanted: Vec<(u32, u64, u64)> = expected["fragments"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| (id(&f["id"]), number(&f["physical_rows"]), number(&f["deleted_rows"])))
            .collect();
        assert_eq!(fragments, wanted, "{name}");
        let mut segments: Vec<(String, Vec<u32>, bool)> = effects
            .after
            .covers
            .iter()
            .zip(&effects.segments)
            .map(|(cover, effect)| (layout.index_of(cover).to_owned(), effect.stored.iter().collect(), cover.uuid.is_none()))
            .collect();
        segments.sort();
        let mut wanted: Vec<(String, Vec<u32>, bool)> = expected["segments"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| (text(&s["index"]), ids(&s["fragments"]), s["rewritten"].as_bool().unwrap()))
            .collect();
        wanted.sort();
        assert_eq!(segments, wanted, "{name}");
    }
}
