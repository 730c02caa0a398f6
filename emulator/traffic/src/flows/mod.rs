//! Traffic: all flows of a run at once, of many kinds, between many network namespaces, in one process.
//!
//! In: a request (JSON, `request`), a directory, the instant T0 that all times count from. Out, in that directory:
//! traffic.json with a record of every flow, series.csv (TCP_INFO of senders, and the states of their congestion controls),
//! goodput.csv (what receivers got), exchanges.csv (requests with their responses, iterations); where a flow is of media
//! also media.csv (what its rate control knew) and frames.csv. A flow's sockets and threads are made shortly before its
//! start; its threads stay inside long system calls while data flow, for the way into user space is what costs most,
//! above all in the virtual clock. One thread (`conductor`) launches flows, ends them and looks at them, each at its
//! instant.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use ewan_system::clock::monotonic_ns;

use crate::clock::{sleep_until_monotonic, Clock};
use crate::socket::{Endpoint, Namespaces, Options};
use crate::table::Table;
use crate::tcp_info::Info;

mod arrivals;
mod bulk;
mod bytes;
mod command;
mod condition;
mod conductor;
pub(crate) mod law;
mod local_end;
mod media;
mod messages;
mod records;
mod request;
mod requests;
mod schedule;
mod steps;
mod transfer;
mod udp;
mod watch;

pub use bytes::{take, Filling};
pub use command::run;
use local_end::{LocalEnd, Side};
pub use records::{Exchange, FrameRow, MediaSample, Record, UdpRecord};
use request::FlowRequest;
pub use request::Request;
use steps::{StepEnd, Steps};

/// How long before its start a flow is launched, so that its threads are there when it comes.
pub const LEAD_NS: u64 = 20_000_000;
/// How long it takes to launch a flow of a few sockets and threads, on a busy machine.
pub const LAUNCH_NS: u64 = 400_000;
/// A thread here calls the kernel and does little else.
pub const STACK_BYTES: usize = 64 << 10;

/// What all flows of a run share.
pub struct World {
    pub namespaces: Namespaces,
    pub clock: Clock,
    /// T0 on CLOCK_MONOTONIC.
    pub begin_ns: i64,
    /// Width of the receivers' bins; 0: none are kept.
    pub series_ns: u64,
    /// From T0; what still runs then is ended.
    pub longest_ns: u64,
    /// What flows send.
    pub filling: Filling,
    pub running: Running,
    exchanges: Table<Exchange>,
    /// None: no flow is of media.
    frames: Option<Table<FrameRow>>,
}

impl World {
    /// Since T0; negative before it.
    pub fn now_ns(&self) -> i64 {
        monotonic_ns() - self.begin_ns
    }

    /// Until `at_ns` after T0; returns at once when that is past. For sleeps that `end` must cut short: `Gate`.
    pub fn sleep_until(&self, at_ns: u64) {
        sleep_until_monotonic(self.begin_ns.saturating_add_unsigned(at_ns));
    }

    /// A row of exchanges.csv; may be called by any thread.
    pub fn exchange(&self, row: Exchange) {
        if let Err(error) = self.exchanges.add(&row) {
            self.running.fail(error);
        }
    }

    /// A row of frames.csv; may be called by any thread.
    pub fn frame(&self, row: &FrameRow) {
        if let Some(Err(error)) = self.frames.as_ref().map(|frames| frames.add(row)) {
            self.running.fail(error);
        }
    }

    /// A thread with a small stack, which inherits this one's priority and CPUs.
    pub fn spawn(&self, what: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
        let made = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
        made.map(drop).map_err(|error| format!("{what}: thread: {error}"))
    }
}

/// Why a flow ends.
#[derive(Clone, Debug)]
pub enum Ending {
    /// By itself.
    Completed,
    /// At its `stop_ns`.
    InTime,
    /// It was given no more time, or the run was interrupted.
    Stopped,
    Failed(String),
}

impl Ending {
    /// What the record says of it.
    pub fn error(&self) -> Option<String> {
        match self {
            Self::Completed | Self::InTime => None,
            Self::Stopped => Some("it had not ended in the longest time there was".into()),
            Self::Failed(why) => Some(why.clone()),
        }
    }
}

