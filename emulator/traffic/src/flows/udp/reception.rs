//! What a receiver makes of the packets of one flow: pure, and in a space that grows by one bit a packet.
//!
//! In: each arrival with its sequence number, delay and size. Out: loss, duplicates, reordering (RFC 4737, section 3.3: a
//! packet is reordered when one with a higher number came before it), jitter (RFC 3550, section 6.4.1), and percentiles of
//! the one-way delay: its least and its largest value exactly, those between within 0.05 %.

use hdrhistogram::Histogram;

use crate::probe::stats::Jitter;

#[derive(Default)]
pub struct Reception {
    /// One bit for each sequence number.
    seen: Vec<u64>,
    /// One more than the highest sequence number seen.
    next: u64,
    pub packets: u64,
    /// Of payload, copies not counted.
    pub bytes: u64,
    pub duplicates: u64,
    pub reordered: u64,
    /// CLOCK_REALTIME of the last arrival.
    pub last_ns: Option<i64>,
    pub jitter: Jitter,
    pub delays: Delays,
}

impl Reception {
    pub fn take(&mut self, sequence: u64, at_ns: i64, delay_ns: i64, bytes: usize) {
        self.last_ns = Some(at_ns);
        self.jitter.take(delay_ns);
        let (word, bit) = ((sequence / 64) as usize, 1 << (sequence % 64));
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            self.duplicates += 1;
            return;
        }
        self.seen[word] |= bit;
        self.packets += 1;
        self.bytes += bytes as u64;
        self.delays.add(delay_ns);
        if sequence < self.next {
            self.reordered += 1;
        } else {
            self.next = sequence + 1;
        }
    }

    /// How many of `sent` packets may still be on their way, if nothing overtakes.
    pub fn outstanding(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.next)
    }
}

/// How often which one-way delay came, in nanoseconds.
pub struct Delays {
    least: Option<i64>,
    largest: Option<i64>,
    /// Grows with the largest delay: about 70 kB up to 0.1 s, 4 kB more each time that doubles.
    counts: Histogram<u32>,
}

/// Values with 11 leading bits in common count as one: 0.1 % or less apart.
const SIGNIFICANT_DIGITS: u8 = 3;

impl Default for Delays {
    fn default() -> Self {
        let counts = Histogram::new(SIGNIFICANT_DIGITS).expect("three digits are supported");
        Delays { least: None, largest: None, counts }
    }
}

impl Delays {
    fn add(&mut self, value: i64) {
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.largest = Some(self.largest.map_or(value, |largest| largest.max(value)));
        // Below 0 is only what a step of the clock made of it.
        self.counts.record(value.max(0) as u64).expect("it grows as far as delays go");
    }

    /// Nearest rank: the smallest value with at least `per_mille` of all at or below it.
    pub fn percentile(&self, per_mille: u64) -> Option<i64> {
        let (least, largest, count) = (self.least?, self.largest?, self.counts.len());
        let rank = (count * per_mille).div_ceil(1000).max(1);
        if rank >= count {
            return Some(largest);
        }
        // Halfway between two ranks, so that no rounding makes it another.
        let found = self.counts.value_at_quantile((rank as f64 - 0.5) / count as f64);
        Some((self.counts.median_equivalent(found) as i64).clamp(least, largest))
    }

    pub fn least(&self) -> Option<i64> {
        self.least
    }

    pub fn largest(&self) -> Option<i64> {
        self.largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(arrivals: &[(u64, i64)]) -> Reception {
        let mut heard = Reception::default();
        arrivals.iter().zip(0..).for_each(|(&(sequence, delay_ns), at_ns)| heard.take(sequence, at_ns, delay_ns, 100));
        heard
    }

    #[test]
    fn lost_duplicated_reordered() {
        // Sent 0 to 5; 2 comes late, 3 comes twice, 5 never.
        let found = heard(&[(0, 1), (1, 1), (3, 1), (2, 1), (3, 1), (4, 1)]);
        assert_eq!((found.packets, found.duplicates, found.reordered, found.bytes), (5, 1, 1, 500));
        assert_eq!((found.outstanding(6), found.outstanding(5)), (1, 0));
        // A thousand numbers later, the first ones are still known.
        let found = heard(&[(0, 1), (1000, 1), (0, 1), (999, 1)]);
        assert_eq!((found.packets, found.duplicates, found.reordered), (3, 1, 1));
    }

    #[test]
    fn jitter_by_hand() {
        // |D| = 16, then 0: 0 + 16/16 = 1; 1 − 1/16.
        assert_eq!(heard(&[(0, 100), (1, 116), (2, 116)]).jitter.ns(), 0.9375);
    }

    #[test]
    fn percentiles_of_one_to_a_million_within_half_a_per_mille() {
        let mut delays = Delays::default();
        (1..=1_000_000).rev().for_each(|value| delays.add(value));
        for per_mille in [1, 10, 500, 950, 990] {
            let (found, exact) = (delays.percentile(per_mille).unwrap() as f64, per_mille as f64 * 1000.0);
            assert!((found / exact - 1.0).abs() <= 0.0005 + 1.0 / exact, "{found}, not {exact}");
        }
        assert_eq!(
            (delays.least(), delays.largest(), delays.percentile(1000)),
            (Some(1), Some(1_000_000), Some(1_000_000))
        );
        assert!(delays.counts.distinct_values() < 16_000, "{} classes", delays.counts.distinct_values());
    }

    #[test]
    fn a_delay_below_zero_is_the_least_and_counts_as_none() {
        let mut delays = Delays::default();
        [-5, 10, 20].into_iter().for_each(|value| delays.add(value));
        assert_eq!((delays.least(), delays.percentile(1), delays.percentile(500)), (Some(-5), Some(0), Some(10)));
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        for count in 1..=200u64 {
            let mut delays = Delays::default();
            (1..=count).for_each(|value| delays.add(value as i64));
            for per_mille in [1, 50, 500, 900, 950, 990, 999] {
                let rank = (count * per_mille).div_ceil(1000).max(1);
                assert_eq!(delays.percentile(per_mille), Some(rank as i64), "{per_mille} ‰ of {count}");
            }
        }
    }

    #[test]
    fn of_equal_delays_all_percentiles_are_exact_and_of_none_there_are_none() {
        let mut delays = Delays::default();
        assert_eq!((delays.percentile(500), delays.least()), (None, None));
        (0..100).for_each(|_| delays.add(50_000_123));
        assert_eq!((delays.percentile(500), delays.percentile(990)), (Some(50_000_123), Some(50_000_123)));
    }
}
