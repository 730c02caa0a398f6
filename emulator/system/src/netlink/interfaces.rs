//! Interfaces that others made: what the kernel tells of them, and requests that move one to another network namespace and
//! give it names.
//!
//! In: a socket of the interfaces' namespace; interface numbers. Out: `Interface`; requests in a `Batch`. Numbers are from
//! linux/if_link.h and linux/if.h.

use std::os::fd::RawFd;

use super::requests::ifinfo;
use super::{attributes, u32_at, u32_of, Attributes, Batch, Result, Socket};

const IFLA_PROP_LIST: u16 = 52;
const IFLA_ALT_IFNAME: u16 = 53;
const IFLA_NEW_IFINDEX: u16 = 49;
const IFLA_NETNS_IMMUTABLE: u16 = 67;

/// What the kernel tells of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    pub index: u32,
    pub name: String,
    /// Alternative names (ip-link(8), `altname`).
    pub other_names: Vec<String>,
    /// IFF_… of linux/if.h; those of promiscuity say what somebody asked for by hand.
    pub flags: u32,
    /// ARPHRD_… of linux/if_arp.h.
    pub hardware: u16,
    /// None where it has no address of six bytes.
    pub mac: Option<[u8; 6]>,
    pub mtu: u32,
    /// The least and the largest MTU that it takes; 0: its driver does not say.
    pub mtus: [u32; 2],
    pub queue_length: u32,
    /// The most segments of TCP that a packet may hold.
    pub segments: u32,
    /// The number of the bridge, bond or team that it belongs to.
    pub master: Option<u32>,
    /// The number of the interface of the same namespace on which it lies, as a VLAN does, or at whose other end it is.
    pub over: Option<u32>,
    /// Of a virtual one, such as "veth".
    pub kind: Option<String>,
    /// A program of XDP is attached.
    pub xdp: bool,
    /// It cannot leave its namespace; older kernels do not tell.
    pub stays: bool,
}

impl Interface {
    #[must_use]
    pub fn has(&self, flag: i32) -> bool {
        self.flags & flag as u32 != 0
    }

