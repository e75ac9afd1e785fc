//! Tables to try things on.

use futures::future::LocalBoxFuture;
use js_sys::Function;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

use super::convert::{error_to_js, from_js, to_js};
use super::host::text_of;
use super::jobs::{hear, tell};
use super::table::{advance, ask, keep};
use super::{store, task};
use crate::env;
use crate::error::{Error, ErrorCode};
use crate::sandbox::{ChangePlan, ChangeRequest, SandboxRequest, create_sandbox, plan_change, run_change};
use crate::table::publish::Committing;

/// Makes a table where there is none; settles with its number. `on_rows` as in [`table_run_change`].
#[wasm_bindgen(js_name = sandboxCreate)]
pub fn sandbox_create(spec: JsValue, request: JsValue, on_rows: JsValue) -> Result<u32, JsValue> {
    let prepared = from_js::<SandboxRequest>("the table to make", request)
        .and_then(|request| Ok((request, store::open(&spec, env::system())?)));
    let (request, store) = prepared.map_err(|error| error_to_js(&error))?;
    Ok(task::spawn(async move {
        let counted = |rows: u64| count(on_rows.dyn_ref::<Function>().cloned(), rows);
        Ok(JsValue::from(keep(create_sandbox(&store, &request, &counted).await?)))
    }))
}

/// Settles with a plan to append, delete or update rows.
#[wasm_bindgen(js_name = tablePlanChange)]
pub fn table_plan_change(id: u32, request: JsValue) -> Result<u32, JsValue> {
    let request: ChangeRequest = from_js("the change", request).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, |table| async move { to_js(&plan_change(&table, request).await?) }))
}

/// Carries such a plan out; settles with its report, and the handle is at the version it names. `on_rows` hears how many rows are
/// written; what it answers is awaited, and its rejection ends the work.
#[wasm_bindgen(js_name = tableRunChange)]
pub fn table_run_change(id: u32, plan: JsValue, on_committing: JsValue, on_rows: JsValue) -> Result<u32, JsValue> {
    let plan: ChangePlan = from_js("the plan", plan).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move {
        let tell = |what: Committing| tell(on_committing.dyn_ref::<Function>().cloned(), what);
        let counted = |rows: u64| count(on_rows.dyn_ref::<Function>().cloned(), rows);
        let (report, after) = run_change(&table, &plan, &tell, &counted).await?;
        advance(id, after);
        to_js(&report)
    }))
}

fn count(hook: Option<Function>, rows: u64) -> LocalBoxFuture<'static, Result<(), Error>> {
    Box::pin(async move {
        let Some(hook) = hook else { return Ok(()) };
        hear(&hook, &JsValue::from_f64(rows as f64)).await.map_err(|error| Error::new(ErrorCode::Aborted, text_of(&error)))
    })
}
