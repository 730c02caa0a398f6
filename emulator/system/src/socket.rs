//! Sockets that the standard library does not have, and socket options by their numbers. Values cross to the kernel and
//! back as plain bytes: the traits of `zerocopy` see to it that a value has no padding, and that any bytes are a value.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use nix::sys::socket::{socket, AddressFamily, MsgFlags, SockFlag, SockType};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{Context, Error, Result};

/// The number of a network interface in the namespace that the calling thread is in.
pub fn interface_index(name: &str) -> Result<u32> {
    // Where it gets no descriptor the C library says that there is no such file.
    drop(control()?);
    nix::net::if_::if_nametoindex(name).attempting(|| format!("interface {name}"))
}

/// A socket for requests about interfaces, which sends and receives nothing.
pub fn control() -> Result<OwnedFd> {
    socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).attempting(|| "socket")
}

/// A packet socket (packet(7)) that receives nothing until it is bound to a protocol.
pub fn packet() -> io::Result<OwnedFd> {
    Ok(socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?)
}

/// A socket's address as the kernel reads it: a structure of `linux/*.h` that begins with the address family.
///
/// # Safety
/// The implementing type's first two bytes are a `sa_family_t`, and it has that family's layout.
pub unsafe trait Address: IntoBytes + Immutable {}

/// struct sockaddr_ll.
#[repr(C)]
#[derive(Clone, Copy, IntoBytes, Immutable)]
pub struct PacketAddress {
    family: u16,
    protocol: u16,
    interface: u32,
    hardware_type: u16,
    packet_type: u8,
    length: u8,
    address: [u8; 8],
}

// SAFETY: the fields are those of struct sockaddr_ll in their order, the family first.
unsafe impl Address for PacketAddress {}

impl PacketAddress {
    /// All packets of an interface; `protocol` (linux/if_ether.h) 0 receives nothing.
    pub fn new(interface: u32, protocol: u16) -> Self {
        PacketAddress {
            family: libc::AF_PACKET as u16,
            protocol: protocol.to_be(),
            interface,
            hardware_type: 0,
            packet_type: 0,
            length: 0,
            address: [0; 8],
        }
    }
}

