//! TCP connections that ask for ECN (RFC 3168) while no other of the same node does.
//!
//! A first packet asks for it where the node's sysctl tcp_ecn is 1, which says so for everybody, or where its route has
//! the feature `ecn`. Here the socket alone gets such a route: it bears a mark, and a rule sends packets of this mark to a
//! table of their own, which holds a copy of the route that the node has. Mark, rule and table are this process's (its
//! number is in them), and all three are gone when the first packet has been sent. Whoever is killed before that leaves a
//! rule and a route that no packet matches.
//!
//! Numbers are from linux/fib_rules.h and linux/rtnetlink.h.

use std::net::IpAddr;

use ewan_system::netlink::{self, attributes, u32_of, Attributes, Batch, Socket};

const FRA_PRIORITY: u16 = 6;
const FRA_FWMARK: u16 = 10;
const FRA_TABLE: u16 = 15;
const FR_ACT_TO_TBL: u8 = 1;
/// Before all rules that a person may have made, after that of the node's own addresses.
const FIRST: u32 = 1;
const RTAX_FEATURES: u16 = 12;
const RTAX_FEATURE_ECN: u32 = 1;
const RTNH_F_ONLINK: u32 = 4;
/// struct rtmsg, struct fib_rule_hdr.
const HEADER: usize = 12;
/// A process's number fits below it.
const MARK: u32 = 0x4000_0000;

/// A rule and a route of the namespace that it was made in; `remove` takes them away.
pub struct Route {
    socket: Socket,
    to: IpAddr,
    /// Of the socket that is to take this route.
    pub mark: u32,
}

impl Route {
    /// A copy of the route from `from` to `to`, with ECN; None where packets stay in the node and meet no queue that
    /// could mark them. Errors: the first part is what was attempted.
    pub fn add(from: IpAddr, to: IpAddr) -> netlink::Result<Option<Self>> {
        let socket = Socket::open()?;
        let found = existing(&socket, from, to)?;
        let Some(message) = copy(&found) else { return Ok(None) };
        let route = Route { socket, to, mark: MARK | std::process::id() };
        let _ = route.remove(); // of a process that had our number, and was killed
        let mut batch = Batch::default();
        let creates = batch.creates();
        batch.add(libc::RTM_NEWROUTE, creates, &message.header, format!("route to {to} with ECN"), |body| {
            route.name(body);
            for (kind, value) in &message.parts {
                body.bytes(*kind, value);
            }
        });
        batch.add(libc::RTM_NEWRULE, creates, &rule(to), format!("rule for the route to {to} with ECN"), |body| {
            route.select(body);
        });
        batch.needs("policy routing (CONFIG_IP_MULTIPLE_TABLES, CONFIG_IPV6_MULTIPLE_TABLES)");
        if let Err(error) = route.socket.run(batch) {
            let _ = route.remove();
            return Err(error);
        }
        Ok(Some(route))
    }

    pub fn remove(&self) -> netlink::Result<()> {
        let mut batch = Batch::default();
        batch.add(libc::RTM_DELRULE, 0, &rule(self.to), "removing the rule for ECN".into(), |body| self.select(body));
        let mut header = [0; HEADER];
        (header[0], header[1]) = family_and_bits(self.to);
        header[6] = libc::RT_SCOPE_NOWHERE; // whatever scope it has
        batch.add(libc::RTM_DELROUTE, 0, &header, "removing the route with ECN".into(), |body| self.name(body));
        self.socket.run(batch)
    }

    fn name(&self, body: &mut Attributes) {
        body.u32(libc::RTA_TABLE, self.mark).bytes(libc::RTA_DST, &octets(self.to));
    }

