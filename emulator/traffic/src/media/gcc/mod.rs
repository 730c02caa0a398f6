//! Google congestion control, after draft-ietf-rmcat-gcc-02. Pure.
//!
//! In: feedback. Out: a target rate, the lower one of a control by delay (`delay` finds over-use, `rate` acts on it) and of
//! one by loss (`loss`); and a pacing rate. It differs from the draft in these points:
//!
//! - All of it is at the sender, which has the arrival times by reports.
//! - The filter is the line through the last delays that replaced the draft's Kalman filter in WebRTC ("trendline"), with
//!   WebRTC's constants; the over-use detector is the draft's.
//! - Packets leave at 2.5 times the target rate, as in WebRTC; the draft paces at the target rate, where a key frame waits
//!   at the sender for its excess.
//! - Losses are judged over half a second, about the interval of the receiver reports that the draft has in mind.
//! - There is no probing with bursts (WebRTC) at the start or later.

mod delay;
mod loss;
mod rate;

use super::control::{Bounds, Control};
use super::history::Feedback;
use delay::DelayGradient;
use loss::LossBased;
use rate::RateControl;

const PACING: f64 = 2.5;

pub struct Gcc {
    bounds: Bounds,
    delay: DelayGradient,
    rate: RateControl,
    loss: LossBased,
    target_bps: f64,
}

impl Gcc {
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            delay: DelayGradient::default(),
            rate: RateControl::new(bounds.initial_bps),
            loss: LossBased::new(bounds.initial_bps),
            target_bps: bounds.initial_bps,
        }
    }
}

impl Control for Gcc {
    fn target_bps(&self) -> f64 {
        self.target_bps
    }

    fn pacing_bps(&self) -> Option<f64> {
        Some(PACING * self.target_bps)
    }

    fn take(&mut self, feedback: &Feedback) {
        let Bounds { least_bps, most_bps, .. } = self.bounds;
        let signal = self.delay.take(&feedback.came);
        let by_delay = self.rate.take(feedback, signal).clamp(least_bps, most_bps);
        self.rate.set(by_delay);
        let by_loss = self.loss.take(feedback, self.target_bps).clamp(least_bps, most_bps);
        self.target_bps = by_delay.min(by_loss);
    }

    fn queue_delay_ns(&self) -> Option<u64> {
        self.delay.queue_delay_ns()
    }
}
