//! From what JavaScript calls a store to ours.

use std::sync::Arc;

use js_sys::{Function, Reflect};
use send_wrapper::SendWrapper;
use serde_json::json;
use wasm_bindgen::{JsCast, JsValue};

use super::convert::{from_js, to_js};
use super::host::Callbacks;
use crate::env::EnvRef;
use crate::error::Result;
use crate::store::{RequestHook, RequestRecord, Store, StoreDescriptor, Surroundings, open_target};

/// Opens `{ descriptor, callbacks, onRequest }`. No request is sent.
pub(super) fn open(spec: &JsValue, env: EnvRef) -> Result<Store> {
    let get = |name: &str| Reflect::get(spec, &JsValue::from_str(name)).unwrap_or(JsValue::UNDEFINED);
    let descriptor: StoreDescriptor = from_js("the store", get("descriptor"))?;
    let mut surroundings = Surroundings::new(env);
    if let Some(callbacks) = Callbacks::new(get("callbacks")) {
        let callbacks = Arc::new(callbacks);
        if callbacks.has("credentials") {
            surroundings.credentials = Some(callbacks.clone());
            surroundings.tokens = Some(callbacks.clone());
        }
        if callbacks.has("signer") {
            surroundings.signer = Some(callbacks.clone());
        }
        if callbacks.has("get") {
            surroundings.host = Some(callbacks);
        }
    }
    surroundings.on_request = get("onRequest").dyn_into::<Function>().ok().map(hook);
    open_target(&descriptor, &surroundings)
}

fn hook(function: Function) -> RequestHook {
    let function = SendWrapper::new(function);
    Arc::new(move |record: &RequestRecord| {
        let mut event = json!({
            "method": record.method,
            "path": record.path,
            "range": record.range.as_ref().map(|range| [range.start, range.end]),
            "bytes": record.bytes,
            "bytes_written": record.bytes_written,
            "ms": record.ms,
            "status": if record.status == 0 { None } else { Some(record.status) },
        });
        if !record.headers.is_empty()
            && let Some(object) = event.as_object_mut()
        {
            let headers = record.headers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
            object.insert("headers".to_owned(), serde_json::Value::Object(headers));
        }
        if let Ok(event) = to_js(&event) {
            // A hook that throws is its owner's affair; the request is done.
            let _ = function.call1(&JsValue::UNDEFINED, &event);
        }
    })
}
