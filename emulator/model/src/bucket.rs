//! A token bucket: it fills at a rate up to its depth, and each packet takes its bytes out of it. It polices (what it does not
//! hold is dropped) before the queue, and shapes (packets wait for it) in `shaper`.
//!
//! It is kept in units of which a bit has 10^9, so that rate × nanoseconds is a whole number of them: nothing is rounded.

use super::check::{require, CheckResult};
use super::{rate, Nanos};

const UNITS_PER_BYTE: u64 = 8_000_000_000;
/// At 1 Tbit/s the least is filled in half a nanosecond. The greatest, in units, is a number of 63 bits.
const DEPTHS: core::ops::RangeInclusive<u64> = 64..=1 << 30;

/// Are they a rate and a depth that a bucket can have, or both 0: none?
pub(super) fn check(rate_bps: u64, bytes: u64) -> CheckResult {
    require((rate_bps == 0) == (bytes == 0), || {
        alloc::format!("police_bps {rate_bps}: write it and police_bytes, or 0 for both")
    })?;
    if rate_bps > 0 {
        rate::check_as("police_bps", rate_bps)?;
    }
    check_depth("police_bytes", bytes)
}

pub(super) fn check_depth(key: &str, bytes: u64) -> CheckResult {
    require(bytes == 0 || DEPTHS.contains(&bytes), || {
        alloc::format!("{key} {bytes}: write 64 to 1073741824 (1 GiB), or 0 for none")
    })
}

#[derive(Clone, Debug)]
pub struct Bucket {
    pub rate_bps: u64,
    depth: u64,
    /// What it holds at `at`.
    level: u64,
    at: Nanos,
}

impl Bucket {
    /// It is full.
    pub fn new(rate_bps: u64, bytes: u64, now: Nanos) -> Self {
        let depth = bytes.min(*DEPTHS.end()) * UNITS_PER_BYTE;
        Bucket { rate_bps: rate_bps.max(1), depth, level: depth, at: now }
    }

    /// With another depth; what it holds stays, as far as it has room.
    pub fn of_depth(&self, bytes: u64) -> Self {
        let fresh = Bucket::new(self.rate_bps, bytes, self.at);
        Bucket { level: self.level.min(fresh.depth), ..fresh }
    }

    #[inline]
    fn fill(&mut self, now: Nanos) {
        // What is left of a nanosecond, which at 1 Tbit/s may be more than the bucket is deep, is for who waits now alone.
        if now > self.at {
            let gained = u128::from(now - self.at) * u128::from(self.rate_bps);
            let level = u64::try_from(gained).unwrap_or(u64::MAX).saturating_add(self.level);
            self.level = level.min(self.depth);
            self.at = now;
        }
    }

    /// Takes a packet's bytes out, if it holds them.
    #[inline]
    pub fn admits(&mut self, bytes: u32, now: Nanos) -> bool {
        self.fill(now);
        let need = u64::from(bytes) * UNITS_PER_BYTE;
        let admits = need <= self.level;
        if admits {
            self.level -= need;
        }
        admits
    }

    /// Takes a packet's bytes out at the first nanosecond, from `now` on, at which it has had them; says when.
    #[inline]
    pub fn wait_for(&mut self, bytes: u32, now: Nanos) -> Nanos {
        self.fill(now);
        let need = u64::from(bytes) * UNITS_PER_BYTE;
        if need <= self.level {
            self.level -= need;
        } else {
            let wait = (need - self.level).div_ceil(self.rate_bps);
            // Less than a nanosecond's worth is left. A packet longer than the bucket is deep takes what flows in meanwhile.
            self.level =
                (u128::from(self.level) + u128::from(wait) * u128::from(self.rate_bps) - u128::from(need)) as u64;
            self.at += wait;
        }
        self.at
    }

    /// From `now` on another rate. Of a packet that waits until later than now, and did so before, what has not flowed in
    /// yet does so at the new rate; says until when.
    pub fn set_rate(&mut self, rate_bps: u64, now: Nanos) -> Nanos {
        let ahead = u128::from(self.at.saturating_sub(now)) * u128::from(self.rate_bps);
        self.fill(now);
        let owed = ahead.saturating_sub(u128::from(self.level));
        self.level = u128::from(self.level).saturating_sub(ahead) as u64;
        self.rate_bps = rate_bps.max(1);
        self.at = now;
        if owed > 0 {
            let wait = owed.div_ceil(u128::from(self.rate_bps));
            self.level = (wait * u128::from(self.rate_bps) - owed) as u64;
            self.at = now.saturating_add(wait as u64);
        }
        self.at
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Packets at these times, of these bytes: `tries` random mixtures of bursts, pauses and sizes up to `most` bytes.
    pub fn arrivals(tries: u64, most: u32) -> impl Iterator<Item = Vec<(Nanos, u32)>> {
        (1..=tries).map(move |seed| {
            let mut stream = super::super::rng::Stream::new(seed, super::super::rng::Stage::Queue);
            let mut now = 0;
            let mean = 1 << (seed % 16);
            let next = move |_| {
                now += if stream.below(3) == 0 { stream.below(4 * mean) } else { 0 };
                (now, 64 + stream.below(u64::from(most) - 63) as u32)
            };
            (0..300).map(next).collect()
        })
    }

    /// How far the packets of any window exceed depth + rate × its length, in units; none: they never do.
    pub fn excess(packets: &[(Nanos, u32)], rate_bps: u64, bytes: u64) -> Option<u128> {
        let units = |bytes: u64| u128::from(bytes) * u128::from(UNITS_PER_BYTE);
        let mut worst = None;
        for first in 0..packets.len() {
            let mut sum = 0;
            for (at, length) in &packets[first..] {
                sum += u64::from(*length);
                let allowed = units(bytes) + u128::from(at - packets[first].0) * u128::from(rate_bps);
                worst = worst.max(units(sum).checked_sub(allowed).filter(|excess| *excess > 0));
            }
        }
        worst
    }

    /// What passes keeps to the curve in every window, and whatever was dropped would not have: no more could pass.
    #[test]
    fn a_policer_lets_pass_what_the_curve_allows_and_no_more() {
        for (rate_bps, bytes) in [
            (8_000, 1_538),
            (9_999_991, 3_000),
            (1_000_000_000, 32_000),
            (100_000_000_000, 20_000),
            (1_000_000_000_000, 20_000),
            (1_000_000_000_000, 64),
        ] {
            for packets in arrivals(40, 1_538) {
                let mut bucket = Bucket::new(rate_bps, bytes, 0);
                let mut passed = Vec::new();
                for (at, length) in packets {
                    let admitted = bucket.admits(length, at);
                    passed.push((at, length));
                    assert_eq!(excess(&passed, rate_bps, bytes).is_none(), admitted, "{rate_bps} {bytes} {passed:?}");
                    if !admitted {
                        passed.pop();
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_within_the_curve_passes_to_the_last_nanosecond() {
        let mut bucket = Bucket::new(8_000_000, 3_000, 0); // a byte a microsecond
        assert!(bucket.admits(1_500, 0) && bucket.admits(1_500, 0) && !bucket.admits(64, 63_999));
        assert!(bucket.admits(64, 64_000) && !bucket.admits(64, 127_999) && bucket.admits(64, 128_000));
        assert!(bucket.admits(3_000, 1 << 62) && !bucket.admits(1, 1 << 62), "no deeper than it is");
    }
}
