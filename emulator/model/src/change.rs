//! What may be changed while a link runs: a subset of a direction's configuration, absent where it stays.

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use super::loss;
use super::queue;
use crate::config::{Delay, Direction, Loss, Ppb, Queue};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Change {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupt_ppb: Option<Ppb>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_ppb: Option<Ppb>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn_bleach: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blackhole_bytes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub police_bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub police_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The trace begins anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_trace: Option<bool>,
}

impl Change {
    /// What a direction is after it.
    pub fn applied(&self, direction: &Direction) -> Direction {
        let Change {
            rate_bps,
            delay,
            reorder,
            loss,
            corrupt_ppb,
            duplicate_ppb,
            ecn_bleach,
            blackhole_bytes,
            police_bps,
            police_bytes,
            burst_bytes,
            peak_bps,
            queue,
            restart_trace: _,
        } = self.clone();
        Direction {
            framing: direction.framing,
            rate_bps: rate_bps.unwrap_or(direction.rate_bps),
            loss: loss.unwrap_or_else(|| direction.loss.clone()),
            corrupt_ppb: corrupt_ppb.unwrap_or(direction.corrupt_ppb),
            duplicate_ppb: duplicate_ppb.unwrap_or(direction.duplicate_ppb),
            ecn_bleach: ecn_bleach.unwrap_or(direction.ecn_bleach),
            blackhole_bytes: blackhole_bytes.unwrap_or(direction.blackhole_bytes),
            police_bps: police_bps.unwrap_or(direction.police_bps),
            police_bytes: police_bytes.unwrap_or(direction.police_bytes),
            burst_bytes: burst_bytes.unwrap_or(direction.burst_bytes),
            peak_bps: peak_bps.unwrap_or(direction.peak_bps),
            queue: queue.unwrap_or_else(|| direction.queue.clone()),
            delay: delay.unwrap_or_else(|| direction.delay.clone()),
            reorder: reorder.unwrap_or(direction.reorder),
            trace: direction.trace.clone(),
            seed: direction.seed,
            store_packets: direction.store_packets,
            store_bytes: direction.store_bytes,
        }
    }

    /// The change that gives `direction` back what this one took from it.
    pub fn undone(&self, direction: &Direction) -> Change {
        let Change {
            rate_bps,
            delay,
            reorder,
            loss,
            corrupt_ppb,
            duplicate_ppb,
            ecn_bleach,
            blackhole_bytes,
            police_bps,
            police_bytes,
            burst_bytes,
            peak_bps,
            queue,
            restart_trace: _,
        } = self;
        Change {
            rate_bps: rate_bps.map(|_| direction.rate_bps),
            delay: delay.as_ref().map(|_| direction.delay.clone()),
            reorder: reorder.map(|_| direction.reorder),
            loss: loss.as_ref().map(|_| direction.loss.clone()),
            corrupt_ppb: corrupt_ppb.map(|_| direction.corrupt_ppb),
            duplicate_ppb: duplicate_ppb.map(|_| direction.duplicate_ppb),
            ecn_bleach: ecn_bleach.map(|_| direction.ecn_bleach),
            blackhole_bytes: blackhole_bytes.map(|_| direction.blackhole_bytes),
            police_bps: police_bps.map(|_| direction.police_bps),
            police_bytes: police_bytes.map(|_| direction.police_bytes),
            burst_bytes: burst_bytes.map(|_| direction.burst_bytes),
            peak_bps: peak_bps.map(|_| direction.peak_bps),
            queue: queue.as_ref().map(|_| direction.queue.clone()),
            restart_trace: None,
        }
    }

