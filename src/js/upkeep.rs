//! Reuse histories: the document, and the plans that shorten or collect them.

use js_sys::{Function, Reflect};
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

use super::convert::{error_to_js, from_js, to_js};
use super::jobs::tell;
use super::table::{advance, ask};
use crate::error::Error;
use crate::maintain::{GC, GcOptions, GcPlan, PRUNE, PrunePlan, TRIM, TrimPlan};
use crate::maintain::{history, plan_gc, plan_prune, plan_trim, run_gc, run_prune, run_trim};
use crate::table::publish::Committing;

/// Settles with the document `history`.
#[wasm_bindgen(js_name = tableHistory)]
pub fn table_history(id: u32) -> u32 {
    ask(id, |table| async move { to_js(&history(&table).await?) })
}

/// Settles with a plan of that kind: `trim`, `prune` or `gc`.
#[wasm_bindgen(js_name = tablePlanUpkeep)]
pub fn table_plan_upkeep(id: u32, kind: String, options: JsValue) -> Result<u32, JsValue> {
    let options: GcOptions = from_js("the options", options).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move {
        match kind.as_str() {
            TRIM => to_js(&plan_trim(&table).await?),
            PRUNE => to_js(&plan_prune(&table).await?),
            GC => to_js(&plan_gc(&table, options).await?),
            other => Err(Error::invalid(format!("there is no plan of kind {other:?}"))),
        }
    }))
}

/// Runs such a plan; settles with its report, and the handle is at the version it names.
#[wasm_bindgen(js_name = tableRunUpkeep)]
pub fn table_run_upkeep(id: u32, plan: JsValue, on_committing: JsValue) -> Result<u32, JsValue> {
    let kind = Reflect::get(&plan, &"kind".into()).ok().and_then(|kind| kind.as_string()).unwrap_or_default();
    let hook = on_committing.dyn_ref::<Function>().cloned();
    let tell = move |what: Committing| tell(hook.clone(), what);
    let started = match kind.as_str() {
        TRIM => from_js::<TrimPlan>("the plan", plan).map(|plan| {
            ask(id, move |table| async move {
                let (report, after) = run_trim(&table, &plan, &tell).await?;
                advance(id, after);
                to_js(&report)
            })
        }),
        PRUNE => from_js::<PrunePlan>("the plan", plan).map(|plan| {
            ask(id, move |table| async move {
                let (report, after) = run_prune(&table, &plan, &tell).await?;
                advance(id, after);
                to_js(&report)
            })
        }),
        GC => from_js::<GcPlan>("the plan", plan)
            .map(|plan| ask(id, move |table| async move { to_js(&run_gc(&table, &plan).await?) })),
        other => Err(Error::invalid(format!("this is no plan to trim, prune or collect (kind {other:?})"))),
    };
    started.map_err(|error| error_to_js(&error))
}
