//! Wires of a lab that stretches over several machines: VXLANs between two of them.
//!
//! In: a placed plan, the nodes' namespaces. Out: interfaces in the nodes. Each is made in its node's namespace at once,
//! so that nothing of the lab appears in the host's; the tunnel's own packets leave by the host's routes.

use std::os::fd::RawFd;

use ewan_system::fault;
use ewan_system::netlink::requests::{self, Port};
use ewan_system::netlink::{Batch, Socket};

use ewan_plan::layout::Layout;

/// Makes all tunnels; the calling thread is in the host's namespace. `namespace`: of a node, by its number.
pub fn make(layout: &Layout, namespace: impl Fn(usize) -> RawFd) -> Result<(), String> {
    fault::step();
    let mut batch = Batch::default();
    for ((node, port), tunnel) in &layout.tunnels {
        let placed = &layout.nodes[*node];
        let (port, name) = (&placed.ports[*port], &placed.node.name);
        let what = format!(
            "{name}:{}: tunnel {} between {} and {}, UDP port {}",
            port.interface.name, tunnel.vni, tunnel.local, tunnel.remote, tunnel.port
        );
        let end = Port { name: &port.interface.name, index: port.index, mac: port.mac, mtu: port.interface.mtu };
        requests::vxlan(&mut batch, &end, Some(namespace(*node)), tunnel, what);
    }
    Ok(Socket::open()?.run(batch)?)
}
