//! The container's interfaces, which somebody else makes and moves in: waiting for them, and putting them right.
//!
//! In: the node, placed. Out: the kernel's numbers of its interfaces; requests in a `Batch` that give them the plan's
//! MTU and MAC, and take away what the kernel or the engine put there unasked. Formats: linux/if_link.h, if_addr.h.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use ewan_system::netlink::{attributes, requests, u32_at, Batch, Group, Listener, Result, Socket};
use ewan_system::wait::readable;

use ewan_plan::layout::{prefix, PlacedNode, PlacedPort};

/// Who moves an interface in names it, gives it its MAC and brings it up, in this order: then it is done with it.
const BROUGHT_UP: Duration = Duration::from_secs(1);
/// No notice of a change is waited for longer than this, lest one was lost.
const LOOK_NS: u64 = 500_000_000;
const SAY: Duration = Duration::from_secs(10);

/// What an engine calls the interface to its own network.
const ENGINES: &str = "eth0";

/// An interface that is there.
pub struct KernelInterface {
    pub index: u32,
    mtu: u32,
    mac: Vec<u8>,
    up: bool,
}

/// All of the node's interfaces, by name, when the last of them is there; `management`: the engine's own is one of them.
pub fn wait(socket: &Socket, placed: &PlacedNode, management: bool) -> Result<HashMap<String, KernelInterface>> {
    let changes = Listener::open(&[Group::Link])?;
    let mut say = Instant::now() + SAY;
    let mut complete = None;
    loop {
        let found = list(socket)?;
        let names = wired(placed).map(|port| port.interface.name.as_str());
        let wanted = names.clone().chain(management.then_some(ENGINES));
        let missing: Vec<_> = wanted.filter(|name| !found.contains_key(*name)).collect();
        if missing.is_empty() {
            let since = *complete.get_or_insert_with(Instant::now);
            if names.clone().all(|name| found[name].up) || since.elapsed() > BROUGHT_UP {
                return Ok(found);
            }
        } else if Instant::now() > say {
            println!("{}: waiting for its interfaces {}", placed.node.name, missing.join(", "));
            say = Instant::now() + SAY;
        }
        let _ = readable(&changes, LOOK_NS);
        changes.take();
    }
}

/// Those that somebody moves in; the others are VLANs of them.
fn wired<'a, 'p>(placed: &'a PlacedNode<'p>) -> impl Iterator<Item = &'a PlacedPort<'p>> + Clone {
    placed.ports.iter().filter(|port| port.interface.is_wired())
}

fn list(socket: &Socket) -> Result<HashMap<String, KernelInterface>> {
    let mut found = HashMap::new();
    socket.dump(libc::RTM_GETLINK, &[0; 16], &mut |message| {
        let Some(body) = message.get(16..) else { return };
        let (mut name, mut mtu, mut mac) = (String::new(), 0, Vec::new());
        for (kind, value) in attributes(body) {
            match kind {
                libc::IFLA_IFNAME => name = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
                libc::IFLA_MTU if value.len() == 4 => mtu = u32_at(value, 0),
                libc::IFLA_ADDRESS => mac = value.to_owned(),
                _ => {}
            }
        }
        let up = u32_at(message, 8) & libc::IFF_UP as u32 != 0;
        found.insert(name, KernelInterface { index: u32_at(message, 4), mtu, mac, up });
    })?;
    Ok(found)
}

/// The plan's MTU and MAC where others are there, and one segment a packet, as `apply` makes its interfaces.
pub fn correct(batch: &mut Batch, placed: &PlacedNode, found: &HashMap<String, KernelInterface>) {
    for port in wired(placed) {
        let (interface, found) = (port.interface, &found[&port.interface.name]);
        let what = format!("{}:{}: MTU {} and MAC {}", placed.node.name, interface.name, interface.mtu, interface.mac);
        let mtu = (found.mtu != interface.mtu).then_some(interface.mtu);
        let mac = (found.mac != port.mac).then_some(port.mac);
        requests::correct(batch, port.index, mtu, mac, what);
    }
}

/// Takes away link-local addresses that the kernel gave: their owner solicits routers, and its packets cross links. With
/// them stays what the plan has; and where it lets the kernel give them, the one of the plan's MAC: of the MAC that an
/// interface had when it was moved in, routing would tell others.
pub fn forget_own_addresses(batch: &mut Batch, socket: &Socket, placed: &PlacedNode) -> Result<()> {
    const GIVEN_BY_NOBODY: &str = "1";
    const IFA_ADDRESS: u16 = 1;
    // A routing protocol needs those of its interfaces, so the plan lets the kernel give them there.
    let given = |port: &PlacedPort| {
        let file = format!("/proc/sys/net/ipv6/conf/{}/addr_gen_mode", port.interface.name);
        std::fs::read_to_string(file).is_ok_and(|mode| mode.trim() != GIVEN_BY_NOBODY)
    };
    let planned = |port: &PlacedPort| -> Vec<IpAddr> {
        let own = port.interface.addresses.iter().filter_map(|text| Some(prefix(text).ok()?.0));
        own.chain(given(port).then(|| link_local(port.mac))).collect()
    };
    let kept: HashMap<u32, Vec<IpAddr>> = placed.ports.iter().map(|port| (port.index, planned(port))).collect();
    let mut unwanted = Vec::new();
    let mut header = [0; 8];
    header[0] = libc::AF_INET6 as u8;
    socket.dump(libc::RTM_GETADDR, &header, &mut |message| {
        let Some(body) = message.get(8..) else { return };
        let (family, length, scope) = (message[0], message[1], message[3]);
        if family != libc::AF_INET6 as u8 || scope != libc::RT_SCOPE_LINK {
            return;
        }
        let address = attributes(body).find(|(kind, _)| *kind == IFA_ADDRESS).map(|(_, value)| value);
        let Some(octets) = address.and_then(|value| <[u8; 16]>::try_from(value).ok()) else { return };
        let index = u32_at(message, 4);
        if kept.get(&index).is_some_and(|kept| !kept.contains(&address_of(octets))) {
            unwanted.push((index, address_of(octets), length));
        }
    })?;
    for (index, address, length) in unwanted {
        requests::remove_address(batch, index, address, length, format!("{}: removing {address}", placed.node.name));
    }
    Ok(())
}

/// The link-local address that the kernel makes of a MAC: modified EUI-64 (RFC 4291, appendix A).
fn link_local(mac: [u8; 6]) -> IpAddr {
    let [a, b, c, d, e, f] = mac;
    address_of([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

fn address_of(octets: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(octets).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_link_local_address_is_made_of_the_mac() {
        assert_eq!(link_local([0x02, 0x65, 0, 0, 0, 0x0e]).to_string(), "fe80::65:ff:fe00:e");
        assert_eq!(link_local([0xaa, 0xc1, 0xab, 0x1a, 0xde, 0x5f]).to_string(), "fe80::a8c1:abff:fe1a:de5f");
    }
}
