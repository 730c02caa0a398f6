//! The link model: what happens to the packets of one direction of a link, with time passed in.
//!
//! In come packets (as handles of the caller's own) with their length and time of arrival; out come the same
//! handles with the time at which each is due at the far end, or as drops. Stages, in order:
//! impair (loss, corruption, duplication) → queue → rate → delay line. Times are nanoseconds of any clock that
//! does not run backwards. No clock is read, nothing is sent, and in steady state nothing is allocated.
//!
//! The rate stage is a server in virtual time, evaluated lazily: every decision is taken at the instant at
//! which the link would take it, so results depend on arrivals (and changes) only, not on when `pop` is called.
//! An arrival may be stamped slightly before an earlier `pop`; the queue then is as that `pop` left it.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod change;
mod check;
mod codel;
pub mod config;
mod counters;
mod delay;
mod distribution;
mod fifo;
pub mod frame;
mod loss;
mod pie;
mod queue;
mod rate;
mod red;
mod rng;

pub use change::{Change, Prepared};
pub use check::check;
pub use counters::{Amount, Counters, DirectionReport, Drop, Drops};

use config::{Direction, Framing, Ppb};
use delay::Line;
use distribution::Distribution;
use fifo::Fifo;
use queue::{Arrival, Discipline, Limit, Verdict, Waiting};
use rate::Server;
use rng::{Stage, Stream};

pub type Nanos = u64;

/// What stage 1 decided. A lost packet is neither a duplicate nor corrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    pub lost: bool,
    /// To be enqueued twice. The copy is intact: corruption is of the first one only.
    pub duplicate: bool,
    /// A random number that chooses the bit to turn over.
    pub corrupt: Option<u32>,
}

/// What the model must know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Length of the IP packet.
    pub ip_bytes: u32,
    /// The IP header says ECT(0), ECT(1) or CE.
    pub ecn_capable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release<P> {
    pub packet: P,
    pub due: Nanos,
    /// Set Congestion Experienced in the IP header.
    pub mark_ce: bool,
}

/// One direction of a link; `P` is the caller's handle of a packet.
#[derive(Debug)]
pub struct DirectionModel<P> {
    framing: Framing,
    loss: loss::Model,
    corrupt: Ppb,
    duplicate: Ppb,
    /// Nothing to draw in stage 1.
    harmless: bool,
    limit: Limit,
    discipline: Discipline,
    /// What `discipline` was made from: it keeps its state when only a limit changes.
    configured: crate::config::Discipline,
    waiting: Fifo<Waiting<P>>,
    in_service: Option<Waiting<P>>,
    server: Server,
    delay: Distribution,
    least_delay: Nanos,
    reorder: bool,
    line: Line<P>,
    dropped: Fifo<P>,
    /// The server has been evaluated up to here.
    clock: Nanos,
    counters: Counters,
    streams: Streams,
}

#[derive(Debug)]
struct Streams {
    loss: Stream,
    corrupt: Stream,
    duplicate: Stream,
    queue: Stream,
    delay: Stream,
}

impl<P: Copy> DirectionModel<P> {
    /// For a caller whose store holds as many packets as the configuration says.
    pub fn new(config: &Direction) -> Self {
        DirectionModel::with_room(config, config.store_packets as usize)
    }

    /// For a caller who never has more than `room` packets in the model: up to these nothing is allocated, whatever is
    /// changed while the link runs. Reserved memory that no packet ever needed is not touched.
    pub fn with_room(config: &Direction, room: usize) -> Self {
        DirectionModel::with_rooms(config, room, room)
    }

    /// For a caller whose memory is touched when it is reserved: it grows with the packets that are there, but for those
    /// that overtake, where the configuration lets them.
    pub fn growing(config: &Direction) -> Self {
        DirectionModel::with_rooms(config, 0, if config.reorder { config.store_packets as usize } else { 0 })
    }

    fn with_rooms(config: &Direction, room: usize, overtaking: usize) -> Self {
        let limit = Limit::new(&config.queue);
        let stream = |stage| Stream::new(config.seed, stage);
        let mut model = DirectionModel {
            framing: config.framing,
            loss: loss::Model::new(&config.loss),
            corrupt: config.corrupt_ppb,
            duplicate: config.duplicate_ppb,
            harmless: false,
            limit,
            discipline: Discipline::new(&config.queue.discipline),
            configured: config.queue.discipline.clone(),
            waiting: Fifo::new(room),
            in_service: None,
            server: Server::new(config.rate_bps),
            delay: Distribution::new(&config.delay),
            least_delay: 0,
            reorder: config.reorder,
            line: Line::new(room, overtaking),
            dropped: Fifo::new(room),
            clock: 0,
            counters: Counters::default(),
            streams: Streams {
                loss: stream(Stage::Loss),
                corrupt: stream(Stage::Corrupt),
                duplicate: stream(Stage::Duplicate),
                queue: stream(Stage::Queue),
                delay: stream(Stage::Delay),
            },
        };
        model.least_delay = model.delay.least();
        model.note_harmless();
        model
    }

