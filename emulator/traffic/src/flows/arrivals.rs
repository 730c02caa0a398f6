//! Short-lived TCP: connections that arrive at intervals drawn from a law, each to carry a number of bytes drawn from
//! another, and end. One thread launches each shortly before its arrival, so that only those are there that are active.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use serde::Deserialize;

use super::law::{Law, Sum};
use super::local_end::Side;
use super::transfer::{Load, Transfer};
use super::{Common, Ending, Ends, Flow, Gate, Received, Record, World, LEAD_NS};

const MOST_ARRIVALS: u64 = 10_000_000;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// None: until the flow's stop.
    #[serde(default)]
    pub count: Option<u64>,
    /// From one arrival to the next; the first arrives at the flow's start.
    pub interval_ns: Law,
    /// Below one byte is one byte.
    pub size_bytes: Law,
}

impl Arrivals {
    pub fn check(&self, stops: bool) -> Result<(), String> {
        match self.count {
            None if !stops => Err("give count or stop_ns".into()),
            Some(count) if count == 0 || count > MOST_ARRIVALS => {
                Err(format!("count {count}: give 1 to {MOST_ARRIVALS}"))
            }
            _ => Ok(()),
        }
    }
}

struct ArrivalsFlow {
    common: Arc<Common>,
    ends: Arc<Ends>,
    work: Arrivals,
    gate: Gate,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    active: BTreeMap<u32, Arc<Transfer>>,
    /// They ended since somebody looked at what was received.
    unseen: Vec<Arc<Transfer>>,
    records: Vec<Record>,
    /// Where the source is elsewhere.
    listener: Option<Arc<TcpListener>>,
    /// Nothing arrives any more.
    over: bool,
    ended: bool,
    ending: Option<Ending>,
}

pub fn new(common: Common, ends: Ends, work: &Arrivals) -> Arc<dyn Flow> {
    Arc::new(ArrivalsFlow {
        common: Arc::new(common),
        ends: Arc::new(ends),
        work: work.clone(),
        gate: Gate::default(),
        state: Mutex::default(),
    })
}

impl ArrivalsFlow {
    fn arrive(self: &Arc<Self>, world: &Arc<World>) {
        // Two streams: other sizes leave the arrivals where they were.
        let mut intervals = self.common.stream(0);
        let mut sizes = self.common.stream(1);
        let most = self.work.count.unwrap_or(MOST_ARRIVALS) as u32;
        let mut arrivals = Sum::from_ns(self.common.start_ns);
        for part in 0..most {
            let at_ns = arrivals.ns();
            let out_of_time = self.common.stop_ns.is_some_and(|stop_ns| at_ns >= stop_ns) || at_ns >= world.longest_ns;
            if out_of_time || !self.gate.sleep_until(world, at_ns.saturating_sub(LEAD_NS)) {
                break;
            }
            let bytes = self.work.size_bytes.draw_whole(&mut sizes).max(1);
            self.launch_one(world, part, at_ns, bytes);
            arrivals.add(self.work.interval_ns.draw(&mut intervals));
        }
        let mut state = self.lock();
        state.over = true;
        self.end_if_all(world, state);
    }

    /// The source is elsewhere: what comes, in the order in which it comes. Which part each is, and how much it was to
    /// be, the source knows.
    fn hear(self: &Arc<Self>, world: &Arc<World>, listener: &TcpListener) {
        let most = self.work.count.unwrap_or(MOST_ARRIVALS) as u32;
        for part in 0..most {
            let Ok((server, from)) = listener.accept() else { break };
            let Some(transfer) = self.begin(part, world.now_ns().max(0) as u64, None) else { break };
            let there = world.clone();
            let taking = transfer.clone();
            if let Err(why) = world.spawn("receiver", move || taking.take_over(&there, server, from)) {
                transfer.end(world, Ending::Failed(why), world.now_ns());
            }
        }
        let mut state = self.lock();
        state.over = true;
        self.end_if_all(world, state);
    }

