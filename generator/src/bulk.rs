//! Bulk flows: many TCP transfers at once between network namespaces, all in one process.
//!
//! In: for each flow its ends, congestion control, start, and how many bytes or how long. Out: when it began and ended,
//! what arrived, and series of both ends. Each end is a thread that stays inside one long system call while data flow
//! (the way into user space is what costs most), and one more thread reads TCP_INFO of all of them at the instants
//! that were asked for. All times are counted from the flows' common start.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::monotonic_ns;
use crate::socket::{Endpoint, Namespaces};
use crate::tcp_info::Sample;

mod flow;

use flow::{Ending, Filling, Flow};

const MOST_FLOWS: usize = 16_384;
const SHORTEST_SAMPLE_NS: u64 = 100_000;
/// For all threads to be there before the first flow starts, and for each of many.
const READY_NS: i64 = 20_000_000;
const READY_FLOW_NS: i64 = 200_000;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    pub name: String,
    pub flows: Vec<Transfer>,
    /// Between two looks at each sender; 0: no series.
    #[serde(default)]
    pub sample_ns: u64,
    /// Width of the bins in which the bytes received are counted; 0: none.
    #[serde(default)]
    pub series_ns: u64,
    /// What has not ended by then is ended.
    #[serde(default = "ten_minutes")]
    pub longest_ns: u64,
}

/// One flow. It ends with its last byte or after its time, whichever comes first; one of the two is given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    pub name: String,
    pub from: Endpoint,
    pub to: Endpoint,
    /// Named always: the kernel's default differs between machines.
    pub congestion: String,
    #[serde(default)]
    pub start_ns: u64,
    #[serde(default)]
    pub bytes: Option<u64>,
    #[serde(default)]
    pub duration_ns: Option<u64>,
}

#[derive(Serialize)]
pub struct Measured {
    flows: Vec<FlowMeasured>,
}

#[derive(Serialize)]
struct FlowMeasured {
    name: String,
    congestion: String,
    /// When it began to connect.
    started_ns: u64,
    connected_ns: Option<u64>,
    /// Its last byte received, or its time over.
    ended_ns: Option<u64>,
    /// From its start, connecting included, to the last of `bytes` received.
    completion_ns: Option<u64>,
    received_bytes: u64,
    /// Of the payload, from its start to its end.
    goodput_bps: f64,
    segment_bytes: u32,
    min_rtt_ns: u64,
    retransmitted_segments: u32,
    /// Why it went no further.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    series: Vec<Sample>,
    /// Bytes received in each bin from the common start on, up to the flow's end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    received_series_bytes: Vec<u64>,
}

fn ten_minutes() -> u64 {
    600_000_000_000
}

impl Bulk {
    /// An upper bound of its duration.
    pub fn longest_ns(&self) -> u64 {
        let last = self.flows.iter().map(|flow| match flow.duration_ns {
            Some(duration) => flow.start_ns.saturating_add(duration),
            None => u64::MAX,
        });
        last.max().unwrap_or(0).min(self.longest_ns)
    }

    pub fn check(&self) -> Result<(), String> {
        if self.flows.len() > MOST_FLOWS {
            return Err(format!("{} flows, at most {MOST_FLOWS}", self.flows.len()));
        }
        for (key, ns) in [("sample_ns", self.sample_ns), ("series_ns", self.series_ns)] {
            if ns != 0 && ns < SHORTEST_SAMPLE_NS {
                return Err(format!("{key} {ns}: give {SHORTEST_SAMPLE_NS} (0.1 ms) or more, or 0 for none"));
            }
        }
        if let Some(late) = self.flows.iter().find(|flow| flow.start_ns >= self.longest_ns) {
            return Err(format!("flow {:?} starts at or after longest_ns {}", late.name, self.longest_ns));
        }
        self.flows.iter().try_for_each(|flow| flow.check().map_err(|what| format!("flow {:?}: {what}", flow.name)))
    }
}

