//! A seeded simulation with a golden table per configuration, so that a change of behaviour shows as a diff.
//! After an intended change: EWAN_UPDATE_GOLDEN=1 cargo test -p ewan-model --test simulate

mod common;

use std::fmt::Write;
use std::path::Path;

use common::{direction, drop_tail};
use ewan_model::config::{CodelConfig, Delay, Direction, Discipline, Loss, PieConfig, Queue, RedConfig};
use ewan_model::{Change, DirectionModel, Meta, Nanos};

const PACKETS: usize = 5_000;
const SHOWN: usize = 40;
const MS: Nanos = 1_000_000;

/// Bursts and pauses that offer 100 Mbit/s somewhat more than it carries; every other packet knows ECN.
fn arrivals() -> Vec<(Nanos, Meta)> {
    // Numerical Recipes' linear congruential generator: the traffic must not depend on the model's own numbers.
    let mut state = 20_260_101u64;
    let mut draw = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut now = 0;
    (0..PACKETS)
        .map(|_| {
            now += if draw(8) == 0 { draw(900_000) } else { draw(30_000) };
            let ip_bytes = [40, 576, 1_500, 1_500][draw(4) as usize];
            (now, Meta { ip_bytes, traffic_class: 2 * u8::from(draw(2) == 0), ..Meta::default() })
        })
        .collect()
}

fn configurations() -> Vec<(&'static str, Direction)> {
    let plain = || direction(100_000_000);
    let (delay_ns, jitter_ns) = (10 * MS, 2 * MS);
    let jitter = |delay, reorder| Direction { delay, reorder, ..plain() };
    let queue = |discipline| Direction { queue: Queue { discipline, ..drop_tail(Some(100), None) }, ..plain() };
    let loss = |loss| Direction { loss, ..plain() };
    let (corrupt_ppb, duplicate_ppb) = (20_000_000, 10_000_000);
    vec![
        ("drop_tail_packets", Direction { queue: drop_tail(Some(20), None), ..plain() }),
        ("drop_tail_bytes", Direction { queue: drop_tail(None, Some(20_000)), ..plain() }),
        ("slow_8kbit", direction(8_000)),
        ("fast_100gbit", direction(100_000_000_000)),
        ("uniform_reordered", jitter(Delay::Uniform { delay_ns, jitter_ns }, true)),
        ("normal_in_order", jitter(Delay::Normal { delay_ns, jitter_ns }, false)),
        (
            "gauss_markov_in_order",
            jitter(Delay::GaussMarkov { delay_ns, jitter_ns, correlation_ppb: 900_000_000 }, false),
        ),
        ("pareto_reordered", jitter(Delay::Pareto { delay_ns, jitter_ns }, true)),
        ("table_reordered", jitter(Delay::Table { delays_ns: vec![MS, 2 * MS, 5 * MS] }, true)),
        (
            "displaced",
            Direction {
                displace_ppb: 50_000_000,
                displace_packets: 3,
                displace_within_ns: 2 * MS,
                ..jitter(Delay::Uniform { delay_ns, jitter_ns: MS / 10 }, false)
            },
        ),
        ("bernoulli", Direction { corrupt_ppb, duplicate_ppb, ..loss(Loss::Bernoulli { loss_ppb: 50_000_000 }) }),
        (
            "gilbert_elliott",
            loss(Loss::GilbertElliott {
                to_bad_ppb: 20_000_000,
                to_good_ppb: 300_000_000,
                loss_good_ppb: 1_000_000,
                loss_bad_ppb: 800_000_000,
            }),
        ),
        (
            "markov4",
            loss(Loss::Markov4 {
                p13_ppb: 20_000_000,
                p31_ppb: 200_000_000,
                p32_ppb: 200_000_000,
                p23_ppb: 300_000_000,
                p14_ppb: 10_000_000,
            }),
        ),
        (
            "red_ecn",
            queue(Discipline::Red(RedConfig {
                min_bytes: 15_000,
                max_bytes: 45_000,
                max_p_ppb: 100_000_000,
                weight_log2: 6,
                ecn: true,
            })),
        ),
        ("codel_ecn", queue(Discipline::Codel(CodelConfig { target_ns: MS, interval_ns: 10 * MS, ecn: true }))),
        (
            "pie_ecn",
            queue(Discipline::Pie(PieConfig {
                target_ns: MS,
                update_ns: MS,
                alpha_mhz: 2_000,
                beta_mhz: 20_000,
                ecn: true,
            })),
        ),
    ]
}