    /// Stage 1, once per packet in order of arrival. A packet that is not lost goes on to `enqueue`, twice if
    /// it is a duplicate. Every model draws for every packet, so one model's outcome never shifts another's.
    #[inline]
    pub fn impair(&mut self, _now: Nanos) -> Fate {
        self.counters.in_packets += 1;
        if self.harmless {
            return Fate::default();
        }
        let lost = self.loss.lost(&mut self.streams.loss);
        let duplicate = self.duplicate > 0 && self.streams.duplicate.chance(self.duplicate);
        let corrupt = (self.corrupt > 0 && self.streams.corrupt.chance(self.corrupt))
            .then(|| (self.streams.corrupt.bits() >> 32) as u32);
        if lost {
            self.counters.lost_packets += 1;
            return Fate { lost, ..Fate::default() };
        }
        self.counters.duplicated_packets += u64::from(duplicate);
        self.counters.corrupted_packets += u64::from(corrupt.is_some());
        Fate { lost, duplicate, corrupt }
    }

    /// Stage 2: the packet waits for the server, or comes back because the queue is full or its discipline
    /// drops it.
    #[inline]
    pub fn enqueue(&mut self, packet: P, meta: Meta, arrival: Nanos) -> Result<(), P> {
        self.advance(arrival);
        let bytes = self.length(meta);
        self.counters.arrived.add(bytes);
        let verdict = match self.discipline {
            Discipline::DropTail | Discipline::Codel(_) => Verdict::Pass,
            Discipline::Red(_) | Discipline::Pie(_) => self.judge_arrival(bytes, meta.ecn_capable, arrival),
        };
        if verdict == Verdict::Drop {
            self.counters.aqm.add(bytes);
            return Err(packet);
        }
        let queued = self.counters.queued;
        if self.in_service.is_some() && !self.limit.admits(queued.packets, queued.bytes, bytes) {
            self.counters.queue_full.add(bytes);
            return Err(packet);
        }
        let mark_ce = verdict == Verdict::Mark;
        let arriving = Waiting { packet, bytes, ecn_capable: meta.ecn_capable, mark_ce, arrival };
        self.counters.queued.add(bytes);
        self.waiting.push_back(arriving);
        if self.in_service.is_none() {
            self.start_service();
        } else {
            let (queued, most) = (self.counters.queued, &mut self.counters.queued_max);
            most.packets = most.packets.max(queued.packets);
            most.bytes = most.bytes.max(queued.bytes);
        }
        Ok(())
    }

    /// The next packet that is due, if that is not after `now`; call it until it gives nothing.
    #[inline]
    pub fn pop(&mut self, now: Nanos) -> Option<Release<P>> {
        self.advance(now);
        let entry = self.line.pop(now)?;
        self.counters.delayed.remove(entry.bytes);
        self.counters.out.add(entry.bytes);
        self.counters.ce_packets += u64::from(entry.mark_ce);
        Some(Release { packet: entry.packet, due: entry.due, mark_ce: entry.mark_ce })
    }

    /// A packet that the queue's discipline dropped after it had been accepted, for the caller to free.
    #[inline]
    pub fn dropped(&mut self) -> Option<P> {
        self.dropped.pop_front()
    }

    /// The packets that will be released next, for a caller who has them fetched into the processor's cache.
    #[inline]
    pub fn ahead(&self) -> [Option<P>; 2] {
        self.line.ahead()
    }

    /// Takes one packet out, wherever in the link it is: the link is cut. Call it until it gives nothing. The link is idle
    /// then, and goes on with its configuration, its random numbers and its counters as they are.
    pub fn cut(&mut self) -> Option<P> {
        if let Some(packet) = self.dropped.pop_front() {
            return Some(packet);
        }
        let (packet, bytes) = if let Some(entry) = self.line.pop(Nanos::MAX) {
            self.counters.delayed.remove(entry.bytes);
            (entry.packet, entry.bytes)
        } else if let Some(sent) = self.in_service.take() {
            self.counters.in_service.remove(sent.bytes);
            (sent.packet, sent.bytes)
        } else {
            let waiting = self.waiting.pop_front()?;
            self.counters.queued.remove(waiting.bytes);
            (waiting.packet, waiting.bytes)
        };
        self.counters.cut.add(bytes);
        Some(packet)
    }

    /// No packet is released or dropped before this time; at it, `pop` makes progress.
    #[inline]
    pub fn next_event(&self) -> Option<Nanos> {
        if !self.dropped.is_empty() {
            return Some(self.clock);
        }
        let due = self.line.next_due();
        if self.in_service.is_none() {
            return due;
        }
        let departure = self.server.free_at();
        // CoDel may drop the packet behind, as soon as this one has left.
        let codel = matches!(self.discipline, Discipline::Codel(_));
        let next = if codel { departure } else { departure.saturating_add(self.least_delay) };
        Some(due.map_or(next, |due| due.min(next)))
    }

    /// Changes what `change` names from `now` on. Queued packets stay, also above a smaller limit; a packet in
    /// service sends its remaining bits at the new rate; packets in the delay line stay due when they were.
    pub fn reconfigure(&mut self, change: &Change, now: Nanos) {
        self.take_over(&mut Prepared::new(change), now);
    }

