//! Interfaces that are an end of a tunnel between two nodes of the lab: GRE, VXLAN, WireGuard.
//!
//! In: a node of the plan whose other interfaces exist. Out: these too, as the kernel has them. WireGuard's have their
//! keys last, when all nodes work.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use ewan_system::fault;
use ewan_system::namespace;
use ewan_system::netlink::requests::{self, Outer, Port, Vxlan};
use ewan_system::netlink::{Batch, Error, Socket};
use ewan_system::wireguard::{self, Device, KEY_BYTES};

use ewan_plan::layout::{ip, PlacedNode, PlacedPort};
use ewan_plan::{Encapsulation, Plan, TunnelKind};

/// IANA's.
const VXLAN_PORT: u16 = 4789;
/// WireGuard's usual one is the first.
const FIRST_PORT: u16 = 51_820;
const PROBE: &str = "probe";
/// In the first 20 ms after a boot WireGuard takes each handshake for one of too many (drivers/net/wireguard/noise.c,
/// `INITIATIONS_PER_SECOND`); the virtual kernel boots in less of its own time.
pub const AFTER_BOOT: Duration = Duration::from_millis(100);

/// Whether the kernel has the kinds of the tunnels that end in namespaces; it is asked for one of each in a namespace that nobody else
/// sees.
pub fn check_kernel(plan: &Plan) -> Result<(), String> {
    let here = plan.nodes.iter().filter(|node| node.machine.is_none());
    let all = || here.clone().flat_map(|node| &node.interfaces).filter_map(|port| port.tunnel.as_ref());
    let kinds: BTreeSet<(TunnelKind, bool)> = all().map(|tunnel| (tunnel.kind, tunnel.local.contains(':'))).collect();
    if kinds.is_empty() {
        return Ok(());
    }
    let ask = || -> Result<(), String> {
        namespace::anonymous()?;
        let socket = Socket::open()?;
        for (kind, v6) in kinds {
            let tunnel =
                all().find(|tunnel| tunnel.kind == kind && tunnel.local.contains(':') == v6).expect("it is one");
            let port = Port { name: PROBE, index: 0, mac: [2, 0, 0, 0, 0, 1], mtu: 1280 };
            let mut batch = Batch::default();
            interface(&mut batch, &port, tunnel, format!("tunnel {}", tunnel.tunnel))?;
            match socket.run(batch) {
                Ok(()) => {
                    let mut batch = Batch::default();
                    let index = ewan_system::socket::interface_index(PROBE).map_err(|error| error.to_string())?;
                    requests::remove(&mut batch, index, PROBE.into());
                    socket.run(batch)?;
                }
                Err(Error::Lacking { needs, .. }) => {
                    let name = &tunnel.tunnel;
                    return Err(format!(
                        "tunnel {name}: this machine's kernel lacks {needs}: write --runtime virtual, whose kernel has it, \
                         or let both ends be hosts with machine: debian-12"
                    ));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| scope.spawn(ask).join().expect("no thread panicked"))
}

fn of<'a>(placed: &'a PlacedNode) -> impl Iterator<Item = (&'a PlacedPort<'a>, &'a Encapsulation)> {
    placed.ports.iter().filter_map(|port| Some((port, port.interface.tunnel.as_ref()?)))
}

/// How many interfaces a node has at tunnels.
pub fn count(placed: &PlacedNode) -> usize {
    of(placed).count()
}

/// Makes a node's interfaces at tunnels, after all others.
pub fn make(socket: &Socket, placed: &PlacedNode) -> Result<(), String> {
    for (port, tunnel) in of(placed) {
        fault::step();
        let what = format!("{}:{}: {:?} to {}", placed.node.name, port.interface.name, tunnel.kind, tunnel.remote);
        let own = Port { name: &port.interface.name, index: port.index, mac: port.mac, mtu: port.interface.mtu };
        let mut batch = Batch::default();
        interface(&mut batch, &own, tunnel, what)?;
        socket.run(batch)?;
    }
    Ok(())
}

fn interface(batch: &mut Batch, port: &Port, tunnel: &Encapsulation, what: String) -> Result<(), String> {
    let (local, remote) = (ip(&tunnel.local)?, ip(&tunnel.remote)?);
    match tunnel.kind {
        TunnelKind::Gre => requests::gre(batch, port, &Outer { local, remote }, what),
        TunnelKind::Vxlan => {
            let tunnel = Vxlan { vni: tunnel.number.into(), local, remote, port: VXLAN_PORT };
            requests::vxlan(batch, port, None, &tunnel, what);
        }
        TunnelKind::Wireguard => requests::wireguard(batch, port, what),
    }
    Ok(())
}

/// The mark of a tunnel's outer packets, by which a rule finds their routes.
pub fn mark(tunnel: &Encapsulation) -> Option<u32> {
    (tunnel.kind == TunnelKind::Wireguard && !tunnel.over.is_empty()).then_some(tunnel.number.into())
}

pub fn needs_keys(placed: &PlacedNode) -> bool {
    of(placed).any(|(_, tunnel)| tunnel.kind == TunnelKind::Wireguard)
}

/// Gives a node's interfaces of WireGuard their keys; the calling thread is in the node.
pub fn give_keys(placed: &PlacedNode) -> Result<(), String> {
    for (port, tunnel) in of(placed).filter(|(_, tunnel)| tunnel.kind == TunnelKind::Wireguard) {
        fault::step();
        let what = format!("{}:{}: keys of WireGuard", placed.node.name, port.interface.name);
        let wrong = || format!("{what}: a key has {KEY_BYTES} bytes in hexadecimal digits");
        let listens = FIRST_PORT.checked_add(tunnel.number - 1).ok_or_else(|| format!("{what}: no port is left"))?;
        let device = Device {
            interface: &port.interface.name,
            private_key: key(&tunnel.private_key).ok_or_else(wrong)?,
            port: listens,
            mark: mark(tunnel).unwrap_or(0),
            peer_key: key(&tunnel.peer_key).ok_or_else(wrong)?,
            peer: SocketAddr::new(ip(&tunnel.remote)?, listens),
        };
        wireguard::configure(&device, what.clone())?;
    }
    Ok(())
}

/// Begins the handshakes of a node's interfaces of WireGuard, if it is the end that does so; the calling thread is in the
/// node, and all nodes have their keys. Without a handshake both ends would begin one when they send for the first time,
/// and where they do so within half a round trip both fail, and wait for 5 s. `links_run`: packets cross links already.
pub fn call(placed: &PlacedNode, links_run: bool) -> Result<(), String> {
    for (port, tunnel) in of(placed).filter(|(_, tunnel)| tunnel.calls) {
        let interface = &port.interface.name;
        let what = format!("{}:{interface}: handshake of WireGuard", placed.node.name);
        let peer = key(&tunnel.peer_key).ok_or_else(|| format!("{what}: no key"))?;
        if links_run || tunnel.keepalive_s != 0 {
            wireguard::keep_alive(interface, &peer, tunnel.keepalive_s.max(1), what.clone())?;
        }
        if tunnel.keepalive_s == 0 {
            wireguard::keep_alive(interface, &peer, 0, what)?;
        }
    }
    Ok(())
}

fn key(text: &str) -> Option<[u8; KEY_BYTES]> {
    if text.len() != 2 * KEY_BYTES || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; KEY_BYTES];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_32_bytes() {
        let text = "0f".repeat(KEY_BYTES);
        assert_eq!(key(&text), Some([15; KEY_BYTES]));
        for wrong in [&text[1..], &format!("{text}00"), &text.replace("0f", "+f"), ""] {
            assert_eq!(key(wrong), None);
        }
    }
}
