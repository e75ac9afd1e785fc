//! Running futures for JavaScript.
//!
//! A future is polled only from [`poll_task`], which JavaScript calls inside a `try`. A trap in a future is then caught there
//! instead of surfacing as an uncaught error of the process, and the callers that wait can be rejected (wasm-bindgen's own
//! promises never settle after a trap).

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use js_sys::{Function, Reflect};
use wasm_bindgen::prelude::*;

use super::convert::error_to_js;
use crate::error::{Error, Result};

type Task = Pin<Box<dyn Future<Output = ()>>>;

struct Host {
    this: JsValue,
    schedule: Function,
    settle: Function,
    panicked: Function,
}

#[derive(Default)]
struct Tasks {
    next: u32,
    /// `None` while the future is being polled.
    live: HashMap<u32, (Option<Task>, Arc<Notice>)>,
}

thread_local! {
    static HOST: RefCell<Option<Host>> = const { RefCell::new(None) };
    static TASKS: RefCell<Tasks> = RefCell::default();
}

struct Notice {
    id: u32,
    scheduled: AtomicBool,
}

impl Wake for Notice {
    fn wake(self: Arc<Self>) {
        if !self.scheduled.swap(true, Ordering::Relaxed) {
            schedule(self.id);
        }
    }
}

fn schedule(id: u32) {
    HOST.with_borrow(|host| {
        if let Some(host) = host {
            // It only queues; should it throw, the engine is of no use any more anyway.
            let _ = host.schedule.call1(&host.this, &JsValue::from(id));
        }
    });
}

fn settle(id: u32, outcome: Result<JsValue>) {
    let (ok, value) = match outcome {
        Ok(value) => (true, value),
        Err(error) => (false, error_to_js(&error)),
    };
    let target = HOST.with_borrow(|host| host.as_ref().map(|host| (host.settle.clone(), host.this.clone())));
    if let Some((function, this)) = target {
        let _ = function.call3(&this, &JsValue::from(id), &JsValue::from_bool(ok), &value);
    }
}

/// Starts a future; its outcome goes to `settle` under the number answered here.
pub(super) fn spawn(future: impl Future<Output = Result<JsValue>> + 'static) -> u32 {
    let id = TASKS.with_borrow_mut(|tasks| {
        let id = tasks.next;
        tasks.next = tasks.next.wrapping_add(1);
        let notice = Arc::new(Notice { id, scheduled: AtomicBool::new(true) });
        let task: Task = Box::pin(async move { settle(id, future.await) });
        tasks.live.insert(id, (Some(task), notice));
        id
    });
    schedule(id);
    id
}

/// Takes the functions the engine calls: `schedule(id)`, `settle(id, ok, value)`, `panicked(message)`.
#[wasm_bindgen(js_name = setHost)]
pub fn set_host(host: JsValue) -> Result<(), JsValue> {
    let function = |name: &str| -> Result<Function, JsValue> {
        let value = Reflect::get(&host, &JsValue::from_str(name))?;
        value.dyn_into().map_err(|_| error_to_js(&Error::invalid(format!("the host has no function {name}"))))
    };
    let taken = Host {
        schedule: function("schedule")?,
        settle: function("settle")?,
        panicked: function("panicked")?,
        this: host.clone(),
    };
    HOST.set(Some(taken));
    std::panic::set_hook(Box::new(|info| {
        let message = info.to_string();
        HOST.with(|host| {
            if let Ok(host) = host.try_borrow()
                && let Some(host) = host.as_ref()
            {
                let _ = host.panicked.call1(&host.this, &JsValue::from_str(&message));
            }
        });
    }));
    Ok(())
}

/// Polls a task that was scheduled. A number that is not known any more is a task that ended or was cancelled.
#[wasm_bindgen(js_name = pollTask)]
pub fn poll_task(id: u32) {
    let taken = TASKS.with_borrow_mut(|tasks| {
        let (task, notice) = tasks.live.get_mut(&id)?;
        notice.scheduled.store(false, Ordering::Relaxed);
        Some((task.take()?, notice.clone()))
    });
    let Some((mut task, notice)) = taken else { return };
    let waker = Waker::from(notice);
    let done = matches!(task.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(()));
    // A task that was cancelled while it ran has no place left; it is dropped outside the borrow, since dropping may wake others.
    let mut dropped = Some(task);
    TASKS.with_borrow_mut(|tasks| {
        if done {
            tasks.live.remove(&id);
        } else if let Some((place, _)) = tasks.live.get_mut(&id) {
            *place = dropped.take();
        }
    });
    drop(dropped);
}

/// Drops a task: its requests are aborted, nothing of it runs any more, and it is never settled. False when it had ended.
#[wasm_bindgen(js_name = cancelTask)]
pub fn cancel_task(id: u32) -> bool {
    let taken = TASKS.with_borrow_mut(|tasks| tasks.live.remove(&id));
    taken.is_some()
}
