//! The plan: everything decided, as the compiler (labs/plan.py) writes it. Integers, the unit in the key.
//! Unknown fields are refused; tests/golden/*.plan.json is read by both sides' tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ewan_model::config::Direction;
use serde::{Deserialize, Serialize};

pub mod kernel_link;
pub mod layout;
mod node_settings;
mod services;
#[cfg(test)]
mod stages_tests;

pub use node_settings::NodeSettings;

pub const FORMAT: &str = "ewan-plan/3";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub format: String,
    /// Names everything the lab owns: namespace `ewan-<lab>-<node>`.
    pub lab: String,
    pub topology: String,
    pub seed: u64,
    pub routing: Routing,
    pub containers: Containers,
    pub nodes: Vec<Node>,
    pub wires: Vec<Wire>,
    pub links: Vec<Link>,
    pub spinners: Vec<Spinner>,
    pub pairs: Vec<Pair>,
    /// CPUs for end hosts and routers: programs run here, and received packets are steered here.
    pub host_cpus: Vec<u32>,
    /// Interfaces that are the host's own network cards. A wire between two of them is a cable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<Card>,
    /// Of each link that is a device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hardware: Vec<Hardware>,
    /// Of the share of a lab that one of several machines has: the wires that end on another one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tunnels: Vec<Tunnel>,
    /// Spinners never sleep.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub always_spins: bool,
    /// The virtual kernel of all nodes, where it is one that the user added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<OwnKernel>,
}

/// A virtual kernel by its name in the user's library, and the checksum of its program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnKernel {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
}

/// A wire whose other end is on another machine: the interface `end` is a VXLAN between two addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// The link that the wire is, or is a half of.
    pub link: String,
    pub end: End,
    pub vni: u32,
    /// Of this machine.
    pub local: String,
    pub remote: String,
    /// UDP, at both.
    pub port: u16,
    /// How long the tunnel itself takes in each direction of the link: so much less its emulator delays.
    pub forward_ns: u64,
    pub backward_ns: u64,
}

impl Tunnel {
    /// By heading.
    pub fn takes_ns(&self) -> [u64; 2] {
        [self.forward_ns, self.backward_ns]
    }
}

/// An interface of a node that is a network card of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// On the host.
    pub name: String,
    pub end: End,
    /// It keeps its own MAC address: who is at the other end of the cable is not the lab's, and may know others' of the same lab.
    pub own_mac: bool,
}

/// The external emulator that is a link: see labs/plan.py.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    pub link: String,
    pub driver: String,
    pub model: String,
    pub address: String,
    pub options: BTreeMap<String, String>,
    pub own_queue: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    Host,
    Router,
    Switch,
    Emulator,
}

/// Who finds the routers' routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// The plan.
    Static,
    Ospf,
    Bgp,
    Isis,
}

/// What only a lab of containers has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Containers {
    /// The engine's network is at eth0, the nodes' own interfaces begin at eth1.
    pub management: bool,
    pub dashboards: bool,
    pub ovs_bridge: bool,
}

/// A program that belongs to a node and is started in it, in the node's order; see labs/plan.py.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    pub name: String,
    pub kind: ServiceKind,
    pub argv: Vec<String>,
    pub files: BTreeMap<String, String>,
    pub ready: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceKind {
    /// Goes on; ready when its file is there.
    Daemon,
    /// Comes to its end before the next one starts.
    Setup,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    pub name: String,
    pub kind: NodeKind,
    pub interfaces: Vec<Interface>,
    pub routes: Vec<Route>,
    /// What the routing protocol is to find; nothing installs these.
    pub learned_routes: Vec<Route>,
    /// Written below /proc/sys inside the node's namespace, e.g. "net/ipv4/ip_forward": "1".
    pub sysctls: BTreeMap<String, String>,
    pub services: Vec<Service>,
    /// Of a host whose TCP differs from that of the lab's other hosts.
    pub stack: Option<Stack>,
    /// Of a host that is a machine with a kernel of its own: which one.
    pub machine: Option<String>,
    /// What it is made of, where the description says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<NodeSettings>,
}

