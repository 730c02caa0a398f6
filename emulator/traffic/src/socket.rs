//! Sockets inside other namespaces, and their options: one process enters a namespace, opens a socket, and returns;
//! the socket stays where it was opened. Each call that fails says what was attempted.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use ewan_system::socket::{get_option, require_option as set, set_nonblocking, set_option};
use ewan_system::{mptcp, namespace};
use nix::errno::Errno;
use nix::sys::socket::{
    bind, connect, listen, setsockopt, socket, sockopt, AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage,
};
use serde::Deserialize;

use crate::ecn;
use crate::multipath::{self, Multipath};
use crate::tcp_info::Info;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Path of the network namespace.
    pub netns: PathBuf,
    pub address: IpAddr,
}

const SO_MEMINFO: libc::c_int = 55;
const SK_MEMINFO_DROPS: usize = 8;

/// What a flow wants of its sockets; what is not given stays as the plan has set it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Named always for TCP: the kernel's default differs between machines.
    pub congestion: Option<String>,
    /// As setsockopt has them: the kernel doubles them for its own overhead, and no longer changes them by itself.
    pub send_buffer_bytes: Option<u64>,
    pub receive_buffer_bytes: Option<u64>,
    /// The most that the receiver offers (TCP_WINDOW_CLAMP).
    pub window_bytes: Option<u64>,
    /// Largest payload of a segment.
    pub mss_bytes: Option<u32>,
    pub dscp: u8,
    /// TCP: negotiated with the first packet; UDP: packets are sent as ECT(0).
    pub ecn: bool,
    pub nodelay: bool,
    /// Of the sender's queueing discipline, which paces it (emulator/lab/src/qdisc/sources.rs).
    pub class: Option<u16>,
    /// If set, the flow has several paths.
    pub multipath: Option<Multipath>,
}

/// The major number of the queueing discipline whose classes sockets name.
pub const CLASSES: u32 = 0x0002_0000;
/// The class that is not paced. Where there is none of that number, packets take the way of all others.
pub const UNPACED: u16 = 1;

/// ECT(0), RFC 3168.
const CAPABLE: u8 = 0b10;
const MOST_BUFFER_BYTES: u64 = i32::MAX as u64 / 2;
/// Of what the kernel takes without changing it (net/ipv4/tcp.c: TCP_MIN_MSS, MAX_TCP_WINDOW; SOCK_MIN_RCVBUF / 2).
const SEGMENTS: std::ops::RangeInclusive<u32> = 88..=32_767;
const LEAST_WINDOW_BYTES: u64 = 1_152;
/// What is kept of packets besides their payload takes less than three times as much again, even of small ones.
const WINDOW_ROOM: u64 = 4;

impl Options {
    pub fn check(&self) -> Result<(), String> {
        for (key, bytes) in
            [("send_buffer_bytes", self.send_buffer_bytes), ("receive_buffer_bytes", self.receive_buffer_bytes)]
        {
            if bytes.is_some_and(|bytes| bytes == 0 || bytes > MOST_BUFFER_BYTES) {
                return Err(format!("socket.{key}: give 1 to {MOST_BUFFER_BYTES}"));
            }
        }
        let most_window = MOST_BUFFER_BYTES / WINDOW_ROOM;
        if self.window_bytes.is_some_and(|bytes| !(LEAST_WINDOW_BYTES..=most_window).contains(&bytes)) {
            Err(format!("socket.window_bytes: give {LEAST_WINDOW_BYTES} to {most_window}"))
        } else if self.mss_bytes.is_some_and(|bytes| !SEGMENTS.contains(&bytes)) {
            Err(format!("socket.mss_bytes: give {} to {}", SEGMENTS.start(), SEGMENTS.end()))
        } else if self.dscp > 63 {
            Err("socket.dscp: give 0 to 63".into())
        } else {
            self.multipath.as_ref().map_or(Ok(()), Multipath::check)
        }
    }

