//! Waiting for signals instead of being interrupted by them: one thread, no handler, no race.
//!
//! In: how long to wait. Out: the signal that came. Works for the first process of a system too, to which the kernel
//! delivers nothing that it neither handles nor blocks.

use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};

const AWAITED: [Signal; 4] = [Signal::SIGCHLD, Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Proof that the signals are blocked, in this thread and in all that it starts.
pub struct Signals(SigSet);

impl Signals {
    pub fn block() -> Result<Self, String> {
        let set: SigSet = AWAITED.into_iter().collect();
        set.thread_block().map_err(|error| format!("blocking signals: {error}"))?;
        Ok(Signals(set))
    }

    /// For a program that is about to be started: it expects none to be blocked.
    pub fn unblock() {
        let _ = SigSet::all().thread_unblock();
    }

    /// The next signal; none when `longest` has passed.
    pub fn wait(&self, longest: Option<Duration>) -> Option<Signal> {
        let timeout = longest.map(|longest| libc::timespec {
            tv_sec: longest.as_secs() as libc::time_t,
            tv_nsec: longest.subsec_nanos().into(),
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: set and timeout outlive the call; nothing more than the number is asked for.
        let number = unsafe { libc::sigtimedwait(self.0.as_ref(), std::ptr::null_mut(), timeout) };
        Signal::try_from(number).ok()
    }
}

/// Has a thread that waits look up, as when a child has ended.
pub fn wake() {
    // SAFETY: a signal to ourselves that is blocked everywhere and that `wait` expects.
    unsafe { libc::kill(libc::getpid(), libc::SIGCHLD) };
}
