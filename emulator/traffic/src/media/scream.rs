//! Self-clocked rate adaptation for multimedia, after draft-ietf-ccwg-rfc8298bis-screamv2-01 (SCReAMv2, which is to replace
//! RFC 8298). Pure.
//!
//! In: feedback, what is in flight, frames as they are queued. Out: a reference window, which loss, marks and a growing
//! queueing delay make smaller, and of it the most that may be in flight, a target rate and a pacing rate. Variables bear
//! the draft's names where the field has no other. Of what the draft leaves open:
//!
//! - The first window is that of the first rate at an RTT of 100 ms, and the largest data unit is the largest packet.
//! - The target of the queueing delay rises beside flows that fill the queue ("competing flows compensation").
//! - Not done: less reaction to jitter (REDUCE_JITTER is false), and the functions for losses of the link layer, rate
//!   policers, undershoot and clock drift.
//! - Frames that have waited at the sender for more than 400 ms are thrown away, and a key frame follows.

use super::base_delay::BaseDelay;
use super::control::{Bounds, Control};
use super::encoder::Frame;
use super::history::Feedback;
use super::seconds;
use signals::{CompetingFlows, InFlight, Marks, QDELAY_TARGET_LO};

mod signals;

// Names and values are the draft's; times in seconds.
const MIN_REF_WND: f64 = 3000.0;
const BYTES_IN_FLIGHT_HEAD_ROOM: f64 = 1.5;
const BETA_LOSS: f64 = 0.7;
const BETA_ECN: f64 = 0.8;
const POST_CONGESTION_DELAY_RTT: f64 = 100.0;
const MUL_INCREASE_FACTOR: f64 = 0.02;
const VIRTUAL_RTT: f64 = 0.025;
const QDELAY_AVG_G: f64 = 1.0 / 4.0;
const REF_WND_OVERHEAD: f64 = 3.0; // REF_WND_OVERHEAD_MAX, as without REDUCE_JITTER
const RATE_PACE_MIN: f64 = 50_000.0;
const PACKET_PACING_HEADROOM: f64 = 1.5;
const MAX_RELAXED_PACING_FACTOR: f64 = 4.0;
const RELAXED_PACING_LIMIT_LOW: f64 = 0.8;
const PACKET_OVERHEAD: f64 = 20.0;
const RATE_ADJUST_GAIN: f64 = 1.0 / 16.0;
const FRAME_SIZE_DEV_ALPHA: f64 = 1.0 / 64.0;

// What the draft leaves open.
const FIRST_RTT: f64 = 0.1;
const LONGEST_QUEUE_NS: u64 = 400_000_000;

pub struct Scream {
    bounds: Bounds,
    ref_wnd: f64,
    /// The inflection point: the window before the last reduction.
    ref_wnd_i: f64,
    ref_wnd_i_update_allowed: bool,
    s_rtt: f64,
    base: BaseDelay,
    qdelay: f64,
    qdelay_avg: f64,
    qdelay_avg_at: f64,
    qdelay_target: f64,
    competing: CompetingFlows,
    marks: Marks,
    in_flight: InFlight,
    /// Since the last reaction.
    loss_detected: bool,
    data_units_marked: bool,
    congestion_detected_at: f64,
    reaction_at: f64,
    rate_adjust_factor: f64,
    frame_size_dev: f64,
    target_bps: f64,
}

impl Scream {
    pub fn new(bounds: Bounds) -> Self {
        let first = bounds.initial_bps / 8.0 * FIRST_RTT * 1.2;
        Self {
            bounds,
            ref_wnd: first.max(MIN_REF_WND),
            ref_wnd_i: 1.0,
            ref_wnd_i_update_allowed: true,
            s_rtt: FIRST_RTT,
            base: BaseDelay::default(),
            qdelay: 0.0,
            qdelay_avg: 0.0,
            qdelay_avg_at: 0.0,
            qdelay_target: QDELAY_TARGET_LO,
            competing: CompetingFlows::default(),
            marks: Marks::default(),
            in_flight: InFlight::default(),
            loss_detected: false,
            data_units_marked: false,
            congestion_detected_at: 0.0,
            reaction_at: 0.0,
            rate_adjust_factor: 0.0,
            frame_size_dev: 0.0,
            target_bps: bounds.initial_bps,
        }
    }

