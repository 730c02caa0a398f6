//! ACK filtering (RFC 3449, section 5.2.1): a pure acknowledgement of TCP that joins the queue takes the place of the one of
//! its flow that still waits there, if it acknowledges more. So none of what TCP must be told is lost: duplicates stay, and
//! so does what carries data, SACK blocks or other marks of congestion. Nor does an ACK wait longer than without the filter,
//! as it would if it joined at the end each time.
//!
//! Of each flow the last pure ACK that waits is known. Flows that meet in one bucket keep more of their ACKs.

use alloc::boxed::Box;

use crate::frame::Ack;

const BUCKETS: usize = 1 << 10;

#[derive(Clone, Copy, Debug)]
struct WaitingAck {
    ack: Ack,
    /// Where in the queue's memory it waits.
    place: u32,
}

/// The pure ACKs that wait, as far as they are known: 24 KiB, from the beginning on.
#[derive(Clone, Debug)]
pub struct Acks {
    buckets: Box<[Option<WaitingAck>]>,
}

impl Acks {
    pub fn new() -> Self {
        Acks { buckets: alloc::vec![None; BUCKETS].into_boxed_slice() }
    }

    /// Where the ACK waits that this one makes superfluous.
    pub fn superfluous(&self, ack: &Ack) -> Option<u32> {
        self.buckets[bucket(ack)].filter(|known| ack.acknowledges_more_than(&known.ack)).map(|known| known.place)
    }

    /// Knows an ACK that joins the queue; says where the one waits that is not known any more.
    pub fn joins(&mut self, ack: Ack, place: u32) -> Option<u32> {
        self.buckets[bucket(&ack)].replace(WaitingAck { ack, place }).map(|known| known.place)
    }

    /// The one in this ACK's bucket becomes this one.
    pub fn becomes(&mut self, ack: Ack) {
        if let Some(known) = &mut self.buckets[bucket(&ack)] {
            known.ack = ack;
        }
    }

    /// What a known ACK is told by on leaving; that of all other packets is 0.
    pub fn tag(ack: &Ack) -> u16 {
        bucket(ack) as u16 + 1
    }

    /// A packet that waited does not any more.
    #[inline]
    pub fn leaves(&mut self, tag: u16) {
        if let Some(bucket) = usize::from(tag).checked_sub(1).and_then(|bucket| self.buckets.get_mut(bucket)) {
            *bucket = None;
        }
    }

    pub fn forget(&mut self) {
        self.buckets.fill(None);
    }
}

fn bucket(ack: &Ack) -> usize {
    ack.flow.get() as usize % BUCKETS
}
