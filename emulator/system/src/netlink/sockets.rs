//! The sockets of TCP and UDP of a network namespace: those that are open, and a notice of each one that ends, however short it
//! lived (linux/sock_diag.h, linux/inet_diag.h).
//!
//! In: the namespace of the calling thread. Out: addresses and ports, with the number by which the kernel tells a socket from
//! all others as long as it runs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{bind, recv, socket, AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType};

use super::answers::messages;
use super::{attributes, error, u32_at, u64_at, Error, Result, Socket};
use crate::socket::set_option;
use crate::Context;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_BYTES: usize = 56;
/// struct inet_diag_msg
const MESSAGE_BYTES: usize = 72;
const INET_DIAG_PROTOCOL: u16 = 10;
const LISTEN: u8 = 10;
/// All but TIME_WAIT, which belongs to no process.
const STATES: u32 = !(1 << 6);
/// The notices of sockets that end, of IPv4 and IPv6.
const ENDED_GROUPS: [i32; 4] = [1, 2, 3, 4];
/// Room for some thousand notices.
const ROOM: i32 = 8 << 20;

pub const TCP: u8 = libc::IPPROTO_TCP as u8;
pub const UDP: u8 = libc::IPPROTO_UDP as u8;

/// A socket as the kernel tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownSocket {
    /// No other socket has it.
    pub cookie: u64,
    /// IP's number of it.
    pub protocol: u8,
    pub local: SocketAddr,
    /// Port 0: none.
    pub peer: SocketAddr,
    pub listens: bool,
    /// By which a process's descriptors name it; 0: none has it, or it has ended.
    pub inode: u32,
}

/// Tells of the sockets of the namespace that the calling thread was in when this was opened.
pub struct Sockets {
    asks: Socket,
    hears: OwnedFd,
}

impl Sockets {
    /// From now on sockets that end are noted.
    pub fn open() -> Result<Self> {
        let say = || "listening to sockets that end";
        let open = |flags| socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkSockDiag);
        let asks = Socket::with(open(SockFlag::SOCK_CLOEXEC).attempting(|| "opening a netlink socket")?)?;
        let hears = open(SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK).attempting(say)?;
        bind(hears.as_raw_fd(), &NetlinkAddr::new(0, 0)).attempting(say)?;
        for option in [libc::SO_RCVBUF, libc::SO_RCVBUFFORCE] {
            let _ = set_option(&hears, libc::SOL_SOCKET, option, &ROOM);
        }
        for group in ENDED_GROUPS {
            set_option(&hears, libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, &group).attempting(say)?;
        }
        Ok(Sockets { asks, hears })
    }

    /// Those that are there now.
    pub fn all(&self) -> Result<Vec<KnownSocket>> {
        let mut found = Vec::new();
        for (family, protocol) in
            [(libc::AF_INET, TCP), (libc::AF_INET6, TCP), (libc::AF_INET, UDP), (libc::AF_INET6, UDP)]
        {
            let mut header = [0u8; REQUEST_BYTES];
            header[..2].copy_from_slice(&[family as u8, protocol]);
            header[4..8].copy_from_slice(&STATES.to_ne_bytes());
            let mut see = |body: &[u8]| found.extend(told(body, Some(protocol)));
            self.asks.dump(SOCK_DIAG_BY_FAMILY, &header, &mut see)?;
        }
        Ok(found)
    }

    /// Those that have ended since the last call. Errors: so many have that the kernel had no room for the notices.
    pub fn ended(&self) -> Result<Vec<KnownSocket>> {
        let attempt = || "reading which sockets have ended";
        let mut found = Vec::new();
        let mut buffer = [0u8; 8192];
        loop {
            match recv(self.hears.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(got) => {
                    for message in messages(&buffer[..got]) {
                        let source = error::TruncationError;
                        let attempt = attempt().to_owned();
                        let message = message.map_err(|_| Error::TruncationError { attempt, source })?;
                        found.extend(told(message.body(), None));
                    }
                }
                Err(Errno::EAGAIN) => return Ok(found),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error).attempting(attempt).map_err(Error::from),
            }
        }
    }
}

/// None for what is shorter than a socket, or of no known protocol.
fn told(body: &[u8], protocol: Option<u8>) -> Option<KnownSocket> {
    let fixed = body.get(..MESSAGE_BYTES)?;
    let own = || attributes(&body[MESSAGE_BYTES..]).find(|(kind, _)| *kind == INET_DIAG_PROTOCOL)?.1.first().copied();
    let port = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let address = |at: usize| -> IpAddr {
        let bytes: [u8; 16] = fixed[at..at + 16].try_into().expect("sixteen bytes");
        if i32::from(fixed[0]) == libc::AF_INET {
            Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into()
        } else {
            Ipv6Addr::from(bytes).to_canonical()
        }
    };
    Some(KnownSocket {
        cookie: u64_at(fixed, 44),
        protocol: protocol.or_else(own)?,
        local: SocketAddr::new(address(8), port(4)),
        peer: SocketAddr::new(address(24), port(6)),
        listens: fixed[1] == LISTEN,
        inode: u32_at(fixed, 68),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_socket_is_told_of_while_it_is_open_and_when_it_ends() {
        let sockets = Sockets::open().expect("the kernel tells of sockets");
        let server = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let client = TcpStream::connect(server.local_addr().expect("its address")).expect("it listens");
        let (local, peer) = (client.local_addr().expect("its address"), client.peer_addr().expect("its peer"));
        let udp = UdpSocket::bind("[::1]:0").expect("a socket");
        let bound = udp.local_addr().expect("its address");
        let inode = std::fs::metadata(format!("/proc/self/fd/{}", client.as_raw_fd())).expect("it is open").ino();
        let all = sockets.all().expect("a list");
        let of = |known: &[KnownSocket], local| known.iter().copied().find(|each| each.local == local);
        let known = of(&all, local).expect("it is in the list");
        assert_eq!((known.protocol, known.peer, u64::from(known.inode), known.listens), (TCP, peer, inode, false));
        assert!(of(&all, peer).expect("the listener").listens);
        assert_eq!(of(&all, bound).expect("the one of UDP").peer.port(), 0);
        drop((client, server, udp));
        let mut ended = Vec::new();
        for _ in 0..100 {
            ended.extend(sockets.ended().expect("notices"));
            if of(&ended, local).is_some() && of(&ended, bound).is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let gone = of(&ended, local).expect("a notice");
        assert_eq!((gone.cookie, gone.peer, gone.protocol), (known.cookie, peer, TCP));
        assert_eq!(of(&ended, bound).expect("a notice").protocol, UDP);
    }
}
