//! The HTTP layer that every request passes: permits, credentials, time limit, one meaning for all answers, counting.
//!
//! It sits between object_store's clients and the transport (`fetch`, or a script in tests), so that what it settles is
//! settled for S3 and WebDAV alike. Answers that are no success leave it as a [`Fault`] inside the error, except the few
//! that the clients above act upon themselves.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::future::{Either, select};
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, IF_NONE_MATCH, RANGE};
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};

use super::fault::{Fault, FaultKind};
use super::meter::{Meter, RequestRecord};
use super::normalise::{asked_range, body_limit, check_headers, normalise_range, too_long};
use super::permits::Permits;
use super::trust::Trust;
use crate::env::EnvRef;

/// Requests in flight to one target (design §8).
const IN_FLIGHT: usize = 6;
/// Without another limit a request may take this long in milliseconds, and longer for bodies.
const TIMEOUT_MS: u64 = 30_000;
/// Slowest acceptable transfer: this many bytes a millisecond.
const SLOWEST: u64 = 64;

/// Headers sent to one origin only.
#[derive(Clone, Default)]
pub struct OriginHeaders {
    /// `scheme://host:port` as in a URL.
    pub origin: String,
    /// Names and values; values may be secrets.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// The service; see the module.
pub struct StoreService {
    transport: HttpClient,
    meter: Arc<Meter>,
    env: EnvRef,
    permits: Permits,
    timeout_ms: u64,
    headers: OriginHeaders,
    identity: bool,
    trust: Option<Trust>,
    tell_headers: bool,
}

/// What tells how a server behaves towards pages and clocks, and of its encodings.
const TELLING: [&str; 7] = [
    "access-control-allow-origin",
    "access-control-expose-headers",
    "accept-ranges",
    "content-encoding",
    "content-range",
    "date",
    "etag",
];

/// A server may say of itself that it creates atomically.
const DECLARED: &str = "whetstone-create-if-absent";

impl fmt::Debug for StoreService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreService")
    }
}

/// Gives object_store's builders a client that exists already.
#[derive(Debug, Clone)]
pub struct Connector(pub HttpClient);

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(self.0.clone())
    }
}

impl StoreService {
    /// A service over `transport`, counting into `meter`.
    pub fn new(transport: HttpClient, meter: Arc<Meter>, env: EnvRef) -> StoreService {
        StoreService {
            transport,
            meter,
            env,
            permits: Permits::new(IN_FLIGHT),
            timeout_ms: TIMEOUT_MS,
            headers: OriginHeaders::default(),
            identity: true,
            trust: None,
            tell_headers: false,
        }
    }

    /// Sets the time limit of a request without a body, in milliseconds.
    #[must_use]
    pub fn with_timeout_ms(mut self, ms: Option<u64>) -> StoreService {
        self.timeout_ms = ms.unwrap_or(TIMEOUT_MS);
        self
    }

    /// Headers for one origin.
    #[must_use]
    pub fn with_headers(mut self, headers: OriginHeaders) -> StoreService {
        self.headers = headers;
        self
    }

    /// Whether to ask for unencoded bodies; browsers do not let us.
    #[must_use]
    pub fn with_identity(mut self, identity: bool) -> StoreService {
        self.identity = identity;
        self
    }

    /// Where to note what the server says of its create-if-absent.
    #[must_use]
    pub(super) fn with_trust(mut self, trust: Trust) -> StoreService {
        self.trust = Some(trust);
        self
    }

    /// Whether to report headers of answers to the hook.
    #[must_use]
    pub fn with_headers_told(mut self, tell: bool) -> StoreService {
        self.tell_headers = tell;
        self
    }

    fn prepare(&self, request: &mut HttpRequest) {
        if !self.headers.headers.is_empty() && origin(request.uri()).as_deref() == Some(self.headers.origin.as_str()) {
            for (name, value) in &self.headers.headers {
                // A signature beats a general Authorization header.
                if name != AUTHORIZATION || !request.headers().contains_key(AUTHORIZATION) {
                    request.headers_mut().insert(name.clone(), value.clone());
                }
            }
        }
        if self.identity && request.method() == Method::GET && !request.headers().contains_key(ACCEPT_ENCODING) {
            request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
    }

    /// Sends and reads the whole (bounded) body.
    async fn exchange(&self, request: HttpRequest, sent: &Sent) -> Result<(http::response::Parts, Bytes), Fault> {
        let answer = self.transport.execute(request).await.map_err(|error| fault_of(&sent.method, &error))?;
        let (parts, body) = answer.into_parts();
        let status = parts.status.as_u16();
        if parts.status.is_success() {
            check_headers(&sent.method, sent.range.as_ref(), status, &parts.headers)?;
        }
        if let Some(trust) = &self.trust
            && parts.headers.get(DECLARED).is_some_and(|value| value == "atomic")
        {
            trust.declared("the server says that it creates atomically");
        }
        let limit = body_limit(sent.range.as_ref(), status, &parts.headers);
        match read_body(body, limit).await {
            Ok(Some(body)) => Ok((parts, body)),
            // The text of an error page is only quoted: what was read of it is enough.
            Ok(None) if !parts.status.is_success() => Ok((parts, Bytes::new())),
            Ok(None) => Err(too_long(&sent.method, sent.range.as_ref(), status)),
            Err(error) => Err(fault_of(&sent.method, &error)),
        }
    }
}

/// What a request is, kept for the record and for judging the answer.
struct Sent {
    method: String,
    path: String,
    range: Option<Range<u64>>,
    bytes: u64,
    conditional: bool,
}

/// `scheme://authority` of an absolute URI.
pub fn origin(uri: &Uri) -> Option<String> {
    let authority = uri.authority()?.as_str();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    Some(format!("{}://{}", uri.scheme_str()?, host).to_ascii_lowercase())
}

fn fault_of(method: &str, error: &HttpError) -> Fault {
    let mut at: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(e) = at {
        if let Some(fault) = e.downcast_ref::<Fault>() {
            return fault.clone();
        }
        at = e.source();
    }
    let kind = match error.kind() {
        HttpErrorKind::Connect => FaultKind::Connect,
        HttpErrorKind::Timeout => FaultKind::Timeout,
        _ => FaultKind::Interrupted,
    };
    Fault::new(kind, method, "")
}

fn http_error(fault: Fault) -> HttpError {
    let kind = match fault.kind {
        FaultKind::Connect => HttpErrorKind::Connect,
        FaultKind::Timeout => HttpErrorKind::Timeout,
        FaultKind::Interrupted => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, fault)
}

/// The body, or `None` when it is longer than `limit`.
async fn read_body(body: HttpResponseBody, limit: u64) -> Result<Option<Bytes>, HttpError> {
    let mut body = body;
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    let mut total = 0u64;
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame?.into_data() else { continue };
        total = total.saturating_add(chunk.len() as u64);
        if total > limit {
            return Ok(None);
        }
        match &first {
            None => first = Some(chunk),
            Some(head) => {
                if rest.is_empty() {
                    rest.extend_from_slice(head);
                }
                rest.extend_from_slice(&chunk);
            }
        }
    }
    Ok(Some(if rest.is_empty() { first.unwrap_or_default() } else { rest.freeze() }))
}

