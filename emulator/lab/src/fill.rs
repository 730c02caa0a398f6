//! What is inside a node whose interfaces exist: kernel settings, offloads, queueing disciplines, addresses, routes.
//!
//! In: a node of the plan, placed, and a netlink socket of its network namespace. Out: a node that works, or one line.
//! `apply` fills the nodes that it has made, a container fills the one that it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, OnceLock};

use ewan_system::fault;
use ewan_system::netlink::requests::{self, Metrics};
use ewan_system::netlink::{Batch, Socket};

use crate::ethtool::Offloads;
use crate::kernel_files::{sysctl, Sysctl, Sysfs};
use crate::{qdisc, tunnel_ends};
use ewan_plan::layout::{ip, mac, prefix, PlacedNode, PlacedPort};
use ewan_plan::Plan;

/// A node without these would be up and yet not work.
const ESSENTIAL: [&str; 2] = ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"];
/// Namespaces may use the variants that the host allows to everybody; the host's list is not ours to change.
const CONGESTION_CONTROL: &str = "net/ipv4/tcp_congestion_control";

/// What this kernel lacks and the lab does without; how many times.
#[derive(Default)]
pub struct Notes(Mutex<BTreeMap<String, u32>>);

impl Notes {
    pub fn warn(&self, warning: String) {
        *self.0.lock().expect("no thread panicked").entry(warning).or_default() += 1;
    }

    pub fn take(&self) -> BTreeMap<String, u32> {
        std::mem::take(&mut self.0.lock().expect("no thread panicked"))
    }
}

/// Before there are interfaces: nothing of the kernel's own crosses the links later. No link-local addresses, whose
/// owner solicits routers, and the reports of multicast groups at once, before the links run. Without IPv6 there is
/// nothing to keep quiet.
pub fn keep_quiet() {
    for (key, value) in [("addr_gen_mode", "1"), ("mldv2_unsolicited_report_interval", "1")] {
        let _ = sysctl(&format!("net/ipv6/conf/default/{key}"), value);
    }
}

/// Sets the node's sysctls that name one of its interfaces, or all others; the calling thread is in the node.
pub fn set_sysctls(placed: &PlacedNode, notes: &Notes, of_interfaces: bool) -> Result<(), String> {
    for (key, value) in placed.node.sysctls.iter().filter(|(key, _)| names_interface(key, placed) == of_interfaces) {
        fault::step();
        let node = &placed.node.name;
        match sysctl(key, value) {
            Ok(()) => {}
            Err(Sysctl::Absent) if ESSENTIAL.contains(&key.as_str()) => {
                return Err(format!("node {node}: this kernel has no sysctl {key} in a network namespace"));
            }
            Err(Sysctl::Absent) => notes.warn(format!("this kernel has no sysctl {key} in a network namespace")),
            Err(Sysctl::Refused(error)) if key == CONGESTION_CONTROL && error.raw_os_error() == Some(libc::EPERM) => {
                // Reno is allowed everywhere. Not the host's default: a socket that begins under BBR keeps BBR's
                // pacing, a timer for each packet, when its program names another variant after it has connected.
                let _ = sysctl(key, "reno");
                notes.warn(format!(
                    "the nodes' default congestion control is reno: the host allows no namespace {value} (on the \
                     host: sysctl net.ipv4.tcp_allowed_congestion_control); programs that name theirs have it"
                ));
            }
            // A container without the right to write there may have been given the value by who made it.
            Err(Sysctl::Refused(_)) if is(key, value) => {}
            Err(Sysctl::Refused(error)) => {
                return Err(format!("node {node}: sysctl {key} = {value:?}: this kernel refuses it: {error}"));
            }
        }
    }
    Ok(())
}

/// Whether a sysctl has this value, whatever stands between its words.
fn is(key: &str, value: &str) -> bool {
    let found = std::fs::read_to_string(std::path::Path::new("/proc/sys").join(key)).unwrap_or_default();
    found.split_whitespace().eq(value.split_whitespace())
}

