//! Processes: held by a descriptor (pidfd), so that what is ended is what was looked at, whatever happens to its number
//! in between; and what a child does before it becomes a program.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::fcntl::{fcntl, FcntlArg, FdFlag};

use crate::signals::{Signal, Signals};
use crate::wait;

/// A process that is held: its number is nobody else's as far as this is concerned.
pub struct Pidfd(OwnedFd);

impl Pidfd {
    /// Errors: ESRCH, when there is no process of this number; EMFILE, ENFILE, ENOMEM or ENODEV, when it cannot be held.
    pub fn open(pid: i32) -> io::Result<Self> {
        // SAFETY: no memory is passed; what comes back is a new descriptor or an error.
        unsafe { owned(libc::syscall(libc::SYS_pidfd_open, pid, 0)) }.map(Pidfd)
    }

    /// A process that is gone already is no error.
    pub fn signal(&self, signal: Signal) {
        let nothing = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: a descriptor that we own, and no information beyond the signal's number.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), signal as i32, nothing, 0) };
    }

    /// True when the process ends within this time.
    pub fn ended(&self, within: Duration) -> bool {
        wait::readable(&self.0, u64::try_from(within.as_nanos()).unwrap_or(u64::MAX)).unwrap_or(false)
    }

    /// A descriptor of our own for what the process has open as number `theirs` (pidfd_getfd, Linux 5.6).
    pub fn descriptor(&self, theirs: i32) -> io::Result<OwnedFd> {
        // SAFETY: no memory is passed; what comes back is a new descriptor or an error.
        unsafe { owned(libc::syscall(libc::SYS_pidfd_getfd, self.0.as_raw_fd(), theirs, 0)) }
    }
}

/// The descriptor that a system call gave.
///
/// # Safety
/// `answer` is a system call's: negative, with errno set, or a new descriptor that nobody else owns.
pub unsafe fn owned(answer: libc::c_long) -> io::Result<OwnedFd> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as i32) })
}

/// For the child between fork and exec: a session of its own, and no signal blocked. System calls only.
pub fn detach() {
    Signals::unblock();
    let _ = nix::unistd::setsid();
}

/// For the child between fork and exec: nothing stays open beyond the three standard descriptors. System calls only.
pub fn close_all() {
    // SAFETY: no memory is passed; descriptors are only marked to be closed by exec.
    let all = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if all < 0 {
        for descriptor in 3..1024 {
            // SAFETY: as above; a number without a descriptor is an error that nobody reads.
            unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Has `descriptor` stay open across exec.
pub fn keep_open(descriptor: BorrowedFd) -> io::Result<()> {
    fcntl(descriptor.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_held_until_it_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is there");
        let held = Pidfd::open(child.id() as i32).expect("it runs");
        assert!(!held.ended(Duration::ZERO));
        held.signal(Signal::SIGTERM);
        assert!(held.ended(Duration::from_secs(10)));
        child.wait().expect("our child");
        assert_eq!(Pidfd::open(i32::MAX).map(drop).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }
}
