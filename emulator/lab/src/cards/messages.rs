//! Addresses, routes and neighbours of an interface as the kernel tells them, kept to be told to it again.
//!
//! In: a socket, an interface's number. Out: the bodies of netlink messages, which have every attribute; requests of them for
//! the interface's number then. What the kernel makes of itself is left out. Formats: linux/if_addr.h, linux/rtnetlink.h,
//! linux/neighbour.h.

use std::time::Duration;

use ewan_system::netlink::{attributes, u32_at, u32_of, Batch, Result, Socket};
use serde::{Deserialize, Serialize};

const ADDRESS_HEADER: usize = 8;
const ROUTE_HEADER: usize = 12;
const NEIGHBOUR_HEADER: usize = 12;
const RTA_NH_ID: u16 = 30;

/// The body of a netlink message; as text in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Message(Vec<u8>);

impl From<Message> for String {
    fn from(message: Message) -> String {
        message.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl TryFrom<String> for Message {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let byte = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        let bytes = bytes.filter(|bytes| bytes.len() >= ROUTE_HEADER);
        bytes.map(Message).ok_or_else(|| format!("{text:.20?} is no netlink message in hexadecimal digits"))
    }
}

/// A route of the host, as far as it says whether a card may leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The numbers of the interfaces that it leaves by.
    pub out: Vec<u32>,
    /// It leads to all that no other route leads to.
    pub default: bool,
    /// Of several next hops, or by a next hop that has a number of its own (ip-nexthop(8)): the kernel changes or removes
    /// those when a card leaves.
    pub shared: bool,
    /// None: the kernel makes it of itself, or a router advertises it.
    pub message: Option<Message>,
    pub through_gateway: bool,
}

/// All routes of the socket's namespace.
pub fn routes(socket: &Socket) -> Result<Vec<Route>> {
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut header = [0; ROUTE_HEADER];
        header[0] = family as u8;
        socket.dump_if_there(libc::RTM_GETROUTE, &header, &mut |message| found.extend(route(message)))?;
    }
    Ok(found)
}

fn route(message: &[u8]) -> Option<Route> {
    const RTPROT_RA: u8 = 9;
    let body = message.get(ROUTE_HEADER..)?;
    let (length, protocol, kind) = (message[1], message[5], message[7]);
    let mut found = Route::default();
    let mut table = u32::from(message[4]);
    for (name, value) in attributes(body) {
        match name {
            libc::RTA_OIF => found.out.extend(u32_of(value)),
            libc::RTA_TABLE => table = u32_of(value).unwrap_or(table),
            libc::RTA_GATEWAY | libc::RTA_VIA => found.through_gateway = true,
            RTA_NH_ID => found.shared = true,
            libc::RTA_MULTIPATH => {
                found.shared = true;
                // struct rtnexthop, each with its own length.
                let mut rest = value;
                while rest.len() >= 8 {
                    found.out.push(u32_at(rest, 4));
                    let length = (u32_at(rest, 0) & 0xffff) as usize;
                    rest = rest.get(length.max(8).next_multiple_of(4)..).unwrap_or_default();
                }
            }
            _ => {}
        }
    }
    found.default = length == 0 && kind == libc::RTN_UNICAST;
    let of_itself = table == u32::from(libc::RT_TABLE_LOCAL)
        || [libc::RTPROT_KERNEL, libc::RTPROT_REDIRECT, RTPROT_RA].contains(&protocol)
        || kind != libc::RTN_UNICAST;
    found.message = (!of_itself).then(|| Message(message.to_vec()));
    Some(found)
}

/// The messages of the routes that leave by an interface, those without a gateway first: they lead to the gateways.
pub fn routes_of(routes: &[Route], index: u32) -> Vec<Message> {
    let own = || routes.iter().filter(|route| route.out == [index]);
    let of = |gateway| own().filter(move |route| route.through_gateway == gateway);
    of(false).chain(of(true)).filter_map(|route| route.message.clone()).collect()
}

