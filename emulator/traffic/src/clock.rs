//! Time for everything here. In the live clock a program may be late and says so; in the virtual clock (a kernel whose
//! time jumps to the next timer) it never is, provided that it sleeps until exactly the next thing it has to do.
//! In: absolute instants in nanoseconds. Out: the kernel's clocks.

use ewan_system::clock::{gettime, monotonic_ns};
use ewan_system::schedule::{set_nice, set_realtime};
use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{clock_nanosleep, ClockId, ClockNanosleepFlags};
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
                let _ = set_nice(-10);
                nix::sys::prctl::set_timerslack(1).map_err(|error| format!("timer slack: {error}"))
            }
            Self::Virtual => Ok(set_realtime(1)?),
        }
    }
}

/// CLOCK_REALTIME, the clock of the kernel's packet time stamps.
pub fn real_ns() -> i64 {
    gettime(libc::CLOCK_REALTIME) as i64
}

/// How far CLOCK_REALTIME is from CLOCK_MONOTONIC: a change between two readings is a step of the clock.
pub fn offset_ns() -> i64 {
    let before = monotonic_ns();
    let real = real_ns();
    real - (before + monotonic_ns()) / 2
}

/// Returns at once when that is past.
pub fn sleep_until_real(at_ns: i64) {
    sleep_until(ClockId::CLOCK_REALTIME, at_ns);
}

/// Returns at once when that is past.
pub fn sleep_until_monotonic(at_ns: i64) {
    sleep_until(ClockId::CLOCK_MONOTONIC, at_ns);
}

fn sleep_until(clock: ClockId, at_ns: i64) {
    let at_ns = at_ns.max(0);
    let at = TimeSpec::new(at_ns / 1_000_000_000, at_ns % 1_000_000_000);
    // A signal only makes it ask again.
    while clock_nanosleep(clock, ClockNanosleepFlags::TIMER_ABSTIME, &at) == Err(Errno::EINTR) {}
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
