//! One time base for everything that stamps packets: nanoseconds of CLOCK_MONOTONIC_RAW, read from the TSC where
//! the kernel itself trusts it (a few nanoseconds a read, no system call), from `clock_gettime` elsewhere.
//! In: the kernel's clocks. Out: `now`, and the kernel's packet stamps (real time) in this time base.

use std::time::Duration;

/// Where `now` comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The invariant time-stamp counter, scaled to CLOCK_MONOTONIC_RAW.
    Tsc,
    /// `clock_gettime(CLOCK_MONOTONIC_RAW)`.
    Kernel,
}

impl Source {
    pub fn name(self) -> &'static str {
        match self {
            Source::Tsc => "tsc",
            Source::Kernel => "clock_gettime",
        }
    }
}

/// A calibrated clock. Copies agree on `now`; each keeps its own offset to the kernel's real-time clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    base_ticks: u64,
    base_ns: u64,
    /// Nanoseconds a tick, in units of 2^-32.
    ns_per_tick: u64,
    /// How far the middle of the calibration lay from the straight line through its ends.
    residual_ns: i64,
    /// `now` minus CLOCK_REALTIME, when last refreshed.
    realtime_offset: i64,
}

impl Clock {
    /// Calibrates for 50 ms: the frequency is then known to a fraction of a ppm (see `report`).
    pub fn new() -> Clock {
        Clock::calibrated(Duration::from_millis(50))
    }

    pub fn calibrated(duration: Duration) -> Clock {
        if !tsc_is_trusted() {
            return Clock::kernel();
        }
        let first = Anchor::take();
        std::thread::sleep(duration / 2);
        let middle = Anchor::take();
        std::thread::sleep(duration / 2);
        let last = Anchor::take();
        let ticks = last.ticks.wrapping_sub(first.ticks);
        if ticks == 0 || last.ns <= first.ns {
            return Clock::kernel();
        }
        let ns_per_tick = ((u128::from(last.ns - first.ns) << 32) / u128::from(ticks)) as u64;
        let mut clock = Clock {
            source: Source::Tsc,
            base_ticks: first.ticks,
            base_ns: first.ns,
            ns_per_tick,
            residual_ns: 0,
            realtime_offset: 0,
        };
        clock.residual_ns = middle.ns as i64 - clock.at(middle.ticks) as i64;
        clock.refresh();
        clock
    }

    /// The clock that works everywhere: one vDSO call a read.
    pub fn kernel() -> Clock {
        let mut clock = Clock {
            source: Source::Kernel,
            base_ticks: 0,
            base_ns: 0,
            ns_per_tick: 0,
            residual_ns: 0,
            realtime_offset: 0,
        };
        clock.refresh();
        clock
    }

    #[inline]
    fn at(&self, ticks: u64) -> u64 {
        // Ticks from before the base (another CPU, a few ticks) must not become centuries.
        let elapsed = ticks.wrapping_sub(self.base_ticks) as i64;
        if elapsed < 0 {
            return self.base_ns;
        }
        self.base_ns + ((elapsed as u128 * u128::from(self.ns_per_tick)) >> 32) as u64
    }

    /// Nanoseconds of CLOCK_MONOTONIC_RAW.
    #[inline]
    pub fn now(&self) -> u64 {
        match self.source {
            Source::Tsc => self.at(ticks()),
            Source::Kernel => gettime(libc::CLOCK_MONOTONIC_RAW),
        }
    }

    /// Measures the offset to CLOCK_REALTIME anew (below 0.1 µs). NTP turns that clock by up to 500 ppm and steps it; called
    /// each millisecond, a converted stamp is off by at most 0.5 ns by that.
    pub fn refresh(&mut self) {
        self.realtime_offset = self.offset();
    }

    /// The better of two readings: one that was interrupted would shift every stamp until the next refresh.
    fn offset(&self) -> i64 {
        let reading = || {
            let before = self.now();
            let theirs = gettime(libc::CLOCK_REALTIME);
            let after = self.now();
            (after.saturating_sub(before), (before + after.saturating_sub(before) / 2) as i64 - theirs as i64)
        };
        let (first, second) = (reading(), reading());
        if first.0 <= second.0 {
            first.1
        } else {
            second.1
        }
    }

