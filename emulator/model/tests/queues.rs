//! Queues for flows, classes and L4S against their definitions: steady streams over a link of 10 Mbit/s, 1 ms.

mod common;

use common::{direction, drop_tail};
use ewan_model::config::{
    Class, ClassesConfig, CodelConfig, Direction, Discipline, DropTailConfig, DrrConfig, DualPi2Config, FqCodelConfig,
    Framing, Queue, Scheduler, SfqConfig, StepConfig,
};
use ewan_model::{Change, Counters, DirectionModel, Meta, Nanos};

const MS: Nanos = 1_000_000;
const DELAY: Nanos = MS;
/// 1462 + 38 bytes at 10 Mbit/s.
const SLOT: Nanos = 1_200_000;
const FULL: u32 = 1_462;

/// A packet of `ip_bytes` each `every`.
#[derive(Clone, Copy)]
struct Source {
    flow: u16,
    traffic_class: u8,
    ip_bytes: u32,
    every: Nanos,
}

/// Twice the link's rate, in full packets.
fn greedy(flow: u16, traffic_class: u8) -> Source {
    Source { flow, traffic_class, ip_bytes: FULL, every: SLOT / 2 }
}

#[derive(Clone, Copy, Default)]
struct Outcome {
    sent: u64,
    packets: u64,
    bytes: u64,
    marked: u64,
    longest_wait: Nanos,
}

/// What came of each source in `seconds`, and the counters at the end.
fn run(discipline: Discipline, limit_packets: u64, sources: &[Source], seconds: u64) -> (Vec<Outcome>, Counters) {
    let queue = Queue { discipline, ..drop_tail(Some(limit_packets), None) };
    let config = Direction { queue, ..direction(10_000_000) };
    let mut model = DirectionModel::<(usize, Nanos)>::new(&config);
    let mut got = vec![Outcome::default(); sources.len()];
    // Sources do not begin at the same time.
    let mut next: Vec<Nanos> = (0..sources.len() as u64).map(|number| 1_000 * number).collect();
    while let Some((now, which)) = next.iter().copied().zip(0..).min().filter(|(now, _)| *now < seconds * 1_000 * MS) {
        while let Some(release) = model.pop(now) {
            let (source, sent) = release.packet;
            let Source { ip_bytes, .. } = sources[source];
            let own = u64::from(ip_bytes + 38) * 800;
            let it = &mut got[source];
            it.packets += 1;
            it.bytes += u64::from(ip_bytes + 38);
            it.marked += u64::from(release.mark_ce);
            it.longest_wait = it.longest_wait.max(release.due - sent - DELAY - own);
        }
        while model.dropped().is_some() {}
        let Source { flow, traffic_class, ip_bytes, every } = sources[which];
        got[which].sent += 1;
        let _ = model.enqueue((which, now), Meta { ip_bytes, flow, traffic_class, ack: None, ..Meta::default() }, now);
        next[which] += every;
    }
    (got, model.counters().clone())
}

fn share(got: &[Outcome], of: usize) -> f64 {
    got[of].bytes as f64 / got.iter().map(|each| each.bytes).sum::<u64>() as f64
}

fn fq_codel() -> Discipline {
    Discipline::FqCodel(FqCodelConfig {
        flows: 1024,
        quantum_bytes: 1_500,
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        ecn: false,
    })
}

/// RFC 8290: a flow that sends less than its share finds no queue; one that sends too much meets CoDel, and the limit.
#[test]
fn fq_codel_lets_a_sparse_flow_pass_a_greedy_one() {
    let sparse = Source { flow: 7 << 6, traffic_class: 0, ip_bytes: 200, every: 20 * MS + 7 };
    let (got, counters) = run(fq_codel(), 200, &[greedy(3 << 6, 0), sparse], 20);
    assert!(got[1].sent > 990 && got[1].sent - got[1].packets <= 1, "{} of {}", got[1].packets, got[1].sent);
    assert!(got[1].longest_wait <= SLOT, "at most the packet in service goes first: {} ns", got[1].longest_wait);
    assert!(counters.aqm.packets > 100 && counters.queue_full.packets > 100);
    assert_eq!(counters.queued_max.packets, 200);
}

