//! Files that no manifest names: what a job staged, and what others left.

use serde_json::Value;
use wasm_bindgen::prelude::*;

use super::convert::{error_to_js, from_js, to_js};
use super::table::ask;
use crate::maintain::{DiscardPlan, OrphanOptions, Orphans, discard_staged, orphans, plan_discard, remove_orphans};

/// Settles with a plan to remove what the job behind `document` staged.
#[wasm_bindgen(js_name = tablePlanDiscard)]
pub fn table_plan_discard(id: u32, document: JsValue) -> Result<u32, JsValue> {
    let document: Value = from_js("the report", document).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, |table| async move { to_js(&plan_discard(&table, &document).await?) }))
}

/// Settles with what no retained version names; the document is the plan to remove it.
#[wasm_bindgen(js_name = tableOrphans)]
pub fn table_orphans(id: u32, options: JsValue) -> Result<u32, JsValue> {
    let options: OrphanOptions = from_js("the options", options).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, |table| async move { to_js(&orphans(&table, &options).await?) }))
}

/// Runs a plan to discard, or a list of orphans; settles with what was removed.
#[wasm_bindgen(js_name = tableRemove)]
pub fn table_remove(id: u32, plan: JsValue) -> Result<u32, JsValue> {
    let kind = js_sys::Reflect::get(&plan, &"kind".into()).ok().and_then(|kind| kind.as_string());
    if kind.as_deref() == Some(crate::maintain::ORPHANS) {
        let plan: Orphans = from_js("the plan", plan).map_err(|error| error_to_js(&error))?;
        return Ok(ask(id, |table| async move { to_js(&remove_orphans(&table, &plan).await?) }));
    }
    let plan: DiscardPlan = from_js("the plan", plan).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, |table| async move { to_js(&discard_staged(&table, &plan).await?) }))
}
