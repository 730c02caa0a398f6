//! Memory for packets: mapped, not allocated, so that it takes room only where it is touched, or is shared with the kernel.
//! In: sizes. Out: mappings that go when they are dropped, or an error that says what failed and why.

use std::ffi::{c_int, c_void};
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
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
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

    /// Fetches the pages of the first `length` bytes now rather than while packets fly. Best effort.
    pub fn prefault(&self, length: usize) {
        /// Linux 5.14.
        const MADV_POPULATE_WRITE: c_int = 23;
        // SAFETY: the range lies within our own mapping.
        unsafe { libc::madvise(self.address.as_ptr(), length.min(self.length), MADV_POPULATE_WRITE) };
    }

    /// Small pages only: clearing a huge one while packets fly takes 0.1 ms.
    pub fn small_pages(&self) {
        // SAFETY: advice on our own mapping; it changes no contents.
        unsafe { libc::madvise(self.address.as_ptr(), self.length, libc::MADV_NOHUGEPAGE) };
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: we made this mapping, and no reference to it outlives its owner.
        unsafe { libc::munmap(self.address.as_ptr(), self.length) };
    }
}
