//! CoDel, RFC 8289: when packets have waited longer than a target for a whole interval, one is dropped as it
//! would go into service, then more at intervals that shrink with the square root of their number.
//!
//! Divergences: the RFC's loop over the queue is a question per packet here, so that the queue stays the
//! caller's; the reciprocal square root is one of 16 bits, to which each drop adds one step of Newton's method, as
//! in Linux: the interval after the second drop is a half of the first one, and no 0.71 of it; the maximal packet, below which a
//! backlog is never dropped from, is the longest seen so far (as in Linux). With ECN a capable packet is marked
//! where it would be dropped (RFC 8289 leaves this open; as in Linux).

use alloc::format;

use serde::{Deserialize, Serialize};

use super::{Aqm, Config, Departure, Verdict};
use crate::check::{require, CheckResult, LONGEST_NS};
use crate::rng::Stream;
use crate::Nanos;

/// Of the interval, which a description leaves to the compiler: ten packets of 10 s each.
const LONGEST_INTERVAL_NS: Nanos = 10 * LONGEST_NS;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodelConfig {
    pub target_ns: u64,
    pub interval_ns: u64,
    pub ecn: bool,
}

impl Config for CodelConfig {
    type Model = Codel;

    fn check(&self) -> CheckResult {
        let CodelConfig { target_ns, interval_ns, ecn: _ } = *self;
        require(0 < target_ns && target_ns <= interval_ns, || {
            format!("target_ns {target_ns}: must be above 0 and not above interval_ns ({interval_ns})")
        })?;
        require(interval_ns <= LONGEST_INTERVAL_NS, || {
            format!("interval_ns {interval_ns}: write at most {LONGEST_INTERVAL_NS} (100 s)")
        })
    }

    fn model(&self) -> Codel {
        Codel::new(self.target_ns, self.interval_ns, self.ecn)
    }
}

impl Aqm for Codel {
    const ON_DEPARTURE: bool = true;

    #[inline]
    fn departs(&mut self, departure: &Departure, _: &mut Stream) -> Verdict {
        self.judge(departure)
    }
}

#[derive(Clone, Debug)]
pub struct Codel {
    target: Nanos,
    interval: Nanos,
    ecn: bool,
    longest: u32,
    /// When the sojourn time will have been above the target for an interval.
    first_above: Option<Nanos>,
    dropping: bool,
    drop_next: Nanos,
    count: u32,
    last_count: u32,
    /// About 1/√count, as a share of 2^16.
    inverse_root: u16,
    after: PreviousDrop,
}

/// What was done to the packet before this one, at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PreviousDrop {
    Nothing,
    /// It was dropped on entering the dropping state: this one passes.
    Entry,
    /// It was dropped in the dropping state: the next drop is still to be scheduled.
    Drop,
}

impl Codel {
    pub fn new(target: Nanos, interval: Nanos, ecn: bool) -> Self {
        Codel {
            target,
            interval,
            ecn,
            longest: 0,
            first_above: None,
            dropping: false,
            drop_next: 0,
            count: 0,
            last_count: 0,
            inverse_root: u16::MAX,
            after: PreviousDrop::Nothing,
        }
    }

    /// Judges the packet that would go into service at `now` after waiting for `sojourn`; `backlog` bytes wait
    /// behind it. After a drop it must be asked for the next packet at the same instant (there is one, for
    /// drops need a backlog).
    pub fn judge(&mut self, departure: &Departure) -> Verdict {
        let Departure { now, sojourn, bytes, backlog, ecn_capable } = *departure;
        self.longest = self.longest.max(bytes);
        let above = self.above(now, sojourn, backlog);
        match core::mem::replace(&mut self.after, PreviousDrop::Nothing) {
            PreviousDrop::Entry => return Verdict::Pass,
            PreviousDrop::Drop if above => self.drop_next += self.pause(),
            PreviousDrop::Drop | PreviousDrop::Nothing => {}
        }
        self.dropping &= above || self.after == PreviousDrop::Entry;
        if !above {
            return Verdict::Pass;
        }
        let mark = self.ecn && ecn_capable;
        if self.dropping {
            if now < self.drop_next {
                return Verdict::Pass;
            }
            // A drop after which the queue is no longer above the target counts, too.
            self.count = self.count.saturating_add(1);
            self.refine();
            if mark {
                self.drop_next += self.pause();
                return Verdict::Mark;
            }
            self.after = PreviousDrop::Drop;
            return Verdict::Drop;
        }
        self.dropping = true;
        // If the queue was above the target a short while ago, go on with nearly the rate of drops it took then.
        let recent = self.count.saturating_sub(self.last_count);
        let soon = now.saturating_sub(self.drop_next) < 16 * self.interval;
        if recent > 1 && soon {
            self.count = recent;
            self.refine();
        } else {
            self.count = 1;
            self.inverse_root = u16::MAX;
        }
        self.drop_next = now + self.pause();
        self.last_count = self.count;
        if mark {
            return Verdict::Mark;
        }
        self.after = PreviousDrop::Entry;
        Verdict::Drop
    }

