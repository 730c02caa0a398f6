//! What the kernel counts around a link's ports: frames that a port's veth ring had no room for (the peer's
//! `tx_dropped`) and frames that the peer's receive queue refused (the port's own). In: two interface names, in
//! whose namespace the caller is when it opens this. Out: the counters, whenever asked, by netlink.

use std::sync::Mutex;

use ewan_system::netlink::{attributes, u32_of, u64_at, Result, Socket};
use ewan_system::socket::interface_index;

// linux/if_link.h
const IFLA_LINK: u16 = 5;
const IFLA_STATS64: u16 = 23;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_TARGET_NETNSID: u16 = 46;
/// Offsets in struct rtnl_link_stats64.
const RX_DROPPED: usize = 6 * 8;
const TX_DROPPED: usize = 7 * 8;
/// struct ifinfomsg.
const HEADER: usize = 16;

pub struct Interfaces {
    socket: Mutex<Socket>,
    ports: [Interface; 2],
    /// What had been counted when this was opened.
    before: [PortDrops; 2],
}

struct Interface {
    index: u32,
    /// Index and namespace id (as this namespace names it) of the other end of the veth pair.
    peer: Option<(u32, i32)>,
}

/// Since the spinner opened the interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PortDrops {
    /// Sent towards the port, but its veth ring (256 frames) was full.
    pub ring_full: u64,
    /// Received by the port's interface and dropped there.
    pub receive: u64,
    /// Sent by the port, but the receiver's queue (netdev_max_backlog) was full.
    pub transmit: u64,
}

impl Interfaces {
    pub fn open(names: [&str; 2]) -> Result<Interfaces> {
        let socket = Socket::open()?;
        let ports = names.map(|name| -> Result<Interface> {
            let index = interface_index(name)?;
            let link = get_link(&socket, index, None, name)?;
            let word = |kind| u32_of(attribute(&link, kind)?);
            let peer = word(IFLA_LINK).zip(word(IFLA_LINK_NETNSID).map(|id| id as i32));
            Ok(Interface { index, peer })
        });
        let [a, b] = ports;
        let mut interfaces = Interfaces { socket: Mutex::new(socket), ports: [a?, b?], before: Default::default() };
        interfaces.before = interfaces.drops();
        Ok(interfaces)
    }

    /// Of port a and port b.
    pub fn drops(&self) -> [PortDrops; 2] {
        let Ok(socket) = self.socket.lock() else { return Default::default() };
        [0, 1].map(|port: usize| {
            let Interface { index, peer } = self.ports[port];
            // One that is gone has nothing to tell any more.
            let own = get_link(&socket, index, None, "").ok();
            let far = peer.and_then(|(index, namespace)| get_link(&socket, index, Some(namespace), "").ok());
            let count = |link: &Option<Vec<u8>>, offset: usize| {
                let statistics = link.as_ref().and_then(|link| attribute(link, IFLA_STATS64))?;
                (statistics.len() >= offset + 8).then(|| u64_at(statistics, offset))
            };
            let since = |count: Option<u64>, before: u64| count.map_or(0, |count| count.saturating_sub(before));
            let before = self.before[port];
            PortDrops {
                ring_full: since(count(&far, TX_DROPPED), before.ring_full),
                receive: since(count(&own, RX_DROPPED), before.receive),
                transmit: since(count(&own, TX_DROPPED), before.transmit),
            }
        })
    }
}

/// RTM_GETLINK: the answer's ifinfomsg and attributes. `name`: for the error.
fn get_link(socket: &Socket, index: u32, namespace: Option<i32>, name: &str) -> Result<Vec<u8>> {
    let mut header = [0; HEADER];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    socket.get(
        libc::RTM_GETLINK,
        libc::RTM_NEWLINK,
        &header,
        || format!("interface {name}"),
        |body| {
            if let Some(id) = namespace {
                body.u32(IFLA_TARGET_NETNSID, id as u32);
            }
        },
    )
}

fn attribute(message: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(message.get(HEADER..)?).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}
