//! Stage 2, the queue in front of the server: what waits, and the discipline that decides who may, and who goes next.
//!
//! Packets wait in one list, or in those that the discipline keeps (`disciplines`).

mod acks;
mod check;
pub mod disciplines;

use super::counters::{Amount, ClassCounters, Counters, Drop, MOST_CLASSES};
use super::fifo::{Fifo, List, Pool};
use super::rng::Stream;
use super::shaper::Shaper;
use super::{Ecn, Nanos};
use crate::config::{self, Queue};
use crate::frame::Ack;
pub use acks::Acks;
use disciplines::{Arrival, Departure, Model};

/// What a discipline says about one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// Let it pass with Congestion Experienced set.
    Mark,
    Drop,
}

#[derive(Clone, Copy, Debug)]
pub struct Waiting<P> {
    pub packet: P,
    pub arrival: Nanos,
    /// As framing counts them.
    pub bytes: u32,
    /// As `Meta` says; with ACK filtering, by what a known ACK is told on leaving.
    pub flow: u16,
    pub traffic_class: u8,
    pub mark_ce: bool,
}

impl<P> Waiting<P> {
    #[inline]
    pub fn ecn(&self) -> Ecn {
        Ecn::of(self.traffic_class)
    }
}

/// Most that may wait; the packet in service does not count.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    packets: u64,
    bytes: u64,
}

impl Limit {
    pub fn new(packets: Option<u64>, bytes: Option<u64>) -> Self {
        Limit { packets: packets.unwrap_or(u64::MAX), bytes: bytes.unwrap_or(u64::MAX) }
    }

    pub fn of(config: &Queue) -> Self {
        Limit::new(config.limit_packets, config.limit_bytes)
    }

    /// May one more packet of `bytes` wait, when this much waits already?
    #[inline]
    pub fn admits(&self, held: Amount, bytes: u32) -> bool {
        held.packets < self.packets && held.bytes + u64::from(bytes) <= self.bytes
    }

    #[inline]
    pub fn holds(&self, held: Amount) -> bool {
        held.packets <= self.packets && held.bytes <= self.bytes
    }
}

/// What waits for the server.
#[derive(Debug)]
pub struct QueueStage<P> {
    limit: Limit,
    discipline: Model,
    /// What `discipline` was made from: it keeps its state when only a limit changes.
    configured: config::Discipline,
    pool: Pool<Waiting<P>>,
    /// Of a discipline that has one list.
    list: List,
    /// With ACK filtering, which only a discipline that has one list does.
    acks: Option<Acks>,
    stream: Stream,
    /// What was dropped after it had been accepted, and why.
    dropped: Fifo<(P, Drop)>,
}

/// A queue as it becomes, with all memory that it needs.
#[derive(Debug)]
pub struct NewQueue {
    limit: Limit,
    discipline: Model,
    configured: config::Discipline,
}

impl NewQueue {
    pub fn new(config: &Queue) -> Self {
        NewQueue {
            limit: Limit::of(config),
            discipline: config.discipline.model(),
            configured: config.discipline.clone(),
        }
    }
}

impl<P: Copy> QueueStage<P> {
    pub fn new(config: &Queue, acks: Option<Acks>, room: usize, stream: Stream) -> Self {
        QueueStage {
            limit: Limit::of(config),
            discipline: config.discipline.model(),
            configured: config.discipline.clone(),
            pool: Pool::new(room),
            list: List::EMPTY,
            acks,
            stream,
            dropped: Fifo::new(room),
        }
    }

    /// Takes memory for `packets` in all; false if the system has none.
    #[inline]
    pub fn reserve(&mut self, packets: usize) -> bool {
        self.pool.reserve(packets) && self.dropped.reserve(packets)
    }

    /// Does the discipline ask which flow a packet belongs to?
    pub fn tells_flows_apart(&self) -> bool {
        matches!(&self.discipline, Model::SeveralLists(lists) if lists.tells_flows_apart())
    }

    /// Does it ask what a packet acknowledges?
    #[inline]
    pub fn filters_acks(&self) -> bool {
        self.acks.is_some()
    }

    /// Filters ACKs from now on, or no more. ACKs that wait already are not known; `acks` then holds what this took the
    /// place of.
    pub fn filter_acks(&mut self, acks: &mut Option<Acks>) {
        core::mem::swap(&mut self.acks, acks);
        if self.has_one_list() {
            self.pool.each_mut(&self.list, |waiting| waiting.flow = 0);
        }
    }

