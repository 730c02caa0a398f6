//! Connections over several paths (Multipath TCP, RFC 8684): their sockets, what the kernel knows of their subflows, and
//! the addresses of a namespace between which it makes these.
//!
//! Numbers and layouts are those of linux/mptcp.h and linux/mptcp_pm.h.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::netlink::{self, u32_at, u64_at, Batch, Socket};

/// As many subflows as a connection can have: the first one and 8 more.
pub const MOST_SUBFLOWS: usize = 9;
/// Longer than struct tcp_info of any kernel so far.
pub const TCP_INFO_BYTES: usize = 256;
const SOL_MPTCP: libc::c_int = 284;
const MPTCP_FULL_INFO: libc::c_int = 4;
/// struct mptcp_subflow_info: the number, padding, two socket addresses.
const SUBFLOW_BYTES: usize = 264;
const ADDRESS_BYTES: usize = 128;
/// struct mptcp_full_info without the structure at its end, and room for that one, with what later kernels add.
const HEAD_BYTES: usize = 40;
const CONNECTION_BYTES: usize = 128;

/// A socket of Multipath TCP, in the namespace of the calling thread.
pub fn socket(v6: bool) -> io::Result<OwnedFd> {
    let family = if v6 { libc::AF_INET6 } else { libc::AF_INET };
    // SAFETY: a call without pointers.
    match unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, libc::IPPROTO_MPTCP) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the descriptor was opened above, and nobody else has it.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

/// One of the TCP connections that a connection consists of.
pub struct Subflow {
    /// The kernel's own, from 1 on in the order in which they were made.
    pub id: u32,
    pub local: IpAddr,
    pub remote: IpAddr,
    /// Its struct tcp_info, so many bytes of which are the kernel's.
    pub info: [u8; TCP_INFO_BYTES],
    pub length: usize,
}

/// A connection at one moment.
pub struct Connection {
    pub subflows: Vec<Subflow>,
    /// In order, and acknowledged; of the connection as a whole.
    pub received_bytes: u64,
    pub acked_bytes: u64,
}

impl Connection {
    /// Errors: it is no socket of MPTCP, or the kernel is older than Linux 6.5.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut subflows = [0u8; MOST_SUBFLOWS * SUBFLOW_BYTES];
        let mut infos = [0u8; MOST_SUBFLOWS * TCP_INFO_BYTES];
        let mut request = [0u64; (HEAD_BYTES + CONNECTION_BYTES) / 8];
        let words = [0, TCP_INFO_BYTES as u32, 0, SUBFLOW_BYTES as u32, 0, MOST_SUBFLOWS as u32];
        for (place, pair) in words.chunks(2).enumerate() {
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&pair[0].to_ne_bytes());
            bytes[4..].copy_from_slice(&pair[1].to_ne_bytes());
            request[place] = u64::from_ne_bytes(bytes);
        }
        request[3] = subflows.as_mut_ptr() as u64;
        request[4] = infos.as_mut_ptr() as u64;
        let mut length = size_of_val(&request) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes of the request, and into each of the two arrays that it names
        // no more elements, of no more bytes, than it says; all three outlive the call.
        let answer = unsafe {
            let to = request.as_mut_ptr().cast();
            libc::getsockopt(socket.as_fd().as_raw_fd(), SOL_MPTCP, MPTCP_FULL_INFO, to, &raw mut length)
        };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        let told: Vec<u8> = request.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let (info_bytes, subflow_bytes) = (u32_at(&told, 4) as usize, u32_at(&told, 12) as usize);
        let count = (u32_at(&told, 16) as usize).min(MOST_SUBFLOWS);
        let connection = &told[HEAD_BYTES..];
        let found = (0..count).map(|place| {
            let (subflow, info) = (&subflows[place * subflow_bytes..], &infos[place * info_bytes..]);
            let mut own = [0; TCP_INFO_BYTES];
            own[..info_bytes].copy_from_slice(&info[..info_bytes]);
            Subflow {
                id: u32_at(subflow, 0),
                local: address(&subflow[8..]),
                remote: address(&subflow[8 + ADDRESS_BYTES..]),
                info: own,
                length: info_bytes,
            }
        });
        Ok(Connection {
            subflows: found.collect(),
            received_bytes: u64_at(connection, 64),
            acked_bytes: u64_at(connection, 72),
        })
    }
}

