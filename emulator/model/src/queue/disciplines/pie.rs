//! PIE, RFC 8033: an arriving packet is dropped with a probability that a proportional-integral controller
//! updates periodically from the queue's delay and its trend. With the scaling of the adjustment (section 4.2),
//! the burst allowance (4.4), ECN below a probability of 0.1 (5.1), derandomisation (5.4) and the cap on a
//! growing adjustment (5.5).
//!
//! Divergences: the queue's delay is the bytes waiting divided by the rate, which is known here, so neither
//! timestamps nor an estimate of the departure rate are needed; PIE is always active; the probability is per
//! packet; fixed point, 10^-18. Updates happen at fixed times from the first arrival on.

use alloc::format;

use serde::{Deserialize, Serialize};

use super::{Aqm, Arrival, Config, Verdict};
use crate::check::{require, time, CheckResult, LONGEST_NS};
use crate::rng::Stream;
use crate::Nanos;

const ONE: i128 = 1_000_000_000_000_000_000;
/// Updates one after the other must not keep whoever evaluates the link: over 10 s without a look they are 100 000.
pub const LEAST_UPDATE_NS: Nanos = 100_000;
const MAX_BURST: Nanos = 150_000_000;
/// Queues up to two packets of the RFC's mean size never suffer.
const SHORT_BYTES: u64 = 2 * 1024;

/// Of the gains: 1000 Hz.
const MOST_GAIN_MHZ: u64 = 1_000_000;

/// Alpha and beta in thousandths of a hertz (0.125 → 125, 1.25 → 1250).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PieConfig {
    pub target_ns: u64,
    pub update_ns: u64,
    pub alpha_mhz: u64,
    pub beta_mhz: u64,
    pub ecn: bool,
}

impl Config for PieConfig {
    type Model = Pie;

    fn check(&self) -> CheckResult {
        check_controller(self.target_ns, self.update_ns, self.alpha_mhz, self.beta_mhz)
    }

    fn model(&self) -> Pie {
        Pie::new(self.target_ns, self.update_ns, self.alpha_mhz, self.beta_mhz, self.ecn)
    }
}

/// Of PIE and of DualPI2.
pub(super) fn check_controller(target_ns: Nanos, update_ns: Nanos, alpha_mhz: u64, beta_mhz: u64) -> CheckResult {
    time("target_ns", target_ns, 1, 2 * LONGEST_NS)?;
    time("update_ns", update_ns, LEAST_UPDATE_NS, LONGEST_NS)?;
    for (key, gain) in [("alpha_mhz", alpha_mhz), ("beta_mhz", beta_mhz)] {
        require(gain <= MOST_GAIN_MHZ, || format!("{key} {gain}: write at most {MOST_GAIN_MHZ} (1000 Hz)"))?;
    }
    Ok(())
}

impl Aqm for Pie {
    const ON_ARRIVAL: bool = true;

    #[inline]
    fn arrives(&mut self, arrival: &Arrival, stream: &mut Stream) -> Verdict {
        self.judge(arrival, stream)
    }

    #[inline]
    fn keep_time(&mut self, until: Nanos, queued_bytes: u64, rate_bps: u64) {
        self.update_until(until, queued_bytes, rate_bps);
    }
}

#[derive(Clone, Debug)]
pub struct Pie {
    target: Nanos,
    period: Nanos,
    /// In 10^-3 Hz, which times nanoseconds is 10^-12.
    alpha: i128,
    beta: i128,
    ecn: bool,
    probability: i128,
    delay_before: Nanos,
    burst: Nanos,
    next_update: Option<Nanos>,
    /// Sum of the probabilities since the last drop.
    accumulated: i128,
}

impl Pie {
    pub fn new(target: Nanos, period: Nanos, alpha_mhz: u64, beta_mhz: u64, ecn: bool) -> Self {
        Pie {
            target,
            period: period.max(LEAST_UPDATE_NS), // a shorter one was refused by `check`
            alpha: i128::from(alpha_mhz),
            beta: i128::from(beta_mhz),
            ecn,
            probability: 0,
            delay_before: 0,
            burst: MAX_BURST,
            next_update: None,
            accumulated: 0,
        }
    }

    /// Makes the updates due up to `until`, while `queued_bytes` wait all the time.
    #[inline]
    pub fn update_until(&mut self, until: Nanos, queued_bytes: u64, rate_bps: u64) {
        while let Some(now) = self.next_update.filter(|now| *now <= until) {
            if self.probability == 0 && self.delay_before == 0 && queued_bytes == 0 {
                // Nothing will change until a packet waits.
                self.burst = MAX_BURST;
                self.next_update = Some(until.saturating_add(self.period - (until - now) % self.period));
                return;
            }
            self.update((u128::from(queued_bytes) * 8_000_000_000 / u128::from(rate_bps)) as Nanos);
            self.next_update = Some(now.saturating_add(self.period));
        }
    }

