//! Links of the kernel's parts that are up: their counters, and changes while packets are in them.
//!
//! In: the plan of a lab that is up. Out: a handle for each such link, with a netlink socket in its node's namespace,
//! so that neither reading nor changing enters a namespace again.

use ewan_model::config::Direction;
use ewan_model::{Change, FlowReport};
use ewan_system::namespace;
use ewan_system::netlink::{Batch, Socket};
use ewan_system::socket::interface_index;

use super::statistics::{self, LinkCounters};
use super::{change, model, sizes, Place, ROOT, TC_H_ROOT};
use ewan_plan::{kernel_link, Backend, End, Link, Plan, HEADINGS};

pub struct KernelLink<'a> {
    link: &'a Link,
    /// The interfaces through which packets leave, forward and backward.
    exits: [u32; 2],
    mtu: u32,
    socket: Socket,
}

/// One link. `inside`: the caller is in that very container, where its namespace has no name.
pub fn open_one<'a>(plan: &Plan, link: &'a Link, inside: bool) -> Result<KernelLink<'a>, String> {
    apart(|| open_here(plan, link, inside))
}

/// All links of the plan that the kernel emulates, in its order.
pub fn open(plan: &Plan) -> Result<Vec<KernelLink<'_>>, String> {
    let of_kernel = plan.links.iter().filter(|link| link.is_of_kernel());
    apart(|| of_kernel.map(|link| open_here(plan, link, false)).collect())
}

/// Namespaces are entered by a thread of its own: the caller stays where it is.
fn apart<T: Send>(open: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    std::thread::scope(|scope| scope.spawn(open).join()).map_err(|_| "opening the kernel's links failed".to_owned())?
}

/// Leaves the calling thread in the link's namespace. Interfaces are told by their names: in a container they have other
/// numbers than the plan's order gives them.
fn open_here<'a>(plan: &Plan, link: &'a Link, inside: bool) -> Result<KernelLink<'a>, String> {
    let say = |error: String| format!("link {}: {error}", link.name);
    let mtu = plan.mtu(&End { node: link.node.clone(), interface: link.port_a.clone() })?;
    let path = plan.netns_path(&link.node);
    if !inside || path.exists() {
        let namespace = namespace::open(&path).ok_or_else(|| format!("link {} is not up", link.name))?;
        namespace::enter(&namespace).map_err(|error| say(error.into()))?;
    }
    let index = |name: &String| interface_index(name).map_err(|error| say(error.into()));
    let exits = [index(&link.port_b)?, index(&link.port_a)?];
    Ok(KernelLink { link, exits, mtu, socket: Socket::open().map_err(|error| say(error.into()))? })
}

impl<'a> KernelLink<'a> {
    pub fn name(&self) -> &'a str {
        &self.link.name
    }

    /// Forward and backward; none where a queueing discipline of the link is not there any more.
    pub fn counters(&self) -> Result<[Option<LinkCounters>; 2], String> {
        statistics::of_link(self.link, self.exits, &self.socket)
    }

    /// The counters of each flow, forward and backward.
    pub fn flows(&self) -> Result<[Vec<FlowReport>; 2], String> {
        let of = |exit| model::flows(exit, &self.socket).map_err(|error| format!("link {}: {error}", self.link.name));
        Ok([of(self.exits[0])?, of(self.exits[1])?])
    }

    /// Makes the change in one direction, which is `now`; `times`: how often it was changed before.
    pub fn change(&self, heading: usize, now: &Direction, change: &Change, times: u64) -> Result<(), String> {
        let at = format!("link {} {}", self.link.name, HEADINGS[heading]);
        let (exit, mut batch) = (self.exits[heading], Batch::default());
        if self.link.backend == Backend::Ewan {
            model::change(&mut batch, Place { index: exit, parent: TC_H_ROOT, handle: ROOT }, change, &at);
            return Ok(self.socket.run(batch)?);
        }
        let then = &change.applied(now);
        if let Some(why) = kernel_link::refusal(now, then) {
            return Err(format!("{at}: {why}"));
        }
        let sizes = sizes(then, self.mtu);
        change::requests(&mut batch, exit, self.link.backend, [now, then], sizes, times, &at);
        Ok(self.socket.run(batch)?)
    }
}
