//! The two ends of a job: the plan, and the commit of what was built for it.

use futures::future::LocalBoxFuture;
use js_sys::{Function, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::build::pack;
use super::convert::{error_to_js, from_js, to_js};
use super::host::text_of;
use super::table::{advance, ask};
use crate::error::{Error, ErrorCode};
use crate::maintain::forecast::compaction::COMPACTION;
use crate::maintain::{
    CreateOptions, DROP, DropPlan, MergeOptions, check_drop, commit_drop, plan_create_index, plan_drop_index, plan_merge,
};
use crate::refresh::{BuiltSegment, RefreshOptions, RefreshPlan, check_basis, check_plan, commit_segments_telling, plan_refresh};
use crate::table::publish::Committing;

/// Settles with a refresh plan.
#[wasm_bindgen(js_name = tablePlanRefresh)]
pub fn table_plan_refresh(id: u32, index: String, options: JsValue) -> Result<u32, JsValue> {
    let options: RefreshOptions = from_js("the options", options).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, |table| async move { to_js(&plan_refresh(&table, &index, options).await?) }))
}

/// Settles with a plan to create an index; its segments are built and committed as those of a refresh.
#[wasm_bindgen(js_name = tablePlanCreateIndex)]
pub fn table_plan_create_index(id: u32, name: String, column: String, method: String, options: JsValue) -> Result<u32, JsValue> {
    let options: CreateOptions = from_js("the options", options).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, |table| async move { to_js(&plan_create_index(&table, &name, &column, &method, options).await?) }))
}

/// Settles with a plan to merge segments; they are built and committed as those of a refresh.
#[wasm_bindgen(js_name = tablePlanMerge)]
pub fn table_plan_merge(id: u32, index: String, options: JsValue) -> Result<u32, JsValue> {
    let options: MergeOptions = from_js("the options", options).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, |table| async move { to_js(&plan_merge(&table, &index, options).await?) }))
}

/// Settles with a plan to drop an index.
#[wasm_bindgen(js_name = tablePlanDropIndex)]
pub fn table_plan_drop_index(id: u32, name: String) -> u32 {
    ask(id, |table| async move { to_js(&plan_drop_index(&table, &name).await?) })
}

fn plan_from(plan: JsValue) -> Result<RefreshPlan, Error> {
    let plan: RefreshPlan = from_js("the plan", plan)?;
    check_plan(&plan)?;
    Ok(plan)
}

/// Throws unless the plan can be run, as far as the plan itself tells.
#[wasm_bindgen(js_name = checkPlan)]
pub fn check_plan_js(plan: JsValue) -> Result<(), JsValue> {
    let kind = Reflect::get(&plan, &"kind".into()).ok().and_then(|kind| kind.as_string());
    let checked = match kind.as_deref() {
        Some(DROP) => drop_from(plan).map(drop),
        #[cfg(feature = "full")]
        Some(COMPACTION) => from_js("the plan", plan).and_then(|plan| crate::rewrite::check_compaction(&plan)),
        #[cfg(not(feature = "full"))]
        Some(COMPACTION) => Err(Error::new(
            ErrorCode::UnsupportedFeature,
            format!("a plan of kind {COMPACTION} is not run by the core engine; nothing was changed"),
        )),
        _ => plan_from(plan).map(drop),
    };
    checked.map_err(|error| error_to_js(&error))
}

fn drop_from(plan: JsValue) -> Result<DropPlan, Error> {
    let plan: DropPlan = from_js("the plan", plan)?;
    check_drop(&plan)?;
    Ok(plan)
}

/// Settles with the bytes of the manifest a plan was made on, for workers, once the plan is seen to fit it.
#[wasm_bindgen(js_name = tablePlannedManifest)]
pub fn table_planned_manifest(id: u32, plan: JsValue) -> Result<u32, JsValue> {
    let plan = plan_from(plan).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move {
        let version = plan.v_plan;
        let file = table.manifest_at(version).await?.ok_or_else(|| {
            let text = format!("version {version} was cleaned up: the segments of a plan are built on it, so plan again");
            Error::new(ErrorCode::StalePlan, text).with("version", version)
        })?;
        check_basis(&plan, &file.manifest)?;
        Ok(Uint8Array::from(pack(&file)?.as_slice()).into())
    }))
}

/// Commits built segments; settles with a report, and the handle is at the version it names. `on_committing` hears what is
/// about to be sent; what it answers is awaited, and its rejection ends the commit.
#[wasm_bindgen(js_name = tableCommitSegments)]
pub fn table_commit_segments(id: u32, plan: JsValue, built: JsValue, on_committing: JsValue) -> Result<u32, JsValue> {
    let taken = from_js::<RefreshPlan>("the plan", plan)
        .and_then(|plan| Ok((plan, from_js::<Vec<BuiltSegment>>("the built segments", built)?)));
    let (plan, built) = taken.map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move {
        let tell = |what: Committing| tell(on_committing.dyn_ref::<Function>().cloned(), what);
        let (report, committed) = commit_segments_telling(&table, &plan, &built, &tell).await?;
        advance(id, committed);
        to_js(&report)
    }))
}

/// Commits a plan to drop an index, as [`table_commit_segments`] does what was built.
#[wasm_bindgen(js_name = tableCommitDrop)]
pub fn table_commit_drop(id: u32, plan: JsValue, on_committing: JsValue) -> Result<u32, JsValue> {
    let plan = drop_from(plan).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move {
        let tell = |what: Committing| tell(on_committing.dyn_ref::<Function>().cloned(), what);
        let (report, committed) = commit_drop(&table, &plan, &tell).await?;
        advance(id, committed);
        to_js(&report)
    }))
}

pub(super) fn tell(hook: Option<Function>, what: Committing) -> LocalBoxFuture<'static, Result<(), Error>> {
    Box::pin(async move {
        let Some(hook) = hook else { return Ok(()) };
        let document = to_js(&what)?;
        hear(&hook, &document).await.map_err(|error| {
            let text = format!("onCommitting failed ({}); nothing was committed", text_of(&error));
            Error::new(ErrorCode::Aborted, text)
        })
    })
}

/// Calls a function of the host and waits for what it answers.
pub(super) async fn hear(hook: &Function, what: &JsValue) -> Result<(), JsValue> {
    let answer = hook.call1(&JsValue::UNDEFINED, what)?;
    JsFuture::from(Promise::resolve(&answer)).await.map(drop)
}
