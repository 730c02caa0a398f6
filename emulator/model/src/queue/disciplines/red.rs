//! RED, Floyd & Jacobson 1993 ("Random Early Detection Gateways for Congestion Avoidance"): an arriving packet
//! is dropped with a probability that grows with the average length of the queue, evenly spread by a count of
//! packets since the last drop. With `gentle` (Floyd 2000): between the maximum and twice the maximum the
//! probability grows from max_p to 1 instead of jumping there.
//!
//! The count is the paper's pseudocode to the letter (it is 1 for the packet after a drop), so drops are 1 to
//! 1/p − 1 packets apart. Divergences: the queue is measured in bytes, the probability is per packet; the time that a small packet
//! takes while the queue is idle is the arriving packet's own serialisation time; fixed point, 2^-32 for
//! probabilities, 2^-weight of a byte for the average. With ECN, capable packets are marked below the maximum
//! and dropped above it (RFC 3168, section 7).

use alloc::format;

use serde::{Deserialize, Serialize};

use super::{Aqm, Arrival, Config, Verdict};
use crate::check::{probability, require, CheckResult, MOST_BYTES};
use crate::config::Ppb;
use crate::rng::Stream;

const ONE: u64 = 1 << 32;
/// Fixed point holds the average of 8 GiB with this many bits behind the point.
const MOST_WEIGHT_LOG2: u8 = 20;

/// The average moves by 2^-weight_log2 a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedConfig {
    pub min_bytes: u64,
    pub max_bytes: u64,
    pub max_p_ppb: Ppb,
    pub weight_log2: u8,
    pub ecn: bool,
}

impl Config for RedConfig {
    type Model = Red;

    fn check(&self) -> CheckResult {
        let RedConfig { min_bytes, max_bytes, max_p_ppb, weight_log2, ecn: _ } = *self;
        probability("max_p_ppb", max_p_ppb)?;
        require(min_bytes < max_bytes, || format!("min_bytes {min_bytes}: must be below max_bytes ({max_bytes})"))?;
        require(max_bytes <= MOST_BYTES, || format!("max_bytes {max_bytes}: write at most {MOST_BYTES} (8 GiB)"))?;
        require(weight_log2 <= MOST_WEIGHT_LOG2, || {
            format!("weight_log2 {weight_log2}: write 0 to {MOST_WEIGHT_LOG2} (usual: 9)")
        })
    }

    fn model(&self) -> Red {
        Red::new(self.min_bytes, self.max_bytes, self.max_p_ppb, self.weight_log2, self.ecn)
    }
}

impl Aqm for Red {
    const ON_ARRIVAL: bool = true;

    #[inline]
    fn arrives(&mut self, arrival: &Arrival, stream: &mut Stream) -> Verdict {
        self.judge(arrival, stream)
    }
}

#[derive(Clone, Debug)]
pub struct Red {
    min: u64,
    max: u64,
    max_p: u64,
    weight: u32,
    ecn: bool,
    /// Average bytes waiting × 2^weight.
    average: u64,
    /// Packets since the last drop or mark while above the minimum; none yet below it.
    count: Option<u64>,
}

impl Red {
    pub fn new(min_bytes: u64, max_bytes: u64, max_p_ppb: u32, weight_log2: u8, ecn: bool) -> Self {
        Red {
            min: min_bytes,
            max: max_bytes.max(min_bytes.saturating_add(1)),
            max_p: u64::from(max_p_ppb) * ONE / 1_000_000_000,
            weight: u32::from(weight_log2.min(MOST_WEIGHT_LOG2)),
            ecn,
            average: 0,
            count: None,
        }
    }

    pub fn average_bytes(&self) -> u64 {
        self.average >> self.weight
    }

