//! Open tables by number, and what can be asked of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;

use serde::Deserialize;
use serde_json::{Value, json};
use wasm_bindgen::prelude::*;

use super::columns::fragment_columns;
use super::convert::{error_to_js, from_js, to_js, version_from};
use super::{store, task};
use crate::env;
use crate::error::{Error, ErrorCode, Result};
use crate::format::index_metadata::IndexMetadata;
use crate::format::schema::Schema;
use crate::format::transaction::{Operation, Transaction};
use crate::index::display_name;
use crate::table::describe::{self, resolve_index_name};
use crate::table::{At, Table, show};

#[derive(Default)]
struct Tables {
    next: u32,
    open: HashMap<u32, Table>,
}

thread_local! {
    static TABLES: RefCell<Tables> = RefCell::default();
}

pub(super) fn keep(table: Table) -> u32 {
    TABLES.with_borrow_mut(|tables| {
        let id = tables.next;
        tables.next = tables.next.wrapping_add(1);
        tables.open.insert(id, table);
        id
    })
}

/// Moves a handle; one that was closed meanwhile stays closed.
pub(super) fn advance(id: u32, table: Table) {
    TABLES.with_borrow_mut(|tables| {
        if let Some(place) = tables.open.get_mut(&id) {
            *place = table;
        }
    });
}

pub(super) fn table(id: u32) -> Result<Table> {
    TABLES.with_borrow(|tables| tables.open.get(&id).cloned()).ok_or_else(|| Error::invalid("the table is closed"))
}

