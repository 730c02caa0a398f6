//! When the application that limits a transfer writes, and how much: the laws of a bulk transfer, drawn as our own
//! generator draws them (emulator/traffic/src/flows).

use serde::Deserialize;

use crate::law::Law;
use crate::schedule::{Laws, Schedule};

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Writes {
    size_bytes: Law,
    interval_ns: Law,
    on_ns: Option<Law>,
    off_ns: Option<Law>,
}

impl Writes {
    /// All writes from `start_ns` on, each with the time at which it is due.
    pub fn schedule(&self, seed: u64, start_ns: i64) -> Schedule {
        let on_off = self.on_ns.zip(self.off_ns);
        let laws =
            Laws { count: None, sizes: self.size_bytes, bounds: 1..=u64::MAX, intervals: self.interval_ns, on_off };
        Schedule::new(laws, seed, start_ns.max(0) as u64, None)
    }
}
