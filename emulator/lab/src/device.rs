//! A link that is a device outside: its keeper (labs/runtime/keeper.py), which is asked as a spinner is, and what passed it, as the
//! cards at its two ends count it.
//!
//! In: the plan and the state directory of a lab that is up. Out: answers of the keeper; counters.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use ewan_datapath::client::{self, Client};
use ewan_system::namespace;
use ewan_system::netlink::{attributes, u64_at, Socket};
use ewan_system::socket::interface_index;
use serde::de::DeserializeOwned;
use serde_json::{json, Value};

use crate::links::Counts;
use ewan_plan::{Backend, End, Link, Plan, HEADINGS};

/// Time for a keeper to answer: its driver may be at another request.
const ANSWER: Duration = Duration::from_secs(45);
/// linux/if_link.h; offsets in struct rtnl_link_stats64.
const IFLA_STATS64: u16 = 23;
const RX_PACKETS: usize = 0;
const RX_BYTES: usize = 2 * 8;
/// struct ifinfomsg.
const HEADER: usize = 16;
/// What the kernel counts of a frame beyond its IP packet.
const ETHERNET_HEADER: u64 = 14;

pub struct Device<'a> {
    link: &'a Link,
    client: Client,
    /// Of the cards `a` and `b`: a socket of their namespace, and their number there.
    ends: [(Socket, u32); 2],
}

impl<'a> Device<'a> {
    /// Of each link of the plan that is a device.
    pub fn open_all(plan: &'a Plan, state: &Path) -> Result<Vec<Self>, String> {
        let devices = plan.links.iter().filter(|link| link.backend == Backend::Hardware);
        devices.map(|link| Device::open(plan, link, state)).collect()
    }

    fn open(plan: &'a Plan, link: &'a Link, state: &Path) -> Result<Self, String> {
        let client = Client::connect(&state.join(format!("device-{}.sock", link.name)), ANSWER);
        let client = client.map_err(|error| silent(link, &error))?;
        Ok(Device { link, client, ends: open_ends(plan, link)? })
    }

    pub fn name(&self) -> &'a str {
        &self.link.name
    }

    /// The error of a refusal is the keeper's own.
    pub fn ask<T: DeserializeOwned>(&mut self, request: &Value) -> Result<T, String> {
        self.client.ask(request).map_err(|error| match error {
            client::Error::Refused(why) => why,
            error => silent(self.link, &error),
        })
    }

    /// Forward and backward: what came out, at the card there. What was lost or waits inside nobody counts.
    pub fn counts(&self) -> Result<[Option<Counts>; 2], String> {
        counts(self.link, &self.ends)
    }
}

fn counts(link: &Link, [a, b]: &[(Socket, u32); 2]) -> Result<[Option<Counts>; 2], String> {
    Ok([came(link, b, 0)?, came(link, a, 1)?])
}

fn came(link: &Link, (socket, index): &(Socket, u32), heading: usize) -> Result<Option<Counts>, String> {
    let mut header = [0; HEADER];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    let what = || format!("link {}: counters of a card", link.name);
    let told = socket.get(libc::RTM_GETLINK, libc::RTM_NEWLINK, &header, what, |_| {})?;
    let statistics = told.get(HEADER..).and_then(|body| attributes(body).find(|(kind, _)| *kind == IFLA_STATS64));
    let statistics = statistics.map(|(_, value)| value).filter(|value| value.len() >= RX_BYTES + 8);
    Ok(statistics.map(|statistics| {
        let (packets, bytes) = (u64_at(statistics, RX_PACKETS), u64_at(statistics, RX_BYTES));
        let overhead = u64::from(link.direction(heading).framing.overhead_bytes);
        let bytes = (bytes + packets * overhead).saturating_sub(packets * ETHERNET_HEADER);
        Counts { sent_packets: packets, sent_bytes: bytes, served_packets: packets, ..Counts::default() }
    }))
}

/// What came out of the device of one link, forward and backward, as the cards there count it: JSON. `state`: the lab's.
pub fn tell(state: &Path, name: &str, mut output: impl Write) -> Result<(), String> {
    let plan = ewan_plan::read(&state.join("plan.json"))?;
    let link = plan.links.iter().find(|link| link.name == name && link.backend == Backend::Hardware);
    let link = link.ok_or_else(|| format!("lab {} has no device {name}", plan.lab))?;
    let found = counts(link, &open_ends(&plan, link)?)?;
    let told = found.map(|found| found.map(|came| json!({ "packets": came.sent_packets, "bytes": came.sent_bytes })));
    writeln!(output, "{}", json!({ HEADINGS[0]: told[0], HEADINGS[1]: told[1] })).map_err(|error| error.to_string())
}

fn open_ends(plan: &Plan, link: &Link) -> Result<[(Socket, u32); 2], String> {
    // Namespaces are entered by a thread of its own: the caller stays where it is.
    let open = |end: &End| std::thread::scope(|scope| scope.spawn(|| open_end(plan, end)).join());
    let [a, b] = [&link.a, &link.b].map(|end| match open(end) {
        Ok(opened) => opened.map_err(|error| format!("link {}: {}:{}: {error}", link.name, end.node, end.interface)),
        Err(_) => Err(format!("link {}: opening its ends failed", link.name)),
    });
    Ok([a?, b?])
}

fn open_end(plan: &Plan, end: &End) -> Result<(Socket, u32), String> {
    namespace::enter_path(&plan.netns_path(&end.node))?;
    let index = interface_index(&end.interface)?;
    Ok((Socket::open()?, index))
}

fn silent(link: &Link, error: &dyn std::fmt::Display) -> String {
    format!("link {}: the keeper of its device does not answer: {error}", link.name)
}
