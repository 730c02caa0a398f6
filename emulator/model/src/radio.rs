//! What a radio link adds to the rate stage and to what comes behind it: several packets go in one transmission
//! (aggregation), packets leave at the ends of slots, and some are sent again (HARQ).

use alloc::format;

use super::check::{require, time, CheckResult};
use super::rng::Stream;
use super::Nanos;
use crate::config::{Aggregate, Harq};

/// Packets of one transmission: as many as a block acknowledgement of IEEE 802.11ax names.
pub const MOST_AGGREGATED: usize = 256;

const SECOND_NS: Nanos = 1_000_000_000;
const SHORTEST_NS: Nanos = 1_000;
const MOST_ROUNDS: u32 = 16;
const MOST_ERROR_PPB: u32 = 900_000_000;

/// Are they slots that a link can have? 0: none.
pub(super) fn check_slot(slot_ns: Nanos) -> CheckResult {
    if slot_ns > 0 {
        time("slot_ns", slot_ns, SHORTEST_NS, SECOND_NS)
    } else {
        Ok(())
    }
}

impl Aggregate {
    /// Each packet is sent on its own, and nothing is lost between two.
    pub const NONE: Aggregate = Aggregate { packets: 0, time_ns: 0, gap_ns: 0 };

    pub(super) fn check(&self) -> CheckResult {
        let Aggregate { packets, time_ns, gap_ns } = *self;
        require(packets as usize <= MOST_AGGREGATED, || {
            format!("packets {packets}: an aggregate has 1 to {MOST_AGGREGATED}, and 0 is none")
        })?;
        require(packets > 0 || *self == Aggregate::NONE, || "packets 0: write time_ns 0 and gap_ns 0 too".into())?;
        time("time_ns", time_ns, 0, SECOND_NS)?;
        time("gap_ns", gap_ns, 0, SECOND_NS)
    }

    /// May one more packet join so many, which take so long?
    #[inline]
    pub(super) fn admits(&self, packets: usize, takes: Nanos) -> bool {
        packets < self.packets as usize && (self.time_ns == 0 || takes < self.time_ns)
    }
}

impl Harq {
    /// No transmission fails.
    pub const NONE: Harq = Harq { error_ppb: 0, round_ns: 0, rounds: 0 };

    pub(super) fn check(&self) -> CheckResult {
        let Harq { error_ppb, round_ns, rounds } = *self;
        require(error_ppb <= MOST_ERROR_PPB, || {
            format!("error_ppb {error_ppb}: write at most {MOST_ERROR_PPB} (90 %)")
        })?;
        if error_ppb == 0 {
            return require(*self == Harq::NONE, || "error_ppb 0: write round_ns 0 and rounds 0 too".into());
        }
        time("round_ns", round_ns, SHORTEST_NS, SECOND_NS)?;
        require((1..=MOST_ROUNDS).contains(&rounds), || format!("rounds {rounds}: write 1 to {MOST_ROUNDS}"))
    }

    /// How much later a packet is there for what had to be sent again.
    #[inline]
    pub(super) fn draw(&self, stream: &mut Stream) -> Nanos {
        let mut later = 0;
        for _ in 0..self.rounds {
            if !stream.chance(self.error_ppb) {
                break;
            }
            later += self.round_ns;
        }
        later
    }
}

/// The end of the slot in which this instant is; slots follow each other from 0 on, and a slot's end belongs to it.
#[inline]
pub(super) fn slot_end(slot_ns: Nanos, at: Nanos) -> Nanos {
    if slot_ns == 0 {
        return at;
    }
    at.div_ceil(slot_ns).saturating_mul(slot_ns)
}

#[cfg(test)]
mod tests {
    use super::super::rng::Stage;
    use super::*;

    #[test]
    fn a_slot_ends_at_its_multiple() {
        assert_eq!([0, 1, 999, 1_000, 1_001].map(|at| slot_end(1_000, at)), [0, 1_000, 1_000, 1_000, 2_000]);
        assert_eq!(slot_end(0, 12_345), 12_345);
    }

    /// Each further round is needed with the same probability; after the last one the packet is there.
    #[test]
    fn rounds_are_geometric_and_end() {
        let harq = Harq { error_ppb: 250_000_000, round_ns: 8_000_000, rounds: 3 };
        let mut stream = Stream::new(5, Stage::Harq);
        let mut seen = [0u32; 4];
        for _ in 0..1_000_000 {
            seen[(harq.draw(&mut stream) / 8_000_000) as usize] += 1;
        }
        for (found, share) in seen.into_iter().zip([0.75_f64, 0.1875, 0.046_875, 0.015_625]) {
            let deviation = (1e6 * share * (1.0 - share)).sqrt();
            assert!((f64::from(found) - 1e6 * share).abs() < 5.0 * deviation, "{seen:?}");
        }
    }
}
