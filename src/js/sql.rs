//! Statements.

use wasm_bindgen::prelude::*;

use super::convert::to_js;
use super::table::ask;
use crate::sql;

/// Settles with what a statement answers: rows, or a plan to run.
#[wasm_bindgen(js_name = tableSql)]
pub fn table_sql(id: u32, statement: String, alias: Option<String>) -> u32 {
    ask(id, |table| async move { to_js(&sql::answer(&table, &statement, alias.as_deref()).await?) })
}
