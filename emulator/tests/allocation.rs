//! In steady state the model does not allocate: an allocator that counts sees nothing.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use common::{direction, drop_tail};
use ewan_emulator::config::{Delay, Direction, Discipline, Loss, Queue};
use ewan_emulator::model::{DirectionModel, Meta, Nanos};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: passes everything on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        System.dealloc(memory, layout)
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test alone in its process: others would be counted too.
#[test]
fn nothing_is_allocated_once_the_link_runs() {
    let codel = Discipline::Codel { target_ns: 50_000, interval_ns: 1_000_000, ecn: false };
    let normal = Delay::Normal { delay_ns: 1_000_000, jitter_ns: 200_000 };
    let base = direction(1_000_000_000);
    for config in [
        base.clone(),
        Direction { loss: Loss::Bernoulli { loss_ppb: 10_000_000 }, ..base.clone() },
        Direction { delay: normal, reorder: true, ..base.clone() },
        Direction { queue: Queue { discipline: codel, ..drop_tail(Some(100), None) }, ..base },
    ] {
        let mut model = DirectionModel::<u32>::new(&config);
        let mut run = |from: u32, to: u32| {
            for n in from..to {
                let now = Nanos::from(n) * 12_000; // 2.5 % more than the link carries
                if !model.impair(now).lost {
                    let _ = model.enqueue(n, Meta { ip_bytes: 1500, ecn_capable: false }, now);
                }
                while model.pop(now).is_some() {}
                while model.dropped().is_some() {}
            }
        };
        run(0, 10_000);
        let before = ALLOCATIONS.load(Relaxed);
        run(10_000, 200_000);
        assert_eq!(ALLOCATIONS.load(Relaxed), before);
    }
}
