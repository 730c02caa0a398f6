//! A medium that both directions of a link share: while one of them sends, the other one waits (half duplex). Where both
//! wait, they take turns, a transmission each.

use super::check::{require, CheckResult};
use super::{DirectionModel, Nanos};

/// May a direction be half duplex? Who waits for tokens or for an opportunity does not send, and holds the medium.
pub(super) fn check(half_duplex: bool, burst_bytes: u64, delivers: bool) -> CheckResult {
    require(!half_duplex || burst_bytes == 0, || "half_duplex: it needs a plain rate: write burst_bytes 0".into())?;
    require(!half_duplex || !delivers, || "half_duplex: the link's trace says when packets leave: write false".into())
}

/// What a direction knows of the medium.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    /// The other direction sends on the same medium.
    pub(super) shared: bool,
    /// This one sent last: if both wait, it is the other one's turn.
    last: bool,
    /// No transmission begins before.
    pub(super) free_at: Nanos,
}

/// Evaluates both directions of a link up to `to`, if both are half duplex; before and after anything is done with one of
/// them at that time. Without it each one sends as if it were alone. True: the other one's next event may be another now.
#[inline]
pub fn share<P: Copy>(a: &mut DirectionModel<P>, b: &mut DirectionModel<P>, to: Nanos) -> bool {
    if a.held.half_duplex && b.held.half_duplex {
        take_turns(a, b, to);
    } else if a.turn.shared {
        part(a, to);
        part(b, to);
    } else {
        return false;
    }
    true
}

#[inline(never)]
fn take_turns<P: Copy>(a: &mut DirectionModel<P>, b: &mut DirectionModel<P>, to: Nanos) {
    (a.turn.shared, b.turn.shared) = (true, true);
    loop {
        let idle = !a.busy() && !b.busy();
        let step = if idle { to } else { a.next_step().min(b.next_step()).min(to) };
        a.advance(step);
        b.advance(step);
        give_turn(a, b);
        if step == to && !a.departs_by(to) && !b.departs_by(to) {
            break;
        }
    }
    let steps = a.trace_at.min(b.trace_at);
    let free_at = a.server.free_at().max(b.server.free_at()).min(steps);
    (a.turn.free_at, b.turn.free_at) = (free_at, free_at);
}

fn give_turn<P: Copy>(a: &mut DirectionModel<P>, b: &mut DirectionModel<P>) {
    if a.in_service.is_some() || b.in_service.is_some() {
        (a.turn.last, b.turn.last) = (a.in_service.is_some(), b.in_service.is_some());
        return;
    }
    let (first, second) = if a.turn.last { (b, a) } else { (a, b) };
    if first.begin_turn(second.server.free_at()) || second.begin_turn(first.server.free_at()) {
        (first.turn.last, second.turn.last) = (first.in_service.is_some(), second.in_service.is_some());
    }
}

/// From `now` on each sends for itself.
fn part<P: Copy>(direction: &mut DirectionModel<P>, now: Nanos) {
    direction.turn.shared = false;
    if direction.in_service.is_none() {
        direction.begin_turn(now);
    }
}

impl<P: Copy> DirectionModel<P> {
    /// When something happens in it that is not an arrival.
    fn next_step(&self) -> Nanos {
        let departure = if self.in_service.is_some() { self.server.free_at() } else { Nanos::MAX };
        departure.min(self.trace_at)
    }

    fn departs_by(&self, to: Nanos) -> bool {
        self.in_service.is_some() && self.server.free_at() <= to
    }

    /// Sends what waits first, not before `free_at`; false if nothing is there to be sent.
    fn begin_turn(&mut self, free_at: Nanos) -> bool {
        if self.counters.queued.packets == 0 {
            return false;
        }
        if free_at > self.server.free_at() {
            self.server.serve(0, free_at);
        }
        self.start_service();
        self.in_service.is_some()
    }
}
