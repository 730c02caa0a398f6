//! Who reaches whom, hop by hop through the nodes' own routing tables.
//!
//! In: a plan and what its hosts and routers would do with a packet (`Fib`). Out: the pairs of hosts without a way, told
//! apart by whether the topology has one at all without the links that are dead; and whether the pairs that the plan
//! means to talk go the plan's way.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};

use serde::Serialize;

use super::fib::Fib;
use ewan_plan::layout;
use ewan_plan::{End, Interface, NetworkPath, NodeKind, Plan};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pair {
    pub from: String,
    pub to: String,
}

/// An end of a segment: a host's or router's interface.
struct Member {
    node: usize,
    interface: String,
    addresses: Vec<IpAddr>,
    /// The kernel's own, made of the MAC.
    local: Option<IpAddr>,
}

/// What never changes: who is beside whom.
pub struct Map {
    /// Hosts and routers; their numbers are used from here on.
    pub nodes: Vec<String>,
    hosts: Vec<usize>,
    /// What lies between interfaces: wires, the emulated links and switches that join them.
    segments: Vec<Vec<Member>>,
    /// The emulated link in a segment of two, if any.
    links: Vec<Option<String>>,
    /// (node, interface) → segment.
    at: HashMap<(usize, String), usize>,
    /// Each host's first address of each family.
    addresses: HashMap<usize, Vec<IpAddr>>,
    /// Source, sink, and the emulated links on the plan's path between them, in order; each pair both ways.
    paths: Vec<(usize, usize, Vec<String>)>,
}

/// What routes say at one moment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Some way exists, and the routes do not find it.
    pub unreachable: Vec<Pair>,
    /// No way exists: dead links cut one off from the other.
    pub cut_off: Vec<Pair>,
    /// A pair does not go the plan's way, though no link is dead.
    pub astray: Vec<Pair>,
}

impl Reach {
    pub fn settled(&self) -> bool {
        self.unreachable.is_empty() && self.astray.is_empty()
    }
}

impl Map {
    pub fn of(plan: &Plan) -> Result<Self, String> {
        let ends = |kind: NodeKind| matches!(kind, NodeKind::Host | NodeKind::Router);
        let known: Vec<_> = plan.nodes.iter().filter(|node| ends(node.kind)).collect();
        let number: HashMap<_, _> =
            known.iter().enumerate().map(|(number, node)| (node.name.as_str(), number)).collect();
        let joined = Segments::of(plan);
        let (mut segments, mut links, mut at) = (Vec::<Vec<Member>>::new(), Vec::new(), HashMap::new());
        let mut numbers = HashMap::new();
        for (number, node) in known.iter().enumerate() {
            for interface in &node.interfaces {
                let root = joined.root(&node.name, interface);
                let segment = *numbers.entry(root).or_insert_with(|| {
                    segments.push(Vec::new());
                    links.push(None);
                    segments.len() - 1
                });
                segments[segment].push(member(number, interface)?);
                at.insert((number, interface.name.clone()), segment);
            }
        }
        for link in &plan.links {
            let end = number.get(link.a.node.as_str()).map(|number| (*number, link.a.interface.clone()));
            if let Some(segment) = end.and_then(|end| at.get(&end)) {
                links[*segment] = Some(link.name.clone());
            }
        }
        let hosts: Vec<_> = (0..known.len()).filter(|number| known[*number].kind == NodeKind::Host).collect();
        let first = |host: &usize| {
            let all = || segments.iter().flatten().filter(|member| member.node == *host).flat_map(|m| &m.addresses);
            let of = |v6: bool| all().find(move |address| address.is_ipv6() == v6).copied();
            (*host, [false, true].into_iter().filter_map(of).collect())
        };
        let emulated: HashSet<_> = plan.links.iter().map(|link| link.name.as_str()).collect();
        let path = |from: &str, to: &str, path: &NetworkPath| {
            let known = path.hops.iter().filter(|hop| emulated.contains(hop.link.as_str()));
            Some((*number.get(from)?, *number.get(to)?, known.map(|hop| hop.link.clone()).collect()))
        };
        let both = |pair: &ewan_plan::Pair| {
            let (source, sink) = (pair.source.as_str(), pair.sink.as_str());
            [path(source, sink, &pair.forward), path(sink, source, &pair.backward)]
        };
        let paths = plan.pairs.iter().flat_map(both).flatten();
        Ok(Map {
            nodes: known.iter().map(|node| node.name.clone()).collect(),
            addresses: hosts.iter().map(first).collect(),
            paths: paths.collect(),
            hosts,
            segments,
            links,
            at,
        })
    }

