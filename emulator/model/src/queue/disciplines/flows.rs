//! A queue for each flow: FQ-CoDel (RFC 8290), DRR (Shreedhar & Varghese 1996, "Efficient Fair Queuing Using Deficit
//! Round-Robin"), SFQ (McKenney 1990, "Stochastic Fairness Queueing"). Flows are hashed into a number of queues; queues
//! take turns, a quantum of bytes each.
//!
//! Divergences: a full queue makes room by dropping one packet from the head of the queue with the most bytes (RFC 8290,
//! 4.1, lets up to 64 go at once; McKenney drops at the tail). Turns of SFQ are of a quantum of bytes and not of a packet
//! (as in Linux).

use alloc::boxed::Box;
use alloc::{format, vec};

use serde::{Deserialize, Serialize};

use super::codel::{Codel, CodelConfig};
use super::pie::LEAST_UPDATE_NS;
use super::{Config, Departure, Limit, Lists, Verdict, Waiting};
use crate::check::{require, CheckResult};
use crate::counters::{Counters, Drop};
use crate::fifo::{Fifo, List, Pool};
use crate::rng::Stream;
use crate::Nanos;

const NONE: u32 = u32::MAX;
/// A packet's flow is told by 16 bits.
const MOST_FLOWS: u32 = 1 << 16;
/// A large packet waits for so many turns at most: 141.
const LEAST_QUANTUM_BYTES: u32 = 64;
const MOST_QUANTUM_BYTES: u32 = 1 << 20;

/// RFC 8290: a queue with CoDel for each flow; flows are hashed into so many queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FqCodelConfig {
    pub flows: u32,
    pub quantum_bytes: u32,
    pub target_ns: u64,
    pub interval_ns: u64,
    pub ecn: bool,
}

impl FqCodelConfig {
    fn codel(&self) -> CodelConfig {
        CodelConfig { target_ns: self.target_ns, interval_ns: self.interval_ns, ecn: self.ecn }
    }
}

impl Config for FqCodelConfig {
    type Model = Flows;

    fn check(&self) -> CheckResult {
        check_turns(self.flows, self.quantum_bytes)?;
        self.codel().check()
    }

    fn model(&self) -> Flows {
        Flows {
            new_first: true,
            ..Flows::made(self.flows, self.quantum_bytes, Turn::Surplus, Some(self.codel().model()))
        }
    }
}

/// Deficit round robin (Shreedhar & Varghese 1996).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrrConfig {
    pub flows: u32,
    pub quantum_bytes: u32,
}

impl Config for DrrConfig {
    type Model = Flows;

    fn check(&self) -> CheckResult {
        check_turns(self.flows, self.quantum_bytes)
    }

    fn model(&self) -> Flows {
        Flows::made(self.flows, self.quantum_bytes, Turn::Deficit, None)
    }
}

/// Stochastic fairness queueing (McKenney 1990); flows are hashed anew after each `perturb_ns`, or never (0).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SfqConfig {
    pub flows: u32,
    pub quantum_bytes: u32,
    pub perturb_ns: u64,
}

impl Config for SfqConfig {
    type Model = Flows;

    fn check(&self) -> CheckResult {
        let perturb_ns = self.perturb_ns;
        check_turns(self.flows, self.quantum_bytes)?;
        require(perturb_ns == 0 || perturb_ns >= LEAST_UPDATE_NS, || {
            format!("perturb_ns {perturb_ns}: write 0 for never, or {LEAST_UPDATE_NS} or more")
        })
    }

    fn model(&self) -> Flows {
        Flows { perturb_ns: self.perturb_ns, ..Flows::made(self.flows, self.quantum_bytes, Turn::Surplus, None) }
    }
}