    /// May it drop a packet at the end of a service, before any other is released?
    #[inline]
    pub fn drops_later(&self) -> bool {
        match &self.discipline {
            Model::OneList(one) => one.on_departure(),
            Model::SeveralLists(lists) => lists.drops_later(),
        }
    }

    fn has_one_list(&self) -> bool {
        matches!(self.discipline, Model::OneList(_))
    }

    /// The packet waits, or comes back because the queue is full or its discipline drops it. `busy`: one is in service.
    #[inline]
    pub fn offer(
        &mut self,
        mut arriving: Waiting<P>,
        ack: Option<Ack>,
        busy: bool,
        server: &mut Shaper,
        counters: &mut Counters,
    ) -> Result<(), (P, Drop)> {
        let Model::OneList(one) = &self.discipline else { return self.offer_apart(arriving, busy, counters) };
        if one.on_arrival() {
            match self.judge(&arriving, busy, server, counters) {
                Verdict::Pass => {}
                Verdict::Mark => arriving.mark_ce = true,
                Verdict::Drop => {
                    counters.aqm.add(arriving.bytes);
                    return Err((arriving.packet, Drop::Aqm));
                }
            }
        }
        if self.acks.is_some() {
            return self.offer_filtering(arriving, ack, busy, counters);
        }
        if busy && !self.limit.admits(counters.queued, arriving.bytes) {
            counters.queue_full.add(arriving.bytes);
            return Err((arriving.packet, Drop::QueueFull));
        }
        counters.queued.add(arriving.bytes);
        self.pool.push_back(&mut self.list, arriving);
        Ok(())
    }

    /// The same where an ACK takes the place of an earlier one.
    #[inline(never)]
    fn offer_filtering(
        &mut self,
        mut arriving: Waiting<P>,
        ack: Option<Ack>,
        busy: bool,
        counters: &mut Counters,
    ) -> Result<(), (P, Drop)> {
        let QueueStage { limit, pool, list, acks: Some(acks), dropped, .. } = self else {
            return Err((arriving.packet, Drop::QueueFull));
        };
        let earlier = ack.and_then(|ack| acks.superfluous(&ack)).and_then(|place| pool.get_mut(place));
        let mut held = counters.queued;
        if let Some(earlier) = &earlier {
            held.remove(earlier.bytes);
        }
        if busy && !limit.admits(held, arriving.bytes) {
            counters.queue_full.add(arriving.bytes);
            return Err((arriving.packet, Drop::QueueFull));
        }
        counters.queued.add(arriving.bytes);
        arriving.flow = ack.map_or(0, |ack| Acks::tag(&ack));
        if let (Some(earlier), Some(ack)) = (earlier, ack) {
            acks.becomes(ack);
            let earlier = core::mem::replace(earlier, arriving);
            counters.leave(&earlier, arriving.arrival);
            counters.ack_filtered.add(earlier.bytes);
            dropped.push_back((earlier.packet, Drop::AckFilter));
            return Ok(());
        }
        let place = pool.push_back(list, arriving);
        let unknown = ack.and_then(|ack| acks.joins(ack, place)).and_then(|place| pool.get_mut(place));
        if let Some(unknown) = unknown {
            unknown.flow = 0;
        }
        Ok(())
    }

    /// The same where packets wait in several lists.
    fn offer_apart(&mut self, arriving: Waiting<P>, busy: bool, counters: &mut Counters) -> Result<(), (P, Drop)> {
        let QueueStage { discipline: Model::SeveralLists(lists), pool, dropped, limit, .. } = self else {
            return Err((arriving.packet, Drop::QueueFull));
        };
        if busy && !lists.admits(&arriving, limit, counters) {
            counters.queue_full.add(arriving.bytes);
            return Err((arriving.packet, Drop::QueueFull));
        }
        counters.queued.add(arriving.bytes);
        lists.push(pool, arriving, counters);
        while busy && !limit.holds(counters.queued) {
            let Some(shed) = lists.shed(pool) else { break };
            counters.queued.remove(shed.bytes);
            counters.queue_full.add(shed.bytes);
            dropped.push_back((shed.packet, Drop::QueueFull));
        }
        Ok(())
    }

