//! In steady state the model does not allocate: an allocator that counts sees nothing.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{direction, drop_tail};
use ewan_model::config::{Aggregate, CodelConfig, Delay, Direction, Discipline, Loss, Opportunity, Queue, Row, Trace};
use ewan_model::{Change, DirectionModel, Meta, Nanos};

struct Counting;

thread_local! {
    /// Of this thread: the test's harness allocates on its own now and then.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        System.dealloc(memory, layout)
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn nothing_is_allocated_once_the_link_runs() {
    let codel = Discipline::Codel(CodelConfig { target_ns: 50_000, interval_ns: 1_000_000, ecn: false });
    let normal = Delay::Normal { delay_ns: 1_000_000, jitter_ns: 200_000 };
    let correlated = Delay::GaussMarkov { delay_ns: 1_000_000, jitter_ns: 200_000, correlation_ppb: 900_000_000 };
    let base = direction(1_000_000_000);
    for config in [
        base.clone(),
        Direction { loss: Loss::Bernoulli { loss_ppb: 10_000_000 }, ..base.clone() },
        Direction { delay: normal, reorder: true, ..base.clone() },
        Direction { delay: correlated, reorder: true, ..base.clone() },
        Direction { displace_ppb: 50_000_000, displace_packets: 9, displace_within_ns: 100_000, ..base.clone() },
        Direction { trace: rows(), ..base.clone() },
        Direction { trace: opportunities(), ..base.clone() },
        Direction { aggregate: Aggregate { packets: 64, time_ns: 500_000, gap_ns: 50_000 }, ..base.clone() },
        Direction { queue: Queue { discipline: codel, ..drop_tail(Some(100), None) }, ..base },
    ] {
        let mut model = DirectionModel::<u32>::new(&config);
        let mut run = |from: u32, to: u32| {
            for n in from..to {
                let now = Nanos::from(n) * 12_000; // 2.5 % more than the link carries
                let mut meta = Meta { ip_bytes: 1500, ..Meta::default() };
                if !model.impair(now, &mut meta).lost {
                    let _ = model.enqueue(n, meta, now);
                }
                while model.pop(now).is_some() {}
                while model.dropped().is_some() {}
            }
        };
        run(0, 10_000);
        let before = ALLOCATIONS.get();
        run(10_000, 200_000);
        assert_eq!(ALLOCATIONS.get(), before);
    }
    long_and_fast();
}

fn rows() -> Trace {
    let row = |at_ns, rate_bps, delay_ns| Row {
        at_ns,
        rate_bps: Some(rate_bps),
        delay_ns: Some(delay_ns),
        loss_ppb: Some(at_ns as u32),
        limit_bytes: Some(50_000),
    };
    let rows = vec![row(0, 1_000_000_000, 1_000_000), row(300_000, 0, 50_000), row(400_000, 2_000_000_000, 2_000_000)];
    Trace::Rows { period_ns: 1_000_000, rows }
}

fn opportunities() -> Trace {
    Trace::Opportunities { period_ns: 1_000_000, opportunities: vec![Opportunity { at_ns: 7, count: 80 }] }
}

/// 10 Gbit/s × 100 ms: 81,275 full packets in the delay line, more small ones, and a queue as long; changes on the way.
fn long_and_fast() {
    const PACKETS: u32 = 300_000;
    let delay = Delay::Constant { delay_ns: 100_000_000 };
    let config = Direction { delay, store_packets: 200_000, ..direction(10_000_000_000) };
    let mut model = DirectionModel::<u32>::new(&config);
    let longer = Change {
        queue: Some(drop_tail(Some(90_000), None)),
        delay: Some(Delay::Uniform { delay_ns: 90_000_000, jitter_ns: 9_000_000 }),
        reorder: Some(true),
        ..Change::default()
    };
    let before = ALLOCATIONS.get();
    let mut most = 0;
    for n in 0..PACKETS {
        let now = Nanos::from(n) * 615; // twice what the link carries
        if n == PACKETS / 2 {
            model.reconfigure(&longer, now);
        }
        let _ = model.enqueue(n, Meta { ip_bytes: 1500, ..Meta::default() }, now);
        while model.pop(now).is_some() {}
        let counters = model.counters();
        most = most.max(counters.queued.packets + counters.delayed.packets);
    }
    assert!(most > 65_536, "{most}");
    assert_eq!(ALLOCATIONS.get(), before);
}

/// What grows takes its memory before a packet comes in, where the caller can still refuse the packet, and nowhere else.
#[test]
fn a_model_that_grows_takes_memory_only_where_it_may_be_refused() {
    let codel = Discipline::Codel(CodelConfig { target_ns: 50_000, interval_ns: 100_000, ecn: false });
    let delay = Delay::Uniform { delay_ns: 20_000_000, jitter_ns: 9_000_000 };
    let aggregate = Aggregate { packets: 64, time_ns: 500_000, gap_ns: 50_000 };
    let base = Direction { delay, reorder: true, ..direction(1_000_000_000) };
    for config in [
        Direction { queue: Queue { discipline: codel, ..drop_tail(Some(5_000), None) }, ..base.clone() },
        Direction { aggregate, queue: drop_tail(Some(5_000), None), ..base.clone() },
        Direction { displace_ppb: 50_000_000, displace_packets: 9, displace_within_ns: 100_000, ..base },
    ] {
        let mut model = DirectionModel::<u32>::growing(&config);
        let mut taken = 0;
        for n in 0..20_000 {
            let now = Nanos::from(n) * 6_000;
            let before = ALLOCATIONS.get();
            assert!(model.reserve_one());
            let reserved = ALLOCATIONS.get();
            let _ = model.enqueue(n, Meta { ip_bytes: 1500, ..Meta::default() }, now);
            while n % 500 == 0 && model.pop(now).is_some() {}
            while n % 500 == 0 && model.dropped().is_some() {}
            assert_eq!(ALLOCATIONS.get(), reserved, "packet {n} of {config:?}");
            taken += reserved - before;
        }
        assert!(taken > 0);
    }
}

#[test]
fn a_link_holds_no_more_packets_than_in_the_other_clock() {
    let delay = Delay::Constant { delay_ns: 10_000_000_000 };
    let config = Direction { delay, store_packets: 70_000, ..direction(1_000_000_000_000) };
    for (config, most) in [(config.clone(), 70_000), (Direction { store_packets: 9, ..config }, 65_536)] {
        assert_eq!(config.most_packets(), most);
        let mut model = DirectionModel::<u64>::growing(&config);
        let held = (0..).take_while(|n| model.reserve_one() && model.enqueue(*n, Meta::default(), *n).is_ok()).count();
        assert_eq!(held as u64, most);
    }
}
