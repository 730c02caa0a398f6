use super::super::fib::tests::fib;
use super::*;
use ewan_plan::{Heading, Hop, NetworkPath, Node, Wire};

/// Three routers in a ring, each with a host: r1-r2 is "ab", r2-r3 "bc", r3-r1 "ca", of which "ab" is emulated. Router i
/// has eth0 towards the next, eth1 towards the one before, eth2 towards its host, 10.0.i.0/30.
fn ring() -> Plan {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/dumbbell.plan.json");
    let mut plan = ewan_plan::read(Path::new(golden)).expect("a golden plan");
    let mut link = plan.links[0].clone();
    let node = |name: String, kind: NodeKind, ports: &[(&str, String)]| {
        let mut node: Node = plan.nodes[0].clone();
        let port = |(name, address): &(&str, String)| {
            let mut port = node.interfaces[0].clone();
            port.name = (*name).to_owned();
            port.addresses = if address.is_empty() { vec![] } else { vec![address.clone()] };
            port
        };
        node.interfaces = ports.iter().map(port).collect();
        (node.name, node.kind) = (name, kind);
        node
    };
    let mut nodes = Vec::new();
    for i in 1..=3 {
        let before = (i + 1) % 3 + 1;
        nodes.push(node(format!("h{i}"), NodeKind::Host, &[("eth0", format!("10.0.{i}.1/30"))]));
        let ports = [
            ("eth0", format!("10.1.{i}.1/30")),
            ("eth1", format!("10.1.{before}.2/30")),
            ("eth2", format!("10.0.{i}.2/30")),
        ];
        nodes.push(node(format!("r{i}"), NodeKind::Router, &ports));
    }
    nodes.push(node("ab".into(), NodeKind::Emulator, &[("eth0", String::new()), ("eth1", String::new())]));
    let end = |node: &str, interface: &str| End { node: node.into(), interface: interface.into() };
    let wire = |a: End, b: End| Wire { link: format!("{}-{}", a.node, b.node), a, b };
    plan.wires = vec![
        wire(end("r1", "eth0"), end("ab", "eth0")),
        wire(end("ab", "eth1"), end("r2", "eth1")),
        wire(end("r2", "eth0"), end("r3", "eth1")),
        wire(end("r3", "eth0"), end("r1", "eth1")),
    ];
    for i in 1..=3 {
        plan.wires.push(wire(end(&format!("h{i}"), "eth0"), end(&format!("r{i}"), "eth2")));
    }
    (link.name, link.node, link.a, link.b) = ("ab".into(), "ab".into(), end("r1", "eth0"), end("r2", "eth1"));
    let mut pair = plan.pairs[0].clone();
    let path = |links: [&str; 3], direction: Heading| NetworkPath {
        hops: links.iter().map(|link| Hop { link: (*link).into(), direction }).collect(),
        ..pair.forward.clone()
    };
    let forward = path(["h1-r1", "ab", "h2-r2"], Heading::Forward);
    let backward = path(["h2-r2", "ab", "h1-r1"], Heading::Backward);
    (pair.source, pair.sink, pair.forward, pair.backward) = ("h1".into(), "h2".into(), forward, backward);
    (plan.nodes, plan.links, plan.pairs) = (nodes, vec![link], vec![pair]);
    plan
}

use std::path::Path;

/// Each router's way to each other's host: out of the interface named there. `dead`: without the emulated link.
fn fibs(map: &Map, ways: &[(&str, [&str; 3])], dead: bool) -> Vec<Fib> {
    let of = |name: &String| {
        if let Some(number) = name.strip_prefix('h') {
            let gateway = format!("10.0.{number}.2");
            return fib(&[("eth0", true)], &[("0.0.0.0", 0, "eth0", Some(&gateway))]);
        }
        let number: usize = name[1..].parse().expect("r1, r2, r3");
        let carriers = [("eth0", !(dead && number == 1)), ("eth1", !(dead && number == 2)), ("eth2", true)];
        let (_, out) = ways.iter().find(|(router, _)| router == name).expect("all routers are there");
        let routes: Vec<_> = (1..=3)
            .map(|to| {
                let gateway = match out[to - 1] {
                    "eth0" => Some(format!("10.1.{number}.2")),
                    "eth1" => Some(format!("10.1.{}.1", (number + 1) % 3 + 1)),
                    _ => None,
                };
                (format!("10.0.{to}.0"), out[to - 1], gateway)
            })
            .collect();
        let routes: Vec<_> = routes.iter().map(|(to, out, via)| (to.as_str(), 30, *out, via.as_deref())).collect();
        fib(&carriers, &routes)
    };
    map.nodes.iter().map(of).collect()
}

