//! The rate stage: a server, or a token bucket in its place. Of the bucket, up to its depth passes at once, or at the peak
//! rate, and no more than depth + rate × time in any time; a packet has left when the bucket has had all of its bytes.

use super::bucket::Bucket;
use super::rate::Server;
use super::Nanos;

#[derive(Clone, Debug)]
pub struct Shaper {
    /// Serves where there is no bucket.
    server: Server,
    burst: Option<Burst>,
}

#[derive(Clone, Debug)]
struct Burst {
    bucket: Bucket,
    peak: Option<Server>,
    /// From when on the last packet waited for the bucket alone.
    waits_from: Nanos,
    free_at: Nanos,
    last_bytes: u32,
}

impl Shaper {
    /// `burst_bytes` 0: no bucket; `peak_bps` 0: a packet that the bucket holds takes no time.
    pub fn new(rate_bps: u64, burst_bytes: u64, peak_bps: u64) -> Self {
        let mut shaper = Shaper { server: Server::new(rate_bps), burst: None };
        shaper.set_burst(burst_bytes, peak_bps, 0);
        shaper
    }

    pub fn rate_bps(&self) -> u64 {
        self.server.rate_bps()
    }

    /// The first nanosecond at which everything accepted so far has left.
    #[inline]
    pub fn free_at(&self) -> Nanos {
        self.burst.as_ref().map_or_else(|| self.server.free_at(), |burst| burst.free_at)
    }

    /// Sends `bytes` after everything accepted before, not before `arrival`; returns the first nanosecond at
    /// which the last bit has left.
    #[inline]
    pub fn serve(&mut self, bytes: u32, arrival: Nanos) -> Nanos {
        match &mut self.burst {
            None => self.server.serve(bytes, arrival),
            Some(burst) => burst.serve(bytes, arrival),
        }
    }

    /// A packet's time at the rate, rounded down to a nanosecond.
    pub fn time_of(&mut self, bytes: u32) -> Nanos {
        self.server.time_of(bytes)
    }

    /// From `now` on another rate: bits not yet sent go at the new one, none is lost or sent twice. While a packet passes at
    /// the peak rate, the bucket fills as it did when the packet began.
    pub fn set_rate(&mut self, rate_bps: u64, now: Nanos) {
        self.server.set_rate(rate_bps, now);
        if let Some(Burst { bucket, waits_from, free_at, .. }) = &mut self.burst {
            if *free_at > now {
                *free_at = bucket.set_rate(self.server.rate_bps(), now.max(*waits_from));
            } else {
                bucket.set_rate(self.server.rate_bps(), now);
            }
        }
    }

    /// Nothing leaves for now, as `Server` says; a link without a bucket alone is told to.
    pub fn stop(&mut self, now: Nanos) {
        self.server.stop(now);
    }

    /// As `Server` says.
    pub fn deliver(&mut self, bytes: u64, now: Nanos) -> u64 {
        self.server.deliver(bytes, now)
    }

    /// As `Server` says.
    pub fn forget(&mut self) {
        self.server.forget();
    }

    /// From `now` on another bucket, which is full, or holds what the one before did. A packet in service leaves when it
    /// would have; without a bucket, no later than at the rate.
    pub fn set_burst(&mut self, burst_bytes: u64, peak_bps: u64, now: Nanos) {
        let free_at = self.free_at();
        let before = self.burst.take();
        let last_bytes = before.as_ref().map_or(0, |before| before.last_bytes);
        if burst_bytes == 0 {
            if let Some(Burst { last_bytes, .. }) = before {
                // What it has yet to send is at most all of it.
                let whole = self.server.time_of(last_bytes);
                self.server.serve(0, free_at.min(now.saturating_add(whole)));
            }
            return;
        }
        // It fills on while the packet in service is sent as before.
        let fresh = || Bucket::new(self.server.rate_bps(), burst_bytes, now.max(free_at));
        let bucket = before.map_or_else(fresh, |before| before.bucket.of_depth(burst_bytes));
        self.burst = Some(Burst {
            bucket,
            peak: (peak_bps > 0).then(|| Server::new(peak_bps)),
            waits_from: free_at,
            free_at,
            last_bytes,
        });
    }
}

