//! Counters of each flow at links, again and again: link_flows.csv and link_waits.csv, with the columns of
//! labs/record/columns.py.
//!
//! In: open links, and what is to be counted. Out: a row per link, direction and flow at each look after which the flow
//! counts more than before, and for each class of waiting times in which it counts more.

use std::collections::HashMap;
use std::path::Path;

use ewan_lab::links::Links;
use ewan_model::config::FlowCounting;
use ewan_model::{Change, FlowReport};
use ewan_plan::{Plan, HEADINGS};
use ewan_traffic::table::{add, Row, Table};
use serde::Deserialize;

/// The links that count flows, by name, and which of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountedFlows {
    links: Vec<String>,
    most: u16,
    #[serde(default)]
    ports: Vec<u16>,
}

/// The counters of one flow in one direction of a link.
struct FlowLook {
    link: String,
    heading: &'static str,
    time_ns: i64,
    entry: u32,
    first_ns: i64,
    last_ns: i64,
    last_sent_ns: i64,
    counts: FlowReport,
}

impl Row for FlowLook {
    const COLUMNS: &'static str =
        "link,direction,entry,flow,protocol,source,source_port,destination,destination_port,time_ns,\
        first_ns,last_ns,last_sent_ns,in_packets,in_bytes,duplicated_packets,sent_packets,sent_bytes,payload_bytes,\
        lost_packets,blackhole_packets,policed_packets,queue_full_packets,aqm_packets,ack_filtered_packets,\
        store_full_packets,cut_packets,marked_packets,served_packets,waited_ns";

    fn line(&self, line: &mut String) {
        let FlowLook { link, heading, time_ns, entry, first_ns, last_ns, last_sent_ns, counts } = self;
        add(line, format_args!("{link},{heading},{entry},,"));
        match counts.protocol {
            Some(6) => line.push_str("tcp"),
            Some(17) => line.push_str("udp"),
            Some(number) => add(line, format_args!("{number}")),
            None => line.push_str("others"),
        }
        for (address, port) in [(&counts.source, counts.source_port), (&counts.destination, counts.destination_port)] {
            add(line, format_args!(",{},", address.as_deref().unwrap_or("")));
            if port > 0 {
                add(line, format_args!("{port}"));
            }
        }
        let drops = &counts.drops;
        add(line, format_args!(",{time_ns},{first_ns},{last_ns},"));
        if counts.out_packets > 0 {
            add(line, format_args!("{last_sent_ns}"));
        }
        for count in [
            counts.in_packets,
            counts.in_bytes,
            counts.duplicated_packets,
            counts.out_packets,
            counts.out_bytes,
            counts.out_payload_bytes,
            drops.loss,
            drops.blackhole,
            drops.policed,
            drops.queue_full,
            drops.aqm,
            drops.ack_filtered,
            drops.store_full,
            drops.cut,
            counts.ce_packets,
            counts.served_packets,
            counts.waited_ns,
        ] {
            add(line, format_args!(",{count}"));
        }
    }
}

/// How many packets of a flow waited so long.
struct WaitLook {
    link: String,
    heading: &'static str,
    entry: u32,
    time_ns: i64,
    most_ns: u64,
    packets: u32,
}

impl Row for WaitLook {
    const COLUMNS: &'static str = "link,direction,entry,time_ns,most_ns,packets";

    fn line(&self, line: &mut String) {
        let WaitLook { link, heading, entry, time_ns, most_ns, packets } = self;
        add(line, format_args!("{link},{heading},{entry},{time_ns},{most_ns},{packets}"));
    }
}

/// A flow that has a place at a link.
struct KnownFlow {
    entry: u32,
    first_ns: i64,
    /// Its counters at the last look.
    counts: FlowReport,
}

type FlowName = (Option<u8>, Option<String>, u16, Option<String>, u16);

pub struct FlowWatch {
    flows: Table<FlowLook>,
    waits: Table<WaitLook>,
    /// Numbers of links in the plan.
    links: Vec<usize>,
    known: HashMap<(usize, usize, FlowName), KnownFlow>,
    entries: u32,
    last_ns: Option<i64>,
}

