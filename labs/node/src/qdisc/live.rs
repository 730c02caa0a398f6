//! Links of the kernel's parts that are up: their counters, and changes while packets are in them.
//!
//! In: the plan of a lab that is up. Out: a handle for each such link, with a netlink socket in its node's namespace,
//! so that neither reading nor changing enters a namespace again.

use ewan_emulator::config::Direction;

use super::statistics::{self, LinkStatistics};
use super::{change, sizes};
use crate::layout::Layout;
use crate::namespace;
use crate::netlink::{Batch, Socket};
use crate::plan::{Link, Plan, HEADINGS};

pub struct KernelLink<'a> {
    link: &'a Link,
    /// The interfaces through which packets leave, forward and backward.
    exits: [u32; 2],
    mtu: u32,
    socket: Socket,
}

/// All links of the plan with a back end of the kernel, in its order.
pub fn open(plan: &Plan) -> Result<Vec<KernelLink<'_>>, String> {
    let layout = Layout::of(plan)?;
    let mut links = Vec::new();
    for placed in &layout.nodes {
        if let Some((link, [a, b])) = placed.link {
            let (a, b) = (&placed.ports[a], &placed.ports[b]);
            links.push((link, [b.index, a.index], a.interface.mtu));
        }
    }
    let place = |name: &str| plan.links.iter().position(|link| link.name == name);
    links.sort_by_key(|(link, _, _)| place(&link.name));
    // Namespaces are entered by a thread of its own: the caller stays where it is.
    let opened = || -> Result<Vec<KernelLink<'_>>, String> {
        let opened = links.into_iter().map(|(link, exits, mtu)| {
            let namespace = namespace::open(&plan.netns_path(&link.node));
            let namespace = namespace.ok_or_else(|| format!("link {} is not up", link.name))?;
            namespace::enter(&namespace).map_err(|error| format!("link {}: {error}", link.name))?;
            let socket = Socket::open().map_err(|error| format!("link {}: {error}", link.name))?;
            Ok(KernelLink { link, exits, mtu, socket })
        });
        opened.collect()
    };
    std::thread::scope(|scope| scope.spawn(opened).join())
        .map_err(|_| "opening the kernel's links failed".to_owned())?
}

impl<'a> KernelLink<'a> {
    pub fn name(&self) -> &'a str {
        &self.link.name
    }

    /// Forward and backward; none where a queueing discipline of the link is not there any more.
    pub fn counters(&self) -> Result<[Option<LinkStatistics>; 2], String> {
        statistics::of_link(&self.link.name, self.exits, &self.socket)
    }

    /// Makes one direction what `then` says, from `now`; `times`: how often it was changed before.
    pub fn change(&self, heading: usize, now: &Direction, then: &Direction, times: u64) -> Result<(), String> {
        let at = format!("link {} {}", self.link.name, HEADINGS[heading]);
        if let Some(why) = change::refusal(now, then) {
            return Err(format!("{at}: {why}"));
        }
        let mut batch = Batch::default();
        let sizes = sizes(then, self.mtu);
        change::requests(&mut batch, self.exits[heading], self.link.backend, [now, then], sizes, times, &at);
        self.socket.run(batch)
    }
}
