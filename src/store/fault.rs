//! What went wrong on the wire, carried through object_store's errors, and the error it becomes.

use std::error::Error as StdError;
use std::fmt;

use crate::error::{Error, ErrorCode};

/// How a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The server answered with this status, which is no success.
    Status(u16),
    /// No connection, or (in a browser) an answer that cross-origin rules hide.
    Connect,
    /// The connection broke while the body was coming.
    Interrupted,
    /// No answer in time.
    Timeout,
    /// The server does not serve byte ranges as asked.
    Ranges,
    /// The server encodes the bytes of a range.
    Encoding,
    /// The answer is larger than was asked for or than is accepted.
    TooLarge,
    /// The request was stopped by the caller.
    Aborted,
    /// The answer to a listing is none.
    Listing,
    /// There is no such bucket or container.
    NoBucket,
}

/// A failed request. Holds no URL, no header, no credentials: only what may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// How.
    pub kind: FaultKind,
    /// HTTP method or the like.
    pub method: String,
    /// One clause for a person; may be empty.
    pub what: String,
}

impl Fault {
    /// A fault of one request.
    pub fn new(kind: FaultKind, method: &str, what: impl Into<String>) -> Fault {
        Fault { kind, method: method.to_owned(), what: what.into() }
    }

    /// Whether the same request may succeed when sent again a little later.
    pub fn is_transient(&self) -> bool {
        match self.kind {
            FaultKind::Status(status) => matches!(status, 408 | 429 | 500 | 502 | 503 | 504),
            FaultKind::Connect | FaultKind::Interrupted | FaultKind::Timeout => true,
            FaultKind::Ranges
            | FaultKind::Encoding
            | FaultKind::TooLarge
            | FaultKind::Aborted
            | FaultKind::Listing
            | FaultKind::NoBucket => false,
        }
    }

    /// HTTP status, when there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self.kind {
            FaultKind::Status(status) => Some(status),
            _ => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.method)?;
        match self.kind {
            FaultKind::Status(status) => write!(f, "status {status}")?,
            FaultKind::Connect => f.write_str("no connection")?,
            FaultKind::Interrupted => f.write_str("connection broke")?,
            FaultKind::Timeout => f.write_str("no answer in time")?,
            FaultKind::Ranges => f.write_str("ranges not served")?,
            FaultKind::Encoding => f.write_str("range is content-encoded")?,
            FaultKind::TooLarge => f.write_str("answer too large")?,
            FaultKind::Aborted => f.write_str("aborted")?,
            FaultKind::Listing => f.write_str("no listing")?,
            FaultKind::NoBucket => f.write_str("no such bucket")?,
        }
        if self.what.is_empty() { Ok(()) } else { write!(f, " ({})", self.what) }
    }
}

impl StdError for Fault {}

impl From<Fault> for object_store::Error {
    fn from(fault: Fault) -> object_store::Error {
        object_store::Error::Generic { store: "whetstone", source: Box::new(fault) }
    }
}

/// The fault inside an object_store error, found by walking its sources; made from its variant when there is none.
pub fn fault_of(method: &str, error: &object_store::Error) -> Option<Fault> {
    let mut at: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(e) = at {
        if let Some(fault) = e.downcast_ref::<Fault>() {
            return Some(fault.clone());
        }
        at = e.source();
    }
    let status = match error {
        object_store::Error::NotFound { .. } => 404,
        object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. } => 412,
        object_store::Error::NotModified { .. } => 304,
        object_store::Error::PermissionDenied { .. } => 403,
        object_store::Error::Unauthenticated { .. } => 401,
        object_store::Error::NotSupported { .. } | object_store::Error::NotImplemented { .. } => 501,
        _ => return None,
    };
    Some(Fault::new(FaultKind::Status(status), method, ""))
}

/// Whether the object asked for does not exist.
pub fn is_not_found(error: &Error) -> bool {
    error.detail().get("not_found").and_then(serde_json::Value::as_bool) == Some(true)
}

/// Whether the server refuses to list, which is different from an empty listing.
pub fn is_listing_refused(error: &Error) -> bool {
    error.detail().get("listing_refused").and_then(serde_json::Value::as_bool) == Some(true)
}

/// The error of a failed `method` on `object` (path below the root).
pub fn store_error(method: &str, object: &str, error: &object_store::Error) -> Error {
    match fault_of(method, error) {
        Some(fault) => fault_error(object, &fault),
        None => match error {
            object_store::Error::InvalidPath { .. } => {
                Error::corrupt(object, "is not a name that an object can have").with("method", method)
            }
            // Text of unknown origin may quote a URL with a signature in it: it is not repeated.
            _ => Error::new(ErrorCode::StoreUnreachable, format!("{method} {object} failed in a way that is not understood"))
                .with("object", object)
                .with("method", method),
        },
    }
}

