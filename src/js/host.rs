//! What a store needs from JavaScript: the operations of a host store, and keys that are asked for.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use js_sys::{Array, Function, Object, Promise, Reflect, Uint8Array};
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use send_wrapper::SendWrapper;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::store::{Fault, FaultKind, HostEntry, HostIo, HostRead, RequestSigner, TokenSource, Unsigned};

/// An object with functions, called by name.
pub(super) struct Callbacks(SendWrapper<JsValue>);

impl Callbacks {
    /// `None` when nothing was given.
    pub(super) fn new(object: JsValue) -> Option<Callbacks> {
        object.is_object().then(|| Callbacks(SendWrapper::new(object)))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.function(name).is_some()
    }

    fn function(&self, name: &str) -> Option<Function> {
        Reflect::get(&self.0, &JsValue::from_str(name)).ok()?.dyn_into().ok()
    }

    /// Calls and awaits; what is thrown or rejected comes back as the error.
    async fn call(&self, name: &str, arguments: &Array) -> Result<JsValue, JsValue> {
        let function = self.function(name).ok_or_else(|| JsValue::from_str(&format!("the store has no {name}")))?;
        let answer = Reflect::apply(&function, &self.0, arguments)?;
        JsFuture::from(Promise::resolve(&answer)).await
    }
}

/// The status a rejection states (500 when it states none), with its text.
fn fault(method: &str, error: &JsValue) -> Fault {
    let status = number(error, "status").filter(|s| (100.0..600.0).contains(s)).map_or(500, |s| s as u16);
    Fault::new(FaultKind::Status(status), method, text_of(error))
}

pub(super) fn text_of(error: &JsValue) -> String {
    let message = Reflect::get(error, &JsValue::from_str("message")).ok().and_then(|m| m.as_string());
    message.or_else(|| error.as_string()).unwrap_or_default()
}

fn get(value: &JsValue, name: &str) -> JsValue {
    Reflect::get(value, &JsValue::from_str(name)).unwrap_or(JsValue::UNDEFINED)
}

fn number(value: &JsValue, name: &str) -> Option<f64> {
    if value.is_object() { get(value, name).as_f64() } else { None }
}

fn wrong(method: &str, what: &str) -> Fault {
    Fault::new(FaultKind::Status(500), method, what)
}

/// A whole number of bytes or milliseconds; a fraction or a negative number is nothing a host should say.
fn whole(value: f64) -> Option<u64> {
    (value >= 0.0 && value.fract() == 0.0 && value <= 9_007_199_254_740_991.0).then_some(value as u64)
}

fn modified(value: &JsValue) -> i64 {
    number(value, "modified").map_or(0, |ms| ms as i64)
}

#[async_trait]
impl HostIo for Callbacks {
    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<HostRead, Fault> {
        SendWrapper::new(async move {
            let asked = match range {
                None => JsValue::NULL,
                Some(range) => {
                    let object = Object::new();
                    for (name, at) in [("start", range.start), ("end", range.end)] {
                        let _ = Reflect::set(&object, &JsValue::from_str(name), &JsValue::from_f64(at as f64));
                    }
                    object.into()
                }
            };
            let answer = self.call("get", &Array::of2(&JsValue::from_str(path), &asked)).await.map_err(|e| fault("GET", &e))?;
            if answer.is_null() || answer.is_undefined() {
                return Err(Fault::new(FaultKind::Status(404), "GET", ""));
            }
            let data: Uint8Array =
                get(&answer, "data").dyn_into().map_err(|_| wrong("GET", "the host's get gave no Uint8Array as data"))?;
            let size = number(&answer, "size").and_then(whole).ok_or_else(|| wrong("GET", "the host's get gave no size"))?;
            Ok(HostRead { data: Bytes::from(data.to_vec()), size, modified_ms: modified(&answer) })
        })
        .await
    }

    async fn write(&self, path: &str, mut data: Vec<Bytes>, create: bool) -> Result<bool, Fault> {
        SendWrapper::new(async move {
            if !self.has("put") {
                return Err(Fault::new(FaultKind::Status(405), "PUT", "the host store has no put: it is read-only"));
            }
            // The function has to outlive the call; a folder takes one chunk after the other, others want all of them.
            let in_turn = get(&self.0, "chunksInTurn").is_truthy().then(|| {
                let mut rest = std::mem::take(&mut data).into_iter();
                let next = move || rest.next().map_or(JsValue::UNDEFINED, |chunk| Uint8Array::from(chunk.as_ref()).into());
                Closure::<dyn FnMut() -> JsValue>::new(next)
            });
            let chunks = match &in_turn {
                Some(next) => next.as_ref().clone(),
                None => data.iter().map(|chunk| Uint8Array::from(chunk.as_ref())).collect::<Array>().into(),
            };
            drop(data);
            let options = Object::new();
            let _ = Reflect::set(&options, &JsValue::from_str("create"), &JsValue::from_bool(create));
            let answer =
                self.call("put", &Array::of3(&JsValue::from_str(path), &chunks, &options)).await.map_err(|e| fault("PUT", &e))?;
            match answer.as_string().as_deref() {
                Some("written") => Ok(true),
                Some("exists") if create => Ok(false),
                _ => Err(wrong("PUT", "the host's put answered neither \"written\" nor \"exists\"")),
            }
        })
        .await
    }

