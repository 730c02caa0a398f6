//! Frames at the receiver. Pure.
//!
//! In: packets of frames as they come, each once. Out: when each frame was complete and when it was shown. Frames are shown
//! in their order, each as soon as it is complete and all before it are shown: there is no buffer against jitter, and what
//! is lost is not sent again. A frame that lacks a packet holds up all after it, which need it, until a key frame is
//! complete. `REORDERING_NS` after a later frame was complete, it counts as lost, and a key frame is asked for.

use std::collections::BTreeMap;

/// Packets may be overtaken by so much.
const REORDERING_NS: u64 = 20_000_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub completed_ns: Option<u64>,
    pub shown_ns: Option<u64>,
}

#[derive(Default)]
pub struct Playout {
    /// Those that came in part, or wait to be shown.
    frames: BTreeMap<u32, Assembly>,
    /// The next to be shown.
    next: u32,
    /// Since when a complete frame has waited for one before it.
    held_since_ns: Option<u64>,
    outcomes: Vec<Outcome>,
}

struct Assembly {
    missing: u16,
    key: bool,
}

impl Playout {
    /// A packet of a frame of so many parts; copies are not to be given.
    pub fn take(&mut self, number: u32, parts: u16, key: bool, at_ns: u64) {
        let frame = self.frames.entry(number).or_insert(Assembly { missing: parts, key });
        frame.missing = frame.missing.saturating_sub(1);
        if frame.missing > 0 {
            return;
        }
        let place = number as usize;
        if place >= self.outcomes.len() {
            self.outcomes.resize(place + 1, Outcome::default());
        }
        self.outcomes[place].completed_ns = Some(at_ns);
        self.advance(at_ns);
    }

    fn advance(&mut self, at_ns: u64) {
        let next = self.next;
        loop {
            let complete = |(_, frame): &(&u32, &Assembly)| frame.missing == 0;
            let in_order = self.frames.get(&self.next).is_some_and(|frame| frame.missing == 0);
            let key = || self.frames.range(self.next..).filter(complete).find(|(_, frame)| frame.key);
            let Some(number) = in_order.then_some(self.next).or_else(|| key().map(|(&number, _)| number)) else {
                break;
            };
            self.outcomes[number as usize].shown_ns = Some(at_ns);
            self.next = number + 1;
            self.frames = self.frames.split_off(&self.next);
        }
        let held = self.frames.values().any(|frame| frame.missing == 0);
        if !held || self.next > next {
            self.held_since_ns = None;
        }
        if held {
            self.held_since_ns.get_or_insert(at_ns);
        }
    }

    /// A frame was lost, and only a key frame helps.
    pub fn key_wanted(&self, now_ns: u64) -> bool {
        self.held_since_ns.is_some_and(|since_ns| now_ns >= since_ns + REORDERING_NS)
    }

    /// By the frames' numbers; of those that are not there nothing was complete.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(playout: &Playout) -> Vec<Option<u64>> {
        playout.outcomes().iter().map(|outcome| outcome.shown_ns).collect()
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn frames_are_shown_in_their_order() {
        let mut playout = Playout::default();
        playout.take(0, 2, true, MS);
        assert_eq!(playout.outcomes(), []);
        playout.take(0, 2, true, 2 * MS);
        // 2 overtakes 1.
        playout.take(2, 1, false, 4 * MS);
        assert_eq!(shown(&playout), [Some(2 * MS), None, None]);
        assert!(!playout.key_wanted(5 * MS));
        playout.take(1, 1, false, 6 * MS);
        assert_eq!(shown(&playout), [Some(2 * MS), Some(6 * MS), Some(6 * MS)]);
        assert_eq!(playout.outcomes()[2].completed_ns, Some(4 * MS));
        assert!(!playout.key_wanted(100 * MS));
    }

    #[test]
    fn after_a_loss_nothing_is_shown_until_a_key_frame_that_is_asked_for() {
        let mut playout = Playout::default();
        playout.take(0, 1, true, 0);
        playout.take(2, 1, false, 60 * MS);
        playout.take(3, 1, false, 90 * MS);
        assert!(!playout.key_wanted(79 * MS) && playout.key_wanted(80 * MS));
        playout.take(4, 1, true, 120 * MS);
        playout.take(5, 1, false, 150 * MS);
        assert_eq!(shown(&playout), [Some(0), None, None, None, Some(120 * MS), Some(150 * MS)]);
        assert!(!playout.key_wanted(900 * MS));
        // Too late.
        playout.take(1, 1, false, 160 * MS);
        assert_eq!(shown(&playout)[1], None);
    }
}
