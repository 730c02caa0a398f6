//! Packets that found a UDP socket's receive buffer full. The socket's own counter has them together with those whose
//! checksum was wrong, which a link damaged: the counters of the socket's namespace tell the two apart.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use ewan_system::counters;

use crate::socket::{dropped_packets, Namespaces};

/// Of all UDP sockets: the buffer was full, or the memory of all of them was.
const NO_ROOM: [&str; 4] = ["UdpRcvbufErrors", "UdpMemErrors", "Udp6RcvbufErrors", "Udp6MemErrors"];

/// What the sockets of a namespace had no room for since this was made.
pub struct Room {
    netns: PathBuf,
    before: u64,
}

impl Room {
    pub fn of(namespaces: &Namespaces, netns: &Path) -> Result<Self, String> {
        Ok(Self { netns: netns.to_owned(), before: refused(namespaces, netns)? })
    }

    /// By all sockets of the namespace together.
    pub fn refused(&self, namespaces: &Namespaces) -> Result<u64, String> {
        Ok(refused(namespaces, &self.netns)?.saturating_sub(self.before))
    }

    /// By this one, which was made since; where others had no room either, at most so many.
    pub fn dropped(&self, namespaces: &Namespaces, socket: &UdpSocket) -> u64 {
        match dropped_packets(socket) {
            0 => 0,
            all => self.refused(namespaces).map_or(all, |refused| all.min(refused)),
        }
    }
}

fn refused(namespaces: &Namespaces, netns: &Path) -> Result<u64, String> {
    let say = |error| format!("{}: its counters: {error}", netns.display());
    let found = namespaces.within(netns, || counters::read(&NO_ROOM).map_err(say))?;
    Ok(found.values().sum())
}
