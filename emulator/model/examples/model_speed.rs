//! How long the link model takes per packet, without any input or output: impair, enqueue, pop.
//!
//! cargo run --release -p ewan-model --example model_speed

use std::hint::black_box;
use std::time::Instant;

use ewan_model::config::{CodelConfig, Delay, Direction, Discipline, FlowCounting, Loss, PieConfig, Queue, RedConfig};
use ewan_model::{Change, DirectionModel, Meta};

const PACKETS: u64 = 5_000_000;

fn plain() -> Direction {
    Direction {
        store_packets: 100_000,
        store_bytes: 150_000_000,
        ..Direction::plain(10_000_000_000, Queue::drop_tail(Some(1_000), None), 1_000_000)
    }
}

/// Nanoseconds per packet with one packet of 1500 bytes every `gap` ns, and the packets that came out.
fn measure(config: &Direction, gap: u64, mixed: bool) -> (f64, u64) {
    let mut model = DirectionModel::<u32>::new(config);
    let began = Instant::now();
    for n in 0..PACKETS {
        let now = n * gap;
        let mut meta = Meta { ip_bytes: if mixed && n % 2 == 0 { 64 } else { 1500 }, ..Meta::default() };
        if !model.impair(now, &mut meta).lost {
            let _ = black_box(model.enqueue(n as u32, meta, now));
        }
        while let Some(release) = model.pop(now) {
            black_box(release);
        }
        while let Some(packet) = model.dropped() {
            black_box(packet);
        }
    }
    (began.elapsed().as_nanos() as f64 / PACKETS as f64, model.counters().out.packets)
}

/// Nanoseconds per `pop` that finds nothing, with packets in the queue and in the delay line.
fn look() -> f64 {
    let mut model = DirectionModel::<u32>::new(&plain());
    for n in 0..100 {
        let _ = model.enqueue(n, Meta { ip_bytes: 1500, ..Meta::default() }, 0);
    }
    let began = Instant::now();
    for _ in 0..PACKETS {
        black_box(model.pop(black_box(20_000)));
    }
    began.elapsed().as_nanos() as f64 / PACKETS as f64
}

/// Nanoseconds per packet with its description from its frame, of four flows by turns of so many packets.
fn describe(flows: Option<FlowCounting>, train: u64) -> f64 {
    let mut model = DirectionModel::<u32>::new(&plain());
    model.reconfigure(&Change { flows, ..Change::default() }, 0);
    let mut frame = vec![2; 12];
    frame.extend([
        8, 0, 0x45, 0, 5, 220, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 3, 232, 7, 208, 5, 200, 0, 0,
    ]);
    frame.resize(1514, 0);
    let began = Instant::now();
    for n in 0..PACKETS {
        let now = n * 2_000;
        frame[35] = (n / train % 4) as u8;
        let mut meta = model.describe(black_box(&frame), 1500);
        if !model.impair(now, &mut meta).lost {
            let _ = black_box(model.enqueue(n as u32, meta, now));
        }
        while let Some(release) = model.pop(now) {
            black_box(release);
        }
    }
    began.elapsed().as_nanos() as f64 / PACKETS as f64
}

fn main() {
    let queue = |discipline| Queue { limit_packets: Some(1_000), limit_bytes: Some(1_500_000), discipline };
    let (delay_ns, jitter_ns) = (1_000_000, 100_000);
    let normal = Delay::Normal { delay_ns, jitter_ns };
    let gilbert = Loss::GilbertElliott {
        to_bad_ppb: 1_000_000,
        to_good_ppb: 300_000_000,
        loss_good_ppb: 0,
        loss_bad_ppb: 1_000_000_000,
    };
    let red = Discipline::Red(RedConfig {
        min_bytes: 100_000,
        max_bytes: 300_000,
        max_p_ppb: 100_000_000,
        weight_log2: 9,
        ecn: false,
    });
    let codel = Discipline::Codel(CodelConfig { target_ns: 50_000, interval_ns: 1_000_000, ecn: false });
    let pie = Discipline::Pie(PieConfig {
        target_ns: 50_000,
        update_ns: 1_000_000,
        alpha_mhz: 125,
        beta_mhz: 1_250,
        ecn: false,
    });
    // 1230.4 ns is what a packet takes: 2000 leaves the link idle at times, 1220 fills the queue.
    let correlated = Delay::GaussMarkov { delay_ns, jitter_ns, correlation_ppb: 900_000_000 };
    let displaced =
        Direction { displace_ppb: 10_000_000, displace_packets: 3, displace_within_ns: 1_000_000, ..plain() };
    let cases: [(&str, Direction, u64, bool); 12] = [
        ("constant delay", plain(), 2_000, false),
        ("constant delay, two lengths", plain(), 2_000, true),
        ("constant delay, queue full", plain(), 1_220, false),
        ("Bernoulli 1 %", Direction { loss: Loss::Bernoulli { loss_ppb: 10_000_000 }, ..plain() }, 2_000, false),
        ("Gilbert-Elliott", Direction { loss: gilbert, ..plain() }, 2_000, false),
        ("normal", Direction { delay: normal.clone(), ..plain() }, 2_000, false),
        ("normal, reordered", Direction { delay: normal, reorder: true, ..plain() }, 2_000, false),
        ("correlated", Direction { delay: correlated, ..plain() }, 2_000, false),
        ("displaced 1 %", displaced, 2_000, false),
        ("RED, overloaded", Direction { queue: queue(red), ..plain() }, 1_100, false),
        ("CoDel, overloaded", Direction { queue: queue(codel), ..plain() }, 1_100, false),
        ("PIE, overloaded", Direction { queue: queue(pie), ..plain() }, 1_100, false),
    ];
    println!("{:<30} {:>9.1}", "a look when nothing is due", look());
    for train in [1, 10] {
        let counting = FlowCounting { most: 64, ports: vec![4433] };
        let (off, on) = (describe(None, train), describe(Some(counting), train));
        println!("described, trains of {train:<10} {off:>9.1} {on:>9.1} with flows counted");
    }
    println!("{:<30} {:>9} {:>9}", "configuration", "ns/packet", "out");
    for (name, config, gap, mixed) in cases {
        let (nanos, out) = measure(&config, gap, mixed);
        println!("{name:<30} {nanos:>9.1} {out:>9}");
    }
}
