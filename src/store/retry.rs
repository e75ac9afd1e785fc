//! Retrying what may be repeated: bounded, jittered, waiting through the environment.

use std::future::Future;

use crate::env::EnvRef;
use crate::error::{Error, Result};

/// Attempts in all, the first included.
const ATTEMPTS: u32 = 4;
/// First wait in milliseconds; doubles, jittered by half.
const FIRST_WAIT_MS: f64 = 150.0;

/// Whether `error` says that trying again may help.
pub fn is_transient(error: &Error) -> bool {
    error.detail().get("transient").and_then(serde_json::Value::as_bool) == Some(true)
}

/// Runs `attempt` until it succeeds, fails for good, or was tried often enough. Never for create-if-absent.
pub async fn with_retries<T, F: Future<Output = Result<T>>>(env: &EnvRef, mut attempt: impl FnMut() -> F) -> Result<T> {
    let mut tries = 1;
    loop {
        match attempt().await {
            Err(error) if tries < ATTEMPTS && is_transient(&error) => {
                let wait = FIRST_WAIT_MS * f64::from(1u32 << (tries - 1)) * (0.5 + env.random());
                env.sleep(wait as u64).await;
                tries += 1;
            }
            Err(error) => return Err(error.with("attempts", tries)),
            done => return done,
        }
    }
}
