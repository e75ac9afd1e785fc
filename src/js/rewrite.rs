//! Running a plan to compact: its tasks, one task in a worker, the commit, and clearing away what an abandoned one left.

use js_sys::{Function, Object, Uint8Array};
use uuid::Uuid;
use wasm_bindgen::prelude::*;

use super::build::{call, discard, hook, pack, planned_manifest};
use super::columns::set;
use super::convert::{error_to_js, from_js, to_js};
use super::jobs::tell;
use super::table::{advance, ask};
use super::{store, task};
use crate::env;
use crate::maintain::forecast::CompactionPlan;
use crate::rewrite::task::file_name;
use crate::rewrite::{BuiltRewrite, RewriteTask, commit_compaction, prepare_compaction, rewrite_fragments};
use crate::store::Store;
use crate::table::publish::Committing;

/// Settles with `{ tasks, manifest }` once nothing is seen to keep the plan from being run.
#[wasm_bindgen(js_name = tablePlannedCompaction)]
pub fn table_planned_compaction(id: u32, plan: JsValue) -> Result<u32, JsValue> {
    let plan: CompactionPlan = from_js("the plan", plan).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move {
        let prepared = prepare_compaction(&table, &plan).await?;
        let answer = Object::new();
        set(&answer, "tasks", &to_js(&prepared.tasks)?)?;
        set(&answer, "manifest", &Uint8Array::from(pack(&prepared.manifest)?.as_slice()).into())?;
        Ok(answer.into())
    }))
}

/// Writes the files of a task; as `buildSegment` otherwise.
#[wasm_bindgen(js_name = rewriteFragments)]
pub fn rewrite_fragments_js(spec: JsValue, order: JsValue, manifest: Option<Vec<u8>>, hooks: JsValue) -> Result<u32, JsValue> {
    let env = env::system();
    let prepared = from_js::<RewriteTask>("the task", order).and_then(|order| Ok((order, store::open(&spec, env.clone())?)));
    let (order, store) = prepared.map_err(|error| error_to_js(&error))?;
    let uuid = env.uuid();
    let (on_uuid, on_progress) = (hook(&hooks, "onUuid"), hook(&hooks, "onProgress"));
    Ok(task::spawn(async move {
        let (store, manifest) = planned_manifest(store, manifest, order.v_plan, order.branch.as_deref()).await?;
        call(on_uuid.as_ref(), &JsValue::from_str(&uuid.to_string()));
        let mut progress = |rows: u64| call(on_progress.as_ref(), &JsValue::from_f64(rows as f64));
        to_js(&rewrite_fragments(&store, manifest, &order, uuid, &mut progress).await?)
    }))
}

/// Commits what was written for a plan to compact, as `tableCommitSegments` does what was built.
#[wasm_bindgen(js_name = tableCommitCompaction)]
pub fn table_commit_compaction(id: u32, plan: JsValue, built: JsValue, on_committing: JsValue) -> Result<u32, JsValue> {
    let taken = from_js::<CompactionPlan>("the plan", plan)
        .and_then(|plan| Ok((plan, from_js::<Vec<BuiltRewrite>>("the written files", built)?)));
    let (plan, built) = taken.map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move {
        let tell = |what: Committing| tell(on_committing.dyn_ref::<Function>().cloned(), what);
        let (report, committed) = commit_compaction(&table, &plan, &built, &tell).await?;
        advance(id, committed);
        to_js(&report)
    }))
}

/// Removes data files of attempts that were never committed, at most `files` each; settles with `{ removed, left }`.
#[wasm_bindgen(js_name = discardRewrites)]
pub fn discard_rewrites(spec: JsValue, branch: Option<String>, uuids: Vec<String>, files: u32) -> Result<u32, JsValue> {
    discard(&spec, branch, uuids, async move |_: &Store, uuid: Uuid| {
        Ok((0..files as usize).map(|n| format!("data/{}", file_name(uuid, n))).collect())
    })
}
