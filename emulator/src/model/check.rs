//! Is a configuration one that the model can run? One line per refusal: which key, what it is, what to write.
//!
//! The one check of plans and of changes at run time. Its bounds are those of descriptions (labs/spec, labs/compile):
//! `tests/golden/limits.json` holds values at and beyond each bound, and both sides' tests read it.

use super::pie::LEAST_UPDATE_NS;
use super::red::MOST_WEIGHT_LOG2;
use super::{Change, Nanos};
use crate::config::{Delay, Direction, Discipline, Loss, Queue, ONE_PPB};

const RATES: std::ops::RangeInclusive<u64> = 8_000..=100_000_000_000;
const SECOND_NS: Nanos = 1_000_000_000;
/// Of delays, jitter, PIE's times.
const LONGEST_NS: Nanos = 10 * SECOND_NS;
/// Of CoDel's interval, which a description leaves to the compiler: ten packets of 10 s each.
const LONGEST_INTERVAL_NS: Nanos = 100 * SECOND_NS;
/// 8 GiB: the largest store, and so the most that may wait.
const MOST_BYTES: u64 = 8 << 30;
/// As many as fill the largest store at 64 bytes each.
const MOST_PACKETS: u64 = MOST_BYTES / 64;
/// Entries of a table of delays, letters of a pattern of losses.
const LONGEST_LIST: usize = 1 << 20;
/// PIE's gains: 1000 Hz.
const MOST_GAIN_MHZ: u64 = 1_000_000;
/// Far above every framing there is; sums with a packet's length stay in 32 bits.
const MOST_FRAMING_BYTES: u32 = 1 << 16;

type Verdict = Result<(), String>;

/// Checks a direction as it is in a plan.
pub fn check(direction: &Direction) -> Verdict {
    let framing = direction.framing.overhead_bytes.max(direction.framing.minimum_bytes);
    require(framing <= MOST_FRAMING_BYTES, || {
        format!("framing {framing}: overhead_bytes and minimum_bytes are at most {MOST_FRAMING_BYTES}")
    })?;
    let (packets, bytes) = (direction.store_packets, direction.store_bytes);
    require(packets <= MOST_PACKETS, || format!("store_packets {packets}: write at most {MOST_PACKETS}"))?;
    require(bytes <= MOST_BYTES, || format!("store_bytes {bytes}: write at most {MOST_BYTES} (8 GiB)"))?;
    rate(direction.rate_bps)?;
    loss(&direction.loss)?;
    probability("corrupt_ppb", direction.corrupt_ppb)?;
    probability("duplicate_ppb", direction.duplicate_ppb)?;
    queue(&direction.queue)?;
    delay(&direction.delay)
}

impl Change {
    /// Checks what is named; the rest stays as it is. A change that names nothing is refused.
    pub fn check(&self) -> Verdict {
        require(*self != Change::default(), || {
            "nothing to change: name rate_bps, delay, reorder, loss, corrupt_ppb, duplicate_ppb or queue".into()
        })?;
        self.rate_bps.map_or(Ok(()), rate)?;
        self.loss.as_ref().map_or(Ok(()), loss)?;
        self.corrupt_ppb.map_or(Ok(()), |value| probability("corrupt_ppb", value))?;
        self.duplicate_ppb.map_or(Ok(()), |value| probability("duplicate_ppb", value))?;
        self.queue.as_ref().map_or(Ok(()), queue)?;
        self.delay.as_ref().map_or(Ok(()), delay)
    }
}

fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if holds {
        Ok(())
    } else {
        Err(otherwise())
    }
}

fn rate(value: u64) -> Verdict {
    require(RATES.contains(&value), || format!("rate_bps {value}: write 8000 (8 kbit/s) to 100000000000 (100 Gbit/s)"))
}

fn probability(key: &str, value: u32) -> Verdict {
    require(value <= ONE_PPB, || format!("{key} {value}: a probability is at most 1000000000 (100 %)"))
}

