//! The kernel's own counters of a network namespace, by the names that nstat(8) gives them: `UdpRcvbufErrors`,
//! `TcpExtListenDrops`, `Ip6InDiscards`. A counter that this kernel lacks is not among them. Three are ours: `DeviceRxDropped` and
//! `DeviceTxDropped`, of all interfaces but lo (the first has what found no room in the backlog of a CPU too), and
//! `QdiscDropped`, of all queueing disciplines.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};

use crate::netlink::{self, attributes, u32_at};

/// What is counted of devices, and its place among the numbers after an interface's name in /proc/net/dev.
const DEVICES: [(&str, usize); 2] = [("DeviceRxDropped", 3), ("DeviceTxDropped", 11)];
const QDISCS: &str = "QdiscDropped";
/// Of one file: more than the longest is, so that it is read at once. In the virtual clock each call has its price.
const ROOM: usize = 32 << 10;

/// Counters by name.
pub type Counters = HashMap<String, u64>;

/// Those of these names, of the namespace that the calling thread is in; only what they are in is read.
pub fn read(names: &[impl AsRef<str>]) -> io::Result<Counters> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    Reading { wanted: Some(&names), found: Counters::new(), text: Vec::with_capacity(ROOM) }.all()
}

/// All of them.
pub fn read_all() -> io::Result<Counters> {
    Reading { wanted: None, found: Counters::new(), text: Vec::with_capacity(ROOM) }.all()
}

/// By how much a counter grew; 0 where it is in neither.
pub fn grown(before: &Counters, after: &Counters, name: &str) -> u64 {
    let value = |counters: &Counters| counters.get(name).copied().unwrap_or(0);
    value(after).saturating_sub(value(before))
}

struct Reading<'a> {
    /// None: all.
    wanted: Option<&'a [&'a str]>,
    found: Counters,
    text: Vec<u8>,
}

impl Reading<'_> {
    fn all(mut self) -> io::Result<Counters> {
        let of = |kinds: [&'static str; 2]| move |name: &str| kinds.iter().any(|kind| name.starts_with(kind));
        let extended = of(["TcpExt", "IpExt"]);
        let six = |name: &str| ["Ip6", "Icmp6", "Udp6", "UdpLite6"].iter().any(|kind| name.starts_with(kind));
        let own = of(["Device", QDISCS]);
        if self.wants(|name| !extended(name) && !six(name) && !own(name)) {
            self.load("snmp")?;
            self.tables();
        }
        if self.wants(extended) {
            self.load("netstat")?;
            self.tables();
        }
        // Not there where the kernel has no IPv6.
        if self.wants(six) && self.load("snmp6").is_ok() {
            self.lines();
        }
        if self.wants(|name| DEVICES.iter().any(|(device, _)| name == *device)) {
            self.load("dev")?;
            let text = String::from_utf8_lossy(&self.text);
            let wanted = DEVICES.iter().filter(|(name, _)| self.wants(|each| each == *name));
            let counts: Vec<_> = wanted.map(|&(name, place)| (name.to_owned(), of_devices(&text, place))).collect();
            self.found.extend(counts);
        }
        if self.wants(|name| name == QDISCS) {
            if let Ok(dropped) = qdiscs_dropped() {
                self.found.insert(QDISCS.into(), dropped);
            }
        }
        Ok(self.found)
    }

    fn wants(&self, is: impl Fn(&str) -> bool) -> bool {
        self.wanted.is_none_or(|names| names.iter().any(|name| is(name)))
    }

    fn load(&mut self, file: &str) -> io::Result<()> {
        self.text.clear();
        File::open(format!("/proc/thread-self/net/{file}"))?.read_to_end(&mut self.text).map(drop)
    }

    fn keep(found: &mut Counters, wanted: Option<&[&str]>, name: [&str; 2], value: &str) {
        let is = |known: &&str| known.strip_prefix(name[0]) == Some(name[1]);
        // One of TCP's (MaxConn) is −1.
        if let (true, Ok(value)) = (wanted.is_none_or(|names| names.iter().any(is)), value.parse()) {
            found.insert(name.concat(), value);
        }
    }

    /// Two lines for each protocol: names, values.
    fn tables(&mut self) {
        let text = String::from_utf8_lossy(&self.text);
        let mut lines = text.lines();
        while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
            let (mut names, mut values) = (names.split_whitespace(), values.split_whitespace());
            let (Some(protocol), Some(_)) = (names.next(), values.next()) else { continue };
            let protocol = protocol.trim_end_matches(':');
            for (name, value) in names.zip(values) {
                Self::keep(&mut self.found, self.wanted, [protocol, name], value);
            }
        }
    }

    /// A name and a value on each line.
    fn lines(&mut self) {
        for line in String::from_utf8_lossy(&self.text).lines() {
            let mut words = line.split_whitespace();
            if let (Some(name), Some(value)) = (words.next(), words.next()) {
                Self::keep(&mut self.found, self.wanted, [name, ""], value);
            }
        }
    }
}

