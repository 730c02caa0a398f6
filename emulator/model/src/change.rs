//! What may be changed while a link runs: a subset of a direction's configuration, absent where it stays.

use serde::{Deserialize, Serialize};

use super::delay::Displace;
use super::distribution::Distribution;
use super::loss;
use super::queue::{self, Acks};
use crate::config::{Aggregate, Delay, Direction, Harq, Loss, Ppb, Queue};

/// Defines `Change` by the keys of a direction that it may name, with what is done key by key.
macro_rules! changes {
    ($($key:ident: $kind:ty,)*) => {
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Change {
            $(
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $key: Option<$kind>,
            )*
            /// The trace begins anew.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub restart_trace: Option<bool>,
        }

        impl Change {
            /// What a direction is after it.
            pub fn applied(&self, direction: &Direction) -> Direction {
                let mut after = direction.clone();
                $(
                    if let Some(value) = &self.$key {
                        after.$key.clone_from(value);
                    }
                )*
                after
            }

            /// The change that gives `direction` back what this one took from it.
            pub fn undone(&self, direction: &Direction) -> Change {
                let before = direction.clone();
                Change { $($key: self.$key.as_ref().map(|_| before.$key),)* restart_trace: None }
            }

            /// This one, and `later` after it, as one change.
            pub fn then(self, later: &Change) -> Change {
                let later = later.clone();
                Change {
                    $($key: later.$key.or(self.$key),)*
                    restart_trace: later.restart_trace.or(self.restart_trace),
                }
            }
        }
    };
}

changes! {
    rate_bps: u64,
    delay: Delay,
    reorder: bool,
    displace_ppb: Ppb,
    displace_packets: u32,
    displace_within_ns: u64,
    loss: Loss,
    corrupt_ppb: Ppb,
    duplicate_ppb: Ppb,
    ecn_bleach: bool,
    blackhole_bytes: u32,
    police_bps: u64,
    police_bytes: u64,
    burst_bytes: u64,
    peak_bps: u64,
    aggregate: Aggregate,
    half_duplex: bool,
    slot_ns: u64,
    harq: Harq,
    ack_filter: bool,
    queue: Queue,
}

/// A change as the model takes it in, with all memory that it needs. It is made, and what it took the place of is freed,
/// by whoever sends it: where packets fly nothing is allocated.
#[derive(Debug)]
pub struct ModelChange {
    pub(super) rate_bps: Option<u64>,
    pub(super) delay: Option<Distribution>,
    pub(super) reorder: Option<bool>,
    pub(super) displace: Option<Displace>,
    pub(super) loss: Option<loss::Model>,
    pub(super) corrupt: Option<Ppb>,
    pub(super) duplicate: Option<Ppb>,
    pub(super) bleach: Option<bool>,
    pub(super) blackhole: Option<u32>,
    pub(super) police_bps: Option<u64>,
    pub(super) police_bytes: Option<u64>,
    pub(super) burst_bytes: Option<u64>,
    pub(super) peak_bps: Option<u64>,
    pub(super) aggregate: Option<Aggregate>,
    pub(super) half_duplex: Option<bool>,
    pub(super) slot_ns: Option<u64>,
    pub(super) harq: Option<Harq>,
    pub(super) acks: Option<Option<Acks>>,
    pub(super) queue: Option<queue::NewQueue>,
    pub(super) restart_trace: bool,
}

impl ModelChange {
    pub fn new(change: &Change) -> Self {
        let Change {
            rate_bps,
            delay,
            reorder,
            displace_ppb,
            displace_packets,
            displace_within_ns,
            loss,
            corrupt_ppb,
            duplicate_ppb,
            ecn_bleach,
            blackhole_bytes,
            police_bps,
            police_bytes,
            burst_bytes,
            peak_bps,
            aggregate,
            half_duplex,
            slot_ns,
            harq,
            ack_filter,
            queue,
            restart_trace,
        } = change;
        ModelChange {
            rate_bps: *rate_bps,
            delay: delay.as_ref().map(Distribution::new),
            reorder: *reorder,
            displace: displace_ppb.map(|share| Displace {
                share,
                packets: displace_packets.unwrap_or(0),
                within: displace_within_ns.unwrap_or(0),
            }),
            loss: loss.as_ref().map(loss::Model::new),
            corrupt: *corrupt_ppb,
            duplicate: *duplicate_ppb,
            bleach: *ecn_bleach,
            blackhole: *blackhole_bytes,
            police_bps: *police_bps,
            police_bytes: *police_bytes,
            burst_bytes: *burst_bytes,
            peak_bps: *peak_bps,
            aggregate: *aggregate,
            half_duplex: *half_duplex,
            slot_ns: *slot_ns,
            harq: *harq,
            acks: ack_filter.map(|filter| filter.then(Acks::new)),
            queue: queue.as_ref().map(queue::NewQueue::new),
            restart_trace: *restart_trace == Some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_and_its_undoing_leave_a_direction_as_it_was() {
        let before = Direction {
            duplicate_ppb: 5,
            store_packets: 100,
            store_bytes: 10_000,
            ..Direction::plain(1_000_000, Queue::drop_tail(Some(10), None), 7)
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
