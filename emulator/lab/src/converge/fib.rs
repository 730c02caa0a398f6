//! What a node's kernel would do with a packet: its interfaces' carriers and its main routing table, read by netlink.
//!
//! In: a netlink socket in the node's namespace. Out: for an address the interface and the gateway that its longest
//! prefix names, if the interface has a carrier. Numbers are from linux/if_link.h and linux/rtnetlink.h.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ewan_system::netlink::{attributes, u32_at, u32_of, Socket};
use serde::{Deserialize, Serialize};

const IFF_LOWER_UP: u32 = 0x1_0000;
const RTNH_F_DEAD: u32 = 1;
const RTNH_F_LINKDOWN: u32 = 16;

/// Where a packet goes next: out of an interface, to a gateway or straight to its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    pub interface: String,
    pub gateway: Option<IpAddr>,
}

/// Is it IPv6, how many bits, which.
type Prefix = (bool, u8, u128);
/// Metric, interface, gateway.
type Target = (u32, u32, Option<IpAddr>);

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(from = "FibMessage", into = "FibMessage")]
pub struct Fib {
    /// By index: name, and whether frames can leave.
    interfaces: HashMap<u32, (String, bool)>,
    routes: HashMap<Prefix, Target>,
    lengths: BTreeSet<(bool, u8)>,
}

impl Fib {
    pub fn read(socket: &Socket) -> Result<Self, String> {
        let mut fib = Fib::default();
        socket.dump(libc::RTM_GETLINK, &[0; 16], &mut |message| fib.see_interface(message))?;
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut header = [0; 12];
            header[0] = family as u8;
            // A kernel without IPv6 has no such routes.
            socket.dump_if_there(libc::RTM_GETROUTE, &header, &mut |message| fib.see_route(message))?;
        }
        Ok(fib)
    }

    fn see_interface(&mut self, message: &[u8]) {
        const UP: u32 = IFF_LOWER_UP | libc::IFF_UP as u32;
        let Some(body) = message.get(16..) else { return };
        let name = attributes(body).find(|(kind, _)| *kind == libc::IFLA_IFNAME);
        if let Some((_, name)) = name {
            let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
            self.interfaces.insert(u32_at(message, 4), (name, u32_at(message, 8) & UP == UP));
        }
    }

    fn see_route(&mut self, message: &[u8]) {
        let Some(body) = message.get(12..) else { return };
        let (family, length, kind, flags) = (message[0], message[1], message[7], u32_at(message, 8));
        let v6 = i32::from(family) == libc::AF_INET6;
        let mut table = u32::from(message[4]);
        let (mut to, mut via, mut out, mut metric) = (0, None, None, 0);
        for (name, value) in attributes(body) {
            match name {
                libc::RTA_TABLE => table = u32_of(value).unwrap_or(table),
                libc::RTA_DST => to = address(value).map_or(0, bits),
                libc::RTA_GATEWAY => via = address(value),
                libc::RTA_OIF => out = u32_of(value),
                libc::RTA_PRIORITY => metric = u32_of(value).unwrap_or(0),
                // The first of several equal ways: struct rtnexthop, then attributes.
                libc::RTA_MULTIPATH if value.len() >= 8 => {
                    out = Some(u32_at(value, 4));
                    let end = (u32_at(value, 0) as u16 as usize).clamp(8, value.len());
                    via = attributes(&value[8..end])
                        .find(|(kind, _)| *kind == libc::RTA_GATEWAY)
                        .and_then(|(_, v)| address(v));
                }
                _ => {}
            }
        }
        let dead = flags & (RTNH_F_DEAD | RTNH_F_LINKDOWN) != 0;
        let Some(out) = out else { return };
        if kind != libc::RTN_UNICAST || table != u32::from(libc::RT_TABLE_MAIN) || dead {
            return;
        }
        let key = (v6, length, to);
        if self.routes.get(&key).is_none_or(|(known, ..)| metric < *known) {
            self.routes.insert(key, (metric, out, via));
            self.lengths.insert((v6, length));
        }
    }

    /// Where the node sends a packet to `to`; none where it drops it.
    pub fn hop(&self, to: IpAddr) -> Option<Hop> {
        let (v6, wanted) = (to.is_ipv6(), bits(to));
        let lengths = self.lengths.iter().rev().filter(|(family, _)| *family == v6);
        let found = lengths.map(|(_, length)| (v6, *length, prefix(wanted, *length, v6)));
        let (_, out, gateway) = found.filter_map(|key| self.routes.get(&key)).next()?;
        let (name, carries) = self.interfaces.get(out)?;
        carries.then(|| Hop { interface: name.clone(), gateway: *gateway })
    }

    pub fn carries(&self, interface: &str) -> bool {
        self.interfaces.values().any(|(name, carries)| name == interface && *carries)
    }
}

