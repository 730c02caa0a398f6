//! What one direction counts. Nothing is silent, so at any instant, in packets:
//! `in + duplicated = lost + store_full + arrived`, and
//! `arrived = queue_full + aqm + out + queued + in service + delay line`.

use serde::Serialize;

/// Why a packet did not come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// The loss model.
    Loss,
    /// The queue's limit.
    QueueFull,
    /// RED, CoDel or PIE.
    Aqm,
    /// The caller had no memory left for the packet.
    Store,
}

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    pub packets: u64,
    /// As the link's framing counts them.
    pub bytes: u64,
}

impl Amount {
    #[inline]
    pub(super) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    #[inline]
    pub(super) fn remove(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Packets shown to `impair` (their length is not known there).
    pub in_packets: u64,
    /// Of these, taken away by the loss model.
    pub lost_packets: u64,
    /// Of those not lost: one bit to be turned over; a copy to be made.
    pub corrupted_packets: u64,
    pub duplicated_packets: u64,
    /// Packets that the caller could not store, as it said by `count_drop`.
    pub store_full: Amount,
    /// Shown to `enqueue`.
    pub arrived: Amount,
    /// Dropped at the queue's limit, and by the queue's discipline (at either end of the queue).
    pub queue_full: Amount,
    pub aqm: Amount,
    /// Released.
    pub out: Amount,
    /// Released with the mark Congestion Experienced set here.
    pub ce_packets: u64,
    /// Waiting now; without the packet in service.
    pub queued: Amount,
    /// Most that ever waited, each on its own.
    pub queued_max: Amount,
    /// 0 or 1 packet in service.
    pub in_service: Amount,
    /// Packets that left the queue into service, and the time that packets waited before they left the queue, whether
    /// into service or dropped by its discipline. Waiting ends where service begins.
    pub served_packets: u64,
    pub waited_ns: u64,
    /// In the delay line now.
    pub delayed: Amount,
}
