//! Stage 2, the queue in front of the server: what waits, and the discipline that decides who may.
//!
//! A discipline is asked when a packet arrives (RED, PIE) and when it would go into service (CoDel), always
//! with the virtual time at which that happens on the link, never with the time at which someone looked.

use alloc::format;

use super::check::{probability, require, time, Checked, LONGEST_NS, MOST_BYTES, MOST_PACKETS};
use super::codel::Codel;
use super::pie::{Pie, LEAST_UPDATE_NS};
use super::red::{Red, MOST_WEIGHT_LOG2};
use super::Nanos;
use crate::config::{self, Queue};

/// Of CoDel's interval, which a description leaves to the compiler: ten packets of 10 s each.
const LONGEST_INTERVAL_NS: Nanos = 10 * LONGEST_NS;
/// PIE's gains: 1000 Hz.
const MOST_GAIN_MHZ: u64 = 1_000_000;

impl Queue {
    /// Is there a limit, within what a store holds, and a discipline that works?
    pub(super) fn check(&self) -> Checked {
        let Queue { limit_packets, limit_bytes, discipline } = self;
        require(limit_packets.is_some() || limit_bytes.is_some(), || {
            "queue: give limit_packets or limit_bytes, or both".into()
        })?;
        for (key, limit, most) in
            [("limit_packets", limit_packets, MOST_PACKETS), ("limit_bytes", limit_bytes, MOST_BYTES)]
        {
            let limit = limit.unwrap_or(1);
            require((1..=most).contains(&limit), || format!("{key} {limit}: write 1 to {most}"))?;
        }
        discipline.check()
    }
}

impl config::Discipline {
    fn check(&self) -> Checked {
        match *self {
            config::Discipline::DropTail {} => Ok(()),
            config::Discipline::Red { min_bytes, max_bytes, max_p_ppb, weight_log2, ecn: _ } => {
                probability("max_p_ppb", max_p_ppb)?;
                require(min_bytes < max_bytes, || {
                    format!("min_bytes {min_bytes}: must be below max_bytes ({max_bytes})")
                })?;
                require(max_bytes <= MOST_BYTES, || {
                    format!("max_bytes {max_bytes}: write at most {MOST_BYTES} (8 GiB)")
                })?;
                require(weight_log2 <= MOST_WEIGHT_LOG2, || {
                    format!("weight_log2 {weight_log2}: write 0 to {MOST_WEIGHT_LOG2} (usual: 9)")
                })
            }
            config::Discipline::Codel { target_ns, interval_ns, ecn: _ } => {
                require(0 < target_ns && target_ns <= interval_ns, || {
                    format!("target_ns {target_ns}: must be above 0 and not above interval_ns ({interval_ns})")
                })?;
                require(interval_ns <= LONGEST_INTERVAL_NS, || {
                    format!("interval_ns {interval_ns}: write at most {LONGEST_INTERVAL_NS} (100 s)")
                })
            }
            config::Discipline::Pie { target_ns, update_ns, alpha_mhz, beta_mhz, ecn: _ } => {
                time("target_ns", target_ns, 1, 2 * LONGEST_NS)?;
                time("update_ns", update_ns, LEAST_UPDATE_NS, LONGEST_NS)?;
                for (key, gain) in [("alpha_mhz", alpha_mhz), ("beta_mhz", beta_mhz)] {
                    require(gain <= MOST_GAIN_MHZ, || {
                        format!("{key} {gain}: write at most {MOST_GAIN_MHZ} (1000 Hz)")
                    })?;
                }
                Ok(())
            }
        }
    }
}

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
