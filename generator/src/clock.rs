//! Time for everything here. In the live clock a program may be late and says so; in the virtual clock (a kernel whose
//! time jumps to the next timer) it never is, provided that it sleeps until exactly the next thing it has to do.
//! In: absolute instants in nanoseconds. Out: the kernel's clocks.

use std::io;

use serde::Deserialize;

/// Which time the kernel keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    #[default]
    Live,
    Virtual,
}

impl Clock {
    /// For this thread and those that it starts: timers that fire on time.
    ///
    /// Live: without the usual 50 µs of slack, and before programs of ordinary priority where that is allowed.
    /// Virtual: only threads of the real-time classes have timers without any slack, sched(7); computing takes no
    /// time there, so nobody is kept waiting by it.
    pub fn prepare(self) -> Result<(), String> {
        match self {
            Self::Live => {
                // SAFETY: touches only this process's priority.
                let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -10) };
                nix::sys::prctl::set_timerslack(1).map_err(|error| format!("timer slack: {error}"))
            }
            Self::Virtual => {
                let parameter = libc::sched_param { sched_priority: 1 };
                // SAFETY: the kernel reads a structure that lives here.
                match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) } {
                    0 => Ok(()),
                    _ => Err(format!("SCHED_FIFO: {}", io::Error::last_os_error())),
                }
            }
        }
    }
}

/// CLOCK_REALTIME, the clock of the kernel's packet time stamps.
pub fn real_ns() -> i64 {
    read(libc::CLOCK_REALTIME)
}

/// CLOCK_MONOTONIC, which nobody sets.
pub fn monotonic_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// How far CLOCK_REALTIME is from CLOCK_MONOTONIC: a change between two readings is a step of the clock.
pub fn offset_ns() -> i64 {
    let before = monotonic_ns();
    let real = real_ns();
    real - (before + monotonic_ns()) / 2
}

/// Returns at once when that is past.
pub fn sleep_until_real(at_ns: i64) {
    sleep_until(libc::CLOCK_REALTIME, at_ns);
}

/// Returns at once when that is past.
pub fn sleep_until_monotonic(at_ns: i64) {
    sleep_until(libc::CLOCK_MONOTONIC, at_ns);
}

/// A span of time as the kernel wants it; what is past is none.
pub fn timespec(ns: i64) -> libc::timespec {
    let ns = ns.max(0);
    libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}

fn sleep_until(clock: libc::clockid_t, at_ns: i64) {
    let at = timespec(at_ns);
    // SAFETY: reads one timespec; nothing is written for an absolute time. A signal only makes it ask again.
    while unsafe { libc::clock_nanosleep(clock, libc::TIMER_ABSTIME, &at, std::ptr::null_mut()) } == libc::EINTR {}
}

fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec; both clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_until_an_instant_and_not_at_all_for_one_that_is_past() {
        let begun = monotonic_ns();
        sleep_until_monotonic(begun + 3_000_000);
        assert!(monotonic_ns() >= begun + 3_000_000);
        sleep_until_monotonic(begun);
        sleep_until_real(-1);
    }
}
