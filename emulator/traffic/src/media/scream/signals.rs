//! What SCReAMv2 makes of feedback before it decides: what was in flight, the share of marks, other flows at the bottleneck.
//! Pure; names in quotes are sections of the draft, times are seconds.

use std::collections::VecDeque;

/// The queueing delay that is aimed at, without other flows and at most.
pub const QDELAY_TARGET_LO: f64 = 0.06;
const QDELAY_TARGET_HI: f64 = 0.4;
const L4S_AVG_G_UP: f64 = 1.0 / 8.0;
const L4S_AVG_G_DOWN: f64 = 1.0 / 128.0;

// What the draft leaves open.
const LOSS_EVENT_GAIN: f64 = 0.01;
const SAMPLE: f64 = 0.05;

/// The most that was in flight in this round trip and in the one before.
#[derive(Default)]
pub struct InFlight {
    pub most: f64,
    pub previous_most: f64,
    pub begun_at: f64,
    pub rounds: u64,
}

impl InFlight {
    pub fn look(&mut self, now: f64, s_rtt: f64) {
        if self.rounds == 0 || now - self.begun_at >= s_rtt {
            (self.previous_most, self.most) = (self.most, 0.0);
            (self.begun_at, self.rounds) = (now, self.rounds + 1);
        }
    }
}

/// "Receiving ECN-CE for L4S": the smoothed share of packets that were marked.
#[derive(Default)]
pub struct Marks {
    pub alpha: f64,
    delivered: usize,
    marked: usize,
    updated_at: f64,
}

impl Marks {
    pub fn take(&mut self, delivered: usize, marked: usize, now: f64, s_rtt: f64) {
        self.delivered += delivered;
        self.marked += marked;
        if self.delivered == 0 || now - self.updated_at < s_rtt.min(0.01) {
            return;
        }
        let share = self.marked as f64 / self.delivered as f64;
        self.alpha = if share >= self.alpha {
            L4S_AVG_G_UP * share + (1.0 - L4S_AVG_G_UP) * self.alpha
        } else {
            (1.0 - L4S_AVG_G_DOWN) * self.alpha
        };
        (self.delivered, self.marked, self.updated_at) = (0, 0, now);
    }
}

/// "Competing flows compensation": the target of the queueing delay rises where the delay stays high whatever this flow
/// does, or where packets are lost.
#[derive(Default)]
pub struct CompetingFlows {
    /// Queueing delays as multiples of the lowest target, one each 50 ms.
    history: VecDeque<f64>,
    sampled_at: f64,
    loss_event_rate: f64,
    lost: bool,
    round_at: f64,
}

impl CompetingFlows {
    const LONG: usize = 200;
    const SHORT: usize = 50;

    pub fn note_loss(&mut self, lost: bool, now: f64, s_rtt: f64) {
        self.lost |= lost;
        if now - self.round_at >= s_rtt {
            self.loss_event_rate += LOSS_EVENT_GAIN * (f64::from(u8::from(self.lost)) - self.loss_event_rate);
            (self.lost, self.round_at) = (false, now);
        }
    }

    pub fn target(&mut self, qdelay: f64, target: f64, now: f64) -> f64 {
        if now - self.sampled_at < SAMPLE {
            return target;
        }
        self.sampled_at = now;
        self.history.push_back(qdelay / QDELAY_TARGET_LO);
        if self.history.len() > Self::LONG {
            self.history.pop_front();
        }
        let count = self.history.len() as f64;
        let mean = self.history.iter().sum::<f64>() / count;
        let variance = self.history.iter().map(|each| (each - mean).powi(2)).sum::<f64>() / count;
        let recent = self.history.len().min(Self::SHORT);
        let average = self.history.iter().rev().take(recent).sum::<f64>() / recent as f64;
        let highest = (average + libm::sqrt(variance)) * QDELAY_TARGET_LO;
        let target = if self.loss_event_rate > 0.002 {
            1.5 * highest
        } else if variance < 0.2 {
            highest
        } else if highest < QDELAY_TARGET_LO {
            (target * 0.5).max(highest)
        } else {
            target * 0.9
        };
        target.clamp(QDELAY_TARGET_LO, QDELAY_TARGET_HI)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_marks_rises_quickly_and_falls_slowly() {
        let mut marks = Marks::default();
        marks.take(10, 10, 1.0, 0.05);
        assert_eq!(marks.alpha, 0.125);
        marks.take(10, 0, 1.005, 0.05);
        assert_eq!(marks.alpha, 0.125); // not yet
        marks.take(10, 0, 1.02, 0.05);
        assert_eq!(marks.alpha, 0.125 * (1.0 - 1.0 / 128.0));
    }
}
