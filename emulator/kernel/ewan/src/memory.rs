// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's memory as Rust's, and its end where Rust cannot go on.

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;
use core::panic::PanicInfo;

extern "C" {
    fn ewan_alloc(size: usize, align: usize) -> *mut c_void;
    fn ewan_free(memory: *mut c_void);
    fn ewan_panic(text: *const u8, length: usize) -> !;
}

struct Kernel;

// SAFETY: ewan_alloc gives memory of that size and alignment, or null; ewan_free takes all that it gave.
unsafe impl GlobalAlloc for Kernel {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size and alignment may be asked for.
        unsafe { ewan_alloc(layout.size(), layout.align()).cast() }
    }
    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: the caller's promise.
        unsafe { ewan_free(memory.cast()) }
    }
}

#[global_allocator]
static KERNEL: Kernel = Kernel;

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    let text = alloc::format!("{info}");
    // SAFETY: the text has that length.
    unsafe { ewan_panic(text.as_ptr(), text.len()) }
}