fn check_turns(flows: u32, quantum_bytes: u32) -> CheckResult {
    require((1..=MOST_FLOWS).contains(&flows), || format!("flows {flows}: write 1 to {MOST_FLOWS}"))?;
    require((LEAST_QUANTUM_BYTES..=MOST_QUANTUM_BYTES).contains(&quantum_bytes), || {
        format!("quantum_bytes {quantum_bytes}: write {LEAST_QUANTUM_BYTES} to {MOST_QUANTUM_BYTES}")
    })
}

/// When a queue's turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Once it has sent its quantum or more: what was too much counts against its next turn.
    Surplus,
    /// Before a packet that is more than what is left of its quanta.
    Deficit,
}

#[derive(Clone, Debug)]
struct Flow {
    list: List,
    deficit: i64,
    /// In its round, the queue behind it.
    next: u32,
    active: bool,
    codel: Option<Codel>,
}

/// Queues that wait for their turn.
#[derive(Clone, Copy, Debug)]
struct Round {
    first: u32,
    last: u32,
}

impl Round {
    const EMPTY: Round = Round { first: NONE, last: NONE };

    fn push_back(&mut self, flows: &mut [Flow], index: u32) {
        flows[index as usize].next = NONE;
        match flows.get_mut(self.last as usize) {
            Some(last) => last.next = index,
            None => self.first = index,
        }
        self.last = index;
    }

    fn pop_front(&mut self, flows: &[Flow]) {
        self.first = flows[self.first as usize].next;
        if self.first == NONE {
            self.last = NONE;
        }
    }
}

#[derive(Clone, Debug)]
pub struct Flows {
    flows: Box<[Flow]>,
    /// Bytes waiting in each queue: read all at once when the longest is looked for.
    bytes: Box<[u64]>,
    quantum: i64,
    turn: Turn,
    /// FQ-CoDel: a queue that was empty goes before those that were not.
    new_first: bool,
    new: Round,
    old: Round,
    /// Added to each flow's hash.
    salt: u32,
    perturb_ns: Nanos,
    next_perturbation: Option<Nanos>,
}

impl Flows {
    fn made(flows: u32, quantum_bytes: u32, turn: Turn, codel: Option<Codel>) -> Self {
        let count = flows.max(1) as usize;
        let flow = Flow { list: List::EMPTY, deficit: 0, next: NONE, active: false, codel };
        Flows {
            flows: vec![flow; count].into_boxed_slice(),
            bytes: vec![0; count].into_boxed_slice(),
            quantum: i64::from(quantum_bytes.max(1)),
            turn,
            new_first: false,
            new: Round::EMPTY,
            old: Round::EMPTY,
            salt: 0,
            perturb_ns: 0,
            next_perturbation: None,
        }
    }

    fn take<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>, index: usize) -> Option<Waiting<P>> {
        let taken = pool.pop_front(&mut self.flows[index].list)?;
        self.bytes[index] -= u64::from(taken.bytes);
        Some(taken)
    }

    fn end_turn(&mut self, is_new: bool) {
        let round = if is_new { &mut self.new } else { &mut self.old };
        round.pop_front(&self.flows);
    }

    /// The flow's hash is 16 bits; with the salt they are mixed once more.
    #[inline]
    fn queue_of(&self, flow: u16) -> usize {
        let mixed = if self.salt == 0 {
            u32::from(flow)
        } else {
            (u32::from(flow) ^ self.salt).wrapping_mul(0x9E37_79B1) >> 16
        };
        (mixed as usize * self.flows.len()) >> 16
    }
}

impl Lists for Flows {
    const TELLS_FLOWS_APART: bool = true;
    const DROPS_LATER: bool = true;

    /// The longest queue makes room afterwards.
    fn admits<P>(&self, _: &Waiting<P>, _: &Limit, _: &mut Counters) -> bool {
        true
    }

