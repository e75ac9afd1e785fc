//! [`StoreDescriptor`]: everything needed to open a store again elsewhere, as plain data.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Which kind of store a target is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// Found out: by the address, then by asking (design §6).
    #[default]
    Auto,
    /// HTTP with PROPFIND.
    Webdav,
    /// HTTP that only serves files.
    Static,
    /// S3-compatible.
    S3,
    /// Azure Blob storage.
    Azure,
    /// Google Cloud Storage.
    Gcs,
    /// An empty store in memory, shared by nobody.
    Memory,
    /// The host's own files through callbacks; `url` is the path of the root in them.
    Host,
}

/// How to open a store. JSON, cloneable, serde: crosses to workers and queues as it is.
///
/// It may hold keys; it is never stored in a plan or a task, and its `Debug` shows none.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreDescriptor {
    /// Kind of store.
    pub kind: TargetKind,
    /// Address of the table root.
    pub url: String,
    /// S3: region; us-east-1 when nothing says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// S3, GCS: `scheme://host[:port]` of another provider; Azure: that of the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// S3: key id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// S3: secret key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_access_key: Option<String>,
    /// S3: session token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
    /// Azure: shared access signature, the query as the portal gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sas: Option<String>,
    /// GCS: OAuth access token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// S3, Azure, GCS: send nothing that identifies anyone; by default when there are no keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anonymous: Option<bool>,
    /// S3: the bucket is in the host name of the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_hosted: Option<bool>,
    /// S3: sign reads into the query (saves a preflight for each URL); by default in browsers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sign_queries: Option<bool>,
    /// HTTP: user of Basic authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// HTTP: password of Basic authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// HTTP: further headers, sent to the origin of `url` only.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Time limit of a request in milliseconds; bodies get more by their size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Base paths (table-format §4.7) and where they are from here, by longest prefix.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bases: BTreeMap<String, String>,
    /// Whether base paths at other origins may be read (without credentials).
    pub other_origins: bool,
    /// Commit on stores whose create-if-absent is not known to be atomic.
    pub unsafe_commits: bool,
    /// Host: its callbacks are known to create atomically.
    pub atomic_create: bool,
    /// Report headers of answers to the request hook.
    pub tell_headers: bool,
}

impl StoreDescriptor {
    /// A descriptor of `url` with everything else left to be found out.
    pub fn of(url: impl Into<String>) -> StoreDescriptor {
        StoreDescriptor { url: url.into(), ..Default::default() }
    }

    /// The same without anything secret: for another origin.
    #[must_use]
    pub fn without_secrets(&self, url: &str) -> StoreDescriptor {
        StoreDescriptor {
            url: url.to_owned(),
            timeout_ms: self.timeout_ms,
            bases: self.bases.clone(),
            other_origins: self.other_origins,
            unsafe_commits: self.unsafe_commits,
            ..Default::default()
        }
    }
}

impl fmt::Debug for StoreDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may carry a user or a signature too.
        f.debug_struct("StoreDescriptor").field("kind", &self.kind).finish_non_exhaustive()
    }
}
