//! The spinning thread. In: frames from every port; out: the same frames at the far port when the model says so. It
//! polls rings and the clock and makes no system call except to send; it never waits, locks or allocates. A panic while
//! it serves a link ends that link alone.

use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::Arc;

use ewan_timers::Clock;

use super::arena::{Arena, Slot};
use super::changes::Inbox;
use super::events::{Events, NEVER};
use super::faults::{self, Fault};
use super::port::Port;
use super::series::Row;
use super::shared::{DirectionState, Shared};
use super::Policy;
use crate::config::{Direction, Framing};
use crate::model::frame;
use crate::model::{share, Counters, DirectionModel, Drop, Nanos};

#[cfg(test)]
mod tests;

/// Frames taken from one port before the others, and what is due, get their turn.
const RECEIVE_BURST: usize = 16;
/// Frames handed to the kernel by one call.
const SEND_BURST: usize = 16;
/// Idle ports polled between two looks at the clock.
const PORTS_PER_LOOK: usize = 16;
/// The kernel would not take more: ask again this much later.
const RETRY_NS: Nanos = 5_000;
/// A stamp older than this is none.
const OLDEST_STAMP_NS: Nanos = 1_000_000_000;
const MS: Nanos = 1_000_000;

/// A real-time thread lets the kernel's own work on its CPU have a turn now and then; frames are stamped meanwhile.
const REST_EVERY_NS: Nanos = 20 * MS;
const REST_NS: Nanos = 30_000;

/// Between two looks at the clock there is at most one burst from one port, one burst to another, or a round over
/// idle ports. More time than that needs means that the thread lost its CPU.
const STEP_NS: Nanos = 10_000;
const STEP_NS_PER_FRAME: Nanos = 2_000;
const STEP_NS_PER_CALL: Nanos = 15_000;

pub struct Spinner {
    clock: Clock,
    shared: Arc<Shared>,
    /// Port 2l is link l's a, 2l + 1 its b. Direction d takes from port d and gives to port d ^ 1.
    ports: Vec<Box<dyn Port>>,
    directions: Vec<Lane>,
    events: Events,
    changes: Inbox,
    /// The link that is being served: a panic is its own.
    serving: Option<usize>,
    /// Whose records are looked at next.
    swept: usize,
    /// When the last gap ended: what was due before then says nothing about the spinner's own exactness.
    disturbed_until: Nanos,
    /// The clock when last looked at.
    seen: Nanos,
}

/// One direction.
struct Lane {
    model: DirectionModel<Slot>,
    arena: Arena,
    framing: Framing,
    last_arrival: Nanos,
    /// The kernel did not take all that was staged.
    stuck: bool,
    /// A fault ended the link.
    ended: bool,
    fault: Option<Fault>,
    window: Window,
    totals_stale: bool,
}

/// The millisecond being counted, and where the counters stood at its beginning.
#[derive(Default)]
struct Window {
    ms: u64,
    dirty: bool,
    before: Counters,
    queue_max_bytes: u64,
    lateness_max_ns: u64,
    lateness_sum_ns: u64,
}

impl Lane {
    pub fn new(config: &Direction, arena: Arena, fault: Option<Fault>) -> Lane {
        Lane {
            model: DirectionModel::with_room(config, arena.slots()),
            arena,
            framing: config.framing,
            last_arrival: 0,
            stuck: false,
            ended: false,
            fault,
            window: Window::default(),
            totals_stale: false,
        }
    }

    /// When the frame arrived: the kernel's stamp unless it cannot be true; never before an earlier frame.
    fn arrival(&mut self, stamp: Nanos, now: Nanos, state: &DirectionState) -> Nanos {
        // Two clocks meet here: a fraction of a microsecond into the future is no fault.
        let possible = stamp <= now + 1_000 && stamp + OLDEST_STAMP_NS >= now;
        if !possible {
            state.stamps_replaced.store(state.stamps_replaced.load(Relaxed) + 1, Relaxed);
        }
        self.last_arrival = self.last_arrival.max(if possible { stamp.min(now) } else { now });
        self.last_arrival
    }

