//! Cards as they are before a lab touches them, or one line about one that it may not have.
//!
//! In: the plan, in the network namespace where the cards are. Out: their records, for the manifest.

use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ewan_system::namespace;
use ewan_system::netlink::interfaces::{interfaces, Interface};
use ewan_system::netlink::{attributes, u32_at, u32_of, Result, Socket};

use super::card_facts::{other_line, speed};
use super::refusal::Host;
use super::{mark, messages, session, LabCards, Record};
use crate::ethtool::Features;
use crate::kernel_files::Sysfs;
use crate::manifest::Manifest;
use ewan_plan::{Card, Plan};

/// What a network namespace keeps for each interface in files.
const SETTINGS: [&str; 4] = ["net/ipv4/conf", "net/ipv6/conf", "net/ipv4/neigh", "net/ipv6/neigh"];

/// Of the plan's cards; none if it has none. `id`: the manifest's; `state`: the lab's directory, beside those of others.
pub fn record(plan: &Plan, id: &str, state: &Path) -> std::result::Result<Option<LabCards>, String> {
    if plan.cards.is_empty() {
        return Ok(None);
    }
    let here = namespace::own()?.metadata().map_err(|error| format!("this network namespace: {error}"))?;
    let home = [here.dev(), here.ino()];
    let socket = Socket::open()?;
    let host = read(&socket, home, state)?;
    let cards = plan.cards.iter().enumerate().map(|(number, card)| {
        let say = |why: String| format!("{}:{}: card {}: {why}", card.end.node, card.end.interface, card.name);
        let mtu = plan.interface(&card.end)?.mtu;
        let found = host.card(&card.name, mtu).map_err(say)?;
        if let Some(why) = other_line(&plan.interface(&card.end)?.egress, speed(&socket, &card.name)) {
            return Err(say(why));
        }
        as_it_is(&socket, &host, found, plan, card, mark(&plan.lab, id, number)).map_err(say)
    });
    Ok(Some(LabCards { home, cards: cards.collect::<std::result::Result<_, _>>()? }))
}

fn read(socket: &Socket, home: [u64; 2], state: &Path) -> std::result::Result<Host, String> {
    let interfaces = interfaces(socket)?;
    let mut sessions = Vec::new();
    for peer in session::peers() {
        let named = interfaces.iter().find(|interface| Some(&interface.name) == peer.interface.as_ref());
        let index = named.map(|interface| interface.index).or_else(|| leads_to(socket, peer.address));
        sessions.extend(index.map(|index| (peer.address, index)));
    }
    Ok(Host {
        wireless: wireless(&interfaces),
        interfaces,
        routes: messages::routes(socket)?,
        sessions,
        disciplines: disciplines(socket)?,
        elsewhere: of_other_labs(home, state),
    })
}

/// The number of the interface by which an address is reached; None where it is not.
fn leads_to(socket: &Socket, to: std::net::IpAddr) -> Option<u32> {
    let (family, octets) = match to {
        std::net::IpAddr::V4(to) => (libc::AF_INET, to.octets().to_vec()),
        std::net::IpAddr::V6(to) => (libc::AF_INET6, to.octets().to_vec()),
    };
    let mut header = [0; 12];
    (header[0], header[1]) = (family as u8, 8 * octets.len() as u8);
    let say = || format!("the route to {to}");
    let answer = socket.get(libc::RTM_GETROUTE, libc::RTM_NEWROUTE, &header, say, |request| {
        request.bytes(libc::RTA_DST, &octets);
    });
    let answer = answer.ok()?;
    let out = attributes(answer.get(12..)?).find(|(kind, _)| *kind == libc::RTA_OIF);
    out.and_then(|(_, value)| u32_of(value))
}

fn wireless(interfaces: &[Interface]) -> HashSet<String> {
    let Ok(sysfs) = Sysfs::open() else { return HashSet::new() };
    let radio = |interface: &&Interface| {
        ["phy80211", "wireless"].iter().any(|mark| sysfs.has(&format!("class/net/{}/{mark}", interface.name)))
    };
    interfaces.iter().filter(radio).map(|interface| interface.name.clone()).collect()
}

/// Those that somebody has set: the kernel's own have no handle.
fn disciplines(socket: &Socket) -> Result<Vec<(u32, String)>> {
    const HEADER: usize = 20;
    let mut found = Vec::new();
    socket.dump(libc::RTM_GETQDISC, &[0; HEADER], &mut |message| {
        let Some(body) = message.get(HEADER..) else { return };
        let (index, handle) = (u32_at(message, 4), u32_at(message, 8));
        let kind = attributes(body).find(|(kind, _)| *kind == libc::TCA_KIND);
        if let (Some((_, kind)), true) = (kind, handle != 0) {
            found.push((index, String::from_utf8_lossy(kind).trim_end_matches('\0').to_owned()));
        }
    })?;
    Ok(found)
}

/// What the manifests of other labs say that they have of this namespace's cards.
fn of_other_labs(home: [u64; 2], state: &Path) -> Vec<(String, String)> {
    let Some(Ok(labs)) = state.parent().map(std::fs::read_dir) else { return Vec::new() };
    let others = labs.flatten().map(|entry| entry.path()).filter(|path| path != state);
    let manifests = others.filter_map(|path| Manifest::read(&path).ok().flatten());
    let have = manifests.filter_map(|manifest| Some((manifest.lab, manifest.cards?)));
    let here = have.filter(|(_, taken)| taken.home == home);
    here.flat_map(|(lab, taken)| taken.cards.into_iter().map(move |card| (card.name, lab.clone()))).collect()
}

fn as_it_is(
    socket: &Socket,
    host: &Host,
    found: &Interface,
    plan: &Plan,
    card: &Card,
    mark: String,
) -> std::result::Result<Record, String> {
    let mac = found.mac.unwrap_or_default();
    Ok(Record {
        name: found.name.clone(),
        namespace: plan.namespace(&card.end.node),
        mark,
        index: found.index,
        mac: mac.map(|byte| format!("{byte:02x}")).join(":"),
        mtu: found.mtu,
        queue_length: found.queue_length,
        segments: found.segments,
        up: found.has(libc::IFF_UP),
        promiscuous: found.has(libc::IFF_PROMISC),
        all_multicast: found.has(libc::IFF_ALLMULTI),
        features: Features::of(socket, &found.name)?.asked_for(),
        sysctls: settings(&found.name),
        addresses: messages::addresses(socket, found.index)?,
        routes: messages::routes_of(&host.routes, found.index),
        neighbours: messages::neighbours(socket, found.index)?,
    })
}

fn settings(name: &str) -> BTreeMap<String, String> {
    let root = Path::new("/proc/sys");
    let read = |key: &str| std::fs::read_to_string(root.join(key)).map(|value| value.trim().to_owned()).ok();
    let mut found = BTreeMap::new();
    for kind in SETTINGS {
        let Ok(files) = std::fs::read_dir(root.join(kind).join(name)) else { continue };
        for file in files.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
            let key = format!("{kind}/{name}/{file}");
            if let Some(value) =
                read(&key).filter(|value| read(&format!("{kind}/default/{file}")).as_ref() != Some(value))
            {
                found.insert(key, value);
            }
        }
    }
    found
}
