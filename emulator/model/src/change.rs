//! A change of a running link on its way into the model.

use super::distribution::Distribution;
use super::flow_table::FlowTable;
use super::loss;
use super::queue::{self, Acks};
use crate::config::{Change, HeldChange};

/// A change as the model takes it in, with all memory that it needs. It is made, and what it took the place of is freed,
/// by whoever sends it: where packets fly nothing is allocated.
#[derive(Debug)]
pub struct ModelChange {
    pub(super) held: HeldChange,
    pub(super) rate_bps: Option<u64>,
    pub(super) delay: Option<Distribution>,
    pub(super) loss: Option<loss::Model>,
    pub(super) police_bps: Option<u64>,
    pub(super) police_bytes: Option<u64>,
    pub(super) burst_bytes: Option<u64>,
    pub(super) peak_bps: Option<u64>,
    pub(super) acks: Option<Option<Acks>>,
    pub(super) queue: Option<queue::NewQueue>,
    pub(super) restart_trace: bool,
    pub(super) flows: Option<Option<FlowTable>>,
}

impl ModelChange {
    pub fn new(change: &Change) -> Self {
        ModelChange {
            held: HeldChange::of(change),
            rate_bps: change.rate_bps,
            delay: change.delay.as_ref().map(Distribution::new),
            loss: change.loss.as_ref().map(loss::Model::new),
            police_bps: change.police_bps,
            police_bytes: change.police_bytes,
            burst_bytes: change.burst_bytes,
            peak_bps: change.peak_bps,
            acks: change.ack_filter.map(|filter| filter.then(Acks::new)),
            queue: change.queue.as_ref().map(queue::NewQueue::new),
            restart_trace: change.restart_trace == Some(true),
            flows: change.flows.as_ref().map(FlowTable::new),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Delay, Direction, Queue};

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