    /// Impair, store, enqueue.
    fn take(&mut self, frame: &mut [u8], arrival: Nanos) {
        if let Some(fault) = self.fault {
            fault.happen();
        }
        let ip_bytes = frame::counted_bytes(frame, self.framing);
        let mut meta = self.model.describe(frame, ip_bytes);
        let fate = self.model.impair(arrival, &mut meta);
        if fate.lost {
            return;
        }
        if fate.bleach {
            frame::bleach(frame);
        }
        let copy = fate.duplicate.then(|| self.arena.store(frame));
        if let Some(random) = fate.corrupt {
            frame::flip_bit(frame, random);
        }
        let first = self.arena.store(frame);
        for stored in std::iter::once(first).chain(copy) {
            match stored.map(|slot| self.model.enqueue(slot, meta, arrival)) {
                Some(Ok(())) => {}
                Some(Err(slot)) => self.arena.release(slot),
                None => self.model.count_drop(Drop::Store, meta),
            }
        }
        self.free_dropped();
        self.window.queue_max_bytes = self.window.queue_max_bytes.max(self.model.counters().queued.bytes);
    }

    /// Frames that the kernel did not take have their own next time.
    fn note_event(&self, index: usize, events: &mut Events) {
        if !self.stuck {
            events.set(index, self.model.next_event().unwrap_or(NEVER));
        }
    }

    fn free_dropped(&mut self) {
        while let Some(slot) = self.model.dropped() {
            self.arena.release(slot);
        }
    }

    /// Begins a new row if the millisecond is another, having written the one before.
    fn enter(&mut self, ms: u64, state: &DirectionState) {
        if self.window.dirty && self.window.ms != ms {
            self.write(state);
        }
        self.window.ms = ms;
        self.window.dirty = true;
    }

    fn write(&mut self, state: &DirectionState) {
        let (now, before, window) = (self.model.counters(), &self.window.before, &self.window);
        let row = Row {
            in_packets: now.in_packets - before.in_packets,
            in_bytes: now.in_bytes - before.in_bytes,
            out_packets: now.out.packets - before.out.packets,
            out_bytes: now.out.bytes - before.out.bytes,
            lost: now.taken_packets() - before.taken_packets(),
            queue_full: now.queue_full.packets - before.queue_full.packets,
            aqm: now.culled_packets() - before.culled_packets(),
            store_full: now.store_full.packets - before.store_full.packets,
            ce_packets: now.ce_packets - before.ce_packets,
            queue_packets: now.queued.packets,
            queue_bytes: now.queued.bytes,
            queue_max_bytes: window.queue_max_bytes.max(now.queued.bytes),
            delay_line_packets: now.delayed.packets,
            lateness_max_ns: window.lateness_max_ns,
            lateness_sum_ns: window.lateness_sum_ns,
        };
        state.series.write(self.window.ms, &row);
        self.window =
            Window { ms: self.window.ms, before: now.clone(), queue_max_bytes: now.queued.bytes, ..Window::default() };
        self.publish_totals(state);
    }

    /// If a reader is just copying them, the sweep comes by again.
    fn publish_totals(&mut self, state: &DirectionState) {
        self.totals_stale = true;
        if let Ok(mut totals) = state.totals.try_lock() {
            totals.model.clone_from(self.model.counters());
            self.totals_stale = false;
        }
    }
}

/// A direction and the other one of its link.
#[inline]
fn pair(directions: &mut [Lane], index: usize) -> (&mut Lane, &mut Lane) {
    let (forward, backward) = directions.split_at_mut(index | 1);
    let (forward, backward) = (&mut forward[index & !1], &mut backward[0]);
    if index & 1 == 0 {
        (forward, backward)
    } else {
        (backward, forward)
    }
}