const SHORTEST: [(&str, [&str; 3]); 3] =
    [("r1", ["eth2", "eth0", "eth1"]), ("r2", ["eth1", "eth2", "eth0"]), ("r3", ["eth0", "eth1", "eth2"])];
/// r1 and r2 find each other over r3.
const AROUND: [(&str, [&str; 3]); 3] =
    [("r1", ["eth2", "eth1", "eth1"]), ("r2", ["eth0", "eth2", "eth0"]), ("r3", ["eth0", "eth1", "eth2"])];

fn named(pairs: &[Pair]) -> Vec<String> {
    pairs.iter().map(|pair| format!("{}-{}", pair.from, pair.to)).collect()
}

#[test]
fn all_are_reached_on_the_plans_paths() {
    let map = Map::of(&ring()).expect("a map");
    let fibs = fibs(&map, &SHORTEST, false);
    assert_eq!(map.reach(&fibs), Reach::default());
    assert!(map.uses(&fibs, "ab"));
}

#[test]
fn a_detour_is_not_settled_while_all_links_live() {
    let map = Map::of(&ring()).expect("a map");
    let fibs = fibs(&map, &AROUND, false);
    let reach = map.reach(&fibs);
    assert_eq!((named(&reach.astray), reach.settled()), (vec!["h1-h2".into(), "h2-h1".into()], false));
    assert!(!map.uses(&fibs, "ab"));
}

#[test]
fn routes_over_a_dead_link_lead_nowhere_until_they_lead_around_it() {
    let map = Map::of(&ring()).expect("a map");
    let reach = map.reach(&fibs(&map, &SHORTEST, true));
    assert_eq!(named(&reach.unreachable), ["h2-h1", "h1-h2"]);
    assert_eq!(map.reach(&fibs(&map, &AROUND, true)), Reach::default());
}

#[test]
fn packets_in_a_circle_do_not_arrive() {
    let map = Map::of(&ring()).expect("a map");
    let mut circle = SHORTEST;
    circle[0].1[2] = "eth0"; // r1 sends what is for h3 to r2, which sends it back
    circle[1].1[2] = "eth1";
    let reach = map.reach(&fibs(&map, &circle, false));
    assert_eq!(named(&reach.unreachable), ["h1-h3", "h2-h3"]);
}

#[test]
fn who_is_cut_off_is_told_apart() {
    let mut plan = ring();
    plan.wires.retain(|wire| wire.a.node != "r2" && wire.a.node != "r3"); // "ab" alone is left
    let map = Map::of(&plan).expect("a map");
    let reach = map.reach(&fibs(&map, &SHORTEST, true));
    assert_eq!(named(&reach.unreachable), Vec::<String>::new());
    assert_eq!(named(&reach.cut_off).len(), 6);
}

#[test]
fn switches_join_what_is_in_one_vlan_whatever_tags_are_on_the_way() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/campus.plan.json");
    let map = Map::of(&ewan_plan::read(Path::new(golden)).expect("a golden plan")).expect("a map");
    let segment = |node: &str, interface: &str| {
        let number = map.nodes.iter().position(|name| name == node).expect("a node");
        map.at[&(number, interface.to_owned())]
    };
    let staff = segment("r1", "eth0.10");
    for (node, interface) in [("staff1", "eth0"), ("staff2", "eth0"), ("printer", "eth0.10")] {
        assert_eq!(segment(node, interface), staff, "{node}");
    }
    let guests = segment("r1", "eth0.20");
    assert_eq!([segment("guest1", "eth0"), segment("guest2", "eth0")], [guests, guests]);
    let all = [staff, guests, segment("r1", "eth0"), segment("r1", "eth1"), segment("server", "eth0")];
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    assert_eq!(segment("r1", "eth1"), segment("r2", "eth0"));
    assert_eq!(map.segments[staff].len(), 4);
}