impl Transfer {
    fn check(&self) -> Result<(), String> {
        if self.from.address.is_ipv6() != self.to.address.is_ipv6() {
            Err("from and to are of different address families".into())
        } else if self.bytes.is_none() && self.duration_ns.is_none() {
            Err("give bytes or duration_ns".into())
        } else if self.bytes == Some(0) || self.duration_ns == Some(0) {
            Err("bytes and duration_ns must be above 0".into())
        } else {
            Ok(())
        }
    }
}

/// How many flows have not ended; whoever ends the last one wakes the sampler.
struct Running {
    flows: Mutex<usize>,
    none: Condvar,
}

impl Running {
    fn new(flows: usize) -> Self {
        Self { flows: Mutex::new(flows), none: Condvar::new() }
    }

    fn one_ended(&self) {
        let mut flows = self.flows.lock().expect("no thread fails with the lock held");
        *flows -= 1;
        if *flows == 0 {
            self.none.notify_all();
        }
    }

    /// True as soon as none is left, false at `at_ns`.
    ///
    /// Not `wait_timeout_while`: that goes on waiting for nothing at the very instant it was to end at, and in the virtual
    /// clock this instant lasts until somebody sleeps.
    fn none_before(&self, at_ns: i64) -> bool {
        let mut flows = self.flows.lock().expect("no thread fails with the lock held");
        while *flows > 0 {
            let left_ns = at_ns - monotonic_ns();
            if left_ns <= 0 {
                return false;
            }
            let left = Duration::from_nanos(left_ns as u64);
            flows = self.none.wait_timeout(flows, left).expect("as above").0;
        }
        true
    }
}

/// What the sampler keeps of a flow.
#[derive(Default)]
struct Series {
    samples: Vec<Sample>,
    bins: Vec<u64>,
    binned_bytes: u64,
}

/// Runs all flows to their ends. A flow that fails says why; the others go on.
pub fn run(namespaces: &Namespaces, bulk: &Bulk) -> Result<Measured, String> {
    let filling = Filling::new()?;
    let flows: Vec<Flow> =
        bulk.flows.iter().map(|transfer| Flow::open(namespaces, transfer)).collect::<Result<_, _>>()?;
    let running = Running::new(flows.len());
    let mut series: Vec<Series> = flows.iter().map(|_| Series::default()).collect();
    let begin = monotonic_ns() + READY_NS + READY_FLOW_NS * flows.len() as i64;
    std::thread::scope(|scope| {
        let mut started = Ok(());
        for flow in &flows {
            started = started.and_then(|()| flow.start(scope, &filling, &running, begin));
        }
        // Threads that wait for a thread that never came would wait for ever.
        if started.is_ok() {
            watch(bulk, &flows, &mut series, &running, begin);
        }
        flows.iter().for_each(|flow| flow.end(Ending::Stopped, monotonic_ns() - begin, &running));
        started
    })?;
    let measured = flows.iter().zip(series).map(|(flow, series)| measured(flow, series)).collect();
    Ok(Measured { flows: measured })
}

/// Until all flows have ended: ends those whose time is over, and takes the samples, each at its instant.
fn watch(bulk: &Bulk, flows: &[Flow], series: &mut [Series], running: &Running, begin: i64) {
    let mut ends: Vec<(u64, usize)> = flows
        .iter()
        .enumerate()
        .filter_map(|(index, flow)| {
            flow.transfer.duration_ns.map(|ns| (flow.transfer.start_ns.saturating_add(ns), index))
        })
        .collect();
    // Soonest last.
    ends.sort_unstable_by(|one, other| other.cmp(one));
    let first = |every: u64| if every == 0 { u64::MAX } else { every };
    let (mut sample_at, mut bin_at) = (first(bulk.sample_ns), first(bulk.series_ns));
    loop {
        let end_at = ends.last().map_or(u64::MAX, |&(at, _)| at);
        let next = sample_at.min(bin_at).min(end_at).min(bulk.longest_ns);
        if running.none_before(begin + next as i64) {
            break;
        }
        if next == bin_at {
            flows.iter().zip(&mut *series).for_each(|(flow, series)| series.count(flow));
            bin_at += bulk.series_ns;
        }
        if next == sample_at {
            flows.iter().zip(&mut *series).for_each(|(flow, series)| series.sample(flow, sample_at));
            sample_at += bulk.sample_ns;
        }
        while let Some((_, index)) = ends.pop_if(|(at, _)| *at <= next) {
            flows[index].end(Ending::InTime, next as i64, running);
        }
        if next >= bulk.longest_ns {
            break;
        }
    }
    // What came since the last bin's end, of all that have a series.
    if bulk.series_ns > 0 {
        flows.iter().zip(&mut *series).for_each(|(flow, series)| series.count_rest(flow));
    }
}

