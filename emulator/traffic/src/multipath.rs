//! Flows over several paths (Multipath TCP, RFC 8684): the addresses that their ends have besides those that they connect
//! by, and what the kernel knows of their subflows.
//!
//! In: requests, sockets. Out: namespaces whose path managers know the addresses; a connection as if it was one of TCP,
//! and rows of subflows.csv.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::Path;

use ewan_system::mptcp::{self, Address, Connection, Subflow};
use serde::Deserialize;

use crate::socket::{Endpoint, Namespaces};
use crate::table::{add, Row};
use crate::tcp_info::{Info, Sample};

/// Of a flow that has several paths.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Multipath {
    /// In all, the first one too.
    pub paths: u32,
    /// The kernel's scheduler, which gives each segment to a subflow.
    pub scheduler: String,
    /// Further addresses of the source, from which it connects.
    #[serde(default)]
    pub from: Vec<IpAddr>,
    /// Further addresses of the sink, of which it tells the source.
    #[serde(default)]
    pub to: Vec<IpAddr>,
}

impl Multipath {
    pub fn check(&self) -> Result<(), String> {
        let most = mptcp::MOST_SUBFLOWS as u32;
        if !(2..=most).contains(&self.paths) {
            return Err(format!("socket.multipath.paths: give 2 to {most}"));
        }
        if self.from.is_empty() && self.to.is_empty() {
            return Err("socket.multipath: give further addresses, from or to".into());
        }
        let known = |each: char| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '_';
        if self.scheduler.is_empty() || !self.scheduler.chars().all(known) {
            return Err("socket.multipath.scheduler: give a name".into());
        }
        Ok(())
    }
}

/// What one namespace is given.
#[derive(Default)]
struct Wanted<'a> {
    /// Whether the other end is told of each, and whether this end connects from it.
    addresses: BTreeMap<IpAddr, [bool; 2]>,
    paths: u32,
    scheduler: &'a str,
}

/// Tells the path manager of each namespace the addresses of its flows. Errors are one line.
pub fn prepare<'a>(
    namespaces: &Namespaces,
    flows: impl Iterator<Item = (&'a Multipath, &'a Endpoint, &'a Endpoint)>,
) -> Result<(), String> {
    let mut wanted: BTreeMap<&Path, Wanted> = BTreeMap::new();
    for (multipath, from, to) in flows {
        for (end, addresses, connects) in [(from, &multipath.from, true), (to, &multipath.to, false)] {
            let own = wanted.entry(&end.netns).or_default();
            for &address in addresses {
                own.addresses.entry(address).or_default()[usize::from(connects)] = true;
            }
            own.paths = own.paths.max(multipath.paths);
            own.scheduler = &multipath.scheduler;
        }
    }
    for (netns, own) in wanted {
        namespaces.within(netns, || {
            let each = |(&address, &[signals, connects]): (&IpAddr, &[bool; 2])| Address { address, signals, connects };
            let addresses: Vec<_> = own.addresses.iter().map(each).collect();
            mptcp::set_addresses(&addresses, own.paths - 1).map_err(|error| error.to_string())?;
            choose(own.scheduler)
        })?;
    }
    Ok(())
}

/// The scheduler of the namespace that the thread is in.
fn choose(scheduler: &str) -> Result<(), String> {
    const FILE: &str = "/proc/sys/net/mptcp/scheduler";
    let now = std::fs::read_to_string(FILE).unwrap_or_else(|_| "default".into());
    if now.trim() == scheduler {
        return Ok(());
    }
    std::fs::write(FILE, scheduler).map_err(|_| {
        let known = std::fs::read_to_string("/proc/sys/net/mptcp/available_schedulers").unwrap_or(now);
        format!("scheduler {scheduler:?} of MPTCP: unknown to this kernel: there are {}", known.trim())
    })
}

/// A connection over several paths as one of TCP: windows, rates and counts are the sums of its subflows, the RTTs those
/// of the one with the least, and bytes those of the connection itself.
pub fn info(socket: &impl AsFd) -> Result<Info, String> {
    let told = Connection::of(socket).map_err(|error| format!("MPTCP_FULL_INFO: {error}"))?;
    let subflows: Vec<_> = told.subflows.iter().map(of_subflow).collect();
    Ok(Info::together(&subflows, told.received_bytes, told.acked_bytes))
}

fn of_subflow(subflow: &Subflow) -> Info {
    Info::new(subflow.info, subflow.length)
}

/// A look at a subflow.
pub(crate) struct SubflowSample {
    flow: u32,
    part: u32,
    id: u32,
    local: IpAddr,
    remote: IpAddr,
    min_rtt_ns: Option<u64>,
    sample: Sample,
}

/// Shows the subflows of a sender as they are now, none where they cannot be seen.
pub(crate) fn look(socket: &impl AsFd, flow: u32, part: u32, time_ns: u64, see: &mut dyn FnMut(&SubflowSample)) {
    for subflow in Connection::of(socket).map(|told| told.subflows).unwrap_or_default() {
        let info = of_subflow(&subflow);
        let Subflow { id, local, remote, .. } = subflow;
        let (min_rtt_ns, sample) = (info.min_rtt_ns(), info.sample(time_ns));
        see(&SubflowSample { flow, part, id, local, remote, min_rtt_ns, sample });
    }
}

impl Row for SubflowSample {
    const COLUMNS: &'static str = "flow,part,subflow,from,to,time_ns,acked_bytes,delivered_segments,cwnd_segments,\
        ssthresh_segments,in_flight_segments,srtt_ns,min_rtt_ns,retransmitted_segments,lost_segments,delivery_rate_bps";

    fn line(&self, line: &mut String) {
        let (Self { flow, part, id, local, remote, .. }, s) = (self, &self.sample);
        add(line, format_args!("{flow},{part},{id},{local},{remote},{}", s.time_ns));
        add(line, format_args!(",{},{},{}", s.acked_bytes, s.delivered_segments, s.cwnd_segments));
        add(line, format_args!(",{},{},{},", s.ssthresh_segments, s.in_flight_segments, s.srtt_ns));
        if let Some(ns) = self.min_rtt_ns {
            add(line, format_args!("{ns}"));
        }
        add(line, format_args!(",{},{},{}", s.retransmitted_segments, s.lost_segments, s.delivery_rate_bps));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_second_path_is_refused() {
        let checked = |text: &str| serde_json::from_str::<Multipath>(text).expect("a request").check();
        let with = |paths: u32, more: &str| format!(r#"{{"paths": {paths}, "scheduler": "default"{more}}}"#);
        let from = r#", "from": ["10.0.0.9"]"#;
        assert_eq!(checked(&with(2, from)), Ok(()));
        for wrong in [with(1, from), with(10, from), with(2, ""), with(2, from).replace("default", "../x")] {
            assert!(checked(&wrong).is_err_and(|why| why.starts_with("socket.multipath")), "{wrong}");
        }
    }
}
