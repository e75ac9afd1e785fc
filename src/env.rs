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

/// The environment of the process: system clock, system randomness, real waiting.
pub fn system() -> EnvRef {
    Arc::new(system::System)
}

fn uuid_from(bytes: [u8; 16]) -> Uuid {
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

/// System randomness. Without it no uuid is unique, and files of others could be overwritten: better no process at all.
fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if getrandom::fill(&mut bytes).is_err() {
        std::process::abort();
    }
    bytes
}

/// 53 random bits as a fraction.
fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(not(target_arch = "wasm32"))]
mod system {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use futures::FutureExt;
    use futures::future::BoxFuture;
    use uuid::Uuid;

    /// Natively: std's clock, the system's randomness, a thread per wait.
    pub(super) struct System;

    impl super::Env for System {
        fn now_ms(&self) -> i64 {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        }

        fn uuid(&self) -> Uuid {
            super::uuid_from(super::random_bytes())
        }

        fn random(&self) -> f64 {
            super::fraction(u64::from_le_bytes(super::random_bytes()))
        }

        fn sleep(&self, ms: u64) -> BoxFuture<'static, ()> {
            let (done, wait) = futures::channel::oneshot::channel::<()>();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(ms));
                // The waiter may be gone; then nobody wants to know.
                let _ = done.send(());
            });
            wait.map(|_| ()).boxed()
        }
    }
}

#[cfg(target_arch = "wasm32")]
mod system {
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use js_sys::{Function, Promise, Reflect};
    use send_wrapper::SendWrapper;
    use uuid::Uuid;
    use wasm_bindgen::{JsCast, JsValue};
    use wasm_bindgen_futures::JsFuture;

    /// In JavaScript: `Date.now`, `crypto`, `setTimeout`, looked up on the global object so that pages, workers, Node and
    /// workerd all serve.
    pub(super) struct System;

    fn global(name: &str) -> Option<Function> {
        Reflect::get(&js_sys::global(), &JsValue::from_str(name)).ok()?.dyn_into().ok()
    }

    /// Clears the timer when the wait is dropped: a pending one would keep Node alive.
    struct Timer(JsValue);

    impl Drop for Timer {
        fn drop(&mut self) {
            if let Some(clear) = global("clearTimeout") {
                let _ = clear.call1(&JsValue::UNDEFINED, &self.0);
            }
        }
    }

    impl super::Env for System {
        fn now_ms(&self) -> i64 {
            js_sys::Date::now() as i64
        }

        fn uuid(&self) -> Uuid {
            super::uuid_from(super::random_bytes())
        }

        fn random(&self) -> f64 {
            js_sys::Math::random()
        }

        fn sleep(&self, ms: u64) -> BoxFuture<'static, ()> {
            SendWrapper::new(async move {
                let Some(set) = global("setTimeout") else { return };
                let mut timer = JsValue::UNDEFINED;
                let promise = Promise::new(&mut |resolve, _| {
                    let delay = JsValue::from_f64(ms.min(i32::MAX as u64) as f64);
                    timer = set.call2(&JsValue::UNDEFINED, &resolve, &delay).unwrap_or(JsValue::UNDEFINED);
                });
                let _timer = Timer(timer);
                let _ = JsFuture::from(promise).await;
            })
            .boxed()
        }
    }
}

/// A deterministic environment for tests: the clock moves only by waiting, waits end at once, uuids come from a seed.
pub struct TestEnv {
    state: std::sync::Mutex<(i64, u64)>,
}

impl TestEnv {
    /// Starts at `now_ms`; the same `seed` gives the same uuids and random numbers.
    pub fn new(now_ms: i64, seed: u64) -> TestEnv {
        TestEnv { state: std::sync::Mutex::new((now_ms, seed)) }
    }

    fn with<T>(&self, f: impl FnOnce(&mut (i64, u64)) -> T) -> T {
        let mut guard = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        f(&mut guard)
    }

    /// splitmix64, enough for tests.
    fn next(&self) -> u64 {
        self.with(|s| {
            s.1 = s.1.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = s.1;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        })
    }
}

impl Env for TestEnv {
    fn now_ms(&self) -> i64 {
        self.with(|s| s.0)
    }

    fn uuid(&self) -> Uuid {
        let wide = u128::from(self.next()) << 64 | u128::from(self.next());
        uuid_from(wide.to_be_bytes())
    }

    fn random(&self) -> f64 {
        fraction(self.next())
    }

    fn sleep(&self, ms: u64) -> BoxFuture<'static, ()> {
        self.with(|s| s.0 = s.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)));
        Box::pin(std::future::ready(()))
    }
}