/// The sum of the numbers at this place of all interfaces but lo.
fn of_devices(text: &str, place: usize) -> u64 {
    let interfaces = text.lines().filter_map(|line| line.split_once(':')).filter(|(name, _)| name.trim() != "lo");
    interfaces.filter_map(|(_, counts)| counts.split_whitespace().nth(place)?.parse::<u64>().ok()).sum()
}

/// At the roots: what a queueing discipline within another one dropped is counted there too. Formats: linux/rtnetlink.h,
/// linux/gen_stats.h.
fn qdiscs_dropped() -> netlink::Result<u64> {
    const TCMSG: usize = 20;
    const TC_H_ROOT: u32 = u32::MAX;
    const TCA_STATS2: u16 = 7;
    const TCA_STATS_QUEUE: u16 = 3;
    let mut dropped = 0;
    netlink::Socket::open()?.dump_if_there(libc::RTM_GETQDISC, &[0; TCMSG], &mut |message| {
        if message.len() < TCMSG || u32_at(message, 12) != TC_H_ROOT {
            return;
        }
        let inner = |bytes, wanted| attributes(bytes).find(|(kind, _)| *kind == wanted).map_or(&[][..], |each| each.1);
        let queue = inner(inner(&message[TCMSG..], TCA_STATS2), TCA_STATS_QUEUE);
        if queue.len() >= 12 {
            dropped += u64::from(u32_at(queue, 8));
        }
    })?;
    Ok(dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_of(tables: &str, lines: &str, wanted: Option<&[&str]>) -> Counters {
        let mut reading = Reading { wanted, found: Counters::new(), text: tables.into() };
        reading.tables();
        reading.text = lines.into();
        reading.lines();
        reading.found
    }

    #[test]
    fn both_forms_are_read() {
        let tables = "Tcp: MaxConn InErrs\nTcp: -1 4\nUdp: InErrors RcvbufErrors\nUdp: 9 7\nTcpExt:";
        let lines = "Udp6RcvbufErrors                  \t3\nIp6\n";
        let expected = [("TcpInErrs", 4), ("UdpInErrors", 9), ("UdpRcvbufErrors", 7), ("Udp6RcvbufErrors", 3)];
        assert_eq!(read_of(tables, lines, None), expected.map(|(name, value)| (name.to_owned(), value)).into());
        let some = read_of(tables, lines, Some(&["UdpRcvbufErrors", "Udp6RcvbufErrors", "RcvbufErrors"]));
        assert_eq!(some, [("UdpRcvbufErrors".to_owned(), 7), ("Udp6RcvbufErrors".to_owned(), 3)].into());
    }

    #[test]
    fn what_interfaces_dropped_is_counted_without_lo() {
        let text = "Inter-|   Receive                 |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|\
                    bytes packets errs drop\n  lo: 1 2 0 9 0 0 0 0 1 2 0 9\neth0: 5 6 0 4 0 0 0 0 5 6 0 20\n eth1:7 8 0 1 0 0 0 0 1 1 0 1\n";
        assert_eq!(DEVICES.map(|(_, place)| of_devices(text, place)), [5, 21]);
    }

    #[test]
    fn this_kernel_has_those_of_udp() {
        let names = ["UdpRcvbufErrors", "TcpExtListenDrops", "DeviceRxDropped", "DeviceTxDropped", "QdiscDropped"];
        let found = read(&names).expect("/proc/net");
        assert!(names.iter().all(|name| found.contains_key(*name)) && found.len() == names.len(), "{found:?}");
        assert!(read_all().expect("/proc/net").contains_key("IpInReceives"));
        assert_eq!(grown(&found, &found, "UdpRcvbufErrors"), 0);
        assert_eq!(grown(&Counters::new(), &[("A".to_owned(), 3)].into(), "A"), 3);
    }
}
