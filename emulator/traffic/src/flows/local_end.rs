//! One end of a flow whose other end is in a process on another machine: what both must know.
//!
//! Each end keeps its own time, from the same T0, and records what it sees; whoever has both puts them together
//! (extras/machines/flow_records.py).

use serde::Deserialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    Source,
    Sink,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalEnd {
    /// The end that is here.
    pub side: Side,
    /// Where the sink listens.
    pub port: u16,
    /// Tells this run's packets from those of an earlier one.
    #[serde(default)]
    pub run: u32,
    /// How far the sink's clock is ahead of the source's: so much longer one-way delays seem.
    #[serde(default)]
    pub clock_ns: i64,
}

impl LocalEnd {
    pub fn check(&self) -> Result<(), String> {
        if self.port == 0 {
            return Err("half.port 0: both ends must know where the sink listens".into());
        }
        Ok(())
    }
}

/// Whether an end is in this process.
pub fn here(half: Option<&LocalEnd>, side: Side) -> bool {
    half.is_none_or(|half| half.side == side)
}

#[cfg(test)]
mod tests {
    use super::super::Request;

    fn refusal(work: &str, half: &str, numbers: [u32; 2]) -> String {
        let end = r#"{"netns": "/run/netns/a", "address": "10.0.0.1"}"#;
        let flow = |number: u32| {
            format!(
                r#"{{"name": "f{number}", "from": {end}, "to": {end}, "number": {number}, "half": {half},
                     "socket": {{"congestion": "reno"}}, "work": {work}}}"#
            )
        };
        let flows = numbers.map(flow).join(",");
        let text = format!(r#"{{"format": "ewan-traffic/1", "longest_ns": 1000000000, "flows": [{flows}]}}"#);
        Request::parse(&text).err().unwrap_or_default()
    }

    const BULK: &str = r#"{"kind": "bulk", "bytes": 1}"#;
    const SINK: &str = r#"{"side": "sink", "port": 61000, "run": 7, "clock_ns": -5}"#;

    #[test]
    fn an_end_says_which_it_is_and_where_the_sink_listens() {
        assert_eq!(refusal(BULK, SINK, [4, 9]), "");
        assert!(refusal(BULK, r#"{"side": "sink", "port": 0}"#, [4, 9]).contains("half.port 0"));
        assert!(refusal(BULK, r#"{"side": "middle", "port": 1}"#, [4, 9]).contains("middle"));
    }

    #[test]
    fn two_flows_of_one_number_are_refused() {
        assert!(refusal(BULK, SINK, [4, 4]).contains("another flow has number 4"));
    }
}