/// What a host's routes tell its TCP (ip-route(8)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// `quickack`: each segment is acknowledged at once.
    pub quick_acks: bool,
    /// `window`: the receive window with which connections begin.
    pub window_bytes: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    pub name: String,
    pub mac: String,
    pub mtu: u32,
    /// "10.0.0.1/30", "fd00::1/64"; empty on an emulator's ports.
    pub addresses: Vec<String>,
    /// Permanent neighbours, so that no address resolution crosses an emulated link.
    pub neighbours: Vec<Neighbour>,
    pub egress: Egress,
    /// Received packets are processed on `host_cpus` (RPS), not on the spinner's CPU that delivers them.
    pub steer: bool,
    /// Of a switch's port, and of an interface whose frames have tags (IEEE 802.1Q).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlans: Option<Vlans>,
    /// The tunnel that ends at this interface. Such interfaces come after those that have a wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<Encapsulation>,
}

/// The tunnel of which an interface is an end: see labs/plan.py.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encapsulation {
    pub tunnel: String,
    pub kind: TunnelKind,
    /// Another one for each tunnel of the lab, from 1 on.
    pub number: u16,
    pub local: String,
    pub remote: String,
    /// The interface whose routes, those of packets from `local`, the outer packets take; the node's if it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub over: String,
    /// The private key of WireGuard in hexadecimal digits; `peer_key` is written in the same way.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub private_key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub peer_key: String,
    /// This end of WireGuard begins the handshake, and keeps the tunnel alive.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls: bool,
    /// 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub keepalive_s: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TunnelKind {
    Gre,
    Vxlan,
    Wireguard,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// The VLANs of an interface: those whose frames have a tag, and that of the untagged ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vlans {
    pub tagged: Vec<u16>,
    pub untagged: Option<u16>,
    /// Of an interface that is one VLAN of another one of its node: that one, which stands before it.
    pub parent: Option<String>,
}

impl Interface {
    /// The interface whose VLAN it is, and that VLAN; None for one that has a wire of its own.
    pub fn parent(&self) -> Option<(&str, u16)> {
        let vlans = self.vlans.as_ref()?;
        Some((vlans.parent.as_deref()?, *vlans.tagged.first()?))
    }