    /// "Detecting increased queue delay".
    fn note_delay(&mut self, feedback: &Feedback, now: f64) {
        for packet in &feedback.came {
            self.qdelay = seconds(self.base.take(packet.sent_ns, packet.arrived_ns));
        }
        if now - self.qdelay_avg_at >= VIRTUAL_RTT.min(self.s_rtt) {
            self.qdelay_avg = if self.qdelay < self.qdelay_avg {
                self.qdelay
            } else {
                QDELAY_AVG_G * self.qdelay + (1.0 - QDELAY_AVG_G) * self.qdelay_avg
            };
            self.qdelay_avg_at = now;
        }
        self.qdelay_target = self.competing.target(self.qdelay, self.qdelay_target, now);
    }

    /// From 0.1 to 1, small where the window is near that before the last reduction.
    fn nearness(&self) -> f64 {
        let away = 8.0 * (self.ref_wnd - self.ref_wnd_i) / self.ref_wnd_i;
        (away * away).clamp(0.1, 1.0)
    }

    /// "Reference window reduction".
    fn reduce(&mut self, now: f64) {
        let nearness = self.nearness();
        if self.loss_detected || self.data_units_marked {
            self.congestion_detected_at = now;
        }
        if now - self.reaction_at < VIRTUAL_RTT.min(self.s_rtt) {
            return;
        }
        let half = self.qdelay_target / 2.0;
        let delayed = self.qdelay_avg > half;
        if !(self.loss_detected || self.data_units_marked || delayed) {
            return;
        }
        if self.ref_wnd_i_update_allowed {
            self.ref_wnd_i = self.ref_wnd;
            self.ref_wnd_i_update_allowed = false;
        }
        // Where reactions come more often than round trips, each is less.
        let each_rtt = (self.s_rtt / VIRTUAL_RTT).max(1.0);
        if self.loss_detected {
            self.ref_wnd *= BETA_LOSS;
        } else if self.data_units_marked && self.bounds.l4s {
            let mut backoff = self.marks.alpha / 2.0 / each_rtt;
            if self.qdelay < self.qdelay_target * 0.25 {
                backoff *= nearness.max(0.25);
            }
            if now - self.reaction_at > 100.0 * self.s_rtt.max(VIRTUAL_RTT) {
                self.ref_wnd = self.ref_wnd.min(self.in_flight.previous_most);
            }
            self.ref_wnd *= 1.0 - backoff;
        } else if self.data_units_marked {
            self.ref_wnd *= BETA_ECN;
        } else {
            let alpha = ((self.qdelay_avg - half) / half).clamp(0.0, 1.0);
            self.ref_wnd *= 1.0 - alpha / 2.0 / each_rtt;
        }
        self.ref_wnd = self.ref_wnd.max(MIN_REF_WND);
        self.reaction_at = now;
        (self.loss_detected, self.data_units_marked) = (false, false);
    }

    /// "Reference window increase".
    fn increase(&mut self, acknowledged_bytes: f64, now: f64) {
        let (mss, nearness) = (self.bounds.packet_bytes, self.nearness());
        let slow = POST_CONGESTION_DELAY_RTT * self.s_rtt.max(VIRTUAL_RTT);
        let recovered = ((now - self.congestion_detected_at) / slow).clamp(0.0, 1.0);
        let mut increment = acknowledged_bytes * (mss / self.ref_wnd).min(1.0);
        increment *= (self.s_rtt / VIRTUAL_RTT).min(1.0) * nearness.max(0.25);
        increment *= 1.0 + MUL_INCREASE_FACTOR * self.ref_wnd / mss * recovered * nearness;
        let most = mss + self.in_flight.most.max(self.in_flight.previous_most) * BYTES_IN_FLIGHT_HEAD_ROOM;
        if self.ref_wnd + increment <= most && self.target_bps < self.bounds.most_bps && increment > 0.0 {
            self.ref_wnd += increment;
            self.ref_wnd_i_update_allowed = true;
        }
    }

    /// "Media rate control".
    fn rate(&self) -> f64 {
        let mss = self.bounds.packet_bytes;
        let small = ((mss / self.ref_wnd).min(1.0) - 0.1).clamp(0.0, 0.2);
        let share = (1.0 - small) * mss / (mss + PACKET_OVERHEAD);
        let target = share / (1.2 + self.rate_adjust_factor + self.frame_size_dev) * 8.0 * self.ref_wnd / self.s_rtt;
        target.clamp(self.bounds.least_bps, self.bounds.most_bps)
    }
}

impl Control for Scream {
    fn target_bps(&self) -> f64 {
        self.target_bps
    }

