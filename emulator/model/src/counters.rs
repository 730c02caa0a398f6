//! What one direction counts. Nothing is silent, so at any instant, in packets:
//! `in + duplicated = lost + blackhole + policed + store_full + arrived`, and
//! `arrived = queue_full + aqm + ack_filtered + cut + out + queued + in service + delay line`.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::queue::Waiting;
use crate::Nanos;

/// Why a packet did not come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// The loss model.
    Loss,
    /// Too long for the path beyond a middlebox.
    Blackhole,
    /// More than the policer lets pass.
    Policed,
    /// The queue's limit.
    QueueFull,
    /// The queue's discipline.
    Aqm,
    /// A later ACK came in its place.
    AckFilter,
    /// The caller had no memory left for the packet.
    Store,
    /// The caller cut the link.
    Cut,
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
    /// Packets shown to `impair`, and their bytes as the link's framing counts them.
    pub in_packets: u64,
    pub in_bytes: u64,
    /// Of these, taken away by the loss model.
    pub lost_packets: u64,
    /// Of those not lost: too long for the path beyond a middlebox.
    pub blackhole_packets: u64,
    /// Of those not lost: more than the policer lets pass.
    pub policed_packets: u64,
    /// Of those that go on: one bit to be turned over; a copy to be made.
    pub corrupted_packets: u64,
    pub duplicated_packets: u64,
    /// Packets that the caller could not store, as it said by `count_drop`.
    pub store_full: Amount,
    /// Shown to `enqueue`.
    pub arrived: Amount,
    /// Dropped at the queue's limit, and by the queue's discipline (at either end of the queue).
    pub queue_full: Amount,
    pub aqm: Amount,
    /// Pure ACKs in whose place a later one came.
    pub ack_filtered: Amount,
    /// Taken out by the caller, who cut the link.
    pub cut: Amount,
    /// Released.
    pub out: Amount,
    /// Released with the mark Congestion Experienced set here.
    pub ce_packets: u64,
    /// Waiting now; without the packet in service.
    pub queued: Amount,
    /// Most that ever waited, each on its own.
    pub queued_max: Amount,
    /// In service now: one packet, or those of an aggregate.
    pub in_service: Amount,
    /// Packets that left the queue into service, and the time that packets waited before they left the queue, whether
    /// into service or dropped by its discipline. Waiting ends where service begins.
    pub served_packets: u64,
    pub waited_ns: u64,
    /// In the delay line now.
    pub delayed: Amount,
    /// Of a queue with classes, in their order; the first `class_count` of them.
    pub classes: [ClassCounters; MOST_CLASSES],
    pub class_count: usize,
}

/// What one direction counted, in the words of the records: what a spinner answers, and the kernel's link too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionReport {
    pub in_packets: u64,
    pub in_bytes: u64,
    pub out_packets: u64,
    pub out_bytes: u64,
    pub drops: Drops,
    pub corrupted_packets: u64,
    pub duplicated_packets: u64,
    pub ce_packets: u64,
    pub served_packets: u64,
    pub waited_ns: u64,
    pub queue_packets: u64,
    pub queue_bytes: u64,
    pub queue_max_packets: u64,
    pub queue_max_bytes: u64,
    pub delay_line_packets: u64,
    /// Of a queue with classes, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassReport>,
}

/// What one class of a queue counted; the plan names it. DualPI2 has two: L4S, then the classic queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassReport {
    pub queue_packets: u64,
    pub queue_bytes: u64,
    pub served_packets: u64,
    pub waited_ns: u64,
    pub dropped_packets: u64,
    pub ce_packets: u64,
}

/// Most classes of a queue.
pub const MOST_CLASSES: usize = 8;

/// What a class counts for its report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClassCounters {
    pub queued: Amount,
    pub served_packets: u64,
    pub waited_ns: u64,
    pub dropped_packets: u64,
    pub ce_packets: u64,
}

impl ClassCounters {
    /// A packet's waiting ends.
    pub(super) fn leave(&mut self, bytes: u32, sojourn: Nanos) {
        self.queued.remove(bytes);
        self.waited_ns += sojourn;
    }

