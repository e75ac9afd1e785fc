//! Time, randomness and waiting: the only door to them, so that tests can replace all three.

use std::sync::Arc;

use futures::future::BoxFuture;
use uuid::Uuid;

/// What the engine needs from the world besides the store.
pub trait Env: Send + Sync {
    /// Wall clock, milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;
    /// A fresh random (version 4) uuid.
    fn uuid(&self) -> Uuid;
    /// Uniform in `[0, 1)`, for jitter only.
    fn random(&self) -> f64;
    /// Resolves after about `ms` milliseconds.
    fn sleep(&self, ms: u64) -> BoxFuture<'static, ()>;
}

/// Shared handle to an [`Env`].
pub type EnvRef = Arc<dyn Env>;
