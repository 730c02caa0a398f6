//! Waiting for signals instead of being interrupted by them: one thread, no handler, no race.
//!
//! In: which signals, how long to wait. Out: the signal that came. Works for the first process of a system too, to which
//! the kernel delivers nothing that it neither handles nor blocks.

use std::time::Duration;

pub use nix::sys::signal::Signal;
use nix::sys::signal::{kill, SigSet};
use nix::unistd::Pid;

use crate::{Context, Result};

/// What asks a program to end.
pub const END: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
/// The same, and the end of a child.
pub const END_OR_CHILD: [Signal; 4] = [Signal::SIGCHLD, Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Proof that the signals are blocked, in this thread and in all that it starts.
pub struct Signals(SigSet);

impl Signals {
    /// Blocks `awaited`; to be called before the first thread is made, so that all inherit it.
    pub fn block(awaited: &[Signal]) -> Result<Self> {
        let set: SigSet = awaited.iter().copied().collect();
        set.thread_block().attempting(|| "blocking signals")?;
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
    let _ = kill(Pid::this(), Signal::SIGCHLD);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_signal_is_waited_for() {
        // In a thread of its own: another one would take it first.
        let waited = std::thread::spawn(|| {
            let signals = Signals::block(&[Signal::SIGUSR2])?;
            assert_eq!(signals.wait(Some(Duration::ZERO)), None);
            nix::sys::signal::raise(Signal::SIGUSR2).attempting(|| "raising a signal")?;
            Ok::<_, crate::Error>(signals.wait(Some(Duration::from_secs(5))))
        });
        assert_eq!(waited.join().expect("no panic").expect("signals"), Some(Signal::SIGUSR2));
    }
}
