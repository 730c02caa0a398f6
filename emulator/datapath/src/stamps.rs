//! When a frame arrived: the kernel's stamp, unless it cannot be true. In: stamps in the spinner's time base, and when the
//! ring was found empty. Out: arrivals that never go back.
//!
//! A stamp is taken before the frame lies in the ring, so one that is much older than the ring's last empty moment tells
//! that the real-time clock was set, or that the sender lost its CPU in between. The clock's offset is then read again.

use ewan_model::Nanos;

/// Two clocks meet in a stamp: so far into the future is no fault.
pub const FUTURE_NS: Nanos = 1_000;
/// Between its stamp and the ring a frame seldom takes longer.
const COPIED_WITHIN_NS: Nanos = 50_000;
/// Nor ever longer than this.
const LONGEST_COPY_NS: Nanos = 10_000_000;
/// Older than this no frame is when the first one is read.
const OLDEST_NS: Nanos = 1_000_000_000;

#[derive(Debug, Default)]
pub struct Stamps {
    last_arrival: Nanos,
    /// Nothing lay in the ring then.
    empty_at: Option<Nanos>,
    pub replaced: u64,
}

impl Stamps {
    pub fn found_empty(&mut self, at: Nanos) {
        self.empty_at = Some(at);
    }

    /// The arrival of a frame with this stamp that is read at `now`: never before an earlier frame's. `again`: the same
    /// stamp by the clocks' offset as it is now; asked where the stamp is doubtful.
    pub fn arrival(&mut self, stamp: Nanos, now: Nanos, again: impl FnOnce() -> Nanos) -> Nanos {
        let doubtful = !self.possible(stamp, now, COPIED_WITHIN_NS);
        let stamp = if doubtful { again() } else { stamp };
        let possible = !doubtful || self.possible(stamp, now, LONGEST_COPY_NS);
        self.replaced += u64::from(!possible);
        self.last_arrival = self.last_arrival.max(if possible { stamp.min(now) } else { now });
        self.last_arrival
    }

    fn possible(&self, stamp: Nanos, now: Nanos, copied_within: Nanos) -> bool {
        let oldest = self.empty_at.map_or(now.saturating_sub(OLDEST_NS), |empty| empty.saturating_sub(copied_within));
        (oldest..=now.saturating_add(FUTURE_NS)).contains(&stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;
    const START: Nanos = 5_000 * MS;

    fn unasked() -> Nanos {
        panic!("the stamp is not doubtful")
    }

    /// The ring was empty a moment ago, and the clock is set back by less than a second: the frame came just now.
    #[test]
    fn a_clock_that_is_set_back_makes_no_frame_older() {
        for back in [11 * MS, 500 * MS, 999 * MS] {
            let mut stamps = Stamps::default();
            stamps.found_empty(START);
            let true_time = START + 3_000;
            assert_eq!(stamps.arrival(true_time - back, START + 4_000, || true_time), true_time, "read again");
            stamps.found_empty(START + MS);
            let late = START + MS + 4_000;
            assert_eq!(stamps.arrival(true_time + MS - back, late, || true_time + MS - back), late, "set once more");
            assert_eq!(stamps.replaced, 1);
        }
    }

    #[test]
    fn a_frame_from_before_the_clock_was_set_is_of_now() {
        let mut stamps = Stamps::default();
        stamps.found_empty(START);
        assert_eq!(stamps.arrival(START + 700 * MS, START + 2_000, || START + 700 * MS), START + 2_000);
        assert_eq!(stamps.replaced, 1);
    }

    #[test]
    fn a_frame_that_was_copied_late_keeps_its_stamp() {
        let mut stamps = Stamps::default();
        stamps.found_empty(START);
        assert_eq!(stamps.arrival(START - 20_000, START + 1_000, unasked), START - 20_000);
        assert_eq!(stamps.arrival(START - 30_000, START + 1_000, unasked), START - 20_000, "they came in order");
        assert_eq!(stamps.arrival(START + 1_900, START + 1_000, unasked), START + 1_000);
        stamps.found_empty(START + 20 * MS);
        assert_eq!(stamps.arrival(START + 15 * MS, START + 21 * MS, || START + 15 * MS), START + 15 * MS);
        assert_eq!(stamps.replaced, 0);
    }

    #[test]
    fn of_what_lay_in_the_ring_before_the_first_look_only_the_old_is_replaced() {
        let mut stamps = Stamps::default();
        assert_eq!(stamps.arrival(START - 2_000 * MS, START, || START - 2_000 * MS), START);
        let mut stamps = Stamps { replaced: stamps.replaced, ..Stamps::default() };
        assert_eq!(stamps.arrival(START - 900 * MS, START, unasked), START - 900 * MS);
        assert_eq!(stamps.replaced, 1);
    }
}
