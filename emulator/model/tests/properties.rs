//! What holds for the link model whatever the configuration and the traffic.

mod common;

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use common::{direction, serialisation, PLAIN};
use ewan_model::config::{
    Aggregate, Class, ClassesConfig, CodelConfig, Delay, Direction, Discipline, DropTailConfig, DrrConfig,
    DualPi2Config, FlowCounting, FqCodelConfig, Framing, Harq, Loss, Opportunity, PieConfig, Queue, RedConfig, Row,
    Scheduler, SfqConfig, StepConfig, Trace,
};
use ewan_model::frame::Ack;
use ewan_model::{check, Change, Counters, DirectionModel, FlowReport, Meta, Nanos, Release};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Packet {
    gap: Nanos,
    ip_bytes: u32,
    traffic_class: u8,
    flow: u16,
    /// Flow and number.
    ack: Option<(NonZeroU64, u32)>,
    /// When to look in between, as a share of the gap in 1/256; and what to change then.
    look: Vec<u8>,
    change: Option<Change>,
}

impl Packet {
    fn meta(&self) -> Meta {
        let ack = self.ack.map(|(flow, number)| Ack { flow, number, marks: 0 });
        Meta { ip_bytes: self.ip_bytes, flow: self.flow, traffic_class: self.traffic_class, ack, ..Meta::default() }
    }
}

/// A datagram of 5 bytes from this port to port 9.
fn datagram(port: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 33, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 9, 0, 13, 0, 0]);
    frame.extend(b"hello");
    frame
}

/// All that leaves at `now`: released, with its time and its mark, and dropped.
fn leaving(model: &mut DirectionModel<usize>, now: Nanos) -> (Vec<Release<usize>>, Vec<usize>) {
    let released = std::iter::from_fn(|| model.pop(now)).collect();
    (released, std::iter::from_fn(|| model.dropped()).collect())
}

fn classes(weights: &[u32]) -> Vec<Class> {
    let class = |(number, weight): (usize, &u32)| Class {
        name: format!("class {number}"),
        dscp: vec![number as u8, 8 + number as u8],
        weight: *weight,
        limit_packets: (number == 0).then_some(3),
        limit_bytes: Some(9_000),
    };
    weights.iter().enumerate().map(class).collect()
}

/// What examples of descriptions become in the plan: those of `tests/golden/stages.json` under a name.
fn examples(name: &str) -> BTreeMap<String, serde_json::Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/stages.json");
    let text = std::fs::read(path).expect("the golden file");
    let golden: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    serde_json::from_value(golden["examples"][name].clone()).expect("examples")
}

/// Changes to fields that no strategy here chooses, as their examples say: a new key is tried with them.
fn other_changes() -> Vec<Change> {
    let chosen = Change {
        loss: Some(Loss::None {}),
        corrupt_ppb: Some(0),
        duplicate_ppb: Some(0),
        ecn_bleach: Some(false),
        blackhole_bytes: Some(0),
        police_bps: Some(0),
        police_bytes: Some(0),
        half_duplex: Some(false),
        ..every_change()
    };
    let chosen = serde_json::to_value(chosen).expect("JSON");
    let others = examples("changes").into_values().filter(|example| {
        let fields = example.as_object().expect("fields");
        fields.keys().all(|field| chosen.get(field).is_none())
    });
    others.map(|example| serde_json::from_value(example).expect("a change")).collect()
}

/// One that names all that `changes` chooses.
fn every_change() -> Change {
    Change {
        rate_bps: Some(8_000),
        burst_bytes: Some(0),
        peak_bps: Some(0),
        aggregate: Some(Aggregate::NONE),
        slot_ns: Some(0),
        harq: Some(Harq::NONE),
        delay: Some(Delay::Constant { delay_ns: 0 }),
        reorder: Some(false),
        displace_ppb: Some(0),
        displace_packets: Some(0),
        displace_within_ns: Some(0),
        ack_filter: Some(false),
        queue: Some(Queue::drop_tail(None, None)),
        ..Change::default()
    }
}

/// Values that suit the traffic, and now and then the example of any discipline.
fn disciplines() -> impl Strategy<Value = Discipline> {
    let all = examples("disciplines").into_values().map(|each| serde_json::from_value(each).expect("a discipline"));
    prop_oneof![10 => suited_disciplines(), 1 => prop::sample::select(all.collect::<Vec<Discipline>>())]
}

fn suited_disciplines() -> impl Strategy<Value = Discipline> {
    (0..10u8, any::<bool>()).prop_map(|(kind, ecn)| match kind {
        0 => Discipline::DropTail(DropTailConfig {}),
        4 => Discipline::Step(StepConfig { threshold_bytes: 5_000 }),
        5 => Discipline::FqCodel(FqCodelConfig {
            flows: 4,
            quantum_bytes: 1_538,
            target_ns: 20_000,
            interval_ns: 100_000,
            ecn,
        }),
        6 => Discipline::Drr(DrrConfig { flows: 3, quantum_bytes: 500 }),
        7 => Discipline::Sfq(SfqConfig { flows: 3, quantum_bytes: 3_000, perturb_ns: 200_000 }),
        8 => Discipline::DualPi2(DualPi2Config {
            target_ns: 20_000,
            update_ns: 100_000,
            alpha_mhz: 50_000,
            beta_mhz: 500_000,
            coupling: 2,
            step_ns: 10_000,
            classic_ppb: 100_000_000,
        }),
        9 => Discipline::Classes(ClassesConfig {
            scheduler: if ecn { Scheduler::Strict } else { Scheduler::Weighted },
            classes: classes(&[1, 4, 2]),
        }),
        1 => Discipline::Red(RedConfig {
            min_bytes: 3_000,
            max_bytes: 9_000,
            max_p_ppb: 200_000_000,
            weight_log2: 2,
            ecn,
        }),
        2 => Discipline::Codel(CodelConfig { target_ns: 20_000, interval_ns: 100_000, ecn }),
        _ => Discipline::Pie(PieConfig {
            target_ns: 20_000,
            update_ns: 100_000,
            alpha_mhz: 50_000,
            beta_mhz: 500_000,
            ecn,
        }),
    })
}