    /// "Packet pacing": relaxed where the rate is near the highest that the encoder has.
    fn pacing_bps(&self) -> Option<f64> {
        let near_most = self.target_bps / self.bounds.most_bps - RELAXED_PACING_LIMIT_LOW;
        let relaxed = (near_most / (1.0 - RELAXED_PACING_LIMIT_LOW)).min(1.0);
        let scale = (1.0 - relaxed).clamp(1.0 / MAX_RELAXED_PACING_FACTOR, 1.0);
        Some(self.target_bps.max(RATE_PACE_MIN) * PACKET_PACING_HEADROOM / scale)
    }

    fn window_bytes(&self) -> Option<u64> {
        Some((self.ref_wnd * REF_WND_OVERHEAD) as u64)
    }

    fn take(&mut self, feedback: &Feedback) {
        let now = seconds(feedback.now_ns);
        if let Some(rtt_ns) = feedback.rtt_ns {
            // RFC 6298, section 2; the first one counts as it is.
            let rtt = seconds(rtt_ns);
            self.s_rtt = if self.in_flight.rounds == 0 { rtt } else { self.s_rtt + (rtt - self.s_rtt) / 8.0 };
        }
        self.in_flight.look(now, self.s_rtt);
        self.note_delay(feedback, now);
        let marked = feedback.came.iter().filter(|packet| packet.marked);
        let marked_bytes: u64 = marked.clone().map(|packet| u64::from(packet.bytes)).sum();
        self.marks.take(feedback.came.len(), marked.count(), now, self.s_rtt);
        self.loss_detected |= feedback.lost_packets > 0;
        self.data_units_marked |= marked_bytes > 0;
        self.competing.note_loss(feedback.lost_packets > 0, now, self.s_rtt);
        self.reduce(now);
        self.increase(feedback.newly_acknowledged_bytes.saturating_sub(marked_bytes) as f64, now);
        self.target_bps = self.rate();
    }

    fn sent(&mut self, in_flight_bytes: u64) {
        self.in_flight.most = self.in_flight.most.max(in_flight_bytes as f64);
    }

    fn queued(&mut self, frame: &Frame, waited_ns: u64) {
        let period = 1.0 / self.bounds.frames_per_second;
        let error = (seconds(waited_ns) - period / 4.0) / period;
        self.rate_adjust_factor = (self.rate_adjust_factor + error * RATE_ADJUST_GAIN).clamp(0.0, 0.5);
        let usual = self.target_bps * period / 8.0;
        let deviation = (f64::from(frame.bytes) / usual - 1.0).max(0.0);
        let smoothed = (1.0 - FRAME_SIZE_DEV_ALPHA) * self.frame_size_dev + FRAME_SIZE_DEV_ALPHA * deviation;
        self.frame_size_dev = smoothed.min(0.2);
    }

    fn discards_after_ns(&self) -> Option<u64> {
        Some(LONGEST_QUEUE_NS)
    }

