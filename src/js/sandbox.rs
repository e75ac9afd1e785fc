//! Tables to try things on.

use js_sys::Function;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

use super::convert::{error_to_js, from_js, to_js};
use super::jobs::tell;
use super::table::{advance, ask, keep};
use super::{store, task};
use crate::env;
use crate::sandbox::{ChangePlan, ChangeRequest, SandboxRequest, create_sandbox, plan_change, run_change};
use crate::table::publish::Committing;

/// Makes a table where there is none; settles with its number.
#[wasm_bindgen(js_name = sandboxCreate)]
pub fn sandbox_create(spec: JsValue, request: JsValue) -> Result<u32, JsValue> {
    let prepared = from_js::<SandboxRequest>("the table to make", request)
        .and_then(|request| Ok((request, store::open(&spec, env::system())?)));
    let (request, store) = prepared.map_err(|error| error_to_js(&error))?;
    Ok(task::spawn(async move { Ok(JsValue::from(keep(create_sandbox(&store, &request).await?))) }))
}

/// Settles with a plan to append, delete or update rows.
#[wasm_bindgen(js_name = tablePlanChange)]
pub fn table_plan_change(id: u32, request: JsValue) -> Result<u32, JsValue> {
    let request: ChangeRequest = from_js("the change", request).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, |table| async move { to_js(&plan_change(&table, request).await?) }))
}

/// Carries such a plan out; settles with its report, and the handle is at the version it names.
#[wasm_bindgen(js_name = tableRunChange)]
pub fn table_run_change(id: u32, plan: JsValue, on_committing: JsValue) -> Result<u32, JsValue> {
    let plan: ChangePlan = from_js("the plan", plan).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move {
        let tell = |what: Committing| tell(on_committing.dyn_ref::<Function>().cloned(), what);
        let (report, after) = run_change(&table, &plan, &tell).await?;
        advance(id, after);
        to_js(&report)
    }))
}
