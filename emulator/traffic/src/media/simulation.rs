//! A source, a bottleneck with a drop-tail queue and a receiver, without sockets: what a rate control does on a path.

use std::collections::VecDeque;

use super::arrivals::Arrivals;
use super::control::{Bounds, Control, Kind};
use super::encoder::{Encoder, Settings};
use super::history::History;
use super::playout::Playout;
use super::queue::Queue;
use super::wire::{Report, CE};
use crate::flows::law::stream;

const MS: u64 = 1_000_000;
const STEP_NS: u64 = MS / 4;
const FRAMING_BYTES: u64 = 28;
const PACKET_BYTES: usize = 1200;

struct Path {
    one_way_ns: u64,
    queue_ns: u64,
    /// From when on, and the rate in bit/s.
    rates: Vec<(u64, u64)>,
    /// What waits longer at its departure is marked; none: nothing is.
    marks_ns: Option<u64>,
    /// From and until when all is lost.
    outage: Option<(u64, u64)>,
}

struct Outcome {
    /// Each 100 ms: the time, the target rate, what waits at the bottleneck in ns.
    looks: Vec<(u64, f64, u64)>,
    dropped: u32,
    sent: u32,
    /// From capture to completion, of all that were complete.
    frame_delays_ns: Vec<u64>,
}

impl Outcome {
    fn within(&self, from_s: f64, to_s: f64) -> impl Iterator<Item = &(u64, f64, u64)> {
        self.looks.iter().filter(move |look| (from_s..to_s).contains(&(look.0 as f64 / 1e9)))
    }

    fn mean_target(&self, from_s: f64, to_s: f64) -> f64 {
        self.within(from_s, to_s).map(|look| look.1).sum::<f64>() / self.within(from_s, to_s).count() as f64
    }

    fn mean_wait_ms(&self, from_s: f64, to_s: f64) -> f64 {
        let all = self.within(from_s, to_s).map(|look| look.2 as f64 / 1e6).sum::<f64>();
        all / self.within(from_s, to_s).count() as f64
    }
}

struct PacketUnderway {
    at_ns: u64,
    sequence: u32,
    frame: u32,
    parts: u16,
    last: bool,
    key: bool,
    ecn: u8,
}

fn run(kind: Kind, bounds: Bounds, path: &Path, for_s: u64) -> Outcome {
    let settings = Settings {
        frames_per_second: 30.0,
        least_bps: bounds.least_bps,
        most_bps: bounds.most_bps,
        key_every_ns: None,
        varies: true,
        pause_ns: None,
    };
    let mut control: Box<dyn Control> = kind.make(bounds);
    let mut encoder = Encoder::new(settings, bounds.initial_bps, 0, stream(7, 0), stream(7, 1));
    let (mut queue, mut history) = (Queue::default(), History::default());
    let (mut arrivals, mut playout) = (Arrivals::default(), Playout::default());
    let (mut underway, mut reports) = (VecDeque::<PacketUnderway>::new(), VecDeque::<(u64, Report)>::new());
    let (mut captured, mut reported_ns, mut free_ns, mut frame_ended) = (Vec::new(), 0, 0u64, false);
    let mut outcome = Outcome { looks: Vec::new(), dropped: 0, sent: 0, frame_delays_ns: Vec::new() };
    for now_ns in (0..for_s * 1_000_000_000).step_by(STEP_NS as usize) {
        let rate_bps = path.rates.iter().rev().find(|&&(from_ns, _)| from_ns <= now_ns).expect("a rate").1;
        while reports.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
            let (_, report) = reports.pop_front().expect("it was looked at");
            if report.key_wanted {
                encoder.ask_key(now_ns, 2 * path.one_way_ns);
            }
            control.take(&history.take(&report, now_ns));
        }
        if let Some(feedback) = history.give_up(now_ns) {
            control.take(&feedback);
        }
        while encoder.next_ns() <= now_ns {
            let frame = encoder.capture(control.target_bps());
            captured.push(frame.captured_ns);
            queue.push(&frame, PACKET_BYTES);
            control.queued(&frame, queue.waited_ns(now_ns));
        }
        let room = |control: &dyn Control, history: &History| {
            control.window_bytes().map(|most| most.saturating_sub(history.in_flight_bytes()))
        };
        while queue.next_ns(room(&*control, &history)).is_some_and(|at_ns| at_ns <= now_ns) {
            let packet = queue.pop(now_ns, control.pacing_bps()).expect("it was looked at");
            let sequence = history.next_sequence();
            history.sent(packet.bytes, now_ns);
            control.sent(history.in_flight_bytes());
            outcome.sent += 1;
            let takes_ns = (u64::from(packet.bytes) + FRAMING_BYTES) * 8_000_000_000 / rate_bps;
            let waits_ns = free_ns.saturating_sub(now_ns);
            let out = path.outage.is_some_and(|(from_ns, to_ns)| (from_ns..to_ns).contains(&now_ns));
            if out || waits_ns + takes_ns > path.queue_ns {
                outcome.dropped += 1;
                continue;
            }
            free_ns = free_ns.max(now_ns) + takes_ns;
            let ecn = if path.marks_ns.is_some_and(|most_ns| waits_ns > most_ns) { CE } else { 0 };
            let (at_ns, frame) = (free_ns + path.one_way_ns, packet.frame);
            let (parts, last, key) = (packet.parts, packet.part + 1 == packet.parts, packet.key);
            underway.push_back(PacketUnderway { at_ns, sequence, frame, parts, last, key, ecn });
        }
        while underway.front().is_some_and(|packet| packet.at_ns <= now_ns) {
            let packet = underway.pop_front().expect("it was looked at");
            arrivals.take(packet.sequence, packet.at_ns, packet.ecn);
            frame_ended |= packet.last;
            playout.take(packet.frame, packet.parts, packet.key, packet.at_ns);
        }
        let rule = kind.feedback();
        let soon = arrivals.pending >= rule.packets || (rule.each_frame && frame_ended);
        if (soon || now_ns >= reported_ns + rule.every_ns) && arrivals.pending > 0 {
            let told = arrivals.report(1, now_ns, playout.key_wanted(now_ns));
            reports.extend(told.into_iter().map(|report| (now_ns + path.one_way_ns, report)));
            (reported_ns, frame_ended) = (now_ns, false);
        }
        if now_ns % (100 * MS) == 0 {
            outcome.looks.push((now_ns, control.target_bps(), free_ns.saturating_sub(now_ns)));
        }
    }
    for (captured_ns, shown) in captured.iter().zip(playout.outcomes()) {
        outcome.frame_delays_ns.extend(shown.completed_ns.map(|at_ns| at_ns - captured_ns));
    }
    outcome
}

