//! Counting and reporting requests.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

/// Requests since a store was opened (all handles of one target together).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Requests sent, every attempt counted.
    pub count: u64,
    /// Bytes received in bodies.
    pub bytes: u64,
    /// Bytes sent in bodies.
    #[serde(default)]
    pub bytes_written: u64,
}

/// One finished request, for logs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestRecord {
    /// `GET`, `PUT`, `DELETE`, `PROPFIND`, …; `LIST` on stores without HTTP.
    pub method: String,
    /// Path on the server or below the root; never a query string, never credentials.
    pub path: String,
    /// Bytes asked for; `None` = the whole object.
    pub range: Option<Range<u64>>,
    /// Body bytes received.
    pub bytes: u64,
    /// Body bytes sent.
    pub bytes_written: u64,
    /// Wall time in milliseconds.
    pub ms: u64,
    /// HTTP status; 0 = no answer. Stores without HTTP report the nearest status.
    pub status: u16,
    /// Headers of the answer that tell how a store behaves, where the descriptor asks for them (`tell_headers`).
    pub headers: Vec<(&'static str, String)>,
}

/// Called after each request.
pub type RequestHook = Arc<dyn Fn(&RequestRecord) + Send + Sync>;

/// The counters behind [`RequestCounts`] and the log hook.
#[derive(Default)]
pub struct Meter {
    count: AtomicU64,
    bytes: AtomicU64,
    bytes_written: AtomicU64,
    hook: RwLock<Option<RequestHook>>,
}

impl Meter {
    /// Counts a finished request and tells the hook.
    pub fn record(&self, record: &RequestRecord) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(record.bytes, Ordering::Relaxed);
        self.bytes_written.fetch_add(record.bytes_written, Ordering::Relaxed);
        let hook = self.hook.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(hook) = hook {
            hook(record);
        }
    }

    /// Replaces the log hook.
    pub fn set_hook(&self, hook: Option<RequestHook>) {
        *self.hook.write().unwrap_or_else(PoisonError::into_inner) = hook;
    }

    /// The counts so far.
    pub fn counts(&self) -> RequestCounts {
        RequestCounts {
            count: self.count.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
        }
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Meter({:?})", self.counts())
    }
}