    fn select(&self, body: &mut Attributes) {
        body.u32(FRA_PRIORITY, FIRST).u32(FRA_FWMARK, self.mark).u32(FRA_TABLE, self.mark);
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn family_and_bits(address: IpAddr) -> (u8, u8) {
    match address {
        IpAddr::V4(_) => (libc::AF_INET as u8, 32),
        IpAddr::V6(_) => (libc::AF_INET6 as u8, 128),
    }
}

fn rule(to: IpAddr) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[0] = family_and_bits(to).0;
    header[7] = FR_ACT_TO_TBL;
    header
}

/// The kernel's answer to where it would send a packet.
fn existing(socket: &Socket, from: IpAddr, to: IpAddr) -> netlink::Result<Vec<u8>> {
    let mut header = [0; HEADER];
    (header[0], header[1]) = family_and_bits(to);
    header[2] = header[1];
    socket.get(
        libc::RTM_GETROUTE,
        libc::RTM_NEWROUTE,
        &header,
        || format!("route to {to}"),
        |body| {
            body.bytes(libc::RTA_DST, &octets(to)).bytes(libc::RTA_SRC, &octets(from));
        },
    )
}

/// A route for one destination, but for the destination itself and the table.
#[derive(Debug, PartialEq, Eq)]
struct Copy {
    header: [u8; HEADER],
    parts: Vec<(u16, Vec<u8>)>,
}

/// The same interface, gateway and metrics, and ECN; None where packets stay in the node.
fn copy(found: &[u8]) -> Option<Copy> {
    let (told, body) = (found.get(..HEADER)?, found.get(HEADER..)?);
    if told[7] != libc::RTN_UNICAST {
        return None;
    }
    let mut parts = Vec::new();
    let (mut metrics, mut features, mut gateway) = (Vec::new(), RTAX_FEATURE_ECN, false);
    for (kind, value) in attributes(body) {
        match kind {
            libc::RTA_OIF => parts.push((kind, value.to_vec())),
            libc::RTA_GATEWAY | libc::RTA_VIA => {
                gateway = true;
                parts.push((kind, value.to_vec()));
            }
            libc::RTA_METRICS => {
                for (metric, value) in attributes(value) {
                    if metric == RTAX_FEATURES {
                        features |= u32_of(value).unwrap_or(0);
                    } else {
                        Attributes::new(&mut metrics).bytes(metric, value);
                    }
                }
            }
            _ => {}
        }
    }
    Attributes::new(&mut metrics).u32(RTAX_FEATURES, features);
    parts.push((libc::RTA_METRICS, metrics));
    let mut header = [0; HEADER];
    (header[0], header[1]) = (told[0], if told[0] == libc::AF_INET as u8 { 32 } else { 128 });
    (header[5], header[7]) = (libc::RTPROT_STATIC, libc::RTN_UNICAST);
    header[6] = if gateway { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
    header[8..12].copy_from_slice(&(if gateway { RTNH_F_ONLINK } else { 0 }).to_ne_bytes());
    Some(Copy { header, parts })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: u8, fill: impl FnOnce(&mut Attributes)) -> Vec<u8> {
        let mut bytes = vec![libc::AF_INET as u8, 32, 0, 0, 254, 0, 0, kind, 0, 0, 0, 0];
        fill(&mut Attributes::new(&mut bytes));
        bytes
    }

    #[test]
    fn a_copy_keeps_the_way_and_the_metrics() {
        const RTAX_INITCWND: u16 = 11;
        let found = told(libc::RTN_UNICAST, |route| {
            route
                .u32(libc::RTA_OIF, 3)
                .bytes(libc::RTA_GATEWAY, &[10, 0, 0, 1])
                .bytes(libc::RTA_PREFSRC, &[10, 0, 0, 2]);
            route.nested(libc::RTA_METRICS, &[], |metrics| {
                metrics.u32(RTAX_INITCWND, 20).u32(RTAX_FEATURES, 2);
            });
        });
        let copied = copy(&found).expect("a route to another node");
        assert_eq!(copied.header, [2, 32, 0, 0, 0, 4, 0, 1, 4, 0, 0, 0], "on link, for one address");
        let mut metrics = Vec::new();
        Attributes::new(&mut metrics).u32(RTAX_INITCWND, 20).u32(RTAX_FEATURES, 3);
        let parts = [
            (libc::RTA_OIF, 3u32.to_ne_bytes().to_vec()),
            (libc::RTA_GATEWAY, vec![10, 0, 0, 1]),
            (libc::RTA_METRICS, metrics),
        ];
        assert_eq!(copied.parts, parts);
    }

    #[test]
    fn a_neighbour_needs_no_gateway_and_the_node_itself_no_route() {
        let copied = copy(&told(libc::RTN_UNICAST, |route| {
            route.u32(libc::RTA_OIF, 3);
        }))
        .expect("a route");
        assert_eq!(copied.header, [2, 32, 0, 0, 0, 4, 253, 1, 0, 0, 0, 0]);
        assert_eq!(copy(&told(libc::RTN_LOCAL, |_| {})), None);
        assert_eq!(copy(&[0; 5]), None);
    }

    proptest::proptest! {
        #[test]
        fn a_copy_of_any_bytes_is_of_what_was_told(
            kind in proptest::option::of(0..12u8), bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..160),
        ) {
            // A route to another node, and what may follow it.
            let bytes = kind.map_or(bytes.clone(), |kind| [told(kind, |_| {}), bytes].concat());
            if let Some(copied) = copy(&bytes) {
                proptest::prop_assert_eq!(bytes[7], libc::RTN_UNICAST);
                let (metrics, others) = copied.parts.split_last().expect("metrics");
                proptest::prop_assert_eq!(metrics.0, libc::RTA_METRICS);
                for (_, value) in others {
                    proptest::prop_assert!(value.is_empty() || bytes.windows(value.len()).any(|found| found == value));
                }
            }
        }
    }
}
