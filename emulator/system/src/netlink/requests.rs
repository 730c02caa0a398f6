//! The requests that make a lab's interfaces: veth pairs, addresses, neighbours, routes.
//!
//! In: parts of the plan and interface numbers. Out: requests in a `Batch`. Numbers are from linux/if_link.h,
//! linux/if_addr.h, linux/neighbour.h, linux/rtnetlink.h.

use std::net::IpAddr;
use std::os::fd::RawFd;

use super::{Attributes, Batch};

const VETH_INFO_PEER: u16 = 1;
const CREATE: i32 = libc::NLM_F_CREATE | libc::NLM_F_EXCL;

/// One end of a veth pair, decided before it exists.
pub struct Port<'a> {
    pub name: &'a str,
    pub index: u32,
    pub mac: [u8; 6],
    pub mtu: u32,
}

pub(super) fn ifinfo(index: u32, flags: u32) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&flags.to_ne_bytes());
    header
}

/// A veth pair: `port` in the socket's own namespace, `peer` in namespace `peer_namespace`; no other sees them.
///
/// One queue each way, as the link's port has, and one segment a packet: TCP's own segmentation would otherwise
/// hand queues packets of 64 kB, and a limit in packets or a burst in bytes would mean something else.
pub fn veth(batch: &mut Batch, port: &Port, peer: &Port, peer_namespace: RawFd, what: String) {
    batch.add(libc::RTM_NEWLINK, CREATE, &ifinfo(port.index, 0), what, |link| {
        end(link, port);
        link.nested(libc::IFLA_LINKINFO, &[], |info| {
            info.text(libc::IFLA_INFO_KIND, "veth").nested(libc::IFLA_INFO_DATA, &[], |data| {
                data.nested(VETH_INFO_PEER, &ifinfo(peer.index, 0), |other| {
                    end(other, peer);
                    other.u32(libc::IFLA_NET_NS_FD, peer_namespace as u32);
                });
            });
        });
    });
    batch.needs("virtual Ethernet pairs (CONFIG_VETH)");
}

/// A veth pair whose both ends stay in the socket's own namespace; `peer` is brought up, has a number of the kernel's
/// choice, and no use of its own.
pub fn veth_alone(batch: &mut Batch, port: &Port, peer: &str, what: String) {
    batch.add(libc::RTM_NEWLINK, CREATE, &ifinfo(port.index, 0), what, |link| {
        end(link, port);
        link.nested(libc::IFLA_LINKINFO, &[], |info| {
            info.text(libc::IFLA_INFO_KIND, "veth").nested(libc::IFLA_INFO_DATA, &[], |data| {
                data.nested(VETH_INFO_PEER, &ifinfo(0, 0), |other| {
                    other.text(libc::IFLA_IFNAME, peer).u32(libc::IFLA_MTU, port.mtu);
                });
            });
        });
    });
    batch.needs("virtual Ethernet pairs (CONFIG_VETH)");
    batch.add(libc::RTM_NEWLINK, 0, &ifinfo(0, libc::IFF_UP as u32), format!("{peer}: bringing it up"), |link| {
        link.text(libc::IFLA_IFNAME, peer);
    });
}

/// An interface that is a VLAN of `parent`, with the kernel's own 802.1Q.
pub fn vlan(batch: &mut Batch, port: &Port, parent: u32, vlan: u16, what: String) {
    batch.add(libc::RTM_NEWLINK, CREATE, &ifinfo(port.index, 0), what, |link| {
        link.text(libc::IFLA_IFNAME, port.name)
            .bytes(libc::IFLA_ADDRESS, &port.mac)
            .u32(libc::IFLA_MTU, port.mtu)
            .u32(libc::IFLA_LINK, parent)
            .u32(libc::IFLA_GSO_MAX_SEGS, 1);
        link.nested(libc::IFLA_LINKINFO, &[], |info| {
            info.text(libc::IFLA_INFO_KIND, "vlan").nested(libc::IFLA_INFO_DATA, &[], |data| {
                const IFLA_VLAN_ID: u16 = 1;
                data.bytes(IFLA_VLAN_ID, &vlan.to_ne_bytes());
            });
        });
    });
    batch.needs("802.1Q (CONFIG_VLAN_8021Q)");
}