    /// `fibs`: of `nodes`, in their order.
    pub fn reach(&self, fibs: &[Fib]) -> Reach {
        let parts = self.parts(fibs);
        let mut reach = Reach::default();
        let pair = |from: usize, to: usize| Pair { from: self.nodes[from].clone(), to: self.nodes[to].clone() };
        for &to in &self.hosts {
            let mut fine = vec![true; self.nodes.len()];
            for address in &self.addresses[&to] {
                let arrives = self.arrivals(fibs, to, *address);
                fine.iter_mut().zip(&arrives).for_each(|(fine, arrives)| *fine &= arrives);
            }
            for &from in self.hosts.iter().filter(|from| **from != to && !fine[**from]) {
                let whole = parts[from] == parts[to];
                if whole { &mut reach.unreachable } else { &mut reach.cut_off }.push(pair(from, to));
            }
        }
        let whole = self.at.keys().all(|(node, interface)| fibs[*node].carries(interface));
        if whole && reach.unreachable.is_empty() {
            for (from, to, links) in &self.paths {
                let wanted: Vec<_> = links.iter().map(String::as_str).collect();
                let astray = |address: &IpAddr| self.way(fibs, *from, *to, *address).as_ref() != Some(&wanted);
                if self.addresses[to].iter().any(astray) {
                    reach.astray.push(pair(*from, *to));
                }
            }
        }
        reach
    }

    /// The node to which `node` hands a packet for `to`, and over which segment.
    fn next(&self, fibs: &[Fib], node: usize, to: IpAddr) -> Option<(usize, usize)> {
        let hop = fibs[node].hop(to)?;
        let segment = *self.at.get(&(node, hop.interface))?;
        let others = || self.segments[segment].iter().filter(|member| member.node != node);
        let wanted = hop.gateway.unwrap_or(to);
        let found = others().find(|member| member.addresses.contains(&wanted) || member.local == Some(wanted))?;
        fibs[found.node].carries(&found.interface).then_some((found.node, segment))
    }

    /// For each node: does a packet from it to `to`, an address of `end`, arrive?
    fn arrivals(&self, fibs: &[Fib], end: usize, to: IpAddr) -> Vec<bool> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            Unknown,
            OnTheWay,
            Known(bool),
        }
        let mut states = vec![State::Unknown; self.nodes.len()];
        states[end] = State::Known(true);
        for start in 0..self.nodes.len() {
            let (mut here, mut passed) = (start, Vec::new());
            let arrives = loop {
                match states[here] {
                    State::Known(arrives) => break arrives,
                    State::OnTheWay => break false, // in a circle
                    State::Unknown => {}
                }
                states[here] = State::OnTheWay;
                passed.push(here);
                match self.next(fibs, here, to) {
                    Some((next, _)) => here = next,
                    None => break false,
                }
            };
            passed.into_iter().for_each(|node| states[node] = State::Known(arrives));
        }
        states.into_iter().map(|state| state == State::Known(true)).collect()
    }

    /// Does any host reach another over this emulated link?
    pub fn uses(&self, fibs: &[Fib], link: &str) -> bool {
        let pairs = self.hosts.iter().flat_map(|from| self.hosts.iter().map(move |to| (*from, *to)));
        pairs.filter(|(from, to)| from != to).any(|(from, to)| {
            let ways = self.addresses[&to].iter().filter_map(|address| self.way(fibs, from, to, *address));
            ways.flatten().any(|passed| passed == link)
        })
    }

    /// The emulated links that a packet passes.
    fn way(&self, fibs: &[Fib], from: usize, end: usize, to: IpAddr) -> Option<Vec<&str>> {
        let (mut here, mut passed) = (from, Vec::new());
        for _ in 0..=self.nodes.len() {
            if here == end {
                return Some(passed);
            }
            let (next, segment) = self.next(fibs, here, to)?;
            passed.extend(self.links[segment].as_deref());
            here = next;
        }
        None
    }

    /// Nodes that live interfaces join have the same number.
    fn parts(&self, fibs: &[Fib]) -> Vec<usize> {
        let mut parts: Vec<_> = (0..self.nodes.len()).collect();
        for segment in &self.segments {
            let live: HashSet<_> = segment
                .iter()
                .filter(|member| fibs[member.node].carries(&member.interface))
                .map(|member| parts[member.node])
                .collect();
            if let Some(least) = live.iter().min().copied() {
                parts.iter_mut().filter(|part| live.contains(part)).for_each(|part| *part = least);
            }
        }
        parts
    }
}

