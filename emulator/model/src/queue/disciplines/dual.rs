//! DualPI2, RFC 9332: L4S packets (ECT(1), and CE that somebody set before) wait in a queue of their own, short because
//! they are marked early; all others in the classic one. A proportional-integral controller keeps the delay at its
//! target by a probability p'. Classic packets are dropped, or marked if ECT(0), with its square; L4S packets are
//! marked with `coupling` times p', and whenever they waited for `step` or longer (section 2.4, appendix A).
//!
//! Divergences: updates happen at fixed times from the first arrival on, with the delay of the older one of the first
//! packets of both queues; the marking of L4S is a step and no ramp (as in Linux). While `coupling` times p' is
//! 100 % or more, packets are dropped where they would be marked by the square, in both queues (section 4.2.3).
//! Queues of up to two packets of 1500 bytes never suffer, but for the step, which marks a single packet, too: the
//! compiler lets it be no shorter than a packet's time, as the appendix does. Between the queues a weighted round robin
//! of bytes decides; the classic queue's share is what it has at least. All of this is as in Linux (sch_dualpi2), beside
//! which it is held in docs/results/references.md.

use alloc::format;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::pie::{check_controller, LEAST_UPDATE_NS};
use super::{Config, Lists, Waiting};
use crate::check::{probability, require, time, CheckResult, LONGEST_NS};
use crate::config::Ppb;
use crate::counters::{Counters, Drop};
use crate::fifo::{Fifo, List, Pool};
use crate::rng::Stream;
use crate::{Ecn, Nanos};

/// Gains are in 10^-3 Hz and times in ns, so probabilities are in 10^-12.
const ONE: i128 = 1_000_000_000_000;
const SHORT_BYTES: u64 = 2 * 1500;
const L4S: usize = 0;
const CLASSIC: usize = 1;

/// `step_ns`: L4S is marked after waiting so long; `classic_ppb`: the share of the rate that the rest has at least.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DualPi2Config {
    pub target_ns: u64,
    pub update_ns: u64,
    pub alpha_mhz: u64,
    pub beta_mhz: u64,
    pub coupling: u32,
    pub step_ns: u64,
    pub classic_ppb: Ppb,
}

impl Config for DualPi2Config {
    type Model = DualPi2;

    fn check(&self) -> CheckResult {
        let coupling = self.coupling;
        check_controller(self.target_ns, self.update_ns, self.alpha_mhz, self.beta_mhz)?;
        require((1..=100).contains(&coupling), || format!("coupling {coupling}: write 1 to 100 (usual: 2)"))?;
        time("step_ns", self.step_ns, 1, LONGEST_NS)?;
        probability("classic_ppb", self.classic_ppb)
    }

    fn model(&self) -> DualPi2 {
        // In ten-thousandths: bytes times these stay far below 2^63.
        let classic = i64::from(self.classic_ppb / 100_000).min(10_000);
        let mut model = DualPi2 {
            target: self.target_ns,
            period: self.update_ns.max(LEAST_UPDATE_NS), // a shorter one was refused by `check`
            alpha: i128::from(self.alpha_mhz),
            beta: i128::from(self.beta_mhz),
            coupling: i128::from(self.coupling),
            step: self.step_ns,
            price: [classic, 10_000 - classic],
            credit: 0,
            lists: [List::EMPTY; 2],
            probability: 0,
            delay_before: 0,
            next_update: None,
        };
        model.credit = model.begin();
        model
    }

    fn class_names(&self) -> Vec<&str> {
        alloc::vec!["l4s", "classic"]
    }
}

#[derive(Clone, Debug)]
pub struct DualPi2 {
    target: Nanos,
    period: Nanos,
    alpha: i128,
    beta: i128,
    coupling: i128,
    step: Nanos,
    /// What a byte of each queue counts against it while both wait.
    price: [i64; 2],
    credit: i64,
    lists: [List; 2],
    /// p'.
    probability: i128,
    delay_before: Nanos,
    next_update: Option<Nanos>,
}

impl DualPi2 {
    fn update(&mut self, delay: Nanos) {
        let (target, before, now) = (i128::from(self.target), i128::from(self.delay_before), i128::from(delay));
        let step = self.alpha * (now - target) + self.beta * (now - before);
        self.probability = (self.probability + step).clamp(0, ONE);
        self.delay_before = delay;
    }

