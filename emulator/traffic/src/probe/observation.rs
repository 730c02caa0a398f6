//! What one machine saw of a probe: its ends of each stream, by its own clock as it stands. JSON goes from the machine
//! to whoever puts the halves together (`results`).
//!
//! Times are CLOCK_REALTIME in nanoseconds. A machine on which both ends are has the whole of the stream.

use serde::{Deserialize, Serialize};

use super::stats::Arrival;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Observation {
    Udp(Udp),
    Tcp(Tcp),
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Udp {
    /// How far the clock was stepped while the probe ran.
    pub clock_step_ns: i64,
    /// As the probe has them, also those that have no end here.
    pub streams: Vec<Stream>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<SenderRecord>,
    /// Where the stream ends; in an rtt probe where it began.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "columns")]
    pub arrivals: Option<Vec<Arrival>>,
    pub socket_drops_packets: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenderRecord {
    /// Sequence numbers used.
    pub offered: u64,
    /// Of these the own interface's queue refused so many.
    pub refused: u64,
    pub refused_why: Option<String>,
    pub first_ns: i64,
    pub last_ns: i64,
    pub longest_gap_ns: i64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Where the sink is another machine's than the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sink: Option<Idle>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub connect_ns: u64,
    pub segment_bytes: u32,
    pub min_rtt_ns: u64,
    pub series: Vec<Sample>,
    pub idle: Idle,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Since the connection was there.
    pub time_ns: u64,
    /// Given to the receiving application; acknowledged where that is on another machine.
    pub received_bytes: u64,
    /// Acknowledged, cumulatively or selectively.
    pub delivered_segments: u32,
    pub cwnd_segments: u32,
    pub ssthresh_segments: u32,
    pub srtt_ns: u64,
    pub retransmitted_segments: u32,
    pub lost_segments: u32,
    /// Time without work of the CPUs of the sending process, since the machine started.
    pub idle_ns: u64,
}

/// How long the CPUs that a process may use had no work.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idle {
    pub cpus: usize,
    /// (since the connection was there, time without work of all of them); of a source in its samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<(u64, u64)>,
}

/// Arrivals as three columns of differences: short numbers, as a half may have millions of them.
mod columns {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::probe::stats::Arrival;

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Columns {
        sequences: Vec<i64>,
        at_ns: Vec<i64>,
        delays_ns: Vec<i64>,
    }

    fn differences(values: impl Iterator<Item = i64>) -> Vec<i64> {
        let mut before = 0;
        values.map(|value| value.wrapping_sub(std::mem::replace(&mut before, value))).collect()
    }

    fn sums(differences: Vec<i64>) -> impl Iterator<Item = i64> {
        let add = |sum: &mut i64, difference: i64| {
            *sum = sum.wrapping_add(difference);
            Some(*sum)
        };
        differences.into_iter().scan(0, add)
    }

    pub fn serialize<S: Serializer>(arrivals: &Option<Vec<Arrival>>, to: S) -> Result<S::Ok, S::Error> {
        let columns = arrivals.as_ref().map(|all| Columns {
            sequences: differences(all.iter().map(|each| each.sequence as i64)),
            at_ns: differences(all.iter().map(|each| each.at_ns)),
            delays_ns: differences(all.iter().map(|each| each.delay_ns)),
        });
        columns.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<Arrival>>, D::Error> {
        let Some(Columns { sequences, at_ns, delays_ns }) = Option::deserialize(from)? else { return Ok(None) };
        if sequences.len() != at_ns.len() || sequences.len() != delays_ns.len() {
            return Err(serde::de::Error::custom("arrivals: columns of different lengths"));
        }
        let rows = sums(sequences).zip(sums(at_ns)).zip(sums(delays_ns));
        let arrival = |((sequence, at_ns), delay_ns)| Arrival { sequence: sequence as u64, at_ns, delay_ns };
        Ok(Some(rows.map(arrival).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_comes_back_as_it_went() {
        let at = |sequence, at_ns, delay_ns| Arrival { sequence, at_ns, delay_ns };
        let now = 1_790_000_000_000_000_000;
        let arrivals = vec![at(0, now, 50), at(2, now + 7, -3), at(1, now + 9, i64::MIN), at(u64::MAX, 0, i64::MAX)];
        let one = Stream { arrivals: Some(arrivals.clone()), ..Stream::default() };
        let half = Observation::Udp(Udp { clock_step_ns: -1, streams: vec![one, Stream::default()] });
        let text = serde_json::to_string(&half).unwrap();
        assert!(text.contains(r#""sequences":[0,2,-1,"#), "{text}");
        let Observation::Udp(back) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
        assert_eq!(back.streams[0].arrivals, Some(arrivals));
        assert!(back.streams[1].arrivals.is_none() && back.streams[1].sent.is_none());
    }

    #[test]
    fn columns_of_different_lengths_are_refused() {
        let text = r#"{"socket_drops_packets": 0, "arrivals": {"sequences": [0], "at_ns": [1], "delays_ns": []}}"#;
        let error = serde_json::from_str::<Stream>(text).unwrap_err().to_string();
        assert!(error.contains("different lengths"), "{error}");
    }
}