const BOUNDS: Bounds = Bounds {
    initial_bps: 300e3,
    least_bps: 150e3,
    most_bps: 2.5e6,
    l4s: false,
    frames_per_second: 30.0,
    packet_bytes: 1200.0,
};

fn path(rates: &[(u64, u64)]) -> Path {
    let rates = rates.iter().map(|&(at_s, bps)| (at_s * 1000 * MS, bps)).collect();
    Path { one_way_ns: 50 * MS, queue_ns: 300 * MS, rates, marks_ns: None, outage: None }
}

#[test]
fn gcc_comes_near_the_capacity_without_filling_the_queue_and_follows_changes() {
    // RFC 8867, section 5.1.
    let found = run(Kind::Gcc, BOUNDS, &path(&[(0, 1_000_000), (40, 2_500_000), (60, 600_000), (80, 1_000_000)]), 100);
    for (from_s, to_s, capacity) in [(25.0, 40.0, 1e6), (55.0, 60.0, 2.5e6), (68.0, 80.0, 0.6e6), (92.0, 100.0, 1e6)] {
        let (target, wait) = (found.mean_target(from_s, to_s), found.mean_wait_ms(from_s, to_s));
        println!("{from_s} to {to_s} s: {target:.0} bit/s of {capacity}, {wait:.0} ms");
        assert!((0.7..1.02).contains(&(target / capacity)), "{target} of {capacity}");
        assert!(wait < 80.0, "{wait} ms");
    }
    println!("{} of {} dropped", found.dropped, found.sent);
    assert!(f64::from(found.dropped) < 0.02 * f64::from(found.sent), "{} of {}", found.dropped, found.sent);
}

#[test]
fn without_control_the_queue_fills_and_drops() {
    let bounds = Bounds { initial_bps: 1.2e6, ..BOUNDS };
    let found = run(Kind::None, bounds, &path(&[(0, 1_000_000)]), 20);
    assert!(found.mean_wait_ms(10.0, 20.0) > 250.0 && found.dropped > 100);
}

#[test]
fn scream_comes_near_the_capacity_without_filling_the_queue_and_follows_changes() {
    let rates = [(0, 1_000_000), (40, 2_500_000), (60, 600_000), (80, 1_000_000)];
    let found = run(Kind::Scream, BOUNDS, &path(&rates), 100);
    for (from_s, to_s, capacity) in [(20.0, 40.0, 1e6), (50.0, 60.0, 2.5e6), (68.0, 80.0, 0.6e6), (90.0, 100.0, 1e6)] {
        let (target, wait) = (found.mean_target(from_s, to_s), found.mean_wait_ms(from_s, to_s));
        println!("{from_s} to {to_s} s: {target:.0} bit/s of {capacity}, {wait:.0} ms");
        assert!((0.6..1.02).contains(&(target / capacity)), "{target} of {capacity}");
        // After a fall it takes its own queue for that of others for a while, which the draft calls a false positive.
        assert!(wait < 150.0, "{wait} ms");
    }
    println!("{} of {} dropped", found.dropped, found.sent);
    assert!(f64::from(found.dropped) < 0.02 * f64::from(found.sent), "{} of {}", found.dropped, found.sent);
}

#[test]
fn scream_keeps_the_queue_of_l4s_short() {
    let bounds = Bounds { l4s: true, ..BOUNDS };
    let marking = Path { marks_ns: Some(10 * MS), ..path(&[(0, 2_000_000)]) };
    let found = run(Kind::Scream, bounds, &marking, 40);
    let (target, wait) = (found.mean_target(20.0, 40.0), found.mean_wait_ms(20.0, 40.0));
    println!("{target:.0} bit/s of 2e6, {wait:.0} ms");
    assert!((0.5..1.02).contains(&(target / 2e6)) && wait < 15.0, "{target} bit/s, {wait} ms");
    assert_eq!(found.dropped, 0);
}

#[test]
fn after_an_outage_in_which_all_was_lost_sending_goes_on() {
    for kind in [Kind::Gcc, Kind::Scream] {
        let outage = Path { outage: Some((10_000 * MS, 13_000 * MS)), ..path(&[(0, 1_000_000)]) };
        let found = run(kind, BOUNDS, &outage, 40);
        let (during, after) = (found.mean_target(12.5, 13.0), found.mean_target(35.0, 40.0));
        println!("{kind:?}: {during:.0}, then {after:.0} bit/s");
        assert!(during < 0.6 * found.mean_target(9.0, 10.0) && after > 4e5, "{kind:?}: {during}, {after}");
    }
}
