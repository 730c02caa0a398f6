//! How late a deadline is met, by each way to wait for it: reading the clock until then (spinning, as links do), or
//! sleeping (clock_nanosleep, timerfd). One thread on one CPU, whose scheduling the caller chose.
//!
//! In: an interval between deadlines, and for how long. Out: how late each was met, in nanoseconds. A deadline that was
//! past before anybody waited for it says nothing of the timer, and is left out.

use std::os::fd::AsFd;

use ewan_system::{Context, Result};
use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{clock_nanosleep, ClockNanosleepFlags};

use ewan_system::clock::{gettime, Clock};

/// Between two reads of a clock that is read all the time; above it somebody else had the CPU.
pub const GAP_NS: u64 = 10_000;

/// While a thread spun: how often, how long in all and how long at once it was without its CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    pub duration_ns: u64,
    pub gaps: u64,
    pub gaps_ns: u64,
    pub longest_gap_ns: u64,
}

/// Reads the clock until each deadline; notes the gaps too.
pub fn spin(clock: &Clock, interval_ns: u64, duration_ns: u64, gaps: &mut Gaps) -> Vec<u64> {
    let mut late = Vec::with_capacity((duration_ns / interval_ns) as usize + 1);
    let start = clock.now();
    let (mut before, mut deadline) = (start, start + interval_ns);
    while deadline <= start + duration_ns {
        let mut now = clock.now();
        while now < deadline {
            note(gaps, now - before);
            before = now;
            now = clock.now();
        }
        note(gaps, now - before);
        before = now;
        late.push(now - deadline);
        deadline = next(deadline, interval_ns, now);
    }
    gaps.duration_ns += before - start;
    late
}

fn note(gaps: &mut Gaps, pause_ns: u64) {
    if pause_ns > GAP_NS {
        gaps.gaps += 1;
        gaps.gaps_ns += pause_ns;
        gaps.longest_gap_ns = gaps.longest_gap_ns.max(pause_ns);
    }
}

/// The first deadline of the same pace that is still to come.
fn next(deadline: u64, interval_ns: u64, now: u64) -> u64 {
    deadline + interval_ns * ((now - deadline) / interval_ns + 1)
}

/// Sleeps until each deadline with `clock_nanosleep`.
pub fn nanosleep(interval_ns: u64, duration_ns: u64) -> Vec<u64> {
    let mut late = Vec::with_capacity((duration_ns / interval_ns) as usize + 1);
    let start = gettime(libc::CLOCK_MONOTONIC);
    let mut deadline = start + interval_ns;
    while deadline <= start + duration_ns {
        let at = timespec(deadline);
        let clock = nix::time::ClockId::CLOCK_MONOTONIC;
        // A signal only makes it ask again.
        while clock_nanosleep(clock, ClockNanosleepFlags::TIMER_ABSTIME, &at) == Err(Errno::EINTR) {}
        let now = gettime(libc::CLOCK_MONOTONIC);
        late.push(now.saturating_sub(deadline));
        deadline = next(deadline, interval_ns, now.max(deadline));
    }
    late
}

/// Waits for each expiry of one periodic timer (timerfd_create(2)); after several at once, as late as the first of them.
pub fn timerfd(interval_ns: u64, duration_ns: u64) -> Result<Vec<u64>> {
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC).attempting(|| "timerfd")?;
    let mut late = Vec::with_capacity((duration_ns / interval_ns) as usize + 1);
    let start = gettime(libc::CLOCK_MONOTONIC) + interval_ns;
    let every = Expiration::IntervalDelayed(timespec(start), timespec(interval_ns));
    timer.set(every, TimerSetTimeFlags::TFD_TIMER_ABSTIME).attempting(|| "timerfd")?;
    let mut due = start;
    while due <= start + duration_ns {
        let mut expired = [0u8; 8];
        match nix::unistd::read(timer.as_fd(), &mut expired) {
            Err(Errno::EINTR) => continue,
            read => read.attempting(|| "timerfd")?,
        };
        late.push(gettime(libc::CLOCK_MONOTONIC).saturating_sub(due));
        due += u64::from_ne_bytes(expired) * interval_ns;
    }
    Ok(late)
}

fn timespec(ns: u64) -> TimeSpec {
    TimeSpec::new((ns / 1_000_000_000) as libc::time_t, (ns % 1_000_000_000) as libc::c_long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_waits_for_every_deadline() {
        let mut gaps = Gaps::default();
        let ways = [
            spin(&Clock::kernel(), 1_000_000, 20_000_000, &mut gaps),
            nanosleep(1_000_000, 20_000_000),
            timerfd(1_000_000, 20_000_000).expect("a timer"),
        ];
        for late in ways {
            // A busy machine meets fewer, never more.
            assert!((1..=21).contains(&late.len()), "{late:?}");
        }
        assert!(gaps.duration_ns >= 1_000_000 && gaps.gaps_ns >= gaps.longest_gap_ns, "{gaps:?}");
    }

    #[test]
    fn deadlines_that_are_past_are_left_out() {
        assert_eq!(next(1000, 100, 1000), 1100);
        assert_eq!(next(1000, 100, 1099), 1100);
        assert_eq!(next(1000, 100, 1350), 1400);
    }

    #[test]
    fn a_gap_is_noted() {
        let mut gaps = Gaps::default();
        [5_000, 30_000, GAP_NS, 20_000].into_iter().for_each(|pause| note(&mut gaps, pause));
        assert_eq!(gaps, Gaps { duration_ns: 0, gaps: 2, gaps_ns: 50_000, longest_gap_ns: 30_000 });
    }
}