/// Of struct sockaddr_in or sockaddr_in6.
fn address(bytes: &[u8]) -> IpAddr {
    if i32::from(u16::from_ne_bytes([bytes[0], bytes[1]])) == libc::AF_INET6 {
        let whole: [u8; 16] = bytes[8..24].try_into().expect("sixteen bytes");
        whole.into()
    } else {
        let whole: [u8; 4] = bytes[4..8].try_into().expect("four bytes");
        whole.into()
    }
}

/// An address of a namespace between which and others subflows are made.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    pub address: IpAddr,
    /// The other end is told of it, and makes the subflow.
    pub signals: bool,
    /// This end makes the subflow when it has connected.
    pub connects: bool,
}

/// Gives the namespace of the calling thread these addresses in place of those that it has, and lets each connection have
/// so many subflows besides its first one.
pub fn set_addresses(addresses: &[Address], more_subflows: u32) -> netlink::Result<()> {
    const SET_LIMITS: u8 = 5;
    const FLUSH: u8 = 4;
    const ADD: u8 = 1;
    const ATTR_ADDRESS: u16 = 1;
    const ATTR_ACCEPTED: u16 = 2;
    const ATTR_SUBFLOWS: u16 = 3;
    const ADDRESS_FAMILY: u16 = 1;
    const ADDRESS_V4: u16 = 3;
    const ADDRESS_V6: u16 = 4;
    const ADDRESS_FLAGS: u16 = 6;
    const SIGNAL: u32 = 1;
    const SUBFLOW: u32 = 2;
    let socket = Socket::open_generic()?;
    let family = socket.family("mptcp_pm", "the path manager of MPTCP (CONFIG_MPTCP)")?;
    let mut batch = Batch::default();
    let header = |command: u8| [command, 1, 0, 0];
    batch.add(family, 0, &header(FLUSH), "removing addresses of MPTCP".into(), |_| {});
    batch.add(family, 0, &header(SET_LIMITS), format!("{more_subflows} further subflows of MPTCP"), |body| {
        body.u32(ATTR_ACCEPTED, more_subflows).u32(ATTR_SUBFLOWS, more_subflows);
    });
    for each in addresses {
        batch.add(family, 0, &header(ADD), format!("{} as an address of MPTCP", each.address), |body| {
            body.nested(ATTR_ADDRESS, &[], |inner| {
                let (family, kind) = match each.address {
                    IpAddr::V4(_) => (libc::AF_INET, ADDRESS_V4),
                    IpAddr::V6(_) => (libc::AF_INET6, ADDRESS_V6),
                };
                inner.bytes(ADDRESS_FAMILY, &(family as u16).to_ne_bytes());
                match each.address {
                    IpAddr::V4(v4) => inner.bytes(kind, &v4.octets()),
                    IpAddr::V6(v6) => inner.bytes(kind, &v6.octets()),
                };
                let flags = if each.signals { SIGNAL } else { 0 } | if each.connects { SUBFLOW } else { 0 };
                inner.u32(ADDRESS_FLAGS, flags);
            });
        });
    }
    socket.run(batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_both_families() {
        let mut v4 = [0u8; ADDRESS_BYTES];
        v4[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        v4[4..8].copy_from_slice(&[10, 0, 0, 1]);
        assert_eq!(address(&v4), "10.0.0.1".parse::<IpAddr>().expect("v4"));
        let mut v6 = [0u8; ADDRESS_BYTES];
        v6[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        (v6[8], v6[9], v6[23]) = (0xfd, 0, 1);
        assert_eq!(address(&v6), "fd00::1".parse::<IpAddr>().expect("v6"));
    }
}