    /// None where the message is cut short.
    fn read(message: &[u8]) -> Option<Self> {
        const IFLA_XDP: u16 = 43;
        const IFLA_XDP_ATTACHED: u16 = 2;
        const LEAST_MTU: u16 = 50;
        const MOST_MTU: u16 = 51;
        let body = message.get(16..)?;
        let mut found = Interface {
            index: u32_at(message, 4),
            flags: u32_at(message, 8),
            hardware: (u32_at(message, 0) >> 16) as u16,
            ..Interface::default()
        };
        let mut elsewhere = false;
        for (kind, value) in attributes(body) {
            let number = u32_of(value);
            match kind {
                libc::IFLA_IFNAME => found.name = text(value),
                libc::IFLA_ADDRESS => found.mac = value.try_into().ok(),
                libc::IFLA_MTU => found.mtu = number?,
                LEAST_MTU => found.mtus[0] = number?,
                MOST_MTU => found.mtus[1] = number?,
                libc::IFLA_TXQLEN => found.queue_length = number?,
                libc::IFLA_GSO_MAX_SEGS => found.segments = number?,
                libc::IFLA_MASTER => found.master = number,
                libc::IFLA_LINK => found.over = number,
                libc::IFLA_LINK_NETNSID => elsewhere = true,
                libc::IFLA_LINKINFO => {
                    let kind = attributes(value).find(|(kind, _)| *kind == libc::IFLA_INFO_KIND);
                    found.kind = kind.map(|(_, value)| text(value));
                }
                IFLA_XDP => {
                    found.xdp =
                        attributes(value).any(|(kind, how)| kind == IFLA_XDP_ATTACHED && how.first() != Some(&0));
                }
                IFLA_PROP_LIST => {
                    let names = attributes(value).filter(|(kind, _)| *kind == IFLA_ALT_IFNAME);
                    found.other_names = names.map(|(_, value)| text(value)).collect();
                }
                IFLA_NETNS_IMMUTABLE => found.stays = value.first().is_some_and(|byte| *byte != 0),
                _ => {}
            }
        }
        if elsewhere {
            found.over = None;
        }
        Some(found)
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

/// All interfaces of the socket's namespace.
pub fn interfaces(socket: &Socket) -> Result<Vec<Interface>> {
    let mut found = Vec::new();
    socket.dump(libc::RTM_GETLINK, &[0; 16], &mut |message| found.extend(Interface::read(message)))?;
    Ok(found)
}

/// What of an interface is set by `alter`; what is None stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Change<'a> {
    pub name: Option<&'a str>,
    pub mac: Option<[u8; 6]>,
    pub mtu: Option<u32>,
    pub queue_length: Option<u32>,
    pub segments: Option<u32>,
    /// Which of IFF_…, and what these are then.
    pub flags: Option<(u32, u32)>,
    /// The namespace that it goes to, where it has the other values then, and its number there; 0: the one that it has,
    /// if it is free there.
    pub to: Option<(RawFd, u32)>,
}

/// Sets what of an interface is to be other.
pub fn alter(batch: &mut Batch, index: u32, change: &Change, what: String) {
    let mut header = ifinfo(index, 0);
    if let Some((which, value)) = change.flags {
        header[8..12].copy_from_slice(&value.to_ne_bytes());
        header[12..16].copy_from_slice(&which.to_ne_bytes());
    }
    batch.add(libc::RTM_NEWLINK, 0, &header, what, |link| {
        if let Some((namespace, index)) = change.to {
            link.u32(libc::IFLA_NET_NS_FD, namespace as u32);
            if index != 0 {
                link.u32(IFLA_NEW_IFINDEX, index);
            }
        }
        if let Some(name) = change.name {
            link.text(libc::IFLA_IFNAME, name);
        }
        if let Some(mac) = change.mac {
            link.bytes(libc::IFLA_ADDRESS, &mac);
        }
        let numbers = [
            (libc::IFLA_MTU, change.mtu),
            (libc::IFLA_TXQLEN, change.queue_length),
            (libc::IFLA_GSO_MAX_SEGS, change.segments),
        ];
        for (kind, number) in numbers {
            if let Some(number) = number {
                link.u32(kind, number);
            }
        }
    });
}

/// Gives an interface one more name.
pub fn add_name(batch: &mut Batch, index: u32, name: &str, what: String) {
    const RTM_NEWLINKPROP: u16 = 108;
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL | libc::NLM_F_APPEND;
    batch.add(RTM_NEWLINKPROP, flags, &ifinfo(index, 0), what, |link| other_name(link, name));
    batch.needs("alternative names of interfaces (Linux 5.5)");
}

/// Takes such a name away.
pub fn remove_name(batch: &mut Batch, index: u32, name: &str, what: String) {
    const RTM_DELLINKPROP: u16 = 109;
    batch.add(RTM_DELLINKPROP, 0, &ifinfo(index, 0), what, |link| other_name(link, name));
}

fn other_name(link: &mut Attributes, name: &str) {
    link.nested(IFLA_PROP_LIST, &[], |names| {
        names.text(IFLA_ALT_IFNAME, name);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_read_from_the_kernels_message() {
        let mut message = ifinfo(7, libc::IFF_UP as u32).to_vec();
        message[2..4].copy_from_slice(&1u16.to_ne_bytes());
        Attributes::new(&mut message)
            .text(libc::IFLA_IFNAME, "eth1")
            .bytes(libc::IFLA_ADDRESS, &[2, 0, 0, 0, 0, 1])
            .u32(libc::IFLA_MTU, 9000)
            .u32(libc::IFLA_LINK, 6)
            .nested(libc::IFLA_LINKINFO, &[], |info| {
                info.text(libc::IFLA_INFO_KIND, "veth");
            })
            .nested(IFLA_PROP_LIST, &[], |names| {
                names.text(IFLA_ALT_IFNAME, "enp1s0").text(IFLA_ALT_IFNAME, "lan");
            });
        let found = Interface::read(&message).expect("it is whole");
        assert_eq!((found.index, found.name.as_str(), found.mtu, found.hardware), (7, "eth1", 9000, 1));
        assert_eq!((found.mac, found.over), (Some([2, 0, 0, 0, 0, 1]), Some(6)));
        assert_eq!((found.kind.as_deref(), found.has(libc::IFF_UP)), (Some("veth"), true));
        assert_eq!(found.other_names, ["enp1s0", "lan"]);
        Attributes::new(&mut message).u32(libc::IFLA_LINK_NETNSID, 0);
        assert_eq!(Interface::read(&message).expect("it is whole").over, None, "its other end is in another namespace");
        assert_eq!(Interface::read(&message[..12]), None);
    }
}
