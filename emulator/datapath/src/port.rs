//! A port: how frames come in from an interface and go out of it. The spinner knows this interface alone; a link's ports
//! are AF_PACKET sockets (`packet.rs`), those of the spinner's tests are lists of frames.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use ewan_system::clock::Clock;

use ewan_model::Nanos;

/// Frames handed to the kernel by one call.
pub const SEND_BURST: usize = 16;

/// Frames in (each with its arrival as the kernel stamped it, converted; not yet checked) and frames out.
pub trait Port: Send {
    /// Hands over at most `budget` frames, and none stamped later than `until` (which is no later than now); the bytes may
    /// be changed in place, and are gone after the call. A stamp in the future holds no frame back.
    fn receive(&mut self, clock: &Clock, budget: usize, until: Nanos, each: &mut dyn FnMut(&mut [u8], Nanos)) -> usize;
    /// The stamp of the frame that `receive` hands over next, if one is there.
    fn next_stamp(&mut self, clock: &Clock) -> Option<Nanos>;
    /// Copies a frame to be sent by the next `flush`; at most `SEND_BURST` frames between two of those.
    fn stage(&mut self, frame: &[u8]);
    /// Hands the staged frames to the kernel.
    fn flush(&mut self);
    fn facts(&self) -> Arc<Facts>;
    /// Readable when a frame has come.
    fn descriptor(&self) -> RawFd;
}

/// What a port tells whoever asks, from whichever thread.
pub struct Facts {
    pub interface: String,
    pub kind: &'static str,
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
    pub fn new(interface: &str, kind: &'static str, overruns: Box<dyn Fn() -> u64 + Send + Sync>) -> Arc<Facts> {
        Arc::new(Facts {
            interface: interface.into(),
            kind,
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

/// A power of two: as many slots as `bytes` hold, within bounds.
pub fn ring_size(bytes: usize, slot_bytes: usize, least: usize, most: usize) -> usize {
    let slots = (bytes / slot_bytes).max(1);
    (slots + 1).next_power_of_two().div_euclid(2).clamp(least, most)
}
