//! When the spinner sleeps of its own accord. In: the clock, when something is due next, how long it lost its CPU;
//! out: how long to sleep now, if at all. Frames that arrive meanwhile are stamped by the kernel as always.
//!
//! Two reasons. The kernel's own work that is bound to this CPU (tearing a namespace or an AF_XDP socket down, for
//! one) must get its turn, or it waits for ever and others wait for it with the network's lock held: a moment now
//! and then is enough. And where ordinary processes want the CPU too, the kernel's fair server gives them 50 ms of
//! every second at a stretch, before any real-time thread; unless they have had that much already. So the spinner
//! gives it to them in slices of 0.1 ms, in between releases where there is room.

use crate::model::Nanos;

const MS: Nanos = 1_000_000;

/// For the kernel's own work.
const MOMENT_NS: Nanos = 30_000;
const MOMENT_EVERY_NS: Nanos = 20 * MS;
const MOMENT_AT_LEAST_EVERY_NS: Nanos = 500 * MS;
const ROOM_FOR_MOMENT_NS: Nanos = 400_000;

/// For other processes: a little more than the twentieth that the fair server guarantees them.
const SLICE_NS: Nanos = 100_000;
const ROOM_FOR_SLICE_NS: Nanos = 250_000;
const SHARE_PER_MILLE: Nanos = 58;
/// More than this much owed is paid even if something is due meanwhile.
const MOST_OWED_NS: Nanos = MS;
/// A gap of this length was the fair server's; others want the CPU, and probably will for a while.
const LONG_GAP_NS: Nanos = 5 * MS;
const CONTENDED_NS: Nanos = 20_000 * MS;
const SUSPECTED_NS: Nanos = 60_000 * MS;

pub struct Rest {
    rested: Nanos,
    /// Until then others may want the CPU: nobody knows in the beginning. They get what is free anyway.
    suspected_until: Nanos,
    /// Until then they are known to.
    contended_until: Nanos,
    owed: Nanos,
    counted: Nanos,
}

impl Rest {
    pub fn new(now: Nanos) -> Rest {
        Rest { rested: now, suspected_until: now + SUSPECTED_NS, contended_until: 0, owed: 0, counted: now }
    }

    /// Others ran for this long.
    pub fn gap(&mut self, now: Nanos, lost: Nanos) {
        if lost > LONG_GAP_NS {
            self.contended_until = now + CONTENDED_NS;
            self.suspected_until = now + SUSPECTED_NS;
        }
    }

    #[inline]
    pub fn due(&mut self, now: Nanos, next: Nanos) -> Option<Nanos> {
        let room = next.saturating_sub(now);
        if now < self.suspected_until {
            // No more than that is ever owed, so that a busy spell is not followed by a long rest.
            self.owed = (self.owed + (now - self.counted) * SHARE_PER_MILLE).min(2 * MOST_OWED_NS * 1000);
            self.counted = now;
            let owed = self.owed / 1000;
            if owed >= SLICE_NS && room > ROOM_FOR_SLICE_NS || owed >= MOST_OWED_NS && now < self.contended_until {
                return Some(SLICE_NS);
            }
        }
        self.counted = now;
        let every = if room > ROOM_FOR_MOMENT_NS { MOMENT_EVERY_NS } else { MOMENT_AT_LEAST_EVERY_NS };
        (now > self.rested + every).then_some(MOMENT_NS)
    }

    /// Is the sleep that `due` asks for now one that others make necessary?
    pub fn is_for_others(&self, now: Nanos) -> bool {
        now < self.suspected_until
    }

    pub fn done(&mut self, now: Nanos, slept: Nanos) {
        self.rested = now;
        self.owed = self.owed.saturating_sub(slept * 1000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Nanos = Nanos::MAX;

    #[test]
    fn a_quiet_link_rests_soon_and_a_busy_one_rarely() {
        let mut rest = Rest { suspected_until: 0, ..Rest::new(0) };
        assert_eq!(rest.due(21 * MS, 21 * MS + 10_000), None);
        assert_eq!(rest.due(21 * MS, FAR), Some(MOMENT_NS));
        rest.done(21 * MS, MOMENT_NS);
        assert_eq!(rest.due(22 * MS, FAR), None);
        assert_eq!(rest.due(522 * MS, 522 * MS), Some(MOMENT_NS));
    }

    #[test]
    fn pays_others_their_share_in_slices() {
        let mut rest = Rest::new(0);
        rest.gap(0, 50 * MS);
        let (mut now, mut paid) = (0, 0);
        while now < 1000 * MS {
            now += 5_000;
            if let Some(time) = rest.due(now, FAR) {
                now += time;
                paid += time;
                rest.done(now, time);
            }
        }
        assert!((50 * MS..62 * MS).contains(&paid), "{paid}");
        assert_eq!(rest.due(now + 1000, now + 2000), None, "not while something is due soon");
    }

    #[test]
    fn a_busy_link_rests_for_others_only_if_they_are_there() {
        let slices = |rest: &mut Rest| (1..400).filter(|ms| rest.due(ms * MS, ms * MS).is_some()).count();
        assert_eq!(slices(&mut Rest::new(0)), 0);
        let mut rest = Rest::new(0);
        rest.gap(0, 50 * MS);
        assert!(slices(&mut rest) > 300, "nobody says `done` here, so the debt stays");
    }
}
