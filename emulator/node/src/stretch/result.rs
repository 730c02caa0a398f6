//! What `measure` prints: JSON, integers, the unit in the key.

use ewan_traffic::probe::stats::Percentiles;
use serde::Serialize;

use super::clocks::ClockComparison;

/// What `measure` prints. There: from this machine to the other; back: from it.
#[derive(Debug, Serialize)]
pub struct TunnelResult {
    pub format: &'static str,
    /// Of timed packets: from their being handed to this kernel until the other one had them, and the same of their
    /// answers.
    pub round_trip_ns: Spread,
    /// One-way delays by both ends' clocks as they stood when the offset was `offset_ns`, which is in them.
    pub there_ns: Spread,
    pub back_ns: Spread,
    /// The other machine's CLOCK_REALTIME beside ours.
    #[serde(flatten)]
    pub clocks: ClockComparison,
    /// Timed packets that went, and those whose answers came.
    pub sent: u64,
    pub answered: u64,
    pub lost_there: u64,
    pub lost_back: u64,
    pub reordered_there: u64,
    pub reordered_back: u64,
    pub duplicated_there: u64,
    pub duplicated_back: u64,
    /// Bits of UDP payload a second: of those packets of a burst, of the largest that pass, that came in order after the
    /// first, by the time from the first to the last. None where no burst was asked for, or too little of it came.
    pub rate_there_bps: Option<u64>,
    pub rate_back_bps: Option<u64>,
    pub burst_there: Burst,
    pub burst_back: Burst,
    /// The largest IP packet inside the tunnel that passes whole, up to the MTU that was asked for; both ways, and each.
    pub mtu: usize,
    pub mtu_there: usize,
    pub mtu_back: usize,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    min: i64,
    p50: i64,
    p99: i64,
    max: i64,
}

impl From<Percentiles> for Spread {
    fn from(found: Percentiles) -> Self {
        Self { min: found.min_ns, p50: found.p50_ns, p99: found.p99_ns, max: found.max_ns }
    }
}

/// Packets of a burst: handed to the tunnel; different ones that came; those of them that came in order.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Burst {
    pub packet_bytes: usize,
    pub sent: u64,
    pub arrived: u64,
    pub in_order: u64,
}
