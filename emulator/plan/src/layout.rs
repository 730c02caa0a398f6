//! A plan, checked and looked up: node and interface numbers, addresses and MACs as bytes.
//!
//! In: a plan. Out: what `apply` hands to the kernel, or one line about what is wrong; nothing exists yet then.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use ewan_system::netlink::requests::Vxlan;

use crate::{kernel_link, services};
use crate::{Backend, Card, End, Interface, Link, Node, Plan, Route, Tunnel, HEADINGS};

/// As descriptions have it (labs/spec/values.py).
const MTUS: std::ops::RangeInclusive<u32> = 576..=65_535;
/// IEEE 802.1Q, table 9-2.
const VLANS: std::ops::RangeInclusive<u16> = 1..=4094;
/// Numbers of interfaces start after the loopback's and are unique in the lab: both ends of a veth know the other's.
const FIRST_INDEX: u32 = 2;

pub struct Layout<'a> {
    pub nodes: Vec<PlacedNode<'a>>,
    /// Per wire that is no cable: (node, interface) of both ends.
    pub wires: Vec<[(usize, usize); 2]>,
    /// Per card of the plan.
    pub cards: Vec<(usize, usize)>,
    /// Per tunnel of the plan.
    pub tunnels: Vec<((usize, usize), Vxlan)>,
}

pub struct PlacedNode<'a> {
    pub node: &'a Node,
    pub ports: Vec<PlacedPort<'a>>,
    /// The link that this node is, if the kernel emulates it, and its two ports.
    pub link: Option<(&'a Link, [usize; 2])>,
}

/// Whether an interface is only in the node's machine, and not in its namespace.
fn in_machine(node: &Node, interface: &Interface) -> bool {
    node.machine.is_some() && interface.tunnel.is_some()
}

impl PlacedNode<'_> {
    /// The routes of the node's namespace: all but those by tunnels that end in the node's machine.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        let of = |route: &Route| self.node.interfaces.iter().find(|each| each.name == route.interface);
        self.node.routes.iter().filter(move |route| !of(route).is_some_and(|each| in_machine(self.node, each)))
    }
}

pub struct PlacedPort<'a> {
    pub interface: &'a Interface,
    pub index: u32,
    pub mac: [u8; 6],
    /// The host's card that it is.
    pub card: Option<&'a Card>,
    /// Whether it is the end of a tunnel to another machine.
    pub tunnelled: bool,
}

/// Letters, digits, '-', '_' and '.', for names become parts of paths.
fn check_name(what: &str, name: &str, most: usize) -> Result<(), String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > most || name.starts_with(['.', '-']) || !name.chars().all(fine) {
        return Err(format!("{what} {name:?}: use 1 to {most} letters, digits, '-', '_' or '.'"));
    }
    Ok(())
}

pub fn mac(text: &str) -> Result<[u8; 6], String> {
    let wrong = || format!("{text:?} is no MAC address: write six bytes as 02:00:00:00:00:01");
    let byte = |digits: &str| {
        let both = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        both.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
    };
    let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(wrong)
}

pub fn ip(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("{text:?} is no IP address"))
}

/// Both directions of a link are ones that its back end can make.
fn check_link(link: &Link) -> Result<(), String> {
    for (heading, name) in HEADINGS.into_iter().enumerate() {
        let direction = link.direction(heading);
        let at = |why: &str| format!("link {} {name}: {why}", link.name);
        ewan_model::check(direction).map_err(|why| at(&why))?;
        if let (Backend::Kernel | Backend::Tbf, Some(why)) = (link.backend, kernel_link::refusal(direction, direction))
        {
            return Err(at(why));
        }
    }
    Ok(())
}

/// "10.0.0.1/30"
pub fn prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || format!("{text:?} is no IP prefix");
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let (address, length) = (ip(address)?, length.parse::<u8>().map_err(|_| wrong())?);
    let most = if address.is_ipv4() { 32 } else { 128 };
    if length > most {
        return Err(wrong());
    }
    Ok((address, length))
}

