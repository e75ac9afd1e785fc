//! Plain requests for a URL as object_store answers: no header but the range, so that a GET needs no preflight.

use bytes::Bytes;
use futures::StreamExt;
use http::header::{ETAG, RANGE};
use http::{HeaderMap, Method, Request, StatusCode};
use object_store::client::{HttpClient, HttpError, HttpRequestBody};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, GetResultPayload, ObjectMeta};

use super::fault::{Fault, FaultKind};
use super::normalise::content_range;

/// An HTTP failure as an object_store error; the fault stays inside.
pub fn wrap(error: HttpError) -> object_store::Error {
    object_store::Error::Generic { store: "whetstone", source: Box::new(error) }
}

/// A request without a body.
pub fn request(method: Method, url: &str) -> http::request::Builder {
    Request::builder().method(method).uri(url)
}

/// Finishes a request; only a URL that is none can fail.
pub fn finish(builder: http::request::Builder, body: HttpRequestBody) -> object_store::Result<http::Request<HttpRequestBody>> {
    let name = builder.method_ref().map(Method::to_string).unwrap_or_default();
    builder.body(body).map_err(|_| Fault::new(FaultKind::Connect, &name, "the address is not a URL").into())
}

/// DELETEs `url`, which stands for `location`.
pub async fn delete(client: &HttpClient, url: &str, location: &Path) -> object_store::Result<()> {
    delete_with(client, request(Method::DELETE, url), location).await
}

/// Sends a DELETE that was begun, which stands for `location`.
pub async fn delete_with(client: &HttpClient, builder: http::request::Builder, location: &Path) -> object_store::Result<()> {
    let request = finish(builder, HttpRequestBody::empty())?;
    match client.execute(request).await.map_err(wrap)?.status() {
        status if status.is_success() => Ok(()),
        StatusCode::NOT_FOUND => {
            let fault = Fault::new(FaultKind::Status(404), "DELETE", "");
            Err(object_store::Error::NotFound { path: location.to_string(), source: Box::new(fault) })
        }
        status => Err(Fault::new(FaultKind::Status(status.as_u16()), "DELETE", "").into()),
    }
}

/// The entity tag that an answer carries, where the host lets us see it.
pub fn entity_tag(headers: &HeaderMap) -> Option<String> {
    headers.get(ETAG)?.to_str().ok().map(str::to_owned)
}

/// What no store of ours does.
pub fn refused<T>(store: &str, operation: &str) -> object_store::Result<T> {
    Err(object_store::Error::NotImplemented { operation: operation.to_owned(), implementer: store.to_owned() })
}

/// GETs `url`, which stands for `location`.
pub async fn get(client: &HttpClient, url: &str, location: &Path, options: &GetOptions) -> object_store::Result<GetResult> {
    get_with(client, request(Method::GET, url), location, options).await
}

/// Sends a GET that was begun, which stands for `location`.
pub async fn get_with(
    client: &HttpClient,
    mut builder: http::request::Builder,
    location: &Path,
    options: &GetOptions,
) -> object_store::Result<GetResult> {
    let asked = match &options.range {
        None => None,
        Some(GetRange::Bounded(range)) => Some(range.clone()),
        Some(GetRange::Offset(_) | GetRange::Suffix(_)) => {
            return Err(Fault::new(FaultKind::Ranges, "GET", "a range without both ends is never sent").into());
        }
    };
    if let Some(range) = &asked {
        builder = builder.header(RANGE, format!("bytes={}-{}", range.start, range.end.saturating_sub(1)));
    }
    let answer = client.execute(finish(builder, HttpRequestBody::empty())?).await.map_err(wrap)?;
    let (parts, body) = answer.into_parts();
    if parts.status == StatusCode::NOT_FOUND {
        let fault = Fault::new(FaultKind::Status(404), "GET", "");
        return Err(object_store::Error::NotFound { path: location.to_string(), source: Box::new(fault) });
    }
    if !parts.status.is_success() {
        return Err(Fault::new(FaultKind::Status(parts.status.as_u16()), "GET", "").into());
    }
    let data: Bytes = body.bytes().await.map_err(wrap)?;
    let length = data.len() as u64;
    let (range, size) = match content_range(&parts.headers) {
        Some((range, total)) if asked.is_some() => (range.clone(), total.unwrap_or(range.end)),
        _ => (0..length, length),
    };
    let e_tag = entity_tag(&parts.headers);
    Ok(GetResult {
        payload: GetResultPayload::Stream(futures::stream::once(async move { Ok(data) }).boxed()),
        meta: ObjectMeta { location: location.clone(), last_modified: chrono::DateTime::UNIX_EPOCH, size, e_tag, version: None },
        range,
        attributes: Default::default(),
        extensions: parts.extensions,
    })
}
