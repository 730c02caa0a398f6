//! Step marking (DCTCP, RFC 8257): each packet that would make more than a threshold wait is marked, if it allows it.

use alloc::format;

use serde::{Deserialize, Serialize};

use super::{Aqm, Arrival, Config, Verdict};
use crate::check::{require, CheckResult, MOST_BYTES};
use crate::rng::Stream;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepConfig {
    pub threshold_bytes: u64,
}

#[derive(Clone, Debug)]
pub struct Step {
    threshold: u64,
}

impl Config for StepConfig {
    type Model = Step;

    fn check(&self) -> CheckResult {
        let threshold_bytes = self.threshold_bytes;
        require((1..=MOST_BYTES).contains(&threshold_bytes), || {
            format!("threshold_bytes {threshold_bytes}: write 1 to {MOST_BYTES} (8 GiB)")
        })
    }

    fn model(&self) -> Step {
        Step { threshold: self.threshold_bytes }
    }
}

impl Aqm for Step {
    const ON_ARRIVAL: bool = true;

    #[inline]
    fn arrives(&mut self, arrival: &Arrival, _: &mut Stream) -> Verdict {
        let above = arrival.idle.is_none() && arrival.queued_bytes + u64::from(arrival.bytes) > self.threshold;
        if above && arrival.ecn_capable {
            Verdict::Mark
        } else {
            Verdict::Pass
        }
    }
}