impl Series {
    fn sample(&mut self, flow: &Flow, time_ns: u64) {
        if let Some(info) = flow.sender_info() {
            self.samples.push(info.sample(time_ns));
        }
    }

    fn count(&mut self, flow: &Flow) {
        let bytes = flow.received_bytes();
        if !flow.ended() || bytes > self.binned_bytes {
            self.bins.push(bytes - self.binned_bytes);
            self.binned_bytes = bytes;
        }
    }

    fn count_rest(&mut self, flow: &Flow) {
        let bytes = flow.received_bytes();
        if bytes > self.binned_bytes {
            self.bins.push(bytes - self.binned_bytes);
        }
    }
}

fn measured(flow: &Flow, series: Series) -> FlowMeasured {
    let (transfer, outcome) = (flow.transfer, flow.outcome());
    let took = outcome.ended_ns.map(|ended| (ended - outcome.started_ns).max(0) as u64);
    let complete = transfer.bytes.is_some_and(|bytes| outcome.received_bytes >= bytes);
    let ns = |time: i64| time.max(0) as u64;
    FlowMeasured {
        name: transfer.name.clone(),
        congestion: transfer.congestion.clone(),
        started_ns: ns(outcome.started_ns),
        connected_ns: outcome.connected_ns.map(ns),
        ended_ns: outcome.ended_ns.map(ns),
        completion_ns: took.filter(|_| complete),
        received_bytes: outcome.received_bytes,
        goodput_bps: took.filter(|&ns| ns > 0).map_or(0.0, |ns| outcome.received_bytes as f64 * 8e9 / ns as f64),
        segment_bytes: outcome.segment_bytes,
        min_rtt_ns: outcome.min_rtt_ns,
        retransmitted_segments: outcome.retransmitted_segments,
        error: outcome.error,
        series: series.samples,
        received_series_bytes: series.bins,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(flow: &str, more: &str) -> Result<Bulk, String> {
        let end = r#"{"netns": "/run/netns/a", "address": "10.0.0.1"}"#;
        let text = format!(
            r#"{{"name": "b", {more} "flows": [
                {{"name": "f", "from": {end}, "to": {end}, "congestion": "reno", {flow}}}]}}"#
        );
        let bulk: Bulk = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        bulk.check().map(|()| bulk)
    }

    #[test]
    fn the_last_flow_that_may_end_bounds_them_all() {
        assert_eq!(bulk(r#""start_ns": 5, "duration_ns": 10"#, "").unwrap().longest_ns(), 15);
        assert_eq!(bulk(r#""bytes": 10, "duration_ns": null"#, "").unwrap().longest_ns(), ten_minutes());
        assert_eq!(bulk(r#""bytes": 10"#, r#""longest_ns": 7,"#).unwrap().longest_ns(), 7);
    }

    #[test]
    fn what_cannot_be_done_is_refused_in_one_line() {
        for (flow, more, says) in [
            (r#""start_ns": 1"#, "", "give bytes or duration_ns"),
            (r#""bytes": 0"#, "", "must be above 0"),
            (r#""bytes": 1, "rate_bps": 1"#, "", "unknown field `rate_bps`"),
            (r#""bytes": 1, "to": {"netns": "/run/netns/b", "address": "fd00::1"}"#, "", "duplicate field `to`"),
            (r#""bytes": 1, "start_ns": 9"#, r#""longest_ns": 9,"#, "starts at or after longest_ns 9"),
            (r#""bytes": 1"#, r#""sample_ns": 1000,"#, "sample_ns 1000: give 100000"),
        ] {
            let error = bulk(flow, more).unwrap_err();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
    }
}