fn loss(model: &Loss) -> Verdict {
    match model {
        Loss::None {} => Ok(()),
        Loss::Bernoulli { loss_ppb } => probability("loss_ppb", *loss_ppb),
        Loss::GilbertElliott { to_bad_ppb, to_good_ppb, loss_good_ppb, loss_bad_ppb } => {
            probability("to_bad_ppb", *to_bad_ppb)?;
            probability("to_good_ppb", *to_good_ppb)?;
            probability("loss_good_ppb", *loss_good_ppb)?;
            probability("loss_bad_ppb", *loss_bad_ppb)
        }
        Loss::Markov4 { p13_ppb, p31_ppb, p32_ppb, p23_ppb, p14_ppb } => {
            probability("p13_ppb + p14_ppb", p13_ppb.saturating_add(*p14_ppb))?;
            probability("p31_ppb + p32_ppb", p31_ppb.saturating_add(*p32_ppb))?;
            probability("p23_ppb", *p23_ppb)
        }
        Loss::EveryNth { n } => require((1..=i64::MAX as u64).contains(n), || {
            format!("n {n}: every 1st, 2nd … packet can be lost, up to {}; for none write none", i64::MAX)
        }),
        Loss::Pattern { pattern } => {
            let letters = pattern.bytes().all(|letter| letter == b'0' || letter == b'1');
            require(letters && (1..=LONGEST_LIST).contains(&pattern.len()), || {
                format!(
                    "pattern {:?}: write a 0 for a packet that passes, a 1 for one that is lost, up to {LONGEST_LIST}",
                    shortened(pattern)
                )
            })
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(20).collect()
}

fn queue(queue: &Queue) -> Verdict {
    require(queue.limit_packets.is_some() || queue.limit_bytes.is_some(), || {
        "queue: give limit_packets or limit_bytes, or both".into()
    })?;
    for (key, limit, most) in
        [("limit_packets", queue.limit_packets, MOST_PACKETS), ("limit_bytes", queue.limit_bytes, MOST_BYTES)]
    {
        let limit = limit.unwrap_or(1);
        require((1..=most).contains(&limit), || format!("{key} {limit}: write 1 to {most}"))?;
    }
    match queue.discipline {
        Discipline::DropTail {} => Ok(()),
        Discipline::Red { min_bytes, max_bytes, max_p_ppb, weight_log2, .. } => {
            probability("max_p_ppb", max_p_ppb)?;
            require(min_bytes < max_bytes, || format!("min_bytes {min_bytes}: must be below max_bytes ({max_bytes})"))?;
            require(max_bytes <= MOST_BYTES, || format!("max_bytes {max_bytes}: write at most {MOST_BYTES} (8 GiB)"))?;
            require(weight_log2 <= MOST_WEIGHT_LOG2, || {
                format!("weight_log2 {weight_log2}: write 0 to {MOST_WEIGHT_LOG2} (usual: 9)")
            })
        }
        Discipline::Codel { target_ns, interval_ns, .. } => {
            require(0 < target_ns && target_ns <= interval_ns, || {
                format!("target_ns {target_ns}: must be above 0 and not above interval_ns ({interval_ns})")
            })?;
            require(interval_ns <= LONGEST_INTERVAL_NS, || {
                format!("interval_ns {interval_ns}: write at most {LONGEST_INTERVAL_NS} (100 s)")
            })
        }
        Discipline::Pie { target_ns, update_ns, alpha_mhz, beta_mhz, .. } => {
            time("target_ns", target_ns, 1, 2 * LONGEST_NS)?;
            time("update_ns", update_ns, LEAST_UPDATE_NS, LONGEST_NS)?;
            for (key, gain) in [("alpha_mhz", alpha_mhz), ("beta_mhz", beta_mhz)] {
                require(gain <= MOST_GAIN_MHZ, || format!("{key} {gain}: write at most {MOST_GAIN_MHZ} (1000 Hz)"))?;
            }
            Ok(())
        }
    }
}

fn time(key: &str, value: Nanos, least: Nanos, most: Nanos) -> Verdict {
    require((least..=most).contains(&value), || format!("{key} {value}: write {least} to {most}"))
}

fn delay(delay: &Delay) -> Verdict {
    match delay {
        Delay::Constant { delay_ns } => time("delay_ns", *delay_ns, 0, LONGEST_NS),
        Delay::Uniform { delay_ns, jitter_ns }
        | Delay::Normal { delay_ns, jitter_ns }
        | Delay::Pareto { delay_ns, jitter_ns } => {
            time("delay_ns", *delay_ns, 0, LONGEST_NS)?;
            require(jitter_ns <= delay_ns, || format!("jitter_ns {jitter_ns}: must not be above delay_ns ({delay_ns})"))
        }
        Delay::Table { delays_ns } => {
            require((1..=LONGEST_LIST).contains(&delays_ns.len()), || {
                format!("delays_ns: a table of delays has 1 to {LONGEST_LIST}, this one {}", delays_ns.len())
            })?;
            delays_ns.iter().try_for_each(|each| time("delays_ns", *each, 0, LONGEST_NS))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/limits.json");
        let text = std::fs::read(path).expect("the golden file");
        let cases: Vec<Case> = serde_json::from_slice(&text).expect("cases");
        assert!(cases.len() > 40);
        for Case { change, allowed } in cases {
            assert_eq!(change.check().is_ok(), allowed, "{change:?}: {:?}", change.check());
        }
    }

    #[test]
    fn what_only_a_plan_says_is_checked_too() {
        let text = r#"{"framing": {"overhead_bytes": 38, "minimum_bytes": 84}, "rate_bps": 1000000,
            "loss": {"kind": "none"}, "corrupt_ppb": 0, "duplicate_ppb": 0,
            "queue": {"limit_packets": null, "limit_bytes": 10000, "discipline": {"kind": "drop_tail"}},
            "delay": {"kind": "constant", "delay_ns": 1000000}, "reorder": false, "seed": 1,
            "store_packets": 100, "store_bytes": 100000}"#;
        let plain: Direction = serde_json::from_str(text).expect("a direction");
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