    /// What the kernel knows of a connection with these options.
    pub fn info(&self, socket: &impl AsFd) -> Result<Info, String> {
        if self.multipath.is_some() {
            multipath::info(socket)
        } else {
            Info::of(socket)
        }
    }

    /// Of a TCP socket before it connects or listens; those that a listener accepts inherit them.
    fn set_tcp(&self, fd: BorrowedFd, v6: bool) -> Result<(), String> {
        if let Some(name) = &self.congestion {
            set_congestion(fd, name)?;
        }
        if let Some(bytes) = self.mss_bytes {
            set(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &(bytes as libc::c_int), "TCP_MAXSEG")?;
        }
        if self.nodelay {
            set(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1i32, "TCP_NODELAY")?;
        }
        self.set_buffers(fd)?;
        if let Some(bytes) = self.window_bytes {
            if self.receive_buffer_bytes.is_none() {
                // Its room must not be the smaller limit, and the kernel must not widen both as it sees data arrive.
                set_buffer(fd, libc::SO_RCVBUFFORCE, bytes * WINDOW_ROOM, "SO_RCVBUFFORCE")?;
            }
        }
        self.clamp_window(fd)?;
        self.mark(fd, v6, self.dscp << 2)
    }

    /// Since Linux 6.10 the first full segment that is received replaces what was set before (tcp_measure_rcv_mss), so
    /// the window is to be set again after it.
    pub fn clamp_window(&self, fd: BorrowedFd) -> Result<(), String> {
        let Some(bytes) = self.window_bytes else { return Ok(()) };
        Ok(set(fd, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, &(bytes as libc::c_int), "TCP_WINDOW_CLAMP")?)
    }

    /// Of a UDP socket.
    pub fn set_udp(&self, socket: &UdpSocket, v6: bool) -> Result<(), String> {
        self.set_buffers(socket.as_fd())?;
        self.mark(socket.as_fd(), v6, self.dscp << 2 | if self.ecn { CAPABLE } else { 0 })?;
        self.name_class(socket.as_fd())
    }

    /// After `mark`, which sets the same option by itself.
    fn name_class(&self, fd: BorrowedFd) -> Result<(), String> {
        self.class.map_or(Ok(()), |class| name_class(fd, class))
    }

    fn set_buffers(&self, fd: BorrowedFd) -> Result<(), String> {
        if let Some(bytes) = self.send_buffer_bytes {
            set_buffer(fd, libc::SO_SNDBUFFORCE, bytes, "SO_SNDBUFFORCE")?;
        }
        if let Some(bytes) = self.receive_buffer_bytes {
            set_buffer(fd, libc::SO_RCVBUFFORCE, bytes, "SO_RCVBUFFORCE")?;
        }
        Ok(())
    }

    fn mark(&self, fd: BorrowedFd, v6: bool, class: u8) -> Result<(), String> {
        let class = libc::c_int::from(class);
        match (class, v6) {
            (0, _) => {}
            (_, false) => set(fd, libc::IPPROTO_IP, libc::IP_TOS, &class, "IP_TOS")?,
            (_, true) => set(fd, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class, "IPV6_TCLASS")?,
        }
        Ok(())
    }
}

/// All that the socket sends is of this class.
pub fn name_class(fd: BorrowedFd, class: u16) -> Result<(), String> {
    Ok(set(fd, libc::SOL_SOCKET, libc::SO_PRIORITY, &(CLASSES | u32::from(class)), "SO_PRIORITY")?)
}

fn set_buffer(socket: BorrowedFd, option: libc::c_int, bytes: u64, what: &str) -> Result<(), String> {
    Ok(set(socket, libc::SOL_SOCKET, option, &(bytes as libc::c_int), what)?)
}

fn set_congestion(socket: BorrowedFd, congestion: &str) -> Result<(), String> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, congestion)
        .map_err(|error| no_congestion(congestion, &error))
}

/// How long the kernel may take to start stamping packets after the first socket asked for it.
const STAMPS_START: Duration = Duration::from_millis(20);