fn names_interface(key: &str, placed: &PlacedNode) -> bool {
    key.split('/').any(|part| placed.ports.iter().any(|port| port.interface.name == part))
}

/// Offloads of all interfaces off, and what is in files; the calling thread is in the node.
pub fn settle(
    placed: &PlacedNode,
    socket: &Socket,
    plan: &Plan,
    offloads: &OnceLock<Result<Offloads, String>>,
    notes: &Notes,
) -> Result<(), String> {
    let name = &placed.node.name;
    fault::step();
    let checksums = leave_the_kernel(plan);
    for port in &placed.ports {
        let interface = &port.interface.name;
        if port.interface.parent().is_some() {
            // One of the kernel's VLANs follows its parent; what else it has is never seen on a wire.
            if let Ok(own) = Offloads::of(socket, interface, checksums) {
                let _ = own.off(socket, interface);
            }
            continue;
        }
        let wrong = |error: String| format!("{name}:{interface}: {error}");
        if let Some(card) = port.card {
            let stayed =
                Offloads::of(socket, interface, checksums).and_then(|own| own.off_where_possible(socket, interface));
            for feature in stayed.map_err(wrong)? {
                notes.warn(format!("card {} at {name}:{interface} keeps its offload {feature}", card.name));
            }
            continue;
        }
        if port.tunnelled || port.interface.tunnel.is_some() {
            // Not a veth: it has offloads of its own.
            let off = Offloads::of(socket, interface, checksums).and_then(|own| own.off(socket, interface));
            off.map_err(wrong)?;
            continue;
        }
        let known = offloads.get_or_init(|| Offloads::of(socket, interface, checksums));
        let off = known.as_ref().map_err(Clone::clone).and_then(|known| known.off(socket, interface));
        off.map_err(wrong)?;
    }
    set_sysctls(placed, notes, true)?;
    if placed.ports.iter().any(|port| port.interface.steer) {
        fault::step();
        steer(placed, plan).unwrap_or_else(|error| {
            notes.warn(format!("received packets are not steered away from the spinners' CPUs (RPS): {error}"));
        });
    }
    if let Some(warning) = placed.link.and_then(|(link, _)| qdisc::warning(link)) {
        notes.warn(warning);
    }
    Ok(())
}

/// Whether packets go through a program: what a card would have filled in is missing there.
fn leave_the_kernel(plan: &Plan) -> bool {
    let mut words = plan.nodes.iter().flat_map(|node| &node.services).flat_map(|service| &service.argv);
    // Open vSwitch forwards in its daemon then.
    plan.links.iter().any(|link| link.backend == ewan_plan::Backend::User)
        || words.any(|word| word == "datapath_type=netdev")
}

/// Whether `settle` reads or writes files, which show the namespace of the thread that opens them.
pub fn needs_files(placed: &PlacedNode) -> bool {
    placed.ports.iter().any(|port| port.interface.steer)
        || placed.node.sysctls.keys().any(|key| names_interface(key, placed))
}

fn steer(placed: &PlacedNode, plan: &Plan) -> Result<(), String> {
    let sysfs = Sysfs::open().map_err(|error| format!("opening sysfs: {error}"))?;
    let mut steered = placed.ports.iter().filter(|port| port.interface.steer);
    steered.try_for_each(|port| sysfs.steer(&port.interface.name, &plan.host_cpus)).map_err(|error| error.to_string())
}

/// The routing table for packets from the addresses of a node's first interface; each further one has the next.
const FIRST_TABLE: u8 = 100;
const MANY: &str = "the node has too many interfaces for a routing table of each";

/// The table for packets from one of a node's addresses.
fn table_of(placed: &PlacedNode, source: &str) -> Result<u8, String> {
    let has = |port: &PlacedPort| port.interface.addresses.iter().any(|text| text.split('/').next() == Some(source));
    let place = placed.ports.iter().position(has).ok_or_else(|| format!("the node has no address {source}"))?;
    let number = u8::try_from(place).ok().and_then(|place| FIRST_TABLE.checked_add(place));
    number.filter(|table| *table < libc::RT_TABLE_DEFAULT).ok_or_else(|| MANY.into())
}

