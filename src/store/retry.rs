//! Retrying what may be repeated: bounded, jittered, waiting through the environment.

use std::future::Future;

use crate::env::EnvRef;
use crate::error::{Error, ErrorCode, Result};

/// Attempts in all, the first included.
const ATTEMPTS: u32 = 4;
/// The same after silence: a stalled connection deserves a second one, a silent server would be waited for minutes.
const ATTEMPTS_AFTER_SILENCE: u32 = 2;
/// First wait in milliseconds; doubles, jittered by half.
const FIRST_WAIT_MS: f64 = 150.0;

/// Whether `error` says that trying again may help.
pub fn is_transient(error: &Error) -> bool {
    error.detail().get("transient").and_then(serde_json::Value::as_bool) == Some(true)
}

fn allowed(error: &Error) -> u32 {
    if error.code() == ErrorCode::Timeout { ATTEMPTS_AFTER_SILENCE } else { ATTEMPTS }
}

/// Runs `attempt` until it succeeds, fails for good, or was tried often enough. Never for create-if-absent.
pub async fn with_retries<T, F: Future<Output = Result<T>>>(env: &EnvRef, mut attempt: impl FnMut() -> F) -> Result<T> {
    let mut tries = 1;
    loop {
        match attempt().await {
            Err(error) if tries < allowed(&error) && is_transient(&error) => {
                let wait = FIRST_WAIT_MS * f64::from(1u32 << (tries - 1)) * (0.5 + env.random());
                env.sleep(wait as u64).await;
                tries += 1;
            }
            Err(error) => return Err(error.with("attempts", tries)),
            done => return done,
        }
    }
}