/// Words for "no room".
fn full(word: &str) -> bool {
    matches!(word, "QuotaExceeded" | "XMinioStorageFull" | "InsufficientStorage" | "ServiceQuotaExceeded")
}

/// What to do about a refusal, by the service's own word for it.
fn remedy(word: &str) -> Option<&'static str> {
    Some(match word {
        "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" | "RequestExpired" => {
            "the credentials have expired; give fresh ones, or a credentials() function that does"
        }
        "RequestTimeTooSkewed" => "the clock of this machine and that of the store are too far apart; set it",
        "InvalidAccessKeyId" | "InvalidToken" | "SignatureDoesNotMatch" => "the credentials are not those of this store",
        "AuthorizationHeaderMalformed" | "PermanentRedirect" | "TemporaryRedirect" => "the bucket is in another region; name it",
        "AuthenticationFailed" | "AuthorizationPermissionMismatch" | "AuthorizationFailure" | "NoAuthenticationInformation" => {
            "the shared access signature has expired, or does not permit this; make a new one"
        }
        "AccountProblem" | "AccountIsDisabled" => "the account cannot be written to; ask its owner",
        _ => return None,
    })
}

/// The error of a fault on `object`.
pub fn fault_error(object: &str, fault: &Fault) -> Error {
    let method = fault.method.as_str();
    let what = if fault.what.is_empty() { String::new() } else { format!(" ({})", fault.what) };
    let (code, text) = match fault.kind {
        FaultKind::Status(_) if full(&fault.what) => {
            (ErrorCode::StoreFull, format!("the store has no room for {object}{what}; free some, or raise the quota"))
        }
        FaultKind::Status(400..=499) if remedy(&fault.what).is_some() => {
            let remedy = remedy(&fault.what).unwrap_or_default();
            (ErrorCode::StoreDenied, format!("the store denies {method} {object}{what}: {remedy}"))
        }
        FaultKind::NoBucket => (
            ErrorCode::TableNotFound,
            format!(
                "{method} {object}: there is no such bucket or container; check its name, region and endpoint (it may have been deleted)"
            ),
        ),
        FaultKind::Listing => (ErrorCode::StoreUnreachable, format!("the store does not list {object}{what}")),
        FaultKind::Status(404 | 410) => {
            return Error::corrupt(object, "there is no such object").with("not_found", true).with("status", 404);
        }
        FaultKind::Status(status @ (401 | 403)) => {
            let hint = match method {
                "PUT" | "DELETE" => "; these credentials may read but not write here, or not under this name",
                _ => "",
            };
            (ErrorCode::StoreDenied, format!("the store denies {method} {object} (status {status}){what}{hint}"))
        }
        FaultKind::Status(416) => {
            (ErrorCode::CorruptFile, format!("{object}: shorter than recorded, the store has no such range{what}"))
        }
        FaultKind::Status(413 | 507) => (ErrorCode::StoreFull, format!("the store has no room for {object}{what}")),
        FaultKind::Status(status @ (300..=399)) => (
            ErrorCode::StoreUnreachable,
            format!("{method} {object} is redirected (status {status}); name the final address and region{what}"),
        ),
        FaultKind::Status(status) => {
            (ErrorCode::StoreUnreachable, format!("{method} {object} is answered with status {status}{what}"))
        }
        FaultKind::Connect => (
            ErrorCode::StoreUnreachable,
            format!(
                "{method} {object}: the store does not answer, or (in a browser) its CORS rules do not let this page see the \
                 answer{what}"
            ),
        ),
        FaultKind::Interrupted => {
            (ErrorCode::StoreUnreachable, format!("{method} {object}: the connection broke before the end{what}"))
        }
        FaultKind::Timeout => (ErrorCode::Timeout, format!("{method} {object}: no answer in time{what}")),
        FaultKind::Ranges => (ErrorCode::StoreRanges, format!("the store does not serve byte ranges of {object}{what}")),
        FaultKind::Encoding => {
            (ErrorCode::StoreEncoding, format!("the store sends {object} content-encoded, which garbles ranges{what}"))
        }
        FaultKind::TooLarge => (ErrorCode::CorruptFile, format!("{object}: larger than can be read{what}")),
        FaultKind::Aborted => (ErrorCode::Aborted, format!("{method} {object} was stopped{what}")),
    };
    let error = Error::new(code, text).with("object", object).with("method", method).with("transient", fault.is_transient());
    match fault.status() {
        Some(status) => error.with("status", status),
        None => error,
    }
}
