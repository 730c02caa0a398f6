//! Memory for packets: mapped, not allocated, so that it takes room only where it is touched, or is shared with the kernel.
//! In: sizes. Out: mappings that go when they are dropped, or an error that says what failed and why.
//!
//! AddressSanitizer knows the bounds of what is allocated, not those of slots within a mapping. In its build
//! (`--cfg address_sanitizer`, tests/torture/sanitizers.py) a mapping's owner tells it which bytes may be used, by `forbid` and `allow`.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;

use ewan_system::{Error, Result};

/// Mapped memory, unmapped when dropped. The bytes may be shared with the kernel: access is by raw pointer.
pub struct Map {
    address: NonNull<c_void>,
    length: usize,
}

// SAFETY: the mapping belongs to whoever owns this value, on whichever thread.
unsafe impl Send for Map {}

impl Map {
    /// Zeroed memory that takes room only where it is touched.
    pub fn anonymous(length: usize) -> Result<Map> {
        // Miri has no other kind of mapping than the plain one.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | if cfg!(miri) { 0 } else { libc::MAP_NORESERVE };
        Map::new(length, flags, -1, 0, "mapping packet memory")
    }

    /// A ring shared with the kernel.
    pub fn of(fd: &OwnedFd, length: usize, offset: i64, attempt: &str) -> Result<Map> {
        Map::new(length, libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd(), offset, attempt)
    }

    fn new(length: usize, flags: c_int, fd: c_int, offset: i64, attempt: &str) -> Result<Map> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, fd, offset) };
        match NonNull::new(address) {
            Some(address) if address.as_ptr() != libc::MAP_FAILED => Ok(Map { address, length }),
            _ => Err(Error::last(format!("{attempt} ({length} bytes)"))),
        }
    }

    pub fn pointer(&self) -> *mut u8 {
        self.address.as_ptr().cast()
    }

    pub fn bytes(&self) -> usize {
        self.length
    }

    /// From now on AddressSanitizer reports who reads or writes these bytes. Does nothing in other builds.
    pub fn forbid(&self, range: Range<usize>) {
        debug_assert!(range.start <= range.end && range.end <= self.length);
        #[cfg(address_sanitizer)]
        // SAFETY: changes the sanitizer's own notes on a range of our mapping.
        unsafe {
            __asan_poison_memory_region(self.pointer().add(range.start).cast(), range.len());
        }
    }

    /// These bytes may be read and written again. Does nothing without AddressSanitizer.
    pub fn allow(&self, range: Range<usize>) {
        debug_assert!(range.start <= range.end && range.end <= self.length);
        #[cfg(address_sanitizer)]
        // SAFETY: changes the sanitizer's own notes on a range of our mapping.
        unsafe {
            __asan_unpoison_memory_region(self.pointer().add(range.start).cast(), range.len());
        }
    }

    /// Fetches the pages of the first `length` bytes now rather than while packets fly. Best effort.
    pub fn prefault(&self, length: usize) {
        /// Linux 5.14.
        const MADV_POPULATE_WRITE: c_int = 23;
        self.advise(length.min(self.length), MADV_POPULATE_WRITE);
    }

    /// Small pages only: clearing a huge one while packets fly takes 0.1 ms.
    pub fn small_pages(&self) {
        self.advise(self.length, libc::MADV_NOHUGEPAGE);
    }

    /// Of the first `length` bytes.
    fn advise(&self, length: usize, advice: c_int) {
        if !cfg!(miri) {
            // SAFETY: advice on our own mapping, of at least this length; it changes no contents.
            unsafe { libc::madvise(self.address.as_ptr(), length, advice) };
        }
    }
}

// sanitizer/asan_interface.h
#[cfg(address_sanitizer)]
extern "C" {
    fn __asan_poison_memory_region(address: *const c_void, bytes: usize);
    fn __asan_unpoison_memory_region(address: *const c_void, bytes: usize);
}

impl Drop for Map {
    fn drop(&mut self) {
        // For whatever is mapped here next.
        self.allow(0..self.length);
        // SAFETY: we made this mapping, and no reference to it outlives its owner.
        unsafe { libc::munmap(self.address.as_ptr(), self.length) };
    }
}