fn delays() -> impl Strategy<Value = Delay> {
    (0..6u8, 0..200_000u64, 0..100_000u64).prop_map(|(kind, delay_ns, jitter_ns)| match kind {
        0 => Delay::Constant { delay_ns },
        1 => Delay::Uniform { delay_ns, jitter_ns },
        2 => Delay::Normal { delay_ns, jitter_ns },
        3 => Delay::Pareto { delay_ns, jitter_ns },
        4 => Delay::GaussMarkov { delay_ns, jitter_ns, correlation_ppb: 900_000_000 },
        _ => Delay::Table { delays_ns: vec![delay_ns, jitter_ns, 7] },
    })
}

fn rates() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![8_000, 9_999_991, 1_000_000_000, 40_000_000_000, 100_000_000_000, 1_000_000_000_000])
}

/// Bytes, and the peak rate.
fn bursts() -> impl Strategy<Value = (u64, u64)> {
    (prop_oneof![3 => Just(0), 1 => 64..30_000u64], prop_oneof![Just(0), rates()])
}

/// Aggregates, slots and HARQ: none of them most often.
fn radios() -> impl Strategy<Value = (Aggregate, u64, Harq)> {
    let aggregate = (1..20u32, prop_oneof![Just(0), 1..100_000u64], prop_oneof![Just(0), 1..50_000u64]);
    let aggregate = aggregate.prop_map(|(packets, time_ns, gap_ns)| Aggregate { packets, time_ns, gap_ns });
    let harq = (1..400_000_000u32, 1_000..200_000u64, 1..5u32);
    let harq = harq.prop_map(|(error_ppb, round_ns, rounds)| Harq { error_ppb, round_ns, rounds });
    let none = || Just(Aggregate::NONE);
    (
        prop_oneof![3 => none(), 1 => aggregate],
        prop_oneof![3 => Just(0), 1 => 1_000..200_000u64],
        prop_oneof![3 => Just(Harq::NONE), 1 => harq],
    )
}

fn queues() -> impl Strategy<Value = Queue> {
    (0..12u64, 0..20_000u64, 0..3u8, disciplines()).prop_map(|(packets, bytes, limits, discipline)| Queue {
        limit_packets: (limits != 1).then_some(packets),
        limit_bytes: (limits != 2).then_some(bytes),
        discipline,
    })
}

/// Share, packets and time; most often none.
fn displacements() -> impl Strategy<Value = (u32, u32, u64)> {
    let some = (prop_oneof![1..400_000_000u32, Just(1_000_000_000)], 1..9u32, 1..300_000u64);
    prop_oneof![2 => Just((0, 0, 0)), 1 => some]
}

fn displaced(config: Direction, (displace_ppb, displace_packets, displace_within_ns): (u32, u32, u64)) -> Direction {
    Direction { displace_ppb, displace_packets, displace_within_ns, ..config }
}

fn directions() -> impl Strategy<Value = Direction> {
    let order = (any::<bool>(), displacements());
    let others = prop::collection::vec(prop::sample::select([vec![Change::default()], other_changes()].concat()), 0..3);
    (rates(), bursts(), radios(), queues(), any::<bool>(), delays(), order, (any::<u64>(), others)).prop_map(
        |(rate_bps, (burst_bytes, peak_bps), radio, queue, filter, delay, (reorder, displace), (seed, others))| {
            let (aggregate, slot_ns, harq) = radio;
            let plain = Direction { rate_bps, burst_bytes, peak_bps, delay, reorder, seed, ..direction(PLAIN) };
            let ack_filter = filter && queue.discipline.has_one_list();
            let chosen = displaced(Direction { aggregate, slot_ns, harq, ack_filter, queue, ..plain }, displace);
            others.iter().fold(chosen, |direction, other| other.applied(&direction))
        },
    )
}

/// Rates with outages, delays and limits, at instants that suit the traffic; or opportunities. All pass the check.
fn traces() -> impl Strategy<Value = Trace> {
    let rate = prop_oneof![1 => Just(0), 3 => rates()];
    let row = (1..300_000u64, any::<u8>(), rate, 0..200_000u64, 0..20_000u64);
    let rows =
        (proptest::collection::vec(row, 1..12), any::<u8>(), 0..2_000_000u64).prop_map(|(all, columns, rest)| {
            let mut at_ns = 0;
            let mut rows = Vec::new();
            for (number, (gap, has, rate_bps, delay_ns, limit_bytes)) in all.into_iter().enumerate() {
                let has = if number == 0 { columns | 1 } else { columns & has };
                rows.push(Row {
                    at_ns,
                    // A held trace ends with a rate, and a repeated one has one.
                    rate_bps: (columns & 1 > 0 && has & 1 > 0).then_some(rate_bps.max(if number == 0 {
                        8_000_000
                    } else {
                        0
                    })),
                    delay_ns: (columns & has & 2 > 0).then_some(delay_ns),
                    loss_ppb: None,
                    limit_bytes: (columns & has & 4 > 0).then_some(limit_bytes.max(1)),
                });
                at_ns += gap;
            }
            if columns & 1 == 0 {
                rows.iter_mut().for_each(|row| row.rate_bps = None);
            }
            let period_ns = if columns & 8 > 0 { (at_ns + rest).max(1_000_000) } else { 0 };
            if period_ns == 0 && columns & 1 > 0 {
                let last = rows.len() - 1;
                rows[last].rate_bps = Some(1_000_000);
            }
            Trace::Rows { period_ns, rows }
        });
    let opportunity = (1..200_000u64, 1..4u32);
    let opportunities = (proptest::collection::vec(opportunity, 1..12), 0..2_000_000u64).prop_map(|(all, rest)| {
        let mut at_ns = 0;
        let opportunities: Vec<_> = all
            .into_iter()
            .map(|(gap, count)| {
                at_ns += gap;
                Opportunity { at_ns, count }
            })
            .collect();
        Trace::Opportunities { period_ns: (at_ns + rest).max(1_000_000), opportunities }
    });
    prop_oneof![3 => rows, 1 => opportunities]
}

