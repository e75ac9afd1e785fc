//! What a compaction would make of a layout; columns cross as typed arrays.

use js_sys::{Array, Float64Array, Int32Array, Object, Reflect, Uint8Array, Uint32Array};
use wasm_bindgen::prelude::*;

use super::columns::set;
use super::convert::{error_to_js, from_js, to_js};
use super::table::ask;
use crate::compaction::CompactionOptions;
use crate::error::{Error, Result};
use crate::maintain::forecast::columns::LayoutColumns;
use crate::maintain::{ForecastOptions, explain_pair, forecast};
use crate::rewrite::plan_compaction;

/// Settles with a forecast.
#[wasm_bindgen(js_name = tableForecast)]
pub fn table_forecast(id: u32, options: JsValue) -> Result<u32, JsValue> {
    let options: ForecastOptions = from_js("the options", options).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, |table| async move {
        let mut document = forecast(&table, &options).await?;
        let before = document.before.columns.take();
        let after: Vec<Option<LayoutColumns>> = document.plans.iter_mut().map(|plan| plan.after.columns.take()).collect();
        let value = to_js(&document)?;
        attach(&get(&value, "before")?, before)?;
        let plans = Array::from(&get(&value, "plans")?);
        for (plan, columns) in plans.iter().zip(after) {
            attach(&get(&plan, "after")?, columns)?;
        }
        Ok(value)
    }))
}

/// Settles with why two fragments are or are not compacted together.
#[wasm_bindgen(js_name = tableExplainPair)]
pub fn table_explain_pair(id: u32, a: u32, b: u32, options: JsValue) -> Result<u32, JsValue> {
    let options: CompactionOptions = from_js("the options", options).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move { to_js(&explain_pair(&table, a, b, &options).await?) }))
}

/// Settles with a plan to compact.
#[wasm_bindgen(js_name = tablePlanCompaction)]
pub fn table_plan_compaction(id: u32, options: JsValue) -> Result<u32, JsValue> {
    let options: CompactionOptions = from_js("the options", options).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, |table| async move { to_js(&plan_compaction(&table, &options).await?) }))
}

fn get(object: &JsValue, key: &str) -> Result<JsValue> {
    Reflect::get(object, &key.into()).map_err(|_| Error::internal("a document lacks what was put into it"))
}

fn attach(report: &JsValue, columns: Option<LayoutColumns>) -> Result<()> {
    let (Some(columns), Some(report)) = (columns, report.dyn_ref::<Object>()) else { return Ok(()) };
    let rows = |list: &[u64]| -> JsValue {
        Float64Array::from(list.iter().map(|rows| *rows as f64).collect::<Vec<f64>>().as_slice()).into()
    };
    let object = Object::new();
    set(&object, "ids", &Uint32Array::from(columns.ids.as_slice()).into())?;
    set(&object, "physical_rows", &rows(&columns.physical_rows))?;
    set(&object, "deleted_rows", &rows(&columns.deleted_rows))?;
    set(&object, "group", &Int32Array::from(columns.group.as_slice()).into())?;
    let frozen: Vec<u8> = columns.frozen.iter().map(|frozen| u8::from(*frozen)).collect();
    set(&object, "frozen", &Uint8Array::from(frozen.as_slice()).into())?;
    let coverage = Array::new();
    for column in columns.coverage {
        let one = Object::new();
        set(&one, "index", &column.index.into())?;
        set(&one, "uuids", &to_js(&column.uuids)?)?;
        set(&one, "segment", &Int32Array::from(column.segment.as_slice()).into())?;
        coverage.push(&one);
    }
    set(&object, "coverage", &coverage)?;
    set(report, "columns", &object)
}