    /// The same without allocating; `change` then holds what it took the place of.
    pub fn take_over(&mut self, change: &mut Prepared, now: Nanos) {
        self.advance(now);
        let Prepared { rate_bps, delay, reorder, loss, corrupt, duplicate, limit, discipline } = change;
        if let Some(rate_bps) = *rate_bps {
            self.server.set_rate(rate_bps, self.clock);
        }
        if let Some(delay) = delay {
            core::mem::swap(&mut self.delay, delay);
            self.least_delay = self.delay.least();
        }
        self.reorder = reorder.unwrap_or(self.reorder);
        if let Some(loss) = loss {
            core::mem::swap(&mut self.loss, loss);
        }
        self.corrupt = corrupt.unwrap_or(self.corrupt);
        self.duplicate = duplicate.unwrap_or(self.duplicate);
        self.limit = limit.unwrap_or(self.limit);
        if let Some((configured, discipline)) = discipline {
            if *configured != self.configured {
                core::mem::swap(&mut self.configured, configured);
                core::mem::swap(&mut self.discipline, discipline);
            }
        }
        self.note_harmless();
    }

    /// Drops that only the caller sees (its store is full), so that they appear with all others.
    pub fn count_drop(&mut self, cause: Drop, meta: Meta) {
        let bytes = self.length(meta);
        match cause {
            Drop::Loss => self.counters.lost_packets += 1,
            Drop::QueueFull => self.counters.queue_full.add(bytes),
            Drop::Aqm => self.counters.aqm.add(bytes),
            Drop::Store => self.counters.store_full.add(bytes),
        }
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What the packet counts on the link.
    #[inline]
    fn length(&self, meta: Meta) -> u32 {
        meta.ip_bytes.saturating_add(self.framing.overhead_bytes).max(self.framing.minimum_bytes)
    }

    fn note_harmless(&mut self) {
        self.harmless = matches!(self.loss, loss::Model::None) && self.corrupt == 0 && self.duplicate == 0;
    }

    /// RED and PIE decide when a packet arrives.
    fn judge_arrival(&mut self, bytes: u32, ecn_capable: bool, now: Nanos) -> Verdict {
        let queued_bytes = self.counters.queued.bytes;
        let idle = self.in_service.is_none().then(|| now.saturating_sub(self.server.free_at()));
        let serialisation = self.server.time_of(bytes);
        let arrival = Arrival { now, queued_bytes, idle, serialisation, ecn_capable };
        match &mut self.discipline {
            Discipline::DropTail | Discipline::Codel(_) => Verdict::Pass,
            Discipline::Red(red) => red.judge(&arrival, &mut self.streams.queue),
            Discipline::Pie(pie) => pie.judge(&arrival, &mut self.streams.queue),
        }
    }

    /// Evaluates the server up to `to`: whoever has been sent goes into the delay line, the next one starts.
    #[inline]
    fn advance(&mut self, to: Nanos) {
        self.clock = self.clock.max(to);
        while self.in_service.is_some() && self.server.free_at() <= self.clock {
            self.finish_service();
        }
        self.keep_time(self.clock);
    }

    fn finish_service(&mut self) {
        let Some(sent) = self.in_service.take() else { return };
        let departure = self.server.free_at();
        let due = departure.saturating_add(self.delay.draw(&mut self.streams.delay));
        self.counters.in_service.remove(sent.bytes);
        self.counters.delayed.add(sent.bytes);
        self.line.push(sent.packet, sent.bytes, sent.mark_ce, due, self.reorder);
        self.keep_time(departure);
        self.start_service();
    }

    /// PIE's periodic updates up to `until`, with what has been waiting since the last event.
    #[inline]
    fn keep_time(&mut self, until: Nanos) {
        if let Discipline::Pie(pie) = &mut self.discipline {
            pie.update_until(until, self.counters.queued.bytes, self.server.rate_bps());
        }
    }

    /// Puts the first waiting packet that the discipline lets through into service, at the instant at which
    /// the server is free and the packet there.
    #[inline]
    fn start_service(&mut self) {
        while let Some(mut next) = self.waiting.pop_front() {
            self.counters.queued.remove(next.bytes);
            let start = next.arrival.max(self.server.free_at());
            let sojourn = start - next.arrival;
            self.counters.waited_ns += sojourn;
            if let Discipline::Codel(codel) = &mut self.discipline {
                let backlog = self.counters.queued.bytes;
                match codel.judge(start, sojourn, next.bytes, backlog, next.ecn_capable) {
                    Verdict::Pass => {}
                    Verdict::Mark => next.mark_ce = true,
                    Verdict::Drop => {
                        self.counters.aqm.add(next.bytes);
                        self.dropped.push_back(next.packet);
                        continue;
                    }
                }
            }
            self.server.serve(next.bytes, next.arrival);
            self.counters.in_service.add(next.bytes);
            self.counters.served_packets += 1;
            self.in_service = Some(next);
            return;
        }
    }
}
