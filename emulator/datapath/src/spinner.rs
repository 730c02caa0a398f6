//! The spinning thread. In: frames from every port; out: the same frames at the far port when the model says so. It
//! polls rings and the clock while there is something to do, and makes no system call except to send; it never locks or
//! allocates. While there is nothing it sleeps (`naps`). A panic while it serves a link ends that link alone.

use std::any::Any;
use std::io::Write;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::fence;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::Arc;

use ewan_system::clock::Clock;

use super::arena::{Arena, Slot};
use super::changes::Inbox;
use super::events::{Events, NEVER};
use super::faults;
use super::lane::{next_event, Lane, Side};
use super::naps::{self, Sleeper, Waiting};
use super::port::Port;
use super::shared::Shared;
use super::Policy;
use ewan_model::config::Direction;
use ewan_model::{Link, Nanos};

#[cfg(test)]
mod tests;

/// Frames taken from one port before the others, and what is due, get their turn.
const RECEIVE_BURST: usize = 16;
/// Idle ports polled between two looks at the clock.
const PORTS_PER_LOOK: usize = 16;
/// Under overload a turn sends for so long, and one burst after each group of ports: rings are emptied too.
const RELEASE_NS: Nanos = MS;
/// Directions whose finished rows are written in a turn.
const SETTLED_PER_TURN: usize = 16;
const MS: Nanos = 1_000_000;
/// A spinner that wakes too late to sleep tries it again after some seconds: how late it wakes is not measured otherwise.
const FORGETTING_NS: Nanos = 100 * MS;

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
    links: Vec<Link<Slot>>,
    lanes: Vec<Lane>,
    events: Events,
    changes: Inbox,
    /// The link that is being served: a panic is its own.
    serving: Option<usize>,
    /// Rows before this millisecond are being written, of the directions before this one they are.
    settling: (u64, usize),
    sleeper: Sleeper,
    /// When a frame last moved.
    quiet_since: Nanos,
    /// When the last gap ended: what was due before then says nothing about the spinner's own exactness.
    disturbed_until: Nanos,
    /// The clock when last looked at.
    seen: Nanos,
    /// When the sleeper forgets the next one of its late wake-ups, if it does not sleep.
    next_forgetting: Nanos,
}

fn waiting(policy: Policy, gives_way: bool) -> Waiting {
    match policy {
        Policy::Shared => Waiting::Yielding,
        Policy::Spin | Policy::RealTime => Waiting::Spinning,
        Policy::Fair if gives_way => Waiting::Sharing,
        Policy::Fair => Waiting::Napping,
    }
}

/// Both elements of a pair, that with this index first.
#[inline]
fn pair<T>(all: &mut [T], index: usize) -> (&mut T, &mut T) {
    let (forward, backward) = all.split_at_mut(index | 1);
    let (forward, backward) = (&mut forward[index & !1], &mut backward[0]);
    if index & 1 == 0 {
        (forward, backward)
    } else {
        (backward, forward)
    }
}

