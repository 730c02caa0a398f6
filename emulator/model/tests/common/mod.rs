//! Configurations for tests, and exact times to compare with.
#![allow(dead_code)] // each test uses its part

use ewan_model::config::{Direction, Queue};

pub const PLAIN: u64 = 1_000_000_000;

/// `rate` bit/s on the wire, 1 ms, room for 100 packets, nothing else.
pub fn direction(rate_bps: u64) -> Direction {
    Direction {
        store_packets: 1_000,
        store_bytes: 1_000_000,
        ..Direction::plain(rate_bps, drop_tail(Some(100), None), 1_000_000)
    }
}

pub fn drop_tail(limit_packets: Option<u64>, limit_bytes: Option<u64>) -> Queue {
    Queue::drop_tail(limit_packets, limit_bytes)
}

/// Nanoseconds that a packet takes at the direction's rate.
pub fn serialisation(config: &Direction, ip_bytes: u32) -> f64 {
    let bytes = (ip_bytes + config.framing.overhead_bytes).max(config.framing.minimum_bytes);
    f64::from(bytes) * 8e9 / config.rate_bps as f64
}