/// The same from one machine to another.
#[derive(Serialize, Deserialize)]
struct FibMessage {
    /// Index, name, whether frames can leave.
    interfaces: Vec<(u32, String, bool)>,
    /// Destination, its length, metric, index, gateway.
    routes: Vec<(IpAddr, u8, u32, u32, Option<IpAddr>)>,
}

impl From<Fib> for FibMessage {
    fn from(fib: Fib) -> Self {
        let interfaces = fib.interfaces.into_iter().map(|(index, (name, carries))| (index, name, carries));
        let route = |((v6, length, to), (metric, out, via)): (Prefix, Target)| {
            let to = if v6 { Ipv6Addr::from(to).into() } else { Ipv4Addr::from(to as u32).into() };
            (to, length, metric, out, via)
        };
        FibMessage { interfaces: interfaces.collect(), routes: fib.routes.into_iter().map(route).collect() }
    }
}

impl From<FibMessage> for Fib {
    fn from(told: FibMessage) -> Self {
        let mut fib = Fib::default();
        fib.interfaces.extend(told.interfaces.into_iter().map(|(index, name, carries)| (index, (name, carries))));
        for (to, length, metric, out, via) in told.routes {
            fib.routes.insert((to.is_ipv6(), length, bits(to)), (metric, out, via));
            fib.lengths.insert((to.is_ipv6(), length));
        }
        fib
    }
}

