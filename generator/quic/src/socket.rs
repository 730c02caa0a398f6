//! The UDP socket of an end.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

use crate::arguments::{End, Request};

/// A socket of its own; its buffer is as large as is asked for, or as this user may have.
pub fn open(request: &Request) -> Result<UdpSocket, String> {
    let any = match request.address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let at = match request.end {
        End::Send => any,
        End::Get => SocketAddr::new(any.ip(), request.address.port()),
        End::Receive | End::Serve => request.address,
    };
    let open = || -> std::io::Result<UdpSocket> {
        let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
        buffer(&socket, request.buffer_bytes);
        socket.bind(&at.into())?;
        Ok(socket.into())
    };
    open().map_err(|error| format!("opening {at}: {error}"))
}

/// Packets wait for a receiver that has no time; what a sender may queue in its host stays as the kernel has it, so that a
/// full queue there holds it up instead of dropping what it sends.
fn buffer(socket: &Socket, bytes: usize) {
    use std::os::fd::AsRawFd;
    let size = i32::try_from(bytes).unwrap_or(i32::MAX / 2);
    for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
        // SAFETY: the descriptor is open, and the value is an int, as these options take it.
        let set = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                std::ptr::from_ref(&size).cast(),
                size_of::<i32>() as libc::socklen_t,
            )
        };
        if set == 0 {
            break;
        }
    }
}
