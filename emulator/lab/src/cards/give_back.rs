//! Cards back to where they were, as they were.
//!
//! In: the records of a manifest, whatever became of the cards meanwhile. Out: what was given back, and in words what of it
//! could not be. A card without its mark is as it was: the mark is taken away last. Nothing is kept from being removed by
//! a card that is gone, as one is that was pulled out.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use ewan_system::netlink::interfaces::{alter, interfaces, remove_name, Change, Interface};
use ewan_system::netlink::{Batch, Socket};
use ewan_system::{fault, namespace};
use serde::Serialize;

use super::find::{elsewhere, here, inside, with_identity};
use super::{messages, LabCards, Record};
use crate::ethtool::Features;
use crate::kernel_files::{sysctl, Sysctl};
use ewan_plan::layout;

/// The kernel empties a namespace some time after its last process has ended.
const EMPTIED: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);
/// What the kernel makes of a pattern: dev0, dev1, …
const ANY_NAME: &str = "dev%d";

/// A card that is at home again.
#[derive(Serialize)]
pub struct Restoration {
    card: String,
    /// What is other than it was, a line each.
    notes: Vec<String>,
}

/// `since`: how long ago the records were made.
pub fn give_back(taken: &LabCards, since: Duration) -> Result<Vec<Restoration>, String> {
    // Where it is no more, the kernel has moved what was in it to its first namespace, and so do we.
    let home = match with_identity(taken.home) {
        Some(home) => home,
        None => namespace::own()?,
    };
    inside(&home, || {
        let mut given = Vec::new();
        let until = Instant::now() + EMPTIED;
        for record in &taken.cards {
            given.extend(one(&home, record, since, until).map_err(|error| format!("card {}: {error}", record.name))?);
        }
        Ok(given)
    })
}

/// From a thread that is at home; none where the card was never touched or is as it was.
fn one(home: &File, record: &Record, since: Duration, until: Instant) -> Result<Option<Restoration>, String> {
    loop {
        if here(record)?.is_some() {
            break;
        }
        if let Some((namespace, found)) = elsewhere(record)? {
            bring(home, record, &namespace, &found)?;
            break;
        }
        let untouched = |found: &Interface| {
            found.name == record.name && (found.index == record.index || found.mac == layout::mac(&record.mac).ok())
        };
        if interfaces(&Socket::open()?)?.iter().any(untouched) {
            return Ok(None);
        }
        if Instant::now() > until {
            let notes = vec!["it is gone, as one is that was pulled out: there is nothing to give back".into()];
            return Ok(Some(Restoration { card: record.name.clone(), notes }));
        }
        std::thread::sleep(POLL);
    }
    let found = here(record)?.ok_or("it was here, and is not any more: try again")?;
    restore(record, &found, since).map(|notes| Some(Restoration { card: record.name.clone(), notes }))
}

/// Moves a card home, under its own name and number if they are free.
fn bring(home: &File, record: &Record, namespace: &File, found: &Interface) -> Result<(), String> {
    let at_home = interfaces(&Socket::open()?)?;
    let taken = at_home.iter().any(|other| other.name == record.name || other.other_names.contains(&record.name));
    let name = Some(if taken { ANY_NAME } else { &record.name });
    let index = if at_home.iter().any(|other| other.index == record.index) { 0 } else { record.index };
    inside(namespace, || {
        fault::step();
        let mut batch = Batch::default();
        let change = Change { name, to: Some((home.as_raw_fd(), index)), ..Change::default() };
        alter(&mut batch, found.index, &change, "moving it back".into());
        Ok(Socket::open()?.run(batch)?)
    })
}

/// A card that is at home, as it was; what could not be restored, in words.
fn restore(record: &Record, found: &Interface, since: Duration) -> Result<Vec<String>, String> {
    let socket = Socket::open()?;
    let mut notes = Vec::new();
    let index = found.index;
    let mut attempt = |what: &str, fill: &dyn Fn(&mut Batch)| {
        fault::step();
        let mut batch = Batch::default();
        fill(&mut batch);
        if let Err(error) = socket.run(batch) {
            notes.push(format!("{what}: {error}"));
        }
    };
    let change =
        |change: Change<'static>| move |batch: &mut Batch| alter(batch, index, &change, "setting it back".into());
    let flag = |on: bool, flag: i32| if on { flag as u32 } else { 0 };
    attempt("taking it down", &change(Change { flags: Some((flag(true, libc::IFF_UP), 0)), ..Change::default() }));
    if found.name != record.name {
        attempt(&format!("it is called {} now", found.name), &|batch| {
            let name = Some(record.name.as_str());
            alter(batch, index, &Change { name, ..Change::default() }, "giving it its name back".into());
        });
    }
    let mac = layout::mac(&record.mac).ok();
    if found.mac != mac {
        attempt("its MAC address", &change(Change { mac, ..Change::default() }));
    }
    attempt("its MTU", &change(Change { mtu: Some(record.mtu), ..Change::default() }));
    let (queue_length, segments) = (Some(record.queue_length), Some(record.segments));
    attempt("its queue's length", &change(Change { queue_length, segments, ..Change::default() }));
    let name = here(record)?.ok_or("it was here, and is not any more: try again")?.name;
    fault::step();
    let wanted: BTreeSet<_> = record.features.iter().map(String::as_str).collect();
    let features = Features::of(&socket, &name).and_then(|features| features.set(&socket, &name, &wanted));
    let features = features.err();
    let settings = set_back(record, &name);
    let which = [libc::IFF_UP, libc::IFF_PROMISC, libc::IFF_ALLMULTI].map(|flag| flag as u32).iter().sum();
    let flags = flag(record.up, libc::IFF_UP)
        | flag(record.promiscuous, libc::IFF_PROMISC)
        | flag(record.all_multicast, libc::IFF_ALLMULTI);
    attempt("bringing it up", &change(Change { flags: Some((which, flags)), ..Change::default() }));
    for message in &record.addresses {
        attempt("an address", &|batch| {
            messages::add_address(batch, message, index, since, "adding it".into());
        });
    }
    for message in &record.routes {
        attempt("a route", &|batch| messages::add_route(batch, message, index, "adding it".into()));
    }
    for message in &record.neighbours {
        attempt("a neighbour", &|batch| messages::add_neighbour(batch, message, index, "adding it".into()));
    }
    notes.extend(features.map(|error| format!("its offloads: {error}")));
    notes.extend(settings);
    fault::step();
    let mut batch = Batch::default();
    remove_name(&mut batch, index, &record.mark, "taking its second name away".into());
    socket.run(batch)?;
    Ok(notes)
}

/// Writes what the files say otherwise than they did.
fn set_back(record: &Record, name: &str) -> Vec<String> {
    let mut notes = Vec::new();
    for (key, value) in &record.sysctls {
        let key = key.replace(&format!("/{}/", record.name), &format!("/{name}/"));
        let now = std::fs::read_to_string(std::path::Path::new("/proc/sys").join(&key));
        if now.is_ok_and(|now| now.trim() == value) {
            continue;
        }
        fault::step();
        if let Err(Sysctl::Refused(error)) = sysctl(&key, value) {
            // The kernel's own counts are there too, which nobody can set.
            if error.kind() != std::io::ErrorKind::PermissionDenied {
                notes.push(format!("sysctl {key} = {value:?}: {error}"));
            }
        }
    }
    notes
}
