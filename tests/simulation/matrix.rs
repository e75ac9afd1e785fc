//! Our three kinds of commit after each operation that Lance may have committed meanwhile, also those that pylance cannot be asked to make
//! (refresh-and-compaction §3.1). What pylance can make, and the other direction, is in `tests/oracle/test_conflicts.py`.

use futures::executor::block_on;
use serde_json::json;
use whetstone::format::index_metadata::IndexMetadata;
use whetstone::format::proto;
use whetstone::maintain::{commit_drop, plan_create_index, plan_drop_index, plan_merge};
use whetstone::refresh::{RefreshPlan, RefreshReport, build_segment, commit_segments, plan_refresh};
use whetstone::table::publish::tell_nobody;
use whetstone::table::{At, Table};
use whetstone::{Error, ErrorCode};

use crate::lance::{self, COLUMN, Draft};
use crate::{Sim, new_run, world};

const INDEX: &str = "a";

/// What becomes of a commit of ours.
#[derive(Debug, PartialEq)]
enum Expected {
    /// These fragments are established, so many segments go.
    Lands(&'static [u32], u64),
    Nothing,
    Refused(ErrorCode),
}

use Expected::{Lands, Nothing, Refused};

struct Row {
    operation: &'static str,
    why: &'static str,
    /// Number of the operation in the transaction, and what it makes of the version before.
    number: u32,
    change: fn(&Sim, &mut Draft),
    /// A refresh of {3, 4}, a merge of {0} and {1, 2}, a drop of both.
    outcome: [Expected; 3],
}

fn lands() -> [Expected; 3] {
    [Lands(&[3, 4], 0), Lands(&[0, 1, 2], 2), Lands(&[], 2)]
}

fn refused(code: ErrorCode) -> [Expected; 3] {
    [Refused(code), Refused(code), Refused(code)]
}

fn gone() -> [Expected; 3] {
    [Refused(ErrorCode::IndexDropped), Refused(ErrorCode::IndexDropped), Nothing]
}

fn no_change(_: &Sim, _: &mut Draft) {}

fn rows() -> Vec<Row> {
    vec![
        Row {
            operation: "Append",
            why: "new fragments are nobody's work yet",
            number: 100,
            change: |sim, draft| draft.manifest.fragments.push(lance::fragment(sim, 5, &[1, 2, 3])),
            outcome: lands(),
        },
        Row {
            operation: "Delete",
            why: "fragments that are gone are not claimed; what covered one covers the others",
            number: 101,
            change: |_, draft| draft.manifest.fragments.retain(|f| f.id != 1 && f.id != 3),
            outcome: [Lands(&[4], 0), Lands(&[0, 2], 2), Lands(&[], 2)],
        },
        Row {
            operation: "Overwrite",
            why: "the index section is emptied",
            number: 102,
            change: |sim, draft| {
                draft.manifest.fragments = vec![lance::fragment(sim, 5, &[1, 2, 3])];
                draft.indices.clear();
            },
            outcome: gone(),
        },
        Row {
            operation: "CreateIndex (a drop)",
            why: "what was dropped stays dropped",
            number: 103,
            change: |_, draft| draft.indices.clear(),
            outcome: gone(),
        },
        Row {
            operation: "Rewrite",
            why: "its sources are gone, and what covered them covers what is left",
            number: 104,
            change: |sim, draft| {
                draft.manifest.fragments.retain(|f| f.id < 3);
                draft.manifest.fragments.push(lance::fragment(sim, 5, &[1, 2, 3]));
            },
            outcome: [Refused(ErrorCode::NothingLeft), Lands(&[0, 1, 2], 2), Lands(&[], 2)],
        },
        Row {
            operation: "Merge (another file behind the column)",
            why: "old values must not be claimed",
            number: 105,
            change: |sim, draft| draft.manifest.fragments[3] = lance::fragment(sim, 3, &[7, 8, 9]),
            outcome: [Lands(&[4], 0), Lands(&[0, 1, 2], 2), Lands(&[], 2)],
        },
        Row {
            operation: "Merge (a cast in place)",
            why: "another type under the same field id is another column; a drop does not read it",
            number: 105,
            change: |_, draft| draft.manifest.fields[0].logical_type = "int32".into(),
            outcome: [Refused(ErrorCode::IndexChanged), Refused(ErrorCode::IndexChanged), Lands(&[], 2)],
        },
        Row {
            operation: "Restore",
            why: "the version before the last append is what counts",
            number: 106,
            change: |sim, draft| {
                let high = draft.manifest.max_fragment_id;
                *draft = Draft::on(sim, &lance::read(sim, lance::newest(sim).0 - 1).unwrap());
                draft.manifest.max_fragment_id = high;
            },
            outcome: [Lands(&[3], 0), Lands(&[0, 1, 2], 2), Lands(&[], 2)],
        },
        Row {
            operation: "ReserveFragments",
            why: "ids are set aside, nothing has them",
            number: 107,
            change: |_, draft| draft.manifest.max_fragment_id = Some(9),
            outcome: lands(),
        },
        Row {
            operation: "Update (the column rewritten in place)",
            why: "what leaves a segment while it is merged is not claimed again",
            number: 108,
            change: |sim, draft| {
                draft.manifest.fragments[1] = lance::fragment(sim, 1, &[7, 8, 9]);
                for entry in &mut draft.indices {
                    entry.fragment_bitmap.as_mut().unwrap().remove(1);
                    entry.raw = bytes::Bytes::new();
                }
            },
            outcome: [Lands(&[3, 4], 0), Lands(&[0, 2], 2), Lands(&[], 2)],
        },
        Row {
            operation: "Project (the column is gone, its index with it)",
            why: "without the column there is no index",
            number: 109,
            change: |_, draft| {
                draft.manifest.fields[0].id = 7;
                draft.indices.clear();
            },
            outcome: gone(),
        },
        Row {
            operation: "Project (the column is gone, a segment dangles: hole 6)",
            why: "a segment on a field that is not in the schema is no index any more, and may be dropped",
            number: 109,
            change: |_, draft| draft.manifest.fields[0].id = 7,
            outcome: [Refused(ErrorCode::IndexChanged), Refused(ErrorCode::IndexChanged), Lands(&[], 2)],
        },
        Row {
            operation: "UpdateConfig",
            why: "nothing of the index",
            number: 110,
            change: |_, draft| {
                draft.manifest.config.insert("a".into(), "b".into());
            },
            outcome: lands(),
        },
        Row {
            operation: "DataReplacement",
            why: "old values of a replaced file must not be claimed",
            number: 111,
            change: |sim, draft| draft.manifest.fragments[4] = lance::fragment(sim, 4, &[7, 8, 9]),
            outcome: [Lands(&[3], 0), Lands(&[0, 1, 2], 2), Lands(&[], 2)],
        },
        Row {
            operation: "UpdateMemWalState",
            why: "a table with a MemWAL is written only by those who keep its records",
            number: 112,
            change: |_, draft| {
                let entry = IndexMetadata {
                    uuid: uuid::Uuid::from_u128(5),
                    name: "__lance_mem_wal".into(),
                    fields: Vec::new(),
                    fragment_bitmap: None,
                    files: Vec::new(),
                    raw: bytes::Bytes::new(),
                    ..draft.indices[0].clone()
                };
                draft.indices.push(entry);
            },
            outcome: refused(ErrorCode::UnsupportedFeature),
        },
        Row {
            operation: "Clone",
            why: "it begins another history, and changes nothing of this one",
            number: 113,
            change: no_change,
            outcome: lands(),
        },
        Row {
            operation: "UpdateBases",
            why: "where other files may lie says nothing of those that are there",
            number: 114,
            change: |_, draft| {
                let base = proto::BasePath { id: 1, path: "s3://elsewhere/t".into(), ..Default::default() };
                draft.manifest.base_paths.push(base);
            },
            outcome: lands(),
        },
        Row {
            operation: "DataOverlay",
            why: "a table with overlays is written only by those who know them",
            number: 115,
            change: |_, draft| {
                draft.manifest.reader_feature_flags |= 1 << 6;
                draft.manifest.writer_feature_flags |= 1 << 6;
            },
            outcome: refused(ErrorCode::UnsupportedFeature),
        },
        Row {
            operation: "an operation of a newer Lance",
            why: "what it did is in the manifest, and what we could not carry on is named by a flag",
            number: 150,
            change: no_change,
            outcome: lands(),
        },
        Row {
            operation: "an operation of a newer Lance, with a flag",
            why: "an unknown flag for writers refuses",
            number: 150,
            change: |_, draft| draft.manifest.writer_feature_flags |= 1 << 40,
            outcome: refused(ErrorCode::UnsupportedFeature),
        },
    ]
}

/// Fragments 0 to 4, an index with two segments over the first three.
fn table() -> Sim {
    let sim = new_run(1, false);
    let table = sim.open(At::Latest);
    let options = serde_json::from_value(json!({"segments": 2})).unwrap();
    let plan = block_on(plan_create_index(&table, INDEX, COLUMN, "BTREE", options)).unwrap();
    let built: Vec<_> = plan.tasks.iter().map(|task| build(&table, task)).collect();
    assert_eq!(block_on(commit_segments(&table, &plan, &built)).unwrap().0.segments_added, 2);
    for _ in 0..2 {
        world::run(&sim.world, vec![Box::pin(lance::append(&sim))]);
    }
    sim
}

fn build(table: &Table, task: &whetstone::refresh::task::BuildTask) -> whetstone::refresh::BuiltSegment {
    block_on(build_segment(table.store(), table.manifest().clone(), task, &mut |_| {})).unwrap()
}

fn outcome(result: Result<(RefreshReport, Table), Error>) -> (Vec<u32>, u64, Option<ErrorCode>) {
    match result {
        Ok((report, _)) if report.transaction.is_none() => (Vec::new(), u64::MAX, None),
        Ok((report, _)) => (report.established, report.segments_removed, None),
        Err(error) => (Vec::new(), 0, Some(error.code())),
    }
}

#[test]
fn what_lance_committed_meanwhile_decides_about_ours() {
    for row in rows() {
        for (job, expected) in row.outcome.iter().enumerate() {
            let sim = table();
            let table = sim.open(At::Latest);
            let meanwhile = || {
                let change = |_: u64, base: &whetstone::format::manifest::ManifestFile| {
                    let mut draft = Draft::on(&sim, base);
                    (row.change)(&sim, &mut draft);
                    draft.operation = (row.number, Vec::new());
                    Some(draft)
                };
                world::run(
                    &sim.world,
                    vec![Box::pin(async { assert!(lance::commit(&sim, row.operation, change).await.is_some()) })],
                );
            };
            let done = if job == 2 {
                let plan = block_on(plan_drop_index(&table, INDEX)).unwrap();
                meanwhile();
                block_on(commit_drop(&table, &plan, &tell_nobody))
            } else {
                let plan: RefreshPlan = match job {
                    0 => block_on(plan_refresh(&table, INDEX, Default::default())).unwrap(),
                    _ => block_on(plan_merge(&table, INDEX, Default::default())).unwrap(),
                };
                let built: Vec<_> = plan.tasks.iter().map(|task| build(&table, task)).collect();
                meanwhile();
                block_on(commit_segments(&table, &plan, &built))
            };
            let expected = match expected {
                Lands(fragments, removed) => (fragments.to_vec(), *removed, None),
                Nothing => (Vec::new(), u64::MAX, None),
                Refused(code) => (Vec::new(), 0, Some(*code)),
            };
            let job = ["refresh", "merge", "drop"][job];
            assert_eq!(outcome(done), expected, "{job} after {}: {}", row.operation, row.why);
        }
    }
}