    /// Which queue is next; None where both are empty.
    fn turn(&self) -> Option<usize> {
        match self.lists.each_ref().map(List::is_empty) {
            [true, true] => None,
            [false, true] => Some(L4S),
            [true, false] => Some(CLASSIC),
            [false, false] => Some(if self.credit >= 0 { L4S } else { CLASSIC }),
        }
    }

    /// Both queues pay for what they send while the other one waits. The credit outlives a queue that empties, else a
    /// short L4S queue would never give way; without packets, L4S has the credit of a new queue (as in Linux).
    fn settle(&mut self, which: usize, bytes: u32) {
        match self.lists.each_ref().map(List::is_empty) {
            [true, true] => self.credit = self.begin(),
            waiting if waiting[1 - which] => {}
            _ => {
                let price = self.price[which] * i64::from(bytes);
                self.credit += if which == L4S { -price } else { price };
            }
        }
    }

    /// The credit of L4S where nothing waits: the difference of the prices, times a packet.
    fn begin(&self) -> i64 {
        (self.price[CLASSIC] - self.price[L4S]) * (SHORT_BYTES / 2) as i64
    }

    /// Is the packet dropped? Or else it may have been marked.
    fn is_dropped<P>(
        &self,
        which: usize,
        packet: &mut Waiting<P>,
        sojourn: Nanos,
        behind_bytes: u64,
        stream: &mut Stream,
    ) -> bool {
        if which == L4S && sojourn >= self.step {
            packet.mark_ce = true;
        }
        if behind_bytes + u64::from(packet.bytes) <= SHORT_BYTES || self.probability == 0 {
            return false;
        }
        let mut chosen = |probability: i128| i128::from(stream.below(ONE as u64)) < probability;
        // Both draws at once or the square: the same, and exact.
        let squared = chosen(self.probability) & chosen(self.probability);
        let coupled = self.coupling * self.probability;
        let overload = coupled >= ONE;
        match which {
            CLASSIC if !squared => false,
            CLASSIC if overload || !packet.ecn().capable() => true,
            CLASSIC => {
                packet.mark_ce = true;
                false
            }
            _ if overload && squared => true,
            _ => {
                packet.mark_ce |= chosen(coupled);
                false
            }
        }
    }
}

impl Lists for DualPi2 {
    const DROPS_LATER: bool = true;

