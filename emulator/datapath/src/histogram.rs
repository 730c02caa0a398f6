//! Percentiles of nanoseconds without keeping samples: counts by class (`ewan_model::classes`), so a percentile read back
//! is at most 1/16 too large.
//!
//! One thread records, any may read, neither waits for the other: recording is a load and a store of an atomic count, and
//! never allocates. The crate hdrhistogram, which counts delays of flows (generator), has no type for that: its plain
//! histogram cannot be read while it is written, its concurrent one sends every value through a channel or a lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ewan_model::classes::{class, upper, CLASSES};

pub struct Histogram {
    counts: Box<[AtomicU64]>,
    max: AtomicU64,
}

impl Histogram {
    pub fn new() -> Histogram {
        let counts = (0..CLASSES * 61).map(|_| AtomicU64::new(0)).collect();
        Histogram { counts, max: AtomicU64::new(0) }
    }

    /// By one thread only: a load and a store instead of a locked addition.
    #[inline]
    pub fn record(&self, value: u64) {
        let count = &self.counts[class(value)];
        count.store(count.load(Relaxed) + 1, Relaxed);
        if value > self.max.load(Relaxed) {
            self.max.store(value, Relaxed);
        }
    }

    /// The upper end of the class that holds the given fraction (in thousandths), 0 if nothing was recorded.
    pub fn percentile(&self, thousandths: u64) -> u64 {
        let rank = (self.count() * thousandths).div_ceil(1000);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count.load(Relaxed);
            if seen >= rank && rank > 0 {
                return upper(index).min(self.max());
            }
        }
        0
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Relaxed)).sum()
    }

    pub fn max(&self) -> u64 {
        self.max.load(Relaxed)
    }

    /// The upper end and the count of each class that holds something: what a reader needs to subtract an earlier
    /// reading from a later one.
    pub fn classes(&self) -> Vec<(u64, u64)> {
        let counts = self.counts.iter().map(|count| count.load(Relaxed)).enumerate();
        counts.filter(|(_, count)| *count > 0).map(|(index, count)| (upper(index), count)).collect()
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_one_to_a_thousand() {
        let histogram = Histogram::new();
        (1..=1000).for_each(|value| histogram.record(value));
        assert!((500..532).contains(&histogram.percentile(500)));
        assert_eq!((histogram.percentile(1000), histogram.max(), histogram.count()), (1000, 1000, 1000));
        assert_eq!(Histogram::new().percentile(500), 0);
    }
}
