//! A store without a table: single objects of it, for whoever checks what the store does, and what is known of its commits.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;

use bytes::Bytes;
use js_sys::{Array, Uint8Array};
use serde_json::json;
use wasm_bindgen::prelude::*;

use super::convert::{error_to_js, to_js};
use super::table::table;
use super::{store, task};
use crate::env;
use crate::error::{Error, Result};
use crate::store::{Commits, Created, Store, StoreKind};

#[derive(Default)]
struct Stores {
    next: u32,
    open: HashMap<u32, Store>,
}

thread_local! {
    static STORES: RefCell<Stores> = RefCell::default();
}

fn on<F>(id: u32, work: impl FnOnce(Store) -> F + 'static) -> u32
where
    F: Future<Output = Result<JsValue>>,
{
    task::spawn(async move {
        let found = STORES.with_borrow(|stores| stores.open.get(&id).cloned());
        work(found.ok_or_else(|| Error::invalid("the store is closed"))?).await
    })
}

/// Opens a store and answers its number; no request is sent.
#[wasm_bindgen(js_name = openStore)]
pub fn open_store(spec: JsValue) -> Result<u32, JsValue> {
    let opened = store::open(&spec, env::system()).map_err(|error| error_to_js(&error))?;
    Ok(STORES.with_borrow_mut(|stores| {
        let id = stores.next;
        stores.next = stores.next.wrapping_add(1);
        stores.open.insert(id, opened);
        id
    }))
}

/// Forgets a store.
#[wasm_bindgen(js_name = closeStore)]
pub fn close_store(id: u32) {
    let closed = STORES.with_borrow_mut(|stores| stores.open.remove(&id));
    drop(closed);
}

/// Settles with the bytes of an object, or of `[start, end)` of it.
#[wasm_bindgen(js_name = storeGet)]
pub fn store_get(id: u32, path: String, start: Option<f64>, end: Option<f64>) -> u32 {
    on(id, move |store| async move {
        let data = match start.zip(end) {
            Some((start, end)) => store.get_range(&path, start as u64..end as u64).await?,
            None => store.get(&path, None).await?,
        };
        Ok(Uint8Array::from(data.as_ref()).into())
    })
}

/// Settles with `[{ name, size, modified }]`: what is directly in a folder, or the first page of at most `max` of it.
#[wasm_bindgen(js_name = storeList)]
pub fn store_list(id: u32, folder: String, max: Option<u32>) -> u32 {
    on(id, move |store| async move {
        let entries = match max {
            Some(max) => store.list_page(&folder, max as usize).await?.0,
            None => store.list(&folder).await?,
        };
        let listed: Vec<_> = entries
            .iter()
            .map(|e| json!({ "name": e.name, "size": e.size, "modified": e.modified_ms, "etag": e.etag }))
            .collect();
        to_js(&listed)
    })
}

/// Settles with `["written"]`, `["created"]`, `["exists"]`, or `["unclear", error]`.
#[wasm_bindgen(js_name = storePut)]
pub fn store_put(id: u32, path: String, data: Uint8Array, create: bool) -> u32 {
    on(id, move |store| async move {
        let data = vec![Bytes::from(data.to_vec())];
        let word = |word: &str| Ok(JsValue::from(Array::of1(&JsValue::from_str(word))));
        if !create {
            store.put(&path, data).await?;
            return word("written");
        }
        match store.put_create(&path, data).await? {
            Created::Yes(_) => word("created"),
            Created::Exists => word("exists"),
            Created::Unclear(error) => Ok(Array::of2(&JsValue::from_str("unclear"), &error_to_js(&error)).into()),
        }
    })
}

/// Settles when an object is gone.
#[wasm_bindgen(js_name = storeDelete)]
pub fn store_delete(id: u32, path: String) -> u32 {
    on(id, |store| async move {
        store.delete(&path).await?;
        Ok(JsValue::UNDEFINED)
    })
}

fn describe(store: &Store) -> Result<JsValue> {
    let (state, why) = match store.commits() {
        Commits::Atomic(why) => ("atomic", Some(why)),
        Commits::Unproven => ("unproven", None),
        Commits::Refused(why) => ("refused", Some(why)),
    };
    let kind = match store.kind() {
        StoreKind::S3 => "s3",
        StoreKind::Azure => "azure",
        StoreKind::Gcs => "gcs",
        StoreKind::Dav => "webdav",
        StoreKind::Static => "static",
        StoreKind::Host => "host",
        StoreKind::Memory => "memory",
    };
    to_js(&json!({
        "uri": store.uri(), "kind": kind, "ordered": store.lists_in_order(), "commits": state, "why": why,
        "anyway": store.commits_anyway(),
    }))
}

/// `{ uri, kind, ordered, commits, why, anyway }` of a store.
#[wasm_bindgen(js_name = storeInfo)]
pub fn store_info(id: u32) -> Result<JsValue, JsValue> {
    let found = STORES.with_borrow(|stores| stores.open.get(&id).cloned());
    found.ok_or_else(|| Error::invalid("the store is closed")).and_then(|s| describe(&s)).map_err(|error| error_to_js(&error))
}

/// The same of the store of an open table.
#[wasm_bindgen(js_name = tableStoreInfo)]
pub fn table_store_info(id: u32) -> Result<JsValue, JsValue> {
    table(id).and_then(|table| describe(table.store())).map_err(|error| error_to_js(&error))
}

/// Records what a racing check found of an open table's store: nothing wrong, or what.
#[wasm_bindgen(js_name = tableStoreFound)]
pub fn table_store_found(id: u32, wrong: Option<String>) -> Result<(), JsValue> {
    let commits = match wrong {
        None => Commits::Atomic("racing writers created each object once".to_owned()),
        Some(what) => Commits::Refused(what),
    };
    table(id).map(|table| table.store().found(commits)).map_err(|error| error_to_js(&error))
}
