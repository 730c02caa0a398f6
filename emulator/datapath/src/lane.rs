//! One direction of a link as the spinner serves it: frames from a port to the model, and from the model to the far port.
//! Time is passed in. What a link drops, marks and delays depends on its frames' stamps (and on changes) alone and not on
//! when the spinner looked: the model is evaluated no further than to the stamp of the next frame that still lies in a
//! ring, and frames behind a change wait until it is made.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use ewan_system::clock::Clock;

use super::arena::{Arena, Slot};
use super::faults::Fault;
use super::port::{Port, SEND_BURST};
use super::series::Row;
use super::shared::DirectionState;
use super::stamps::Stamps;
use ewan_model::config::Framing;
use ewan_model::frame;
use ewan_model::{Counters, DirectionModel, Drop, Link, ModelChange, Nanos};

/// A frame is stamped before it lies in the ring: the model is evaluated so much behind the present, where nothing that
/// is due can be late by it.
const LAG_NS: Nanos = 100_000;
const MS: Nanos = 1_000_000;

type Model = DirectionModel<Slot>;

pub struct Lane {
    pub stamps: Stamps,
    arena: Arena,
    framing: Framing,
    /// A fault ended the link.
    pub ended: bool,
    fault: Option<Fault>,
    /// The time at millisecond 0.
    started: Nanos,
    window: Window,
}

/// The millisecond being counted, and where the counters stood at its beginning.
#[derive(Default)]
struct Window {
    ms: u64,
    /// Something has happened since its row was written, or it has none yet.
    dirty: bool,
    before: Counters,
    /// The counters when a row was last written.
    written: Counters,
    queue_max_bytes: u64,
    lateness_max_ns: u64,
    lateness_sum_ns: u64,
    /// A reader kept the totals from being published.
    totals_stale: bool,
}

/// Frames that were staged, and when each was due.
#[derive(Default)]
pub struct Burst {
    due: [Nanos; SEND_BURST],
    pub frames: usize,
}

impl Burst {
    /// More may be due.
    pub fn full(&self) -> bool {
        self.frames == SEND_BURST
    }

    pub fn due(&self) -> &[Nanos] {
        &self.due[..self.frames]
    }
}

/// How far behind the present the model of a direction is evaluated at most, where no frame waits to be taken.
fn lag(model: &Model) -> Nanos {
    model.least_transit().min(LAG_NS)
}

/// When the model has something to release or to drop, if it is asked then.
pub fn next_event(model: &Model) -> Option<Nanos> {
    model.next_event_behind(lag(model))
}

/// A direction of a link, and the ports from which it and the other one take frames.
pub struct Side<'a> {
    pub lane: &'a mut Lane,
    pub link: &'a mut Link<Slot>,
    pub heading: usize,
    pub near: &'a mut dyn Port,
    pub far: &'a mut dyn Port,
}

impl Lane {
    pub fn new(framing: Framing, arena: Arena, started: Nanos, fault: Option<Fault>) -> Lane {
        Lane { stamps: Stamps::default(), arena, framing, ended: false, fault, started, window: Window::default() }
    }

    /// Impair, store, enqueue.
    fn take(&mut self, model: &mut Model, frame: &mut [u8], arrival: Nanos) {
        if let Some(fault) = self.fault {
            fault.happen();
        }
        let ip_bytes = frame::counted_bytes(frame, self.framing);
        let mut meta = model.describe(frame, ip_bytes);
        let fate = model.impair(arrival, &mut meta);
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
            match stored.map(|slot| model.enqueue(slot, meta, arrival)) {
                Some(Ok(())) => {}
                Some(Err(slot)) => self.arena.release(slot),
                None => model.count_drop(Drop::Store, meta),
            }
        }
        self.free_dropped(model);
        self.window.queue_max_bytes = self.window.queue_max_bytes.max(model.counters().queued.bytes);
    }

    fn free_dropped(&mut self, model: &mut Model) {
        while let Some(slot) = model.dropped() {
            self.arena.release(slot);
        }
    }

    fn stage_due(&mut self, model: &mut Model, known: Nanos, now: Nanos, port: &mut dyn Port) -> Burst {
        let mut staged = Burst::default();
        while staged.frames < SEND_BURST {
            let Some(release) = model.pop_known(known, now) else { break };
            let frame = self.arena.frame(release.packet);
            if release.mark_ce {
                frame::mark_ce(frame);
            }
            port.stage(frame);
            self.arena.release(release.packet);
            staged.due[staged.frames] = release.due;
            staged.frames += 1;
        }
        self.free_dropped(model);
        staged
    }

    /// Begins a new row if the millisecond is another, having written the one before. One that was written before it was over,
    /// as the spinner went to sleep, goes on.
    pub fn enter(&mut self, model: &Model, now: Nanos, state: &DirectionState) {
        let ms = now.saturating_sub(self.started) / MS;
        self.settle(model, ms, state);
        if self.window.ms != ms {
            let Window { written, totals_stale, .. } = std::mem::take(&mut self.window);
            let queue_max_bytes = written.queued.bytes;
            self.window =
                Window { ms, before: written.clone(), written, queue_max_bytes, totals_stale, ..Window::default() };
        }
        self.window.dirty = true;
    }

    /// Writes the row of a millisecond before `ms`, if it is not written yet; false where a reader keeps the totals from
    /// being published.
    pub fn settle(&mut self, model: &Model, ms: u64, state: &DirectionState) -> bool {
        if self.window.dirty && self.window.ms < ms {
            self.write(model, state);
        } else if self.window.totals_stale {
            self.publish_totals(model, state);
        }
        if state.flows_wanted.load(Acquire) {
            publish_flows(model, state);
        }
        !self.window.totals_stale
    }

    pub fn note_lateness(&mut self, lateness: Nanos) {
        self.window.lateness_max_ns = self.window.lateness_max_ns.max(lateness);
        self.window.lateness_sum_ns += lateness;
    }

    fn write(&mut self, model: &Model, state: &DirectionState) {
        let (now, before, window) = (model.counters(), &self.window.before, &self.window);
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
        self.window.written = now.clone();
        self.window.dirty = false;
        self.publish_totals(model, state);
    }

    /// If a reader is just copying them, the next `settle` tries again.
    fn publish_totals(&mut self, model: &Model, state: &DirectionState) {
        self.window.totals_stale = true;
        if let Ok(mut totals) = state.totals.try_lock() {
            totals.model.clone_from(model.counters());
            self.window.totals_stale = false;
        }
    }
}

