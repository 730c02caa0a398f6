//! The rate stage: a server that sends one packet after the other at an exact rate. It is evaluated lazily:
//! given a packet's arrival it says when the last bit has left; nobody needs to call it at that time.
//!
//! Time is kept as whole nanoseconds plus a part in units of 1/rate nanoseconds. The part is carried as long
//! as the server is busy, so n packets back to back take n × bits / rate with no error at all, at any rate.

use alloc::format;

use super::check::{require, CheckResult};
use super::Nanos;

const RATES: core::ops::RangeInclusive<u64> = 8_000..=1_000_000_000_000;
const NANOS_PER_SECOND: u128 = 1_000_000_000;
const BYTE: u128 = 8 * NANOS_PER_SECOND;

/// Is it a rate that the stage can have?
pub(super) fn check(rate_bps: u64) -> CheckResult {
    check_as("rate_bps", rate_bps)
}

pub(super) fn check_as(key: &str, rate_bps: u64) -> CheckResult {
    require(RATES.contains(&rate_bps), || {
        format!("{key} {rate_bps}: write 8000 (8 kbit/s) to 1000000000000 (1 Tbit/s)")
    })
}

/// Of a burst; 0: it has none.
pub(super) fn check_peak(peak_bps: u64) -> CheckResult {
    if peak_bps > 0 {
        check_as("peak_bps", peak_bps)
    } else {
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub struct Server {
    rate_bps: u64,
    /// The last bit sent so far leaves at free_ns + part / rate_bps nanoseconds.
    free_ns: Nanos,
    part: u64,
    /// When it last began after a pause; that may lie ahead.
    begin_ns: Nanos,
    /// Nothing leaves for now; `rate_bps` is the last rate.
    stopped: bool,
    /// Of a stopped server: what it has still to send, in bits × 10^9.
    held: u128,
    /// Serialisation time of the last length asked for: most neighbours are equal, and division is slow.
    last_bytes: u32,
    last_whole: u64,
    last_rest: u64,
}

impl Server {
    pub fn new(rate_bps: u64) -> Self {
        Server {
            rate_bps: rate_bps.max(1),
            free_ns: 0,
            part: 0,
            begin_ns: 0,
            stopped: false,
            held: 0,
            last_bytes: 0,
            last_whole: 0,
            last_rest: 0,
        }
    }

    /// Of a stopped server the last one.
    pub fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    /// The first nanosecond at which everything accepted so far has left; the greatest number while it is stopped.
    #[inline]
    pub fn free_at(&self) -> Nanos {
        if self.held > 0 {
            return Nanos::MAX;
        }
        self.free_ns + u64::from(self.part > 0)
    }

    /// Sends `bytes` after everything accepted before, not before `arrival`; returns the first nanosecond at
    /// which the last bit has left.
    #[inline]
    pub fn serve(&mut self, bytes: u32, arrival: Nanos) -> Nanos {
        if arrival > self.free_ns {
            // The server was idle: what was left of a nanosecond has passed.
            self.free_ns = arrival;
            self.begin_ns = arrival;
            self.part = 0;
        }
        if self.stopped {
            self.held += work(bytes);
            return self.free_at();
        }
        if bytes != self.last_bytes {
            self.measure(bytes);
        }
        self.free_ns += self.last_whole;
        self.part += self.last_rest;
        if self.part >= self.rate_bps {
            self.part -= self.rate_bps;
            self.free_ns += 1;
        }
        self.free_at()
    }

    /// Serialisation time of one packet, rounded down to a nanosecond.
    pub fn time_of(&mut self, bytes: u32) -> Nanos {
        if bytes != self.last_bytes {
            self.measure(bytes);
        }
        self.last_whole
    }

    /// From `now` on another rate: bits not yet sent go at the new one, none is lost or sent twice.
    pub fn set_rate(&mut self, rate_bps: u64, now: Nanos) {
        let new = rate_bps.max(1);
        let now = now.max(self.begin_ns);
        let left = self.left(now);
        if left > 0 {
            self.free_ns = now + (left / u128::from(new)) as u64;
            self.part = (left % u128::from(new)) as u64;
        } else {
            self.free_ns = self.free_at();
            self.part = 0;
        }
        self.stopped = false;
        self.held = 0;
        self.rate_bps = new;
        self.last_bytes = 0;
        self.last_whole = 0;
        self.last_rest = 0;
    }

    /// From `now` on nothing leaves: bits not yet sent wait for `set_rate`, or for `deliver`.
    pub fn stop(&mut self, now: Nanos) {
        let now = now.max(self.begin_ns);
        let left = self.left(now);
        self.free_ns = if left > 0 { now } else { self.free_at() };
        self.part = 0;
        self.stopped = true;
        self.held = left;
    }

    /// A stopped server sends up to `bytes` at once, at `now`; so many it had.
    pub fn deliver(&mut self, bytes: u64, now: Nanos) -> u64 {
        let sent = u128::from(bytes).min(self.held / BYTE);
        self.held -= sent * BYTE;
        self.free_ns = self.free_ns.max(now);
        sent as u64
    }

    /// A stopped server has nothing to send: what it had is gone.
    pub fn forget(&mut self) {
        self.held = 0;
    }

    /// What is still to be sent at `now`, in bits × 10^9.
    fn left(&self, now: Nanos) -> u128 {
        if self.stopped {
            self.held
        } else if self.free_at() > now {
            u128::from(self.free_ns - now) * u128::from(self.rate_bps) + u128::from(self.part)
        } else {
            0
        }
    }

    #[cold]
    fn measure(&mut self, bytes: u32) {
        let work = work(bytes);
        let rate = u128::from(self.rate_bps);
        // In 64 bits where it fits, which is every real packet: 128-bit division is several times slower.
        (self.last_whole, self.last_rest) = match u64::try_from(work) {
            Ok(work) => (work / self.rate_bps, work % self.rate_bps),
            Err(_) => ((work / rate) as u64, (work % rate) as u64),
        };
        self.last_bytes = bytes;
    }
}

/// Bits × 10^9.
fn work(bytes: u32) -> u128 {
    u128::from(bytes) * BYTE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Millions of packets back to back: the last one leaves at the exact sum, rounded up to a nanosecond.
    #[test]
    fn long_run_rate_is_exact() {
        for rate in
            [8_000, 9_600, 1_000_000, 999_999_937, 1_000_000_000, 10_000_000_000, 100_000_000_000, 1_000_000_000_000]
        {
            let mut server = Server::new(rate);
            let (mut bits, mut departure) = (0u128, 0);
            for n in 0..3_000_000u32 {
                let bytes = [84, 1538, 1538, 777, 9038][(n % 5) as usize];
                bits += u128::from(bytes) * 8;
                departure = server.serve(bytes, 0);
            }
            assert_eq!(u128::from(departure), (bits * NANOS_PER_SECOND).div_ceil(u128::from(rate)), "at {rate} bit/s");
        }
    }

    #[test]
    fn known_times() {
        assert_eq!(Server::new(8_000).serve(84, 5), 84_000_005);
        assert_eq!(Server::new(1_000_000_000).serve(1538, 0), 12_304);
        assert_eq!(Server::new(10_000_000_000).serve(1538, 0), 1_231); // 1230.4
        assert_eq!(Server::new(100_000_000_000).serve(84, 0), 7); // 6.72
        assert_eq!(Server::new(1_000_000_000_000).serve(1500, 0), 12);
        let mut fast = Server::new(1_000_000_000_000);
        assert_eq!([1538, 1538, 1538].map(|bytes| fast.serve(bytes, 0)), [13, 25, 37]);
        // 12.304, 24.608, 36.912
    }

    #[test]
    fn an_idle_server_starts_at_the_arrival() {
        let mut server = Server::new(10_000_000_000);
        assert_eq!(server.serve(1538, 0), 1_231);
        assert_eq!(server.serve(1538, 1_230), 2_461); // still busy for 0.4 ns: 2460.8
        assert_eq!(server.serve(1538, 5_000), 6_231);
    }

    #[test]
    fn a_packet_in_service_finishes_its_remaining_bits_at_the_new_rate() {
        let mut server = Server::new(1_000_000); // 1000 bytes take 8 ms
        server.serve(1000, 0);
        server.set_rate(4_000_000, 2_000_000); // 6000 bits left
        assert_eq!(server.free_at(), 3_500_000);
        server.set_rate(1_000, 3_499_999); // 4 bits × 10^-3 left
        assert_eq!(server.free_at(), 3_499_999 + 4_000);
    }

    #[test]
    fn an_outage_keeps_the_bits_that_are_left() {
        let mut server = Server::new(1_000_000); // 1000 bytes take 8 ms
        server.serve(1000, 0);
        server.stop(2_000_000); // 6000 bits left
        assert_eq!(server.free_at(), Nanos::MAX);
        server.stop(3_000_000);
        server.set_rate(4_000_000, 10_000_000);
        assert_eq!(server.free_at(), 11_500_000);
        server.stop(20_000_000);
        assert_eq!(server.free_at(), 11_500_000, "idle since then");
        assert_eq!(server.serve(1000, 21_000_000), Nanos::MAX);
        server.set_rate(8_000_000, 30_000_000);
        assert_eq!(server.free_at(), 31_000_000);
    }

    #[test]
    fn many_rate_changes_lose_no_bit() {
        // Alternating between 7 and 13 Mbit/s every 100 ns: 20 Mbit/s × 100 ns a cycle.
        let mut server = Server::new(7_000_000);
        server.serve(1_000, 0);
        let mut now = 0;
        for n in 1.. {
            if server.free_at() <= now + 100 {
                break;
            }
            now += 100;
            server.set_rate(if n % 2 == 1 { 13_000_000 } else { 7_000_000 }, now);
        }
        assert_eq!(server.free_at(), 800_000);
    }
}
