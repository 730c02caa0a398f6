//! What the spinner shows to the control thread: numbers that it alone writes (atomics, so that nobody ever waits
//! for anybody), and the changes that travel the other way.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use super::histogram::Histogram;
use super::naps::Waker;
use super::port::Facts;
use super::series::Series;
use ewan_model::{Counters, FlowTable, Nanos, TraceSettings};

pub struct Shared {
    pub cpu: u32,
    pub clock: &'static str,
    /// "nice -20", "SCHED_FIFO", or "normal" and why.
    pub policy: Mutex<String>,
    /// The clock at millisecond 0.
    pub started: Nanos,
    /// Another spinner is on this CPU, or there is no other CPU: give way when idle.
    pub give_way: AtomicBool,
    pub stop: AtomicBool,
    /// Something was sent by the channel of changes.
    pub changes_waiting: AtomicBool,
    pub gaps: Gaps,
    /// Times at which it slept of its own accord.
    pub rests: Gaps,
    /// Times at which it slept because nothing was to be done.
    pub naps: Gaps,
    /// How late a sleep ends at most, as far as was seen lately; 0: nothing was seen.
    pub wake_up_ns: AtomicU64,
    /// To be called after `stop` or `changes_waiting` was set.
    pub waker: Waker,
    /// Time spent in turns of the loop that moved a frame: what the links cost of this core.
    pub busy_ns: AtomicU64,
    /// Rows of all milliseconds before this one are written; the greatest number: nothing is being counted.
    pub settled_ms: AtomicU64,
    pub links: Vec<Link>,
}

impl Shared {
    pub fn new(cpu: u32, clock: &'static str, started: Nanos, links: Vec<Link>) -> ewan_system::Result<Shared> {
        Ok(Shared {
            cpu,
            clock,
            policy: Mutex::default(),
            started,
            give_way: false.into(),
            stop: false.into(),
            changes_waiting: false.into(),
            gaps: Gaps::default(),
            rests: Gaps::default(),
            naps: Gaps::default(),
            wake_up_ns: 0.into(),
            waker: Waker::new()?,
            busy_ns: 0.into(),
            settled_ms: 0.into(),
            links,
        })
    }
}

/// Times at which the spinner was not running.
#[derive(Default)]
pub struct Gaps {
    pub lost_ns: AtomicU64,
    pub lengths: Histogram,
}

impl Gaps {
    pub fn record(&self, ns: u64) {
        self.lost_ns.store(self.lost_ns.load(Relaxed) + ns, Relaxed);
        self.lengths.record(ns);
    }
}

pub struct Link {
    pub name: String,
    /// Why it serves no packets any more: a fault in the program, met while it served this link.
    pub ended: OnceLock<String>,
    /// Port a, port b.
    pub ports: [Arc<Facts>; 2],
    /// Asks the kernel about what never reached the ports.
    pub interfaces: super::interfaces::Interfaces,
    /// Forward, backward.
    pub directions: [DirectionState; 2],
}

pub struct DirectionState {
    /// What its trace says, and `set` therefore refuses.
    pub says: TraceSettings,
    pub series: Series,
    /// From the instant at which a packet was due until the system call that handed it over was back: by then it is in
    /// its receiver's queue. Packets that one call handed over are all counted until its end, so none is understated.
    pub lateness: Histogram,
    /// The same, without what was due while the spinner had lost its CPU, or lent it to others.
    pub lateness_undisturbed: Histogram,
    /// How long the kernel took for what was handed over at once.
    pub hand_over: Histogram,
    /// As of the last millisecond with events.
    pub totals: Mutex<Totals>,
    /// The counters of each flow, where flows are counted, as of when somebody last wanted to know: the spinner copies them,
    /// and clears `flows_wanted`.
    pub flows: Mutex<Option<FlowTable>>,
    pub flows_wanted: AtomicBool,
    /// Arrival stamps that could not be true (in the future, or from before the ring was empty), replaced by the time of
    /// reading.
    pub stamps_replaced: AtomicU64,
}

#[derive(Clone, Default)]
pub struct Totals {
    pub model: Counters,
}

impl DirectionState {
    pub fn new(says: TraceSettings, milliseconds: usize) -> DirectionState {
        DirectionState {
            says,
            series: Series::new(milliseconds),
            lateness: Histogram::new(),
            lateness_undisturbed: Histogram::new(),
            hand_over: Histogram::new(),
            totals: Mutex::default(),
            flows: Mutex::default(),
            flows_wanted: false.into(),
            stamps_replaced: AtomicU64::new(0),
        }
    }
}
