//! Queue disciplines under a load that responds: a few additive-increase, multiplicative-decrease flows, as Reno
//! without slow start, over a link of 10 Mbit/s with a base RTT of 40 ms and room for a second.

mod common;

use std::collections::VecDeque;

use common::{direction, drop_tail};
use ewan_model::config::{CodelConfig, Delay, Direction, Discipline, DropTailConfig, PieConfig, Queue, RedConfig};
use ewan_model::{Counters, DirectionModel, Meta, Nanos};

const MS: Nanos = 1_000_000;
const DELAY: Nanos = 20 * MS;
/// 1500 bytes and 38 of framing at 10 Mbit/s.
const SLOT: Nanos = 1_230_400;

struct Flow {
    window: f64,
    in_flight: u32,
    /// No second decrease for packets sent before the last one.
    recovered: Nanos,
}

#[derive(Clone, Copy)]
struct Packet {
    flow: usize,
    sent: Nanos,
}

struct Outcome {
    /// Time in the queue in ms, mean and median, without the first ten seconds.
    mean: f64,
    median: f64,
    /// Share of the link's capacity used in the same time.
    used: f64,
    counters: Counters,
}

fn run(discipline: Discipline, flows: usize, ecn_capable: bool, seconds: u64) -> Outcome {
    let queue = Queue { discipline, ..drop_tail(Some(800), None) };
    let config = Direction { queue, delay: Delay::Constant { delay_ns: DELAY }, ..direction(10_000_000) };
    let mut model = DirectionModel::<Packet>::new(&config);
    let mut flows: Vec<_> = (0..flows).map(|_| Flow { window: 2.0, in_flight: 0, recovered: 0 }).collect();
    // What the senders will hear: when, of which packet, and whether all went well. In order of time.
    let mut news: VecDeque<(Nanos, Packet, bool)> = VecDeque::new();
    let mut waits = Vec::new();
    let mut now = 0;
    while now < seconds * 1_000 * MS {
        for (flow, Flow { window, in_flight, .. }) in flows.iter_mut().enumerate() {
            while f64::from(*in_flight) + 1.0 <= *window {
                *in_flight += 1;
                if let Err(packet) = model.enqueue(
                    Packet { flow, sent: now },
                    Meta { ip_bytes: 1500, traffic_class: 2 * u8::from(ecn_capable), ..Meta::default() },
                    now,
                ) {
                    news.push_back((now + 2 * DELAY, packet, false));
                }
            }
        }
        let heard = news.iter().map(|(when, ..)| *when).min();
        now = [model.next_event(), heard].into_iter().flatten().min().expect("something is in flight").max(now);
        while let Some(release) = model.pop(now) {
            news.push_back((release.due + DELAY, release.packet, !release.mark_ce));
            if now > 10_000 * MS {
                waits.push((release.due - release.packet.sent - DELAY - SLOT) as f64 / 1e6);
            }
        }
        while let Some(packet) = model.dropped() {
            news.push_back((now + 2 * DELAY, packet, false));
        }
        while let Some(at) = news.iter().position(|(when, ..)| *when <= now) {
            let (_, packet, well) = news.remove(at).unwrap();
            let flow = &mut flows[packet.flow];
            flow.in_flight -= 1;
            if well {
                flow.window += 1.0 / flow.window;
            } else if packet.sent >= flow.recovered {
                flow.window = (flow.window / 2.0).max(1.0);
                flow.recovered = now;
            }
        }
    }
    waits.sort_by(f64::total_cmp);
    Outcome {
        mean: waits.iter().sum::<f64>() / waits.len() as f64,
        median: waits[waits.len() / 2],
        used: waits.len() as f64 * SLOT as f64 / ((seconds - 10) * 1_000 * MS) as f64,
        counters: model.counters().clone(),
    }
}

#[test]
fn drop_tail_lets_the_queue_stand() {
    let seen = run(Discipline::DropTail(DropTailConfig {}), 4, false, 120);
    assert!(seen.mean > 300.0 && seen.used > 0.99, "{} ms, {}", seen.mean, seen.used);
}

#[test]
fn codel_holds_a_standing_queue_near_its_target() {
    for ecn in [false, true] {
        let seen = run(Discipline::Codel(CodelConfig { target_ns: 5 * MS, interval_ns: 100 * MS, ecn }), 4, ecn, 120);
        assert!((1.0..12.0).contains(&seen.median), "median {} ms, mean {} ms", seen.median, seen.mean);
        assert!(seen.used > 0.9, "{}", seen.used);
        let Counters { aqm, ce_packets, queue_full, .. } = seen.counters;
        assert_eq!(queue_full.packets, 0);
        assert!(if ecn { aqm.packets == 0 && ce_packets > 50 } else { aqm.packets > 50 && ce_packets == 0 });
    }
}

#[test]
fn pie_holds_the_queue_near_its_target() {
    for ecn in [false, true] {
        let pie =
            Discipline::Pie(PieConfig { target_ns: 15 * MS, update_ns: 15 * MS, alpha_mhz: 125, beta_mhz: 1_250, ecn });
        let seen = run(pie, 8, ecn, 120);
        assert!((8.0..22.0).contains(&seen.mean), "mean {} ms", seen.mean);
        assert!(seen.used > 0.9, "{}", seen.used);
        assert!(if ecn { seen.counters.ce_packets > 50 } else { seen.counters.aqm.packets > 50 });
    }
}

#[test]
fn red_holds_the_queue_between_its_thresholds() {
    for ecn in [false, true] {
        // 20 and 60 packets of 1.23 ms.
        let (min_bytes, max_bytes) = (20 * 1_538, 60 * 1_538);
        let red = Discipline::Red(RedConfig { min_bytes, max_bytes, max_p_ppb: 100_000_000, weight_log2: 9, ecn });
        let seen = run(red, 8, ecn, 120);
        assert!((20.0 * 1.23..60.0 * 1.23).contains(&seen.mean), "mean {} ms", seen.mean);
        assert!(seen.used > 0.95, "{}", seen.used);
        assert!(if ecn { seen.counters.ce_packets > 50 } else { seen.counters.aqm.packets > 50 });
    }
}