/// Shreedhar & Varghese 1996: flows that always wait have equal shares of bytes, whatever the sizes of their packets.
#[test]
fn drr_shares_bytes_and_not_packets() {
    let sources = [
        Source { ip_bytes: 262, every: MS / 8, ..greedy(1 << 8, 0) },
        greedy(50 << 8, 0),
        Source { ip_bytes: 762, every: MS / 4, ..greedy(200 << 8, 0) },
    ];
    for quantum_bytes in [300, 1_500, 4_000] {
        let (got, counters) = run(Discipline::Drr(DrrConfig { flows: 256, quantum_bytes }), 1_000, &sources, 20);
        for which in 0..3 {
            assert!((share(&got, which) - 1.0 / 3.0).abs() < 0.005, "{quantum_bytes}: {}", share(&got, which));
        }
        assert_eq!(counters.aqm.packets, 0);
    }
}

/// McKenney 1990: flows of one queue share its turns; given to queues anew, they part.
#[test]
fn sfq_parts_flows_that_met_by_hashing_anew() {
    let sources = [greedy(0, 0), greedy(1, 0), greedy(0xff00, 0)];
    let sfq = |perturb_ns| Discipline::Sfq(SfqConfig { flows: 16, quantum_bytes: 1_500, perturb_ns });
    let (stuck, _) = run(sfq(0), 300, &sources, 20);
    assert!((share(&stuck, 2) - 0.5).abs() < 0.01, "{}", share(&stuck, 2));
    let (parted, _) = run(sfq(500 * MS), 300, &sources, 60);
    // Two of three meet in 1 of 16 cases or so: nearly a third for each.
    for which in 0..3 {
        assert!((share(&parted, which) - 1.0 / 3.0).abs() < 0.05, "{}", share(&parted, which));
    }
}

/// RFC 8257, 3.1: who finds more than the threshold is marked, if it allows that; nobody is dropped before the limit.
#[test]
fn a_step_marks_what_finds_a_long_queue() {
    let burst = Source { every: SLOT - 4_000, ..greedy(0, 2) };
    let step = Discipline::Step(StepConfig { threshold_bytes: 20 * 1_500 });
    let (got, counters) = run(step.clone(), 100, &[burst], 20);
    // The queue grows by a packet each 300: 6000 packets, and all are marked from the 21st that waits on.
    let unmarked = got[0].packets - got[0].marked;
    assert!((6_000..6_700).contains(&unmarked), "{unmarked}");
    assert_eq!((counters.aqm.packets, counters.ce_packets), (0, got[0].marked));
    let (got, counters) = run(step, 50, &[Source { traffic_class: 0, ..burst }], 20);
    assert_eq!((got[0].marked, counters.queued_max.packets), (0, 50), "who allows no mark meets the limit alone");
}

fn dualpi2() -> Discipline {
    Discipline::DualPi2(DualPi2Config {
        target_ns: 15 * MS,
        update_ns: 16 * MS,
        alpha_mhz: 160,
        beta_mhz: 3_200,
        coupling: 2,
        step_ns: 2 * MS,
        classic_ppb: 100_000_000,
    })
}

/// RFC 9332, 2.5.1.1: while both wait, the classic queue has its share. Without the controller, as nothing responds.
#[test]
fn dualpi2_gives_the_classic_queue_its_share() {
    let Discipline::DualPi2(DualPi2Config { target_ns, update_ns, coupling, step_ns, classic_ppb, .. }) = dualpi2()
    else {
        panic!()
    };
    let without = Discipline::DualPi2(DualPi2Config {
        target_ns,
        update_ns,
        alpha_mhz: 0,
        beta_mhz: 0,
        coupling,
        step_ns,
        classic_ppb,
    });
    let (got, counters) = run(without, 1_000_000, &[greedy(0, 1), greedy(1, 0)], 20);
    assert!((share(&got, 1) - 0.1).abs() < 0.001, "{}", share(&got, 1));
    assert!(got[0].packets - got[0].marked < 5, "all wait longer than the step, but for the first");
    assert_eq!((got[1].marked, counters.aqm.packets), (0, 0));
}