/// Starts a question about an open table.
pub(super) fn ask<F>(id: u32, question: impl FnOnce(Table) -> F + 'static) -> u32
where
    F: Future<Output = Result<JsValue>>,
{
    task::spawn(async move { question(table(id)?).await })
}

#[derive(Deserialize)]
struct AtJs {
    version: Option<f64>,
    tag: Option<String>,
}

fn at_from(value: JsValue) -> Result<At> {
    Ok(match from_js::<AtJs>("the version", value)? {
        AtJs { version: Some(version), .. } => At::Version(version_from(version)?),
        AtJs { tag: Some(tag), .. } => At::Tag(tag),
        _ => At::Latest,
    })
}

/// Opens a table; settles with its number.
#[wasm_bindgen(js_name = openTable)]
pub fn open_table(spec: JsValue, at: JsValue, branch: Option<String>) -> Result<u32, JsValue> {
    let prepared = at_from(at).and_then(|at| Ok((at, store::open(&spec, env::system())?)));
    let (at, store) = prepared.map_err(|error| error_to_js(&error))?;
    Ok(task::spawn(async move {
        let table = Table::open(store, at, branch.as_deref()).await?;
        Ok(JsValue::from(keep(table)))
    }))
}

/// Forgets a table.
#[wasm_bindgen(js_name = closeTable)]
pub fn close_table(id: u32) {
    let closed = TABLES.with_borrow_mut(|tables| tables.open.remove(&id));
    drop(closed);
}

/// `{ uri, version, branch, rows, schema }`.
#[wasm_bindgen(js_name = tableInfo)]
pub fn table_info(id: u32) -> Result<JsValue, JsValue> {
    let info = table(id).and_then(|table| {
        let manifest = &table.manifest().manifest;
        to_js(&json!({
            "uri": table.store().uri(),
            "version": table.version(),
            "branch": table.branch(),
            "rows": manifest.live_rows(),
            "schema": schema_json(&manifest.schema)?,
        }))
    });
    info.map_err(|error| error_to_js(&error))
}

/// Deeper nesting than this is no schema anybody wrote.
const MOST_LEVELS: u32 = 100;

fn schema_json(schema: &Schema) -> Result<Vec<Value>> {
    let mut levels: HashMap<i32, u32> = HashMap::new();
    for field in &schema.fields {
        let level = levels.get(&field.parent_id).map_or(0, |level| level + 1);
        if level > MOST_LEVELS {
            return Err(Error::new(
                ErrorCode::UnsupportedType,
                format!("field {} is nested over {MOST_LEVELS} levels deep", field.id),
            ));
        }
        levels.insert(field.id, level);
    }
    // Children come after their parents: from the end, each field's children are complete when it is reached.
    let mut children: HashMap<i32, Vec<Value>> = HashMap::new();
    for field in schema.fields.iter().rev() {
        let mut own = children.remove(&field.id).unwrap_or_default();
        own.reverse();
        let node = json!({ "id": field.id, "name": field.name, "type": field.logical_type, "nullable": field.nullable, "children": own });
        children.entry(field.parent_id).or_default().push(node);
    }
    let mut top = children.remove(&-1).unwrap_or_default();
    top.reverse();
    Ok(top)
}

/// Request counts since the table was opened.
#[wasm_bindgen(js_name = tableRequests)]
pub fn table_requests(id: u32) -> Result<JsValue, JsValue> {
    table(id).and_then(|table| to_js(&table.store().requests())).map_err(|error| error_to_js(&error))
}

/// Settles with the document `show`.
#[wasm_bindgen(js_name = tableShow)]
pub fn table_show(id: u32) -> u32 {
    ask(id, |table| async move { to_js(&show::show(&table, display_name).await?) })
}

/// Settles with the document `fragments`.
#[wasm_bindgen(js_name = tableFragments)]
pub fn table_fragments(id: u32) -> u32 {
    ask(id, |table| async move { to_js(&show::fragments(&table, None).await?) })
}

/// Settles with all fragments as typed arrays.
#[wasm_bindgen(js_name = tableFragmentColumns)]
pub fn table_fragment_columns(id: u32) -> u32 {
    ask(id, |table| async move { fragment_columns(&table).await })
}

/// Settles with one index of the document `show`.
#[wasm_bindgen(js_name = tableIndex)]
pub fn table_index(id: u32, name: String) -> u32 {
    ask(id, |table| async move {
        let indexes = describe::indexes(&table, display_name).await?;
        let names: Vec<String> = indexes.iter().map(|index| index.name.clone()).collect();
        let exact = resolve_index_name(&names, &name)?;
        match indexes.iter().find(|index| index.name == exact) {
            Some(index) => to_js(index),
            None => Err(Error::internal("a resolved index is not in the list")),
        }
    })
}

/// Settles with the versions of the branch.
#[wasm_bindgen(js_name = tableVersions)]
pub fn table_versions(id: u32) -> u32 {
    ask(id, |table| async move { to_js(&table.versions().await?) })
}

/// Settles with the tags by name.
#[wasm_bindgen(js_name = tableTags)]
pub fn table_tags(id: u32) -> u32 {
    ask(id, |table| async move { to_js(&table.tags().await?) })
}

/// Settles with the branches by name.
#[wasm_bindgen(js_name = tableBranches)]
pub fn table_branches(id: u32) -> u32 {
    ask(id, |table| async move { to_js(&table.branches().await?) })
}

/// Settles with a transaction, or `null`.
#[wasm_bindgen(js_name = tableTransaction)]
pub fn table_transaction(id: u32, uuid: String) -> u32 {
    ask(id, |table| async move {
        match table.find_transaction(&uuid).await? {
            Some((version, transaction)) => to_js(&transaction_json(version, &transaction)),
            None => Ok(JsValue::NULL),
        }
    })
}

fn transaction_json(version: Option<u64>, transaction: &Transaction) -> Value {
    let mut document = json!({
        "uuid": transaction.uuid,
        "read_version": transaction.read_version,
        "version": version,
        "operation": transaction.operation.name(),
        "properties": transaction.properties,
    });
    if let (Operation::CreateIndex { new, removed }, Some(object)) = (&transaction.operation, document.as_object_mut()) {
        object.insert("new".to_owned(), entries_json(new));
        object.insert("removed".to_owned(), entries_json(removed));
    }
    document
}

fn entries_json(entries: &[IndexMetadata]) -> Value {
    entries
        .iter()
        .map(|entry| {
            let fragments: Option<Vec<u32>> = entry.fragment_bitmap.as_ref().map(|bitmap| bitmap.iter().collect());
            json!({ "name": entry.name, "uuid": entry.uuid.to_string(), "fragment_ids": fragments })
        })
        .collect()
}

/// Settles with the number of another handle, at another version or tag.
#[wasm_bindgen(js_name = tableAt)]
pub fn table_at(id: u32, at: JsValue) -> Result<u32, JsValue> {
    let at = at_from(at).map_err(|error| error_to_js(&error))?;
    Ok(ask(id, |table| async move { Ok(JsValue::from(keep(table.at(at).await?))) }))
}

/// Moves the handle to the latest version.
#[wasm_bindgen(js_name = tableReload)]
pub fn table_reload(id: u32) -> u32 {
    ask(id, move |table| async move {
        advance(id, table.latest().await?);
        Ok(JsValue::UNDEFINED)
    })
}
