//! The link model: what happens to the packets of one direction of a link, with time passed in.
//!
//! In come packets (as handles of the caller's own) with their length and time of arrival; out come the same
//! handles with the time at which each is due at the far end, or as drops. Stages, in order:
//! impair (loss, middlebox, policer, corruption, duplication) → queue → rate → delay line. Times are nanoseconds of any clock that
//! does not run backwards. No clock is read, nothing is sent, and in steady state nothing is allocated.
//!
//! The rate stage is a server in virtual time, evaluated lazily: every decision is taken at the instant at
//! which the link would take it, so results depend on arrivals (and changes) only, not on when `pop` is called. That
//! holds where arrivals are shown in order of time, each before the server is evaluated beyond it: a caller who looks
//! late and may have arrivals left to show says up to when it knows them all (`pop_known`).

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod bucket;
mod change;
mod check;
pub mod classes;
pub mod config;
mod counters;
mod delay;
mod distribution;
mod fifo;
mod flow_table;
pub mod frame;
mod impair;
mod link;
mod loss;
mod medium;
mod middlebox;
mod queue;
mod radio;
mod rate;
mod rng;
mod shaper;
mod trace;

pub use change::ModelChange;
pub use check::check;
pub use config::Change;
pub use counters::{Amount, ClassCounters, ClassReport, Counters, DirectionReport, Drop, Drops};
pub use flow_table::{FlowCounters, FlowReport, FlowTable};
pub use impair::Fate;
pub use link::Link;
pub use medium::share;
pub use trace::TraceSettings;

use alloc::vec::Vec;

use config::{Direction, Framing, Held, Row};
use delay::{Displace, Line};
use distribution::Distribution;
use flow_table::OTHERS;
use impair::Impairments;
use medium::Turn;
use queue::{Acks, QueueStage, Waiting};
use radio::{slot_end, MOST_AGGREGATED};
use rng::{Stage, Stream};
use shaper::Shaper;
use trace::{Player, Step};

pub type Nanos = u64;

/// What the model must know of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Length of the IP packet.
    pub ip_bytes: u32,
    /// A hash of what packets of one flow have in common; 0 where the queue does not tell flows apart.
    pub flow: u16,
    /// IPv4's type of service or IPv6's traffic class: 6 bits of DSCP (RFC 2474), 2 of ECN (RFC 3168).
    pub traffic_class: u8,
    /// What it acknowledges, if it does nothing else; none where the queue does not ask.
    pub ack: Option<frame::Ack>,
    /// The place of its flow in the table that counts flows, and what it carries behind its headers; 0 where none does.
    pub place: u16,
    pub payload_bytes: u16,
}

/// The two bits of ECN (RFC 3168, section 5; RFC 9331 for ECT(1)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    NotEct,
    Ect1,
    Ect0,
    Ce,
}

