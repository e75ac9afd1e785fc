//! The transport of wasm: `fetch`, as every runtime has it.

use std::ops::Range;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, RANGE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use http_body_util::BodyExt;
use js_sys::{Array, Function, Object, Promise, Reflect, Uint8Array};
use object_store::client::{HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService};
use send_wrapper::SendWrapper;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, Headers, Response};

use super::fault::{Fault, FaultKind};
use super::normalise::{asked_range, body_limit, check_headers, too_long};

/// A client over `fetch`.
pub fn client() -> HttpClient {
    HttpClient::new(Fetch)
}

/// Whether we run in a page or its worker: no choice of `Accept-Encoding`, and preflights.
pub fn in_browser() -> bool {
    let global = js_sys::global();
    let get = |name: &str| Reflect::get(&global, &JsValue::from_str(name)).unwrap_or(JsValue::UNDEFINED);
    let versions = Reflect::get(&get("process"), &JsValue::from_str("versions")).unwrap_or(JsValue::UNDEFINED);
    let agent = Reflect::get(&get("navigator"), &JsValue::from_str("userAgent")).ok().and_then(|v| v.as_string());
    let server = agent.is_some_and(|a| a.starts_with("Cloudflare-Workers") || a.starts_with("Deno") || a.starts_with("Bun"));
    versions.is_undefined() && !server && (!get("document").is_undefined() || !get("WorkerGlobalScope").is_undefined())
}

#[derive(Debug)]
struct Fetch;

/// Aborts the request when the future that waits for it is dropped; the server sees the connection close.
struct Guard(Option<AbortController>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(controller) = self.0.take() {
            controller.abort();
        }
    }
}

#[async_trait]
impl HttpService for Fetch {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        SendWrapper::new(send(request)).await
    }
}

fn failed(kind: HttpErrorKind, fault: Fault) -> HttpError {
    HttpError::new(kind, fault)
}

/// A JS exception while `method` was under way. Its text may quote the URL, so it is not kept.
fn broken(kind: FaultKind, method: &str) -> HttpError {
    let http = if kind == FaultKind::Connect { HttpErrorKind::Connect } else { HttpErrorKind::Interrupted };
    failed(http, Fault::new(kind, method, ""))
}

async fn send(request: HttpRequest) -> Result<HttpResponse, HttpError> {
    let (parts, body) = request.into_parts();
    let method = parts.method.as_str().to_owned();
    let range = parts.headers.get(RANGE).and_then(|v| v.to_str().ok()).and_then(asked_range);
    let connect = |_| broken(FaultKind::Connect, &method);

    let controller = AbortController::new().map_err(connect)?;
    let init = Object::new();
    let set = |name: &str, value: &JsValue| Reflect::set(&init, &JsValue::from_str(name), value).map(|_| ());
    set("method", &JsValue::from_str(&method)).map_err(connect)?;
    set("signal", &controller.signal()).map_err(connect)?;
    // A redirect would carry our headers along, and what is written, possibly to somebody else.
    let secret = parts.method != Method::GET
        || parts.headers.values().any(HeaderValue::is_sensitive)
        || parts.headers.contains_key("authorization")
        || parts.headers.contains_key("x-amz-security-token");
    if secret {
        set("redirect", &JsValue::from_str("manual")).map_err(connect)?;
    }
    set("credentials", &JsValue::from_str("omit")).map_err(connect)?;
    // Versions are found by listing: a stale listing would hide a commit.
    if parts.method != Method::GET || range.is_none() {
        set("cache", &JsValue::from_str("no-store")).ok();
    }
    set("headers", js_headers(&parts.headers).map_err(connect)?.as_ref()).map_err(connect)?;
    let has_body = parts.method == Method::PUT || parts.method == Method::POST || body.content_length() > 0;
    if has_body {
        set("body", &js_body(body).await?).map_err(connect)?;
    }

    let fetch: Function = Reflect::get(&js_sys::global(), &JsValue::from_str("fetch"))
        .and_then(|f| f.dyn_into().map_err(|_| JsValue::UNDEFINED))
        .map_err(|_| failed(HttpErrorKind::Connect, Fault::new(FaultKind::Connect, &method, "this runtime has no fetch")))?;
    let mut guard = Guard(Some(controller));
    let url = JsValue::from_str(&parts.uri.to_string());
    // As a free function: `this` is the global object of whatever runtime this is.
    let promise: Promise = fetch.call2(&JsValue::UNDEFINED, &url, &init).map_err(connect)?.unchecked_into();
    let response: Response = JsFuture::from(promise).await.map_err(connect)?.unchecked_into();

    let status = response.status();
    let headers = rust_headers(&response.headers());
    if status == 0 {
        return Err(failed(
            HttpErrorKind::Unknown,
            Fault::new(FaultKind::Status(307), &method, "the redirect is not followed with credentials"),
        ));
    }
    // Judged before the body is read: the guard then stops the transfer.
    if (200..300).contains(&status) {
        check_headers(&method, range.as_ref(), status, &headers).map_err(|fault| failed(HttpErrorKind::Unknown, fault))?;
    }
    let data = read(&response, &method, range.as_ref(), status, &headers).await?;
    guard.0 = None;
    let mut answer = http::Response::builder().status(status);
    if let Some(map) = answer.headers_mut() {
        *map = headers;
    }
    answer.body(HttpResponseBody::from(data)).map_err(|_| broken(FaultKind::Interrupted, &method))
}

