//! Sockets inside other namespaces, and their options: one process enters a namespace, opens a socket, and returns;
//! the socket stays where it was opened. Each call that fails says what was attempted.

use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sched::{setns, CloneFlags};
use nix::sys::socket::{bind, socket, AddressFamily, SockFlag, SockType, SockaddrStorage};
use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Path of the network namespace.
    pub netns: PathBuf,
    pub address: IpAddr,
}

const SO_MEMINFO: libc::c_int = 55;
const SK_MEMINFO_DROPS: usize = 8;

/// How long the kernel may take to start stamping packets after the first socket asked for it.
const STAMPS_START: Duration = Duration::from_millis(20);

pub struct Namespaces {
    own: File,
    /// Keeps the kernel stamping between the probes.
    _stamping: UdpSocket,
}

/// Why a socket cannot have this congestion control, with those that it can.
fn no_congestion(name: &str, error: &io::Error) -> String {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let reason = match error.raw_os_error() {
        Some(libc::ENOENT) => "unknown to this kernel".to_owned(),
        Some(libc::EPERM) => "allowed to the host alone (sysctl net.ipv4.tcp_allowed_congestion_control)".to_owned(),
        _ => error.to_string(),
    };
    format!("congestion control {name:?}: {reason}: there are {}", known.trim())
}

impl Namespaces {
    pub fn open() -> Result<Self, String> {
        let own =
            File::open("/proc/thread-self/ns/net").map_err(|error| format!("/proc/thread-self/ns/net: {error}"))?;
        let stamping = UdpSocket::bind("0.0.0.0:0").map_err(|error| format!("bind 0.0.0.0: {error}"))?;
        set(stamping.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1, "SO_TIMESTAMPNS")?;
        std::thread::sleep(STAMPS_START);
        Ok(Self { own, _stamping: stamping })
    }

    /// Runs `action` with this thread in `netns`.
    pub fn within<T>(&self, netns: &Path, action: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let there = File::open(netns).map_err(|error| format!("{}: {error}", netns.display()))?;
        setns(&there, CloneFlags::CLONE_NEWNET).map_err(|error| format!("setns {}: {error}", netns.display()))?;
        let result = action();
        // Staying behind would send the next probe's packets from the wrong node.
        setns(&self.own, CloneFlags::CLONE_NEWNET).expect("return to the own network namespace");
        result
    }

    /// A UDP socket on any port of `end`, not blocking, with room for `buffer_bytes` and kernel time stamps.
    pub fn udp(&self, end: &Endpoint, buffer_bytes: usize) -> Result<UdpSocket, String> {
        let socket = self.within(&end.netns, || {
            let at = SocketAddr::new(end.address, 0);
            UdpSocket::bind(at).map_err(|error| format!("{}: bind {}: {error}", end.netns.display(), end.address))
        })?;
        let fd = socket.as_raw_fd();
        let size = buffer_bytes.min(i32::MAX as usize / 2) as libc::c_int;
        socket.set_nonblocking(true).map_err(|error| format!("set_nonblocking: {error}"))?;
        set(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &size, "SO_RCVBUFFORCE")?;
        set(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &size, "SO_SNDBUFFORCE")?;
        set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1, "SO_TIMESTAMPNS")?;
        // RECVERR: a full queue of the own interface is told (ENOBUFS), not counted as a loss of the link.
        // PROBE: never fragment, never believe a path MTU.
        match end.address {
            IpAddr::V4(_) => {
                set(fd, libc::IPPROTO_IP, libc::IP_RECVERR, &1, "IP_RECVERR")?;
                set(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &libc::IP_PMTUDISC_PROBE, "IP_MTU_DISCOVER")?;
            }
            IpAddr::V6(_) => {
                set(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, &1, "IPV6_RECVERR")?;
                set(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, &libc::IP_PMTUDISC_PROBE, "IPV6_MTU_DISCOVER")?;
            }
        }
        Ok(socket)
    }

    /// A TCP socket that waits for connections on any port of `end`.
    pub fn listen(&self, end: &Endpoint) -> Result<TcpListener, String> {
        self.within(&end.netns, || {
            let at = SocketAddr::new(end.address, 0);
            TcpListener::bind(at).map_err(|error| format!("{}: listen on {at}: {error}", end.netns.display()))
        })
    }

    /// A TCP socket of `end`, bound to its address, that will use this congestion control; not connected.
    pub fn tcp(&self, end: &Endpoint, congestion: &str) -> Result<OwnedFd, String> {
        let family = if end.address.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet };
        let fd = self.within(&end.netns, || {
            socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).map_err(|error| format!("socket: {error}"))
        })?;
        // SAFETY: the kernel reads as many bytes as the name has.
        let set_name = unsafe {
            let (name, length) = (congestion.as_ptr().cast(), congestion.len() as u32);
            libc::setsockopt(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name, length)
        };
        if set_name != 0 {
            return Err(no_congestion(congestion, &io::Error::last_os_error()));
        }
        let from = SockaddrStorage::from(SocketAddr::new(end.address, 0));
        bind(fd.as_raw_fd(), &from).map_err(|error| format!("bind {}: {error}", end.address))?;
        Ok(fd)
    }
}

/// Closing this socket throws away what still waits, so that it does not disturb what comes next.
pub fn forget_when_closed(fd: RawFd) -> Result<(), String> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    set(fd, libc::SOL_SOCKET, libc::SO_LINGER, &linger, "SO_LINGER")
}

pub fn set<T>(fd: RawFd, level: libc::c_int, option: libc::c_int, value: &T, what: &str) -> Result<(), String> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `value`.
    match unsafe { libc::setsockopt(fd, level, option, std::ptr::from_ref(value).cast(), length) } {
        0 => Ok(()),
        _ => Err(format!("{what}: {}", io::Error::last_os_error())),
    }
}

/// Fills `value` with as much of the option as the kernel has; the rest stays as it was.
pub fn get<T: Copy>(fd: RawFd, level: libc::c_int, option: libc::c_int, mut value: T) -> io::Result<T> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes; T is plain data (all callers use arrays of integers).
    match unsafe { libc::getsockopt(fd, level, option, std::ptr::from_mut(&mut value).cast(), &mut length) } {
        0 => Ok(value),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Packets that arrived and found no room in the socket's buffer.
pub fn dropped_packets(socket: &UdpSocket) -> u64 {
    get(socket.as_raw_fd(), libc::SOL_SOCKET, SO_MEMINFO, [0u32; 16]).map_or(0, |info| info[SK_MEMINFO_DROPS].into())
}