    async fn list(&self, dir: &str) -> Result<Vec<HostEntry>, Fault> {
        SendWrapper::new(async move {
            let answer = self.call("list", &Array::of1(&JsValue::from_str(dir))).await.map_err(|e| fault("LIST", &e))?;
            let listed: Array = answer.dyn_into().map_err(|_| wrong("LIST", "the host's list gave no array"))?;
            let entry = |value: JsValue| -> Result<HostEntry, Fault> {
                let name =
                    get(&value, "name").as_string().ok_or_else(|| wrong("LIST", "an entry of the host's list has no name"))?;
                let size = number(&value, "size");
                let bytes = size.map(|s| whole(s).ok_or_else(|| wrong("LIST", "a size is no whole number"))).transpose()?;
                Ok(HostEntry { name, is_dir: size.is_none(), size: bytes.unwrap_or(0), modified_ms: modified(&value) })
            };
            listed.iter().map(entry).collect()
        })
        .await
    }

    async fn delete(&self, path: &str) -> Result<(), Fault> {
        SendWrapper::new(async move {
            if !self.has("delete") {
                return Err(Fault::new(FaultKind::Status(405), "DELETE", "the host store has no delete"));
            }
            self.call("delete", &Array::of1(&JsValue::from_str(path))).await.map_err(|e| fault("DELETE", &e))?;
            Ok(())
        })
        .await
    }
}

impl std::fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Callbacks")
    }
}

#[async_trait]
impl CredentialProvider for Callbacks {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        SendWrapper::new(async move {
            let failed = |what: String| object_store::Error::from(Fault::new(FaultKind::Status(401), "credentials()", what));
            let keys = self.call("credentials", &Array::new()).await.map_err(|e| failed(text_of(&e)))?;
            let text = |name: &str| get(&keys, name).as_string().filter(|t| !t.is_empty());
            let (Some(key_id), Some(secret_key)) = (text("accessKeyId"), text("secretAccessKey")) else {
                return Err(failed("gave no accessKeyId and secretAccessKey".to_owned()));
            };
            Ok(Arc::new(AwsCredential { key_id, secret_key, token: text("sessionToken") }))
        })
        .await
    }
}

#[async_trait]
impl TokenSource for Callbacks {
    async fn token(&self) -> Result<String, Fault> {
        SendWrapper::new(async move {
            let failed = |what: String| Fault::new(FaultKind::Status(401), "credentials()", what);
            let keys = self.call("credentials", &Array::new()).await.map_err(|e| failed(text_of(&e)))?;
            let text = |name: &str| get(&keys, name).as_string().filter(|t| !t.is_empty());
            text("token").or_else(|| text("sas")).ok_or_else(|| failed("gave neither a token nor a sas".to_owned()))
        })
        .await
    }
}

#[async_trait]
impl RequestSigner for Callbacks {
    async fn sign(&self, request: Unsigned) -> Result<Option<String>, Fault> {
        SendWrapper::new(async move {
            let object = Object::new();
            let set = |name: &str, value: &JsValue| drop(Reflect::set(&object, &JsValue::from_str(name), value));
            let pairs = |list: &[(String, String)]| {
                let pairs = Object::new();
                for (name, value) in list {
                    let _ = Reflect::set(&pairs, &JsValue::from_str(name), &JsValue::from_str(value));
                }
                JsValue::from(pairs)
            };
            set("method", &JsValue::from_str(request.method));
            set("bucket", &JsValue::from_str(&request.bucket));
            set("key", &JsValue::from_str(&request.key));
            set("query", &pairs(&request.query));
            set("headers", &pairs(&request.headers));
            let answer = self.call("signer", &Array::of1(&object)).await;
            // What it throws may quote the address it signed.
            let answer = answer.map_err(|_| Fault::new(FaultKind::Status(401), request.method, "the signer failed"))?;
            Ok(answer.as_string())
        })
        .await
    }
}