fn member(node: usize, interface: &Interface) -> Result<Member, String> {
    let addresses = interface.addresses.iter().map(|text| layout::prefix(text).map(|(address, _)| address));
    Ok(Member {
        node,
        interface: interface.name.clone(),
        addresses: addresses.collect::<Result<_, String>>()?,
        local: layout::mac(&interface.mac).ok().map(|mac| link_local(mac).into()),
    })
}

/// RFC 4291, appendix A.
fn link_local(mac: [u8; 6]) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
    let mut octets = [0; 16];
    octets[..2].copy_from_slice(&[0xfe, 0x80]);
    octets[8..].copy_from_slice(&[a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    octets.into()
}

/// What is one segment: the two ends of a wire, the ports of an emulator, and those of a switch that are in one VLAN.
struct Segments<'a> {
    above: HashMap<Channel<'a>, Channel<'a>>,
}

/// Frames at an interface that have one tag, or none: node, interface, the tag's VLAN.
type Channel<'a> = (&'a str, &'a str, Option<u16>);

impl<'a> Segments<'a> {
    fn of(plan: &'a Plan) -> Self {
        let mut joined = Segments { above: HashMap::new() };
        let vlans = plan.nodes.iter().flat_map(|node| &node.interfaces).filter_map(|port| port.vlans.as_ref());
        let tags: BTreeSet<u16> = vlans.flat_map(|vlans| &vlans.tagged).copied().collect();
        let tags = || std::iter::once(None).chain(tags.iter().copied().map(Some));
        for wire in &plan.wires {
            for tag in tags() {
                let end = |end: &'a End| (end.node.as_str(), end.interface.as_str(), tag);
                joined.join(end(&wire.a), end(&wire.b));
            }
        }
        for node in &plan.nodes {
            let channels = |interface: &'a Interface| -> Vec<(Option<u16>, Channel<'a>)> {
                let at = |tag| (node.name.as_str(), interface.name.as_str(), tag);
                let Some(vlans) = &interface.vlans else { return tags().map(|tag| (tag, at(tag))).collect() };
                let untagged = vlans.untagged.map(|vlan| (Some(vlan), at(None)));
                vlans.tagged.iter().map(|vlan| (Some(*vlan), at(Some(*vlan)))).chain(untagged).collect()
            };
            if matches!(node.kind, NodeKind::Emulator | NodeKind::Switch) {
                let mut first = HashMap::new();
                for (vlan, channel) in node.interfaces.iter().flat_map(channels) {
                    joined.join(*first.entry(vlan).or_insert(channel), channel);
                }
            }
        }
        joined
    }

    fn join(&mut self, a: Channel<'a>, b: Channel<'a>) {
        let (a, b) = (self.above(a), self.above(b));
        if a != b {
            self.above.insert(a, b);
        }
    }

    fn above(&self, mut end: Channel<'a>) -> Channel<'a> {
        while let Some(above) = self.above.get(&end) {
            end = *above;
        }
        end
    }

    /// Of the untagged frames of an interface; of one that is a VLAN of another, of the tagged ones there.
    fn root(&self, node: &'a str, interface: &'a Interface) -> Channel<'a> {
        let (name, tag) =
            interface.parent().map_or((interface.name.as_str(), None), |(parent, vlan)| (parent, Some(vlan)));
        self.above((node, name, tag))
    }
}

#[cfg(test)]
#[path = "reach_tests.rs"]
mod tests;
