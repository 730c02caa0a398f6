//! Datagrams with the kernel's time of their arrival and their ECN bits, one by one.
//!
//! In: sockets of `crate::socket::Namespaces`, which the kernel stamps packets of. Out: what lies in them.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use ewan_system::socket::require_option as set;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::socket::{recvmsg, ControlMessageOwned, MsgFlags, SockaddrStorage};
use nix::sys::time::TimeSpec;

use super::super::World;
use crate::clock::real_ns;

/// All that the socket sends has this traffic class.
pub fn mark(socket: &UdpSocket, v6: bool, class: u8) -> Result<(), String> {
    let (level, option, name) = if v6 {
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, "IPV6_TCLASS")
    } else {
        (libc::IPPROTO_IP, libc::IP_TOS, "IP_TOS")
    };
    Ok(set(socket.as_fd(), level, option, &libc::c_int::from(class), name)?)
}

/// Each packet comes with its ECN bits.
pub fn tell_marks(socket: &UdpSocket, v6: bool) -> Result<(), String> {
    let (level, option, name) = if v6 {
        (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, "IPV6_RECVTCLASS")
    } else {
        (libc::IPPROTO_IP, libc::IP_RECVTOS, "IP_RECVTOS")
    };
    Ok(set(socket.as_fd(), level, option, &1i32, name)?)
}

/// Until something lies in the socket, or until `until_ns` after T0.
pub fn wait(world: &World, socket: &UdpSocket, until_ns: u64) {
    let left_ns = until_ns as i64 - world.now_ns();
    if left_ns <= 0 {
        return;
    }
    let left = TimeSpec::new(left_ns / 1_000_000_000, left_ns % 1_000_000_000);
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    // A signal, or an error of the socket, only makes it look again.
    let _ = ppoll(&mut fds, Some(left), None);
}

pub struct Datagram {
    /// CLOCK_REALTIME.
    pub at_ns: i64,
    pub ecn: u8,
    pub bytes: usize,
    pub from: Option<SocketAddr>,
}

/// A packet that lies in the socket, its beginning in `buffer`.
pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> Result<Option<Datagram>, String> {
    let mut control = cmsg_space!(TimeSpec, i32);
    loop {
        let mut into = [io::IoSliceMut::new(buffer)];
        // Told its whole length, however little of it is copied.
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        match recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut into, Some(&mut control), flags) {
            Ok(message) => {
                let mut came = Datagram { at_ns: real_ns(), ecn: 0, bytes: message.bytes, from: None };
                came.from = message.address.and_then(|address| {
                    let v4 = address.as_sockaddr_in().map(|at| SocketAddr::from(SocketAddrV4::from(*at)));
                    v4.or_else(|| address.as_sockaddr_in6().map(|at| SocketAddrV6::from(*at).into()))
                });
                for each in message.cmsgs().map_err(|error| format!("recvmsg: {error}"))? {
                    match each {
                        ControlMessageOwned::ScmTimestampns(at) => {
                            came.at_ns = at.tv_sec() * 1_000_000_000 + at.tv_nsec();
                        }
                        ControlMessageOwned::Ipv4Tos(class) => came.ecn = class & 0b11,
                        ControlMessageOwned::Ipv6TClass(class) => came.ecn = class as u8 & 0b11,
                        _ => {}
                    }
                }
                return Ok(Some(came));
            }
            Err(Errno::EAGAIN) => return Ok(None),
            // An ICMP error for a report.
            Err(Errno::EINTR | Errno::ECONNREFUSED | Errno::EHOSTUNREACH) => {}
            Err(Errno::ENETUNREACH | Errno::EMSGSIZE) => {}
            Err(error) => return Err(format!("recvmsg: {error}")),
        }
    }
}
