//! The rate by delay: section 5.5 of the draft. Pure.
//!
//! In: feedback and the detector's signal. Out: a rate. It grows by 8 % a second, near the rate at which over-use came before
//! by half a packet a response time; on over-use it falls to 0.85 of what arrives; it waits where the queue drains.

use std::collections::VecDeque;

use super::super::history::Feedback;
use super::super::seconds;
use super::delay::Signal;

/// T, in which the rate of arrivals is measured.
const WINDOW_NS: u64 = 500_000_000;
const BETA: f64 = 0.85;
const GROWTH: f64 = 1.08;
/// No more than so much above what arrives.
const HEADROOM: f64 = 1.5;
/// Of the moving average of rates at decreases.
const SMOOTHING: f64 = 0.95;
/// The standard deviation of these rates counts as no less and no more of their mean, by WebRTC's bounds at 1 Mbit/s.
const DEVIATIONS: (f64, f64) = (0.02, 0.05);
const FRAMES_PER_SECOND: f64 = 30.0;
const PACKET_BITS: f64 = 9600.0;
const LEAST_STEP_BPS: f64 = 1000.0;
const RESPONSE_S: f64 = 0.1;
const USUAL_RTT_S: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hold,
    Increase,
    Decrease,
}

pub struct RateControl {
    rate_bps: f64,
    state: State,
    updated_ns: Option<u64>,
    arrivals: VecDeque<(u64, u32)>,
    rtt_s: f64,
    /// Mean and variance, relative to the mean, of what arrived at decreases.
    capacity: Option<(f64, f64)>,
}

impl RateControl {
    pub fn new(rate_bps: f64) -> Self {
        Self {
            rate_bps,
            state: State::Increase,
            updated_ns: None,
            arrivals: VecDeque::new(),
            rtt_s: USUAL_RTT_S,
            capacity: None,
        }
    }

    /// A rate that something else bounds.
    pub fn set(&mut self, rate_bps: f64) {
        self.rate_bps = rate_bps;
    }

    pub fn take(&mut self, feedback: &Feedback, signal: Signal) -> f64 {
        self.rtt_s = feedback.rtt_ns.map_or(self.rtt_s, seconds);
        self.arrivals.extend(feedback.came.iter().map(|packet| (packet.arrived_ns, packet.bytes)));
        let since_s = seconds(feedback.now_ns - self.updated_ns.unwrap_or(feedback.now_ns)).min(1.0);
        self.updated_ns = Some(feedback.now_ns);
        self.state = next(self.state, signal);
        let arriving_bps = self.arriving_bps();
        match (self.state, arriving_bps) {
            (State::Hold, _) => {}
            (State::Increase, _) => self.increase(arriving_bps, since_s),
            (State::Decrease, None) => self.rate_bps *= BETA,
            (State::Decrease, Some(arriving_bps)) => {
                self.learn(arriving_bps);
                // Of what arrives while the encoder sends less than it may, a part may be more than the present rate.
                self.rate_bps = self.rate_bps.min(BETA * arriving_bps);
            }
        }
        self.rate_bps
    }

    /// None: not for long enough.
    fn arriving_bps(&mut self) -> Option<f64> {
        let &(last_ns, _) = self.arrivals.back()?;
        let (mut first_ns, mut longer) = (last_ns, false);
        while let Some(&(at_ns, _)) = self.arrivals.front() {
            if at_ns + WINDOW_NS > last_ns {
                first_ns = at_ns;
                break;
            }
            longer = true;
            self.arrivals.pop_front();
        }
        longer |= last_ns.saturating_sub(first_ns) * 10 >= WINDOW_NS * 9;
        let bytes: f64 = self.arrivals.iter().map(|&(_, bytes)| f64::from(bytes)).sum();
        longer.then(|| bytes * 8.0 / seconds(WINDOW_NS))
    }

    fn increase(&mut self, arriving_bps: Option<f64>, since_s: f64) {
        let deviation =
            |(mean, variance): (f64, f64)| (mean, 3.0 * mean * libm::sqrt(variance).clamp(DEVIATIONS.0, DEVIATIONS.1));
        if let (Some(known), Some(arriving_bps)) = (self.capacity, arriving_bps) {
            let (mean, within) = deviation(known);
            if arriving_bps > mean + within {
                self.capacity = None;
            }
        }
        let near = self.capacity.map(deviation).is_some_and(|(mean, within)| {
            arriving_bps.is_some_and(|arriving_bps| (arriving_bps - mean).abs() <= within)
        });
        let grown = if near {
            let frame_bits = self.rate_bps / FRAMES_PER_SECOND;
            let packet_bits = frame_bits / libm::ceil(frame_bits / PACKET_BITS);
            let share = 0.5 * (since_s / (RESPONSE_S + self.rtt_s)).min(1.0);
            self.rate_bps + (share * packet_bits).max(LEAST_STEP_BPS * since_s)
        } else {
            self.rate_bps * libm::pow(GROWTH, since_s)
        };
        // What was already more stays.
        let most = arriving_bps.map_or(grown, |arriving_bps| (HEADROOM * arriving_bps).max(self.rate_bps));
        self.rate_bps = grown.min(most);
    }

