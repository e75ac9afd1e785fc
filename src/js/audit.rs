//! Looking into indexes: what is in their segments, and whether that is what their column says.

use js_sys::Function;
use wasm_bindgen::prelude::*;

use super::convert::{error_to_js, from_js, to_js};
use super::table::ask;
use crate::maintain::{AuditOptions, PartsOptions, audit, inspect, parts, probe};

/// Settles with the contents of every segment of an index.
#[wasm_bindgen(js_name = tableInspect)]
pub fn table_inspect(id: u32, index: String, options: JsValue) -> Result<u32, JsValue> {
    let options: PartsOptions = from_js("the options", options).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move { to_js(&inspect(&table, &index, &options).await?) }))
}

/// Settles with some pages, zones, keys or tokens of a segment.
#[wasm_bindgen(js_name = tableParts)]
pub fn table_parts(id: u32, index: String, uuid: String, options: JsValue) -> Result<u32, JsValue> {
    let options: PartsOptions = from_js("the options", options).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move { to_js(&parts(&table, &index, &uuid, &options).await?) }))
}

/// Settles with what the segments of an index say of a condition.
#[wasm_bindgen(js_name = tableProbe)]
pub fn table_probe(id: u32, index: String, op: String, value: Option<String>) -> u32 {
    ask(id, |table| async move { to_js(&probe(&table, &index, &op, value.as_deref()).await?) })
}

/// Settles with an audit report; `on_progress(rows, rowsTotal)` hears how far it is.
#[wasm_bindgen(js_name = tableAudit)]
pub fn table_audit(id: u32, index: String, options: JsValue, on_progress: Option<Function>) -> Result<u32, JsValue> {
    let options: AuditOptions = from_js("the options", options).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move {
        let mut tell = |rows: u64, total: u64| {
            if let Some(function) = &on_progress {
                // A listener that throws must not end the audit.
                let _ = function.call2(&JsValue::UNDEFINED, &JsValue::from(rows as f64), &JsValue::from(total as f64));
            }
        };
        to_js(&audit(&table, &index, options, &mut tell).await?)
    }))
}
