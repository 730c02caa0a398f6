//! Over-use of a path, by how the one-way delay grows: sections 5.1 to 5.4 of the draft. Pure.
//!
//! Packets that left within 5 ms are a group, and so are those that came at once after an outage (5.2). What the delay of a
//! group is more than that of the group before it, summed and smoothed, is a point for each group; the slope of the line
//! through the last 20 is how much faster packets are sent than they leave the bottleneck. The detector compares it with a
//! threshold that follows it (5.4), so that a flow does not starve beside flows that fill the queue.

use std::collections::VecDeque;

use super::super::base_delay::BaseDelay;
use super::super::history::AcknowledgedPacket;

/// burst_time.
const BURST_NS: i64 = 5_000_000;

// The line, as in WebRTC.
const POINTS: usize = 20;
const SMOOTHING: f64 = 0.9;
const GAIN: f64 = 4.0;
const MOST_DELTAS: f64 = 60.0;

// The detector. K_u and K_d are those that WebRTC has with the line.
const THRESHOLD_MS: f64 = 12.5;
const LEAST_THRESHOLD_MS: f64 = 6.0;
const MOST_THRESHOLD_MS: f64 = 600.0;
const K_U: f64 = 0.0087;
const K_D: f64 = 0.039;
const MOST_ADAPTED_MS: f64 = 15.0;
const LONGEST_ADAPTED_MS: f64 = 100.0;
const OVERUSE_MS: f64 = 10.0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signal {
    Over,
    #[default]
    Normal,
    Under,
}

#[derive(Default)]
pub struct DelayGradient {
    group: Option<Group>,
    before: Option<Group>,
    line: Line,
    detector: Detector,
    base: BaseDelay,
}

/// Times of packets that are judged as one.
#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent_ns: i64,
    last_sent_ns: i64,
    last_arrived_ns: i64,
}

impl DelayGradient {
    /// `came`: in the order in which they were sent.
    pub fn take(&mut self, came: &[AcknowledgedPacket]) -> Signal {
        for packet in came {
            self.base.take(packet.sent_ns, packet.arrived_ns);
            let (sent_ns, arrived_ns) = (packet.sent_ns as i64, packet.arrived_ns as i64);
            let Some(group) = &mut self.group else {
                self.group = Some(Group::of(sent_ns, arrived_ns));
                continue;
            };
            if sent_ns < group.first_sent_ns {
                continue; // told late
            }
            if group.includes(sent_ns, arrived_ns) {
                group.last_sent_ns = group.last_sent_ns.max(sent_ns);
                group.last_arrived_ns = group.last_arrived_ns.max(arrived_ns);
                continue;
            }
            let complete = *group;
            if let Some(before) = self.before {
                let (sent, arrived) = complete.after(&before);
                self.line.add(arrived - sent, ms(complete.last_arrived_ns));
                self.detector.take(self.line.trend(), sent, ms(complete.last_arrived_ns));
            }
            self.before = Some(complete);
            self.group = Some(Group::of(sent_ns, arrived_ns));
        }
        self.detector.signal
    }

    /// What the last packet's delay is more than the least one.
    pub fn queue_delay_ns(&self) -> Option<u64> {
        self.base.wait_ns()
    }
}

impl Group {
    fn of(sent_ns: i64, arrived_ns: i64) -> Self {
        Self { first_sent_ns: sent_ns, last_sent_ns: sent_ns, last_arrived_ns: arrived_ns }
    }

    fn includes(&self, sent_ns: i64, arrived_ns: i64) -> bool {
        let gap_ns = arrived_ns - self.last_arrived_ns;
        let variation_ns = gap_ns - (sent_ns - self.last_sent_ns);
        sent_ns - self.first_sent_ns <= BURST_NS || (gap_ns <= BURST_NS && variation_ns < 0)
    }

    /// From the group before it, in ms: when it was sent, and when it came.
    fn after(&self, before: &Self) -> (f64, f64) {
        (ms(self.last_sent_ns - before.last_sent_ns), ms(self.last_arrived_ns - before.last_arrived_ns))
    }
}

fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// Through the last delays, as they were smoothed.
#[derive(Default)]
struct Line {
    deltas: f64,
    sum_ms: f64,
    smoothed_ms: f64,
    points: VecDeque<(f64, f64)>,
    slope: f64,
}

impl Line {
    fn add(&mut self, variation_ms: f64, at_ms: f64) {
        self.deltas = (self.deltas + 1.0).min(MOST_DELTAS);
        self.sum_ms += variation_ms;
        self.smoothed_ms = SMOOTHING * self.smoothed_ms + (1.0 - SMOOTHING) * self.sum_ms;
        self.points.push_back((at_ms, self.smoothed_ms));
        if self.points.len() > POINTS {
            self.points.pop_front();
        }
        if self.points.len() == POINTS {
            self.slope = slope(&self.points).unwrap_or(self.slope);
        }
    }

    /// In ms, for the detector.
    fn trend(&self) -> f64 {
        self.deltas * self.slope * GAIN
    }
}

/// By least squares; none: all points are of one time.
fn slope(points: &VecDeque<(f64, f64)>) -> Option<f64> {
    let count = points.len() as f64;
    let sum = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let (mean_x, mean_y) = (sum.0 / count, sum.1 / count);
    let products = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>();
    let squares = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>();
    (squares > 0.0).then(|| products / squares)
}