/// Sense or nonsense.
fn wild_traces() -> impl Strategy<Value = Trace> {
    use proptest::option::of;
    let row = (wild(), of(wild()), of(wild()), of(wild_ppb()), of(wild()));
    let row = row.prop_map(|(at_ns, rate_bps, delay_ns, loss_ppb, limit_bytes)| Row {
        at_ns,
        rate_bps,
        delay_ns,
        loss_ppb,
        limit_bytes,
    });
    let one = (wild(), wild_ppb()).prop_map(|(at_ns, count)| Opportunity { at_ns, count });
    prop_oneof![
        (wild(), proptest::collection::vec(row, 0..4)).prop_map(|(period_ns, mut rows)| {
            // Or hardly any would have an order.
            rows.sort_by_key(|row| row.at_ns);
            rows.iter_mut().take(1).for_each(|row| row.at_ns &= 1 << 20);
            Trace::Rows { period_ns, rows }
        }),
        (wild(), proptest::collection::vec(one, 0..4)).prop_map(|(period_ns, mut opportunities)| {
            opportunities.sort_by_key(|one| one.at_ns);
            Trace::Opportunities { period_ns, opportunities }
        }),
    ]
}

/// Those that follow a trace.
fn traced() -> impl Strategy<Value = Direction> {
    (directions(), traces()).prop_map(|(config, trace)| {
        // The limit of a queue of classes is not one.
        let classes = matches!(config.queue.discipline, Discipline::Classes(_));
        let queue = if classes { common::drop_tail(Some(9), None) } else { config.queue.clone() };
        // Opportunities say when packets leave.
        let delivers = matches!(trace, Trace::Opportunities { .. });
        let aggregate = if delivers { Aggregate::NONE } else { config.aggregate };
        Direction { trace, queue, aggregate, ..config }
    })
}

fn changes() -> impl Strategy<Value = Change> {
    (
        proptest::option::of(rates()),
        proptest::option::of(bursts()),
        proptest::option::of(radios()),
        proptest::option::of(delays()),
        proptest::option::of(any::<bool>()),
        proptest::option::of(displacements()),
        proptest::option::of(any::<bool>()),
        proptest::option::of(queues()),
    )
        .prop_map(|(rate_bps, burst, radio, delay, reorder, displace, ack_filter, queue)| Change {
            rate_bps,
            burst_bytes: burst.map(|burst| burst.0),
            peak_bps: burst.map(|burst| burst.1),
            aggregate: radio.map(|radio| radio.0),
            slot_ns: radio.map(|radio| radio.1),
            harq: radio.map(|radio| radio.2),
            delay,
            reorder,
            displace_ppb: displace.map(|displace| displace.0),
            displace_packets: displace.map(|displace| displace.1),
            displace_within_ns: displace.map(|displace| displace.2),
            ack_filter,
            queue,
            ..Change::default()
        })
}

/// Bursts with pauses, at a size of gaps that suits the rates; changes in `with_changes` of 64 packets.
fn traffic(with_changes: u8) -> impl Strategy<Value = Vec<Packet>> {
    let gap = prop_oneof![3 => Just(0), 3 => 1..300u64, 3 => 300..20_000u64, 1 => 20_000..5_000_000u64];
    let look = proptest::collection::vec(any::<u8>(), 0..3);
    // Flows 1 and 1025 meet in one bucket.
    let flow = prop::sample::select(vec![1, 2, 3, 1025u64]);
    let ack = proptest::option::of((flow.prop_map(|flow| NonZeroU64::new(flow).expect("not 0")), 0..9u32));
    let packet = (gap, 20..9_001u32, 0..64u8, 0..4u16, ack, look, 0..64u8, changes());
    let packet = packet.prop_map(move |(gap, ip_bytes, traffic_class, flow, ack, look, dice, change)| Packet {
        gap,
        ip_bytes,
        traffic_class,
        flow: flow << 14,
        ack,
        look,
        change: (dice < with_changes).then_some(change),
    });
    proptest::collection::vec(packet, 1..200)
}

#[derive(Debug, Default, PartialEq)]
struct Outcome {
    released: Vec<Release<usize>>,
    refused: Vec<usize>,
    dropped: Vec<usize>,
}

/// Every arrived packet is somewhere, once.
fn conserved(counters: &Counters) -> bool {
    let of = |amount: fn(&Counters) -> u64| amount(counters);
    of(|c| c.arrived.packets)
        == of(|c| c.out.packets + c.queue_full.packets + c.culled_packets())
            + of(|c| c.queued.packets + c.in_service.packets + c.delayed.packets)
        && of(|c| c.arrived.bytes)
            == of(|c| c.out.bytes + c.queue_full.bytes + c.aqm.bytes + c.ack_filtered.bytes)
                + of(|c| c.queued.bytes + c.in_service.bytes + c.delayed.bytes)
}