fn address(value: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(value).ok().map(|octets| IpAddr::from(Ipv4Addr::from(octets)));
    v4.or_else(|| <[u8; 16]>::try_from(value).ok().map(|octets| IpAddr::from(Ipv6Addr::from(octets))))
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

/// The first `length` bits of an address, the others zero.
fn prefix(address: u128, length: u8, v6: bool) -> u128 {
    let others = (if v6 { 128u32 } else { 32 }).saturating_sub(length.into());
    address.checked_shr(others).map_or(0, |first| first << others)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Routes as (prefix, length, interface, gateway); of interfaces 1, 2, … the ones named in `carriers` carry.
    pub fn fib(carriers: &[(&str, bool)], routes: &[(&str, u8, &str, Option<&str>)]) -> Fib {
        let mut fib = Fib::default();
        for (index, (name, carries)) in carriers.iter().enumerate() {
            fib.interfaces.insert(index as u32 + 1, ((*name).to_owned(), *carries));
        }
        for (to, length, interface, via) in routes {
            let to: IpAddr = to.parse().expect("an address");
            let out = carriers.iter().position(|(name, _)| name == interface).expect("known") as u32 + 1;
            let via = via.map(|via| via.parse().expect("an address"));
            fib.routes.insert((to.is_ipv6(), *length, bits(to)), (0, out, via));
            fib.lengths.insert((to.is_ipv6(), *length));
        }
        fib
    }

    fn hop(fib: &Fib, to: &str) -> Option<(String, Option<String>)> {
        let hop = fib.hop(to.parse().expect("an address"))?;
        Some((hop.interface, hop.gateway.map(|gateway| gateway.to_string())))
    }

    #[test]
    fn the_longest_prefix_decides_in_each_family() {
        let routes = [
            ("0.0.0.0", 0, "eth0", Some("10.0.0.1")),
            ("10.1.0.0", 16, "eth1", Some("10.0.0.5")),
            ("10.1.2.0", 30, "eth0", None),
            ("fd00::", 64, "eth1", Some("fe80::1")),
        ];
        let fib = fib(&[("eth0", true), ("eth1", true)], &routes);
        assert_eq!(hop(&fib, "10.1.2.1"), Some(("eth0".into(), None)));
        assert_eq!(hop(&fib, "10.1.9.9"), Some(("eth1".into(), Some("10.0.0.5".into()))));
        assert_eq!(hop(&fib, "192.0.2.1"), Some(("eth0".into(), Some("10.0.0.1".into()))));
        assert_eq!(hop(&fib, "fd00::7"), Some(("eth1".into(), Some("fe80::1".into()))));
        assert_eq!(hop(&fib, "fd01::7"), None);
    }

    #[test]
    fn another_machine_is_told_all_of_it() {
        let routes = [("10.1.0.0", 16, "eth1", Some("10.0.0.5")), ("fd00::", 64, "eth1", Some("fe80::1"))];
        let text = serde_json::to_string(&fib(&[("eth0", false), ("eth1", true)], &routes)).expect("JSON");
        let told: Fib = serde_json::from_str(&text).expect("what was told");
        assert_eq!(hop(&told, "10.1.9.9"), Some(("eth1".into(), Some("10.0.0.5".into()))));
        assert_eq!(hop(&told, "fd00::7"), Some(("eth1".into(), Some("fe80::1".into()))));
        assert_eq!(hop(&told, "10.2.0.1"), None);
        assert!(told.carries("eth1") && !told.carries("eth0"));
    }

    #[test]
    fn nothing_leaves_an_interface_without_a_carrier() {
        let fib = fib(&[("eth0", false)], &[("0.0.0.0", 0, "eth0", None)]);
        assert_eq!(hop(&fib, "10.0.0.1"), None);
        assert!(!fib.carries("eth0") && !fib.carries("eth9"));
    }

    mod properties {
        use ewan_system::netlink::Attributes;
        use proptest::collection::vec;
        use proptest::prelude::*;

        use super::*;

        /// Attributes of the kinds that are read, of the length that they have or another.
        fn message(header: usize) -> impl Strategy<Value = Vec<u8>> {
            let kinds = [libc::IFLA_IFNAME, libc::RTA_DST, libc::RTA_GATEWAY, libc::RTA_OIF, libc::RTA_PRIORITY];
            let kind = prop::sample::select([&kinds[..], &[libc::RTA_TABLE, libc::RTA_MULTIPATH]].concat());
            let number =
                prop_oneof![Just(0u32), Just(1), Just(254), any::<u32>()].prop_map(|n| n.to_ne_bytes().to_vec());
            let value = prop_oneof![number, vec(any::<u8>(), 16), vec(any::<u8>(), 0..40)];
            let family = prop_oneof![Just(libc::AF_INET as u8), Just(libc::AF_INET6 as u8), any::<u8>()];
            let fixed = (family, any::<u8>(), vec(any::<u8>(), header), any::<bool>());
            let likely =
                (fixed, vec((kind, value), 0..8)).prop_map(|((family, length, mut bytes, plain), attributes)| {
                    (bytes[0], bytes[1]) = (family, length);
                    if plain {
                        bytes[4..].fill(0);
                        (bytes[4], bytes[7]) = (libc::RT_TABLE_MAIN, libc::RTN_UNICAST);
                    }
                    for (kind, value) in attributes {
                        Attributes::new(&mut bytes).bytes(kind, &value);
                    }
                    bytes
                });
            let cut = (likely, any::<prop::sample::Index>(), 0..4u8).prop_map(|(mut bytes, end, cut)| {
                bytes.truncate(if cut == 0 { end.index(bytes.len()) } else { bytes.len() });
                bytes
            });
            prop_oneof![4 => cut, 1 => vec(any::<u8>(), 0..120)]
        }

        proptest! {
            #[test]
            fn whatever_a_kernel_tells_a_way_is_looked_up(
                interfaces in vec(message(16), 0..4), routes in vec(message(12), 0..8), to in any::<[u8; 16]>(),
            ) {
                let mut fib = Fib::default();
                interfaces.iter().for_each(|message| fib.see_interface(message));
                routes.iter().for_each(|message| fib.see_route(message));
                let v4 = <[u8; 4]>::try_from(&to[..4]).expect("four");
                for to in [IpAddr::from(v4), IpAddr::from(to)] {
                    let hop = fib.hop(to);
                    prop_assert!(hop.is_none_or(|hop| fib.carries(&hop.interface)));
                }
            }
        }
    }
}
