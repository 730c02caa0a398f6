//! Is a configuration one that the model can run? One line per refusal: which key, what it is, what to write.
//!
//! The one check of plans and of changes at run time. Each stage checks itself, beside its model; the table of keys in
//! config.rs names what checks each key. Their bounds are those of descriptions (labs/spec, labs/compile):
//! `tests/golden/limits.json` holds values at and beyond each bound, and both sides' tests read it.

use alloc::format;
use alloc::string::String;

use super::{bucket, delay as delay_line, medium, Change, Nanos};
use crate::config::{Aggregate, Direction, Framing, Trace, ONE_PPB};

const SECOND_NS: Nanos = 1_000_000_000;
/// Of delays, jitter, PIE's times.
pub(super) const LONGEST_NS: Nanos = 10 * SECOND_NS;
/// 8 GiB: the largest store, and so the most that may wait.
pub(super) const MOST_BYTES: u64 = 8 << 30;
/// As many as fill the largest store at 64 bytes each.
pub(super) const MOST_PACKETS: u64 = MOST_BYTES / 64;
/// Entries of a table of delays, letters of a pattern of losses.
pub(super) const LONGEST_LIST: usize = 1 << 20;
/// Far above every framing there is; sums with a packet's length stay in 32 bits.
const MOST_FRAMING_BYTES: u32 = 1 << 16;

pub(super) type CheckResult = Result<(), String>;

/// Checks a direction as it is in a plan: each key (`config.rs` says by what), and those that depend on each other.
pub fn check(direction: &Direction) -> CheckResult {
    direction.check_keys()?;
    let Direction { queue, trace, burst_bytes, aggregate, .. } = direction;
    bucket::check(direction.police_bps, direction.police_bytes)?;
    queue.check_ack_filter(direction.ack_filter)?;
    delay_line::check(direction.displace_ppb, direction.displace_packets, direction.displace_within_ns)?;
    trace.check(queue)?;
    require(*burst_bytes == 0 || !trace.says_rate(), || "burst_bytes: the link's trace says the rate: write 0".into())?;
    let delivers = matches!(trace, Trace::Opportunities { .. });
    require(*aggregate == Aggregate::NONE || !delivers, || {
        "aggregate: the link's trace says when packets leave: write 0 packets".into()
    })?;
    medium::check(direction.half_duplex, *burst_bytes, delivers)
}

pub(super) fn store_packets(packets: u64) -> CheckResult {
    require(packets <= MOST_PACKETS, || format!("store_packets {packets}: write at most {MOST_PACKETS}"))
}

pub(super) fn store_bytes(bytes: u64) -> CheckResult {
    require(bytes <= MOST_BYTES, || format!("store_bytes {bytes}: write at most {MOST_BYTES} (8 GiB)"))
}

impl Framing {
    pub(super) fn check(&self) -> CheckResult {
        let Framing { overhead_bytes, minimum_bytes } = *self;
        let most = overhead_bytes.max(minimum_bytes);
        require(most <= MOST_FRAMING_BYTES, || {
            format!("framing {most}: overhead_bytes and minimum_bytes are at most {MOST_FRAMING_BYTES}")
        })
    }
}

impl Change {
    /// Checks what is named; the rest stays as it is. A change that names nothing is refused.
    pub fn check(&self) -> CheckResult {
        require(*self != Change::default(), || "nothing to change: name a key of a direction, like rate_bps".into())?;
        require(self.restart_trace != Some(false), || "restart_trace false: write true, or leave it out".into())?;
        self.check_keys()?;
        let Change { police_bps, police_bytes, displace_ppb, displace_packets, displace_within_ns, queue, .. } = self;
        require(police_bps.is_some() == police_bytes.is_some(), || {
            "police_bps: name it and police_bytes, or neither".into()
        })?;
        bucket::check(police_bps.unwrap_or(0), police_bytes.unwrap_or(0))?;
        match (displace_ppb, displace_packets, displace_within_ns) {
            (None, None, None) => {}
            (Some(share), Some(packets), Some(within)) => delay_line::check(*share, *packets, *within)?,
            _ => return Err("displace_ppb: name it, displace_packets and displace_within_ns, or none of them".into()),
        }
        queue.as_ref().map_or(Ok(()), |queue| queue.check_ack_filter(self.ack_filter == Some(true)))
    }