    /// Has the sojourn time been above the target for at least an interval, with more than a packet waiting?
    fn above(&mut self, now: Nanos, sojourn: Nanos, backlog: u64) -> bool {
        if sojourn < self.target || backlog <= u64::from(self.longest) {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now + self.interval)
    }

    /// A step of Newton's method for x = 1/√count, which is x · (3 − count · x²) / 2.
    fn refine(&mut self) {
        const ONE: u128 = 1 << 32;
        let root = u128::from(self.inverse_root) << 16;
        let square = root * root / ONE;
        let rest = (3 * ONE).saturating_sub(u128::from(self.count) * square);
        self.inverse_root = u16::try_from((root * rest / (2 * ONE)) >> 16).unwrap_or(u16::MAX);
    }

    /// interval / √count.
    fn pause(&self) -> Nanos {
        ((u128::from(self.interval) * u128::from(self.inverse_root)) >> 16) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn leaving(ms: Nanos, sojourn: Nanos, backlog: u64, ecn_capable: bool) -> Departure {
        Departure { now: ms * MS, sojourn, bytes: 1500, backlog, ecn_capable }
    }

    /// Every millisecond a packet of 1500 bytes that has waited 20 ms, with many behind it.
    fn verdicts(codel: &mut Codel, from: Nanos, to: Nanos, ecn_capable: bool) -> Vec<(Nanos, Verdict)> {
        let mut seen = Vec::new();
        for now in from..=to {
            loop {
                let verdict = codel.judge(&leaving(now, 20 * MS, 1_000_000, ecn_capable));
                if verdict != Verdict::Pass {
                    seen.push((now, verdict));
                }
                if verdict != Verdict::Drop {
                    break;
                }
            }
        }
        seen
    }

    #[test]
    fn drops_after_an_interval_then_at_its_root_by_steps_of_newton() {
        let mut codel = Codel::new(5 * MS, 100 * MS, false);
        // 100, + 100, + 50 = 250, + 56.25 = 306.2, + 48.79 = 355.03, + 44.15 = 399.2
        let at: Vec<_> = verdicts(&mut codel, 0, 400, true).into_iter().map(|(now, _)| now).collect();
        assert_eq!(at, [100, 200, 250, 307, 356, 400]);
    }

    #[test]
    fn marks_at_the_same_times_where_it_may() {
        let mut codel = Codel::new(5 * MS, 100 * MS, true);
        let seen = verdicts(&mut codel, 0, 400, true);
        assert_eq!(seen, [100, 200, 250, 307, 356, 400].map(|now| (now, Verdict::Mark)));
        let mut codel = Codel::new(5 * MS, 100 * MS, true);
        assert!(verdicts(&mut codel, 0, 400, false).iter().all(|(_, verdict)| *verdict == Verdict::Drop));
    }

    #[test]
    fn a_short_sojourn_or_backlog_ends_it() {
        for (sojourn, backlog) in [(4 * MS, 1_000_000), (20 * MS, 1500)] {
            let mut codel = Codel::new(5 * MS, 100 * MS, false);
            verdicts(&mut codel, 0, 150, false);
            assert_eq!(codel.judge(&leaving(200, sojourn, backlog, false)), Verdict::Pass);
            assert!(verdicts(&mut codel, 201, 300, false).is_empty());
            assert_eq!(verdicts(&mut codel, 301, 301, false).len(), 1);
        }
    }

    #[test]
    fn coming_back_soon_it_resumes_its_rate() {
        let mut codel = Codel::new(5 * MS, 100 * MS, false);
        verdicts(&mut codel, 0, 1_000, false);
        let count = codel.count;
        assert!(count > 10);
        codel.judge(&leaving(1_001, 0, 0, false));
        verdicts(&mut codel, 1_002, 1_102, false);
        assert_eq!(codel.count, count - 1);
    }

    #[test]
    fn the_drop_that_ends_it_counts() {
        let mut codel = Codel::new(5 * MS, 100 * MS, false);
        verdicts(&mut codel, 0, 249, false); // at 100 and 200: the second makes it two
        assert_eq!(codel.judge(&leaving(250, 20 * MS, 1_000_000, false)), Verdict::Drop);
        assert_eq!(codel.judge(&leaving(250, 0, 0, false)), Verdict::Pass);
        assert_eq!(verdicts(&mut codel, 251, 351, false).len(), 1);
        assert_eq!((codel.count, codel.last_count), (2, 2), "RFC 8289, 5.5: of three, one was before");
    }
}
