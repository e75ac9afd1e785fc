//! What our own sessions do: plan, build, commit, each through a way to the store that fails now and then.

use serde_json::{Value, json};
use uuid::Uuid;
use whetstone::maintain::{
    OrphanOptions, commit_drop, discard_staged, orphans, plan_create_index, plan_discard, plan_drop_index, plan_merge,
    remove_orphans,
};
use whetstone::refresh::{BuiltSegment, RefreshPlan, RefreshReport, build_segment, commit_segments, plan_refresh};
use whetstone::table::publish::tell_nobody;
use whetstone::table::{At, Table};
use whetstone::{Changed, Error, ErrorCode};

use crate::Sim;
use crate::check;
use crate::disk::{Client, Faults};
use crate::lance::COLUMN;

/// Indexes the sessions work on: name and method.
pub const INDEXES: [(&str, &str); 3] = [("a", "BTREE"), ("b", "BITMAP"), ("z", "ZONEMAP")];

/// What a job said in the end.
pub struct Said {
    pub job: String,
    /// Segments it built.
    pub built: Vec<Uuid>,
    pub outcome: Outcome,
}

pub enum Outcome {
    /// A report.
    Report(Box<RefreshReport>),
    /// An error: its code and what had changed.
    Failed(ErrorCode, Changed, String),
    /// It cannot be known; these objects are staged.
    Unknown(Vec<String>),
}

/// One session: several jobs, one after the other.
pub async fn session(sim: &Sim, id: usize, jobs: u64, faults: Faults) {
    let client = Client::new(sim, id, faults);
    let skew = sim.world.below(600_000) as i64 - 300_000;
    let store = client.store(skew, sim.world.chance(500));
    let mut handle: Option<Table> = None;
    for n in 0..jobs {
        sim.world.sleep(sim.world.below(2_000) as i64).await;
        // A handle may be old; it is still a handle of this table.
        let table = match handle.take().filter(|_| sim.world.chance(300)) {
            Some(table) => table,
            None => match Table::open(store.clone(), At::Latest, None).await {
                Ok(table) => table,
                Err(_) => continue,
            },
        };
        let (name, method) = INDEXES[sim.crowded.unwrap_or(sim.world.below(3) as usize)];
        // A refresh of what is not there says nothing: then it is made.
        let there = table.manifest().indices.iter().any(|e| e.name == name);
        let kind = match sim.crowded {
            _ if !there => 4,
            Some(_) => [0, 0, 0, 0, 0, 0, 0, 7, 8, 5][sim.world.below(10) as usize],
            None => sim.world.below(10),
        };
        let job = format!(
            "{id}.{n} {} {name}",
            ["refresh", "refresh", "refresh", "refresh", "create", "create", "create", "merge", "drop", "orphans"][kind as usize]
        );
        sim.world.note(|| format!("{job} on {}", table.version()));
        let done = match kind {
            0..=3 => planned(sim, &job, &table, plan_refresh(&table, name, options(sim)).await).await,
            4..=6 => {
                let options =
                    json!({"segments": 1 + sim.world.below(3), "train": sim.world.chance(700), "replace": sim.world.chance(300)});
                let plan = plan_create_index(&table, name, COLUMN, method, serde_json::from_value(options).unwrap()).await;
                planned(sim, &job, &table, plan).await
            }
            7 => planned(sim, &job, &table, plan_merge(&table, name, Default::default()).await).await,
            8 => dropped(sim, &job, &table, name).await,
            _ => {
                let list = orphans(&table, &OrphanOptions { older_than_ms: Some(24 * 3_600_000) }).await;
                if let Ok(list) = list {
                    let _ = remove_orphans(&table, &list).await;
                }
                None
            }
        };
        handle = done.or(Some(table));
    }
}

fn options<T: serde::de::DeserializeOwned>(sim: &Sim) -> T {
    let absorb = ["none", "none", "tiered", "all"][sim.world.below(4) as usize];
    serde_json::from_value(json!({"segments": 1 + sim.world.below(3), "absorb": absorb})).unwrap()
}

async fn planned(sim: &Sim, job: &str, table: &Table, plan: Result<RefreshPlan, Error>) -> Option<Table> {
    let plan = plan.ok()?;
    pause(sim).await;
    let mut built: Vec<BuiltSegment> = Vec::new();
    for task in &plan.tasks {
        built.push(build_segment(table.store(), table.manifest().clone(), task, &mut |_| {}).await.ok()?);
    }
    let result = commit_segments(table, &plan, &built).await;
    let staged: Vec<Uuid> = built.iter().map(|b| b.uuid).collect();
    if let (Ok((report, _)), None) = (&result, plan.creation()) {
        check::as_planned(sim, job, &plan.index.target.name, plan.v_plan, &plan.segments, report);
    }
    said(sim, job, table, staged, result).await
}

/// Some take their time between planning and doing.
async fn pause(sim: &Sim) {
    if sim.world.chance(if sim.crowded.is_some() { 600 } else { 200 }) {
        sim.world.sleep(sim.world.below(20_000) as i64).await;
    }
}

async fn dropped(sim: &Sim, job: &str, table: &Table, name: &str) -> Option<Table> {
    let plan = plan_drop_index(table, name).await.ok()?;
    pause(sim).await;
    let result = commit_drop(table, &plan, &tell_nobody).await;
    if let Ok((report, _)) = &result {
        let all: Vec<Uuid> = plan.segments.iter().map(|s| s.uuid).collect();
        check::the_one_planned(sim, job, name, plan.v_plan, &all, report);
    }
    said(sim, job, table, Vec::new(), result).await
}

/// Takes down what a job said, and clears up after it as far as that is allowed.
async fn said(
    sim: &Sim,
    job: &str,
    table: &Table,
    built: Vec<Uuid>,
    result: Result<(RefreshReport, Table), Error>,
) -> Option<Table> {
    let (outcome, handle) = match result {
        Ok((report, table)) => {
            assert_eq!(report.version, table.version(), "{job}");
            sim.world.note(|| format!("{job}: version {} {:?}", report.version, report.transaction));
            sim.published(job, &report);
            (Outcome::Report(Box::new(report)), Some(table))
        }
        Err(error) => {
            sim.world.note(|| format!("{job}: {error}"));
            assert!(error.code() != ErrorCode::Internal, "{job}: {error:?}");
            let document = json!({"error": {"code": error.code().as_str(), "detail": error.detail()}});
            let outcome = if error.changed() == Changed::Unknown || error.changed() == Changed::Committed {
                let paths = error.detail().get("staged").and_then(Value::as_array).cloned().unwrap_or_default();
                let paths: Vec<String> = paths.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                // Others may have: `orphans`, after a day.
                let session = job.split('.').next().unwrap().parse().unwrap();
                assert!(paths.iter().all(|path| !sim.disk.deleted_by(session, path)), "{job}: deleted what may be committed");
                Outcome::Unknown(paths)
            } else {
                Outcome::Failed(error.code(), error.changed(), error.message().to_owned())
            };
            sim.said.borrow_mut().push(Said { job: job.to_owned(), built: built.clone(), outcome });
            if !built.is_empty() && sim.world.chance(800) {
                let most = [3_000, 20_000, 60_000][sim.world.below(3) as usize];
                sim.world.sleep(sim.world.below(most) as i64).await;
                if let Ok(plan) = plan_discard(table, &document).await {
                    let _ = discard_staged(table, &plan).await;
                }
            }
            return None;
        }
    };
    sim.said.borrow_mut().push(Said { job: job.to_owned(), built, outcome });
    handle
}