fn collect(model: &mut DirectionModel<usize>, now: Nanos, outcome: &mut Outcome) {
    while let Some(release) = model.pop(now) {
        assert!(release.due <= now);
        outcome.released.push(release);
    }
    outcome.dropped.extend(std::iter::from_fn(|| model.dropped()));
    assert!(conserved(model.counters()));
}

/// Sends it all; looks in between only if asked; at the end follows `next_event` until the link is empty.
fn run(config: &Direction, packets: &[Packet], look: bool) -> Outcome {
    let mut model = DirectionModel::new(config);
    let mut outcome = Outcome::default();
    let mut now = 0;
    for (n, packet) in packets.iter().enumerate() {
        if look {
            let mut shares = packet.look.clone();
            shares.sort_unstable();
            for share in shares {
                collect(&mut model, now + packet.gap * u64::from(share) / 256, &mut outcome);
            }
        }
        now += packet.gap;
        if let Some(change) = &packet.change {
            let before = model.counters().clone();
            model.reconfigure(change, now);
            let after = model.counters();
            assert_eq!((before.arrived, before.queue_full), (after.arrived, after.queue_full));
        }
        if let Err(packet) = model.enqueue(n, packet.meta(), now) {
            outcome.refused.push(packet);
        }
        assert!(conserved(model.counters()));
        if look {
            collect(&mut model, now, &mut outcome);
        }
    }
    collect(&mut model, now, &mut outcome);
    while let Some(event) = model.next_event() {
        let released = outcome.released.len();
        now = now.max(event);
        collect(&mut model, now, &mut outcome);
        // Nothing is found late: what comes out at an event is due then.
        assert!(outcome.released[released..].iter().all(|release| release.due == now));
    }
    let counters = model.counters();
    assert_eq!(counters.queued.packets + counters.in_service.packets + counters.delayed.packets, 0);
    outcome
}

fn arrivals(packets: &[Packet]) -> Vec<Nanos> {
    packets
        .iter()
        .scan(0, |now, packet| {
            *now += packet.gap;
            Some(*now)
        })
        .collect()
}

/// Any number a request may hold; the ends of ranges more often than others.
fn wild() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => prop::sample::select(vec![0, 1, 2, 1_000, 100_000, 1_000_000, 1_000_000_000, 10_000_000_000, u64::MAX - 1, u64::MAX]),
        1 => any::<u64>(),
        2 => (0..64u32).prop_map(|bit| 1 << bit),
        2 => 0..20_000_000_000u64,
    ]
}

fn wild_ppb() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(1_000_000_000), Just(u32::MAX), any::<u32>(), 0..1_000_000_001u32]
}

/// A request of `set` as a client might write it, sense or nonsense.
fn wild_changes() -> impl Strategy<Value = Change> {
    let loss =
        (0..6u8, prop::array::uniform5(wild_ppb()), wild(), "[01]{0,9}x?").prop_map(
            |(kind, p, n, pattern)| match kind {
                0 => Loss::Bernoulli { loss_ppb: p[0] },
                1 => Loss::GilbertElliott {
                    to_bad_ppb: p[0],
                    to_good_ppb: p[1],
                    loss_good_ppb: p[2],
                    loss_bad_ppb: p[3],
                },
                2 => Loss::Markov4 { p13_ppb: p[0], p31_ppb: p[1], p32_ppb: p[2], p23_ppb: p[3], p14_ppb: p[4] },
                3 => Loss::EveryNth { n },
                4 => Loss::BitErrors { bit_ppb: p[0] },
                _ => Loss::Pattern { pattern },
            },
        );
    let delay = (0..6u8, wild(), wild(), wild_ppb(), prop::collection::vec(wild(), 0..4)).prop_map(
        |(kind, delay_ns, jitter_ns, correlation_ppb, delays_ns)| match kind {
            0 => Delay::Constant { delay_ns },
            1 => Delay::Uniform { delay_ns, jitter_ns },
            2 => Delay::Normal { delay_ns, jitter_ns },
            3 => Delay::Pareto { delay_ns, jitter_ns },
            4 => Delay::GaussMarkov { delay_ns, jitter_ns, correlation_ppb },
            _ => Delay::Table { delays_ns },
        },
    );
    let discipline = (0..10u8, prop::array::uniform4(wild()), wild_ppb(), any::<u8>(), any::<bool>()).prop_map(
        |(kind, n, max_p_ppb, weight_log2, ecn)| match kind {
            0 => Discipline::DropTail(DropTailConfig {}),
            4 => Discipline::Step(StepConfig { threshold_bytes: n[0] }),
            5 => Discipline::FqCodel(FqCodelConfig {
                flows: max_p_ppb,
                quantum_bytes: n[2] as u32,
                target_ns: n[0],
                interval_ns: n[1],
                ecn,
            }),
            6 => Discipline::Drr(DrrConfig { flows: u32::from(weight_log2), quantum_bytes: n[0] as u32 }),
            7 => Discipline::Sfq(SfqConfig {
                flows: u32::from(weight_log2),
                quantum_bytes: n[0] as u32,
                perturb_ns: n[1],
            }),
            8 => Discipline::DualPi2(DualPi2Config {
                target_ns: n[0],
                update_ns: n[1],
                alpha_mhz: n[2],
                beta_mhz: n[3],
                coupling: u32::from(weight_log2),
                step_ns: n[2],
                classic_ppb: max_p_ppb,
            }),
            9 => Discipline::Classes(ClassesConfig {
                scheduler: Scheduler::Weighted,
                classes: classes(&[n[0] as u32, max_p_ppb]),
            }),
            1 => Discipline::Red(RedConfig {
                min_bytes: n[0],
                max_bytes: n[1],
                max_p_ppb,
                weight_log2: weight_log2 % 32,
                ecn,
            }),
            2 => Discipline::Codel(CodelConfig { target_ns: n[0], interval_ns: n[1], ecn }),
            _ => Discipline::Pie(PieConfig { target_ns: n[0], update_ns: n[1], alpha_mhz: n[2], beta_mhz: n[3], ecn }),
        },
    );
    let limit = || proptest::option::of(wild());
    let queue = (limit(), limit(), discipline).prop_map(|(limit_packets, limit_bytes, discipline)| Queue {
        limit_packets,
        limit_bytes,
        discipline,
    });
    use proptest::option::of;
    let boxes = (of(any::<bool>()), of(prop_oneof![20..2_000u32, any::<u32>()]));
    let aggregate = (any::<u32>(), wild(), wild());
    let aggregate = aggregate.prop_map(|(packets, time_ns, gap_ns)| Aggregate { packets, time_ns, gap_ns });
    let harq = (wild_ppb(), wild(), any::<u32>());
    let harq = harq.prop_map(|(error_ppb, round_ns, rounds)| Harq { error_ppb, round_ns, rounds });
    let buckets =
        (of((wild(), wild())), of(wild()), of(wild()), of(aggregate), of(any::<bool>()), of(wild()), of(harq));
    let list = (of(any::<bool>()), of(queue));
    let order = (of(any::<bool>()), of((wild_ppb(), prop_oneof![0..2_000u32, any::<u32>()], wild())));
    (of(wild()), of(delay), order, of(loss), of(wild_ppb()), of(wild_ppb()), boxes, buckets, list).prop_map(
        |(
            rate_bps,
            delay,
            (reorder, displace),
            loss,
            corrupt_ppb,
            duplicate_ppb,
            (ecn_bleach, blackhole_bytes),
            (police, burst_bytes, peak_bps, aggregate, half_duplex, slot_ns, harq),
            (ack_filter, queue),
        )| Change {
            rate_bps,
            delay,
            reorder,
            displace_ppb: displace.map(|displace| displace.0),
            displace_packets: displace.map(|displace| displace.1),
            displace_within_ns: displace.map(|displace| displace.2),
            loss,
            corrupt_ppb,
            duplicate_ppb,
            ecn_bleach,
            blackhole_bytes,
            police_bps: police.map(|police| police.0),
            police_bytes: police.map(|police| police.1),
            burst_bytes,
            peak_bps,
            aggregate,
            half_duplex,
            slot_ns,
            harq,
            ack_filter,
            queue,
            ..Change::default()
        },
    )
}