impl Ecn {
    #[inline]
    pub fn of(traffic_class: u8) -> Self {
        match traffic_class & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Does the sender understand a mark, or is there one already?
    #[inline]
    pub fn capable(self) -> bool {
        self != Ecn::NotEct
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release<P> {
    pub packet: P,
    pub due: Nanos,
    /// Set Congestion Experienced in the IP header.
    pub mark_ce: bool,
}

/// A packet inside the model, with what its flow counts of it when it leaves.
#[derive(Clone, Copy, Debug)]
struct Parcel<P> {
    packet: P,
    place: u16,
    payload_bytes: u16,
}

/// One direction of a link; `P` is the caller's handle of a packet.
#[derive(Debug)]
pub struct DirectionModel<P> {
    framing: Framing,
    most_packets: u64,
    /// Which flows meet in a queue.
    salt: u64,
    held: Held,
    impairments: Impairments,
    queue: QueueStage<Parcel<P>>,
    in_service: Option<Waiting<Parcel<P>>>,
    /// In service with it.
    aggregated: Vec<Waiting<Parcel<P>>>,
    turn: Turn,
    server: Shaper,
    /// Bytes, and the peak rate.
    burst: (u64, u64),
    delay: Distribution,
    least_delay: Nanos,
    /// So much of every delay something else makes, before the link or after it.
    elsewhere: Nanos,
    line: Line<Parcel<P>>,
    trace: Option<Player>,
    /// When the trace's next step is; the greatest number: never.
    trace_at: Nanos,
    /// The server has been evaluated up to here.
    clock: Nanos,
    counters: Counters,
    /// None: flows are not counted apart.
    flows: Option<FlowTable>,
    /// So many tables of flows there were.
    flow_tables: u16,
    streams: Streams,
}

#[derive(Debug)]
struct Streams {
    delay: Stream,
    harq: Stream,
    displace: Stream,
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

    /// For a caller whose memory is touched when it is reserved: it grows with the packets that are there (`reserve_one`),
    /// but for those that overtake, where the configuration lets them.
    pub fn growing(config: &Direction) -> Self {
        DirectionModel::with_rooms(config, 0, if config.reorder { config.store_packets as usize } else { 0 })
    }

    fn with_rooms(config: &Direction, room: usize, overtaking: usize) -> Self {
        let stream = |stage| Stream::new(config.seed, stage);
        let burst = if config.trace.says_rate() { (0, 0) } else { (config.burst_bytes, config.peak_bps) };
        let mut model = DirectionModel {
            framing: config.framing,
            most_packets: config.most_packets(),
            salt: config.seed,
            held: Held::of(config),
            impairments: Impairments::new(config),
            queue: QueueStage::new(&config.queue, config.ack_filter.then(Acks::new), room, stream(Stage::Queue)),
            in_service: None,
            aggregated: Vec::with_capacity(if room > 0 { MOST_AGGREGATED - 1 } else { 0 }),
            turn: Turn::default(),
            server: Shaper::new(config.rate_bps, burst.0, burst.1),
            burst,
            delay: Distribution::new(&config.delay),
            least_delay: 0,
            elsewhere: 0,
            line: Line::new(room, overtaking),
            trace: Player::new(&config.trace),
            trace_at: Nanos::MAX,
            clock: 0,
            counters: Counters::default(),
            flows: None,
            flow_tables: 0,
            streams: Streams {
                delay: stream(Stage::Delay),
                harq: stream(Stage::Harq),
                displace: stream(Stage::Displace),
            },
        };
        model.least_delay = model.delay.least();
        model.counters.class_count = model.queue.class_count();
        model.begin(0);
        model
    }

    /// Of every delay `ns` pass elsewhere, in a tunnel that the link's packets cross too: they are released so much sooner,
    /// at the instant at which they leave the rate stage at the soonest. Delays are still told and changed as a whole.
    pub fn leave_out(&mut self, ns: Nanos) {
        self.elsewhere = ns;
    }

    /// The trace begins at `now`, for the first time or anew.
    pub fn begin(&mut self, now: Nanos) {
        if self.trace_at <= now {
            self.advance(now);
        }
        let Some(trace) = &mut self.trace else { return };
        self.clock = self.clock.max(now);
        trace.begin(self.clock);
        self.trace_at = trace.next_at();
        self.advance(now);
    }

    /// Stage 1, once per packet in order of arrival. A packet that is not lost goes on to `enqueue` with what `meta` then
    /// says of it, twice if it is a duplicate.
    #[inline]
    pub fn impair(&mut self, now: Nanos, meta: &mut Meta) -> Fate {
        self.counters.in_packets += 1;
        let bytes = self.length(*meta);
        self.counters.in_bytes += u64::from(bytes);
        if self.trace_at <= now {
            self.advance(now);
        }
        if let Some(flows) = &mut self.flows {
            flows.arrives(meta.place, bytes, now);
        }
        match self.impairments.judge(&self.held, meta, bytes, now) {
            Ok(fate) => {
                self.counters.corrupted_packets += u64::from(fate.corrupt.is_some());
                if fate.duplicate {
                    self.counters.duplicated_packets += 1;
                    self.of_flow(|flows| flows.copies(meta.place));
                }
                fate
            }
            Err(cause) => {
                self.count_drop(cause, *meta);
                Fate::LOST
            }
        }
    }

    /// Takes memory for one more packet, so that `enqueue` and all that follows allocate none; false if the system has
    /// none, or the link holds as many packets as it may (`Direction::most_packets`).
    #[inline]
    pub fn reserve_one(&mut self) -> bool {
        let Counters { queued, in_service, delayed, .. } = &self.counters;
        // What was dropped and not taken away yet is not counted any more, and takes no place in the line.
        let packets = (queued.packets + in_service.packets + delayed.packets) as usize + 1;
        let aggregated = if self.held.aggregate.packets > 0 { MOST_AGGREGATED - 1 } else { 0 };
        packets as u64 <= self.most_packets
            && self.queue.reserve(packets)
            && self.line.reserve(packets, self.held.reorder)
            && (self.aggregated.capacity() >= aggregated
                || self.aggregated.try_reserve(aggregated - self.aggregated.len()).is_ok())
    }

    /// Stage 2: the packet waits for the server, or comes back because the queue is full or its discipline
    /// drops it.
    #[inline]
    pub fn enqueue(&mut self, packet: P, meta: Meta, arrival: Nanos) -> Result<(), P> {
        self.advance(arrival);
        let bytes = self.length(meta);
        self.counters.arrived.add(bytes);
        let Meta { ip_bytes: _, flow, traffic_class, ack, place, payload_bytes } = meta;
        let packet = Parcel { packet, place, payload_bytes };
        let arriving = Waiting { packet, arrival, bytes, flow, traffic_class, mark_ce: false };
        let busy = self.busy() || self.turn.shared && self.turn.free_at > arrival;
        if let Err((parcel, cause)) = self.queue.offer(arriving, ack, busy, &mut self.server, &mut self.counters) {
            self.of_flow(|flows| flows.drops(place, cause));
            return Err(parcel.packet);
        }
        if busy || self.delivers() {
            let (queued, most) = (self.counters.queued, &mut self.counters.queued_max);
            most.packets = most.packets.max(queued.packets);
            most.bytes = most.bytes.max(queued.bytes);
        } else {
            self.start_service();
        }
        Ok(())
    }

    /// The next packet that is due, if that is not after `now`; call it until it gives nothing.
    #[inline]
    pub fn pop(&mut self, now: Nanos) -> Option<Release<P>> {
        self.pop_known(now, now)
    }

    /// The same for a caller who knows all arrivals up to `known` only, and may still have later ones to show: the server
    /// is evaluated up to there, and nothing is released that one of them could still overtake. What is dropped, marked
    /// and released, and in which order, then depends on the arrivals alone, however late the caller looks.
    #[inline]
    pub fn pop_known(&mut self, known: Nanos, now: Nanos) -> Option<Release<P>> {
        self.advance(known.min(now));
        let entry = self.line.pop(now.min(known.saturating_add(self.least_transit())))?;
        self.counters.delayed.remove(entry.bytes);
        self.counters.out.add(entry.bytes);
        self.counters.ce_packets += u64::from(entry.mark_ce);
        let Parcel { packet, place, payload_bytes } = entry.packet;
        if let Some(flows) = &mut self.flows {
            flows.releases(place, entry.bytes, u32::from(payload_bytes), entry.mark_ce, entry.due);
        }
        Some(Release { packet, due: entry.due, mark_ce: entry.mark_ce })
    }

    /// A packet that the queue's discipline dropped after it had been accepted, for the caller to free.
    #[inline]
    pub fn dropped(&mut self) -> Option<P> {
        let (Parcel { packet, place, .. }, cause) = self.queue.dropped()?;
        self.of_flow(|flows| flows.drops(place, cause));
        Some(packet)
    }

    /// The packets that will be released next, for a caller who has them fetched into the processor's cache.
    #[inline]
    pub fn ahead(&self) -> [Option<P>; 2] {
        self.line.ahead().map(|parcel| parcel.map(|parcel| parcel.packet))
    }

    /// Takes one packet out, wherever in the link it is: the link is cut. Call it until it gives nothing. The link is idle
    /// then, and goes on with its configuration, its random numbers and its counters as they are.
    pub fn cut(&mut self) -> Option<P> {
        if let Some(packet) = self.dropped() {
            return Some(packet);
        }
        let (Parcel { packet, place, .. }, bytes) = if let Some(entry) = self.line.pop(Nanos::MAX) {
            self.counters.delayed.remove(entry.bytes);
            (entry.packet, entry.bytes)
        } else if let Some(sent) = self.aggregated.pop().or_else(|| self.in_service.take()) {
            self.counters.in_service.remove(sent.bytes);
            self.server.forget();
            (sent.packet, sent.bytes)
        } else {
            let waiting = self.queue.cut(&mut self.counters)?;
            self.counters.queued.remove(waiting.bytes);
            (waiting.packet, waiting.bytes)
        };
        self.counters.cut.add(bytes);
        self.of_flow(|flows| flows.drops(place, Drop::Cut));
        Some(packet)
    }

    /// No packet is released or dropped before this time; at it, `pop` makes progress.
    #[inline]
    pub fn next_event(&self) -> Option<Nanos> {
        self.next_event_behind(0)
    }

    /// The same for a caller of `pop_known` whose `known` is `lag` behind its `now`; `lag` is at most `least_transit`.
    #[inline]
    pub fn next_event_behind(&self, lag: Nanos) -> Option<Nanos> {
        if self.queue.has_dropped() {
            return Some(self.clock);
        }
        let due = self.line.next_due();
        if !self.busy() {
            return due;
        }
        let departure = match self.in_service {
            Some(_) => self.server.free_at(),
            None if self.turn.shared => self.turn.free_at,
            None => Nanos::MAX,
        };
        let next = if self.queue.drops_later() {
            // The packet behind may be dropped as soon as this one has left.
            departure.min(self.trace_at).saturating_add(lag)
        } else if departure <= self.trace_at && !self.held.reorder {
            slot_end(self.held.slot_ns, departure).saturating_add(self.least_delay.saturating_sub(self.elsewhere))
        } else {
            // From the trace's next step on the packet may leave sooner, and the delay may be shorter.
            departure.min(self.trace_at).saturating_add(self.least_transit())
        };
        Some(due.map_or(next, |due| due.min(next)))
    }

    /// Changes what `change` names from `now` on. Queued packets stay, also above a smaller limit; a packet in
    /// service sends its remaining bits at the new rate; packets in the delay line stay due when they were.
    pub fn reconfigure(&mut self, change: &Change, now: Nanos) {
        self.take_over(&mut ModelChange::new(change), now);
    }

    /// The same without allocating; `change` then holds what it took the place of.
    pub fn take_over(&mut self, change: &mut ModelChange, now: Nanos) {
        self.advance(now);
        self.held.take_over(&change.held);
        self.impairments.take_over(change, &self.held, self.clock);
        if let Some(rate_bps) = change.rate_bps {
            self.server.set_rate(rate_bps, self.clock);
        }
        if let Some(delay) = &mut change.delay {
            core::mem::swap(&mut self.delay, delay);
            self.least_delay = self.delay.least();
        }
        let says_rate = self.trace.as_ref().is_some_and(Player::says_rate);
        if (change.burst_bytes.is_some() || change.peak_bps.is_some()) && !says_rate {
            self.burst = (change.burst_bytes.unwrap_or(self.burst.0), change.peak_bps.unwrap_or(self.burst.1));
            self.server.set_burst(self.burst.0, self.burst.1, self.clock);
        }
        if let Some(acks) = &mut change.acks {
            self.queue.filter_acks(acks);
        }
        if let Some(queue) = &mut change.queue {
            self.queue.take_over(queue, &mut self.counters);
        }
        if let Some(flows) = &mut change.flows {
            core::mem::swap(&mut self.flows, flows);
            self.flow_tables = self.flow_tables.wrapping_add(1);
            let number = self.flow_tables;
            self.of_flow(|flows| flows.begin(number));
        }
        if change.restart_trace {
            self.begin(now);
        }
    }

    /// Counts a drop; also those that only the caller sees (its store is full), so that they appear with all others.
    pub fn count_drop(&mut self, cause: Drop, meta: Meta) {
        let bytes = self.length(meta);
        match cause {
            Drop::Loss => self.counters.lost_packets += 1,
            Drop::Blackhole => self.counters.blackhole_packets += 1,
            Drop::Policed => self.counters.policed_packets += 1,
            Drop::QueueFull => self.counters.queue_full.add(bytes),
            Drop::Aqm => self.counters.aqm.add(bytes),
            Drop::AckFilter => self.counters.ack_filtered.add(bytes),
            Drop::Store => self.counters.store_full.add(bytes),
            Drop::Cut => self.counters.cut.add(bytes),
        }
        self.of_flow(|flows| flows.drops(meta.place, cause));
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The flows that are counted apart; none: nobody has asked for them.
    pub fn flows(&self) -> Option<&FlowTable> {
        self.flows.as_ref()
    }

    /// Counts something of a flow, where flows are counted.
    #[inline]
    fn of_flow(&mut self, count: impl FnOnce(&mut FlowTable)) {
        if let Some(flows) = &mut self.flows {
            count(flows);
        }
    }

    /// The server has been evaluated up to here: earlier arrivals find the queue as it is now.
    pub fn evaluated_to(&self) -> Nanos {
        self.clock
    }

    /// Do both directions of the link send on one medium (`share`)?
    #[inline]
    pub fn shares_medium(&self) -> bool {
        self.held.half_duplex || self.turn.shared
    }

    /// What the model must know of a frame of which `head` is the beginning, with its headers; `ip_bytes` as
    /// `frame::counted_bytes` says.
    #[inline]
    pub fn describe(&mut self, head: &[u8], ip_bytes: u32) -> Meta {
        let flow = if self.queue.tells_flows_apart() { frame::flow(head, self.salt) } else { 0 };
        let ack = if self.queue.filters_acks() { frame::pure_ack(head, self.salt) } else { None };
        let (place, payload_bytes) = self.flows.as_mut().map_or((OTHERS, 0), |flows| {
            let (key, payload_bytes) = frame::flow_key(head);
            (flows.place_of(key), payload_bytes)
        });
        Meta { ip_bytes, flow, traffic_class: frame::traffic_class(head), ack, place, payload_bytes }
    }

    /// What the packet counts on the link.
    #[inline]
    fn length(&self, meta: Meta) -> u32 {
        meta.ip_bytes.saturating_add(self.framing.overhead_bytes).max(self.framing.minimum_bytes)
    }

    /// Evaluates the server up to `to`: whoever has been sent goes into the delay line, the next one starts.
    #[inline]
    fn advance(&mut self, to: Nanos) {
        self.clock = self.clock.max(to);
        if self.trace_at <= self.clock {
            self.follow_trace();
        }
        while self.in_service.is_some() && self.server.free_at() <= self.clock {
            self.finish_service();
        }
        self.keep_time(self.clock);
    }

    /// Takes all steps of the trace up to the clock, each at its instant. Who has left by then left before it.
    #[inline(never)]
    fn follow_trace(&mut self) {
        while self.trace_at <= self.clock && self.trace_at < Nanos::MAX {
            let now = self.trace_at;
            while self.in_service.is_some() && self.server.free_at() <= now {
                self.finish_service();
            }
            self.keep_time(now);
            let idle = !self.busy();
            let Some(trace) = &mut self.trace else { return };
            if idle {
                trace.skip_to(self.clock);
            }
            let now = trace.next_at();
            let step = trace.step();
            self.trace_at = trace.next_at();
            match step {
                Some(Step::Become(row)) => self.become_row(row, now),
                Some(Step::Deliver(bytes)) => self.deliver(bytes, now),
                None => {}
            }
        }
    }

    fn become_row(&mut self, row: Row, now: Nanos) {
        match row.rate_bps {
            Some(0) => self.server.stop(now),
            Some(rate_bps) => self.server.set_rate(rate_bps, now),
            None => {}
        }
        if let Some(delay) = row.delay_ns {
            self.delay = Distribution::Constant(delay);
            self.least_delay = delay;
        }
        if let Some(loss_ppb) = row.loss_ppb {
            self.impairments.lose(loss_ppb, &self.held);
        }
        if let Some(bytes) = row.limit_bytes {
            self.queue.limit_bytes(bytes);
        }
    }

    /// An opportunity: so many bytes of what is there leave at `now`.
    fn deliver(&mut self, mut bytes: u64, now: Nanos) {
        self.server.stop(now);
        while bytes > 0 {
            if self.in_service.is_none() {
                self.server.deliver(0, now);
                self.start_service();
                if self.in_service.is_none() {
                    break;
                }
            }
            bytes -= self.server.deliver(bytes, now);
            if self.server.free_at() <= now {
                self.depart();
            }
        }
    }

    /// Packets leave at opportunities only, and wait until then.
    #[inline]
    fn delivers(&self) -> bool {
        self.trace.as_ref().is_some_and(Player::delivers)
    }

    /// Is a packet in service, or does one wait for an opportunity?
    #[inline]
    fn busy(&self) -> bool {
        self.in_service.is_some() || self.counters.queued.packets > 0
    }

    /// No packet leaves the link sooner than this after its arrival, as the link is configured now.
    #[inline]
    pub fn least_transit(&self) -> Nanos {
        let traced = self.trace.as_ref().and_then(Player::least_delay);
        traced.map_or(self.least_delay, |traced| traced.min(self.least_delay)).saturating_sub(self.elsewhere)
    }

    fn finish_service(&mut self) {
        self.depart();
        if !self.turn.shared {
            self.start_service();
        }
    }

    fn depart(&mut self) {
        let Some(sent) = self.in_service.take() else { return };
        let departure = self.server.free_at();
        self.send_on(sent, departure);
        if !self.aggregated.is_empty() {
            let mut aggregated = core::mem::take(&mut self.aggregated);
            aggregated.drain(..).for_each(|sent| self.send_on(sent, departure));
            self.aggregated = aggregated;
        }
        self.keep_time(departure);
    }

    /// Into the delay line goes what left the rate stage at `departure`.
    #[inline]
    fn send_on(&mut self, sent: Waiting<Parcel<P>>, departure: Nanos) {
        let sent_at = slot_end(self.held.slot_ns, departure);
        let harq = &self.held.harq;
        let again = if harq.error_ppb > 0 { harq.draw(&mut self.streams.harq) } else { 0 };
        let delay = self.delay.draw(&mut self.streams.delay).saturating_sub(self.elsewhere);
        let due = sent_at.saturating_add(delay).saturating_add(again);
        self.counters.in_service.remove(sent.bytes);
        self.counters.delayed.add(sent.bytes);
        if self.held.displace_ppb > 0 || self.line.keeps_displaced() {
            self.displace_or_push(sent, departure, due);
        } else {
            self.line.push(sent.packet, sent.bytes, sent.mark_ce, due, self.held.reorder);
        }
    }

    #[inline(never)]
    fn displace_or_push(&mut self, sent: Waiting<Parcel<P>>, departure: Nanos, due: Nanos) {
        let Waiting { packet, bytes, mark_ce, .. } = sent;
        let displace = Displace::of(&self.held);
        self.line.expire(departure);
        if displace.share > 0 && self.streams.displace.chance(displace.share) {
            self.line.set_aside(packet, bytes, mark_ce, due, self.held.reorder, displace);
        } else {
            self.line.push_past(packet, bytes, mark_ce, due, self.held.reorder);
        }
    }

    /// The queue's periodic updates up to `until`, with what has been waiting since the last event.
    #[inline]
    fn keep_time(&mut self, until: Nanos) {
        self.queue.keep_time(until, self.server.rate_bps(), &self.counters);
    }

    /// Puts the next waiting packet that the queue lets through into service, at the instant at which the server is free
    /// and the packet there.
    #[inline]
    fn start_service(&mut self) {
        let Some(next) = self.queue.next(self.server.free_at(), &mut self.counters) else { return };
        let waited = self.server.free_at().saturating_sub(next.arrival);
        if self.held.aggregate.packets > 0 {
            self.start_aggregate(&next);
        } else {
            self.server.serve(next.bytes, next.arrival);
        }
        self.count_service(&next, waited);
        self.in_service = Some(next);
    }

    #[inline]
    fn count_service(&mut self, next: &Waiting<Parcel<P>>, waited: Nanos) {
        self.counters.in_service.add(next.bytes);
        self.counters.served_packets += 1;
        if let Some(flows) = &mut self.flows {
            flows.serves(next.packet.place, waited);
        }
    }

    /// Those that wait go with the packet `first`, as many as may.
    #[inline(never)]
    fn start_aggregate(&mut self, first: &Waiting<Parcel<P>>) {
        let start = self.server.free_at().max(first.arrival);
        let mut bytes = first.bytes;
        while self.held.aggregate.admits(self.aggregated.len() + 1, self.server.time_of(bytes)) {
            let Some(next) = self.queue.next(start, &mut self.counters) else { break };
            bytes += next.bytes;
            self.count_service(&next, start.saturating_sub(next.arrival));
            self.aggregated.push(next);
        }
        self.server.serve(bytes, start.saturating_add(self.held.aggregate.gap_ns));
    }
}