    fn queue_delay_ns(&self) -> Option<u64> {
        self.base.wait_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::AcknowledgedPacket;
    use super::*;

    const MS: u64 = 1_000_000;
    const BOUNDS: Bounds = Bounds {
        initial_bps: 1e6,
        least_bps: 150e3,
        most_bps: 1e8,
        l4s: false,
        frames_per_second: 30.0,
        packet_bytes: 1000.0,
    };

    /// Feedback for ten packets, one of them marked or none, at an RTT of 50 ms plus the queueing delay.
    fn feedback(now_ms: u64, queue_ms: u64, marked: usize, lost_packets: u32) -> Feedback {
        let arrived_ns = (now_ms - 25) * MS;
        let packet = |number: usize| AcknowledgedPacket {
            bytes: 1000,
            sent_ns: arrived_ns - (25 + queue_ms) * MS,
            arrived_ns,
            marked: number < marked,
        };
        Feedback {
            now_ns: now_ms * MS,
            rtt_ns: Some((50 + queue_ms) * MS),
            came: (0..10).map(packet).collect(),
            lost_packets,
            lost_bytes: 0,
            newly_acknowledged_bytes: 10_000,
            in_flight_bytes: 0,
        }
    }

    /// After a second without congestion, in which much was in flight.
    fn steady(bounds: Bounds) -> Scream {
        let mut control = Scream::new(bounds);
        for now_ms in (100..1100).step_by(50) {
            control.sent(30_000);
            control.take(&feedback(now_ms, 0, 0, 0));
        }
        control
    }

    #[test]
    fn without_congestion_the_window_grows_by_a_packet_and_two_per_cent_a_round_trip_at_most() {
        let mut control = steady(BOUNDS);
        let before = control.ref_wnd;
        control.sent(1_000_000);
        control.take(&Feedback { newly_acknowledged_bytes: before as u64, ..feedback(1100, 0, 0, 0) });
        let grown = control.ref_wnd - before;
        assert!(grown > 990.0 && grown < 1.02 * 1000.0 + 0.02 * before, "{grown} from {before}");
    }

    #[test]
    fn the_window_grows_no_further_than_what_is_in_flight_allows() {
        let mut control = steady(BOUNDS);
        for now_ms in (1100..9000).step_by(50) {
            control.sent(10_000);
            control.take(&feedback(now_ms, 0, 0, 0));
        }
        assert!(control.ref_wnd <= 30_000.0 * 1.5 + 1000.0, "{}", control.ref_wnd);
    }

    #[test]
    fn a_loss_and_a_mark_make_it_smaller_by_their_factors_once_a_round_trip() {
        for (marked, lost, factor) in [(0, 1, BETA_LOSS), (1, 0, BETA_ECN)] {
            let mut control = steady(BOUNDS);
            let before = control.ref_wnd;
            control.in_flight = InFlight { rounds: 1, ..InFlight::default() }; // no growth
            control.take(&feedback(1100, 0, marked, lost));
            assert!((control.ref_wnd / before / factor - 1.0).abs() < 1e-9, "{} of {before}", control.ref_wnd);
            control.take(&feedback(1110, 0, marked, lost));
            assert!((control.ref_wnd / before / factor - 1.0).abs() < 1e-9, "twice in a round trip");
        }
    }

    #[test]
    fn marks_of_l4s_make_it_smaller_in_proportion_to_their_share() {
        let mut control = steady(Bounds { l4s: true, ..BOUNDS });
        control.marks.alpha = 0.5;
        (control.ref_wnd_i, control.ref_wnd_i_update_allowed) = (2.0 * control.ref_wnd, false);
        let before = control.ref_wnd;
        control.in_flight = InFlight { rounds: 1, ..InFlight::default() };
        control.take(&feedback(1100, 0, 5, 0));
        // Half of the share, by 50 ms / 25 ms.
        assert!((control.ref_wnd / before - (1.0 - 0.5 / 2.0 / 2.0)).abs() < 1e-3, "{}", control.ref_wnd / before);
    }

    #[test]
    fn a_queueing_delay_above_half_of_the_target_makes_it_smaller() {
        let mut control = steady(BOUNDS);
        let before = control.ref_wnd;
        for now_ms in (1100..1600).step_by(50) {
            control.take(&feedback(now_ms, 60, 0, 0));
        }
        assert!(control.ref_wnd < 0.8 * before, "{} of {before}", control.ref_wnd);
        // Loss and marks tell of congestion, a delay does not.
        assert_eq!(control.congestion_detected_at, 0.0);
    }

    #[test]
    fn beside_a_full_queue_the_target_of_the_delay_rises_and_falls_again() {
        let mut control = steady(BOUNDS);
        for now_ms in (1100..21_100).step_by(50) {
            control.take(&feedback(now_ms, 200, 0, 0));
        }
        assert!(control.qdelay_target > 0.19, "{}", control.qdelay_target);
        for now_ms in (21_100..41_100).step_by(50) {
            control.take(&feedback(now_ms, 0, 0, 0));
        }
        assert_eq!(control.qdelay_target, QDELAY_TARGET_LO);
    }

    #[test]
    fn the_rate_is_the_window_a_round_trip_less_its_overhead_and_falls_where_frames_wait() {
        let mut control = steady(BOUNDS);
        let small = (1000.0 / control.ref_wnd - 0.1).clamp(0.0, 0.2);
        let expected = (1.0 - small) * 1000.0 / 1020.0 / 1.2 * 8.0 * control.ref_wnd / control.s_rtt;
        assert!((control.target_bps() / expected - 1.0).abs() < 1e-9);
        let frame = Frame { number: 0, key: false, bytes: 10, captured_ns: 0 };
        (0..8).for_each(|_| control.queued(&frame, 100 * MS));
        assert_eq!(control.rate_adjust_factor, 0.5);
        assert!(control.rate() < 0.75 * expected);
        (0..40).for_each(|_| control.queued(&frame, 0));
        assert_eq!(control.rate_adjust_factor, 0.0);
    }

    #[test]
    fn pacing_is_relaxed_near_the_highest_rate() {
        let mut control = Scream::new(Bounds { most_bps: 2e6, ..BOUNDS });
        assert_eq!(control.pacing_bps(), Some(1.5e6));
        control.target_bps = 2e6;
        assert_eq!(control.pacing_bps(), Some(2e6 * 1.5 * 4.0));
    }
}
