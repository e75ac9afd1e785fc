//! How the memory of the engine grows: ahead, in steps.
//!
//! The allocator of the standard library asks for a single page of 64 KB whenever it has no room. Each time V8 makes a new buffer
//! of the whole memory and throws the old one away, a third of a millisecond with the collector's share: four fifths of what it
//! took to open a table of 200 000 fragments. So when an allocation made the memory grow a little, a block of a sixteenth of it is
//! taken and given back at once; the allocator keeps what it got, and the next growth is that far away.

use std::alloc::{GlobalAlloc, Layout, System};
use std::arch::wasm32::memory_size;
use std::sync::atomic::{AtomicUsize, Ordering};

#[global_allocator]
static ALLOCATOR: Ahead = Ahead { pages: AtomicUsize::new(0) };

const PAGE: usize = 64 * 1024;
/// Bytes of the largest step. A larger one would show in the peak of an engine that is held to 112 MB.
const LARGEST_STEP: usize = 4 << 20;

/// The allocator of the standard library, and the pages of memory there were when it was last seen to grow.
struct Ahead {
    pages: AtomicUsize,
}

impl Ahead {
    /// Called after every allocation; nearly always it reads one number and finds it as it was.
    #[inline]
    fn step(&self) {
        let (pages, before) = (memory_size(0), self.pages.load(Ordering::Relaxed));
        if pages != before {
            self.grow(pages, pages.saturating_sub(before));
        }
    }

    #[cold]
    fn grow(&self, pages: usize, grown: usize) {
        let step = (pages * PAGE / 16).min(LARGEST_STEP);
        // A block that was large itself needs nothing ahead of it. Where there is no memory for the step there may be for a page.
        if grown * PAGE < step
            && let Ok(layout) = Layout::from_size_align(step, 1)
        {
            #[expect(unsafe_code, reason = "the size is not zero, and the block is given back with the layout it was taken with")]
            unsafe {
                let block = System.alloc(layout);
                if !block.is_null() {
                    System.dealloc(block, layout);
                }
            }
        }
        self.pages.store(memory_size(0), Ordering::Relaxed);
    }
}

#[expect(
    unsafe_code,
    reason = "an allocator is unsafe by its trait; every call goes to the standard library's with what it was called with"
)]
unsafe impl GlobalAlloc for Ahead {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = unsafe { System.alloc(layout) };
        self.step();
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let block = unsafe { System.alloc_zeroed(layout) };
        self.step();
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let block = unsafe { System.realloc(block, layout, size) };
        self.step();
        block
    }
}