/// The addresses of an interface, but for those that the kernel makes and drops of itself (RFC 8981).
pub fn addresses(socket: &Socket, index: u32) -> Result<Vec<Message>> {
    const TEMPORARY: u8 = 1;
    let mut found = Vec::new();
    socket.dump(libc::RTM_GETADDR, &[0; ADDRESS_HEADER], &mut |message| {
        if message.len() >= ROUTE_HEADER && u32_at(message, 4) == index {
            let v6 = i32::from(message[0]) == libc::AF_INET6;
            if !(v6 && message[2] & TEMPORARY != 0) {
                found.push(Message(message.to_vec()));
            }
        }
    })?;
    Ok(found)
}

/// The permanent neighbours of an interface.
pub fn neighbours(socket: &Socket, index: u32) -> Result<Vec<Message>> {
    const NUD_PERMANENT: u32 = 0x80;
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut header = [0; NEIGHBOUR_HEADER];
        header[0] = family as u8;
        socket.dump_if_there(libc::RTM_GETNEIGH, &header, &mut |message| {
            let long = message.len() >= NEIGHBOUR_HEADER;
            if long && u32_at(message, 4) == index && u32_at(message, 8) & NUD_PERMANENT != 0 {
                found.push(Message(message.to_vec()));
            }
        })?;
    }
    Ok(found)
}

const REPLACE: i32 = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;

/// Gives interface `index` an address again, `since` after it was recorded; false where its time is over.
pub fn add_address(batch: &mut Batch, message: &Message, index: u32, since: Duration, what: String) -> bool {
    let mut body = message.0.clone();
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    if !age(&mut body, since.as_secs()) {
        return false;
    }
    add(batch, libc::RTM_NEWADDR, &body, ADDRESS_HEADER, what);
    true
}

/// Takes `seconds` from the times that an address has left; false where nothing is left.
fn age(body: &mut [u8], seconds: u64) -> bool {
    const IFA_CACHEINFO: u16 = 6;
    const FOR_EVER: u32 = u32::MAX;
    let start = body.as_ptr() as usize;
    let place = attributes(&body[ADDRESS_HEADER..]).find(|(kind, value)| *kind == IFA_CACHEINFO && value.len() >= 8);
    let Some(place) = place.map(|(_, value)| value.as_ptr() as usize - start) else { return true };
    let seconds = u32::try_from(seconds).unwrap_or(FOR_EVER - 1);
    // How long it is preferred, how long it is valid.
    let left = [place, place + 4].map(|at| match u32_at(body, at) {
        FOR_EVER => FOR_EVER,
        time => time.saturating_sub(seconds),
    });
    for (at, time) in [place, place + 4].into_iter().zip(left) {
        body[at..at + 4].copy_from_slice(&time.to_ne_bytes());
    }
    left[1] > 0
}

pub fn add_route(batch: &mut Batch, message: &Message, index: u32, what: String) {
    const RTNH_F_ONLINK: u32 = 4;
    let mut body = message.0.clone();
    // The other flags say how it was with the route, and are refused.
    let flags = u32_at(&body, 8) & RTNH_F_ONLINK;
    body[8..12].copy_from_slice(&flags.to_ne_bytes());
    let start = body.as_ptr() as usize;
    let out = attributes(&body[ROUTE_HEADER..]).find(|(kind, value)| *kind == libc::RTA_OIF && value.len() == 4);
    if let Some(at) = out.map(|(_, value)| value.as_ptr() as usize - start) {
        body[at..at + 4].copy_from_slice(&index.to_ne_bytes());
    }
    add(batch, libc::RTM_NEWROUTE, &body, ROUTE_HEADER, what);
}

pub fn add_neighbour(batch: &mut Batch, message: &Message, index: u32, what: String) {
    let mut body = message.0.clone();
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    add(batch, libc::RTM_NEWNEIGH, &body, NEIGHBOUR_HEADER, what);
}

fn add(batch: &mut Batch, kind: u16, body: &[u8], header: usize, what: String) {
    let (header, rest) = body.split_at(header);
    batch.add(kind, REPLACE, header, what, |request| {
        for (kind, value) in attributes(rest) {
            request.bytes(kind, value);
        }
    });
}

