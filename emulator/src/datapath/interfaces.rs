//! What the kernel counts around a link's ports: frames that a port's veth ring had no room for (the peer's
//! `tx_dropped`) and frames that the peer's receive queue refused (the port's own). In: two interface names, in
//! whose namespace the caller is when it opens this. Out: the counters, whenever asked, by netlink.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Mutex;

use super::sys;

// linux/if_link.h
const IFLA_LINK: u16 = 5;
const IFLA_STATS64: u16 = 23;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_TARGET_NETNSID: u16 = 46;
/// Offsets in struct rtnl_link_stats64.
const RX_DROPPED: usize = 6 * 8;
const TX_DROPPED: usize = 7 * 8;
const HEADERS: usize = 16 + 16;

pub struct Interfaces {
    socket: Mutex<OwnedFd>,
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
    pub fn open(names: [&str; 2]) -> Result<Interfaces, String> {
        let socket = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE, "netlink socket")?;
        let ports = names.map(|name| -> Result<Interface, String> {
            let index = sys::interface_index(name)?;
            let link = get_link(&socket, index, None).ok_or_else(|| format!("netlink: no answer for {name}"))?;
            let word = |kind| Some(i32::from_ne_bytes(attribute(&link, kind)?.get(..4)?.try_into().ok()?));
            let peer = word(IFLA_LINK).zip(word(IFLA_LINK_NETNSID)).map(|(peer, id)| (peer as u32, id));
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
            let own = get_link(&socket, index, None);
            let far = peer.and_then(|(index, namespace)| get_link(&socket, index, Some(namespace)));
            let count = |link: &Option<Vec<u8>>, offset: usize| {
                let statistics = link.as_ref().and_then(|link| attribute(link, IFLA_STATS64))?;
                Some(u64::from_ne_bytes(statistics.get(offset..offset + 8)?.try_into().ok()?))
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

/// RTM_GETLINK: the answer's message (header, ifinfomsg, attributes), None on any error.
fn get_link(socket: &OwnedFd, index: u32, namespace: Option<i32>) -> Option<Vec<u8>> {
    let mut request = Vec::with_capacity(64);
    let length = HEADERS as u32 + if namespace.is_some() { 8 } else { 0 };
    request.extend(length.to_ne_bytes());
    request.extend(libc::RTM_GETLINK.to_ne_bytes());
    request.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    request.extend([0; 8]); // sequence, port
    request.extend([0; 4]); // family, padding, type
    request.extend(index.to_ne_bytes());
    request.extend([0; 8]); // flags, change
    if let Some(id) = namespace {
        request.extend(8u16.to_ne_bytes());
        request.extend(IFLA_TARGET_NETNSID.to_ne_bytes());
        request.extend(id.to_ne_bytes());
    }
    let mut answer = vec![0u8; 16 << 10];
    // SAFETY: the kernel reads and writes within our own buffers.
    let received = unsafe {
        let fd = socket.as_raw_fd();
        if libc::send(fd, request.as_ptr().cast(), request.len(), 0) < 0 {
            return None;
        }
        libc::recv(fd, answer.as_mut_ptr().cast(), answer.len(), 0)
    };
    answer.truncate(usize::try_from(received).ok()?);
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    (kind == libc::RTM_NEWLINK).then_some(answer)
}

fn attribute(message: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut rest = message.get(HEADERS..)?;
    while rest.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
        let kind = u16::from_ne_bytes([rest[2], rest[3]]) & 0x3fff;
        if kind == wanted {
            return rest.get(4..length);
        }
        rest = rest.get(length.max(4).next_multiple_of(4)..)?;
    }
    None
}