/// If a reader is just reading them, the next call tries again.
#[cold]
fn publish_flows(model: &Model, state: &DirectionState) {
    let Ok(mut shown) = state.flows.try_lock() else { return };
    if let (Some(shown), Some(flows)) = (shown.as_mut(), model.flows()) {
        shown.copy_from(flows);
    }
    state.flows_wanted.store(false, Release);
}

impl Side<'_> {
    /// Takes at most `budget` frames from the near port, and none stamped after `hold`: a change is due then. `seen` is a
    /// time before this call, `now` tells the time. Returns how many came, and whether the other direction's next event
    /// may be another.
    ///
    /// Where both directions share a medium, their frames are taken in order of their stamps.
    pub fn receive(
        &mut self,
        clock: &mut Clock,
        budget: usize,
        hold: Nanos,
        seen: Nanos,
        now: &dyn Fn() -> Nanos,
        state: &DirectionState,
    ) -> (usize, bool) {
        if self.near.next_stamp(clock).is_none() {
            self.lane.stamps.found_empty(seen);
            return (0, false);
        }
        let mut until = hold;
        let shared_medium = self.link.shares_medium();
        if shared_medium {
            until = until.min(match self.far.next_stamp(clock) {
                // Of two with the same stamp the forward one goes first.
                Some(stamp) => stamp - self.heading as Nanos,
                None => seen.saturating_sub(self.lag()),
            });
        }
        let Side { lane, link, near, .. } = self;
        let heading = self.heading;
        let converting = *clock;
        let count = near.receive(&converting, budget, until, &mut |frame, stamp| {
            let time = now();
            let arrival = lane.stamps.arrival(clock.reconverted(&converting, stamp), time, || {
                clock.refresh();
                clock.reconverted(&converting, stamp)
            });
            lane.enter(link.direction(heading), time, state);
            link.at(heading, arrival, |model| lane.take(model, frame, arrival));
        });
        state.stamps_replaced.store(lane.stamps.replaced, Relaxed);
        // Also where all were too long to be taken: the other direction's packets may have waited for them.
        (count, shared_medium)
    }

    /// Hands to the far port what is due by `now`. All frames that came with earlier stamps than the next ones in the rings
    /// have been taken; a change that is due at `hold` has not been made, and may shorten the delay.
    pub fn release(&mut self, clock: &Clock, hold: Nanos, now: Nanos) -> (Burst, bool) {
        let now = now.min(hold);
        let mut known = now.saturating_sub(self.lag());
        known = known.min(self.near.next_stamp(clock).unwrap_or(known));
        if self.link.shares_medium() {
            known = known.min(self.far.next_stamp(clock).unwrap_or(known));
        }
        let shared_medium = self.link.evaluate(known);
        (self.lane.stage_due(self.link.direction_mut(self.heading), known, now, self.far), shared_medium)
    }

    /// Do frames lie in the rings that a change at `at` comes after?
    pub fn frames_wait_before(&mut self, clock: &Clock, at: Nanos) -> bool {
        let before = |port: &mut dyn Port| port.next_stamp(clock).is_some_and(|stamp| stamp <= at);
        before(self.near) || self.link.shares_medium() && before(self.far)
    }

    /// Makes a change as of `at`, or as of the time up to which the model has been evaluated: returns which it was.
    pub fn take_over(&mut self, change: &mut ModelChange, at: Nanos) -> Nanos {
        let at = at.max(self.link.direction(self.heading).evaluated_to());
        self.link.at(self.heading, at, |model| model.take_over(change, at));
        self.lane.free_dropped(self.link.direction_mut(self.heading));
        at
    }

    /// Where both share a medium they are evaluated together.
    pub fn lag(&self) -> Nanos {
        self.link.least_transit(self.heading).min(LAG_NS)
    }
}

#[cfg(test)]
#[path = "lane_tests.rs"]
mod tests;
