//! Bulk TCP: one connection that sends so many bytes, or until its stop; one way, or both ways at once.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use serde::Deserialize;

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
}

impl Bulk {
    pub fn check(&self, stops: bool) -> Result<(), String> {
        match self.bytes {
            None if !stops => Err("give bytes or stop_ns".into()),
            Some(0) => Err("bytes must be above 0".into()),
            _ => Ok(()),
        }
    }
}

struct BulkFlow(Arc<Transfer>);

pub fn new(common: Common, ends: Ends, work: &Bulk) -> Arc<dyn Flow> {
    let start_ns = common.start_ns;
    let load = Load { kind: "bulk", part: 0, start_ns, bytes: work.bytes, bidirectional: work.bidirectional };
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
