//! The system calls of the datapath, each wrapped with what was attempted. In: plain values; out: owned resources,
//! or one line that says what failed and why.

use std::ffi::{c_int, c_void, CString};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;

/// The last system call's failure as one line.
pub fn failed(attempt: &str) -> String {
    format!("{attempt}: {}", std::io::Error::last_os_error())
}

/// A call's result that is negative on failure.
pub fn check(result: c_int, attempt: &str) -> Result<c_int, String> {
    if result < 0 {
        Err(failed(attempt))
    } else {
        Ok(result)
    }
}

/// Puts the calling thread (and the sockets it will open) into a network namespace.
pub fn enter_netns(path: &Path) -> Result<(), String> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    // SAFETY: a plain system call on a descriptor that we hold open.
    check(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }, &format!("entering {}", path.display()))
        .map(drop)
}

pub fn interface_index(name: &str) -> Result<u32, String> {
    let c_name = CString::new(name).map_err(|_| format!("interface name {name:?}"))?;
    // SAFETY: the string is terminated and outlives the call.
    match unsafe { libc::if_nametoindex(c_name.as_ptr()) } {
        0 => Err(failed(&format!("interface {name}"))),
        index => Ok(index),
    }
}

pub fn socket(domain: c_int, kind: c_int, protocol: c_int, attempt: &str) -> Result<OwnedFd, String> {
    // SAFETY: no memory is passed; the descriptor returned is ours alone.
    unsafe {
        let fd = check(libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol), attempt)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// `value` must be the option's own plain structure.
pub fn set_option<T: Copy>(fd: &OwnedFd, level: c_int, option: c_int, value: &T, attempt: &str) -> Result<(), String> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `size` bytes of a value that lives here.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), size) };
    check(result, attempt).map(drop)
}

/// Reads an option into a zeroed `T`, which must be plain integers.
pub fn get_option<T: Copy>(fd: &OwnedFd, level: c_int, option: c_int, attempt: &str) -> Result<T, String> {
    let mut size = size_of::<T>() as libc::socklen_t;
    // SAFETY: integers may be zero, and the kernel writes at most `size` bytes into the value.
    unsafe {
        let mut value: T = std::mem::zeroed();
        let result = libc::getsockopt(fd.as_raw_fd(), level, option, std::ptr::from_mut(&mut value).cast(), &mut size);
        check(result, attempt)?;
        Ok(value)
    }
}

pub fn bind<T>(fd: &OwnedFd, address: &T, attempt: &str) -> Result<(), String> {
    // SAFETY: the kernel reads the structure that lives here.
    let result =
        unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(address).cast(), size_of::<T>() as libc::socklen_t) };
    check(result, attempt).map(drop)
}

/// Mapped memory, unmapped when dropped. The bytes may be shared with the kernel: access is by raw pointer.
pub struct Map {
    address: NonNull<c_void>,
    length: usize,
}

// SAFETY: the mapping belongs to whoever owns this value, on whichever thread.
unsafe impl Send for Map {}

impl Map {
    /// Zeroed memory that takes room only where it is touched.
    pub fn anonymous(length: usize) -> Result<Map, String> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Map::new(length, flags, -1, 0, "mapping packet memory")
    }

    /// A ring shared with the kernel.
    pub fn of(fd: &OwnedFd, length: usize, offset: i64, attempt: &str) -> Result<Map, String> {
        Map::new(length, libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd(), offset, attempt)
    }

    fn new(length: usize, flags: c_int, fd: c_int, offset: i64, attempt: &str) -> Result<Map, String> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, fd, offset) };
        if address == libc::MAP_FAILED {
            return Err(failed(&format!("{attempt} ({length} bytes)")));
        }
        NonNull::new(address).map(|address| Map { address, length }).ok_or_else(|| failed(attempt))
    }

    pub fn pointer(&self) -> *mut u8 {
        self.address.as_ptr().cast()
    }

    pub fn bytes(&self) -> usize {
        self.length
    }

    /// Fetches the pages of the first `length` bytes now rather than while packets fly. Best effort.
    pub fn prefault(&self, length: usize) {
        const MADV_POPULATE_WRITE: c_int = 23; // Linux 5.14
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

/// Ties the calling thread to these CPUs.
pub fn set_affinity(cpus: &[u32]) -> Result<(), String> {
    // SAFETY: the set is plain bits that we own; CPU_SET is kept within its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus.iter().filter(|&&cpu| (cpu as usize) < 8 * size_of::<libc::cpu_set_t>()) {
            libc::CPU_SET(cpu as usize, &mut set);
        }
        check(libc::sched_setaffinity(0, size_of_val(&set), &set), &format!("running on CPU {cpus:?}")).map(drop)
    }
}

/// The calling thread before every ordinary one. Errors when not allowed.
pub fn set_realtime(priority: c_int) -> Result<(), String> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads a structure that lives here.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) }, "SCHED_FIFO").map(drop)
}

/// Where sessions share the CPUs as groups (autogroup), a thread's nice value counts within its session alone: raises
/// the session too, if it is ours. Without effect on kernels that know no such groups.
pub fn raise_session() {
    // SAFETY: no memory is passed.
    if unsafe { libc::getsid(0) == libc::getpid() } {
        let _ = std::fs::write("/proc/self/autogroup", "-20");
    }
}

pub fn set_nice(nice: c_int) -> Result<(), String> {
    // SAFETY: no memory is passed. On Linux this names the calling thread alone.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) }, &format!("nice {nice}")).map(drop)
}

/// Keeps what is touched in memory: a page fetched from disk while a packet waits is milliseconds late.
pub fn lock_memory() -> Result<(), String> {
    const MCL_ONFAULT: c_int = 4;
    // SAFETY: no memory is passed.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | MCL_ONFAULT) }, "mlockall").map(drop)
}

/// Of the machine, not of this thread's set.
pub fn cpus_online() -> i64 {
    // SAFETY: no memory is passed.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }
}