    fn launch_one(self: &Arc<Self>, world: &Arc<World>, part: u32, start_ns: u64, bytes: u64) {
        let Some(transfer) = self.begin(part, start_ns, Some(bytes)) else { return };
        if let Err(why) = transfer.launch(world) {
            transfer.end(world, Ending::Failed(why), world.now_ns());
        }
        // The flow may have been ended between the two.
        let ending = self.lock().ending.clone();
        if let Some(ending) = ending {
            transfer.end(world, ending, world.now_ns());
        }
    }

    /// One of those that are active; none: the flow is over.
    fn begin(self: &Arc<Self>, part: u32, start_ns: u64, bytes: Option<u64>) -> Option<Arc<Transfer>> {
        let load = Load { kind: "arrivals", part, start_ns, bytes, bidirectional: false, writes: None };
        let flow: Weak<Self> = Arc::downgrade(self);
        let done = move |world: &World| {
            if let Some(flow) = flow.upgrade() {
                flow.one_done(world, part);
            }
        };
        let transfer = Transfer::new(self.common.clone(), self.ends.clone(), load, done);
        let mut state = self.lock();
        if state.over {
            return None;
        }
        state.active.insert(part, transfer.clone());
        Some(transfer)
    }

    fn one_done(&self, world: &World, part: u32) {
        let mut state = self.lock();
        if let Some(transfer) = state.active.remove(&part) {
            state.records.extend(transfer.records());
            if world.series_ns > 0 {
                state.unseen.push(transfer);
            }
        }
        self.end_if_all(world, state);
    }

    fn end_if_all(&self, world: &World, mut state: MutexGuard<State>) {
        if state.over && state.active.is_empty() && !state.ended {
            state.ended = true;
            drop(state);
            world.running.one_ended(self.common.number);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread fails with the lock held")
    }
}

impl Flow for ArrivalsFlow {
    fn launch(self: Arc<Self>, world: &Arc<World>) -> Result<(), String> {
        let there = world.clone();
        if let Some(half) = self.common.half.as_ref().filter(|half| half.side == Side::Sink) {
            let listener = world.namespaces.listen_at(&self.ends.to, half.port, &self.common.socket)?;
            let listener = Arc::new(listener);
            self.lock().listener = Some(listener.clone());
            return world.spawn("arrivals", move || self.hear(&there, &listener));
        }
        world.spawn("arrivals", move || self.arrive(&there))
    }

    fn end(&self, world: &World, ending: Ending, at_ns: i64) {
        let active: Vec<Arc<Transfer>> = {
            let mut state = self.lock();
            state.ending.get_or_insert(ending.clone());
            state.over = true;
            if let Some(listener) = state.listener.take() {
                // Wakes a thread in accept(2).
                let _ = nix::sys::socket::shutdown(listener.as_raw_fd(), nix::sys::socket::Shutdown::Both);
            }
            state.active.values().cloned().collect()
        };
        self.gate.close();
        // Each takes the lock when it is done.
        active.iter().for_each(|transfer| transfer.end(world, ending.clone(), at_ns));
        self.end_if_all(world, self.lock());
    }

    fn ended(&self) -> bool {
        self.lock().ended
    }

    fn senders(&self, see: &mut dyn FnMut(u32, BorrowedFd)) {
        self.lock().active.values().for_each(|transfer| transfer.senders(see));
    }

    fn received(&self, see: &mut dyn FnMut(u32, Received)) {
        let mut state = self.lock();
        std::mem::take(&mut state.unseen).iter().for_each(|transfer| transfer.received(see));
        state.active.values().for_each(|transfer| transfer.received(see));
    }

    fn records(&self) -> Vec<Record> {
        let state = self.lock();
        let mut records = state.records.clone();
        records.sort_by_key(|record| record.part);
        if let (true, Some(error)) = (records.is_empty(), state.ending.as_ref().and_then(Ending::error)) {
            records.push(Record {
                flow: self.common.number,
                kind: "arrivals",
                congestion: self.common.socket.congestion.clone(),
                scheduled_ns: self.common.start_ns,
                error: Some(error),
                ..Record::default()
            });
        }
        records
    }
}