    pub fn judge(&mut self, arrival: &Arrival, stream: &mut Stream) -> Verdict {
        self.update(arrival);
        let average = self.average_bytes();
        if average < self.min {
            self.count = None;
            return Verdict::Pass;
        }
        if average >= 2 * self.max {
            self.count = Some(0);
            return Verdict::Drop;
        }
        let share =
            |of: u64, from: u64, range: u64| (u128::from(of) * u128::from(average - from) / u128::from(range)) as u64;
        let probability = if average < self.max {
            share(self.max_p, self.min, self.max - self.min)
        } else {
            self.max_p + share(ONE - self.max_p, self.max, self.max)
        };
        let count = self.count.map_or(0, |count| count + 1);
        // p / (1 − count × p), without the division; certain once that is 1 or more.
        let rest = ONE.saturating_sub(count.saturating_mul(probability));
        if u128::from(stream.bits() >> 32) * u128::from(rest) >= u128::from(probability) * u128::from(ONE) {
            self.count = Some(count);
            return Verdict::Pass;
        }
        self.count = Some(0);
        if self.ecn && arrival.ecn_capable && average < self.max {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }

    fn update(&mut self, arrival: &Arrival) {
        if let Some(idle) = arrival.idle {
            // As if so many small packets had arrived at an empty queue.
            self.average = decay(self.average, self.weight, idle / arrival.serialisation.max(1));
        } else {
            self.average = self.average - (self.average >> self.weight) + arrival.queued_bytes;
        }
    }
}

/// average × (1 − 2^-weight)^times, by squaring.
fn decay(average: u64, weight: u32, mut times: u64) -> u64 {
    let mut factor = ONE - (ONE >> weight);
    let mut result = u128::from(average);
    while times > 0 && result > 0 {
        if times & 1 == 1 {
            result = (result * u128::from(factor)) >> 32;
        }
        factor = ((u128::from(factor) * u128::from(factor)) >> 32) as u64;
        times >>= 1;
    }
    result as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stage;

    fn at(queued_bytes: u64) -> Arrival {
        Arrival { now: 0, bytes: 1_500, queued_bytes, idle: None, serialisation: 1_000, ecn_capable: true }
    }

    /// Average held at `queued` bytes: verdicts on n packets.
    fn hold(red: &mut Red, queued: u64, n: usize) -> Vec<Verdict> {
        let mut stream = Stream::new(1, Stage::Queue);
        red.average = queued << red.weight;
        (0..n).map(|_| red.judge(&at(queued), &mut stream)).collect()
    }

    #[test]
    fn the_average_follows_by_its_weight_and_decays_when_idle() {
        let mut red = Red::new(1_000_000, 3_000_000, 20_000_000, 9, false);
        let mut stream = Stream::new(1, Stage::Queue);
        for _ in 0..512 {
            red.judge(&at(100_000), &mut stream);
        }
        let reached = red.average_bytes() as f64;
        assert!((reached / 100_000.0 - (1.0 - (1.0f64 - 1.0 / 512.0).powi(512))).abs() < 1e-4, "{reached}");
        red.judge(&Arrival { idle: Some(512_000), ..at(0) }, &mut stream);
        let left = red.average_bytes() as f64 / reached;
        assert!((left - (1.0f64 - 1.0 / 512.0).powi(512)).abs() < 1e-4, "{left}");
    }

    #[test]
    fn nothing_below_the_minimum_everything_above_twice_the_maximum() {
        let mut red = Red::new(1_000, 3_000, 100_000_000, 9, true);
        assert!(hold(&mut red, 999, 1_000).iter().all(|verdict| *verdict == Verdict::Pass));
        assert!(hold(&mut red, 6_000, 1_000).iter().all(|verdict| *verdict == Verdict::Drop));
    }

    /// The count makes the gap between marks uniform in 1..1/p − 1.
    #[test]
    fn marks_are_evenly_spread() {
        let mut red = Red::new(1_000, 3_000, 100_000_000, 9, true);
        let seen = hold(&mut red, 2_000, 200_000); // p = 0.05: gaps of 1 to 19, mean 10
        let marks: Vec<_> = (0..seen.len()).filter(|n| seen[*n] == Verdict::Mark).collect();
        assert!((19_750..20_250).contains(&marks.len()), "{}", marks.len());
        let gaps: Vec<_> = marks.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for gap in 1..=19 {
            let often = gaps.iter().filter(|found| **found == gap).count();
            assert!((900..1_210).contains(&often), "{gap}: {often}");
        }
        assert!(gaps.iter().all(|gap| *gap <= 20)); // 20 by the rounding of p
    }

    #[test]
    fn gentle_grows_above_max_p_and_drops_even_capable_packets() {
        let mut red = Red::new(1_000, 3_000, 100_000_000, 9, true);
        let seen = hold(&mut red, 3_666, 100_000); // p = 0.3: gaps of 1, 2, 3 with 3/7, 3/7, 1/7: mean 12/7
        let drops = seen.iter().filter(|verdict| **verdict == Verdict::Drop).count() as f64;
        assert!((drops / 1e5 - 7.0 / 12.0).abs() < 0.01, "{drops}");
        assert!(!seen.contains(&Verdict::Mark));
    }
}
