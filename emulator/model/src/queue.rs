//! Stage 2, the queue in front of the server: what waits, and the discipline that decides who may, and who goes next.
//!
//! A discipline is asked when a packet arrives (RED, PIE, step marking) and when one would go into service (CoDel,
//! DualPI2), always with the virtual time at which that happens on the link, never with the time at which someone looked.
//! Packets wait in one list, or in one for each flow (`flows`), class (`classes`) or kind of congestion control (`dual`).

mod acks;
mod check;
mod classes;
mod codel;
mod dual;
mod flows;
mod pie;
mod red;

use super::counters::{Amount, ClassCounters, Counters, MOST_CLASSES};
use super::fifo::{Fifo, List, Pool};
use super::rng::Stream;
use super::shaper::Shaper;
use super::{Ecn, Nanos};
use crate::config::{self, Queue};
use crate::frame::Ack;
pub use acks::Acks;
use classes::Classes;
use codel::Codel;
use dual::DualPi2;
use flows::Flows;
use pie::Pie;
use red::Red;

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

/// What a discipline sees of an arriving packet and of the queue that it finds.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub now: Nanos,
    /// Waiting, without the packet in service.
    pub queued_bytes: u64,
    /// Neither waiting nor in service is anyone, for so long.
    pub idle: Option<Nanos>,
    /// The packet's own time in service.
    pub serialisation: Nanos,
    pub ecn_capable: bool,
}

/// The state of a discipline.
#[derive(Clone, Debug)]
pub enum Discipline {
    DropTail,
    /// Marks what would make more bytes than this wait.
    Step(u64),
    Red(Red),
    Codel(Codel),
    Pie(Pie),
    Flows(Flows),
    Dual(DualPi2),
    Classes(Classes),
}

impl Discipline {
    pub fn new(config: &config::Discipline) -> Self {
        match *config {
            config::Discipline::DropTail {} => Discipline::DropTail,
            config::Discipline::Step { threshold_bytes } => Discipline::Step(threshold_bytes),
            config::Discipline::Red { min_bytes, max_bytes, max_p_ppb, weight_log2, ecn } => {
                Discipline::Red(Red::new(min_bytes, max_bytes, max_p_ppb, weight_log2, ecn))
            }
            config::Discipline::Codel { target_ns, interval_ns, ecn } => {
                Discipline::Codel(Codel::new(target_ns, interval_ns, ecn))
            }
            config::Discipline::Pie { target_ns, update_ns, alpha_mhz, beta_mhz, ecn } => {
                Discipline::Pie(Pie::new(target_ns, update_ns, alpha_mhz, beta_mhz, ecn))
            }
            config::Discipline::FqCodel { flows, quantum_bytes, target_ns, interval_ns, ecn } => {
                let codel = Codel::new(target_ns, interval_ns, ecn);
                Discipline::Flows(Flows::fq_codel(flows, quantum_bytes, codel))
            }
            config::Discipline::Drr { flows, quantum_bytes } => Discipline::Flows(Flows::drr(flows, quantum_bytes)),
            config::Discipline::Sfq { flows, quantum_bytes, perturb_ns } => {
                Discipline::Flows(Flows::sfq(flows, quantum_bytes, perturb_ns))
            }
            config::Discipline::DualPi2 {
                target_ns,
                update_ns,
                alpha_mhz,
                beta_mhz,
                coupling,
                step_ns,
                classic_ppb,
            } => Discipline::Dual(DualPi2::new(
                target_ns,
                update_ns,
                alpha_mhz,
                beta_mhz,
                coupling,
                step_ns,
                classic_ppb,
            )),
            config::Discipline::Classes { scheduler, ref classes } => {
                Discipline::Classes(Classes::new(scheduler, classes))
            }
        }
    }
}

impl Discipline {
    fn class_count(&self) -> usize {
        match self {
            Discipline::Dual(_) => 2,
            Discipline::Classes(classes) => classes.count(),
            _ => 0,
        }
    }
}

/// What waits for the server.
#[derive(Debug)]
pub struct QueueStage<P> {
    limit: Limit,
    discipline: Discipline,
    /// What `discipline` was made from: it keeps its state when only a limit changes.
    configured: config::Discipline,
    pool: Pool<Waiting<P>>,
    /// Of a discipline that has one list.
    list: List,
    /// With ACK filtering, which only a discipline that has one list does.
    acks: Option<Acks>,
    stream: Stream,
    /// What was dropped after it had been accepted.
    dropped: Fifo<P>,
}