#[inline]
fn side<'a>(
    links: &'a mut [Link<Slot>],
    lanes: &'a mut [Lane],
    ports: &'a mut [Box<dyn Port>],
    index: usize,
) -> Side<'a> {
    let (near, far) = pair(ports, index);
    let (lane, link) = (&mut lanes[index], &mut links[index / 2]);
    Side { lane, link, heading: index % 2, near: near.as_mut(), far: far.as_mut() }
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
        let link = |both: &[(Direction, Nanos, Arena)]| {
            let [(forward, _, a), (backward, _, b)] = both else { unreachable!("a link has two directions") };
            let mut link = Link::with_rooms([forward, backward], [a.slots(), b.slots()]);
            for (heading, (_, elsewhere, _)) in both.iter().enumerate() {
                link.direction_mut(heading).leave_out(*elsewhere);
            }
            link
        };
        let mut links: Vec<_> = directions.chunks(2).map(link).collect();
        let lane = |(index, (config, _, arena)): (usize, (Direction, Nanos, Arena))| {
            Lane::new(config.framing, arena, shared.started, fault(index))
        };
        let lanes: Vec<Lane> = directions.into_iter().enumerate().map(lane).collect();
        let now = clock.now();
        links.iter_mut().for_each(|link| link.begin(now));
        let events = Events::new(lanes.len());
        let sleeper = Sleeper::new(ports.iter().map(|port| port.descriptor()), shared.waker.clone());
        Spinner {
            clock,
            shared,
            ports,
            links,
            lanes,
            events,
            changes,
            serving: None,
            settling: (0, 0),
            sleeper,
            quiet_since: now,
            disturbed_until: 0,
            seen: 0,
            next_forgetting: 0,
        }
    }

    /// Until told to stop; gives the ports back.
    pub fn run(mut self, policy: Policy) -> Vec<Box<dyn Port>> {
        faults::contain();
        self.sleeper.begin();
        while let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.spin(policy))) {
            self.end_link(panic);
        }
        self.ports
    }

    /// The others go on. What the link held is lost with it, and is in no counter.
    fn end_link(&mut self, panic: Box<dyn Any + Send>) {
        let Some(link) = self.serving.take() else { resume_unwind(panic) };
        let (state, words) = (&self.shared.links[link], faults::words(panic.as_ref()));
        // The log's disk may be full.
        let _ = writeln!(
            std::io::stdout(),
            "link {} has ended, the others go on: a fault in the program: {words}",
            state.name
        );
        let _ = state.ended.set(words);
        for index in [2 * link, 2 * link + 1] {
            let model = self.links[link].direction(index % 2);
            self.lanes[index].settle(model, u64::MAX, &state.directions[index % 2]);
            self.lanes[index].ended = true;
            self.events.set(index, NEVER);
            self.sleeper.forget(index);
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
                    while !self.settle_all() {
                        std::thread::yield_now();
                    }
                    return shared.settled_ms.store(u64::MAX, Release);
                }
            }
            if shared.changes_waiting.load(Relaxed) && shared.changes_waiting.swap(false, Acquire) {
                self.changes.look();
            }
            worked = self.turn(now);
            self.settle();
            if worked > 0 {
                self.quiet_since = self.seen;
            } else if self.nap(waiting(policy, shared.give_way.load(Relaxed))) {
                // What is looked at now and then is looked at before a stamp is read.
                (last, next_look) = (self.seen, 0);
            } else if shared.give_way.load(Relaxed) {
                std::thread::yield_now();
            }
        }
    }

    /// Sleeps if it may: false if it did not.
    fn nap(&mut self, waiting: Waiting) -> bool {
        let next = self.changes.soonest().unwrap_or(NEVER).min(self.events.earliest());
        let (links, lanes) = (&self.links, self.lanes.iter().enumerate().filter(|(_, lane)| !lane.ended));
        let transit = |index: usize| links[index / 2].direction(index % 2).least_transit();
        let least_transit = || lanes.map(|(index, _)| transit(index)).min().unwrap_or(NEVER);
        let wake_up = self.sleeper.wake_up;
        let Some(ns) = naps::length(waiting, wake_up, self.seen, self.quiet_since, next, least_transit) else {
            if self.seen >= self.next_forgetting {
                self.next_forgetting = self.seen + FORGETTING_NS;
                self.sleeper.forget_a_late_one();
            }
            return false;
        };
        if !self.settle_all() {
            return false;
        }
        let (begun, deadline) = (self.clock.now(), self.seen + ns);
        let began_in_ms = begun.saturating_sub(self.shared.started) / MS;
        self.shared.settled_ms.store(u64::MAX, Release);
        let over = self.sleeper.sleep(deadline.saturating_sub(begun));
        // Before the time is read: who reads the time, and then finds that nothing is being counted, has an earlier time.
        self.shared.settled_ms.store(began_in_ms, Relaxed);
        fence(SeqCst);
        self.seen = self.clock.now();
        self.clock.refresh();
        // A frame that lies in a ring should have woken it when it came. One that lay there before tells nothing of waking.
        let came = if over { None } else { self.earliest_stamp() };
        let should = if over { Some(deadline) } else { came.map(|stamp| stamp.max(begun)) };
        if let Some(late) = should.map(|at| self.seen.saturating_sub(at)) {
            if over || came.is_some_and(|stamp| stamp >= begun) {
                self.sleeper.woke_late(late);
            }
            if late > wake_up.ns() {
                // It was to be awake before the next event: somebody else had its CPU.
                self.shared.gaps.record(late);
                self.disturbed_until = self.seen;
            }
        }
        let ms = self.seen.saturating_sub(self.shared.started) / MS;
        self.settling = (ms, self.lanes.len());
        self.shared.settled_ms.store(ms, Release);
        self.shared.naps.record(self.seen - begun);
        self.shared.wake_up_ns.store(self.sleeper.wake_up.ns(), Relaxed);
        true
    }

    /// When the first of the frames came that lie in the rings.
    fn earliest_stamp(&mut self) -> Option<Nanos> {
        self.ports.iter_mut().filter_map(|port| port.next_stamp(&self.clock)).min()
    }

    /// Looks at all ports and sends what is due; how many frames moved.
    fn turn(&mut self, now: Nanos) -> usize {
        let mut worked = 0;
        for port in 0..self.ports.len() {
            let received = self.receive(port);
            if received > 0 {
                worked += received;
                self.look(received, false);
            }
            if port % PORTS_PER_LOOK == PORTS_PER_LOOK - 1 {
                worked += self.release(now + RELEASE_NS);
            }
        }
        worked + self.release(now + RELEASE_NS)
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

    fn receive(&mut self, index: usize) -> usize {
        if self.lanes[index].ended {
            return 0;
        }
        let link = index / 2;
        self.serving = Some(link);
        // Frames from after a change wait until it is made; a later change is looked for with a later `seen`.
        let ahead = self.seen + MS;
        let hold = self.changes.soonest_of(link, ahead).unwrap_or(ahead);
        let state = &self.shared.links[link].directions[index % 2];
        let clock = self.clock;
        let mut side = side(&mut self.links, &mut self.lanes, &mut self.ports, index);
        let (count, both) = side.receive(&mut self.clock, RECEIVE_BURST, hold, self.seen, &|| clock.now(), state);
        if count > 0 {
            self.note_event(index);
            if both {
                self.note_event(index ^ 1);
            }
        }
        self.serving = None;
        count
    }

    fn note_event(&mut self, index: usize) {
        let model = self.links[index / 2].direction(index % 2);
        self.events.set(index, next_event(model).unwrap_or(NEVER));
    }

    /// Sends what is due, the longest due first: a burst at least, and no more after `until`.
    fn release(&mut self, until: Nanos) -> usize {
        let (mut sent, mut burst, mut called) = (0, 0, false);
        loop {
            let now = self.look(burst, called);
            self.make_changes(now);
            if self.events.earliest() > now || called && now > until {
                return sent;
            }
            burst = self.release_from(self.events.first(), now);
            called = true;
            sent += burst;
        }
    }

    fn release_from(&mut self, index: usize, now: Nanos) -> usize {
        self.serving = Some(index / 2);
        let hold = self.changes.soonest_of(index / 2, now).unwrap_or(NEVER);
        let state = &self.shared.links[index / 2].directions[index % 2];
        let mut side = side(&mut self.links, &mut self.lanes, &mut self.ports, index);
        side.lane.enter(side.link.direction(index % 2), now, state);
        let (staged, both) = side.release(&self.clock, hold, now);
        let Side { lane, link, far, .. } = side;
        if staged.frames > 0 {
            let begun = self.clock.now();
            far.flush();
            let handed = self.clock.now();
            state.hand_over.record(handed - begun);
            for due in staged.due() {
                let lateness = handed.saturating_sub(*due);
                state.lateness.record(lateness);
                if *due >= self.disturbed_until {
                    state.lateness_undisturbed.record(lateness);
                }
                lane.note_lateness(lateness);
            }
        }
        let next = match next_event(link.direction(index % 2)) {
            // Frames that lie in a ring, or a change, decide what is due: then the event is noted again.
            Some(next) if next <= now && !staged.full() => NEVER,
            next => next.unwrap_or(NEVER),
        };
        self.events.set(index, next);
        if both {
            self.note_event(index ^ 1);
        }
        self.serving = None;
        staged.frames
    }

    /// Makes the changes that are due, those of a link in their order, each at its own time among the frames. Links whose
    /// frames have not been taken so far are passed over.
    fn make_changes(&mut self, now: Nanos) {
        let mut passed = 0;
        while let Some((link, direction, at)) = self.changes.due(passed, now) {
            let index = 2 * link + direction;
            let mut side = side(&mut self.links, &mut self.lanes, &mut self.ports, index);
            let too_early = !side.lane.ended && (now < at + side.lag() || side.frames_wait_before(&self.clock, at));
            if too_early || self.changes.has_before(passed, link) {
                passed += 1;
                continue;
            }
            let Some(mut scheduled) = self.changes.take(passed) else { return };
            if side.lane.ended {
                self.changes.give_back(scheduled, None);
                continue;
            }
            self.serving = Some(link);
            let made_at = side.take_over(&mut scheduled.prepared, at);
            self.note_event(index);
            self.note_event(index ^ 1);
            self.serving = None;
            self.changes.give_back(scheduled, Some(made_at));
        }
    }

    /// Writes the rows of milliseconds that are over, of some directions a turn. When all are written readers may have
    /// them.
    fn settle(&mut self) {
        let now_ms = self.seen.saturating_sub(self.shared.started) / MS;
        let (mut ms, mut next) = self.settling;
        if ms == now_ms && next == self.lanes.len() {
            return;
        }
        if next == self.lanes.len() {
            (ms, next) = (now_ms, 0);
        }
        let last = self.lanes.len().min(next + SETTLED_PER_TURN);
        for index in next..last {
            let state = &self.shared.links[index / 2].directions[index % 2];
            let lane = &mut self.lanes[index];
            if !lane.ended {
                lane.settle(self.links[index / 2].direction(index % 2), ms, state);
            }
        }
        self.settling = (ms, last);
        if last == self.lanes.len() {
            self.shared.settled_ms.store(ms, Release);
        }
    }

    /// Writes all rows; false where a reader keeps totals from being published.
    fn settle_all(&mut self) -> bool {
        let mut all = true;
        for (index, lane) in self.lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.ended) {
            let model = self.links[index / 2].direction(index % 2);
            all &= lane.settle(model, u64::MAX, &self.shared.links[index / 2].directions[index % 2]);
        }
        all
    }
}
