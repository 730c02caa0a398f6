//! The kernel's own counters of a network namespace, by the names that nstat(8) gives them: `UdpRcvbufErrors`,
//! `TcpExtListenDrops`, `Ip6InDiscards`. A counter that this kernel lacks is not among them. Two are ours: `DeviceRxDropped`, of all
//! interfaces but lo, which has what found no room in the backlog of a CPU too, and `QdiscDropped`, of all queueing disciplines.

use std::collections::HashMap;
use std::{fs, io};

use crate::netlink::{self, attributes, u32_at};

/// Counters by name.
pub type Counters = HashMap<String, u64>;

/// Of the namespace that the calling thread is in.
pub fn read() -> io::Result<Counters> {
    let mut found = Counters::new();
    tables(&fs::read_to_string("/proc/thread-self/net/snmp")?, &mut found);
    tables(&fs::read_to_string("/proc/thread-self/net/netstat")?, &mut found);
    // Not there where the kernel has no IPv6.
    lines(&fs::read_to_string("/proc/thread-self/net/snmp6").unwrap_or_default(), &mut found);
    found.insert("DeviceRxDropped".into(), received_dropped(&fs::read_to_string("/proc/thread-self/net/dev")?));
    if let Ok(dropped) = qdiscs_dropped() {
        found.insert("QdiscDropped".into(), dropped);
    }
    Ok(found)
}

/// By how much a counter grew; 0 where it is in neither.
pub fn grown(before: &Counters, after: &Counters, name: &str) -> u64 {
    let value = |counters: &Counters| counters.get(name).copied().unwrap_or(0);
    value(after).saturating_sub(value(before))
}

/// The fourth number after each interface's name.
fn received_dropped(text: &str) -> u64 {
    let interfaces = text.lines().filter_map(|line| line.split_once(':')).filter(|(name, _)| name.trim() != "lo");
    interfaces.filter_map(|(_, counts)| counts.split_whitespace().nth(3)?.parse::<u64>().ok()).sum()
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

/// Two lines for each protocol: names, values.
fn tables(text: &str, found: &mut Counters) {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (mut names, mut values) = (names.split_whitespace(), values.split_whitespace());
        let (Some(protocol), Some(_)) = (names.next(), values.next()) else { continue };
        let protocol = protocol.trim_end_matches(':');
        for (name, value) in names.zip(values) {
            // One of TCP's (MaxConn) is −1.
            if let Ok(value) = value.parse() {
                found.insert(format!("{protocol}{name}"), value);
            }
        }
    }
}

/// A name and a value on each line.
fn lines(text: &str, found: &mut Counters) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse)) {
            found.insert(name.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let mut found = Counters::new();
        tables("Tcp: MaxConn InErrs\nTcp: -1 4\nUdp: InErrors RcvbufErrors\nUdp: 9 7\nTcpExt:", &mut found);
        lines("Udp6RcvbufErrors                  \t3\nIp6\n", &mut found);
        let expected = [("TcpInErrs", 4), ("UdpInErrors", 9), ("UdpRcvbufErrors", 7), ("Udp6RcvbufErrors", 3)];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn what_interfaces_dropped_is_counted_without_lo() {
        let text =
            "Inter-| Receive\n face |bytes packets errs drop fifo\n  lo: 1 2 0 9 0\neth0: 5 6 0 4 0\n eth1:7 8 0 1 0\n";
        assert_eq!(received_dropped(text), 5);
    }

    #[test]
    fn this_kernel_has_those_of_udp() {
        let found = read().expect("/proc/net");
        assert!(found.contains_key("UdpRcvbufErrors") && found.contains_key("TcpExtListenDrops"), "{found:?}");
        assert_eq!(grown(&found, &found, "UdpRcvbufErrors"), 0);
        assert_eq!(grown(&Counters::new(), &[("A".to_owned(), 3)].into(), "A"), 3);
    }
}