/// One line a packet: what became of it, and for the delivered when it is due after its arrival.
fn simulate(config: &Direction, changes: &[(usize, Change)]) -> String {
    let mut model = DirectionModel::<usize>::new(config);
    let arrivals = arrivals();
    let mut fates = vec![String::new(); PACKETS];
    let (mut digest, mut sum, mut greatest) = (0xcbf2_9ce4_8422_2325u64, 0, 0);
    let mut collect = |model: &mut DirectionModel<usize>, now, fates: &mut Vec<String>| {
        while let Some(release) = model.pop(now) {
            let took = release.due - arrivals[release.packet].0;
            sum += u128::from(took);
            greatest = greatest.max(took);
            for number in [release.packet as u64, release.due, u64::from(release.mark_ce)] {
                digest = (digest ^ number).wrapping_mul(0x0100_0000_01b3);
            }
            write!(fates[release.packet], " +{took}{}", if release.mark_ce { " CE" } else { "" }).unwrap();
        }
        while let Some(packet) = model.dropped() {
            fates[packet].push_str(" dropped-at-service");
        }
    };
    for (n, (now, meta)) in arrivals.iter().enumerate() {
        for (_, change) in changes.iter().filter(|(at, _)| *at == n) {
            model.reconfigure(change, *now);
        }
        collect(&mut model, *now, &mut fates);
        let mut meta = *meta;
        let fate = model.impair(*now, &mut meta);
        if fate.lost {
            fates[n].push_str(" lost");
            continue;
        }
        if let Some(bit) = fate.corrupt {
            write!(fates[n], " corrupt({bit:08x})").unwrap();
        }
        for _ in 0..1 + usize::from(fate.duplicate) {
            if model.enqueue(n, meta, *now).is_err() {
                fates[n].push_str(" dropped");
            }
        }
    }
    collect(&mut model, Nanos::MAX, &mut fates);
    let counters = model.counters();
    let mut table = String::new();
    for (key, value) in [
        ("in", counters.in_packets),
        ("lost", counters.lost_packets),
        ("corrupted", counters.corrupted_packets),
        ("duplicated", counters.duplicated_packets),
        ("queue full", counters.queue_full.packets),
        ("aqm", counters.aqm.packets),
        ("marked", counters.ce_packets),
        ("out", counters.out.packets),
        ("bytes out", counters.out.bytes),
        ("longest queue", counters.queued_max.packets),
        ("mean ns", (sum / u128::from(counters.out.packets.max(1))) as u64),
        ("greatest ns", greatest),
    ] {
        writeln!(table, "{key:<14}{value:>18}").unwrap();
    }
    writeln!(table, "{:<14}{digest:>18x}\n\n packet  arrival ns  bytes  fate", "digest").unwrap();
    // The first packets, and some from later on, when the queue's discipline has come to work.
    for n in (0..SHOWN).chain(PACKETS / 2..PACKETS / 2 + SHOWN) {
        let (now, meta) = arrivals[n];
        writeln!(table, "{n:>7}{now:>12}{:>7} {}", meta.ip_bytes, fates[n]).unwrap();
    }
    table
}

fn compare(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("EWAN_UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, found).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    for (n, (golden, found)) in golden.lines().zip(found.lines()).enumerate() {
        assert_eq!(golden, found, "{name}.txt:{}", n + 1);
    }
    assert_eq!(golden.lines().count(), found.lines().count(), "{name}.txt: lines");
}

#[test]
fn configurations_behave_as_in_their_golden_tables() {
    for (name, config) in configurations() {
        compare(name, &simulate(&config, &[]));
    }
}

#[test]
fn changes_at_run_time_behave_as_in_the_golden_table() {
    let delay = Delay::Uniform { delay_ns: 5 * MS, jitter_ns: MS };
    let changes = [
        (10, Change { rate_bps: Some(20_000_000), ..Change::default() }),
        (20, Change { delay: Some(delay), reorder: Some(true), ..Change::default() }),
        (30, Change { queue: Some(drop_tail(Some(5), None)), ..Change::default() }),
        (2_500, Change { rate_bps: Some(1_000_000_000), reorder: Some(false), ..Change::default() }),
        (2_520, Change { loss: Some(Loss::Pattern { pattern: "00011".into() }), ..Change::default() }),
    ];
    compare("changes", &simulate(&direction(100_000_000), &changes));
}