impl<'a> Layout<'a> {
    pub fn of(plan: &'a Plan) -> Result<Self, String> {
        // A control socket's path has at most 107 bytes, a file's name ("ewan-LAB-NODE") at most 255.
        check_name("lab", &plan.lab, 64)?;
        plan.links.iter().try_for_each(check_link)?;
        let mut index = FIRST_INDEX..;
        let mut nodes = Vec::new();
        let mut numbers = HashMap::new();
        let of_kernel = plan.links.iter().filter(|link| link.is_of_kernel());
        let mut links: HashMap<_, _> = of_kernel.map(|link| (link.node.as_str(), link)).collect();
        for node in &plan.nodes {
            check_name("node", &node.name, 100)?;
            services::check(node)?;
            if numbers.insert(node.name.as_str(), nodes.len()).is_some() {
                return Err(format!("the plan has two nodes {}", node.name));
            }
            for key in node.sysctls.keys() {
                if !key.starts_with("net/") || key.contains("..") {
                    return Err(format!("node {}: sysctl {key:?} is not below net/, so it is the host's", node.name));
                }
            }
            let here = |interface: &&Interface| !in_machine(node, interface);
            let ports = node.interfaces.iter().filter(here).zip(&mut index).map(|(interface, index)| {
                check_name("interface", &interface.name, 15)?;
                let mac = mac(&interface.mac).map_err(|error| at(node, interface, &error))?;
                if !MTUS.contains(&interface.mtu) {
                    let why = format!("mtu {}: write {} to {}", interface.mtu, MTUS.start(), MTUS.end());
                    return Err(at(node, interface, &why));
                }
                let is = |end: &End| end.node == node.name && end.interface == interface.name;
                let card = plan.cards.iter().find(|card| is(&card.end));
                Ok(PlacedPort { interface, index, mac, card, tunnelled: plan.tunnels.iter().any(|each| is(&each.end)) })
            });
            let ports = ports.collect::<Result<Vec<_>, String>>()?;
            ports.iter().try_for_each(|port| check_vlans(node, port.interface))?;
            ports.iter().try_for_each(|port| check_tunnel(node, port.interface))?;
            let link = links.remove(node.name.as_str()).map(|link| link_ports(link, &ports)).transpose()?;
            nodes.push(PlacedNode { node, ports, link });
        }
        if let Some((node, link)) = links.into_iter().next() {
            return Err(format!("link {}: the plan has no node {node}", link.name));
        }
        let find = |end: &End| {
            let node = *numbers.get(end.node.as_str()).ok_or_else(|| format!("the plan has no node {}", end.node))?;
            let ports: &[PlacedPort] = &nodes[node].ports;
            let port = ports.iter().position(|port| port.interface.name == end.interface);
            let port = port.ok_or_else(|| format!("the plan has no interface {}:{}", end.node, end.interface))?;
            Ok((node, port))
        };
        let cards = plan.cards.iter().map(|card| find(&card.end)).collect::<Result<Vec<_>, String>>()?;
        let is_card = |(node, port): &(usize, usize)| nodes[*node].ports[*port].card.is_some();
        let mut wired: HashSet<_> = HashSet::new();
        let mut wires = Vec::new();
        for wire in &plan.wires {
            let ends = [find(&wire.a)?, find(&wire.b)?];
            if let Some(end) =
                [&wire.a, &wire.b].into_iter().zip(ends).find_map(|(end, place)| (!wired.insert(place)).then_some(end))
            {
                return Err(format!("two wires of the plan end at {}:{}", end.node, end.interface));
            }
            match ends.iter().filter(|end| is_card(end)).count() {
                0 => wires.push(ends),
                2 => {}
                _ => {
                    return Err(format!("link {}: a card is at one end of its wire, and none at the other", wire.link))
                }
            }
        }
        let mut known = HashSet::new();
        for (card, place) in plan.cards.iter().zip(&cards) {
            check_name("card", &card.name, 15)?;
            let Card { name, end: End { node, interface }, .. } = card;
            if !known.insert(Some(name)) {
                return Err(format!("two interfaces of the plan are the card {name}"));
            }
            if cards.iter().filter(|other| *other == place).count() > 1 {
                return Err(format!("{node}:{interface} is two cards of the plan"));
            }
            wired.insert(*place);
        }
        let mut tunnels = Vec::new();
        for tunnel in &plan.tunnels {
            let (place, End { node, interface }) = (find(&tunnel.end)?, &tunnel.end);
            let made =
                vxlan(tunnel).map_err(|why| format!("{node}:{interface}: the tunnel of {}: {why}", tunnel.link))?;
            if !wired.insert(place) {
                return Err(format!("{node}:{interface} is a tunnel's end, and another wire's or card's too"));
            }
            tunnels.push((place, made));
        }
        for (number, placed) in nodes.iter().enumerate() {
            let alone = |port: &usize| placed.ports[*port].interface.is_wired();
            if let Some(port) = (0..placed.ports.len()).filter(alone).find(|port| !wired.contains(&(number, *port))) {
                return Err(at(placed.node, placed.ports[port].interface, "no wire of the plan ends here"));
            }
        }
        Ok(Layout { nodes, wires, cards, tunnels })
    }
}

