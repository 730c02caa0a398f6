//! A port: how frames come in from an interface and go out of it. Two kinds, AF_XDP and AF_PACKET, behind one tiny
//! interface; `open` takes the better one that works and says why. In: an interface name, inside whose namespace
//! the caller is. Out: frames with the time they arrived.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use ewan_timers::Clock;

use super::packet::AfPacket;
use super::xdp::AfXdp;
use crate::model::Nanos;

/// Frames in (each with its arrival as the kernel stamped it, converted; not yet checked) and frames out.
pub trait Port: Send {
    /// Hands over at most `budget` frames; the bytes may be changed in place, and are gone after the call.
    fn receive(&mut self, clock: &Clock, budget: usize, each: &mut dyn FnMut(&mut [u8], Nanos)) -> usize;
    /// How many frames may be staged now (until some are flushed and taken).
    fn room(&mut self) -> usize;
    /// Copies a frame to be sent by the next `flush`. Only while there is `room`.
    fn stage(&mut self, frame: &[u8]);
    /// Hands the staged frames to the kernel; false if it did not take all of them and wants to be asked again.
    fn flush(&mut self) -> bool;
    fn facts(&self) -> Arc<Facts>;
    /// Readable when a frame has come.
    fn descriptor(&self) -> RawFd;
}

/// What a port tells whoever asks, from whichever thread.
pub struct Facts {
    pub interface: String,
    pub kind: &'static str,
    /// Why this kind.
    pub reason: String,
    /// Frames whose checksum the sender had left to hardware.
    pub checksums_completed: AtomicU64,
    /// Frames that the kernel refused to send.
    pub refused: AtomicU64,
    /// Frames longer than the MTU with two VLAN tags: an offload is on where the lab switches them off.
    pub too_long: AtomicU64,
    /// Frames that came in but found the ring to us full.
    pub overruns: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl Facts {
    pub fn new(
        interface: &str,
        kind: &'static str,
        reason: String,
        overruns: Box<dyn Fn() -> u64 + Send + Sync>,
    ) -> Arc<Facts> {
        Arc::new(Facts {
            interface: interface.into(),
            kind,
            reason,
            checksums_completed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            too_long: AtomicU64::new(0),
            overruns,
        })
    }

    /// Only the spinner adds, so a load and a store do.
    pub fn add(counter: &AtomicU64, count: u64) {
        counter.store(counter.load(Relaxed) + count, Relaxed);
    }
}

/// Which kind the caller insists on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Auto,
    Packet,
    Xdp,
}

impl Choice {
    /// From the environment variable EWAN_PORT: `packet`, `xdp`, or unset.
    pub fn from_environment() -> Result<Choice, String> {
        match std::env::var("EWAN_PORT").as_deref() {
            Err(_) | Ok("" | "auto") => Ok(Choice::Auto),
            Ok("packet") => Ok(Choice::Packet),
            Ok("xdp") => Ok(Choice::Xdp),
            Ok(other) => Err(format!("EWAN_PORT={other}: write packet, xdp or auto")),
        }
    }
}

/// Opens an interface of the namespace that the calling thread is in. `ring_bytes`: memory for frames that came in.
///
/// On veth AF_XDP has no zero-copy mode: its receiving side copies each packet twice, in the sender's time, and its
/// sending side does what AF_PACKET's does. `link-bench` measures both; Linux 6.18, 64-byte frames, same receiver:
/// the link core spends 2.7 µs a packet with AF_PACKET and 3.2 µs with AF_XDP, the sender reaches 323 and 233
/// thousand packets a second on its one core, and a packet arrives 0.5 µs earlier. So AF_PACKET comes first.
pub fn open(interface: &str, mtu: u32, ring_bytes: usize, choice: Choice) -> Result<Box<dyn Port>, String> {
    let packet = |reason: &str| AfPacket::open(interface, mtu, ring_bytes, reason);
    let xdp = |reason: &str| AfXdp::open(interface, mtu, ring_bytes, reason);
    match choice {
        Choice::Packet => Ok(Box::new(packet("EWAN_PORT=packet")?)),
        Choice::Xdp => Ok(Box::new(xdp("EWAN_PORT=xdp")?)),
        Choice::Auto => match packet("AF_PACKET: on veth it costs less than AF_XDP's copy mode") {
            Ok(port) => Ok(Box::new(port)),
            Err(error) => Ok(Box::new(xdp(&format!("no AF_PACKET: {error}"))?)),
        },
    }
}

/// A power of two: as many slots as `bytes` hold, within bounds.
pub fn ring_size(bytes: usize, slot_bytes: usize, least: usize, most: usize) -> usize {
    let slots = (bytes / slot_bytes).max(1);
    (slots + 1).next_power_of_two().div_euclid(2).clamp(least, most)
}

/// An AF_PACKET socket's address; `protocol` (in network order) 0 receives nothing.
pub fn packet_address(index: u32, protocol: u16) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol,
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}