    fn update(&mut self, delay: Nanos) {
        let (target, before, now) = (i128::from(self.target), i128::from(self.delay_before), i128::from(delay));
        let step = (self.alpha * (now - target) + self.beta * (now - before)) * (ONE / 1_000_000_000_000);
        let mut step = step / self.scale();
        if self.probability >= ONE / 10 {
            step = step.min(ONE / 50);
        }
        self.probability += step;
        if delay == 0 && self.delay_before == 0 {
            self.probability = self.probability * 98 / 100;
        }
        self.probability = self.probability.clamp(0, ONE);
        self.burst = self.burst.saturating_sub(self.period);
        if self.probability == 0 && delay < self.target / 2 && self.delay_before < self.target / 2 {
            self.burst = MAX_BURST;
        }
        self.delay_before = delay;
    }

    /// The smaller the probability, the smaller the steps.
    fn scale(&self) -> i128 {
        match self.probability {
            p if p < ONE / 1_000_000 => 2048,
            p if p < ONE / 100_000 => 512,
            p if p < ONE / 10_000 => 128,
            p if p < ONE / 1_000 => 32,
            p if p < ONE / 100 => 8,
            p if p < ONE / 10 => 2,
            _ => 1,
        }
    }

    pub fn judge(&mut self, arrival: &Arrival, stream: &mut Stream) -> Verdict {
        if self.next_update.is_none() {
            self.next_update = Some(arrival.now + self.period);
        }
        if self.burst > 0
            || (self.delay_before < self.target / 2 && self.probability < ONE / 5)
            || arrival.queued_bytes <= SHORT_BYTES
        {
            return Verdict::Pass;
        }
        if self.probability == 0 {
            self.accumulated = 0;
        }
        self.accumulated += self.probability;
        if self.accumulated < ONE * 85 / 100 {
            return Verdict::Pass;
        }
        let chosen = i128::from(stream.below(ONE as u64)) < self.probability;
        if self.accumulated < ONE * 85 / 10 && !chosen {
            return Verdict::Pass;
        }
        self.accumulated = 0;
        if self.ecn && arrival.ecn_capable && self.probability < ONE / 10 {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stage;

    const MS: Nanos = 1_000_000;

    fn pie() -> Pie {
        Pie::new(15 * MS, 15 * MS, 125, 1_250, true)
    }

    fn at(queued_bytes: u64) -> Arrival {
        Arrival { now: 0, bytes: 1_500, queued_bytes, idle: None, serialisation: 1, ecn_capable: true }
    }

    #[test]
    fn the_controller_steps_as_in_section_4_2() {
        let mut pie = pie();
        pie.update(35 * MS); // 0.125 × 0.020 + 1.25 × 0.035 = 0.04625, / 2048
        assert_eq!(pie.probability, 46_250_000_000_000_000 / 2048);
        pie.probability = ONE / 2;
        pie.update(35 * MS); // 0.0025, at full scale
        assert_eq!(pie.probability, ONE / 2 + 2_500_000_000_000_000);
        pie.update(200 * MS); // 0.229, capped at 0.02
        assert_eq!(pie.probability, ONE / 2 + 22_500_000_000_000_000);
        pie.probability = ONE / 2;
        (pie.delay_before, pie.burst) = (0, 0);
        pie.update(0); // − 0.125 × 0.015, then × 0.98
        assert_eq!(pie.probability, (ONE / 2 - 1_875_000_000_000_000) * 98 / 100);
    }

    #[test]
    fn a_burst_of_150_ms_passes() {
        let mut pie = pie();
        let mut stream = Stream::new(1, Stage::Queue);
        let mut passed = 0;
        for ms in 0..10_000 {
            pie.update_until(ms * MS, 100_000_000, 8_000_000_000);
            pie.probability = if pie.next_update.is_some() { ONE } else { 0 };
            if pie.judge(&Arrival { now: ms * MS, ..at(100_000_000) }, &mut stream) != Verdict::Pass {
                passed = ms;
                break;
            }
        }
        assert_eq!(passed, 150);
    }

    #[test]
    fn drops_at_its_probability_but_never_two_close_together() {
        let mut pie = pie();
        let mut stream = Stream::new(1, Stage::Queue);
        (pie.probability, pie.delay_before, pie.burst) = (ONE / 20, 20 * MS, 0);
        let verdicts: Vec<_> = (0..100_000).map(|_| pie.judge(&at(50_000), &mut stream)).collect();
        let marks: Vec<_> = (0..verdicts.len()).filter(|n| verdicts[*n] == Verdict::Mark).collect();
        // 16 certain passes, then one in twenty: mean gap 16 + 20 (cut at 170 packets).
        assert!((2_700..2_860).contains(&marks.len()), "{}", marks.len());
        assert!(marks.windows(2).all(|pair| (17..=170).contains(&(pair[1] - pair[0]))));
    }

    #[test]
    fn an_idle_queue_forgets_and_regains_its_allowance() {
        let mut pie = pie();
        (pie.probability, pie.burst, pie.next_update) = (ONE / 2, 0, Some(0));
        pie.update_until(60_000 * MS, 0, 8_000_000_000);
        assert_eq!((pie.probability, pie.burst), (0, MAX_BURST));
        assert_eq!(pie.next_update, Some(60_000 * MS + 15 * MS));
    }
}
