//! Netlink sockets in many namespaces: one to read a node's tables with, one that hears when they change.
//!
//! In: a plan whose lab is up, names of nodes. Out: which nodes changed, and their tables.

use std::os::fd::AsFd;
use std::time::Duration;

use ewan_system::namespace;
use ewan_system::netlink::{Group, Listener, Socket};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

use super::fib::Fib;
use crate::exec;
use ewan_plan::Plan;

/// What a change of a node's tables can come from.
const GROUPS: [Group; 4] = [Group::Link, Group::Ipv4Route, Group::Ipv6Route, Group::NextHop];

pub struct Sockets(Vec<(Socket, Listener)>);

impl Sockets {
    pub fn open(plan: &Plan, nodes: &[String]) -> Result<Self, String> {
        let opened = || -> Result<Vec<_>, String> {
            let open = |node: &String| {
                namespace::enter(exec::namespace_of(plan, node)?)?;
                Ok((Socket::open()?, Listener::open(&GROUPS)?))
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
        let heard = |(node, (_, heard)): (usize, &(Socket, Listener))| heard.take().then_some(node);
        self.0.iter().enumerate().filter_map(heard).collect()
    }

    /// Has the kernel send this process SIGCHLD, which it waits for anyway, when something changes.
    pub fn wake_by_signal(&self) -> Result<(), String> {
        self.0.iter().try_for_each(|(_, heard)| heard.wake_by_signal())?;
        Ok(())
    }
}
