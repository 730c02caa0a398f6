//! Offloads off: every packet on a lab's interface is one packet of at most the MTU. Where a program of ours carries
//! it, its checksum is complete too; within the kernel an unfinished one costs less and means the same.
//!
//! In: a socket of the interface's namespace and its name. Out: nothing, or what stayed on; of a card also what was on
//! before, to be set again. One `ioctl` an interface; the features' numbers differ between kernels, so they are looked up
//! by name once (linux/ethtool.h: ETHTOOL_GSTRINGS, ETHTOOL_GFEATURES, ETHTOOL_SFEATURES).

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use ewan_system::namespace;
use ewan_system::netlink::{requests, Batch, Socket};
use ewan_system::socket::{ethtool, interface_index};
use serde::Serialize;

use ewan_plan::Interface;

const GSTRINGS: u32 = 0x1b;
const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
const SFEATURES: u32 = 0x3b;
const SET_OF_FEATURES: u32 = 4;
const NAME: usize = 32;

/// The features of one interface: the names of all that the kernel knows, and of each whether it can be changed here, whether
/// it was asked for, and whether it is on.
pub struct Features {
    names: Vec<String>,
    /// Per 32 of them: available, requested, active, never changed.
    blocks: Vec<[u32; 4]>,
}

impl Features {
    pub fn of(socket: impl AsFd, interface: &str) -> Result<Self, String> {
        let mut info = [GSSET_INFO, 0, 1 << SET_OF_FEATURES, 0, 0];
        ask(&socket, interface, &mut info)?;
        let count = info[4] as usize;
        let mut names = vec![0u32; 3 + count * NAME / 4];
        names[..3].copy_from_slice(&[GSTRINGS, SET_OF_FEATURES, count as u32]);
        ask(&socket, interface, &mut names)?;
        let names = (0..count).map(|index| {
            let words = &names[3 + index * NAME / 4..][..NAME / 4];
            let bytes: Vec<u8> =
                words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Ok(Features { names: names.collect(), blocks: blocks(socket, interface, count)? })
    }

    fn those(&self, which: usize) -> impl Iterator<Item = &String> {
        let set = move |index: usize| self.blocks[index / 32][which] >> (index % 32) & 1 == 1;
        self.names.iter().enumerate().filter(move |(index, _)| set(*index)).map(|(_, name)| name)
    }

    /// The names of those that can be changed here and were asked for.
    pub fn asked_for(&self) -> Vec<String> {
        let changeable: Vec<_> = self.those(0).collect();
        self.those(1).filter(|name| changeable.contains(name)).cloned().collect()
    }

    /// Asks for these, of those that can be changed here, and for no others.
    pub fn set(&self, socket: impl AsFd, interface: &str, wanted: &BTreeSet<&str>) -> Result<(), String> {
        let valid: Vec<u32> = self.blocks.iter().map(|block| block[0]).collect();
        let mut values = vec![0u32; valid.len()];
        for (index, _) in self.names.iter().enumerate().filter(|(_, name)| wanted.contains(name.as_str())) {
            values[index / 32] |= 1 << (index % 32) & valid[index / 32];
        }
        // What is asked for and does not come on did not before either.
        request(socket, interface, &valid, &values).map(drop)
    }
}

/// The blocks of `count` features; see `Features`.
fn blocks(socket: impl AsFd, interface: &str, count: usize) -> Result<Vec<[u32; 4]>, String> {
    let most = count.div_ceil(32);
    let mut features = vec![0u32; 2 + most * 4];
    features[..2].copy_from_slice(&[GFEATURES, most as u32]);
    ask(&socket, interface, &mut features)?;
    Ok(features[2..].chunks_exact(4).map(|block| [block[0], block[1], block[2], block[3]]).collect())
}

/// Sets of the features in `valid` those in `values`, and no others; false where one stays otherwise.
fn request(socket: impl AsFd, interface: &str, valid: &[u32], values: &[u32]) -> Result<bool, String> {
    let mut request = vec![SFEATURES, valid.len() as u32];
    request.extend(valid.iter().zip(values).flat_map(|(valid, values)| [*valid, *values]));
    ask(socket, interface, &mut request).map(|answer| answer == 0)
}

/// Which features to clear, as 32-bit blocks; and the names of all that the kernel knows.
pub struct Offloads {
    clear: Vec<u32>,
    names: Vec<String>,
}

/// What of an interface is on and off in every lab.
#[derive(Serialize)]
struct EnabledFeatures<'a> {
    node: &'a str,
    interface: &'a str,
    features: Vec<String>,
}

/// Segmentation left to a card, packets merged on receipt, and VLAN tags kept beside the packet.
fn beyond_one_packet(name: &str) -> bool {
    name.starts_with("tx-") && (name.ends_with("-segmentation") || name.starts_with("tx-gso-"))
        || name.starts_with("rx-gro")
        || name == "rx-lro"
        || name == "rx-udp-gro-forwarding"
        || name.starts_with("tx-vlan-") && name.ends_with("-insert")
}

/// A request that is as long as its own header says. Errors: the kernel's words.
pub fn ask(socket: impl AsFd, interface: &str, request: &mut [u32]) -> Result<i32, String> {
    // SAFETY: below, each request is as long as its own header says.
    unsafe { ethtool(socket, interface, request) }.map_err(|error| error.to_string())
}

impl Offloads {
    /// Looks the features up on one interface; all of a kernel's veths have the same.
    /// With `checksums`, these are not left to a card either, and then pages of a file are copied into packets.
    pub fn of(socket: impl AsFd, interface: &str, checksums: bool) -> Result<Self, String> {
        let Features { names, blocks } = Features::of(socket, interface)?;
        let mut clear = vec![0u32; blocks.len()];
        for (index, name) in names.iter().enumerate() {
            let changeable = blocks[index / 32][0] >> (index % 32) & 1 == 1;
            if changeable && (beyond_one_packet(name) || checksums && name.starts_with("tx-checksum-")) {
                clear[index / 32] |= 1 << (index % 32);
            }
        }
        Ok(Offloads { clear, names })
    }