/// A tunnel between two machines (VXLAN, RFC 7348): `vni` tells the tunnels of a UDP port apart.
pub struct Vxlan {
    pub vni: u32,
    pub local: IpAddr,
    pub remote: IpAddr,
    pub port: u16,
}

/// An interface of namespace `namespace`, the socket's own if None, that is a tunnel's end; the tunnel's own packets stay
/// in the socket's namespace.
///
/// It learns no addresses: whatever is sent goes to the one other end. Nothing is fragmented on the way. All packets
/// have one source port, so that a network with several paths keeps them on one, in order. Within one namespace the
/// outer packets have the inner ones' traffic class.
pub fn vxlan(batch: &mut Batch, port: &Port, namespace: Option<RawFd>, tunnel: &Vxlan, what: String) {
    const ID: u16 = 1;
    const GROUP: u16 = 2;
    const LOCAL: u16 = 4;
    const TOS: u16 = 6;
    const LEARNING: u16 = 7;
    const PORT_RANGE: u16 = 10;
    const PORT: u16 = 15;
    const GROUP6: u16 = 16;
    const LOCAL6: u16 = 17;
    const DF: u16 = 29;
    let (group, local) = if tunnel.remote.is_ipv4() { (GROUP, LOCAL) } else { (GROUP6, LOCAL6) };
    // The upper bound is not used itself.
    let range = [tunnel.port.to_be_bytes(), tunnel.port.saturating_add(1).to_be_bytes()].concat();
    batch.add(libc::RTM_NEWLINK, CREATE, &ifinfo(port.index, 0), what, |link| {
        end(link, port);
        if let Some(namespace) = namespace {
            link.u32(libc::IFLA_NET_NS_FD, namespace as u32);
        }
        link.nested(libc::IFLA_LINKINFO, &[], |info| {
            info.text(libc::IFLA_INFO_KIND, "vxlan").nested(libc::IFLA_INFO_DATA, &[], |data| {
                data.u32(ID, tunnel.vni)
                    .bytes(group, &octets(tunnel.remote))
                    .bytes(local, &octets(tunnel.local))
                    .bytes(LEARNING, &[0])
                    .bytes(PORT_RANGE, &range)
                    .bytes(PORT, &tunnel.port.to_be_bytes())
                    .bytes(DF, &[1]);
                if namespace.is_none() {
                    data.bytes(TOS, &[INHERIT]);
                }
            });
        });
    });
    batch.needs(VXLAN);
}

/// Names of the options without which a kernel has no such interfaces.
pub const GRE: &str = "GRE (CONFIG_NET_IPGRE)";
pub const GRE_V6: &str = "GRE over IPv6 (CONFIG_IPV6_GRE)";
pub const VXLAN: &str = "VXLAN (CONFIG_VXLAN)";
pub const WIREGUARD: &str = "WireGuard (CONFIG_WIREGUARD)";

/// The end of a tunnel whose outer packets stay in the namespace of the inner ones.
pub struct Outer {
    pub local: IpAddr,
    pub remote: IpAddr,
}

/// An end of a GRE tunnel (RFC 2784), without a key. The outer packets have the inner ones' traffic class, and are not
/// fragmented.
pub fn gre(batch: &mut Batch, port: &Port, outer: &Outer, what: String) {
    const LOCAL: u16 = 6;
    const REMOTE: u16 = 7;
    const TTL: u16 = 8;
    const TOS: u16 = 9;
    const FLAGS: u16 = 13;
    /// No option of IPv6 that limits nesting, and the inner traffic class (linux/ip6_tunnel.h).
    const V6: u32 = 0x1 | 0x2;
    let v4 = outer.remote.is_ipv4();
    batch.add(libc::RTM_NEWLINK, CREATE, &ifinfo(port.index, 0), what, |link| {
        link.text(libc::IFLA_IFNAME, port.name).u32(libc::IFLA_MTU, port.mtu).u32(libc::IFLA_GSO_MAX_SEGS, 1);
        link.nested(libc::IFLA_LINKINFO, &[], |info| {
            info.text(libc::IFLA_INFO_KIND, if v4 { "gre" } else { "ip6gre" }).nested(
                libc::IFLA_INFO_DATA,
                &[],
                |data| {
                    data.bytes(LOCAL, &octets(outer.local)).bytes(REMOTE, &octets(outer.remote)).bytes(TTL, &[255]);
                    if v4 {
                        data.bytes(TOS, &[INHERIT]);
                    } else {
                        data.u32(FLAGS, V6);
                    }
                },
            );
        });
    });
    batch.needs(if v4 { GRE } else { GRE_V6 });
}

