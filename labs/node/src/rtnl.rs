//! The requests that make a lab's interfaces: veth pairs, addresses, neighbours, routes, queueing disciplines.
//!
//! In: parts of the plan and interface numbers. Out: requests in a `Batch`. Numbers are from linux/if_link.h,
//! linux/if_addr.h, linux/neighbour.h, linux/rtnetlink.h, linux/pkt_sched.h.

use std::net::IpAddr;
use std::os::fd::RawFd;

use crate::netlink::{Attributes, Batch};
use crate::plan::Egress;

const CREATE: i32 = libc::NLM_F_CREATE | libc::NLM_F_EXCL;

/// One end of a veth pair, decided before it exists.
pub struct Port<'a> {
    pub name: &'a str,
    pub index: u32,
    pub mac: [u8; 6],
    pub mtu: u32,
}

fn ifinfo(index: u32, flags: u32) -> [u8; 16] {
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
                const VETH_INFO_PEER: u16 = 1;
                data.nested(VETH_INFO_PEER, &ifinfo(peer.index, 0), |other| {
                    end(other, peer);
                    other.u32(libc::IFLA_NET_NS_FD, peer_namespace as u32);
                });
            });
        });
    });
    batch.needs("virtual Ethernet pairs (CONFIG_VETH)");
}

fn end(link: &mut Attributes, port: &Port) {
    link.text(libc::IFLA_IFNAME, port.name)
        .bytes(libc::IFLA_ADDRESS, &port.mac)
        .u32(libc::IFLA_MTU, port.mtu)
        .u32(libc::IFLA_NUM_TX_QUEUES, 1)
        .u32(libc::IFLA_NUM_RX_QUEUES, 1)
        .u32(libc::IFLA_GSO_MAX_SEGS, 1);
}

pub fn up(batch: &mut Batch, index: u32, what: String) {
    batch.add(libc::RTM_NEWLINK, 0, &ifinfo(index, libc::IFF_UP as u32), what, |_| {});
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
    batch.add(libc::RTM_NEWADDR, CREATE, &header, what, |body| {
        body.bytes(libc::IFA_LOCAL, &octets(address)).bytes(libc::IFA_ADDRESS, &octets(address));
        if let (IpAddr::V4(v4), true) = (address, prefix < 31) {
            const IFA_BROADCAST: u16 = 4;
            let broadcast = u32::from(v4) | u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
            body.bytes(IFA_BROADCAST, &broadcast.to_be_bytes());
        }
    });
    batch.needs(if address.is_ipv4() { "IPv4" } else { "IPv6 (or it is switched off: ipv6.disable=1)" });
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

/// A static route; the next hop is on the interface's link whether or not an address there covers it.
pub fn route(batch: &mut Batch, index: u32, to: (IpAddr, u8), via: IpAddr, what: String) {
    const RTNH_F_ONLINK: u32 = 4;
    let mut header = [0; 12];
    (header[0], header[1]) = (family(to.0), to.1);
    header[4] = libc::RT_TABLE_MAIN;
    header[5] = libc::RTPROT_STATIC;
    header[6] = libc::RT_SCOPE_UNIVERSE;
    header[7] = libc::RTN_UNICAST;
    header[8..12].copy_from_slice(&RTNH_F_ONLINK.to_ne_bytes());
    batch.add(libc::RTM_NEWROUTE, CREATE, &header, what, |body| {
        body.bytes(libc::RTA_DST, &octets(to.0)).bytes(libc::RTA_GATEWAY, &octets(via)).u32(libc::RTA_OIF, index);
    });
}

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;

/// The root queueing discipline of an interface, if the plan asks for one.
pub fn egress(batch: &mut Batch, index: u32, egress: &Egress, at: &str) {
    const TC_H_ROOT: u32 = u32::MAX;
    const HANDLE: u32 = 0x0001_0000;
    let mut header = [0; 20];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&HANDLE.to_ne_bytes());
    header[12..16].copy_from_slice(&TC_H_ROOT.to_ne_bytes());
    let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    match egress {
        Egress::None {} => {}
        Egress::Fifo { limit_packets } => {
            batch.add(libc::RTM_NEWQDISC, flags, &header, format!("{at}: queue of {limit_packets} packets"), |body| {
                body.text(TCA_KIND, "pfifo").bytes(TCA_OPTIONS, &limit_packets.to_ne_bytes());
            });
            batch.needs("the queueing discipline pfifo (CONFIG_NET_SCHED)");
        }
        &Egress::Tbf { rate_bps, burst_bytes, limit_bytes, overhead_bytes } => {
            batch.add(libc::RTM_NEWQDISC, flags, &header, format!("{at}: rate of {rate_bps} bit/s"), |body| {
                body.text(TCA_KIND, "tbf").nested(TCA_OPTIONS, &[], |options| {
                    tbf(options, rate_bps, burst_bytes, limit_bytes, overhead_bytes);
                });
            });
            batch.needs("the queueing discipline tbf (CONFIG_NET_SCH_TBF)");
        }
    }
}

/// Token bucket filter (net/sched/sch_tbf.c); rates in bytes per second, 64 bits from 34 Gbit/s on.
fn tbf(options: &mut Attributes, rate_bps: u64, burst_bytes: u32, limit_bytes: u32, overhead_bytes: u32) {
    const TCA_TBF_PARMS: u16 = 1;
    const TCA_TBF_RATE64: u16 = 4;
    const TCA_TBF_BURST: u16 = 6;
    const LINKLAYER_ETHERNET: u8 = 1;
    let bytes_per_second = rate_bps / 8;
    // struct tc_tbf_qopt: rate, peak rate (unused), limit, buffer, mtu.
    let mut parms = [0; 36];
    parms[1] = LINKLAYER_ETHERNET;
    parms[2..4].copy_from_slice(&(overhead_bytes as u16).to_ne_bytes());
    let narrow = u32::try_from(bytes_per_second).unwrap_or(u32::MAX);
    parms[8..12].copy_from_slice(&narrow.to_ne_bytes());
    parms[24..28].copy_from_slice(&limit_bytes.to_ne_bytes());
    parms[28..32].copy_from_slice(&burst_ticks(bytes_per_second, burst_bytes).to_ne_bytes());
    options.bytes(TCA_TBF_PARMS, &parms).u32(TCA_TBF_BURST, burst_bytes);
    if bytes_per_second > u64::from(u32::MAX) - 1 {
        options.u64(TCA_TBF_RATE64, bytes_per_second);
    }
}

/// The time in which the rate sends a burst, in the scheduler's ticks of 64 ns (include/net/pkt_sched.h).
fn burst_ticks(bytes_per_second: u64, burst_bytes: u32) -> u32 {
    let ns = u128::from(burst_bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
    u32::try_from(ns.div_ceil(64)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::burst_ticks;

    #[test]
    fn a_burst_lasts_its_bytes_at_the_rate() {
        assert_eq!(burst_ticks(125_000_000, 125_000), 15_625); // 1 ms at 1 Gbit/s
        assert_eq!(burst_ticks(12_500_000_000, 125_000), 157); // 10 µs at 100 Gbit/s, rounded up
        assert_eq!(burst_ticks(1_000, 131_072), 2_048_000_000); // 131 s at 8 kbit/s
    }
}