/// A direction of a plan, with any numbers.
fn wild_directions() -> impl Strategy<Value = Direction> {
    let narrow = || wild().prop_map(|number| number as u32);
    let fixed = (narrow(), narrow(), wild(), any::<u64>(), wild(), wild());
    (fixed, wild_changes()).prop_map(
        |((overhead_bytes, minimum_bytes, rate_bps, seed, store_packets, store_bytes), change)| {
            let plain = Direction {
                framing: Framing { overhead_bytes, minimum_bytes },
                rate_bps,
                seed,
                store_packets,
                store_bytes,
                ..direction(PLAIN)
            };
            change.applied(&plain)
        },
    )
}

/// Any one of a direction's numbers may be wild, and the others are of a direction that passes.
fn nearly_sound_directions() -> impl Strategy<Value = Direction> {
    (wild_directions(), directions(), 0..11u8).prop_map(|(wild, sound, which)| match which {
        0 => Direction { framing: wild.framing, ..sound },
        1 => Direction { rate_bps: wild.rate_bps, ..sound },
        2 => Direction { loss: wild.loss, ..sound },
        3 => Direction { corrupt_ppb: wild.corrupt_ppb, duplicate_ppb: wild.duplicate_ppb, ..sound },
        4 => Direction { queue: wild.queue, ack_filter: wild.ack_filter, ..sound },
        5 => Direction { delay: wild.delay, reorder: wild.reorder, ..sound },
        6 => Direction { ecn_bleach: wild.ecn_bleach, blackhole_bytes: wild.blackhole_bytes, ..sound },
        7 => Direction {
            burst_bytes: wild.burst_bytes,
            peak_bps: wild.peak_bps,
            police_bps: wild.police_bps,
            police_bytes: wild.police_bytes,
            ..sound
        },
        8 => Direction {
            displace_ppb: wild.displace_ppb,
            displace_packets: wild.displace_packets,
            displace_within_ns: wild.displace_within_ns,
            aggregate: wild.aggregate,
            half_duplex: wild.half_duplex,
            slot_ns: wild.slot_ns,
            harq: wild.harq,
            ..sound
        },
        9 => Direction { store_packets: wild.store_packets, store_bytes: wild.store_bytes, ..sound },
        _ => wild,
    })
}

