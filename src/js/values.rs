//! The values of a column.

use js_sys::Uint8Array;
use serde_json::json;
use wasm_bindgen::prelude::*;

use super::convert::{error_to_js, from_js, to_js};
use super::table::ask;
use crate::index::json::scalar;
use crate::table::values::{ColumnRequest, ColumnValues};

/// Settles with the rows of a column as an Arrow IPC stream.
#[wasm_bindgen(js_name = tableColumn)]
pub fn table_column(id: u32, path: String, request: JsValue) -> Result<u32, JsValue> {
    let request: ColumnRequest = from_js("the options", request).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move {
        let bytes = ColumnValues::new(&table, &path, request)?.ipc().await?;
        Ok(Uint8Array::from(bytes.as_slice()).into())
    }))
}

/// Decodes a column and throws it away; settles with `{ rows, bytes }`.
#[wasm_bindgen(js_name = tableCountColumn)]
pub fn table_count_column(id: u32, path: String) -> u32 {
    ask(id, move |table| async move {
        let (rows, bytes) = ColumnValues::new(&table, &path, ColumnRequest::default())?.count().await?;
        to_js(&json!({ "rows": rows, "bytes": bytes }))
    })
}

/// Settles with `{ path, type, rows, lines }`: the rows as JSON, one a line.
#[wasm_bindgen(js_name = tableColumnLines)]
pub fn table_column_lines(id: u32, path: String, request: JsValue) -> Result<u32, JsValue> {
    let request: ColumnRequest = from_js("the options", request).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, move |table| async move {
        let values = ColumnValues::new(&table, &path, request)?;
        let mut lines = String::new();
        let mut rows = 0u64;
        values
            .read(&mut |batch| {
                for at in 0..batch.values.len() {
                    let address = batch.rows.get(at).map(|id| id.to_string());
                    lines.push_str(&json!({ "address": address, "value": scalar(&batch.values, at) }).to_string());
                    lines.push('\n');
                }
                rows += batch.values.len() as u64;
                Ok(())
            })
            .await?;
        let data_type = values.data_type.to_string();
        to_js(&json!({ "path": values.path, "type": data_type, "rows": rows, "lines": lines }))
    }))
}