    /// The same for a change of this direction: what its trace says cannot be told, and a queue of several lists filters no
    /// ACKs.
    pub fn check_for(&self, direction: &Direction) -> CheckResult {
        self.check()?;
        let queue = self.queue.as_ref().unwrap_or(&direction.queue);
        queue.check_ack_filter(self.ack_filter.unwrap_or(direction.ack_filter))?;
        let half_duplex = self.half_duplex.unwrap_or(direction.half_duplex);
        medium::check(half_duplex, self.burst_bytes.unwrap_or(direction.burst_bytes), false)?;
        direction.trace.says().check(self)
    }
}

pub(super) fn require(holds: bool, otherwise: impl FnOnce() -> String) -> CheckResult {
    if holds {
        Ok(())
    } else {
        Err(otherwise())
    }
}

pub(super) fn probability(key: &str, value: u32) -> CheckResult {
    require(value <= ONE_PPB, || format!("{key} {value}: a probability is at most 1000000000 (100 %)"))
}

pub(super) fn time(key: &str, value: Nanos, least: Nanos, most: Nanos) -> CheckResult {
    require((least..=most).contains(&value), || format!("{key} {value}: write {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Queue;

    fn refusal(json: &str) -> String {
        serde_json::from_str::<Change>(json).unwrap().check().unwrap_err()
    }

    #[test]
    fn refuses_with_the_key_and_the_remedy() {
        assert!(refusal(r#"{"rate_bps": 7999}"#).starts_with("rate_bps 7999: write 8000"));
        assert!(refusal(r#"{"loss": {"kind": "bernoulli", "loss_ppb": 1000000001}}"#).starts_with("loss_ppb"));
        assert!(refusal(r#"{"loss": {"kind": "pattern", "pattern": "0x"}}"#).starts_with("pattern \"0x\""));
        assert!(refusal(r#"{"delay": {"kind": "table", "delays_ns": []}}"#).starts_with("delays_ns"));
        let queue = r#"{"queue": {"limit_packets": null, "limit_bytes": null, "discipline": {"kind": "drop_tail"}}}"#;
        assert_eq!(refusal(queue), "queue: give limit_packets or limit_bytes, or both");
    }

    /// Each case: the words of a description, and the same as a link is told it.
    #[test]
    fn refuses_what_a_description_is_refused_for() {
        #[derive(serde::Deserialize)]
        struct Case {
            change: Change,
            allowed: bool,
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/limits.json");
        let text = std::fs::read(path).expect("the golden file");
        let cases: Vec<Case> = serde_json::from_slice(&text).expect("cases");
        assert!(cases.len() > 40);
        for Case { change, allowed } in cases {
            assert_eq!(change.check().is_ok(), allowed, "{change:?}: {:?}", change.check());
        }
    }

    #[test]
    fn what_only_a_plan_says_is_checked_too() {
        let plain = Direction {
            store_packets: 100,
            store_bytes: 100_000,
            ..Direction::plain(1_000_000, Queue::drop_tail(None, Some(10_000)), 1_000_000)
        };
        assert_eq!(check(&plain), Ok(()));
        for (key, then) in [
            (
                "framing",
                Direction {
                    framing: crate::config::Framing { overhead_bytes: u32::MAX, minimum_bytes: 0 },
                    ..plain.clone()
                },
            ),
            ("store_packets", Direction { store_packets: u64::MAX, ..plain.clone() }),
            ("store_bytes", Direction { store_bytes: u64::MAX, ..plain.clone() }),
            ("rate_bps", Direction { rate_bps: 0, ..plain.clone() }),
            ("corrupt_ppb", Direction { corrupt_ppb: u32::MAX, ..plain.clone() }),
        ] {
            let refused = check(&then).expect_err(key);
            assert!(refused.starts_with(key) && !refused.contains('\n'), "{refused}");
        }
    }

    #[test]
    fn a_change_names_only_what_changes_and_nothing_unknown() {
        let change: Change = serde_json::from_str(r#"{"rate_bps": 500000000, "reorder": true}"#).unwrap();
        assert_eq!(change, Change { rate_bps: Some(500_000_000), reorder: Some(true), ..Change::default() });
        assert_eq!(change.check(), Ok(()));
        assert_eq!(serde_json::to_string(&change).unwrap(), r#"{"rate_bps":500000000,"reorder":true}"#);
        assert!(serde_json::from_str::<Change>(r#"{"rate": 1}"#).is_err());
    }
}