/// A queue as it becomes, with all memory that it needs.
#[derive(Debug)]
pub struct NewQueue {
    limit: Limit,
    discipline: Discipline,
    configured: config::Discipline,
}

impl NewQueue {
    pub fn new(config: &Queue) -> Self {
        NewQueue {
            limit: Limit::of(config),
            discipline: Discipline::new(&config.discipline),
            configured: config.discipline.clone(),
        }
    }
}

impl<P: Copy> QueueStage<P> {
    pub fn new(config: &Queue, acks: Option<Acks>, room: usize, stream: Stream) -> Self {
        QueueStage {
            limit: Limit::of(config),
            discipline: Discipline::new(&config.discipline),
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
        matches!(self.discipline, Discipline::Flows(_))
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
        matches!(self.discipline, Discipline::Codel(_) | Discipline::Flows(_) | Discipline::Dual(_))
    }

    fn has_one_list(&self) -> bool {
        !matches!(self.discipline, Discipline::Flows(_) | Discipline::Dual(_) | Discipline::Classes(_))
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
    ) -> Result<(), P> {
        match self.discipline {
            Discipline::DropTail | Discipline::Codel(_) => {}
            Discipline::Step(_) | Discipline::Red(_) | Discipline::Pie(_) => {
                match self.judge(&arriving, busy, server, counters) {
                    Verdict::Pass => {}
                    Verdict::Mark => arriving.mark_ce = true,
                    Verdict::Drop => {
                        counters.aqm.add(arriving.bytes);
                        return Err(arriving.packet);
                    }
                }
            }
            Discipline::Flows(_) | Discipline::Dual(_) | Discipline::Classes(_) => {
                return self.offer_apart(arriving, busy, counters);
            }
        }
        if self.acks.is_some() {
            return self.offer_filtering(arriving, ack, busy, counters);
        }
        if busy && !self.limit.admits(counters.queued, arriving.bytes) {
            counters.queue_full.add(arriving.bytes);
            return Err(arriving.packet);
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
    ) -> Result<(), P> {
        let QueueStage { limit, pool, list, acks: Some(acks), dropped, .. } = self else { return Err(arriving.packet) };
        let earlier = ack.and_then(|ack| acks.superfluous(&ack)).and_then(|place| pool.get_mut(place));
        let mut held = counters.queued;
        if let Some(earlier) = &earlier {
            held.remove(earlier.bytes);
        }
        if busy && !limit.admits(held, arriving.bytes) {
            counters.queue_full.add(arriving.bytes);
            return Err(arriving.packet);
        }
        counters.queued.add(arriving.bytes);
        arriving.flow = ack.map_or(0, |ack| Acks::tag(&ack));
        if let (Some(earlier), Some(ack)) = (earlier, ack) {
            acks.becomes(ack);
            let earlier = core::mem::replace(earlier, arriving);
            counters.leave(&earlier, arriving.arrival);
            counters.ack_filtered.add(earlier.bytes);
            dropped.push_back(earlier.packet);
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
    fn offer_apart(&mut self, arriving: Waiting<P>, busy: bool, counters: &mut Counters) -> Result<(), P> {
        let QueueStage { discipline, pool, dropped, limit, .. } = self;
        let admitted = match discipline {
            // The longest queue makes room afterwards.
            Discipline::Flows(_) => true,
            // Each class has a limit of its own.
            Discipline::Classes(classes) => !busy || classes.admit(&arriving, counters),
            _ => !busy || limit.admits(counters.queued, arriving.bytes),
        };
        if !admitted {
            counters.queue_full.add(arriving.bytes);
            return Err(arriving.packet);
        }
        counters.queued.add(arriving.bytes);
        match discipline {
            Discipline::Flows(flows) => {
                flows.push(pool, arriving);
                while busy && !limit.holds(counters.queued) {
                    let Some(longest) = flows.cut_longest(pool) else { break };
                    counters.queued.remove(longest.bytes);
                    counters.queue_full.add(longest.bytes);
                    dropped.push_back(longest.packet);
                }
            }
            Discipline::Dual(dual) => dual.push(pool, arriving, counters),
            Discipline::Classes(classes) => classes.push(pool, arriving, counters),
            _ => {}
        }
        Ok(())
    }

    /// The packet that goes into service when the server is free from `free_at` on, and its waiting ends.
    #[inline]
    pub fn next(&mut self, free_at: Nanos, counters: &mut Counters) -> Option<Waiting<P>> {
        let QueueStage { discipline, pool, list, acks, dropped, stream, .. } = self;
        match discipline {
            Discipline::DropTail | Discipline::Step(_) | Discipline::Red(_) | Discipline::Pie(_) => {
                let next = pool.pop_front(list)?;
                if let Some(acks) = acks {
                    acks.leaves(next.flow);
                }
                counters.leave(&next, free_at);
                Some(next)
            }
            Discipline::Codel(codel) => loop {
                let mut next = pool.pop_front(list)?;
                if let Some(acks) = acks {
                    acks.leaves(next.flow);
                }
                let sojourn = counters.leave(&next, free_at);
                let backlog = counters.queued.bytes;
                match codel.judge(next.arrival + sojourn, sojourn, next.bytes, backlog, next.ecn().capable()) {
                    Verdict::Pass => return Some(next),
                    Verdict::Mark => {
                        next.mark_ce = true;
                        return Some(next);
                    }
                    Verdict::Drop => {
                        counters.aqm.add(next.bytes);
                        dropped.push_back(next.packet);
                    }
                }
            },
            Discipline::Flows(flows) => flows.next(pool, free_at, counters, dropped),
            Discipline::Dual(dual) => dual.next(pool, free_at, counters, dropped, stream),
            Discipline::Classes(classes) => classes.next(pool, free_at, counters),
        }
    }

    /// Periodic updates up to `until`, with what has been waiting since the last event.
    #[inline]
    pub fn keep_time(&mut self, until: Nanos, rate_bps: u64, counters: &Counters) {
        match &mut self.discipline {
            Discipline::Pie(pie) => pie.update_until(until, counters.queued.bytes, rate_bps),
            Discipline::Dual(dual) => dual.update_until(until, &self.pool),
            Discipline::Flows(flows) => flows.perturb_until(until),
            _ => {}
        }
    }

    /// A packet that the discipline dropped after it had been accepted.
    #[inline]
    pub fn dropped(&mut self) -> Option<P> {
        self.dropped.pop_front()
    }

    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Any packet that waits, without the discipline's say.
    pub fn cut(&mut self, counters: &mut Counters) -> Option<Waiting<P>> {
        let QueueStage { discipline, pool, list, acks, .. } = self;
        match discipline {
            Discipline::Flows(flows) => flows.cut(pool),
            Discipline::Dual(dual) => dual.cut(pool, counters),
            Discipline::Classes(classes) => classes.cut(pool, counters),
            _ => {
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
                Discipline::Flows(flows) => flows.push(&mut self.pool, waiting),
                Discipline::Dual(dual) => dual.push(&mut self.pool, waiting, counters),
                Discipline::Classes(classes) => classes.push(&mut self.pool, waiting, counters),
                _ => {
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

    /// Step marking, RED and PIE decide when a packet arrives.
    fn judge(&mut self, arriving: &Waiting<P>, busy: bool, server: &mut Shaper, counters: &Counters) -> Verdict {
        let arrival = Arrival {
            now: arriving.arrival,
            queued_bytes: counters.queued.bytes,
            idle: (!busy).then(|| arriving.arrival.saturating_sub(server.free_at())),
            serialisation: server.time_of(arriving.bytes),
            ecn_capable: arriving.ecn().capable(),
        };
        match &mut self.discipline {
            Discipline::Step(threshold) => {
                let above = busy && arrival.queued_bytes + u64::from(arriving.bytes) > *threshold;
                if above && arrival.ecn_capable {
                    Verdict::Mark
                } else {
                    Verdict::Pass
                }
            }
            Discipline::Red(red) => red.judge(&arrival, &mut self.stream),
            Discipline::Pie(pie) => pie.judge(&arrival, &mut self.stream),
            _ => Verdict::Pass,
        }
    }
}