/// Section 4.2.3: what does not respond is dropped, in both queues alike.
#[test]
fn dualpi2_drops_where_marks_do_not_help() {
    let (got, counters) = run(dualpi2(), 1_000, &[greedy(0, 1), greedy(1, 0)], 60);
    assert!((share(&got, 1) - 0.5).abs() < 0.05, "{}", share(&got, 1));
    assert_eq!(counters.queue_full.packets, 0, "it never comes to the limit");
    let [l4s, classic] = [counters.classes[0], counters.classes[1]];
    assert_eq!(counters.class_count, 2);
    assert_eq!(l4s.queued.packets + classic.queued.packets, counters.queued.packets);
    assert_eq!(l4s.served_packets + classic.served_packets, counters.served_packets);
    assert_eq!(l4s.dropped_packets + classic.dropped_packets, counters.aqm.packets);
    assert_eq!(l4s.waited_ns + classic.waited_ns, counters.waited_ns);
    // A mark counts for the class when the packet is served, for the link when it is released.
    assert!((0..=1).contains(&(l4s.ce_packets - counters.ce_packets)));
    assert_eq!(classic.ce_packets, 0);
}

/// An L4S flow below its share waits for a packet at most, behind a classic queue of any length.
#[test]
fn dualpi2_keeps_the_queue_of_l4s_short() {
    let slow = Source { every: 10 * MS + 3, ..greedy(0, 1) };
    let (got, _) = run(dualpi2(), 500, &[slow, greedy(1, 0)], 30);
    assert!(got[0].longest_wait <= 2 * SLOT, "{} ns", got[0].longest_wait);
    assert!(got[1].longest_wait > 10 * MS);
}

fn classes(scheduler: Scheduler, weights: [u32; 2]) -> Discipline {
    let class = |name: &str, dscp: Vec<u8>, weight, limit_packets| Class {
        name: name.into(),
        dscp,
        weight,
        limit_packets,
        limit_bytes: None,
    };
    Discipline::Classes(ClassesConfig {
        scheduler,
        classes: vec![class("first", vec![46], weights[0], Some(10)), class("rest", vec![], weights[1], Some(200))],
    })
}

#[test]
fn a_class_before_others_waits_for_the_packet_in_service_at_most() {
    let voice = Source { every: 3 * MS + 1, ..greedy(0, 46 << 2) };
    let (got, counters) = run(classes(Scheduler::Strict, [1, 1]), 200, &[voice, greedy(1, 0)], 20);
    assert!(got[0].sent - got[0].packets <= 2, "two are under way");
    assert!(got[0].longest_wait <= SLOT, "{} ns", got[0].longest_wait);
    assert_eq!(counters.classes[0].dropped_packets, 0);
    assert_eq!(counters.classes[1].dropped_packets, counters.queue_full.packets, "its own limit is 200");
    // It may take everything.
    let (got, counters) = run(classes(Scheduler::Strict, [1, 1]), 200, &[greedy(0, 46 << 2), greedy(1, 0)], 20);
    assert!(share(&got, 1) < 0.001);
    assert!(counters.classes[0].dropped_packets > 1_000, "its own limit is 10");
}

#[test]
fn weights_are_shares_of_bytes() {
    for weights in [[3, 1], [1, 1], [1, 9]] {
        let small = Source { ip_bytes: 262, every: MS / 20, ..greedy(0, 46 << 2) };
        let (got, _) = run(classes(Scheduler::Weighted, weights), 400, &[small, greedy(1, 0)], 20);
        let expected = f64::from(weights[0]) / f64::from(weights[0] + weights[1]);
        assert!((share(&got, 0) - expected).abs() < 0.005, "{weights:?}: {}", share(&got, 0));
    }
}

/// While one class is silent the other has the whole rate.
#[test]
fn no_class_keeps_the_rate_from_another() {
    for scheduler in [Scheduler::Strict, Scheduler::Weighted] {
        let (got, _) = run(classes(scheduler, [9, 1]), 200, &[greedy(1, 0)], 10);
        assert!(got[0].bytes * 8 > 99_000_000, "{} bytes", got[0].bytes);
    }
}

