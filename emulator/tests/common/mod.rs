//! Configurations for tests, and exact times to compare with.
#![allow(dead_code)] // each test uses its part

use ewan_emulator::config::{Delay, Direction, Discipline, Framing, Loss, Queue, Trace};

pub const PLAIN: u64 = 1_000_000_000;

/// `rate` bit/s on the wire, 1 ms, room for 100 packets, nothing else.
pub fn direction(rate_bps: u64) -> Direction {
    Direction {
        framing: Framing { overhead_bytes: 38, minimum_bytes: 84 },
        rate_bps,
        loss: Loss::None {},
        corrupt_ppb: 0,
        duplicate_ppb: 0,
        ecn_bleach: false,
        blackhole_bytes: 0,
        police_bps: 0,
        police_bytes: 0,
        burst_bytes: 0,
        peak_bps: 0,
        queue: drop_tail(Some(100), None),
        delay: Delay::Constant { delay_ns: 1_000_000 },
        reorder: false,
        trace: Trace::None {},
        seed: 1,
        store_packets: 1_000,
        store_bytes: 1_000_000,
    }
}

pub fn drop_tail(limit_packets: Option<u64>, limit_bytes: Option<u64>) -> Queue {
    Queue { limit_packets, limit_bytes, discipline: Discipline::DropTail {} }
}

/// Nanoseconds that a packet takes at the direction's rate.
pub fn serialisation(config: &Direction, ip_bytes: u32) -> f64 {
    let bytes = (ip_bytes + config.framing.overhead_bytes).max(config.framing.minimum_bytes);
    f64::from(bytes) * 8e9 / config.rate_bps as f64
}
