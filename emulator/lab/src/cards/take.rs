//! Cards into their nodes.
//!
//! In: their records, which are in the manifest already, and the nodes' namespaces. Out: each card as an interface of its
//! node, down, with the plan's name, number, MTU and, if the plan says so, MAC.

use std::fs::File;
use std::os::fd::AsRawFd;

use ewan_system::fault;
use ewan_system::netlink::interfaces::{add_name, alter, interfaces, Change};
use ewan_system::netlink::{Batch, Socket};

use super::{lab_of, LabCards, Record};
use ewan_plan::layout::PlacedPort;

/// `node`: of the record of this number, its node's namespace, a socket in it, and the port that the card becomes.
pub fn take<'a>(
    taken: &LabCards,
    node: impl Fn(usize) -> (&'a File, &'a Socket, &'a PlacedPort<'a>),
) -> Result<(), String> {
    let home = Socket::open()?;
    for (number, record) in taken.cards.iter().enumerate() {
        let (namespace, socket, port) = node(number);
        let say = |what: &str| format!("card {}: {what}", record.name);
        fault::step();
        mark(&home, record).map_err(|error| say(&error))?;
        fault::step();
        let mut batch = Batch::default();
        let to = Some((namespace.as_raw_fd(), port.index));
        let change = Change { name: Some(&port.interface.name), to, ..Change::default() };
        alter(&mut batch, record.index, &change, say("moving it into its node"));
        home.run(batch)?;
        if !interfaces(socket)?
            .iter()
            .any(|found| found.index == port.index && found.other_names.contains(&record.mark))
        {
            return Err(say("this kernel gives it no number of ours: it needs Linux 5.13"));
        }
        fault::step();
        let mut batch = Batch::default();
        let keeps = port.card.is_some_and(|card| card.own_mac);
        let change = Change {
            mac: (!keeps).then_some(port.mac),
            mtu: Some(port.interface.mtu),
            segments: Some(1),
            ..Change::default()
        };
        alter(&mut batch, port.index, &change, say("giving it the lab's MAC address and MTU"));
        socket.run(batch)?;
    }
    Ok(())
}

/// Gives a card its mark, unless it has become another card's since it was recorded, or another lab has marked it.
fn mark(home: &Socket, record: &Record) -> Result<(), String> {
    let same = |names: &[String]| -> Result<(), String> {
        match names.iter().filter(|name| **name != record.mark).find_map(|name| lab_of(name)) {
            Some(lab) => Err(format!("lab {lab} has it: `ewan down {lab}` gives it back")),
            None => Ok(()),
        }
    };
    let look = || -> Result<Vec<String>, String> {
        let found =
            interfaces(home)?.into_iter().find(|found| found.index == record.index && found.name == record.name);
        Ok(found.ok_or("it went away while the lab was made")?.other_names)
    };
    same(&look()?)?;
    let mut batch = Batch::default();
    add_name(&mut batch, record.index, &record.mark, "giving it a second name".into());
    home.run(batch)?;
    // Another lab may have marked it at the same time: then both let it go.
    same(&look()?)
}