    /// This one, and `later` after it, as one change.
    pub fn then(self, later: &Change) -> Change {
        let Change {
            rate_bps,
            delay,
            reorder,
            loss,
            corrupt_ppb,
            duplicate_ppb,
            ecn_bleach,
            blackhole_bytes,
            police_bps,
            police_bytes,
            burst_bytes,
            peak_bps,
            queue,
            restart_trace,
        } = later.clone();
        Change {
            rate_bps: rate_bps.or(self.rate_bps),
            delay: delay.or(self.delay),
            reorder: reorder.or(self.reorder),
            loss: loss.or(self.loss),
            corrupt_ppb: corrupt_ppb.or(self.corrupt_ppb),
            duplicate_ppb: duplicate_ppb.or(self.duplicate_ppb),
            ecn_bleach: ecn_bleach.or(self.ecn_bleach),
            blackhole_bytes: blackhole_bytes.or(self.blackhole_bytes),
            police_bps: police_bps.or(self.police_bps),
            police_bytes: police_bytes.or(self.police_bytes),
            burst_bytes: burst_bytes.or(self.burst_bytes),
            peak_bps: peak_bps.or(self.peak_bps),
            queue: queue.or(self.queue),
            restart_trace: restart_trace.or(self.restart_trace),
        }
    }
}

/// A change as the model takes it in, with all memory that it needs. It is made, and what it took the place of is freed,
/// by whoever sends it: where packets fly nothing is allocated.
#[derive(Debug)]
pub struct Prepared {
    pub(super) rate_bps: Option<u64>,
    pub(super) delay: Option<Distribution>,
    pub(super) reorder: Option<bool>,
    pub(super) loss: Option<loss::Model>,
    pub(super) corrupt: Option<Ppb>,
    pub(super) duplicate: Option<Ppb>,
    pub(super) bleach: Option<bool>,
    pub(super) blackhole: Option<u32>,
    pub(super) police_bps: Option<u64>,
    pub(super) police_bytes: Option<u64>,
    pub(super) burst_bytes: Option<u64>,
    pub(super) peak_bps: Option<u64>,
    pub(super) queue: Option<queue::Prepared>,
    pub(super) restart_trace: bool,
}

impl Prepared {
    pub fn new(change: &Change) -> Self {
        let Change {
            rate_bps,
            delay,
            reorder,
            loss,
            corrupt_ppb,
            duplicate_ppb,
            ecn_bleach,
            blackhole_bytes,
            police_bps,
            police_bytes,
            burst_bytes,
            peak_bps,
            queue,
            restart_trace,
        } = change;
        Prepared {
            rate_bps: *rate_bps,
            delay: delay.as_ref().map(Distribution::new),
            reorder: *reorder,
            loss: loss.as_ref().map(loss::Model::new),
            corrupt: *corrupt_ppb,
            duplicate: *duplicate_ppb,
            bleach: *ecn_bleach,
            blackhole: *blackhole_bytes,
            police_bps: *police_bps,
            police_bytes: *police_bytes,
            burst_bytes: *burst_bytes,
            peak_bps: *peak_bps,
            queue: queue.as_ref().map(queue::Prepared::new),
            restart_trace: *restart_trace == Some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Discipline, Framing, Trace};

    #[test]
    fn a_change_and_its_undoing_leave_a_direction_as_it_was() {
        let before = Direction {
            framing: Framing { overhead_bytes: 38, minimum_bytes: 84 },
            rate_bps: 1_000_000,
            loss: Loss::None {},
            corrupt_ppb: 0,
            duplicate_ppb: 5,
            ecn_bleach: false,
            blackhole_bytes: 0,
            police_bps: 0,
            police_bytes: 0,
            burst_bytes: 0,
            peak_bps: 0,
            queue: Queue { limit_packets: Some(10), limit_bytes: None, discipline: Discipline::DropTail {} },
            delay: Delay::Constant { delay_ns: 7 },
            reorder: false,
            trace: Trace::None {},
            seed: 1,
            store_packets: 100,
            store_bytes: 10_000,
        };
        let text = r#"{"rate_bps": 9000, "delay": {"kind": "constant", "delay_ns": 8}, "duplicate_ppb": 0}"#;
        let change: Change = serde_json::from_str(text).expect("a change");
        let after = change.applied(&before);
        assert_eq!((after.rate_bps, after.duplicate_ppb, after.reorder), (9000, 0, false));
        assert_eq!(after.delay, Delay::Constant { delay_ns: 8 });
        assert_eq!(after.queue, before.queue);
        assert_eq!(change.undone(&before).applied(&after), before);
        assert_eq!(change.undone(&before).loss, None, "only what it changed");
        let later = Change { rate_bps: Some(10_000), reorder: Some(true), ..Change::default() };
        assert_eq!(change.clone().then(&later).applied(&before), later.applied(&after), "one after the other, as one");
    }
}