#[cfg(test)]
mod tests {
    use ewan_system::netlink::Attributes;

    use super::*;

    fn message(header: &[u8], fill: impl FnOnce(&mut Attributes)) -> Vec<u8> {
        let mut bytes = header.to_vec();
        fill(&mut Attributes::new(&mut bytes));
        bytes
    }

    #[test]
    fn messages_are_written_in_hexadecimal_digits() {
        let text = "020018fe03000000000000ff";
        let read = Message::try_from(text.to_owned()).expect("a message");
        assert_eq!(String::from(read), text);
        for wrong in ["", "0", "0g", "02001800fe030000000000f", "+1001800fe03000000000000"] {
            assert!(Message::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_route_tells_where_it_leaves_and_whether_it_can_be_told_again() {
        let header = |length: u8, protocol: u8| [2, length, 0, 0, 254, protocol, 0, libc::RTN_UNICAST, 0, 0, 0, 0];
        let by_hand = route(&message(&header(24, 4), |route| {
            route.u32(libc::RTA_OIF, 7);
        }));
        let by_hand = by_hand.expect("a route");
        assert_eq!((by_hand.out.as_slice(), by_hand.default, by_hand.shared), (&[7][..], false, false));
        assert!(by_hand.message.is_some());
        let default = route(&message(&header(0, 4), |route| {
            route.bytes(libc::RTA_GATEWAY, &[10, 0, 0, 1]).u32(libc::RTA_OIF, 7);
        }));
        let default = default.expect("a route");
        assert!(default.default);
        let kernels = route(&message(&header(24, libc::RTPROT_KERNEL), |route| {
            route.u32(libc::RTA_OIF, 7);
        }));
        assert_eq!(kernels.expect("a route").message, None);
        let hops = [[8u16.to_ne_bytes(), [0, 0]].concat(), 7u32.to_ne_bytes().to_vec()].concat();
        let other = [[8u16.to_ne_bytes(), [0, 0]].concat(), 9u32.to_ne_bytes().to_vec()].concat();
        let several = route(&message(&header(0, 4), |route| {
            route.bytes(libc::RTA_MULTIPATH, &[hops, other].concat());
        }));
        let several = several.expect("a route");
        assert_eq!((several.out.as_slice(), several.default, several.shared), (&[7, 9][..], true, true));
        let order = routes_of(&[default.clone(), by_hand.clone(), several], 7);
        assert_eq!(order, [by_hand.message.expect("one"), default.message.expect("one")], "gateways are led to first");
    }

    #[test]
    fn addresses_grow_old() {
        let body = message(&[2, 24, 0, 0, 7, 0, 0, 0], |address| {
            let times = [60u32, 120, 0, 0].map(u32::to_ne_bytes).concat();
            address.bytes(libc::IFA_LOCAL, &[10, 0, 0, 1]).bytes(6, &times);
        });
        let mut later = body.clone();
        assert!(age(&mut later, 100));
        assert_eq!((u32_at(&later, 20), u32_at(&later, 24)), (0, 20));
        assert!(!age(&mut body.clone(), 120), "it is over");
        let mut lasting = message(&[2, 24, 0, 0, 7, 0, 0, 0], |address| {
            address.bytes(6, &[u32::MAX, u32::MAX, 0, 0].map(u32::to_ne_bytes).concat());
        });
        assert!(age(&mut lasting, u64::MAX));
        assert_eq!(u32_at(&lasting, 12), u32::MAX);
    }

    proptest::proptest! {
        #[test]
        fn no_message_of_a_kernel_makes_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..96)) {
            let _ = route(&bytes);
            if let Ok(message) = Message::try_from(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()) {
                let mut batch = Batch::default();
                add_address(&mut batch, &message, 1, Duration::from_secs(1), String::new());
                add_route(&mut batch, &message, 1, String::new());
                add_neighbour(&mut batch, &message, 1, String::new());
            }
        }
    }
}