    fn report(&self) -> ClassReport {
        ClassReport {
            queue_packets: self.queued.packets,
            queue_bytes: self.queued.bytes,
            served_packets: self.served_packets,
            waited_ns: self.waited_ns,
            dropped_packets: self.dropped_packets,
            ce_packets: self.ce_packets,
        }
    }
}

/// Packets that did not come out, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    pub loss: u64,
    /// Longer than the black hole lets pass.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blackhole: u64,
    /// By the policer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub policed: u64,
    pub queue_full: u64,
    pub aqm: u64,
    /// Pure ACKs in whose place a later one came.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ack_filtered: u64,
    pub store_full: u64,
    /// Only of the kernel's link.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut: u64,
}

impl Drops {
    /// The number of packets of one cause.
    pub(super) fn of(&mut self, cause: Drop) -> &mut u64 {
        match cause {
            Drop::Loss => &mut self.loss,
            Drop::Blackhole => &mut self.blackhole,
            Drop::Policed => &mut self.policed,
            Drop::QueueFull => &mut self.queue_full,
            Drop::Aqm => &mut self.aqm,
            Drop::AckFilter => &mut self.ack_filtered,
            Drop::Store => &mut self.store_full,
            Drop::Cut => &mut self.cut,
        }
    }

    /// Takes the packets of another flow.
    pub(super) fn absorb(&mut self, other: &Drops) {
        self.loss += other.loss;
        self.blackhole += other.blackhole;
        self.policed += other.policed;
        self.queue_full += other.queue_full;
        self.aqm += other.aqm;
        self.ack_filtered += other.ack_filtered;
        self.store_full += other.store_full;
        self.cut += other.cut;
    }

    /// All of them.
    pub(super) fn sum(&self) -> u64 {
        let Drops { loss, blackhole, policed, queue_full, aqm, ack_filtered, store_full, cut } = *self;
        loss + blackhole + policed + queue_full + aqm + ack_filtered + store_full + cut
    }
}

fn is_zero(packets: &u64) -> bool {
    *packets == 0
}

impl Counters {
    /// A packet's waiting ends when the server is free; how long it waited.
    #[inline]
    pub(super) fn leave<P>(&mut self, waiting: &Waiting<P>, free_at: Nanos) -> Nanos {
        let sojourn = free_at.saturating_sub(waiting.arrival);
        self.queued.remove(waiting.bytes);
        self.waited_ns += sojourn;
        sojourn
    }

    /// Packets that were taken away before the queue, by whatever it was.
    #[inline]
    pub fn taken_packets(&self) -> u64 {
        self.lost_packets + self.blackhole_packets + self.policed_packets
    }

    /// Packets that were taken out of the queue by what serves it.
    #[inline]
    pub fn culled_packets(&self) -> u64 {
        self.aqm.packets + self.ack_filtered.packets
    }

    pub fn report(&self) -> DirectionReport {
        DirectionReport {
            in_packets: self.in_packets,
            in_bytes: self.in_bytes,
            out_packets: self.out.packets,
            out_bytes: self.out.bytes,
            drops: Drops {
                loss: self.lost_packets,
                blackhole: self.blackhole_packets,
                policed: self.policed_packets,
                queue_full: self.queue_full.packets,
                aqm: self.aqm.packets,
                ack_filtered: self.ack_filtered.packets,
                store_full: self.store_full.packets,
                cut: self.cut.packets,
            },
            corrupted_packets: self.corrupted_packets,
            duplicated_packets: self.duplicated_packets,
            ce_packets: self.ce_packets,
            served_packets: self.served_packets,
            waited_ns: self.waited_ns,
            queue_packets: self.queued.packets,
            queue_bytes: self.queued.bytes,
            queue_max_packets: self.queued_max.packets,
            queue_max_bytes: self.queued_max.bytes,
            delay_line_packets: self.delayed.packets,
            classes: self.classes.iter().take(self.class_count).map(ClassCounters::report).collect(),
        }
    }
}
