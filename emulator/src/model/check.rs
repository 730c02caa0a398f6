//! Is a configuration one that the model can run? One line per refusal: which key, what it is, what to write.

use super::Change;
use crate::config::{Delay, Direction, Discipline, Loss, Queue, ONE_PPB};

const RATES: std::ops::RangeInclusive<u64> = 8_000..=100_000_000_000;

type Verdict = Result<(), String>;

/// Checks a direction as it is in a plan.
pub fn check(direction: &Direction) -> Verdict {
    rate(direction.rate_bps)?;
    loss(&direction.loss)?;
    probability("corrupt_ppb", direction.corrupt_ppb)?;
    probability("duplicate_ppb", direction.duplicate_ppb)?;
    queue(&direction.queue)?;
    delay(&direction.delay)
}

impl Change {
    /// Checks what is named; the rest stays as it is.
    pub fn check(&self) -> Verdict {
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
        Loss::EveryNth { n } => {
            require(*n > 0, || "n 0: every 1st, 2nd … packet can be lost; for none write none".into())
        }
        Loss::Pattern { pattern } => {
            require(!pattern.is_empty() && pattern.bytes().all(|letter| letter == b'0' || letter == b'1'), || {
                format!(
                    "pattern {:?}: write a 0 for a packet that passes, a 1 for one that is lost",
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
    match queue.discipline {
        Discipline::DropTail {} => Ok(()),
        Discipline::Red { min_bytes, max_bytes, max_p_ppb, weight_log2, .. } => {
            probability("max_p_ppb", max_p_ppb)?;
            require(min_bytes < max_bytes, || format!("min_bytes {min_bytes}: must be below max_bytes ({max_bytes})"))?;
            require((1..=20).contains(&weight_log2), || format!("weight_log2 {weight_log2}: write 1 to 20 (usual: 9)"))
        }
        Discipline::Codel { target_ns, interval_ns, .. } => require(0 < target_ns && target_ns < interval_ns, || {
            format!("target_ns {target_ns}: must be above 0 and below interval_ns ({interval_ns})")
        }),
        Discipline::Pie { target_ns, update_ns, .. } => require(target_ns > 0 && update_ns >= 1_000, || {
            format!("target_ns {target_ns}, update_ns {update_ns}: must be above 0 and at least 1000")
        }),
    }
}

fn delay(delay: &Delay) -> Verdict {
    let empty = matches!(delay, Delay::Table { delays_ns } if delays_ns.is_empty());
    require(!empty, || "delays_ns: a table of delays needs at least one".into())
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

    #[test]
    fn a_change_names_only_what_changes_and_nothing_unknown() {
        let change: Change = serde_json::from_str(r#"{"rate_bps": 500000000, "reorder": true}"#).unwrap();
        assert_eq!(change, Change { rate_bps: Some(500_000_000), reorder: Some(true), ..Change::default() });
        assert_eq!(change.check(), Ok(()));
        assert_eq!(serde_json::to_string(&change).unwrap(), r#"{"rate_bps":500000000,"reorder":true}"#);
        assert!(serde_json::from_str::<Change>(r#"{"rate": 1}"#).is_err());
    }
}
