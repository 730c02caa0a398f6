//! A queue for each class of packets, told apart by their DSCP (RFC 2474). Strict: a class goes before all those behind
//! it. Weighted: while several wait they share the rate by their weights, by deficit round robin (Shreedhar & Varghese
//! 1996).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Config, Limit, Lists, Waiting};
use crate::check::{require, CheckResult, MOST_BYTES, MOST_PACKETS};
use crate::counters::{Counters, Drop, MOST_CLASSES};
use crate::fifo::{Fifo, List, Pool};
use crate::rng::Stream;
use crate::Nanos;

const MOST_WEIGHT: u32 = 1_000;
const LONGEST_NAME: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduler {
    /// A class goes before all those behind it.
    Strict,
    /// Classes share the rate by their weights, in bytes.
    Weighted,
}

/// Packets with one of these DSCPs (RFC 2474), and what may wait of them: at least one limit is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    pub name: String,
    pub dscp: Vec<u8>,
    pub weight: u32,
    pub limit_packets: Option<u64>,
    pub limit_bytes: Option<u64>,
}

/// A queue for each class of DSCP, with a limit of its own; what no class names goes to the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassesConfig {
    pub scheduler: Scheduler,
    pub classes: Vec<Class>,
}

impl Config for ClassesConfig {
    type Model = Classes;

    fn check(&self) -> CheckResult {
        every_class(&self.classes)
    }

    fn model(&self) -> Classes {
        Classes::new(self.scheduler, &self.classes)
    }

    fn class_names(&self) -> Vec<&str> {
        self.classes.iter().map(|class| class.name.as_str()).collect()
    }
}

/// Of a weight of 1: a large packet.
const QUANTUM_BYTES: i64 = 1538;

fn every_class(classes: &[Class]) -> CheckResult {
    require((1..=MOST_CLASSES).contains(&classes.len()), || {
        format!("classes: {} of them: write 1 to {MOST_CLASSES}", classes.len())
    })?;
    let mut owner = [None; 64];
    for Class { name, dscp, weight, limit_packets, limit_bytes } in classes {
        let begins: String = name.chars().take(LONGEST_NAME).collect();
        let told = |rest: String| format!("class {begins:?}: {rest}");
        require(!name.is_empty() && name.len() <= LONGEST_NAME, || told("a name has 1 to 32 bytes".into()))?;
        require((1..=MOST_WEIGHT).contains(weight), || told(format!("weight {weight}: write 1 to {MOST_WEIGHT}")))?;
        require(limit_packets.is_some() || limit_bytes.is_some(), || {
            told("give limit_packets or limit_bytes, or both".into())
        })?;
        for (key, limit, most) in
            [("limit_packets", limit_packets, MOST_PACKETS), ("limit_bytes", limit_bytes, MOST_BYTES)]
        {
            let limit = limit.unwrap_or(1);
            require((1..=most).contains(&limit), || told(format!("{key} {limit}: write 1 to {most}")))?;
        }
        for point in dscp {
            let place = owner.get_mut(usize::from(*point));
            require(place.is_some(), || told(format!("dscp {point}: write 0 to 63")))?;
            if let Some(place) = place {
                require(place.is_none(), || told(format!("dscp {point}: another class has it")))?;
                *place = Some(());
            }
        }
    }
    Ok(())
}

#[derive(Clone, Debug)]
struct ClassQueue {
    list: List,
    limit: Limit,
    quantum: i64,
    deficit: i64,
}

#[derive(Clone, Debug)]
pub struct Classes {
    classes: Box<[ClassQueue]>,
    of_dscp: [u8; 64],
    scheduler: Scheduler,
    /// Weighted: whose turn it is.
    turn: usize,
}

impl Classes {
    /// What no class names belongs to the last one.
    pub fn new(scheduler: Scheduler, classes: &[Class]) -> Self {
        let mut of_dscp = [classes.len().saturating_sub(1) as u8; 64];
        for (index, class) in classes.iter().enumerate() {
            for point in &class.dscp {
                of_dscp[usize::from(point & 63)] = index as u8;
            }
        }
        let made = |class: &Class| ClassQueue {
            list: List::EMPTY,
            limit: Limit::new(class.limit_packets, class.limit_bytes),
            quantum: QUANTUM_BYTES * i64::from(class.weight),
            deficit: 0,
        };
        Classes { classes: classes.iter().map(made).collect(), of_dscp, scheduler, turn: 0 }
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

    fn class_of(&self, traffic_class: u8) -> usize {
        usize::from(self.of_dscp[usize::from(traffic_class >> 2)])
    }
}

impl Lists for Classes {
    /// Has its class room? Counts what has not.
    fn admits<P>(&self, arriving: &Waiting<P>, _: &Limit, counters: &mut Counters) -> bool {
        let index = self.class_of(arriving.traffic_class);
        let counted = &mut counters.classes[index];
        let admitted = self.classes[index].limit.admits(counted.queued, arriving.bytes);
        counted.dropped_packets += u64::from(!admitted);
        admitted
    }

    fn push<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>, arriving: Waiting<P>, counters: &mut Counters) {
        let index = self.class_of(arriving.traffic_class);
        counters.classes[index].queued.add(arriving.bytes);
        pool.push_back(&mut self.classes[index].list, arriving);
    }

    fn next<P: Copy>(
        &mut self,
        pool: &mut Pool<Waiting<P>>,
        free_at: Nanos,
        counters: &mut Counters,
        _: &mut Fifo<(P, Drop)>,
        _: &mut Stream,
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

    fn cut<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>, counters: &mut Counters) -> Option<Waiting<P>> {
        let index = self.classes.iter().position(|class| !class.list.is_empty())?;
        let taken = pool.pop_front(&mut self.classes[index].list)?;
        counters.classes[index].queued.remove(taken.bytes);
        Some(taken)
    }

    fn class_count(&self) -> usize {
        self.classes.len()
    }
}