impl FlowWatch {
    /// The links begin to count flows.
    pub fn begin(counted: &CountedFlows, links: &mut Links, plan: &Plan, out: &Path) -> Result<Self, String> {
        let numbers: Vec<usize> =
            (0..plan.links.len()).filter(|number| counted.links.contains(&plan.links[*number].name)).collect();
        tell(links, &numbers, &FlowCounting { most: counted.most, ports: counted.ports.clone() })?;
        Ok(FlowWatch {
            flows: Table::create(&out.join("link_flows.csv"))?,
            waits: Table::create(&out.join("link_waits.csv"))?,
            links: numbers,
            known: HashMap::new(),
            entries: 0,
            last_ns: None,
        })
    }

    /// Writes what has come since the last look, in rows of `time_ns` after T0; `now` tells the time after T0.
    pub fn look(&mut self, links: &mut Links, plan: &Plan, time_ns: i64, now: &dyn Fn() -> i64) -> Result<(), String> {
        let reports = links.flows(&self.links)?;
        let answered_ns = now();
        for (number, ways) in self.links.clone().into_iter().zip(reports) {
            for (heading, flows) in ways.into_iter().enumerate() {
                for counts in flows {
                    self.add(&plan.links[number].name, (number, heading), [time_ns, answered_ns], counts)?;
                }
            }
        }
        self.last_ns = Some(time_ns);
        Ok(())
    }

    /// Writes the last rows. `outlives`: the lab goes on, and its links count flows no more.
    pub fn finish(
        &mut self,
        links: &mut Links,
        plan: &Plan,
        now: &dyn Fn() -> i64,
        outlives: bool,
    ) -> Result<(), String> {
        let now_ns = now();
        let read = if self.last_ns == Some(now_ns) { Ok(()) } else { self.look(links, plan, now_ns, now) };
        let told = if outlives { tell(links, &self.links, &FlowCounting::default()) } else { Ok(()) };
        read.and(told).and(self.flows.flush()).and(self.waits.flush())
    }

    fn add(
        &mut self,
        link: &str,
        (number, heading): (usize, usize),
        [time_ns, answered_ns]: [i64; 2],
        counts: FlowReport,
    ) -> Result<(), String> {
        let name = (
            counts.protocol,
            counts.source.clone(),
            counts.source_port,
            counts.destination.clone(),
            counts.destination_port,
        );
        let ago = |ago: u64| answered_ns - ago as i64;
        let entries = &mut self.entries;
        let mut begin = || {
            *entries += 1;
            KnownFlow { entry: *entries - 1, first_ns: ago(counts.first_ago_ns), counts: FlowReport::default() }
        };
        let flow = self.known.entry((number, heading, name)).or_insert_with(&mut begin);
        // It had lost its place, and counts from 0 again.
        if counts.in_packets < flow.counts.in_packets {
            *flow = begin();
        }
        let now = (counts.in_packets, counts.out_packets, counts.served_packets, &counts.drops);
        let before = &flow.counts;
        if now == (before.in_packets, before.out_packets, before.served_packets, &before.drops) {
            return Ok(());
        }
        let heading = HEADINGS[heading];
        let (last_ns, last_sent_ns) = (ago(counts.last_ago_ns), ago(counts.last_release_ago_ns));
        let KnownFlow { entry, first_ns, .. } = *flow;
        // Both lists have each class once, in its order.
        let grown = counts.waits.iter().filter(|class| flow.counts.waits.binary_search(class).is_err());
        for &(most_ns, packets) in grown {
            self.waits.add(&WaitLook { link: link.to_owned(), heading, entry, time_ns, most_ns, packets })?;
        }
        let link = link.to_owned();
        let look = FlowLook { link, heading, time_ns, entry, first_ns, last_ns, last_sent_ns, counts };
        self.flows.add(&look)?;
        flow.counts = look.counts;
        Ok(())
    }
}

/// Has both directions of each link count flows.
fn tell(links: &mut Links, numbers: &[usize], counting: &FlowCounting) -> Result<(), String> {
    let change = Change { flows: Some(counting.clone()), ..Change::default() };
    for number in numbers {
        for heading in 0..HEADINGS.len() {
            links.change(*number, heading, &change)?;
        }
    }
    Ok(())
}
