//! [`Trust`]: whether a store's create-if-absent may decide a commit (design §8).
//!
//! A server that looks conforming one request at a time may still tell several racing writers that each of them created the
//! object. So a store has to be known to be atomic by what it is, or to have been raced; everything else is read-only.

use std::sync::{Arc, Mutex, PoisonError};

use url::Url;

use crate::error::{Error, ErrorCode, Result};

/// What is known of a store's create-if-absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commits {
    /// It is atomic; why that is known.
    Atomic(String),
    /// Nobody looked yet.
    Unproven,
    /// It is not atomic; what was seen.
    Refused(String),
}

/// Shared by all handles of one store.
#[derive(Clone, Debug)]
pub(super) struct Trust {
    state: Arc<Mutex<Commits>>,
    anyway: bool,
}

impl Trust {
    pub(super) fn new(commits: Commits) -> Trust {
        Trust { state: Arc::new(Mutex::new(commits)), anyway: false }
    }

    pub(super) fn atomic(why: &str) -> Trust {
        Trust::new(Commits::Atomic(why.to_owned()))
    }

    /// The caller takes the risk.
    pub(super) fn or_anyway(mut self, anyway: bool) -> Trust {
        self.anyway = anyway;
        self
    }

    pub(super) fn commits(&self) -> Commits {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, commits: Commits) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = commits;
    }

    /// What a server says of itself; it does not undo what was seen.
    pub(super) fn declared(&self, why: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == Commits::Unproven {
            *state = Commits::Atomic(why.to_owned());
        }
    }

    pub(super) fn anyway(&self) -> bool {
        self.anyway
    }

    pub(super) fn check(&self, uri: &str) -> Result<()> {
        let why = match self.commits() {
            _ if self.anyway => return Ok(()),
            Commits::Atomic(_) => return Ok(()),
            Commits::Refused(why) => why,
            Commits::Unproven => {
                "it is not known whether only one of several racing writers can create an object there; run the store check"
                    .to_owned()
            }
        };
        let text = format!("{uri} is read-only: {why}. Nothing was changed");
        Err(Error::new(ErrorCode::StoreUnsafe, text).with("uri", uri))
    }
}

/// Services whose documentation promises an atomic create-if-absent, by host name.
pub(super) fn promised(url: &Url) -> Option<&'static str> {
    if url.scheme() != "https" {
        return None;
    }
    let host = url.host_str()?;
    let below = |domain: &str| host == domain || host.strip_suffix(domain).is_some_and(|front| front.ends_with('.'));
    const SERVICES: [(&str, &str); 7] = [
        ("amazonaws.com", "Amazon S3 creates with If-None-Match atomically"),
        ("amazonaws.com.cn", "Amazon S3 creates with If-None-Match atomically"),
        ("r2.cloudflarestorage.com", "R2 creates with If-None-Match atomically"),
        ("blob.core.windows.net", "Azure creates blobs with If-None-Match atomically"),
        ("blob.core.usgovcloudapi.net", "Azure creates blobs with If-None-Match atomically"),
        ("blob.core.chinacloudapi.cn", "Azure creates blobs with If-None-Match atomically"),
        ("storage.googleapis.com", "Google Cloud Storage creates at generation 0 atomically"),
    ];
    SERVICES.iter().find(|(domain, _)| below(domain)).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_services_by_their_own_names_only() {
        let known = |text: &str| promised(&Url::parse(text).unwrap()).is_some();
        assert!(known("https://b.s3.eu-west-1.amazonaws.com/t") && known("https://storage.googleapis.com/b/t"));
        for text in [
            "https://amazonaws.com.evil.example/t",
            "https://notamazonaws.com/",
            "http://s3.amazonaws.com/",
            "https://minio.example/",
        ] {
            assert!(!known(text), "{text}");
        }
    }

    #[test]
    fn what_was_seen_beats_what_is_said() {
        let trust = Trust::new(Commits::Unproven);
        assert_eq!(trust.check("x").unwrap_err().code(), ErrorCode::StoreUnsafe);
        trust.set(Commits::Refused("several created it".to_owned()));
        trust.declared("says so");
        assert!(trust.check("x").unwrap_err().message().contains("several created it"));
        assert!(trust.clone().or_anyway(true).check("x").is_ok());
        let trust = Trust::new(Commits::Unproven);
        trust.declared("says so");
        assert!(trust.check("x").is_ok());
    }
}