    fn learn(&mut self, arriving_bps: f64) {
        self.capacity = Some(match self.capacity {
            None => (arriving_bps, DEVIATIONS.0 * DEVIATIONS.0),
            Some((mean, variance)) => {
                let away = arriving_bps / mean - 1.0;
                let variance = SMOOTHING * variance + (1.0 - SMOOTHING) * away * away;
                (SMOOTHING * mean + (1.0 - SMOOTHING) * arriving_bps, variance)
            }
        });
        // A capacity that is another one.
        let (mean, variance) = self.capacity.expect("it was just set");
        if arriving_bps < mean * (1.0 - 3.0 * libm::sqrt(variance).clamp(DEVIATIONS.0, DEVIATIONS.1)) {
            self.capacity = Some((arriving_bps, DEVIATIONS.0 * DEVIATIONS.0));
        }
    }
}

/// The table of section 5.5.
fn next(state: State, signal: Signal) -> State {
    match (signal, state) {
        (Signal::Over, _) => State::Decrease,
        (Signal::Normal, State::Hold) => State::Increase,
        (Signal::Normal, State::Increase) => State::Increase,
        (Signal::Normal, State::Decrease) => State::Hold,
        (Signal::Under, _) => State::Hold,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::history::AcknowledgedPacket;
    use super::*;

    const MS: u64 = 1_000_000;

    /// Feedback each 50 ms for packets of 1000 bytes at a rate.
    fn run(control: &mut RateControl, from_ms: u64, for_ms: u64, bps: f64, signal: Signal) -> f64 {
        let every_ns = 8e12 / bps;
        for now_ms in (from_ms..from_ms + for_ms).step_by(50) {
            let (begin, end) = ((now_ms * MS) as f64, ((now_ms + 50) * MS) as f64);
            let numbers = (begin / every_ns).ceil() as u64..(end / every_ns).ceil() as u64;
            let packet = |number: u64| {
                let sent_ns = (number as f64 * every_ns) as u64;
                AcknowledgedPacket { bytes: 1000, sent_ns, arrived_ns: sent_ns, marked: false }
            };
            let came = numbers.map(packet).collect();
            let feedback = Feedback { now_ns: end as u64, rtt_ns: Some(100 * MS), came, ..Feedback::default() };
            control.take(&feedback, signal);
        }
        control.rate_bps
    }

    #[test]
    fn it_grows_by_8_per_cent_a_second_and_no_further_than_one_and_a_half_times_what_arrives() {
        let mut control = RateControl::new(1e6);
        let after = run(&mut control, 0, 1050, 1e6, Signal::Normal);
        assert!((after / 1.08e6 - 1.0).abs() < 1e-6, "{after}");
        let after = run(&mut control, 1050, 20_000, 1e6, Signal::Normal);
        assert!((after / 1.5e6 - 1.0).abs() < 0.05, "{after}");
    }

    #[test]
    fn on_overuse_it_falls_to_085_of_what_arrives_then_waits_and_grows_by_half_a_packet() {
        let mut control = RateControl::new(2e6);
        run(&mut control, 0, 1000, 1e6, Signal::Normal);
        let fallen = run(&mut control, 1000, 50, 1e6, Signal::Over);
        assert!((fallen / 8.5e5 - 1.0).abs() < 0.03, "{fallen}");
        assert_eq!(run(&mut control, 1050, 200, 1e6, Signal::Under), fallen);
        assert_eq!(control.state, State::Hold);
        // Near 1 Mbit/s half a packet each 200 ms: 28 kbit a frame are three packets.
        let grown = run(&mut control, 1250, 500, 1e6, Signal::Normal);
        let step = 0.5 * fallen / 30.0 / 3.0 / 0.2 * 0.5;
        assert!(((grown - fallen) / step - 1.0).abs() < 0.1, "{} instead of {step}", grown - fallen);
    }

    #[test]
    fn a_higher_capacity_is_found_quickly() {
        let mut control = RateControl::new(1e6);
        run(&mut control, 0, 1000, 1e6, Signal::Normal);
        let fallen = run(&mut control, 1000, 50, 1e6, Signal::Over);
        run(&mut control, 1050, 1000, 1.3e6, Signal::Normal);
        assert_eq!(control.capacity, None);
        assert!(control.rate_bps > fallen * 1.05);
    }

    #[test]
    fn states_follow_the_table() {
        use {Signal::*, State::*};
        let row = |signal| [next(Hold, signal), next(Increase, signal), next(Decrease, signal)];
        assert_eq!(row(Over), [Decrease, Decrease, Decrease]);
        assert_eq!(row(Normal), [Increase, Increase, Hold]);
        assert_eq!(row(Under), [Hold, Hold, Hold]);
    }
}
