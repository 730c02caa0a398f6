//! Notices of the kernel that something of a network namespace has changed.
//!
//! In: groups of notices. Out: whether one came; what it says is not read, for whoever is told reads all anew.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::sys::socket::{bind, recv, MsgFlags, NetlinkAddr, SockFlag};

use super::route_socket;
use crate::socket::set_option;
use crate::{Context, Error, Result};

/// What notices are of (linux/rtnetlink.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Link = 1,
    Ipv4Route = 7,
    Ipv6Route = 11,
    NextHop = 32,
}

/// What is lost for want of room counts as a notice.
const ROOM: i32 = 1 << 20;
/// linux/fcntl.h
const F_SETSIG: i32 = 10;

/// Hears of the namespace that the calling thread was in when this was opened.
pub struct Listener(OwnedFd);

impl Listener {
    /// Errors: the first of the groups is not to be had; the others are there in kernels that have what they tell of.
    pub fn open(groups: &[Group]) -> Result<Self> {
        let what = match groups {
            [Group::Link] => "for interfaces",
            _ => "to routes",
        };
        let say = || format!("listening {what}");
        let socket = route_socket(SockFlag::SOCK_NONBLOCK).attempting(say)?;
        // What the kernel tells of its own accord comes from address 0, and nothing is told to where it came from: a socket
        // that was not bound has that address too. Bound to 0, the kernel chooses one.
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0)).attempting(say)?;
        for (place, group) in groups.iter().enumerate() {
            let joined = set_option(&socket, libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, &(*group as i32));
            if place == 0 {
                joined.attempting(say)?;
            }
        }
        let _ = set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &ROOM);
        Ok(Listener(socket))
    }

    /// Takes the notices that wait; true when there were any, or some were lost.
    pub fn take(&self) -> bool {
        let mut heard = false;
        let mut buffer = [0u8; 8192];
        loop {
            match recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(_) | Err(Errno::ENOBUFS) => heard = true,
                Err(Errno::EINTR) => {}
                Err(_) => return heard,
            }
        }
    }

    /// Has the kernel send this process SIGCHLD, which it waits for anyway, when a notice comes.
    pub fn wake_by_signal(&self) -> Result<()> {
        let say = || "listening to routes";
        for (command, value) in [(libc::F_SETOWN, nix::unistd::getpid().as_raw()), (F_SETSIG, libc::SIGCHLD)] {
            // SAFETY: numbers only, for a descriptor that is ours.
            if unsafe { libc::fcntl(self.0.as_raw_fd(), command, value) } < 0 {
                return Err(Error::last(say()));
            }
        }
        fcntl(&self.0, FcntlArg::F_SETFL(OFlag::O_NONBLOCK | OFlag::O_ASYNC)).attempting(say).map(drop)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