pub struct Namespaces {
    own: File,
    /// Keeps the kernel stamping between the probes.
    _stamping: OwnedFd,
    asking_for_ecn: Mutex<()>,
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

/// Why a socket cannot have several paths.
fn no_multipath(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPROTONOSUPPORT) => "multipath: this kernel has no MPTCP (CONFIG_MPTCP)".into(),
        Some(libc::ENOPROTOOPT) => "multipath: MPTCP is switched off here (sysctl net.mptcp.enabled)".into(),
        _ => format!("socket of MPTCP: {error}"),
    }
}

/// All addresses of a family.
fn unspecified(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

impl Namespaces {
    pub fn open() -> Result<Self, String> {
        let own = namespace::own()?;
        // Not bound: this one is in the caller's own namespace, where nobody is to reach it.
        let stamping = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
            .map_err(|error| format!("socket: {error}"))?;
        set(&stamping, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32, "SO_TIMESTAMPNS")?;
        std::thread::sleep(STAMPS_START);
        Ok(Self { own, _stamping: stamping, asking_for_ecn: Mutex::new(()) })
    }

    /// Runs `action` with this thread in `netns`.
    pub fn within<T>(&self, netns: &Path, action: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        namespace::within(netns, &self.own, action)
    }

    /// A UDP socket on any port of `end`, not blocking, with room for `buffer_bytes` each way and kernel time stamps.
    pub fn udp(&self, end: &Endpoint, buffer_bytes: usize) -> Result<UdpSocket, String> {
        self.udp_at(&end.netns, SocketAddr::new(end.address, 0), buffer_bytes)
    }

    /// The same at a port that is given.
    pub fn udp_at(&self, netns: &Path, at: SocketAddr, buffer_bytes: usize) -> Result<UdpSocket, String> {
        let socket = self.within(netns, || {
            UdpSocket::bind(at).map_err(|error| format!("{}: bind {}: {error}", netns.display(), at.ip()))
        })?;
        let fd = socket.as_fd();
        let size = buffer_bytes.min(i32::MAX as usize / 2) as libc::c_int;
        socket.set_nonblocking(true).map_err(|error| format!("set_nonblocking: {error}"))?;
        set(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &size, "SO_RCVBUFFORCE")?;
        set(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &size, "SO_SNDBUFFORCE")?;
        set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32, "SO_TIMESTAMPNS")?;
        Ok(socket)
    }

    /// The same for packets of which none may be lost or changed before the link.
    pub fn udp_for_probes(&self, end: &Endpoint, buffer_bytes: usize) -> Result<UdpSocket, String> {
        let socket = self.udp(end, buffer_bytes)?;
        let fd = socket.as_fd();
        name_class(fd, UNPACED)?;
        // A full queue of the own interface is told (ENOBUFS), not counted as a loss of the link.
        match end.address {
            IpAddr::V4(_) => set(fd, libc::IPPROTO_IP, libc::IP_RECVERR, &1i32, "IP_RECVERR")?,
            IpAddr::V6(_) => set(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, &1i32, "IPV6_RECVERR")?,
        }
        never_fragment(fd, end.address.is_ipv6())?;
        Ok(socket)
    }

    /// A TCP socket that waits for connections on any port of `end`.
    pub fn listen(&self, end: &Endpoint, options: &Options) -> Result<TcpListener, String> {
        self.listen_at(end, 0, options)
    }

    /// The same at a port that is given; connections of an earlier run may still linger there.
    pub fn listen_at(&self, end: &Endpoint, port: u16, options: &Options) -> Result<TcpListener, String> {
        let fd = self.tcp_socket(end, options)?;
        if port != 0 {
            set(&fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, &1i32, "SO_REUSEADDR")?;
        }
        // A further path comes to another address of the node.
        let address = if options.multipath.is_some() { unspecified(end.address) } else { end.address };
        let at = SocketAddr::new(address, port);
        let say = |error| format!("{}: listen on {at}: {error}", end.netns.display());
        bind(fd.as_raw_fd(), &SockaddrStorage::from(at)).map_err(say)?;
        listen(&fd, Backlog::MAXCONN).map_err(say)?;
        Ok(TcpListener::from(fd))
    }

    /// A TCP socket of `end`, bound to its address; not connected. Its port is chosen when it connects, so that only
    /// both ends together must be unused.
    pub fn tcp(&self, end: &Endpoint, options: &Options) -> Result<OwnedFd, String> {
        let fd = self.tcp_socket(end, options)?;
        options.name_class(fd.as_fd())?;
        set(&fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, &1i32, "IP_BIND_ADDRESS_NO_PORT")?;
        let from = SockaddrStorage::from(SocketAddr::new(end.address, 0));
        bind(fd.as_raw_fd(), &from).map_err(|error| format!("bind {}: {error}", end.address))?;
        Ok(fd)
    }

    fn tcp_socket(&self, end: &Endpoint, options: &Options) -> Result<OwnedFd, String> {
        let v6 = end.address.is_ipv6();
        let family = if v6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
        let fd = self.within(&end.netns, || {
            if options.multipath.is_some() {
                return mptcp::socket(v6).map_err(|error| no_multipath(&error));
            }
            socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).map_err(|error| format!("socket: {error}"))
        })?;
        options.set_tcp(fd.as_fd(), v6)?;
        Ok(fd)
    }

    /// Connects `socket`, which `tcp` made for `from`; returns when it is connected.
    pub fn connect(&self, socket: &OwnedFd, from: &Endpoint, to: SocketAddr, options: &Options) -> Result<(), String> {
        let say = |error: io::Error| format!("connect {} to {to}: {error}", from.address);
        let fd = socket.as_raw_fd();
        let address = SockaddrStorage::from(to);
        if !options.ecn {
            return connect(fd, &address).map_err(|error| say(error.into()));
        }
        // The first packet is sent before a call that does not wait returns, and then the socket's route is as any other.
        set_nonblocking(socket, true).map_err(say)?;
        self.within(&from.netns, || {
            let _only_one = self.asking_for_ecn.lock().expect("no thread fails with the lock held");
            let route = ecn::Route::add(from.address, to.ip())
                .map_err(|error| format!("connect {} to {to}: {error}", from.address))?;
            let begun = match route {
                None => connect(fd, &address),
                Some(route) => {
                    let mark = |mark: u32| set(socket, libc::SOL_SOCKET, libc::SO_MARK, &mark, "SO_MARK");
                    let begun = mark(route.mark).map(|()| connect(fd, &address));
                    let (unmarked, removed) = (mark(0), route.remove());
                    unmarked?;
                    removed?;
                    begun?
                }
            };
            match begun {
                Ok(()) | Err(Errno::EINPROGRESS) => Ok(()),
                Err(error) => Err(say(error.into())),
            }
        })?;
        set_nonblocking(socket, false).map_err(say)?;
        // While it connects, a second call waits; afterwards it says that it is connected.
        match connect(fd, &address) {
            Ok(()) | Err(Errno::EISCONN) => Ok(()),
            Err(error) => Err(say(error.into())),
        }
    }
}

/// Packets of this UDP socket go whole, with DF set, or not at all, however small a path MTU the kernel has heard of.
pub fn never_fragment(socket: BorrowedFd, v6: bool) -> Result<(), String> {
    let (level, option, how, name) = if v6 {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE, "IPV6_MTU_DISCOVER")
    } else {
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE, "IP_MTU_DISCOVER")
    };
    Ok(set(socket, level, option, &how, name)?)
}

/// Closing this socket throws away what still waits, so that it does not disturb what comes next.
pub fn forget_when_closed(socket: impl AsFd) -> Result<(), String> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    setsockopt(&socket, sockopt::Linger, &linger).map_err(|error| format!("SO_LINGER: {error}"))
}

/// Packets that arrived and found no room in the socket's buffer.
pub fn dropped_packets(socket: &UdpSocket) -> u64 {
    get_option::<[u32; 16]>(socket, libc::SOL_SOCKET, SO_MEMINFO).map_or(0, |info| info[SK_MEMINFO_DROPS].into())
}