/// The machine-readable code of an S3 error page: safe to show, unlike the rest of it.
fn error_code(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..body.len().min(4096)).unwrap_or_default());
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map_or("", |(code, _)| code);
    code.chars().filter(char::is_ascii_alphanumeric).take(64).collect()
}

#[async_trait]
impl HttpService for StoreService {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let sent = Sent {
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            range: request.headers().get(RANGE).and_then(|v| v.to_str().ok()).and_then(asked_range),
            bytes: request.body().content_length() as u64,
            conditional: request.headers().contains_key(IF_NONE_MATCH)
                || request.headers().contains_key("x-goog-if-generation-match"),
        };
        self.prepare(&mut request);
        let permit = self.permits.acquire().await;
        let start = self.env.now_ms();
        let expected = sent.bytes.saturating_add(sent.range.as_ref().map_or(0, |r| r.end - r.start));
        let limit = self.env.sleep(self.timeout_ms.saturating_add(expected / SLOWEST));
        let outcome = {
            let exchange = std::pin::pin!(self.exchange(request, &sent));
            match select(exchange, limit).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right(((), _)) => Err(Fault::new(FaultKind::Timeout, &sent.method, "")),
            }
        };
        drop(permit);
        self.meter.record(&RequestRecord {
            method: sent.method.clone(),
            path: sent.path.clone(),
            range: sent.range.clone(),
            bytes: outcome.as_ref().map_or(0, |(_, body)| body.len() as u64),
            bytes_written: outcome.as_ref().map_or(0, |(parts, _)| if parts.status.is_success() { sent.bytes } else { 0 }),
            ms: u64::try_from(self.env.now_ms().saturating_sub(start)).unwrap_or(0),
            status: outcome.as_ref().map_or(0, |(parts, _)| parts.status.as_u16()),
            headers: match &outcome {
                Ok((parts, _)) if self.tell_headers => telling(&parts.headers),
                _ => Vec::new(),
            },
        });
        let (parts, body) = outcome.map_err(http_error)?;
        judge(&sent, parts, body).map_err(http_error)
    }
}

fn telling(headers: &http::HeaderMap) -> Vec<(&'static str, String)> {
    let text = |name: &'static str| Some((name, headers.get(name)?.to_str().ok()?.to_owned()));
    TELLING.into_iter().filter_map(text).collect()
}

fn judge(sent: &Sent, mut parts: http::response::Parts, body: Bytes) -> Result<HttpResponse, Fault> {
    let status = parts.status.as_u16();
    let passed = match status {
        200..=299 => true,
        404 if matches!(error_code(&body).as_str(), "NoSuchBucket" | "ContainerNotFound" | "BucketNotFound") => {
            return Err(Fault::new(FaultKind::NoBucket, &sent.method, ""));
        }
        // The clients above create missing folders, or know an absent object, by these.
        404 => true,
        409 => !sent.conditional,
        405 => sent.method == "MKCOL",
        _ => false,
    };
    if !passed {
        return Err(Fault::new(FaultKind::Status(status), &sent.method, error_code(&body)));
    }
    let body = match &sent.range {
        Some(asked) if parts.status.is_success() => {
            let keep = normalise_range(&sent.method, asked, status, &mut parts.headers, body.len() as u64)?;
            parts.status = StatusCode::PARTIAL_CONTENT;
            let range = usize::try_from(keep.start).ok().zip(usize::try_from(keep.end).ok());
            let (start, end) = range.filter(|(start, end)| start <= end && *end <= body.len()).unwrap_or((0, body.len()));
            body.slice(start..end)
        }
        _ => body,
    };
    Ok(http::Response::from_parts(parts, HttpResponseBody::from(body)))
}
