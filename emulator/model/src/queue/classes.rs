//! A queue for each class of packets, told apart by their DSCP (RFC 2474). Strict: a class goes before all those behind
//! it. Weighted: while several wait they share the rate by their weights, by deficit round robin (Shreedhar & Varghese
//! 1996).

use alloc::boxed::Box;

use super::{Limit, Waiting};
use crate::config::{self, Scheduler};
use crate::counters::Counters;
use crate::fifo::{List, Pool};
use crate::Nanos;

/// Of a weight of 1: a large packet.
const QUANTUM_BYTES: i64 = 1538;

#[derive(Clone, Debug)]
struct Class {
    list: List,
    limit: Limit,
    quantum: i64,
    deficit: i64,
}

#[derive(Clone, Debug)]
pub struct Classes {
    classes: Box<[Class]>,
    of_dscp: [u8; 64],
    scheduler: Scheduler,
    /// Weighted: whose turn it is.
    turn: usize,
}

impl Classes {
    /// What no class names belongs to the last one.
    pub fn new(scheduler: Scheduler, classes: &[config::Class]) -> Self {
        let mut of_dscp = [classes.len().saturating_sub(1) as u8; 64];
        for (index, class) in classes.iter().enumerate() {
            for point in &class.dscp {
                of_dscp[usize::from(point & 63)] = index as u8;
            }
        }
        let made = |class: &config::Class| Class {
            list: List::EMPTY,
            limit: Limit::new(class.limit_packets, class.limit_bytes),
            quantum: QUANTUM_BYTES * i64::from(class.weight),
            deficit: 0,
        };
        Classes { classes: classes.iter().map(made).collect(), of_dscp, scheduler, turn: 0 }
    }

    pub fn count(&self) -> usize {
        self.classes.len()
    }

    /// Has its class room? Counts what has not.
    pub fn admit<P>(&self, arriving: &Waiting<P>, counters: &mut Counters) -> bool {
        let index = self.class_of(arriving.traffic_class);
        let counted = &mut counters.classes[index];
        let admitted = self.classes[index].limit.admits(counted.queued, arriving.bytes);
        counted.dropped_packets += u64::from(!admitted);
        admitted
    }

    pub fn push<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>, arriving: Waiting<P>, counters: &mut Counters) {
        let index = self.class_of(arriving.traffic_class);
        counters.classes[index].queued.add(arriving.bytes);
        pool.push_back(&mut self.classes[index].list, arriving);
    }

    pub fn next<P: Copy>(
        &mut self,
        pool: &mut Pool<Waiting<P>>,
        free_at: Nanos,
        counters: &mut Counters,
    ) -> Option<Waiting<P>> {
        let index = match self.scheduler {
            Scheduler::Strict => self.classes.iter().position(|class| !class.list.is_empty())?,
            Scheduler::Weighted => self.in_turn()?,
        };
        let class = &mut self.classes[index];
        let next = pool.pop_front(&mut class.list)?;
        class.deficit -= i64::from(next.bytes);
        let sojourn = counters.leave(&next, free_at);
        let counted = &mut counters.classes[index];
        counted.leave(next.bytes, sojourn);
        counted.served_packets += 1;
        Some(next)
    }

    /// The class that sends next; an empty one loses what it had left.
    fn in_turn(&mut self) -> Option<usize> {
        if self.classes.iter().all(|class| class.list.is_empty()) {
            return None;
        }
        loop {
            let class = &mut self.classes[self.turn];
            if !class.list.is_empty() && class.deficit > 0 {
                return Some(self.turn);
            }
            class.deficit = if class.list.is_empty() { 0 } else { class.deficit + class.quantum };
            self.turn = (self.turn + 1) % self.classes.len();
        }
    }

    /// Any packet.
    pub fn cut<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>, counters: &mut Counters) -> Option<Waiting<P>> {
        let index = self.classes.iter().position(|class| !class.list.is_empty())?;
        let taken = pool.pop_front(&mut self.classes[index].list)?;
        counters.classes[index].queued.remove(taken.bytes);
        Some(taken)
    }

    fn class_of(&self, traffic_class: u8) -> usize {
        usize::from(self.of_dscp[usize::from(traffic_class >> 2)])
    }
}