impl Spinner {
    pub fn new(
        clock: Clock,
        shared: Arc<Shared>,
        ports: Vec<Box<dyn Port>>,
        directions: Vec<(Direction, Nanos, Arena)>,
        changes: Inbox,
    ) -> Spinner {
        let fault = |index: usize| faults::wanted(&shared.links[index / 2].name);
        let lane = |(index, (config, elsewhere, arena))| {
            let mut lane = Lane::new(&config, arena, fault(index));
            lane.model.leave_out(elsewhere);
            lane
        };
        let mut directions: Vec<Lane> = directions.into_iter().enumerate().map(lane).collect();
        let now = clock.now();
        directions.iter_mut().for_each(|lane| lane.model.begin(now));
        let events = Events::new(directions.len());
        Spinner {
            clock,
            shared,
            ports,
            directions,
            events,
            changes,
            serving: None,
            swept: 0,
            disturbed_until: 0,
            seen: 0,
        }
    }

    /// Until told to stop; gives the ports back.
    pub fn run(mut self, policy: Policy) -> Vec<Box<dyn Port>> {
        faults::contain();
        while let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.spin(policy))) {
            self.end_link(panic);
        }
        self.ports
    }

    /// The others go on. What the link held is lost with it, and is in no counter.
    fn end_link(&mut self, panic: Box<dyn Any + Send>) {
        let Some(link) = self.serving.take() else { resume_unwind(panic) };
        let (state, words) = (&self.shared.links[link], faults::words(panic.as_ref()));
        println!("link {} has ended, the others go on: a fault in the program: {words}", state.name);
        let _ = state.ended.set(words);
        for index in [2 * link, 2 * link + 1] {
            self.directions[index].ended = true;
            self.events.set(index, NEVER);
        }
    }

    fn spin(&mut self, policy: Policy) {
        let shared = self.shared.clone();
        self.seen = self.clock.now();
        let (mut last, mut next_look) = (self.seen, 0);
        let (mut worked, mut rested) = (0, self.seen);
        loop {
            let mut now = self.look(0, false);
            if worked > 0 {
                shared.busy_ns.store(shared.busy_ns.load(Relaxed) + now - last, Relaxed);
            }
            if policy == Policy::RealTime && now > rested + REST_EVERY_NS {
                std::thread::sleep(std::time::Duration::from_nanos(REST_NS));
                now = self.clock.now();
                shared.rests.record(now - self.seen);
                (self.seen, self.disturbed_until, rested) = (now, now, now);
            }
            last = now;
            if now >= next_look {
                next_look = now + MS;
                self.clock.refresh();
                if shared.stop.load(Relaxed) {
                    return;
                }
            }
            if shared.changes_waiting.load(Relaxed) && shared.changes_waiting.swap(false, Acquire) {
                self.changes.look();
            }
            worked = 0;
            for port in 0..self.ports.len() {
                let received = self.receive(port);
                if received > 0 {
                    worked += received;
                    self.look(received, false);
                }
                if port % PORTS_PER_LOOK == PORTS_PER_LOOK - 1 {
                    worked += self.release();
                }
            }
            worked += self.release();
            self.sweep();
            if worked == 0 && shared.give_way.load(Relaxed) {
                std::thread::yield_now();
            }
        }
    }

    /// Reads the clock, and notices if more time has passed than `frames` moved, or a call to send, account for.
    #[inline]
    fn look(&mut self, frames: usize, called: bool) -> Nanos {
        let now = self.clock.now();
        let step = now - self.seen;
        self.seen = now;
        let mut expected = STEP_NS + STEP_NS_PER_FRAME * frames as u64 + if called { STEP_NS_PER_CALL } else { 0 };
        if self.shared.give_way.load(Relaxed) {
            expected += MS; // The other spinner's turn.
        }
        if step > expected {
            self.shared.gaps.record(step);
            self.disturbed_until = now;
        }
        now
    }

    fn ms(&self, now: Nanos) -> u64 {
        now.saturating_sub(self.shared.started) / MS
    }

    fn receive(&mut self, index: usize) -> usize {
        let (clock, shared) = (&self.clock, &self.shared);
        let state = &shared.links[index / 2].directions[index % 2];
        let (lane, other) = pair(&mut self.directions, index);
        if lane.ended {
            return 0;
        }
        self.serving = Some(index / 2);
        let mut shared_medium = false;
        let count = self.ports[index].receive(clock, RECEIVE_BURST, &mut |frame, stamp| {
            let now = clock.now();
            let arrival = lane.arrival(stamp, now, state);
            lane.enter(now.saturating_sub(shared.started) / MS, state);
            share(&mut lane.model, &mut other.model, arrival);
            lane.take(frame, arrival);
            shared_medium = share(&mut lane.model, &mut other.model, arrival);
        });
        if count > 0 {
            lane.note_event(index, &mut self.events);
            if shared_medium {
                other.note_event(index ^ 1, &mut self.events);
            }
        }
        self.serving = None;
        count
    }

    /// Sends what is due, the longest due first.
    fn release(&mut self) -> usize {
        let (mut sent, mut burst) = (0, 0);
        // Two bursts at most for each direction, so that the receiving rings are emptied under overload too.
        for _ in 0..2 * self.directions.len() {
            let now = self.look(burst, burst > 0);
            if self.changes.soonest().is_some_and(|at| at <= now) {
                self.change(now);
            }
            if self.events.earliest() > now {
                break;
            }
            burst = self.release_from(self.events.first(), now);
            sent += burst;
        }
        sent
    }

    fn release_from(&mut self, index: usize, now: Nanos) -> usize {
        let ms = self.ms(now);
        self.serving = Some(index / 2);
        let state = &self.shared.links[index / 2].directions[index % 2];
        let (lane, other) = pair(&mut self.directions, index);
        let port = &mut self.ports[index ^ 1];
        lane.enter(ms, state);
        if share(&mut lane.model, &mut other.model, now) {
            other.note_event(index ^ 1, &mut self.events);
        }
        let room = if lane.stuck { 0 } else { port.room().min(SEND_BURST) };
        let mut due = [0; SEND_BURST];
        let mut staged = 0;
        while staged < room {
            let Some(release) = lane.model.pop(now) else { break };
            let frame = lane.arena.frame(release.packet);
            if release.mark_ce {
                frame::mark_ce(frame);
            }
            port.stage(frame);
            lane.arena.release(release.packet);
            due[staged] = release.due;
            staged += 1;
        }
        lane.free_dropped();
        if staged > 0 || lane.stuck {
            let begun = self.clock.now();
            lane.stuck = !port.flush();
            let handed = self.clock.now();
            state.hand_over.record(handed - begun);
            for due in &due[..staged] {
                let lateness = handed.saturating_sub(*due);
                state.lateness.record(lateness);
                if *due >= self.disturbed_until {
                    state.lateness_undisturbed.record(lateness);
                }
                lane.window.lateness_max_ns = lane.window.lateness_max_ns.max(lateness);
                lane.window.lateness_sum_ns += lateness;
            }
        }
        let next = if lane.stuck || room == 0 { Some(now + RETRY_NS) } else { lane.model.next_event() };
        self.events.set(index, next.unwrap_or(NEVER));
        self.serving = None;
        staged
    }

    fn change(&mut self, now: Nanos) {
        let Some(mut scheduled) = self.changes.take() else { return };
        let index = 2 * scheduled.link + scheduled.direction;
        let (lane, other) = pair(&mut self.directions, index);
        if lane.ended {
            return self.changes.give_back(scheduled, None);
        }
        self.serving = Some(scheduled.link);
        share(&mut lane.model, &mut other.model, now);
        lane.model.take_over(&mut scheduled.prepared, now);
        if share(&mut lane.model, &mut other.model, now) {
            other.note_event(index ^ 1, &mut self.events);
        }
        lane.free_dropped();
        self.events.set(index, if lane.stuck { now } else { lane.model.next_event().unwrap_or(NEVER) });
        self.serving = None;
        self.changes.give_back(scheduled, Some(now));
    }

    /// One direction a turn: writes its finished millisecond if nothing has happened since.
    fn sweep(&mut self) {
        self.swept = (self.swept + 1) % self.directions.len();
        let ms = self.ms(self.clock.now());
        let state = &self.shared.links[self.swept / 2].directions[self.swept % 2];
        let lane = &mut self.directions[self.swept];
        if lane.ended {
            return;
        }
        if lane.window.dirty && lane.window.ms != ms {
            lane.write(state);
        } else if lane.totals_stale {
            lane.publish_totals(state);
        }
    }
}
