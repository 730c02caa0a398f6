//! Bulk TCP: one connection that sends so many bytes, or until its stop; one way, or both ways at once. An application may
//! limit it, which writes so much at such times.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use serde::Deserialize;

use super::law::Law;
use super::schedule::{check_periods, Laws};
use super::transfer::{Load, Transfer};
use super::{Common, Ending, Ends, Flow, Received, Record, World};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// Each way; none: until the flow's stop.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// The sink sends as much on the same connection: part 1.
    #[serde(default)]
    pub bidirectional: bool,
    /// The writes of the application; none: it writes all at once.
    #[serde(default)]
    pub writes: Option<Writes>,
}

/// An application that limits its flow. What the socket has no room for yet is written as soon as it has; writes that are
/// due by then follow at once.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Writes {
    /// The size of one write.
    size_bytes: Law,
    /// From the time at which one is due to that of the next.
    interval_ns: Law,
    #[serde(default)]
    on_ns: Option<Law>,
    #[serde(default)]
    off_ns: Option<Law>,
}

const LEAST_INTERVAL_NS: f64 = 1000.0;

impl Bulk {
    pub fn check(&self, stops: bool) -> Result<(), String> {
        match self.bytes {
            None if !stops => Err("give bytes or stop_ns".into()),
            Some(0) => Err("bytes must be above 0".into()),
            _ => self.writes.as_ref().map_or(Ok(()), Writes::check),
        }
    }
}

impl Writes {
    fn check(&self) -> Result<(), String> {
        if self.interval_ns.mean() < LEAST_INTERVAL_NS {
            Err(format!("writes: interval_ns: give a mean of {LEAST_INTERVAL_NS} ns or more"))
        } else {
            check_periods(self.on_ns, self.off_ns).map_err(|why| format!("writes: {why}"))
        }
    }

    fn laws(&self) -> Laws {
        let on_off = self.on_ns.zip(self.off_ns);
        Laws { count: None, sizes: self.size_bytes, bounds: 1..=u64::MAX, intervals: self.interval_ns, on_off }
    }
}

struct BulkFlow(Arc<Transfer>);

pub fn new(common: Common, ends: Ends, work: &Bulk) -> Arc<dyn Flow> {
    let start_ns = common.start_ns;
    let writes = work.writes.as_ref().map(Writes::laws);
    let load = Load { kind: "bulk", part: 0, start_ns, bytes: work.bytes, bidirectional: work.bidirectional, writes };
    let number = common.number;
    let done = move |world: &World| world.running.one_ended(number);
    let transfer = Transfer::new(Arc::new(common), Arc::new(ends), load, done);
    Arc::new(BulkFlow(transfer))
}

impl Flow for BulkFlow {
    fn launch(self: Arc<Self>, world: &Arc<World>) -> Result<(), String> {
        self.0.launch(world)
    }

    fn end(&self, world: &World, ending: Ending, at_ns: i64) {
        self.0.end(world, ending, at_ns);
    }

    fn ended(&self) -> bool {
        self.0.ended()
    }

    fn senders(&self, see: &mut dyn FnMut(u32, BorrowedFd)) {
        self.0.senders(see);
    }

    fn received(&self, see: &mut dyn FnMut(u32, Received)) {
        self.0.received(see);
    }

    fn records(&self) -> Vec<Record> {
        self.0.records()
    }
}