/// In place of a traffic class: that of the inner packet.
const INHERIT: u8 = 1;

/// An interface of WireGuard, which sends nothing before it has keys (`wireguard.rs`).
pub fn wireguard(batch: &mut Batch, port: &Port, what: String) {
    batch.add(libc::RTM_NEWLINK, CREATE, &ifinfo(port.index, 0), what, |link| {
        link.text(libc::IFLA_IFNAME, port.name).u32(libc::IFLA_MTU, port.mtu).u32(libc::IFLA_GSO_MAX_SEGS, 1);
        link.nested(libc::IFLA_LINKINFO, &[], |info| {
            info.text(libc::IFLA_INFO_KIND, "wireguard");
        });
    });
    batch.needs(WIREGUARD);
}

fn end(link: &mut Attributes, port: &Port) {
    link.text(libc::IFLA_IFNAME, port.name)
        .bytes(libc::IFLA_ADDRESS, &port.mac)
        .u32(libc::IFLA_MTU, port.mtu)
        .u32(libc::IFLA_NUM_TX_QUEUES, 1)
        .u32(libc::IFLA_NUM_RX_QUEUES, 1)
        .u32(libc::IFLA_GSO_MAX_SEGS, 1);
}

/// Other than it is: MTU and MAC where they differ, and one segment a packet.
pub fn correct(batch: &mut Batch, index: u32, mtu: Option<u32>, mac: Option<[u8; 6]>, what: String) {
    batch.add(libc::RTM_NEWLINK, 0, &ifinfo(index, 0), what, |link| {
        if let Some(mtu) = mtu {
            link.u32(libc::IFLA_MTU, mtu);
        }
        if let Some(mac) = mac {
            link.bytes(libc::IFLA_ADDRESS, &mac);
        }
        link.u32(libc::IFLA_GSO_MAX_SEGS, 1);
    });
}

/// How many segments of TCP a packet may hold.
pub fn segments(batch: &mut Batch, index: u32, most: u32, what: String) {
    batch.add(libc::RTM_NEWLINK, 0, &ifinfo(index, 0), what, |link| {
        link.u32(libc::IFLA_GSO_MAX_SEGS, most);
    });
}

/// Brings an interface up.
pub fn up(batch: &mut Batch, index: u32, what: String) {
    batch.add(libc::RTM_NEWLINK, 0, &ifinfo(index, libc::IFF_UP as u32), what, |_| {});
}

/// Takes an interface down.
pub fn down(batch: &mut Batch, index: u32, what: String) {
    let mut header = ifinfo(index, libc::IFF_UP as u32);
    header[8..12].fill(0); // the flags; what follows says which of them are meant
    batch.add(libc::RTM_NEWLINK, 0, &header, what, |_| {});
}

/// Takes the carrier of an interface that has no cable away, or gives it back: its addresses and its own state stay.
pub fn protocol_down(batch: &mut Batch, index: u32, down: bool, what: String) {
    const PROTO_DOWN: u16 = 39;
    batch.add(libc::RTM_NEWLINK, 0, &ifinfo(index, 0), what, |link| {
        link.bytes(PROTO_DOWN, &[u8::from(down)]);
    });
}

/// Removes an interface; when this is answered, what it had is free.
pub fn remove(batch: &mut Batch, index: u32, what: String) {
    batch.add(libc::RTM_DELLINK, 0, &ifinfo(index, 0), what, |_| {});
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() {
        libc::AF_INET as u8
    } else {
        libc::AF_INET6 as u8
    }
}

