//! An allocator that counts what the running thread holds, and its highest level. Tests run in threads of their own, and what they
//! try starts none.
#![allow(dead_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Counts, and hands on to the system.
pub struct Counting;

/// Bytes held now.
pub fn held() -> usize {
    HELD.get()
}

/// Starts to measure: what is held now.
pub fn mark() -> usize {
    PEAK.set(HELD.get());
    HELD.get()
}

/// Most bytes held at a time since [`mark`].
pub fn peak() -> usize {
    PEAK.get()
}

fn grow(bytes: usize) {
    // Threads that end have no counters any more.
    let _ = HELD.try_with(|held| {
        held.set(held.get().saturating_add(bytes));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

fn shrink(bytes: usize) {
    let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(bytes)));
}

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // As if in place, which is how the system grows large blocks.
        grow(size.saturating_sub(layout.size()));
        shrink(layout.size().saturating_sub(size));
        unsafe { System.realloc(pointer, layout, size) }
    }
}
