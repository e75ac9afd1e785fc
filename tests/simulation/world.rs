//! Virtual time, seeded chance and one thread: the same seed is the same run, request for request.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use futures::future::{BoxFuture, LocalBoxFuture};
use uuid::Uuid;
use whetstone::env::Env;

type Later = Box<dyn FnOnce() + Send>;

/// Clock, dice and what is to happen later.
pub struct World {
    inner: Mutex<Inner>,
}

struct Inner {
    now: i64,
    next: u64,
    dice: u64,
    timers: BinaryHeap<Reverse<(i64, u64)>>,
    wakers: HashMap<u64, Waker>,
    later: HashMap<u64, Later>,
    /// A hash of everything that was noted.
    trace: u64,
    log: Option<Vec<String>>,
}

/// When every run starts, Unix milliseconds.
pub const START: i64 = 1_800_000_000_000;

impl World {
    pub fn new(seed: u64, log: bool) -> Arc<World> {
        Arc::new(World {
            inner: Mutex::new(Inner {
                now: START,
                next: 0,
                dice: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xd1b5_4a32_d192_ed03,
                timers: BinaryHeap::new(),
                wakers: HashMap::new(),
                later: HashMap::new(),
                trace: 0xcbf2_9ce4_8422_2325,
                log: log.then(Vec::new),
            }),
        })
    }

    fn with<T>(&self, f: impl FnOnce(&mut Inner) -> T) -> T {
        f(&mut self.inner.lock().unwrap())
    }

    pub fn now(&self) -> i64 {
        self.with(|w| w.now)
    }

    pub fn random(&self) -> u64 {
        self.with(|w| {
            w.dice = w.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (w.dice ^ (w.dice >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        })
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.random() % bound.max(1)
    }

    /// True so many times in a thousand.
    pub fn chance(&self, per_mille: u64) -> bool {
        per_mille > 0 && self.below(1000) < per_mille
    }

    pub fn uuid(&self) -> Uuid {
        let wide = u128::from(self.random()) << 64 | u128::from(self.random());
        uuid::Builder::from_random_bytes(wide.to_be_bytes()).into_uuid()
    }

    pub fn sleep(self: &Arc<World>, ms: i64) -> Sleep {
        Sleep { world: self.clone(), at: self.now() + ms, timer: None }
    }

    /// Runs `effect` after `ms`, whoever is still there.
    pub fn later(&self, ms: i64, effect: Later) {
        self.with(|w| {
            w.next += 1;
            w.timers.push(Reverse((w.now + ms, w.next)));
            w.later.insert(w.next, effect);
        });
    }

    /// Takes something down: for the hash of the run, and for whoever looks at a failure.
    pub fn note(&self, what: impl FnOnce() -> String) {
        self.with(|w| {
            let text = format!("{:>9} {}", w.now - START, what());
            w.trace = text.bytes().fold(w.trace, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
            if let Some(log) = &mut w.log {
                log.push(text);
            }
        });
    }

    pub fn trace(&self) -> u64 {
        self.with(|w| w.trace)
    }

    pub fn log(&self) -> Vec<String> {
        self.with(|w| w.log.clone().unwrap_or_default())
    }

    /// Goes to the next thing that waits for its time; false when there is none.
    fn advance(&self) -> bool {
        let (effect, waker) = {
            let mut w = self.inner.lock().unwrap();
            let Some(Reverse((at, id))) = w.timers.pop() else { return false };
            w.now = w.now.max(at);
            (w.later.remove(&id), w.wakers.remove(&id))
        };
        if let Some(effect) = effect {
            effect();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }
}

/// Waits in virtual time.
pub struct Sleep {
    world: Arc<World>,
    at: i64,
    timer: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (world, at, timer) = (self.world.clone(), self.at, self.timer);
        world.with(|w| {
            if w.now >= at {
                return Poll::Ready(());
            }
            let id = timer.unwrap_or_else(|| {
                w.next += 1;
                w.timers.push(Reverse((at, w.next)));
                w.next
            });
            w.wakers.insert(id, cx.waker().clone());
            self.timer = Some(id);
            Poll::Pending
        })
    }
}

/// What one session takes for time and chance: its clock may be wrong.
pub struct SessionEnv {
    pub world: Arc<World>,
    pub skew: i64,
}

impl Env for SessionEnv {
    fn now_ms(&self) -> i64 {
        self.world.now() + self.skew
    }

    fn uuid(&self) -> Uuid {
        self.world.uuid()
    }

    fn random(&self) -> f64 {
        (self.world.random() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn sleep(&self, ms: u64) -> BoxFuture<'static, ()> {
        Box::pin(self.world.sleep(i64::try_from(ms).unwrap()))
    }
}

struct Notice {
    id: usize,
    queued: AtomicBool,
    ready: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for Notice {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            self.ready.lock().unwrap().push_back(self.id);
        }
    }
}

/// Runs the tasks to their end, and everything that was to happen later.
pub fn run(world: &Arc<World>, tasks: Vec<LocalBoxFuture<'_, ()>>) {
    let ready = Arc::new(Mutex::new(VecDeque::new()));
    let mut tasks: Vec<_> = tasks
        .into_iter()
        .enumerate()
        .map(|(id, task)| {
            let notice = Arc::new(Notice { id, queued: AtomicBool::new(false), ready: ready.clone() });
            notice.clone().wake();
            Some((task, notice))
        })
        .collect();
    loop {
        loop {
            let Some(id) = ready.lock().unwrap().pop_front() else { break };
            let Some((task, notice)) = &mut tasks[id] else { continue };
            notice.queued.store(false, Ordering::Relaxed);
            let waker = Waker::from(notice.clone());
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                tasks[id] = None;
            }
        }
        if !world.advance() {
            assert!(tasks.iter().all(Option::is_none), "a session waits for something that never comes");
            return;
        }
    }
}