/// Adds all that goes by netlink: queueing disciplines before the interfaces go up, as changing them later waits for
/// packets; routes last.
pub fn requests(batch: &mut Batch, placed: &PlacedNode) -> Result<(), String> {
    let name = &placed.node.name;
    let metrics = placed.node.stack.map_or_else(Metrics::default, |stack| Metrics {
        quick_acks: stack.quick_acks,
        window_bytes: stack.window_bytes,
    });
    requests::up(batch, 1, format!("{name}: loopback"));
    if placed.node.own.as_ref().is_some_and(|own| own.too_big.is_some()) {
        let addresses = placed.ports.iter().flat_map(|port| &port.interface.addresses);
        let mut families: Vec<bool> = addresses.map(|text| text.contains(':')).collect();
        families.sort_unstable();
        families.dedup();
        for with_v6 in families {
            requests::silence_too_big(batch, with_v6, format!("{name}: rule for packets that are too big"));
        }
    }
    if let Some((link, [a, b])) = placed.link {
        let (a, b) = (&placed.ports[a], &placed.ports[b]);
        qdisc::link(batch, link, a.index, b.index, a.interface.mtu);
    }
    for port in &placed.ports {
        let (interface, index) = (port.interface, port.index);
        let at = format!("{name}:{}", interface.name);
        let wrong = |error: String| format!("{at}: {error}");
        qdisc::egress(batch, index, interface.mtu, &interface.egress, &at)?;
        requests::up(batch, index, format!("{at}: bringing the interface up"));
        for text in &interface.addresses {
            let (address, length) = prefix(text).map_err(wrong)?;
            requests::address(batch, index, address, length, format!("{at}: address {text}"));
            if metrics != Metrics::default() && length < if address.is_ipv4() { 32 } else { 128 } {
                let what = format!("{at}: what the route to the network of {text} tells TCP");
                requests::connected(batch, index, address, length, metrics, what);
            }
        }
        for neighbour in &interface.neighbours {
            let (address, mac) = (ip(&neighbour.address).map_err(wrong)?, mac(&neighbour.mac).map_err(wrong)?);
            requests::neighbour(batch, index, address, mac, format!("{at}: neighbour {}", neighbour.address));
        }
    }
    let mut ruled = BTreeSet::new();
    for route in placed.routes() {
        let wrong = |error: String| format!("{name}: route to {}: {error}", route.to);
        let port = placed.ports.iter().find(|port| port.interface.name == route.interface);
        let port = port.ok_or_else(|| wrong(format!("no interface {}", route.interface)))?;
        let (to, via) = (prefix(&route.to).map_err(wrong)?, ip(&route.via).map_err(wrong)?);
        let mut what = format!("{name}: route to {} via {}", route.to, route.via);
        let mut table = libc::RT_TABLE_MAIN;
        if !route.source.is_empty() {
            what = format!("{what} from {}", route.source);
            table = table_of(placed, &route.source).map_err(wrong)?;
            let from = ip(&route.source).map_err(wrong)?;
            if ruled.insert(from) {
                requests::rule(batch, from, table, format!("{name}: rule for packets from {from}"));
            }
        }
        let by = requests::NextHop { index: port.index, via, metric: route.metric };
        requests::route(batch, to, &by, table, metrics, what);
    }
    for tunnel in placed.ports.iter().filter_map(|port| port.interface.tunnel.as_ref()) {
        if let Some(mark) = tunnel_ends::mark(tunnel) {
            let what = format!("{name}: rule for the outer packets of {}", tunnel.tunnel);
            let table = table_of(placed, &tunnel.local).map_err(|error| format!("{what}: {error}"))?;
            requests::rule_of_mark(batch, tunnel.local.contains(':'), mark, table, what);
        }
    }
    Ok(())
}