/// An address without duplicate address detection: it is usable at once and sends nothing.
pub fn address(batch: &mut Batch, index: u32, address: IpAddr, prefix: u8, what: String) {
    let flags = if address.is_ipv6() { libc::IFA_F_NODAD as u8 } else { 0 };
    let mut header = [family(address), prefix, flags, 0, 0, 0, 0, 0];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    batch.add(libc::RTM_NEWADDR, batch.creates(), &header, what, |body| {
        body.bytes(libc::IFA_LOCAL, &octets(address)).bytes(libc::IFA_ADDRESS, &octets(address));
        if let (IpAddr::V4(v4), true) = (address, prefix < 31) {
            const IFA_BROADCAST: u16 = 4;
            let broadcast = u32::from(v4) | u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
            body.bytes(IFA_BROADCAST, &broadcast.to_be_bytes());
        }
    });
    batch.needs(if address.is_ipv4() { "IPv4" } else { "IPv6 (or it is switched off: ipv6.disable=1)" });
}

/// Takes an address from an interface.
pub fn remove_address(batch: &mut Batch, index: u32, address: IpAddr, prefix: u8, what: String) {
    let mut header = [family(address), prefix, 0, 0, 0, 0, 0, 0];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    batch.add(libc::RTM_DELADDR, 0, &header, what, |body| {
        body.bytes(libc::IFA_LOCAL, &octets(address)).bytes(libc::IFA_ADDRESS, &octets(address));
    });
}

/// A permanent neighbour: no ARP, no neighbour discovery.
pub fn neighbour(batch: &mut Batch, index: u32, address: IpAddr, mac: [u8; 6], what: String) {
    const NUD_PERMANENT: u8 = 0x80;
    const NDA_DST: u16 = 1;
    const NDA_LLADDR: u16 = 2;
    let mut header = [0; 12];
    header[0] = family(address);
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8] = NUD_PERMANENT;
    batch.add(libc::RTM_NEWNEIGH, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &header, what, |body| {
        body.bytes(NDA_DST, &octets(address)).bytes(NDA_LLADDR, &mac);
    });
}

/// What a route tells TCP: `quickack` and `window` of ip-route(8).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Metrics {
    pub quick_acks: bool,
    pub window_bytes: Option<u32>,
}

impl Metrics {
    fn say(self, body: &mut Attributes) {
        const RTA_METRICS: u16 = 8;
        const RTAX_WINDOW: u16 = 3;
        const RTAX_QUICKACK: u16 = 15;
        if self == Self::default() {
            return;
        }
        body.nested(RTA_METRICS, &[], |metrics| {
            if let Some(bytes) = self.window_bytes {
                metrics.u32(RTAX_WINDOW, bytes);
            }
            if self.quick_acks {
                metrics.u32(RTAX_QUICKACK, 1);
            }
        });
    }
}

/// The route that the kernel has made with an address to all that is on its link, with metrics.
pub fn connected(batch: &mut Batch, index: u32, address: IpAddr, prefix: u8, metrics: Metrics, what: String) {
    let (network, source) = match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32u32.saturating_sub(prefix.into())).unwrap_or(0);
            (IpAddr::from((u32::from(v4) & mask).to_be_bytes()), Some(address))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128u32.saturating_sub(prefix.into())).unwrap_or(0);
            (IpAddr::from((u128::from(v6) & mask).to_be_bytes()), None)
        }
    };
    let mut header = [0; 12];
    (header[0], header[1]) = (family(network), prefix);
    header[4] = libc::RT_TABLE_MAIN;
    header[5] = libc::RTPROT_KERNEL;
    header[6] = if network.is_ipv4() { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
    header[7] = libc::RTN_UNICAST;
    batch.add(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &header, what, |body| {
        body.bytes(libc::RTA_DST, &octets(network)).u32(libc::RTA_OIF, index);
        match source {
            Some(source) => body.bytes(libc::RTA_PREFSRC, &octets(source)),
            // What the kernel gives routes of IPv6 to its own links (linux/ipv6_route.h).
            None => body.u32(libc::RTA_PRIORITY, 256),
        };
        metrics.say(body);
    });
}

/// Where a route leads, and which of several to one prefix is taken: the one with the smallest metric.
pub struct NextHop {
    pub index: u32,
    pub via: IpAddr,
    pub metric: u32,
}