async fn read(
    response: &Response,
    method: &str,
    range: Option<&Range<u64>>,
    status: u16,
    headers: &HeaderMap,
) -> Result<Bytes, HttpError> {
    let limit = body_limit(range, status, headers);
    let over = || failed(HttpErrorKind::Unknown, too_long(method, range, status));
    let length: Option<u64> = headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok());
    let encoded = headers.contains_key("content-encoding");
    let success = (200..300).contains(&status);
    if success && !encoded && length.is_some_and(|length| length > limit) {
        return Err(over());
    }
    let interrupted = |_: JsValue| broken(FaultKind::Interrupted, method);
    if !encoded && length.is_some_and(|length| length <= limit) {
        let promise = response.array_buffer().map_err(interrupted)?;
        let buffer = JsFuture::from(promise).await.map_err(interrupted)?;
        let data = Bytes::from(Uint8Array::new(&buffer).to_vec());
        if data.len() as u64 > limit {
            return Err(over());
        }
        return Ok(data);
    }
    // No trustworthy length: chunk by chunk, so that an endless body ends here.
    let body = Reflect::get(response, &JsValue::from_str("body")).map_err(interrupted)?;
    if body.is_null() || body.is_undefined() {
        return Ok(Bytes::new());
    }
    let call = |object: &JsValue, name: &str| -> Result<JsValue, JsValue> {
        let function: Function = Reflect::get(object, &JsValue::from_str(name))?.dyn_into()?;
        function.call0(object)
    };
    let reader = call(&body, "getReader").map_err(interrupted)?;
    let mut data = BytesMut::new();
    loop {
        let promise: Promise = call(&reader, "read").map_err(interrupted)?.unchecked_into();
        let step = JsFuture::from(promise).await.map_err(interrupted)?;
        let done = Reflect::get(&step, &JsValue::from_str("done")).map_err(interrupted)?;
        if done.is_truthy() {
            return Ok(data.freeze());
        }
        let chunk: Uint8Array =
            Reflect::get(&step, &JsValue::from_str("value")).and_then(|v| v.dyn_into()).map_err(interrupted)?;
        if (data.len() as u64).saturating_add(u64::from(chunk.length())) > limit {
            return if success { Err(over()) } else { Ok(data.freeze()) };
        }
        data.extend_from_slice(&chunk.to_vec());
    }
}

/// Names that `fetch` sets itself and forbids or ignores.
fn is_forbidden(name: &HeaderName) -> bool {
    matches!(name.as_str(), "host" | "content-length" | "connection" | "user-agent")
}

fn js_headers(map: &HeaderMap) -> Result<Headers, JsValue> {
    let headers = Headers::new()?;
    for (name, value) in map {
        if !is_forbidden(name) {
            let text = value.to_str().map_err(|_| JsValue::UNDEFINED)?;
            headers.set(name.as_str(), text)?;
        }
    }
    Ok(headers)
}

async fn js_body(mut body: object_store::client::HttpRequestBody) -> Result<JsValue, HttpError> {
    let too_large = || failed(HttpErrorKind::Request, Fault::new(FaultKind::TooLarge, "PUT", "the body"));
    let length = u32::try_from(body.content_length()).map_err(|_| too_large())?;
    let all = Uint8Array::new_with_length(length);
    let mut at = 0u32;
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame?.into_data() else { continue };
        let size = u32::try_from(chunk.len()).map_err(|_| too_large())?;
        let end = at.checked_add(size).filter(|end| *end <= length).ok_or_else(too_large)?;
        all.subarray(at, end).copy_from(&chunk);
        at = end;
    }
    Ok(all.into())
}

fn rust_headers(headers: &Headers) -> HeaderMap {
    let mut map = HeaderMap::new();
    let Ok(Some(entries)) = js_sys::try_iter(headers) else { return map };
    for entry in entries.flatten() {
        let pair: Array = entry.unchecked_into();
        let text = |at: u32| pair.get(at).as_string().unwrap_or_default();
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(text(0).as_bytes()), HeaderValue::from_str(&text(1))) {
            map.append(name, value);
        }
    }
    map
}
