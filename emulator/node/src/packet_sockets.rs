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
use std::os::fd::AsRawFd;
use std::path::Path;

use ewan_system::process::Pidfd;
use nix::sys::socket::{getsockname, setsockopt, sockopt, AddressFamily, SockaddrLike, SockaddrStorage};

/// The kernel doubles what it is given, and this is the most that it takes: the queues' limits come first.
const SEND_BYTES: usize = i32::MAX as usize / 2;
/// About 1800 full packets: 0.2 s of 100 Mbit/s, 20 ms of 1 Gbit/s.
const RECEIVE_BYTES: usize = 2 << 20;

pub fn run(pid_file: &Path) -> Result<(), String> {
    let say = |error: &dyn std::fmt::Display| format!("{}: {error}", pid_file.display());
    let text = std::fs::read_to_string(pid_file).map_err(|error| say(&error))?;
    let pid: i32 = text.trim().parse().map_err(|_| say(&"no process id"))?;
    enlarge(pid).map_err(|error| format!("packet sockets of process {pid}: {error}"))
}

fn enlarge(pid: i32) -> io::Result<()> {
    let process = Pidfd::open(pid)?;
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
        let is_socket = std::fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if !is_socket {
            continue;
        }
        let socket = match process.descriptor(number) {
            // It was closed since it was listed.
            Err(error) if error.raw_os_error() == Some(libc::EBADF) => continue,
            socket => socket?,
        };
        let address: SockaddrStorage = getsockname(socket.as_raw_fd())?;
        if address.family() == Some(AddressFamily::Packet) {
            setsockopt(&socket, sockopt::SndBufForce, &SEND_BYTES)?;
            setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BYTES)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::getsockopt;

    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn a_programs_packet_sockets_are_enlarged_and_its_others_are_not() {
        let (packets, other) =
            (ewan_system::socket::packet().unwrap(), std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        let other = OwnedFd::from(other);
        let before = getsockopt(&other, sockopt::SndBuf).unwrap();
        enlarge(std::process::id() as i32).unwrap();
        assert_eq!(getsockopt(&packets, sockopt::SndBuf).unwrap(), SEND_BYTES * 2);
        assert_eq!(getsockopt(&packets, sockopt::RcvBuf).unwrap(), RECEIVE_BYTES * 2);
        assert_eq!(getsockopt(&other, sockopt::SndBuf).unwrap(), before);
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
