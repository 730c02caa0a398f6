//! What may be changed while a link runs: a subset of a direction's configuration, absent where it stays.

use serde::{Deserialize, Serialize};

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
    pub queue: Option<Queue>,
}

impl Change {
    /// What a direction is after it.
    pub fn applied(&self, direction: &Direction) -> Direction {
        let Direction { rate_bps, delay, reorder, loss, corrupt_ppb, duplicate_ppb, queue, .. } = direction.clone();
        Direction {
            rate_bps: self.rate_bps.unwrap_or(rate_bps),
            delay: self.delay.clone().unwrap_or(delay),
            reorder: self.reorder.unwrap_or(reorder),
            loss: self.loss.clone().unwrap_or(loss),
            corrupt_ppb: self.corrupt_ppb.unwrap_or(corrupt_ppb),
            duplicate_ppb: self.duplicate_ppb.unwrap_or(duplicate_ppb),
            queue: self.queue.clone().unwrap_or(queue),
            ..direction.clone()
        }
    }

    /// The change that gives `direction` back what this one took from it.
    pub fn undone(&self, direction: &Direction) -> Change {
        Change {
            rate_bps: self.rate_bps.map(|_| direction.rate_bps),
            delay: self.delay.as_ref().map(|_| direction.delay.clone()),
            reorder: self.reorder.map(|_| direction.reorder),
            loss: self.loss.as_ref().map(|_| direction.loss.clone()),
            corrupt_ppb: self.corrupt_ppb.map(|_| direction.corrupt_ppb),
            duplicate_ppb: self.duplicate_ppb.map(|_| direction.duplicate_ppb),
            queue: self.queue.as_ref().map(|_| direction.queue.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Discipline, Framing};

    #[test]
    fn a_change_and_its_undoing_leave_a_direction_as_it_was() {
        let before = Direction {
            framing: Framing { overhead_bytes: 38, minimum_bytes: 84 },
            rate_bps: 1_000_000,
            loss: Loss::None {},
            corrupt_ppb: 0,
            duplicate_ppb: 5,
            queue: Queue { limit_packets: Some(10), limit_bytes: None, discipline: Discipline::DropTail {} },
            delay: Delay::Constant { delay_ns: 7 },
            reorder: false,
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
    }
}
