//! Stage 2, the queue in front of the server: what waits, and the discipline that decides who may.
//!
//! A discipline is asked when a packet arrives (RED, PIE) and when it would go into service (CoDel), always
//! with the virtual time at which that happens on the link, never with the time at which someone looked.

use super::codel::Codel;
use super::pie::Pie;
use super::red::Red;
use super::Nanos;
use crate::config::{self, Queue};

/// What a discipline says about one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// Let it pass with Congestion Experienced set.
    Mark,
    Drop,
}

#[derive(Clone, Copy, Debug)]
pub struct Waiting<P> {
    pub packet: P,
    /// As framing counts them.
    pub bytes: u32,
    pub ecn_capable: bool,
    pub mark_ce: bool,
    pub arrival: Nanos,
}

/// Most that may wait; the packet in service does not count.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    packets: u64,
    bytes: u64,
}

impl Limit {
    pub fn new(config: &Queue) -> Self {
        Limit { packets: config.limit_packets.unwrap_or(u64::MAX), bytes: config.limit_bytes.unwrap_or(u64::MAX) }
    }

    /// May one more packet of `bytes` wait, when this much waits already?
    #[inline]
    pub fn admits(&self, packets: u64, queued_bytes: u64, bytes: u32) -> bool {
        packets < self.packets && queued_bytes + u64::from(bytes) <= self.bytes
    }
}

/// What a discipline sees of an arriving packet and of the queue that it finds.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub now: Nanos,
    /// Waiting, without the packet in service.
    pub queued_bytes: u64,
    /// Neither waiting nor in service is anyone, for so long.
    pub idle: Option<Nanos>,
    /// The packet's own time in service.
    pub serialisation: Nanos,
    pub ecn_capable: bool,
}

#[derive(Clone, Debug)]
pub enum Discipline {
    DropTail,
    Red(Red),
    Codel(Codel),
    Pie(Pie),
}

impl Discipline {
    pub fn new(config: &config::Discipline) -> Self {
        match *config {
            config::Discipline::DropTail {} => Discipline::DropTail,
            config::Discipline::Red { min_bytes, max_bytes, max_p_ppb, weight_log2, ecn } => {
                Discipline::Red(Red::new(min_bytes, max_bytes, max_p_ppb, weight_log2, ecn))
            }
            config::Discipline::Codel { target_ns, interval_ns, ecn } => {
                Discipline::Codel(Codel::new(target_ns, interval_ns, ecn))
            }
            config::Discipline::Pie { target_ns, update_ns, alpha_mhz, beta_mhz, ecn } => {
                Discipline::Pie(Pie::new(target_ns, update_ns, alpha_mhz, beta_mhz, ecn))
            }
        }
    }
}