/// RFC 7348, section 5: 24 bits.
const VNIS: std::ops::RangeInclusive<u32> = 1..=0xff_ffff;

fn vxlan(tunnel: &Tunnel) -> Result<Vxlan, String> {
    let (local, remote) = (ip(&tunnel.local)?, ip(&tunnel.remote)?);
    if local.is_ipv4() != remote.is_ipv4() {
        return Err(format!("{local} and {remote} are not of one family"));
    }
    if !VNIS.contains(&tunnel.vni) {
        return Err(format!("vni {}: write {} to {}", tunnel.vni, VNIS.start(), VNIS.end()));
    }
    if matches!(tunnel.port, 0 | u16::MAX) {
        return Err(format!("port {}: write 1 to {}", tunnel.port, u16::MAX - 1));
    }
    Ok(Vxlan { vni: tunnel.vni, local, remote, port: tunnel.port })
}

/// An interface that is a VLAN of another one stands after it and has that VLAN alone.
fn check_vlans(node: &Node, interface: &Interface) -> Result<(), String> {
    let Some(vlans) = &interface.vlans else { return Ok(()) };
    if let Some(vlan) = vlans.tagged.iter().chain(&vlans.untagged).find(|vlan| !VLANS.contains(*vlan)) {
        return Err(at(node, interface, &format!("VLAN {vlan}: write {} to {}", VLANS.start(), VLANS.end())));
    }
    let Some(parent) = &vlans.parent else { return Ok(()) };
    let before = node.interfaces.iter().take_while(|other| other.name != interface.name);
    let known = before.filter(|other| other.parent().is_none()).any(|other| other.name == *parent);
    match (known, vlans.tagged.len(), vlans.untagged) {
        (true, 1, None) => Ok(()),
        (false, ..) => Err(at(node, interface, &format!("is a VLAN of {parent}, which is not before it"))),
        _ => Err(at(node, interface, "is one VLAN, with a tag: write it alone")),
    }
}

/// An end of a tunnel has two outer addresses of one family, and leaves by an interface with a wire.
fn check_tunnel(node: &Node, interface: &Interface) -> Result<(), String> {
    let Some(tunnel) = &interface.tunnel else { return Ok(()) };
    let wrong = |why: &str| at(node, interface, &format!("tunnel {}: {why}", tunnel.tunnel));
    let outer = [&tunnel.local, &tunnel.remote].map(|text| ip(text));
    let [local, remote] = outer.map(|address| address.map_err(|why| wrong(&why)));
    if local?.is_ipv4() != remote?.is_ipv4() {
        return Err(wrong("its outer addresses are not of one family"));
    }
    let over = node.interfaces.iter().find(|other| other.name == tunnel.over);
    if !tunnel.over.is_empty() && !over.is_some_and(Interface::is_wired) {
        return Err(wrong(&format!("no interface {} with a wire", tunnel.over)));
    }
    Ok(())
}

fn link_ports<'a>(link: &'a Link, ports: &[PlacedPort]) -> Result<(&'a Link, [usize; 2]), String> {
    let find = |name: &String| {
        let port = ports.iter().position(|port| port.interface.name == *name);
        port.ok_or_else(|| format!("link {}: the plan has no interface {}:{name}", link.name, link.node))
    };
    Ok((link, [find(&link.port_a)?, find(&link.port_b)?]))
}

fn at(node: &Node, interface: &Interface, what: &str) -> String {
    format!("{}:{}: {what}", node.name, interface.name)
}

#[cfg(test)]
mod tests {
    use ewan_model::config::Delay;

    use super::*;

