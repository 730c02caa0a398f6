// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's memory as Rust's, and its end where Rust cannot go on.

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;
use core::fmt::Write;
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
        // SAFETY: `memory` came from `alloc` above, thus from ewan_alloc, and is freed once.
        unsafe { ewan_free(memory.cast()) }
    }
}

#[global_allocator]
static KERNEL: Kernel = Kernel;

/// Text without memory of the kernel's, of which there may be none left.
struct Line {
    bytes: [u8; 256],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = self.bytes.get_mut(self.length..).unwrap_or_default();
        let fits = text.len().min(room.len());
        room[..fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.length += fits;
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    let mut text = Line { bytes: [0; 256], length: 0 };
    // What does not fit is cut off.
    let _ = write!(text, "{info}");
    // SAFETY: the array has at least that many bytes.
    unsafe { ewan_panic(text.bytes.as_ptr(), text.length) }
}