    /// The packet that goes into service when the server is free from `free_at` on, and its waiting ends.
    #[inline]
    pub fn next(&mut self, free_at: Nanos, counters: &mut Counters) -> Option<Waiting<P>> {
        let QueueStage { discipline, pool, list, acks, dropped, stream, .. } = self;
        let one = match discipline {
            Model::OneList(one) => one,
            Model::SeveralLists(lists) => return lists.next(pool, free_at, counters, dropped, stream),
        };
        loop {
            let mut next = pool.pop_front(list)?;
            if let Some(acks) = acks {
                acks.leaves(next.flow);
            }
            let sojourn = counters.leave(&next, free_at);
            if !one.on_departure() {
                return Some(next);
            }
            let departure = Departure {
                now: next.arrival + sojourn,
                sojourn,
                bytes: next.bytes,
                backlog: counters.queued.bytes,
                ecn_capable: next.ecn().capable(),
            };
            match one.departs(&departure, stream) {
                Verdict::Pass => return Some(next),
                Verdict::Mark => {
                    next.mark_ce = true;
                    return Some(next);
                }
                Verdict::Drop => {
                    counters.aqm.add(next.bytes);
                    dropped.push_back((next.packet, Drop::Aqm));
                }
            }
        }
    }

    /// Periodic updates up to `until`, with what has been waiting since the last event.
    #[inline]
    pub fn keep_time(&mut self, until: Nanos, rate_bps: u64, counters: &Counters) {
        match &mut self.discipline {
            Model::OneList(one) => one.keep_time(until, counters.queued.bytes, rate_bps),
            Model::SeveralLists(lists) => lists.keep_time(until, &self.pool),
        }
    }

    /// A packet that the discipline dropped after it had been accepted, and why.
    #[inline]
    pub fn dropped(&mut self) -> Option<(P, Drop)> {
        self.dropped.pop_front()
    }

    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Any packet that waits, without the discipline's say.
    pub fn cut(&mut self, counters: &mut Counters) -> Option<Waiting<P>> {
        let QueueStage { discipline, pool, list, acks, .. } = self;
        match discipline {
            Model::SeveralLists(lists) => lists.cut(pool, counters),
            Model::OneList(_) => {
                let waiting = pool.pop_front(list)?;
                if let Some(acks) = acks {
                    acks.leaves(waiting.flow);
                }
                Some(waiting)
            }
        }
    }

    /// Another limit and, where that differs, another discipline, which finds all that waits. `prepared` then holds
    /// what it took the place of.
    pub fn take_over(&mut self, prepared: &mut NewQueue, counters: &mut Counters) {
        core::mem::swap(&mut self.limit, &mut prepared.limit);
        if self.configured == prepared.configured {
            return;
        }
        // One after the other they go to the new discipline; the same memory holds them all the time. ACKs that wait are not
        // known any more.
        if let Some(acks) = &mut self.acks {
            acks.forget();
        }
        let mut moving = core::mem::replace(&mut self.list, List::EMPTY);
        let one_list = self.has_one_list();
        let mut classes = [ClassCounters::default(); MOST_CLASSES];
        while let Some(mut waiting) = if one_list { self.pool.pop_front(&mut moving) } else { self.cut(counters) } {
            core::mem::swap(&mut counters.classes, &mut classes);
            if self.acks.is_some() {
                waiting.flow = 0;
            }
            match &mut prepared.discipline {
                Model::SeveralLists(lists) => lists.push(&mut self.pool, waiting, counters),
                Model::OneList(_) => {
                    self.pool.push_back(&mut self.list, waiting);
                }
            }
            core::mem::swap(&mut counters.classes, &mut classes);
        }
        counters.classes = classes;
        counters.class_count = prepared.discipline.class_count();
        core::mem::swap(&mut self.configured, &mut prepared.configured);
        core::mem::swap(&mut self.discipline, &mut prepared.discipline);
    }

    /// From now on so many bytes may wait; what waits stays.
    pub fn limit_bytes(&mut self, bytes: u64) {
        self.limit.bytes = bytes;
    }

    /// So many classes count on their own.
    pub fn class_count(&self) -> usize {
        self.discipline.class_count()
    }

    /// What a discipline of one list says of a packet that arrives.
    fn judge(&mut self, arriving: &Waiting<P>, busy: bool, server: &mut Shaper, counters: &Counters) -> Verdict {
        let Model::OneList(one) = &mut self.discipline else { return Verdict::Pass };
        let arrival = Arrival {
            now: arriving.arrival,
            bytes: arriving.bytes,
            queued_bytes: counters.queued.bytes,
            idle: (!busy).then(|| arriving.arrival.saturating_sub(server.free_at())),
            serialisation: server.time_of(arriving.bytes),
            ecn_capable: arriving.ecn().capable(),
        };
        one.arrives(&arrival, &mut self.stream)
    }
}