    #[test]
    fn addresses_are_read_whole_or_refused() {
        assert_eq!(mac("02:e3:00:00:00:0a"), Ok([2, 0xe3, 0, 0, 0, 10]));
        for wrong in
            ["02:e3:00:00:00", "02:e3:zz:00:00:00:0a", "02:e3:00:00:00:0a:", "2:e3:0:0:0:a", "02:e3:00:00:00:+a"]
        {
            assert!(mac(wrong).is_err(), "{wrong}");
        }
        assert_eq!(prefix("10.0.0.1/30"), Ok(("10.0.0.1".parse().expect("v4"), 30)));
        assert_eq!(prefix("::/0").map(|(_, length)| length), Ok(0));
        assert!(prefix("10.0.0.1/33").is_err());
        assert!(prefix("10.0.0.1").is_err());
    }

    proptest::proptest! {
        #[test]
        fn what_is_taken_for_an_address_is_one(text in "[0-9a-f:./]{0,22}|[0-9]{1,3}\\.0\\.0\\.1/[0-9]{1,3}|fd00::[0-9a-f]{0,5}/[0-9]{1,3}") {
            if let Ok((address, length)) = prefix(&text) {
                proptest::prop_assert!(length <= if address.is_ipv4() { 32 } else { 128 }, "{}", text);
                proptest::prop_assert_eq!(text.split('/').next().map(ip), Some(Ok(address)));
            }
        }

        #[test]
        fn what_is_taken_for_a_mac_is_one(text in "([0-9a-fA-F]{1,2}:){4,6}[0-9a-fg+]{1,2}", bytes in proptest::prelude::any::<[u8; 6]>()) {
            let written = |mac: [u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
            proptest::prop_assert_eq!(mac(&written(bytes)), Ok(bytes));
            if let Ok(mac) = mac(&text) {
                proptest::prop_assert_eq!(written(mac), text.to_lowercase());
            }
        }
    }

    #[test]
    fn what_the_plan_does_not_say_is_refused_before_anything_exists() {
        let interface = r#"{"name": "eth0", "mac": "02:00:00:00:00:01", "mtu": 1500, "addresses": [], "steer": false,
            "neighbours": [], "egress": {"kind": "none"}}"#;
        let plan = |sysctl: &str, wires: &str| {
            let node = |name: &str| {
                format!(
                    r#"{{"name": "{name}", "kind": "host", "interfaces": [{interface}], "routes": [],
                        "learned_routes": [], "stack": null, "services": [], "sysctls": {{"{sysctl}": "1"}}}}"#
                )
            };
            let text = format!(
                r#"{{"format": "ewan-plan/3", "lab": "t", "topology": "graph", "seed": 1, "links": [], "spinners": [],
                    "routing": "static",
                    "containers": {{"management": false, "dashboards": false, "ovs_bridge": false}},
                    "nodes": [{}, {}], "wires": [{wires}], "pairs": [], "host_cpus": [0]}}"#,
                node("a"),
                node("b")
            );
            crate::parse(text.as_bytes(), std::path::Path::new("plan")).expect("a plan")
        };
        let said = |plan: &Plan| Layout::of(plan).err().unwrap_or_default();
        let wire =
            r#"{"link": "a-b", "a": {"node": "a", "interface": "eth0"}, "b": {"node": "b", "interface": "eth0"}}"#;
        let forward = "net/ipv4/ip_forward";
        assert_eq!(said(&plan(forward, wire)), "");
        assert_eq!(said(&plan(forward, "")), "a:eth0: no wire of the plan ends here");
        let mut small = plan(forward, wire);
        small.nodes[1].interfaces[0].mtu = 575;
        assert_eq!(said(&small), "b:eth0: mtu 575: write 576 to 65535");
        assert_eq!(said(&plan(forward, &format!("{wire}, {wire}"))), "two wires of the plan end at a:eth0");
        assert_eq!(said(&plan(forward, &wire.replace(r#""b", "i"#, r#""c", "i"#))), "the plan has no node c");
        assert!(said(&plan("kernel/panic", wire)).contains("is the host's"));
        assert!(said(&plan("net/../kernel/panic", wire)).contains("is the host's"));
    }

    #[test]
    fn an_interface_that_is_a_vlan_of_another_has_one_id_and_stands_after_it() {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/campus.plan.json");
        let plan = crate::read(std::path::Path::new(golden)).expect("a golden plan");
        let at = plan.nodes.iter().position(|node| node.name == "r1").expect("r1");
        let said = |change: &dyn Fn(&mut Vec<Interface>)| {
            let mut changed = plan.clone();
            change(&mut changed.nodes[at].interfaces);
            Layout::of(&changed).err().unwrap_or_default()
        };
        let of = |ports: &mut Vec<Interface>, change: &dyn Fn(&mut crate::Vlans)| {
            change(ports[2].vlans.as_mut().expect("eth0.10"));
        };
        assert_eq!(said(&|_| {}), "");
        assert_eq!(said(&|ports| of(ports, &|own| own.tagged = vec![4095])), "r1:eth0.10: VLAN 4095: write 1 to 4094");
        let two = said(&|ports| of(ports, &|own| own.tagged = vec![10, 20]));
        assert_eq!(two, "r1:eth0.10: is one VLAN, with a tag: write it alone");
        let lost = said(&|ports| of(ports, &|own| own.parent = Some("eth7".into())));
        assert_eq!(lost, "r1:eth0.10: is a VLAN of eth7, which is not before it");
        assert_eq!(said(&|ports| ports.swap(0, 2)), "r1:eth0.10: is a VLAN of eth0, which is not before it");
        let alone = said(&|ports| of(ports, &|own| own.parent = None));
        assert_eq!(alone, "r1:eth0.10: no wire of the plan ends here");
    }

    #[test]
    fn a_link_of_the_kernel_needs_its_node_and_both_ports() {
        let text = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/golden/dumbbell-virtual.plan.json"
        ));
        let mut plan = crate::parse(text.expect("a file").as_bytes(), std::path::Path::new("plan")).expect("a plan");
        plan.links[0].backend = Backend::Kernel;
        let said = |change: &dyn Fn(&mut Link)| {
            let mut changed = plan.clone();
            change(&mut changed.links[0]);
            Layout::of(&changed).err().unwrap_or_default()
        };
        assert_eq!(said(&|_| {}), "");
        assert_eq!(said(&|link| link.node = "nowhere".into()), "link core: the plan has no node nowhere");
        assert_eq!(said(&|link| link.port_b = "eth9".into()), "link core: the plan has no interface core:eth9");
        assert!(said(&|link| link.backward.rate_bps = 7).starts_with("link core backward: rate_bps 7: write 8000 "));
        let table = said(&|link| link.forward.delay = Delay::Table { delays_ns: vec![1] });
        assert!(table.starts_with("link core forward: netem has no such distribution"), "{table}");
    }

    #[test]
    fn a_tunnel_is_a_wire_whose_other_end_is_elsewhere() {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/dumbbell.plan.json");
        let mut plan = crate::read(std::path::Path::new(golden)).expect("a golden plan");
        let core = plan.links[0].clone();
        let cut = plan.wires.iter().position(|wire| wire.b == core.b).expect("its second half");
        let wire = plan.wires.remove(cut);
        let alone = Layout::of(&plan).err().unwrap_or_default();
        assert!(alone.ends_with("no wire of the plan ends here"), "{alone}");
        let tunnel = |end: End, vni| {
            let (local, remote) = ("192.0.2.1".into(), "192.0.2.2".into());
            Tunnel { link: core.name.clone(), end, vni, local, remote, port: 4789, forward_ns: 0, backward_ns: 0 }
        };
        plan.tunnels = vec![tunnel(wire.a.clone(), 7), tunnel(wire.b.clone(), 8)];
        let layout = Layout::of(&plan).map_err(|why| panic!("{why}")).expect("a layout");
        assert_eq!(layout.tunnels.iter().map(|(_, made)| made.vni).collect::<Vec<_>>(), [7, 8]);
        let said = |change: &dyn Fn(&mut Tunnel)| {
            let mut changed = plan.clone();
            change(&mut changed.tunnels[0]);
            Layout::of(&changed).err().unwrap_or_default()
        };
        assert!(said(&|own| own.vni = 1 << 24).ends_with("vni 16777216: write 1 to 16777215"));
        assert!(said(&|own| own.remote = "2001:db8::1".into()).ends_with("are not of one family"));
        assert!(said(&|own| own.end = wire.b.clone()).contains("is a tunnel's end, and another"));
        assert!(said(&|own| own.port = 0).ends_with("port 0: write 1 to 65534"));
    }

    #[test]
    fn names_that_would_leave_their_directory_are_refused() {
        assert!(check_name("node", "left-1.a", 100).is_ok());
        for name in ["", "..", "a/b", "-x", "a b", "interface-is-long"] {
            assert!(check_name("interface", name, 15).is_err(), "{name}");
        }
    }
}