    /// Whether a wire ends here, and neither another interface's VLAN nor a tunnel.
    pub fn is_wired(&self) -> bool {
        self.parent().is_none() && self.tunnel.is_none()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Neighbour {
    pub address: String,
    pub mac: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Egress {
    None {},
    /// A real queue before an emulator's port, so that a full veth ring pushes back instead of dropping.
    Fifo {
        limit_packets: u32,
    },
    /// An access link's rate, as a host's own network card would hold it.
    Tbf {
        rate_bps: u64,
        burst_bytes: u32,
        limit_bytes: u32,
        overhead_bytes: u32,
    },
    /// A host of the virtual clock: seeded processing time, then the access link's rate, if it has one.
    Psp {
        /// 0: no rate.
        rate_bps: u64,
        /// What a packet counts beyond its Ethernet frame without FCS, and the least that it counts.
        overhead_bytes: i32,
        minimum_bytes: u32,
        limit_bytes: u32,
        /// If set, it holds in place of `limit_bytes`.
        limit_packets: Option<u32>,
        /// Each packet waits for a time uniform in [0, dither_ns), in order.
        dither_ns: u64,
        seed: u64,
    },
    /// A host's card, and before it the classes of what is paced (labs/link/egress.py).
    Sources {
        /// Any of the kinds above.
        card: Box<Egress>,
        /// Numbered from 1; the first is not paced.
        classes: Vec<PacedClass>,
        /// The class of what names none and no filter finds.
        default: u32,
        sorter: Sorter,
        /// Of each class; if set, packets hold in place of bytes.
        limit_bytes: u32,
        limit_packets: Option<u32>,
        /// As in `Psp`, where the card does not say how packets count.
        overhead_bytes: i32,
        minimum_bytes: u32,
    },
}

/// The queueing discipline that has the classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sorter {
    /// Of any kernel; 16 classes at most.
    Prio,
    Psp,
    /// The same, with PAUSE frames between packets in place of a timer, at a card whose line has the rate of `card`.
    PspGap,
}

/// Packets that are paced together: those whose socket names the class, or that a filter finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacedClass {
    pub filters: Vec<Filter>,
    pub pacer: Pacer,
}

/// Packets to an address, and to a port of a protocol if both are given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    pub address: String,
    pub port: Option<u16>,
    pub protocol: Option<Protocol>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    Tcp,
    Udp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Pacer {
    None {},
    Psp {
        rate_bps: u64,
        overhead_bytes: i32,
        minimum_bytes: u32,
    },
    /// By PAUSE frames; as in `Psp`.
    Gap {
        rate_bps: u64,
        overhead_bytes: i32,
        minimum_bytes: u32,
    },
    Tbf {
        rate_bps: u64,
        burst_bytes: u32,
    },
    /// Of each connection.
    Fq {
        rate_bps: u64,
    },
}

/// What emulates a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// A process of ours (`ewan-node link`).
    User,
    /// netem, below it psp, below that the queue.
    Kernel,
    /// netem, below it tbf, below that the queue: for comparison.
    Tbf,
    /// The model of `User`, in the virtual kernel: the queueing discipline `ewan`.
    Ewan,
    /// A device outside, between two cards of the host: it has no node, and its ports are the cards' names.
    Hardware,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// A prefix; "0.0.0.0/0" and "::/0" are the default.
    pub to: String,
    pub via: String,
    pub interface: String,
    /// If set, only packets from this address take it: of a node with several links.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The kernel takes the route with the smaller metric of two to one prefix, as long as its link has a carrier.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub metric: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    pub node: String,
    pub interface: String,
}

/// A veth pair: a plain link of its own, or one of the two halves of an emulated one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// The name of the link that it is, or is a half of.
    pub link: String,
    pub a: End,
    pub b: End,
}

/// An emulated link: a node of its own between two neighbours; `forward` goes from a to b.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub name: String,
    /// "wan" or "access".
    pub role: String,
    pub backend: Backend,
    /// The emulator node, and its two ports: `port_a` faces `a`.
    pub node: String,
    pub port_a: String,
    pub port_b: String,
    pub a: End,
    pub b: End,
    pub forward: Direction,
    pub backward: Direction,
}

/// The two directions of a link, in the order in which the plan has them.
pub const HEADINGS: [&str; 2] = ["forward", "backward"];

impl Link {
    /// Whether the kernel emulates it.
    pub fn is_of_kernel(&self) -> bool {
        !matches!(self.backend, Backend::User | Backend::Hardware)
    }

    /// `heading`: 0 forward, 1 backward.
    pub fn direction(&self, heading: usize) -> &Direction {
        [&self.forward, &self.backward][heading]
    }
}

/// One thread that spins on `cpu` and serves `links`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spinner {
    pub cpu: u32,
    pub links: Vec<String>,
}

/// The way across a link: forward goes from its end a to b.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Heading {
    Forward,
    Backward,
}

/// A link that packets cross, emulated or plain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    pub link: String,
    pub direction: Heading,
}

/// What packets cross from one host to another, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkPath {
    pub hops: Vec<Hop>,
    /// The place of the slowest one in `hops`.
    pub bottleneck: usize,
    pub bottleneck_bps: u64,
}

/// A pair of end hosts that the topology means to talk to each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    pub source: String,
    pub sink: String,
    /// Base RTT: the propagation delays of the path, both ways, without serialisation.
    pub rtt_ns: u64,
    /// From source to sink.
    pub forward: NetworkPath,
    pub backward: NetworkPath,
}

/// Reads and checks a plan; the error names the file and what is wrong in it.
pub fn read(path: &Path) -> Result<Plan, String> {
    let text = ewan_system::reading::regular(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text, path)
}