/// Which keys a direction has, as a plan writes them.
fn keys(value: &serde_json::Value, all: &mut Vec<String>) {
    for (key, inner) in value.as_object().into_iter().flatten() {
        all.push(key.clone());
        keys(inner, all);
    }
    value.as_array().into_iter().flatten().for_each(|inner| keys(inner, all));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2048), ..ProptestConfig::default() })]

    /// A direction as a plan has it is refused by the name of a key, or packets pass through it to their end.
    #[test]
    fn any_direction_is_refused_with_its_key_or_carries_packets(config in nearly_sound_directions(), packets in traffic(0)) {
        let text = serde_json::to_value(&config).expect("JSON");
        prop_assert_eq!(&serde_json::from_value::<Direction>(text.clone()).expect("the same"), &config);
        if let Err(refused) = check(&config) {
            let mut known = Vec::new();
            keys(&text, &mut known);
            prop_assert!(known.iter().any(|key| refused.contains(key.as_str())), "{refused}");
            prop_assert!(!refused.contains('\n') && refused.contains(": "), "{refused}");
            return Ok(());
        }
        let mut model = DirectionModel::with_room(&config, 2 * packets.len());
        let (mut now, mut held) = (0, 0);
        for (number, packet) in packets.iter().enumerate() {
            now += packet.gap;
            let mut meta = packet.meta();
            let fate = model.impair(now, &mut meta);
            prop_assert_eq!(fate.bleach, meta != packet.meta());
            for _ in 0..if fate.lost { 0 } else { 1 + u8::from(fate.duplicate) } {
                held += i64::from(model.enqueue(number, meta, now).is_ok());
            }
            prop_assert!(conserved(model.counters()));
        }
        let mut steps = 0;
        while let Some(event) = model.next_event() {
            now = now.max(event);
            steps += 1;
            prop_assert!(steps < 8 * packets.len() + 10, "{steps} steps");
            held -= std::iter::from_fn(|| model.pop(now)).count() as i64;
            held -= std::iter::from_fn(|| model.dropped()).count() as i64;
        }
        prop_assert_eq!(held, 0);
        prop_assert!(conserved(model.counters()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(4096), ..ProptestConfig::default() })]

    /// Whatever `set` lets through: every packet leaves, in a number of steps and a time that anybody can wait for. The
    /// parts of a request are judged one by one, or hardly any whole one would be let through.
    #[test]
    fn any_change_that_passes_the_check_leaves_a_model_that_makes_progress(
        first in directions(), changes in proptest::collection::vec(wild_changes(), 1..6), packets in 1..60usize,
    ) {
        let mut model = DirectionModel::new(&first);
        let (mut now, mut steps, began) = (0, 0, std::time::Instant::now());
        let mut held = 0u64;
        for change in &changes {
            let parts = [
                Change { rate_bps: change.rate_bps, ..Change::default() },
                Change { delay: change.delay.clone(), ..Change::default() },
                Change { reorder: change.reorder, ..Change::default() },
                Change { loss: change.loss.clone(), ..Change::default() },
                Change { corrupt_ppb: change.corrupt_ppb, duplicate_ppb: change.duplicate_ppb, ..Change::default() },
                Change { ecn_bleach: change.ecn_bleach, ..Change::default() },
                Change { blackhole_bytes: change.blackhole_bytes, ..Change::default() },
                Change { police_bps: change.police_bps, police_bytes: change.police_bytes, ..Change::default() },
                Change { burst_bytes: change.burst_bytes, ..Change::default() },
                Change {
                    displace_ppb: change.displace_ppb,
                    displace_packets: change.displace_packets,
                    displace_within_ns: change.displace_within_ns,
                    ..Change::default()
                },
                Change { peak_bps: change.peak_bps, ..Change::default() },
                Change { aggregate: change.aggregate, ..Change::default() },
                Change { slot_ns: change.slot_ns, ..Change::default() },
                Change { harq: change.harq, ..Change::default() },
                Change { ack_filter: change.ack_filter, ..Change::default() },
                Change { queue: change.queue.clone(), ..Change::default() },
                Change { restart_trace: Some(true), ..Change::default() },
            ];
            for part in parts.iter().filter(|part| part.check().is_ok()) {
                model.reconfigure(part, now);
            }
            for n in 0..packets {
                let mut meta = Meta { ip_bytes: 1500, traffic_class: 2 * u8::from(n % 2 == 0), ..Meta::default() };
                if !model.impair(now, &mut meta).lost {
                    held += u64::from(model.enqueue(n, meta, now).is_ok());
                }
            }
            now += 7_000;
        }
        while let Some(event) = model.next_event() {
            now = now.max(event);
            steps += 1;
            prop_assert!(steps < 4 * packets * changes.len() + 10, "{steps} steps");
            while model.pop(now).is_some() {
                held -= 1;
            }
            while model.dropped().is_some() {
                held -= 1;
            }
        }
        prop_assert_eq!(held, 0);
        prop_assert!(began.elapsed().as_millis() < 1_000, "{:?} for {changes:?}", began.elapsed());
    }
}

/// Packets that leave together have one due time, displaced or not: who is on time is told by the order, too.
fn displacement(share: u32, by: u32, seed: u64, packets: &[Packet], rate_bps: u64) -> Result<(), TestCaseError> {
    const WITHIN: Nanos = 10_000_000_000;
    let plain = Direction { rate_bps, seed, queue: common::drop_tail(Some(1_000), None), ..direction(PLAIN) };
    let times = |config: &Direction| -> Vec<_> {
        run(config, packets, true).released.iter().map(|release| (release.packet, release.due)).collect()
    };
    let (before, after) = (times(&plain), times(&displaced(plain.clone(), (share, by, WITHIN))));
    prop_assert_eq!((before.len(), after.len()), (packets.len(), packets.len()));
    let mut on_time: Vec<usize> = Vec::new();
    for (place, (packet, due)) in after.iter().enumerate() {
        if *due == before[*packet].1 && on_time.last().is_none_or(|last| last < packet) {
            on_time.push(*packet);
        } else if *due != before[*packet].1 + WITHIN {
            prop_assert_eq!((place, *due), (packet + by as usize, after[place - 1].1));
        }
    }
    for (packet, _) in after.iter().filter(|(packet, due)| *due == before[*packet].1 + WITHIN) {
        prop_assert!(on_time.iter().filter(|later| *later > packet).count() < by as usize, "in vain");
    }
    Ok(())
}