/// Binds a socket to an address of its own family.
pub fn bind(socket: impl AsFd, address: &impl Address) -> io::Result<()> {
    let bytes = address.as_bytes();
    let length = bytes.len() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of a slice that outlives the call.
    match unsafe { libc::bind(socket.as_fd().as_raw_fd(), bytes.as_ptr().cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A Unix socket at `path` that only its user, and root, can connect to: whatever the umask is. Something that lies there
/// is replaced.
///
/// Between `bind` and `chmod` the umask decides, so `accept` must ask `is_trusted` for each peer too.
pub fn private_listener(path: &Path) -> io::Result<UnixListener> {
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Whether the process at the other end was this process's user, or root, when it connected (SO_PEERCRED, unix(7)).
pub fn is_trusted(stream: &UnixStream) -> bool {
    let peer = nix::sys::socket::getsockopt(stream, nix::sys::socket::sockopt::PeerCredentials);
    peer.is_ok_and(|peer| peer.uid() == 0 || peer.uid() == nix::unistd::geteuid().as_raw())
}

/// Sets a socket option; `value` is the option's own structure, or its text.
pub fn set_option(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &(impl IntoBytes + Immutable + ?Sized),
) -> io::Result<()> {
    let bytes = value.as_bytes();
    let length = bytes.len() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of a slice that outlives the call.
    match unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, bytes.as_ptr().cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads a socket option: as much of it as the kernel has, the rest of the value is zero.
pub fn get_option<T: FromBytes + IntoBytes>(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<T> {
    get_option_with_length(socket, level, option).map(|(value, _)| value)
}

/// The same with how many bytes the kernel has.
pub fn get_option_with_length<T: FromBytes + IntoBytes>(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<(T, usize)> {
    let mut value = T::new_zeroed();
    let bytes = value.as_mut_bytes();
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into a slice of so many, and any bytes are a `T`.
    let answer = unsafe {
        let (socket, to) = (socket.as_fd().as_raw_fd(), bytes.as_mut_ptr().cast());
        libc::getsockopt(socket, level, option, to, &raw mut length)
    };
    match answer {
        0 => Ok((value, length as usize)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An instruction of the classic packet filter: struct sock_filter (linux/filter.h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, Immutable)]
pub struct FilterInstruction {
    pub code: u16,
    pub jump_true: u8,
    pub jump_false: u8,
    pub operand: u32,
}

/// Lets only those packets in for which the program gives a length (SO_ATTACH_FILTER, socket(7)); the kernel checks it.
pub fn attach_filter(socket: impl AsFd, program: &[FilterInstruction]) -> io::Result<()> {
    let Ok(len) = u16::try_from(program.len()) else { return Err(io::ErrorKind::InvalidInput.into()) };
    let request = libc::sock_fprog { len, filter: program.as_ptr().cast_mut().cast() };
    let (level, option) = (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER);
    let length = size_of::<libc::sock_fprog>() as libc::socklen_t;
    // SAFETY: the kernel reads the request and `len` instructions, which outlive the call; it writes to neither.
    match unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, (&raw const request).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes at most `most` bytes from a TCP socket and throws them away, without copying them (MSG_TRUNC, tcp(7)); gives how
/// many, 0 when the connection has ended.
pub fn throw_away(socket: impl AsFd, most: usize, flags: MsgFlags) -> io::Result<usize> {
    let flags = flags.bits() | libc::MSG_TRUNC;
    // A socket of another kind would write to the buffer: there is none, and it fails (EFAULT).
    // SAFETY: with MSG_TRUNC a TCP socket writes nothing to the buffer.
    let taken = unsafe { libc::recv(socket.as_fd().as_raw_fd(), std::ptr::null_mut(), most, flags) };
    usize::try_from(taken).map_err(|_| io::Error::last_os_error())
}

/// Whether calls on this descriptor wait.
pub fn set_nonblocking(descriptor: impl AsFd, on: bool) -> io::Result<()> {
    // SAFETY: the kernel reads an integer that outlives the call.
    match unsafe { libc::ioctl(descriptor.as_fd().as_raw_fd(), libc::FIONBIO, &libc::c_int::from(on)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// SIOCETHTOOL (linux/ethtool.h): `request` begins with its command and is as long as that command says; the answer is
/// written into it. Gives what the call returns, which some commands give a meaning.
///
/// # Safety
/// The kernel reads and writes as many bytes at `request` as the command and the counts within the request ask for.
pub unsafe fn ethtool(socket: impl AsFd, interface: &str, request: &mut [u32]) -> io::Result<i32> {
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    // SAFETY: all-zero is a valid ifreq.
    let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in ifreq.ifr_name.iter_mut().zip(interface.bytes().take(libc::IFNAMSIZ - 1)) {
        *slot = byte as libc::c_char;
    }
    ifreq.ifr_ifru.ifru_data = request.as_mut_ptr().cast();
    // SAFETY: ifreq and request outlive the call; the caller says that the request is long enough.
    match unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), SIOCETHTOOL, &raw mut ifreq) } {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer),
    }
}

/// An option that must be there: the error names it.
pub fn require_option(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &(impl IntoBytes + Immutable + ?Sized),
    name: &str,
) -> Result<()> {
    set_option(socket, level, option, value).map_err(|error| Error::new(name, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_listener_replaces_what_lies_there_and_is_its_users_alone() {
        let path = std::env::temp_dir().join(format!("ewan-listener-{}", std::process::id()));
        std::fs::write(&path, "left behind").expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("a mode");
        let listener = private_listener(&path).expect("a socket");
        assert_eq!(path.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
        let _own = UnixStream::connect(&path).expect("a connection");
        assert!(is_trusted(&listener.accept().expect("a peer").0));
        std::fs::remove_file(&path).expect("a file");
    }

    #[test]
    fn options_are_written_and_read_back() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        set_option(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, &3i32).expect("an option");
        assert_eq!(get_option::<i32>(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY).expect("an option"), 3);
        // The kernel has 4 bytes of it; the rest stays zero.
        assert_eq!(get_option::<[i32; 2]>(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY).expect("an option"), [3, 0]);
        let error = require_option(&socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1i32, "TCP_NODELAY").unwrap_err();
        assert_eq!(error.number(), Some(libc::ENOPROTOOPT));
    }

    #[test]
    fn a_filter_is_the_kernels_and_a_wrong_one_is_refused() {
        assert_eq!(size_of::<FilterInstruction>(), size_of::<libc::sock_filter>());
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let keep = FilterInstruction { code: 6, jump_true: 0, jump_false: 0, operand: 262_144 };
        attach_filter(&socket, &[keep]).expect("a filter");
        // A jump beyond the end.
        let astray = FilterInstruction { code: 5, operand: 9, ..keep };
        assert_eq!(attach_filter(&socket, &[astray, keep]).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn the_packet_address_is_the_kernels() {
        assert_eq!(size_of::<PacketAddress>(), size_of::<libc::sockaddr_ll>());
        assert_eq!(&PacketAddress::new(7, 3).as_bytes()[..8], [17, 0, 0, 3, 7, 0, 0, 0]);
    }
}