    /// Those of them that are on at an interface.
    fn left_on(&self, socket: impl AsFd, interface: &str) -> Result<Vec<String>, String> {
        let blocks = blocks(socket, interface, self.names.len())?;
        let on = |index: usize| blocks[index / 32][2] & self.clear[index / 32] & 1 << (index % 32) != 0;
        Ok(self.names.iter().enumerate().filter(|(index, _)| on(*index)).map(|(_, name)| name.clone()).collect())
    }

    pub fn off(&self, socket: impl AsFd, interface: &str) -> Result<(), String> {
        self.set(socket, interface, false)
    }

    /// The same of a card, whose driver may have its own mind; gives those that stayed on.
    pub fn off_where_possible(&self, socket: impl AsFd, interface: &str) -> Result<Vec<String>, String> {
        let off = request(&socket, interface, &self.clear, &vec![0; self.clear.len()]);
        off.map_err(|error| format!("switching offloads off: {error}"))?;
        self.left_on(socket, interface)
    }

    fn set(&self, socket: impl AsFd, interface: &str, on: bool) -> Result<(), String> {
        let word = if on { "on" } else { "off" };
        let values: Vec<u32> = self.clear.iter().map(|valid| if on { *valid } else { 0 }).collect();
        match request(socket, interface, &self.clear, &values) {
            // What a port has not got cannot be switched on.
            Ok(all) if all || on => Ok(()),
            Ok(_) => Err("some offloads stayed on".into()),
            Err(error) => Err(format!("switching offloads {word}: {error}")),
        }
    }
}

/// Says, as JSON, which offloads are on at a lab's interfaces, of those that are off in every lab; each interface that has
/// one, in the order of its plan, which is read from `plan`. A lab has hundreds of them, so the features' names are looked up once.
pub fn tell(mut plan: impl Read, mut out: impl Write) -> Result<(), String> {
    let mut text = Vec::new();
    plan.read_to_end(&mut text).map_err(|error| format!("standard input: {error}"))?;
    let plan = ewan_plan::parse(&text, Path::new("standard input"))?;
    let home = namespace::own()?;
    let mut known: Option<Offloads> = None;
    let mut found = Vec::new();
    for node in &plan.nodes {
        let path = plan.netns_path(&node.name);
        namespace::within(&path, &home, || {
            let socket = Socket::open().map_err(|error| error.to_string())?;
            for Interface { name, .. } in node.interfaces.iter().filter(|each| each.is_wired()) {
                let mut look = || {
                    let offloads = match known.take() {
                        Some(offloads) => offloads,
                        None => Offloads::of(&socket, name, false)?,
                    };
                    let features = offloads.left_on(&socket, name);
                    known = Some(offloads);
                    features
                };
                let features = look().map_err(|error| format!("{}:{name}: {error}", node.name))?;
                if !features.is_empty() {
                    found.push(EnabledFeatures { node: &node.name, interface: name, features });
                }
            }
            Ok::<(), String>(())
        })?;
    }
    let text = serde_json::to_string(&found).map_err(|error| error.to_string())?;
    writeln!(out, "{text}").map_err(|error| error.to_string())
}

/// Switches the offloads of all interfaces of a lab that is up on or off, with as many segments a packet as the kernel
/// takes or one: what a lab never has, for who measures what it would change.
pub fn run(state: &Path, on: bool) -> Result<(), String> {
    const MOST_SEGMENTS: u32 = 65_535;
    let plan = ewan_plan::read(&state.join("plan.json"))?;
    let home = namespace::own()?;
    for node in &plan.nodes {
        namespace::within(&plan.netns_path(&node.name), &home, || {
            let socket = Socket::open().map_err(|error| error.to_string())?;
            let mut batch = Batch::default();
            for Interface { name, .. } in node.interfaces.iter().filter(|each| each.is_wired()) {
                let at = format!("{}:{name}", node.name);
                let set = Offloads::of(&socket, name, false).and_then(|known| known.set(&socket, name, on));
                set.map_err(|error| format!("{at}: {error}"))?;
                let segments = if on { MOST_SEGMENTS } else { 1 };
                requests::segments(&mut batch, interface_index(name)?, segments, format!("{at}: segments a packet"));
            }
            socket.run(batch).map_err(|error| error.to_string())
        })?;
    }
    Ok(())
}
