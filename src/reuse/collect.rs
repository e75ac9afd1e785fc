//! Which row maps nobody names any more (spec fragment-reuse §13).

use serde::{Deserialize, Serialize};

/// What is known about a folder below `_fri/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MapState {
    /// A version that is still there names it.
    Referenced,
    /// Nobody names it, but it is too young: a commit may be on its way.
    Young,
    /// Nobody names it, and it is not known how old it is.
    AgeUnknown,
    /// Nobody names it, and it is old.
    Aged,
}

/// Age from which an unreferenced row map may go, milliseconds: seven days, as Lance waits.
pub const MIN_AGE_MS: i64 = 7 * 24 * 3600 * 1000;

/// The state of a row map whose youngest file was written at `modified_ms`, seen at `now_ms`.
pub fn state(referenced: bool, modified_ms: Option<i64>, now_ms: i64, min_age_ms: i64) -> MapState {
    match modified_ms {
        _ if referenced => MapState::Referenced,
        None => MapState::AgeUnknown,
        Some(at) if now_ms.saturating_sub(at) >= min_age_ms => MapState::Aged,
        Some(_) => MapState::Young,
    }
}
