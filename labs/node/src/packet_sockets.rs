//! Packet sockets of a program that forwards between interfaces in user space (Open vSwitch's daemon), made large enough
//! that what their interfaces' queues hold, and drop, is the queues' own affair.
//!
//! A socket's send buffer counts what still waits in a queueing discipline: with the kernel's default of 212992 bytes no
//! queue behind it ever holds more than 92 full packets, whatever its limit. Its receive buffer, of the same size, is
//! all that a card may deliver while the program is not running.
//!
//! In: the file with the program's process id, whose sockets are open. Out: the sockets' options, changed from outside
//! by descriptors of our own for the same sockets (pidfd_getfd, Linux 5.6).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// The kernel doubles what it is given, and this is the most that it takes: the queues' limits come first.
const SEND_BYTES: i32 = i32::MAX / 2;
/// About 1800 full packets: 0.2 s of 100 Mbit/s, 20 ms of 1 Gbit/s.
const RECEIVE_BYTES: i32 = 2 << 20;

pub fn run(pid_file: &Path) -> Result<(), String> {
    let say = |error: &dyn std::fmt::Display| format!("{}: {error}", pid_file.display());
    let text = std::fs::read_to_string(pid_file).map_err(|error| say(&error))?;
    let pid: i32 = text.trim().parse().map_err(|_| say(&"no process id"))?;
    enlarge(pid).map_err(|error| format!("packet sockets of process {pid}: {error}"))
}

fn enlarge(pid: i32) -> io::Result<()> {
    let process = owned(|| {
        // SAFETY: no memory is passed.
        unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) }
    })?;
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
        let is_socket = std::fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if !is_socket {
            continue;
        }
        let socket = owned(|| {
            // SAFETY: no memory is passed.
            unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) }
        })?;
        if option(&socket, libc::SO_DOMAIN)? == libc::AF_PACKET {
            set(&socket, libc::SO_SNDBUFFORCE, SEND_BYTES)?;
            set(&socket, libc::SO_RCVBUFFORCE, RECEIVE_BYTES)?;
        }
    }
    Ok(())
}

fn owned(call: impl FnOnce() -> i64) -> io::Result<OwnedFd> {
    match call() {
        // SAFETY: a new descriptor, which is owned as soon as it exists.
        fd if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn option(socket: &OwnedFd, name: i32) -> io::Result<i32> {
    let (mut value, mut length) = (0_i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: value and length live here, and the length is the value's.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, (&raw mut value).cast(), &raw mut length)
    };
    if done == 0 {
        Ok(value)
    } else {
        Err(io::Error::last_os_error())
    }
}

fn set(socket: &OwnedFd, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the value outlives the call, and the length is its own.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet_socket() -> OwnedFd {
        owned(|| {
            // SAFETY: no memory is passed.
            i64::from(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) })
        })
        .expect("root may open a packet socket")
    }

    #[test]
    fn a_programs_packet_sockets_are_enlarged_and_its_others_are_not() {
        let (packets, other) = (packet_socket(), std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        let other = OwnedFd::from(other);
        let before = option(&other, libc::SO_SNDBUF).unwrap();
        enlarge(std::process::id() as i32).unwrap();
        assert_eq!(option(&packets, libc::SO_SNDBUF).unwrap(), SEND_BYTES * 2);
        assert_eq!(option(&packets, libc::SO_RCVBUF).unwrap(), RECEIVE_BYTES * 2);
        assert_eq!(option(&other, libc::SO_SNDBUF).unwrap(), before);
    }

    #[test]
    fn a_file_without_a_process_is_named() {
        let path = std::env::temp_dir().join(format!("ewan-no-pid-{}", std::process::id()));
        assert!(run(&path).unwrap_err().contains("No such file"));
        std::fs::write(&path, "seven\n").unwrap();
        assert!(run(&path).unwrap_err().ends_with("no process id"));
        std::fs::remove_file(&path).unwrap();
    }
}
