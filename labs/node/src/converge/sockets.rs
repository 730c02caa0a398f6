//! Netlink sockets in many namespaces: one to read a node's tables with, one that hears when they change.
//!
//! In: a plan whose lab is up, names of nodes. Out: which nodes changed, and their tables.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

use super::fib::Fib;
use crate::netlink::Socket;
use crate::plan::Plan;
use crate::{exec, namespace};

// linux/rtnetlink.h
const RTNLGRP_LINK: u32 = 1;
const RTNLGRP_IPV4_ROUTE: u32 = 7;
const RTNLGRP_IPV6_ROUTE: u32 = 11;
const RTNLGRP_NEXTHOP: u32 = 32;
const ROOM: i32 = 1 << 20;

pub struct Sockets(Vec<(Socket, OwnedFd)>);

impl Sockets {
    pub fn open(plan: &Plan, nodes: &[String]) -> Result<Self, String> {
        let opened = || -> Result<Vec<_>, String> {
            let open = |node: &String| {
                namespace::enter(exec::namespace_of(plan, node)?)?;
                Ok((Socket::open()?, listener()?))
            };
            nodes.iter().map(open).collect()
        };
        // Namespaces are entered by a thread of its own: the caller stays where it is.
        let opened = std::thread::scope(|scope| scope.spawn(opened).join().expect("no thread panicked"));
        opened.map(Sockets)
    }

    pub fn read(&self, node: usize) -> Result<Fib, String> {
        Fib::read(&self.0[node].0)
    }

    /// Waits until something changes anywhere: true.
    pub fn wait(&self, longest: Duration) -> Result<bool, String> {
        let mut waiting: Vec<_> =
            self.0.iter().map(|(_, heard)| PollFd::new(heard.as_fd(), PollFlags::POLLIN)).collect();
        let timeout = PollTimeout::try_from(longest.as_millis().max(1)).unwrap_or(PollTimeout::MAX);
        match poll(&mut waiting, timeout) {
            Err(nix::errno::Errno::EINTR) => Ok(false),
            ready => ready.map(|ready| ready > 0).map_err(|error| format!("waiting for routes: {error}")),
        }
    }

    /// The nodes that told of a change since this was asked last.
    pub fn changed(&self) -> Vec<usize> {
        let heard = |(node, (_, socket)): (usize, &(Socket, OwnedFd))| drain(socket).then_some(node);
        self.0.iter().enumerate().filter_map(heard).collect()
    }

    /// Has the kernel send this process SIGCHLD, which it waits for anyway, when something changes.
    pub fn wake_by_signal(&self) -> Result<(), String> {
        for (_, socket) in &self.0 {
            let descriptor = socket.as_raw_fd();
            // SAFETY: plain system calls on a descriptor that is ours.
            let done = unsafe {
                libc::fcntl(descriptor, libc::F_SETOWN, libc::getpid()) >= 0
                    && libc::fcntl(descriptor, F_SETSIG, libc::SIGCHLD) >= 0
                    && libc::fcntl(descriptor, libc::F_SETFL, libc::O_NONBLOCK | libc::O_ASYNC) >= 0
            };
            if !done {
                return Err(format!("listening to routes: {}", std::io::Error::last_os_error()));
            }
        }
        Ok(())
    }
}

/// linux/fcntl.h
const F_SETSIG: i32 = 10;

/// Hears of links, routes and next hops of the namespace that the calling thread is in.
fn listener() -> Result<OwnedFd, String> {
    let failed = || format!("listening to routes: {}", std::io::Error::last_os_error());
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: plain system calls; the descriptor is owned from here on.
    let descriptor = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
    if descriptor < 0 {
        return Err(failed());
    }
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // What the kernel tells of its own accord comes from address 0, and nothing is told to where it came from: a socket
    // that was not bound has that address too.
    // SAFETY: an all-zero address has the kernel choose one; it outlives the call.
    let bound = unsafe {
        let mut address: libc::sockaddr_nl = std::mem::zeroed();
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        libc::bind(descriptor, (&raw const address).cast(), size_of::<libc::sockaddr_nl>() as libc::socklen_t)
    };
    if bound < 0 {
        return Err(failed());
    }
    for group in [RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE, RTNLGRP_NEXTHOP] {
        // SAFETY: the number outlives the call.
        let joined = unsafe {
            libc::setsockopt(descriptor, libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, (&raw const group).cast(), 4)
        };
        if joined < 0 && group == RTNLGRP_LINK {
            return Err(failed()); // the others are there in kernels that have what they tell of
        }
    }
    let room = ROOM;
    // SAFETY: as above. What is lost for want of room is found when all is read again.
    unsafe { libc::setsockopt(descriptor, libc::SOL_SOCKET, libc::SO_RCVBUF, (&raw const room).cast(), 4) };
    Ok(socket)
}

/// True when something waited, or was lost.
fn drain(socket: &OwnedFd) -> bool {
    let mut heard = false;
    let mut buffer = [0u8; 8192];
    loop {
        // SAFETY: the buffer outlives the call.
        let got =
            unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) };
        if got < 0 {
            match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::ENOBUFS) => heard = true,
                Some(libc::EINTR) => {}
                _ => return heard,
            }
        } else {
            heard = true;
        }
    }
}