impl Burst {
    #[inline]
    fn serve(&mut self, bytes: u32, arrival: Nanos) -> Nanos {
        let mut start = arrival.max(self.free_at);
        if let Some(peak) = &mut self.peak {
            // Where the peak alone decided when the one before left, its parts of a nanosecond are carried.
            start = peak.serve(bytes, if peak.free_at() == self.free_at { arrival } else { start });
        }
        self.waits_from = start;
        self.last_bytes = bytes;
        self.free_at = self.bucket.wait_for(bytes, start);
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::super::bucket::tests::{arrivals, excess};
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    /// In any window no more than depth + rate × its length leaves, and nothing waits that might have left earlier.
    #[test]
    fn what_leaves_keeps_to_the_curve_and_leaves_as_early_as_it_may() {
        for (rate_bps, bytes) in [
            (8_000, 1_538),
            (9_999_991, 3_000),
            (1_000_000_000, 32_000),
            (100_000_000_000, 20_000),
            (1_000_000_000_000, 20_000),
        ] {
            for packets in arrivals(40, 1_538) {
                let mut shaper = Shaper::new(rate_bps, bytes, 0);
                let mut left: Vec<(Nanos, u32)> = Vec::new();
                for (at, length) in packets {
                    let departure = shaper.serve(length, at);
                    let earliest = left.last().map_or(at, |last| last.0.max(at));
                    assert!(departure >= earliest);
                    left.push((departure, length));
                    assert_eq!(excess(&left, rate_bps, bytes), None);
                    if departure > earliest {
                        left.last_mut().unwrap().0 -= 1;
                        assert!(excess(&left, rate_bps, bytes).is_some(), "it might have left earlier: {left:?}");
                        left.last_mut().unwrap().0 += 1;
                    }
                }
            }
        }
    }

    #[test]
    fn what_arrives_within_the_curve_does_not_wait() {
        for packets in arrivals(40, 1_538) {
            let mut policer = Bucket::new(9_999_991, 5_000, 0);
            let mut shaper = Shaper::new(9_999_991, 5_000, 0);
            for (at, length) in packets.into_iter().filter(|(at, length)| policer.admits(*length, *at)) {
                assert_eq!(shaper.serve(length, at), at);
            }
        }
    }

    /// A million packets back to back: the bucket's depth less than at the rate alone, rounded up to a nanosecond.
    #[test]
    fn long_run_rate_is_exact() {
        for rate in [8_000, 999_999_937, 10_000_000_000, 100_000_000_000, 1_000_000_000_000u64] {
            for peak in [0, 100_000_000_000, 1_000_000_000_000] {
                let mut shaper = Shaper::new(rate, 32_000, peak);
                let (mut bits, mut departure) = (0u128, 0);
                for n in 0..1_000_000u32 {
                    let bytes = [84, 1538, 1538, 777, 9038][(n % 5) as usize];
                    bits += u128::from(bytes) * 8;
                    departure = shaper.serve(bytes, 0);
                }
                let time = |bits: u128, rate: u64| (bits * u128::from(SECOND)).div_ceil(u128::from(rate));
                let (exact, found) = (time(bits - 32_000 * 8, rate), u128::from(departure));
                if peak == 0 {
                    assert_eq!(found, exact, "at {rate} bit/s");
                } else {
                    // A full bucket overflows while the first packets pass at the peak rate.
                    let most = exact.max(time(bits, peak)) + time(4 * 9_038 * 8, peak);
                    assert!((exact.max(time(bits, peak))..=most).contains(&found), "at {rate} bit/s: {found}, {exact}");
                }
            }
        }
    }

    /// At 1 Tbit/s, a bucket of 64 bytes is filled within half a nanosecond.
    #[test]
    fn a_bucket_less_deep_than_a_nanosecond_carries_what_is_left_of_it() {
        let mut shaper = Shaper::new(1_000_000_000_000, 64, 0);
        for n in 0..1_000_000u64 {
            assert_eq!(shaper.serve(64, 0), (n * 512).div_ceil(1000));
        }
        // Idle for long, it holds no more than its depth.
        assert_eq!([64, 64, 64].map(|bytes| shaper.serve(bytes, SECOND)), [SECOND, SECOND + 1, SECOND + 2]);
    }

    #[test]
    fn a_burst_leaves_at_the_peak_rate() {
        let mut shaper = Shaper::new(8_000_000, 3_000, 80_000_000); // a byte a microsecond, ten at the peak
        assert_eq!([1_000, 1_000, 1_000].map(|bytes| shaper.serve(bytes, 0)), [100_000, 200_000, 300_000]);
        // 3,300 bytes have flowed out or in by 300 us.
        assert_eq!([shaper.serve(1_000, 0), shaper.serve(1_000, 0)], [1_100_000, 2_100_000]);
        assert_eq!(shaper.serve(1_000, 9_000_000), 9_100_000, "it is full again");
    }

    #[test]
    fn packets_longer_than_the_bucket_leave_at_the_rate() {
        let mut shaper = Shaper::new(8_000_000, 64, 0);
        assert_eq!([shaper.serve(1_000, 0), shaper.serve(1_000, 0)], [936_000, 1_936_000]);
    }

    #[test]
    fn a_packet_that_waits_takes_the_rest_at_the_new_rate() {
        let mut shaper = Shaper::new(8_000_000, 1_000, 0);
        assert_eq!([shaper.serve(1_000, 0), shaper.serve(1_000, 0)], [0, 1_000_000]);
        shaper.set_rate(16_000_000, 400_000); // 600 bytes more, two a microsecond
        assert_eq!(shaper.free_at(), 700_000);
        assert_eq!(shaper.serve(100, 0), 750_000);
        shaper.set_rate(8_000_000, 850_000); // it held 200 bytes by then
        assert_eq!([shaper.serve(200, 850_000), shaper.serve(100, 850_000)], [850_000, 950_000]);
    }

    /// At 100 Gbit/s the bucket is full all the time that the packet takes at its peak rate.
    #[test]
    fn a_packet_at_the_peak_rate_is_not_held_by_another_rate() {
        let mut shaper = Shaper::new(100_000_000_000, 16_384, 8_000);
        assert_eq!(shaper.serve(1_000, 0), 1_000_000_000);
        shaper.set_rate(8_000_000, 5_000);
        assert_eq!(shaper.free_at(), 1_000_000_000);
    }

    #[test]
    fn another_burst_keeps_what_the_bucket_held_and_when_the_packet_in_service_leaves() {
        let mut shaper = Shaper::new(8_000_000, 0, 0);
        assert_eq!(shaper.serve(1_000, 0), 1_000_000);
        shaper.set_burst(5_000, 0, 10);
        assert_eq!(shaper.free_at(), 1_000_000);
        assert_eq!([shaper.serve(4_000, 0), shaper.serve(1_001, 0)], [1_000_000, 1_001_000]);
        shaper.set_burst(100, 0, 1_000_000);
        assert_eq!(shaper.serve(1_000, 1_000_000), 2_001_000);
        shaper.set_burst(0, 0, 1_500_000);
        assert_eq!([shaper.free_at(), shaper.serve(1_000, 0)], [2_001_000, 3_001_000]);
        let mut shaper = Shaper::new(100_000_000_000, 16_384, 8_000);
        assert_eq!(shaper.serve(1_000, 0), 1_000_000_000);
        shaper.set_burst(0, 0, 5);
        assert_eq!(shaper.free_at(), 85, "the whole packet at the rate");
    }
}
