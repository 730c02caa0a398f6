//! What `ewan-node traffic` is asked to do: JSON, integers, the unit in the key; unknown keys are refused, and all of it
//! is checked before the first packet.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand_core::RngCore;
use serde::Deserialize;

use super::condition::Condition;
use super::local_end::{LocalEnd, Side};
use super::{arrivals, bulk, law, media, messages, requests, steps, udp, Common, Ends, Flow};
use crate::clock::Clock;
use crate::congestion;
use crate::socket::{Endpoint, Options};

pub const FORMAT: &str = "ewan-traffic/1";
const MOST_FLOWS: usize = 16_384;
const SHORTEST_SERIES_NS: u64 = 100_000;
const MOST_LIVE_NS: u64 = 86_400_000_000_000;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    format: String,
    #[serde(default)]
    pub clock: Clock,
    /// Where threads may run; empty: anywhere.
    #[serde(default)]
    pub cpus: Vec<u32>,
    #[serde(default)]
    pub seed: u64,
    /// Between two looks at each sender; 0: none.
    #[serde(default)]
    pub sample_ns: u64,
    /// Width of the bins in which the bytes received are counted; 0: none.
    #[serde(default)]
    pub series_ns: u64,
    /// Records have the ports of sources, by which links know flows.
    #[serde(default)]
    pub ports: bool,
    /// From T0; what still runs then is ended.
    pub longest_ns: u64,
    /// Steps whose ends are told on standard output, a line each: number and ns from T0. Whoever started this process is
    /// sent SIGCHLD for each.
    #[serde(default)]
    pub told: Vec<u32>,
    /// Steps that others carry out, whose ends come as such lines on standard input.
    #[serde(default)]
    pub elsewhere: Vec<u32>,
    /// The layouts of the private states of congestion controls.
    #[serde(default)]
    pub congestion_state: congestion::Layouts,
    /// States of congestion controls that count as steps.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    pub flows: Vec<FlowRequest>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowRequest {
    pub name: String,
    /// In the whole run, where this process has a part of its flows; none: its place here.
    #[serde(default)]
    pub number: Option<u32>,
    /// One end alone is here.
    #[serde(default)]
    pub half: Option<LocalEnd>,
    #[serde(default)]
    pub from: Option<Endpoint>,
    #[serde(default)]
    pub to: Option<Endpoint>,
    /// The step that it is of; none: nobody waits for it.
    #[serde(default)]
    pub step: Option<u32>,
    /// It waits until these steps have ended: its times count from then, not from T0.
    #[serde(default)]
    pub after: Vec<u32>,
    #[serde(default)]
    pub start_ns: u64,
    #[serde(default)]
    pub stop_ns: Option<u64>,
    /// Other than the request's.
    #[serde(default)]
    pub sample_ns: Option<u64>,
    #[serde(default)]
    pub socket: Options,
    pub work: Work,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Work {
    Bulk(bulk::Bulk),
    Arrivals(arrivals::Arrivals),
    Requests(requests::Requests),
    Udp(udp::Udp),
    Messages(messages::Messages),
    Media(media::Media),
}

impl Work {
    /// The nodes that exchange messages; none: it has two ends.
    fn ranks(&self) -> Option<&[Endpoint]> {
        match self {
            Self::Messages(work) => Some(&work.ranks),
            Self::Bulk(_) | Self::Arrivals(_) | Self::Requests(_) | Self::Udp(_) | Self::Media(_) => None,
        }
    }

    /// How many sockets it opens at either end at its start.
    pub(super) fn sockets(&self) -> u64 {
        self.ranks().map_or(1, |ranks| ranks.len() as u64)
    }

    /// Whether its two ends may be in two processes.
    fn may_be_halved(&self) -> bool {
        match self {
            Self::Bulk(_) | Self::Udp(_) | Self::Arrivals(_) | Self::Requests(_) => true,
            Self::Messages(_) | Self::Media(_) => false,
        }
    }

    /// Whether its sockets have a congestion control.
    pub(super) fn is_tcp(&self) -> bool {
        match self {
            Self::Bulk(_) | Self::Arrivals(_) | Self::Requests(_) | Self::Messages(_) => true,
            Self::Udp(_) | Self::Media(_) => false,
        }
    }
}

impl Request {
    pub fn parse(text: &str) -> Result<Self, String> {
        let request: Self = serde_json::from_str(text).map_err(|error| format!("traffic request: {error}"))?;
        request.check().map_err(|what| format!("traffic request: {what}"))?;
        Ok(request)
    }

    fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("format is {:?}, not {FORMAT:?}", self.format));
        }
        if self.flows.len() > MOST_FLOWS {
            return Err(format!("{} flows, at most {MOST_FLOWS}", self.flows.len()));
        }
        if self.longest_ns == 0 || self.longest_ns > MOST_LIVE_NS {
            return Err(format!("longest_ns {}: give 1 to {MOST_LIVE_NS}", self.longest_ns));
        }
        congestion::check(&self.congestion_state)?;
        interval("sample_ns", self.sample_ns)?;
        interval("series_ns", self.series_ns)?;
        let mut numbers = BTreeSet::new();
        for (place, flow) in self.flows.iter().enumerate() {
            flow.check(self.longest_ns).map_err(|what| format!("flow {:?}: {what}", flow.name))?;
            if !numbers.insert(flow.number(place)) {
                return Err(format!("flow {:?}: another flow has number {}", flow.name, flow.number(place)));
            }
        }
        for each in &self.conditions {
            if each.every_ns < SHORTEST_SERIES_NS || each.state.is_empty() {
                return Err(format!(
                    "condition {}: give every_ns {SHORTEST_SERIES_NS} or more, and a state",
                    each.step
                ));
            }
            let mut of = self.flows.iter().filter(|flow| flow.step == Some(each.of)).peekable();
            if of.peek().is_none() || of.any(|flow| !flow.work.is_tcp() || flow.half.is_some()) {
                return Err(format!("condition {}: step {} has no sender of TCP here", each.step, each.of));
            }
        }
        let told = self.elsewhere.iter().copied().chain(self.conditions.iter().map(|each| each.step));
        steps::check(&self.flows, &told.collect::<Vec<_>>())
    }

    pub(super) fn has_media(&self) -> bool {
        self.flows.iter().any(|flow| matches!(flow.work, Work::Media(_)))
    }

    /// One that waits is made anew when its times are known.
    pub(super) fn make(&self) -> Vec<Arc<dyn Flow>> {
        self.flows.iter().enumerate().map(|(place, flow)| flow.make(flow.number(place), self.seed)).collect()
    }
}

impl FlowRequest {
    /// `place`: in the request, from 0.
    pub(super) fn number(&self, place: usize) -> u32 {
        self.number.unwrap_or(place as u32)
    }

    fn check(&self, longest_ns: u64) -> Result<(), String> {
        let among_ranks = self.work.ranks().is_some();
        match (&self.from, &self.to) {
            (None, None) if among_ranks => {}
            (Some(from), Some(to)) if !among_ranks => {
                if from.address.is_ipv6() != to.address.is_ipv6() {
                    return Err("from and to are of different address families".into());
                }
            }
            _ if among_ranks => return Err("messages have ranks, not from and to".into()),
            _ => return Err("give from and to".into()),
        }
        if let Some(half) = &self.half {
            half.check()?;
            if !self.work.may_be_halved() {
                return Err("a flow of this kind has both ends in one process".into());
            }
        }
        if self.start_ns >= longest_ns {
            return Err(format!("it starts at or after longest_ns {longest_ns}"));
        }
        if self.stop_ns.is_some_and(|stop_ns| stop_ns <= self.start_ns) {
            return Err("stop_ns must be after start_ns".into());
        }
        interval("sample_ns", self.sample_ns.unwrap_or(0))?;
        self.socket.check()?;
        if self.socket.multipath.is_some() && (!matches!(self.work, Work::Bulk(_)) || self.half.is_some()) {
            return Err("socket.multipath: only bulk flows whose ends are in one process have several paths".into());
        }
        if self.work.is_tcp() && self.socket.congestion.is_none() {
            return Err("give socket.congestion: the kernel's default differs between machines".into());
        }
        let stops = self.stop_ns.is_some();
        match &self.work {
            Work::Bulk(work) => work.check(stops),
            Work::Arrivals(work) => work.check(stops),
            Work::Requests(work) => work.check(stops),
            Work::Udp(work) => work.check(stops),
            Work::Messages(work) => work.check(),
            Work::Media(work) => work.check(stops),
        }
    }

    /// The ends of all its sockets that are here.
    pub(super) fn ends(&self) -> Vec<&Endpoint> {
        let side = self.half.as_ref().map(|half| half.side);
        match (self.work.ranks(), side) {
            (Some(ranks), _) => ranks.iter().collect(),
            (None, None) => self.from.iter().chain(&self.to).collect(),
            (None, Some(Side::Source)) => self.from.iter().collect(),
            (None, Some(Side::Sink)) => self.to.iter().collect(),
        }
    }

    /// With its times counted from T0, where those that it waits for ended `begin_ns` after that.
    pub(super) fn begun(self, begin_ns: u64) -> Self {
        let start_ns = self.start_ns.saturating_add(begin_ns);
        let stop_ns = self.stop_ns.map(|stop_ns| stop_ns.saturating_add(begin_ns));
        Self { start_ns, stop_ns, after: Vec::new(), ..self }
    }

    pub(super) fn make(&self, number: u32, seed: u64) -> Arc<dyn Flow> {
        let common = Common {
            number,
            start_ns: self.start_ns,
            stop_ns: self.stop_ns,
            socket: self.socket.clone(),
            half: self.half.clone(),
            // Another flow added at the end of a request changes none before it.
            seed: law::stream(seed, number.into()).next_u64(),
        };
        let ends = || Ends {
            from: self.from.clone().expect("checked: it has two ends"),
            to: self.to.clone().expect("checked: it has two ends"),
        };
        match &self.work {
            Work::Bulk(work) => bulk::new(common, ends(), work),
            Work::Arrivals(work) => arrivals::new(common, ends(), work),
            Work::Requests(work) => requests::new(common, ends(), work),
            Work::Udp(work) => udp::new(common, ends(), work),
            Work::Messages(work) => messages::new(common, work),
            Work::Media(work) => media::new(common, ends(), work),
        }
    }
}

fn interval(key: &str, ns: u64) -> Result<(), String> {
    if ns != 0 && ns < SHORTEST_SERIES_NS {
        return Err(format!("{key} {ns}: give {SHORTEST_SERIES_NS} (0.1 ms) or more, or 0 for none"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Request;

    #[test]
    fn the_request_that_python_writes_is_read() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/traffic.json");
        let text = std::fs::read_to_string(path).expect("a golden request");
        let request = Request::parse(&text).expect("it is as labs/record/traffic.py writes it");
        assert_eq!(request.flows.len(), 7);
    }
}