/// A static route of a table; the next hop is on the interface's link whether or not an address there covers it.
pub fn route(batch: &mut Batch, to: (IpAddr, u8), by: &NextHop, table: u8, metrics: Metrics, what: String) {
    const RTNH_F_ONLINK: u32 = 4;
    let mut header = [0; 12];
    (header[0], header[1]) = (family(to.0), to.1);
    header[4] = table;
    header[5] = libc::RTPROT_STATIC;
    header[6] = libc::RT_SCOPE_UNIVERSE;
    header[7] = libc::RTN_UNICAST;
    header[8..12].copy_from_slice(&RTNH_F_ONLINK.to_ne_bytes());
    batch.add(libc::RTM_NEWROUTE, batch.creates(), &header, what, |body| {
        body.bytes(libc::RTA_DST, &octets(to.0)).bytes(libc::RTA_GATEWAY, &octets(by.via)).u32(libc::RTA_OIF, by.index);
        if by.metric != 0 {
            // IPv6 takes 1024 where nothing is said.
            let first = if to.0.is_ipv4() { 0 } else { 1024 };
            body.u32(libc::RTA_PRIORITY, first + by.metric);
        }
        metrics.say(body);
    });
}

/// A rule by which a node does not tell senders that their packets are too big: ICMP "fragmentation needed", or ICMPv6
/// "packet too big", of its own has no route. All other messages have one.
pub fn silence_too_big(batch: &mut Batch, with_v6: bool, what: String) {
    // linux/fib_rules.h
    const FRA_IIFNAME: u16 = 3;
    const FRA_PRIORITY: u16 = 6;
    const FRA_IP_PROTO: u16 = 22;
    const FRA_DPORT_RANGE: u16 = 24;
    const FR_ACT_BLACKHOLE: u8 = 6;
    const PRIORITY: u32 = 50;
    let (family, protocol, kind) = if with_v6 {
        (libc::AF_INET6, libc::IPPROTO_ICMPV6, [2, 0])
    } else {
        (libc::AF_INET, libc::IPPROTO_ICMP, [3, 4])
    };
    // For a route, the kernel has type and code of ICMP where it has the ports of other protocols (union flowi_uli).
    let port = u16::from_be_bytes(kind).to_ne_bytes();
    let mut header = [0; 12];
    (header[0], header[7]) = (family as u8, FR_ACT_BLACKHOLE);
    batch.add(libc::RTM_NEWRULE, batch.creates(), &header, what, |body| {
        body.text(FRA_IIFNAME, "lo").u32(FRA_PRIORITY, PRIORITY).bytes(FRA_IP_PROTO, &[protocol as u8]);
        body.bytes(FRA_DPORT_RANGE, &[port, port].concat());
    });
    batch.needs(POLICY_ROUTING);
}

const POLICY_ROUTING: &str = "policy routing (CONFIG_IP_MULTIPLE_TABLES, CONFIG_IPV6_MULTIPLE_TABLES)";

/// A rule: packets with a mark are routed by a table, before that of the others.
pub fn rule_of_mark(batch: &mut Batch, v6: bool, mark: u32, table: u8, what: String) {
    // linux/fib_rules.h
    const FRA_PRIORITY: u16 = 6;
    const FRA_FWMARK: u16 = 10;
    const FR_ACT_TO_TBL: u8 = 1;
    let mut header = [0; 12];
    header[0] = if v6 { libc::AF_INET6 } else { libc::AF_INET } as u8;
    (header[4], header[7]) = (table, FR_ACT_TO_TBL);
    batch.add(libc::RTM_NEWRULE, batch.creates(), &header, what, |body| {
        body.u32(FRA_FWMARK, mark).u32(FRA_PRIORITY, u32::from(table));
    });
    batch.needs(POLICY_ROUTING);
}

/// A rule: packets from an address are routed by a table of their own, before that of the others.
pub fn rule(batch: &mut Batch, from: IpAddr, table: u8, what: String) {
    // linux/fib_rules.h
    const FRA_SRC: u16 = 2;
    const FRA_PRIORITY: u16 = 6;
    const FR_ACT_TO_TBL: u8 = 1;
    let mut header = [0; 12];
    (header[0], header[2]) = (family(from), if from.is_ipv4() { 32 } else { 128 });
    (header[4], header[7]) = (table, FR_ACT_TO_TBL);
    batch.add(libc::RTM_NEWRULE, batch.creates(), &header, what, |body| {
        body.bytes(FRA_SRC, &octets(from)).u32(FRA_PRIORITY, u32::from(table));
    });
    batch.needs(POLICY_ROUTING);
}