    #[inline]
    fn push<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>, arriving: Waiting<P>, counters: &mut Counters) {
        if self.next_update.is_none() {
            self.next_update = Some(arriving.arrival.saturating_add(self.period));
        }
        let which = match arriving.ecn() {
            Ecn::Ect1 | Ecn::Ce => L4S,
            Ecn::NotEct | Ecn::Ect0 => CLASSIC,
        };
        counters.classes[which].queued.add(arriving.bytes);
        pool.push_back(&mut self.lists[which], arriving);
    }

    #[inline]
    fn keep_time<P: Copy>(&mut self, until: Nanos, pool: &Pool<Waiting<P>>) {
        while let Some(now) = self.next_update.filter(|now| *now <= until) {
            let arrivals = self.lists.each_ref().map(|list| pool.front(list).map(|first| first.arrival));
            let oldest = arrivals.into_iter().flatten().min();
            if self.probability == 0 && self.delay_before == 0 && oldest.is_none() {
                // Nothing will change until a packet waits.
                self.next_update = Some(until.saturating_add(self.period - (until - now) % self.period));
                return;
            }
            self.update(oldest.map_or(0, |arrival| now.saturating_sub(arrival)));
            self.next_update = Some(now.saturating_add(self.period));
        }
    }

    fn next<P: Copy>(
        &mut self,
        pool: &mut Pool<Waiting<P>>,
        free_at: Nanos,
        counters: &mut Counters,
        dropped: &mut Fifo<(P, Drop)>,
        stream: &mut Stream,
    ) -> Option<Waiting<P>> {
        loop {
            let which = self.turn()?;
            let mut next = pool.pop_front(&mut self.lists[which])?;
            let sojourn = counters.leave(&next, free_at);
            counters.classes[which].leave(next.bytes, sojourn);
            if self.is_dropped(which, &mut next, sojourn, counters.queued.bytes, stream) {
                counters.classes[which].dropped_packets += 1;
                counters.aqm.add(next.bytes);
                dropped.push_back((next.packet, Drop::Aqm));
                continue;
            }
            let class = &mut counters.classes[which];
            class.ce_packets += u64::from(next.mark_ce);
            class.served_packets += 1;
            self.settle(which, next.bytes);
            return Some(next);
        }
    }

    fn cut<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>, counters: &mut Counters) -> Option<Waiting<P>> {
        let which = self.turn()?;
        let taken = pool.pop_front(&mut self.lists[which])?;
        counters.classes[which].queued.remove(taken.bytes);
        Some(taken)
    }

    fn class_count(&self) -> usize {
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stage;

    const MS: Nanos = 1_000_000;

    fn dual() -> DualPi2 {
        let config = DualPi2Config {
            target_ns: 15 * MS,
            update_ns: 16 * MS,
            alpha_mhz: 160,
            beta_mhz: 3_200,
            coupling: 2,
            step_ns: 1_000 * MS,
            classic_ppb: 100_000_000,
        };
        config.model()
    }

    /// Appendix A.1: p' grows by alpha (delay - target) + beta (delay - delay before).
    #[test]
    fn the_controller_steps_as_in_the_appendix() {
        let mut dual = dual();
        dual.update(25 * MS); // 0.16 × 0.010 + 3.2 × 0.025 = 0.0816
        assert_eq!(dual.probability, 81_600_000_000);
        dual.update(25 * MS);
        assert_eq!(dual.probability, 83_200_000_000);
        dual.update(0); // − 0.16 × 0.015 − 3.2 × 0.025
        assert_eq!(dual.probability, 800_000_000);
        dual.update(0);
        assert_eq!(dual.probability, 0);
    }

    /// Of 100,000 packets: what was dropped, and what was marked.
    fn fates(probability: i128, traffic_class: u8) -> (f64, f64) {
        let (mut dual, mut stream) = (dual(), Stream::new(3, Stage::Queue));
        dual.probability = probability;
        let (mut dropped, mut marked) = (0, 0);
        for _ in 0..100_000 {
            let mut packet = Waiting { packet: (), arrival: 0, bytes: 1538, flow: 0, traffic_class, mark_ce: false };
            let which = if traffic_class & 1 == 1 { L4S } else { CLASSIC };
            dropped += u32::from(dual.is_dropped(which, &mut packet, 0, 30_000, &mut stream));
            marked += u32::from(packet.mark_ce);
        }
        (f64::from(dropped) / 1e5, f64::from(marked) / 1e5)
    }

    fn assert_near(found: f64, expected: f64) {
        let deviation = (expected * (1.0 - expected) / 1e5).sqrt();
        assert!((found - expected).abs() <= 4.0 * deviation, "{found} is not {expected} ± 4 × {deviation}");
    }

    /// Section 2.1: the classic queue has the square of p', L4S the coupled multiple; above 100 % of that all are dropped.
    #[test]
    fn classic_packets_have_the_square_and_l4s_the_double() {
        for (p, overload) in [(0.05, false), (0.3, false), (0.7, true)] {
            let probability = (p * 1e12) as i128;
            let (dropped, marked) = fates(probability, 0);
            assert_near(dropped, p * p);
            assert_near(marked, 0.0);
            let (dropped, marked) = fates(probability, 2);
            assert_near(if overload { dropped } else { marked }, p * p);
            assert_near(if overload { marked } else { dropped }, 0.0);
            let (dropped, marked) = fates(probability, 1);
            assert_near(dropped, if overload { p * p } else { 0.0 });
            assert_near(marked, if overload { 1.0 - p * p } else { 2.0 * p });
        }
    }

    /// Each packet of L4S counts while classic ones wait, also where no other of L4S waits: after nine, one gives way.
    #[test]
    fn a_short_l4s_queue_gives_way_by_its_share() {
        let (mut dual, mut pool) = (dual(), Pool::new(1000));
        let (mut counters, mut stream) = (Counters::default(), Stream::new(3, Stage::Queue));
        let packet =
            |traffic_class| Waiting { packet: (), arrival: 0, bytes: 1500, flow: 0, traffic_class, mark_ce: false };
        let mut next = |arriving: &[u8]| {
            for traffic_class in arriving {
                counters.queued.add(1500);
                dual.push(&mut pool, packet(*traffic_class), &mut counters);
            }
            let sent = dual.next(&mut pool, 0, &mut counters, &mut Fifo::new(1000), &mut stream).unwrap();
            sent.traffic_class
        };
        next(&[0; 4]);
        let mut waited = 0;
        for _ in 0..100 {
            let mut sent = next(&[1, 0]);
            while sent != 1 {
                waited += 1;
                sent = next(&[0]);
            }
        }
        assert_eq!(waited, 11, "one for each nine at a share of a tenth");
    }
}