#[test]
fn a_displaced_packet_may_leave_at_its_own_time_with_the_one_that_overtook_it() {
    let packet = Packet { gap: 0, ip_bytes: 20, traffic_class: 0, flow: 0, ack: None, look: Vec::new(), change: None };
    let packets = vec![packet; 40];
    for seed in 0..200 {
        displacement(194_932_246, 1, seed, &packets, 1_000_000_000_000).expect("each leaves in its place");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 2, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_is_released_or_dropped_once(config in directions(), packets in traffic(4)) {
        let outcome = run(&config, &packets, true);
        let mut seen: Vec<_> = outcome.released.iter().map(|release| release.packet).collect();
        seen.extend(outcome.refused.iter().chain(&outcome.dropped));
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..packets.len()).collect::<Vec<_>>());
    }

    #[test]
    fn when_one_looks_does_not_matter(config in directions(), packets in traffic(4)) {
        prop_assert_eq!(run(&config, &packets, true), run(&config, &packets, false));
    }

    #[test]
    fn order_is_kept_without_reordering(config in directions(), packets in traffic(0)) {
        // Queues of flows and classes keep the order of each; SFQ's may part a flow when it hashes anew.
        let apart = |number: usize| match config.queue.discipline {
            Discipline::FqCodel(_) | Discipline::Drr(_) => packets[number].flow,
            Discipline::Sfq(_) => number as u16,
            Discipline::DualPi2(_) => u16::from(packets[number].traffic_class & 1),
            Discipline::Classes(_) => u16::from(packets[number].traffic_class >> 2),
            ref other if other.has_one_list() => 0,
            _ => number as u16,
        };
        let config = displaced(Direction { reorder: false, ack_filter: false, ..config.clone() }, (0, 0, 0));
        let outcome = run(&config, &packets, true);
        let mut last = std::collections::HashMap::new();
        for number in outcome.released.iter().map(|release| release.packet) {
            let before = last.insert(apart(number), number);
            prop_assert!(before.is_none_or(|before| before < number));
        }
    }

    #[test]
    fn due_times_never_go_back(config in directions(), packets in traffic(4)) {
        let outcome = run(&config, &packets, false);
        prop_assert!(outcome.released.windows(2).all(|pair| pair[0].due <= pair[1].due));
    }

    #[test]
    fn never_before_arrival_serialisation_and_delay(config in directions(), packets in traffic(0), delay_ns in 0..300_000u64) {
        let none = Direction { aggregate: Aggregate::NONE, slot_ns: 0, harq: Harq::NONE, ..config };
        let config = displaced(Direction { delay: Delay::Constant { delay_ns }, burst_bytes: 0, ..none }, (0, 0, 0));
        let arrivals = arrivals(&packets);
        let released = run(&config, &packets, true).released;
        for release in &released {
            let least = serialisation(&config, packets[release.packet].ip_bytes).ceil();
            prop_assert!(release.due >= arrivals[release.packet] + least as Nanos + delay_ns);
        }
        for pair in released.windows(2) {
            let spacing = serialisation(&config, packets[pair[1].packet].ip_bytes).floor();
            prop_assert!(pair[1].due - pair[0].due >= spacing as Nanos);
        }
    }

    /// Who is filtered is an ACK, and a later one of its flow that acknowledges more went through.
    #[test]
    fn no_acknowledgement_is_lost_by_filtering(config in directions(), packets in traffic(0)) {
        let queue = common::drop_tail(Some(40), None);
        let outcome = run(&Direction { ack_filter: true, queue, ..config }, &packets, true);
        for filtered in &outcome.dropped {
            let (flow, number) = packets[*filtered].ack.expect("an ACK");
            let by = |n: &usize| packets[*n].ack.is_some_and(|(other, more)| other == flow && more > number);
            prop_assert!(outcome.released.iter().map(|release| release.packet).any(|n| n > *filtered && by(&n)));
        }
    }

    /// RFC 5236: a packet's displacement is by how many places it leaves later than it came. Who is not displaced keeps its
    /// order and its time.
    #[test]
    fn packets_are_displaced_by_exactly_so_many(
        share in 1..500_000_000u32, by in 1..9u32, seed in any::<u64>(), packets in traffic(0),
        rate_bps in prop::sample::select(vec![9_999_991, 1_000_000_000, 1_000_000_000_000]),
    ) {
        displacement(share, by, seed, &packets, rate_bps)?;
    }

    /// A caller that looks first and stamps arrivals somewhat earlier loses nothing and sees no time run back.
    #[test]
    fn arrivals_stamped_before_a_look_are_welcome(config in directions(), packets in traffic(4), ahead in 0..50_000u64) {
        let mut model = DirectionModel::new(&config);
        let (mut outcome, arrivals) = (Outcome::default(), arrivals(&packets));
        for (n, packet) in packets.iter().enumerate() {
            collect(&mut model, arrivals[n] + ahead, &mut outcome);
            if let Some(change) = &packet.change {
                model.reconfigure(change, arrivals[n]);
            }
            let meta = packet.meta();
            let _ = model.enqueue(n, meta, arrivals[n]);
        }
        collect(&mut model, Nanos::MAX / 2, &mut outcome);
        prop_assert!(outcome.released.iter().all(|release| release.due >= arrivals[release.packet]));
        prop_assert_eq!(model.next_event(), None);
    }

    /// Of few places, which flows take from each other, and of a table that begins while packets are in the link.
    #[test]
    fn what_flows_count_adds_up_to_what_the_link_counts(
        config in directions(), packets in traffic(4), most in 1..6u16, begin in 0..4usize, stated in any::<bool>(),
    ) {
        let counting = FlowCounting { most, ports: if stated { vec![2] } else { vec![] } };
        let (mut plain, mut counted) = (DirectionModel::new(&config), DirectionModel::new(&config));
        let (mut now, mut before) = (0, Counters::default());
        for (number, packet) in packets.iter().enumerate() {
            now += packet.gap;
            if number == begin.min(packets.len() - 1) {
                counted.reconfigure(&Change { flows: Some(counting.clone()), ..Change::default() }, now);
                plain.reconfigure(&Change::default(), now);
                before = counted.counters().clone();
            }
            let frame = datagram(packet.flow % 8);
            for model in [&mut plain, &mut counted] {
                let of_frame = model.describe(&frame, packet.ip_bytes);
                let mut meta = Meta { place: of_frame.place, payload_bytes: of_frame.payload_bytes, ..packet.meta() };
                let fate = model.impair(now, &mut meta);
                for _ in 0..if fate.lost { 0 } else { 1 + u8::from(fate.duplicate) } {
                    let _ = model.enqueue(number, meta, now);
                }
            }
            prop_assert_eq!(leaving(&mut plain, now), leaving(&mut counted, now), "counting changes nothing");
        }
        let mut steps = 0;
        while let Some(event) = counted.next_event() {
            now = now.max(event);
            prop_assert_eq!(leaving(&mut plain, now), leaving(&mut counted, now));
            steps += 1;
            prop_assert!(steps < 10_000);
        }
        let after = counted.counters();
        let flows = counted.flows().expect("flows are counted").reports(now);
        let sum = |of: &dyn Fn(&FlowReport) -> u64| flows.iter().map(of).sum::<u64>();
        prop_assert_eq!(sum(&|flow| flow.in_packets), after.in_packets - before.in_packets);
        prop_assert_eq!(sum(&|flow| flow.in_bytes), after.in_bytes - before.in_bytes);
        prop_assert_eq!(sum(&|flow| flow.duplicated_packets), after.duplicated_packets - before.duplicated_packets);
        prop_assert_eq!(sum(&|flow| flow.drops.loss), after.lost_packets - before.lost_packets);
        prop_assert_eq!(sum(&|flow| flow.drops.policed), after.policed_packets - before.policed_packets);
        for flow in &flows {
            let drops = &flow.drops;
            let gone = drops.loss + drops.blackhole + drops.policed + drops.queue_full + drops.aqm + drops.ack_filtered;
            prop_assert_eq!(flow.in_packets + flow.duplicated_packets, gone + flow.out_packets, "the link is empty");
            prop_assert_eq!(flow.out_packets, flow.served_packets);
            prop_assert_eq!(flow.waits.iter().map(|(_, packets)| u64::from(*packets)).sum::<u64>(), flow.served_packets);
            prop_assert_eq!(flow.out_payload_bytes, 5 * flow.out_packets);
        }
        if begin == 0 {
            prop_assert_eq!(sum(&|flow| flow.out_packets), after.out.packets);
            prop_assert_eq!(sum(&|flow| flow.drops.queue_full), after.queue_full.packets);
            prop_assert_eq!(sum(&|flow| flow.drops.aqm), after.aqm.packets);
            prop_assert_eq!(sum(&|flow| flow.drops.ack_filtered), after.ack_filtered.packets);
            prop_assert_eq!(sum(&|flow| flow.ce_packets), after.ce_packets);
        }
    }

    #[test]
    fn marks_are_only_of_capable_packets(config in directions(), packets in traffic(4)) {
        prop_assert!(run(&config, &packets, true).released.iter().all(|r| !r.mark_ce || packets[r.packet].traffic_class & 3 != 0));
    }

    #[test]
    fn a_trace_is_followed_whenever_one_looks(config in traced(), packets in traffic(0)) {
        prop_assume!(check(&Direction { trace: config.trace.clone(), ..direction(PLAIN) }).is_ok());
        let outcome = run(&config, &packets, true);
        let mut seen: Vec<_> = outcome.released.iter().map(|release| release.packet).collect();
        seen.extend(outcome.refused.iter().chain(&outcome.dropped));
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..packets.len()).collect::<Vec<_>>());
        prop_assert!(config.reorder || outcome.released.windows(2).all(|pair| pair[0].due <= pair[1].due));
        prop_assert_eq!(run(&config, &packets, false), outcome);
    }

    #[test]
    fn any_trace_is_refused_with_its_key_or_can_be_followed(trace in wild_traces(), packets in traffic(0)) {
        let config = Direction { trace, ..direction(PLAIN) };
        let text = serde_json::to_value(&config).expect("JSON");
        prop_assert_eq!(&serde_json::from_value::<Direction>(text.clone()).expect("the same"), &config);
        let mut model = DirectionModel::<usize>::new(&config);
        match check(&config) {
            Err(refused) => {
                let mut known = Vec::new();
                keys(&text, &mut known);
                prop_assert!(known.iter().any(|key| refused.contains(key.as_str())), "{refused}");
                prop_assert!(!refused.contains('\n') && refused.contains(": "), "{refused}");
            }
            Ok(()) => {
                let _ = model.enqueue(0, packets[0].meta(), packets[0].gap);
                let mut steps = 0;
                while let Some(event) = model.next_event() {
                    let _ = model.pop(event);
                    steps += 1;
                    prop_assert!(steps < 1_000_000);
                }
            }
        }
    }

    /// Turning one model of stage 1 on leaves what another one does to the same packets.
    #[test]
    fn stages_draw_from_streams_of_their_own(seed in any::<u64>()) {
        let fates = |loss_ppb| {
            let loss = Loss::Bernoulli { loss_ppb };
            let config = Direction { loss, corrupt_ppb: 300_000_000, duplicate_ppb: 300_000_000, seed, ..direction(PLAIN) };
            let mut model = DirectionModel::<u8>::new(&config);
            (0..200).map(|n| model.impair(n, &mut Meta::default())).collect::<Vec<_>>()
        };
        for (with, without) in fates(200_000_000).iter().zip(fates(0)) {
            prop_assert!(with.lost || *with == without);
        }
    }
}