struct Detector {
    threshold_ms: f64,
    adapted_ms: Option<f64>,
    over_ms: Option<f64>,
    overuses: u32,
    trend_ms: f64,
    signal: Signal,
}

impl Default for Detector {
    fn default() -> Self {
        let (threshold_ms, signal) = (THRESHOLD_MS, Signal::Normal);
        Self { threshold_ms, adapted_ms: None, over_ms: None, overuses: 0, trend_ms: 0.0, signal }
    }
}

impl Detector {
    /// `since_ms`: from the group before, as it was sent.
    fn take(&mut self, trend_ms: f64, since_ms: f64, now_ms: f64) {
        if trend_ms > self.threshold_ms {
            // Where it began between the groups is not known.
            let over_ms = self.over_ms.map_or(since_ms / 2.0, |over_ms| over_ms + since_ms);
            self.over_ms = Some(over_ms);
            self.overuses += 1;
            if over_ms > OVERUSE_MS && self.overuses > 1 && trend_ms >= self.trend_ms {
                (self.over_ms, self.overuses) = (Some(0.0), 0);
                self.signal = Signal::Over;
            }
        } else {
            (self.over_ms, self.overuses) = (None, 0);
            self.signal = if trend_ms < -self.threshold_ms { Signal::Under } else { Signal::Normal };
        }
        self.trend_ms = trend_ms;
        self.adapt(trend_ms, now_ms);
    }

    fn adapt(&mut self, trend_ms: f64, now_ms: f64) {
        let since_ms = now_ms - self.adapted_ms.unwrap_or(now_ms);
        self.adapted_ms = Some(now_ms);
        let beyond_ms = trend_ms.abs() - self.threshold_ms;
        if beyond_ms > MOST_ADAPTED_MS {
            return;
        }
        let k = if beyond_ms < 0.0 { K_D } else { K_U };
        self.threshold_ms += k * beyond_ms * since_ms.clamp(0.0, LONGEST_ADAPTED_MS);
        self.threshold_ms = self.threshold_ms.clamp(LEAST_THRESHOLD_MS, MOST_THRESHOLD_MS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// One packet each 20 ms, whose delay is that of the law.
    fn signals(count: u64, delay_ns: impl Fn(u64) -> u64) -> Vec<Signal> {
        let mut gradient = DelayGradient::default();
        let packet = |number: u64| {
            let sent_ns = number * 20 * MS;
            AcknowledgedPacket { bytes: 1000, sent_ns, arrived_ns: sent_ns + delay_ns(number), marked: false }
        };
        (0..count).map(|number| gradient.take(&[packet(number)])).collect()
    }

    #[test]
    fn an_even_delay_is_normal_and_so_are_small_variations() {
        assert!(signals(200, |_| 50 * MS).iter().all(|&signal| signal == Signal::Normal));
        let alternating = signals(200, |number| 50 * MS + number % 2 * 3 * MS);
        assert!(alternating.iter().all(|&signal| signal == Signal::Normal));
    }

    #[test]
    fn a_growing_delay_is_overuse_and_a_falling_one_underuse() {
        // 10 % more than the bottleneck takes: 2 ms more for each 20 ms.
        let found = signals(80, |number| 50 * MS + number * 2 * MS);
        let first = found.iter().position(|&signal| signal == Signal::Over).expect("over-use");
        // The line needs 20 groups, so not before 22 packets; and then at once.
        assert!((21..=26).contains(&first), "{first}");
        let found = signals(80, |number| 500 * MS - number * 2 * MS);
        assert!(found.contains(&Signal::Under) && !found.contains(&Signal::Over));
    }

    #[test]
    fn a_delay_that_stays_high_after_it_grew_is_normal_again() {
        let found = signals(200, |number| 50 * MS + number.min(60) * 2 * MS);
        assert!(found[..70].contains(&Signal::Over));
        assert_eq!(found[199], Signal::Normal);
    }

    #[test]
    fn the_threshold_follows_the_trend_slowly_up_and_not_to_outliers() {
        let mut detector = Detector::default();
        detector.take(20.0, 20.0, 0.0);
        detector.take(20.0, 20.0, 20.0);
        // 12.5 + 0.0087 · 20 · (20 − 12.5).
        assert!((detector.threshold_ms - 13.805).abs() < 1e-9, "{}", detector.threshold_ms);
        detector.take(40.0, 20.0, 40.0);
        assert!((detector.threshold_ms - 13.805).abs() < 1e-9);
        (3..400).for_each(|turn| detector.take(0.0, 20.0, 20.0 * f64::from(turn)));
        assert_eq!(detector.threshold_ms, LEAST_THRESHOLD_MS);
    }

    #[test]
    fn packets_that_come_at_once_after_an_outage_are_one_group() {
        let group = Group::of(0, 100_000_000);
        assert!(group.includes(5_000_000, 140_000_000));
        assert!(!group.includes(6_000_000, 140_000_000));
        assert!(group.includes(60_000_000, 103_000_000));
        assert!(!group.includes(6_000_000, 106_000_000));
    }
}