/// One flow of the request, made shortly before its start.
pub trait Flow: Send + Sync {
    /// Opens sockets and starts threads that wait for the start; called once, `lead_ns` before the flow's start. After
    /// an error the conductor calls `end` with it.
    fn launch(self: Arc<Self>, world: &Arc<World>) -> Result<(), String>;

    /// The first call counts, and takes the flow's last figures: its threads come out of the kernel soon and close its
    /// sockets without waiting for what is on its way. A flow that ends, by itself too, calls
    /// `world.running.one_ended` exactly once.
    fn end(&self, world: &World, ending: Ending, at_ns: i64);

    fn ended(&self) -> bool;

    /// Each TCP sender with its part, while it sends.
    fn senders(&self, see: &mut dyn FnMut(u32, BorrowedFd));

    /// What the rate control of a media sender knows, while it sends.
    fn media(&self) -> Option<MediaSample> {
        None
    }

    /// What receivers have got so far, by part, of the parts that have begun; after a part's end its last figure at least
    /// once more.
    fn received(&self, see: &mut dyn FnMut(u32, Received));

    /// When it has ended.
    fn records(&self) -> Vec<Record>;
}

/// Payload at a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// In order: what a program can have. After a loss was made good, much comes at once that had arrived long before.
    pub delivered_bytes: u64,
    /// As it came over the wire, out of order and more than once too; none: the flow does not tell.
    pub arrived_bytes: Option<u64>,
}

impl Received {
    pub const NOTHING: Self = Self { delivered_bytes: 0, arrived_bytes: Some(0) };

    pub fn in_order(delivered_bytes: u64) -> Self {
        Self { delivered_bytes, arrived_bytes: None }
    }

    /// A count never falls, though a mean that arrivals are made of may.
    fn after(self, earlier: &Self) -> Self {
        Self {
            delivered_bytes: self.delivered_bytes.max(earlier.delivered_bytes),
            arrived_bytes: self.arrived_bytes.map(|bytes| bytes.max(earlier.arrived_bytes.unwrap_or(0))),
        }
    }

    /// From the receiver's end alone, whose segments are as large as the last full one.
    pub fn alone(receiver: &Info) -> Self {
        let delivered_bytes = receiver.received_bytes();
        let arrived = u64::from(receiver.data_segments_in()) * u64::from(receiver.received_segment_bytes());
        Self { delivered_bytes, arrived_bytes: Some(arrived.max(delivered_bytes)) }
    }

    /// From both ends of a connection. The receiver counts segments; what one carries is the mean of those that the
    /// sender sent, which in bulk are all full.
    pub fn of(receiver: &Info, sender: Option<&Info>) -> Self {
        let delivered_bytes = receiver.received_bytes();
        let came = u128::from(receiver.data_segments_in());
        let arrived = match sender.and_then(Info::sent_payload) {
            Some((bytes, segments)) => Some((came * u128::from(bytes) / u128::from(segments)) as u64),
            None => (came == 0).then_some(0),
        };
        Self { delivered_bytes, arrived_bytes: arrived.map(|bytes| bytes.max(delivered_bytes)) }
    }
}

/// What every kind of flow is made of.
#[derive(Clone, Debug)]
pub struct Common {
    /// The flow's own in the run, from 0.
    pub number: u32,
    pub start_ns: u64,
    pub stop_ns: Option<u64>,
    pub socket: Options,
    /// One end alone is here.
    pub half: Option<LocalEnd>,
    /// This flow's own.
    pub seed: u64,
}

impl Common {
    /// Whether an end is in this process.
    pub fn here(&self, side: Side) -> bool {
        local_end::here(self.half.as_ref(), side)
    }

    /// What this flow draws from for one of its purposes, each with a number of its own.
    pub fn stream(&self, purpose: u64) -> law::Stream {
        law::stream(self.seed, purpose)
    }
}

/// Of flows with two ends.
#[derive(Clone, Debug)]
pub struct Ends {
    pub from: Endpoint,
    pub to: Endpoint,
}

/// How many flows have not ended, which steps have, and whether all are to end now; whoever ends the last one, or a step,
/// wakes the conductor.
pub struct Running {
    state: Mutex<State>,
    changed: Condvar,
    /// T0 on CLOCK_MONOTONIC.
    begin_ns: i64,
}