/// A queue that becomes another keeps what waits in it, and each packet's time of arrival.
#[test]
fn packets_stay_through_every_change_of_the_discipline() {
    let of = |discipline: Discipline| Queue { discipline, ..drop_tail(Some(1_000), None) };
    let all = [
        Discipline::DropTail(DropTailConfig {}),
        fq_codel(),
        Discipline::Codel(CodelConfig { target_ns: 5_000 * MS, interval_ns: 5_000 * MS, ecn: false }),
        dualpi2(),
        Discipline::Drr(DrrConfig { flows: 16, quantum_bytes: 1_500 }),
        classes(Scheduler::Weighted, [2, 1]),
        classes(Scheduler::Strict, [2, 1]),
        Discipline::DropTail(DropTailConfig {}),
    ];
    let config = Direction { queue: of(all[0].clone()), ..direction(10_000_000) };
    let mut model = DirectionModel::<u32>::new(&config);
    for number in 0..100 {
        let meta = Meta {
            ip_bytes: FULL,
            flow: (number as u16 % 5) << 12,
            traffic_class: number as u8 % 3,
            ack: None,
            ..Meta::default()
        };
        model.enqueue(number, meta, 0).expect("room");
    }
    for (times, discipline) in all.iter().enumerate() {
        let change = ewan_model::Change { queue: Some(of(discipline.clone())), ..Default::default() };
        model.reconfigure(&change, times as u64);
        let counters = model.counters();
        assert_eq!(counters.queued.packets, 99, "{discipline:?}");
        let apart: u64 = counters.classes.iter().map(|class| class.queued.packets).sum();
        assert_eq!(apart, if counters.class_count > 0 { 99 } else { 0 }, "{discipline:?}");
    }
    let mut released =
        std::iter::from_fn(|| model.pop(Nanos::MAX / 2).map(|release| release.packet)).collect::<Vec<_>>();
    released.sort_unstable();
    assert_eq!(released, (0..100).collect::<Vec<_>>());
    assert_eq!(model.counters().waited_ns, (1..100).map(|number| number * SLOT).sum::<u64>());
}

/// Framing `ip` counts a frame of 14 bytes as none: it waits like any other, and leaves.
#[test]
fn a_frame_that_counts_no_bytes_is_never_stranded() {
    let none = Framing { overhead_bytes: 0, minimum_bytes: 0 };
    let sfq = Discipline::Sfq(SfqConfig { flows: 16, quantum_bytes: 1_500, perturb_ns: 0 });
    for discipline in [fq_codel(), Discipline::Drr(DrrConfig { flows: 16, quantum_bytes: 1_500 }), sfq] {
        let queue = Queue { discipline, ..drop_tail(Some(2), None) };
        let config = Direction { queue: queue.clone(), framing: none, ..direction(10_000_000) };
        let filled = || {
            let mut model = DirectionModel::<u32>::new(&config);
            for (number, ip_bytes) in [1_500, 0, 0, 0].into_iter().enumerate() {
                let _ = model.enqueue(number as u32, Meta { ip_bytes, flow: 1 << 12, ..Meta::default() }, 0);
            }
            assert_eq!(model.counters().queued.packets, 2, "the limit holds: {queue:?}");
            assert_eq!(std::iter::from_fn(|| model.dropped()).count(), 1);
            model
        };
        let mut model = filled();
        let change = Change { queue: Some(drop_tail(Some(9), None)), ..Change::default() };
        model.reconfigure(&change, 1);
        assert_eq!(std::iter::from_fn(|| model.pop(Nanos::MAX / 2)).count(), 3, "{queue:?}");
        assert_eq!(model.next_event(), None);
        let mut model = filled();
        assert_eq!(std::iter::from_fn(|| model.cut()).count(), 3, "{queue:?}");
        assert_eq!((model.next_event(), model.counters().queued.packets), (None, 0));
        assert!(model.enqueue(9, Meta { ip_bytes: 100, ..Meta::default() }, 5).is_ok());
        assert_eq!(model.counters().in_service.packets, 1, "the link goes on");
    }
}