    /// A CLOCK_REALTIME stamp (ns) in this time base.
    #[inline]
    pub fn from_realtime(&self, stamp: u64) -> u64 {
        stamp.wrapping_add_signed(self.realtime_offset)
    }

    /// A stamp that `before`, an earlier copy of this clock, converted from CLOCK_REALTIME, by the offset known now.
    #[inline]
    pub fn reconverted(&self, before: &Clock, stamp: u64) -> u64 {
        stamp.wrapping_add_signed(self.realtime_offset.wrapping_sub(before.realtime_offset))
    }

    pub fn source(&self) -> Source {
        self.source
    }

    /// The counter's frequency, if it is the source.
    pub fn frequency_hz(&self) -> Option<u64> {
        (self.source == Source::Tsc).then(|| ((1_000_000_000u128 << 32) / u128::from(self.ns_per_tick.max(1))) as u64)
    }

    pub fn residual_ns(&self) -> i64 {
        self.residual_ns
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}

/// The counter and CLOCK_MONOTONIC_RAW at one moment.
struct Anchor {
    ticks: u64,
    ns: u64,
}

impl Anchor {
    /// The tightest of many brackets: the others were interrupted.
    fn take() -> Anchor {
        let bracket = || {
            let before = ticks();
            let ns = gettime(libc::CLOCK_MONOTONIC_RAW);
            let width = ticks().wrapping_sub(before);
            (width, Anchor { ticks: before.wrapping_add(width / 2), ns })
        };
        let mut best = bracket();
        for _ in 0..64 {
            let next = bracket();
            if next.0 < best.0 {
                best = next;
            }
        }
        best.1
    }
}

/// Nanoseconds of a kernel clock.
#[inline]
pub fn gettime(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the structure that we own; the clocks used here exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC in nanoseconds, which nobody sets: the time base of schedules.
pub fn monotonic_ns() -> i64 {
    gettime(libc::CLOCK_MONOTONIC) as i64
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: reading the counter has no effect on memory. It exists on every x86_64.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn ticks() -> u64 {
    0
}

/// Constant rate in every power state (CPUID), and the kernel keeps its own time by it: then all CPUs agree.
#[cfg(target_arch = "x86_64")]
fn tsc_is_trusted() -> bool {
    let leaves = core::arch::x86_64::__cpuid(0x8000_0000).eax;
    let invariant = leaves >= 0x8000_0007 && core::arch::x86_64::__cpuid(0x8000_0007).edx & (1 << 8) != 0;
    let current = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    invariant && current.is_ok_and(|name| name.trim() == "tsc")
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc_is_trusted() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_goes_back() {
        let clock = Clock::calibrated(Duration::from_millis(4));
        let mut last = clock.now();
        for _ in 0..200_000 {
            let now = clock.now();
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
    }

    #[test]
    fn keeps_the_rate_of_the_raw_clock() {
        let clock = Clock::new();
        let (ours, raw) = (clock.now(), gettime(libc::CLOCK_MONOTONIC_RAW));
        std::thread::sleep(Duration::from_millis(200));
        let before = clock.now();
        let raw_elapsed = gettime(libc::CLOCK_MONOTONIC_RAW) - raw;
        let width = clock.now() - before;
        let error = (before - ours).abs_diff(raw_elapsed);
        // 5 ppm of 200 ms is 1 µs; what the reading itself took (a busy machine) is no error of the clock.
        assert!(error <= 1_000 + width, "{error} ns off after {raw_elapsed} ns");
    }

    #[test]
    fn a_stamp_of_the_kernel_is_converted() {
        let mut clock = Clock::new();
        clock.refresh();
        let before = clock.now();
        let stamp = clock.from_realtime(gettime(libc::CLOCK_REALTIME));
        let after = clock.now();
        assert!(stamp + 500 >= before && stamp <= after + 500, "{before} {stamp} {after}");
    }
}