#[derive(Default)]
struct State {
    flows: usize,
    steps: Steps,
    /// Steps whose end the conductor has not been told.
    news: Vec<StepEnd>,
    interrupted: bool,
    error: Option<String>,
}

/// What the conductor was woken for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// It is time.
    InTime,
    /// Steps ended: flows may have waited for them.
    StepsEnded(Vec<StepEnd>),
    NoneLeft,
    Interrupted,
    /// Results cannot be kept.
    Failed(String),
}

impl Running {
    pub(crate) fn new(flows: &[FlowRequest], begin_ns: i64) -> Self {
        let state = State { flows: flows.len(), steps: Steps::new(flows), ..State::default() };
        Self { state: Mutex::new(state), changed: Condvar::new(), begin_ns }
    }

    /// `flow`: its number.
    pub fn one_ended(&self, flow: u32) {
        let mut state = self.lock();
        state.flows -= 1;
        let ended = state.steps.flow_ended(flow, monotonic_ns() - self.begin_ns);
        state.news.extend(ended);
        if state.flows == 0 || ended.is_some() {
            self.changed.notify_all();
        }
    }

    /// A step that others carry out ended so long after T0.
    pub(crate) fn step_ended(&self, step: u32, at_ns: i64) {
        let mut state = self.lock();
        let ended = state.steps.step_ended(step, at_ns);
        state.news.push(ended);
        self.changed.notify_all();
    }

    /// When the last of these steps ended, in ns from T0; none: one of them has not.
    pub(crate) fn all_ended(&self, steps: &[u32]) -> Option<i64> {
        self.lock().steps.all_ended(steps)
    }

    pub(crate) fn interrupt(&self) {
        self.lock().interrupted = true;
        self.changed.notify_all();
    }

    pub(crate) fn fail(&self, error: String) {
        self.lock().error.get_or_insert(error);
        self.changed.notify_all();
    }

    /// Until `at_ns` on CLOCK_MONOTONIC, or until a step ends, none is left, or all are to end.
    ///
    /// Not `wait_timeout_while`: that goes on waiting for nothing at the very instant it was to end at, and in the virtual
    /// clock this instant lasts until somebody sleeps.
    pub(crate) fn wait_until(&self, at_ns: i64) -> WakeReason {
        let mut state = self.lock();
        loop {
            if let Some(error) = &state.error {
                return WakeReason::Failed(error.clone());
            } else if state.interrupted {
                return WakeReason::Interrupted;
            } else if !state.news.is_empty() {
                return WakeReason::StepsEnded(std::mem::take(&mut state.news));
            } else if state.flows == 0 {
                return WakeReason::NoneLeft;
            }
            let left_ns = at_ns - monotonic_ns();
            if left_ns <= 0 {
                return WakeReason::InTime;
            }
            let left = Duration::from_nanos(left_ns as u64);
            state = self.changed.wait_timeout(state, left).expect("no thread fails with the lock held").0;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no thread fails with the lock held")
    }
}

/// A sleep that another thread can cut short, once and for all: think times, on and off periods, the next arrival.
#[derive(Default)]
pub struct Gate {
    closed: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    pub fn close(&self) {
        *self.closed.lock().expect("no thread fails with the lock held") = true;
        self.changed.notify_all();
    }

    /// Until the gate is closed.
    pub fn wait(&self) {
        let closed = self.closed.lock().expect("no thread fails with the lock held");
        drop(self.changed.wait_while(closed, |closed| !*closed).expect("as above"));
    }

    /// True at `at_ns` after T0, or at once when that is past; false as soon as the gate is closed.
    pub fn sleep_until(&self, world: &World, at_ns: u64) -> bool {
        let at_ns = world.begin_ns.saturating_add_unsigned(at_ns);
        let mut closed = self.closed.lock().expect("no thread fails with the lock held");
        while !*closed {
            let left_ns = at_ns - monotonic_ns();
            if left_ns <= 0 {
                return true;
            }
            let left = Duration::from_nanos(left_ns as u64);
            closed = self.changed.wait_timeout(closed, left).expect("as above").0;
        }
        false
    }
}
