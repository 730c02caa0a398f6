//! The rate by loss: section 6 of the draft. Pure.
//!
//! In: feedback, and the target rate so far. Out: a rate: less by half of the share that was lost where that is above 10 %,
//! 5 % more where it is below 2 %, else the same.

use super::super::history::Feedback;

const INTERVAL_NS: u64 = 500_000_000;
/// Shares of fewer packets say little.
const LEAST_PACKETS: u32 = 20;
const MUCH: f64 = 0.1;
const LITTLE: f64 = 0.02;

pub struct LossBased {
    rate_bps: f64,
    came: u32,
    lost: u32,
    judged_ns: Option<u64>,
}

impl LossBased {
    pub fn new(rate_bps: f64) -> Self {
        Self { rate_bps, came: 0, lost: 0, judged_ns: None }
    }

    pub fn take(&mut self, feedback: &Feedback, target_bps: f64) -> f64 {
        self.came += feedback.came.len() as u32;
        self.lost += feedback.lost_packets;
        let since_ns = self.judged_ns.get_or_insert(feedback.now_ns);
        if feedback.now_ns - *since_ns < INTERVAL_NS || self.came + self.lost < LEAST_PACKETS {
            return self.rate_bps;
        }
        *since_ns = feedback.now_ns;
        let share = f64::from(self.lost) / f64::from(self.came + self.lost);
        (self.came, self.lost) = (0, 0);
        if share > MUCH {
            self.rate_bps = target_bps * (1.0 - 0.5 * share);
        } else if share < LITTLE {
            self.rate_bps = 1.05 * (target_bps + 1000.0);
        }
        self.rate_bps
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::history::AcknowledgedPacket;
    use super::*;

    /// The rate after an interval in which so many of 100 packets were lost, from 1 Mbit/s.
    fn after(lost: u32) -> f64 {
        let mut control = LossBased::new(1e6);
        let packet = AcknowledgedPacket { bytes: 1000, sent_ns: 0, arrived_ns: 0, marked: false };
        control.take(&Feedback::default(), 1e6);
        let came = vec![packet; 100 - lost as usize];
        let feedback = Feedback { now_ns: INTERVAL_NS, came, lost_packets: lost, ..Feedback::default() };
        control.take(&feedback, 1e6)
    }

    #[test]
    fn rates_by_loss_are_those_of_the_equations() {
        assert_eq!(after(0), 1.05 * 1.001e6);
        assert_eq!(after(1), 1.05 * 1.001e6);
        assert_eq!((after(2), after(10)), (1e6, 1e6));
        assert_eq!(after(20), 0.9e6);
    }

    #[test]
    fn a_few_packets_are_not_judged() {
        let mut control = LossBased::new(1e6);
        control.take(&Feedback::default(), 1e6);
        let feedback = Feedback { now_ns: INTERVAL_NS, lost_packets: 19, ..Feedback::default() };
        assert_eq!(control.take(&feedback, 1e6), 1e6);
    }
}