/// `path` is for the error only.
pub fn parse(text: &[u8], path: &Path) -> Result<Plan, String> {
    let plan: Plan = serde_json::from_slice(text).map_err(|error| {
        // It shows names of the plan as they are.
        format!("{}: {}", path.display(), ewan_system::reading::one_line(&error.to_string()))
    })?;
    if plan.format != FORMAT {
        return Err(format!("{}: format is {:?}, this ewan-node reads {FORMAT:?}", path.display(), plan.format));
    }
    Ok(plan)
}

impl Plan {
    /// The name of a node's network namespace.
    pub fn namespace(&self, node: &str) -> String {
        format!("ewan-{}-{node}", self.lab)
    }

    pub fn netns_path(&self, node: &str) -> PathBuf {
        Path::new("/run/netns").join(self.namespace(node))
    }

    /// What the description puts into the environment of a node's programs.
    pub fn environment(&self, node: &str) -> BTreeMap<String, String> {
        let own = self.nodes.iter().find(|known| known.name == node).and_then(|node| node.own.as_ref());
        own.map(|own| own.env.clone()).unwrap_or_default()
    }

    /// The MTU at one end of a wire.
    pub fn mtu(&self, end: &End) -> Result<u32, String> {
        self.interface(end).map(|interface| interface.mtu)
    }

    pub fn interface(&self, end: &End) -> Result<&Interface, String> {
        let node = self.nodes.iter().find(|node| node.name == end.node);
        let interface = node.and_then(|node| node.interfaces.iter().find(|i| i.name == end.interface));
        interface.ok_or_else(|| format!("the plan has no interface {}:{}", end.node, end.interface))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan with one of everything that a node's interfaces may have.
    const SMALL: &str = r#"{"format": "ewan-plan/3", "lab": "small", "topology": "graph", "seed": 1,
        "routing": "static", "containers": {"management": false, "dashboards": false, "ovs_bridge": false},
        "nodes": [{"name": "a", "kind": "host", "routes": [], "learned_routes": [], "stack": null, "sysctls": {}, "services": [], "interfaces": [{"name": "eth0",
            "mac": "02:00:00:00:00:01", "mtu": 1500, "addresses": ["10.0.0.1/30"], "steer": false,
            "neighbours": [], "egress": {"kind": "fifo", "limit_packets": 10}}]}],
        "wires": [], "links": [], "spinners": [], "pairs": [], "host_cpus": [0]}"#;

    fn parsed(text: &str) -> Result<Plan, String> {
        parse(text.as_bytes(), Path::new("small.plan.json"))
    }

    #[test]
    fn every_golden_plan_is_read_and_laid_out() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
        let files = std::fs::read_dir(&golden).expect("tests/golden is there");
        let plans: Vec<_> = files
            .map(|entry| entry.expect("a readable directory").path())
            .filter(|path| path.to_string_lossy().ends_with(".plan.json"))
            .collect();
        assert!(!plans.is_empty(), "{} holds no *.plan.json", golden.display());
        for path in plans {
            let plan = read(&path).expect("a golden plan is a plan");
            let layout = crate::layout::Layout::of(&plan).expect("a golden plan can be made");
            assert_eq!(layout.nodes.len(), plan.nodes.len());
        }
    }

    #[test]
    fn unknown_fields_are_refused_at_every_depth() {
        assert!(parsed(SMALL).is_ok());
        for (known, with_unknown) in [
            (r#""seed": 1"#, r#""seed": 1, "sede": 1"#),
            (r#""mtu": 1500"#, r#""mtu": 1500, "mut": 1500"#),
            (r#""limit_packets": 10"#, r#""limit_packets": 10, "limit_bytes": 10"#),
        ] {
            let refused = parsed(&SMALL.replace(known, with_unknown)).expect_err(with_unknown);
            assert!(refused.starts_with("small.plan.json: unknown field"), "{refused}");
        }
    }

    #[test]
    fn another_format_is_refused() {
        let refused = parsed(&SMALL.replace("ewan-plan/3", "ewan-plan/1")).expect_err("format 1");
        assert!(refused.contains("ewan-plan/1"), "{refused}");
    }
}
