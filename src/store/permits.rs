//! At most so many requests in flight, without a runtime.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;

#[derive(Debug)]
struct State {
    free: usize,
    waiting: VecDeque<oneshot::Sender<Permit>>,
}

/// Hands out a fixed number of permits, first come first served.
#[derive(Clone, Debug)]
pub struct Permits(Arc<Mutex<State>>);

/// The right to one request; given back when dropped.
#[derive(Debug)]
pub struct Permit(Option<Permits>);

impl Permits {
    /// `count` permits.
    pub fn new(count: usize) -> Permits {
        Permits(Arc::new(Mutex::new(State { free: count, waiting: VecDeque::new() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a permit.
    pub async fn acquire(&self) -> Permit {
        let turn = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Permit(Some(self.clone()));
            }
            let (send, turn) = oneshot::channel();
            state.waiting.push_back(send);
            turn
        };
        // The sender lives in the state that we hold: it cannot vanish.
        turn.await.unwrap_or(Permit(None))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(permits) = self.0.take() else { return };
        loop {
            let next = {
                let mut state = permits.state();
                match state.waiting.pop_front() {
                    Some(next) => next,
                    None => {
                        state.free += 1;
                        return;
                    }
                }
            };
            match next.send(Permit(Some(permits.clone()))) {
                Ok(()) => return,
                // The waiter was dropped. Defuse the permit that comes back and try the next one.
                Err(mut unused) => unused.0 = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::executor::block_on;

    #[test]
    fn waiters_get_their_turn_and_dropped_waiters_lose_it() {
        let permits = Permits::new(2);
        let a = block_on(permits.acquire());
        let _b = block_on(permits.acquire());
        let mut dropped = Box::pin(permits.acquire());
        assert!(dropped.as_mut().now_or_never().is_none());
        let mut third = Box::pin(permits.acquire());
        assert!(third.as_mut().now_or_never().is_none());
        drop(dropped);
        drop(a);
        let c = third.now_or_never().expect("the permit passed on");
        drop(c);
        assert_eq!(permits.state().free, 1);
    }
}