    #[inline]
    fn push<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>, arriving: Waiting<P>, _: &mut Counters) {
        if self.perturb_ns > 0 && self.next_perturbation.is_none() {
            self.next_perturbation = Some(arriving.arrival.saturating_add(self.perturb_ns));
        }
        let index = self.queue_of(arriving.flow);
        self.bytes[index] += u64::from(arriving.bytes);
        let flow = &mut self.flows[index];
        pool.push_back(&mut flow.list, arriving);
        if !flow.active {
            flow.active = true;
            flow.deficit = self.quantum;
            let round = if self.new_first { &mut self.new } else { &mut self.old };
            round.push_back(&mut self.flows, index as u32);
        }
    }

    /// From then on flows that met in a queue are in others; packets that wait stay where they are.
    #[inline]
    fn keep_time<P: Copy>(&mut self, until: Nanos, _: &Pool<Waiting<P>>) {
        if let Some(now) = self.next_perturbation.filter(|now| *now <= until) {
            let times = (until - now) / self.perturb_ns + 1;
            self.salt = self.salt.wrapping_add(times as u32);
            self.next_perturbation = Some(now.saturating_add(times.saturating_mul(self.perturb_ns)));
        }
    }

    fn next<P: Copy>(
        &mut self,
        pool: &mut Pool<Waiting<P>>,
        free_at: Nanos,
        counters: &mut Counters,
        dropped: &mut Fifo<(P, Drop)>,
        _: &mut Stream,
    ) -> Option<Waiting<P>> {
        loop {
            let is_new = self.new.first != NONE;
            let index = if is_new { self.new.first } else { self.old.first };
            let flow = self.flows.get_mut(index as usize)?;
            let first = pool.front(&flow.list).map(|waiting| i64::from(waiting.bytes));
            let over = match self.turn {
                Turn::Surplus => flow.deficit <= 0,
                Turn::Deficit => first.is_some_and(|bytes| bytes > flow.deficit),
            };
            if over {
                flow.deficit += self.quantum;
                self.end_turn(is_new);
                self.old.push_back(&mut self.flows, index);
                continue;
            }
            let Some(mut next) = pool.pop_front(&mut flow.list) else {
                self.end_turn(is_new);
                // A new flow without packets lets the old ones go first before it is new again (RFC 8290, 4.2).
                if is_new && self.old.first != NONE {
                    self.old.push_back(&mut self.flows, index);
                } else {
                    self.flows[index as usize].active = false;
                }
                continue;
            };
            let sojourn = counters.leave(&next, free_at);
            let backlog = &mut self.bytes[index as usize];
            *backlog -= u64::from(next.bytes);
            let verdict = flow.codel.as_mut().map_or(Verdict::Pass, |codel| {
                codel.judge(&Departure {
                    now: next.arrival + sojourn,
                    sojourn,
                    bytes: next.bytes,
                    backlog: *backlog,
                    ecn_capable: next.ecn().capable(),
                })
            });
            if verdict == Verdict::Drop {
                counters.aqm.add(next.bytes);
                dropped.push_back((next.packet, Drop::Aqm));
                continue;
            }
            next.mark_ce |= verdict == Verdict::Mark;
            flow.deficit -= i64::from(next.bytes);
            return Some(next);
        }
    }

    /// Takes a packet from the head of the queue with the most bytes.
    fn shed<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>) -> Option<Waiting<P>> {
        let most = self.bytes.iter().copied().max()?;
        // Frames may count as 0 bytes: a queue of such frames is not empty.
        let mut queues = self.bytes.iter().zip(&self.flows);
        let index = queues.position(|(bytes, flow)| *bytes == most && !flow.list.is_empty())?;
        self.take(pool, index)
    }

    /// Any packet: of the queue whose turn it is, so that the number of queues costs nothing.
    fn cut<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>, _: &mut Counters) -> Option<Waiting<P>> {
        loop {
            let is_new = self.new.first != NONE;
            let index = if is_new { self.new.first } else { self.old.first };
            self.flows.get(index as usize)?;
            if let Some(taken) = self.take(pool, index as usize) {
                return Some(taken);
            }
            self.end_turn(is_new);
            self.flows[index as usize].active = false;
        }
    }
}
