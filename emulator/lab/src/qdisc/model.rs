//! The queueing discipline `ewan` of the virtual kernel: the link's model, which a live link's process has too.
//!
//! In: a direction, or a change of one. Out: requests in a `Batch`; what the link counted, from the kernel's answer. Both
//! sides speak JSON (emulator/kernel/ewan/pkt_sch_ewan.h), the plan's own words.

use ewan_model::config::Direction;
use ewan_model::{Change, DirectionReport, FlowReport};
use ewan_system::netlink::{attributes, Batch, Socket};
use serde::Serialize;

use super::{request, tcmsg, Place, CREATE, ROOT, TCA_OPTIONS};

const TCA_EWAN_TEXT: u16 = 1;
const TCA_EWAN_DIRECTION: u16 = 2;
const TCA_EWAN_CHANGE: u16 = 3;
const TCA_EWAN_OTHER: u16 = 4;
/// An attribute's length has 16 bits.
const PART: usize = 30_000;

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelStatistics {
    pub name: String,
    /// "forward" or "backward".
    pub direction: &'static str,
    #[serde(flatten)]
    pub report: DirectionReport,
}

/// `other`: the interface at which the link's other direction is.
pub fn make(batch: &mut Batch, place: Place, direction: &Direction, other: u32, at: &str) {
    tell(batch, CREATE, place, direction, &[(TCA_EWAN_OTHER, &other.to_ne_bytes()), (TCA_EWAN_DIRECTION, &[])], at);
    batch.needs("the queueing discipline ewan, which the virtual kernel has alone");
}

pub fn change(batch: &mut Batch, place: Place, change: &Change, at: &str) {
    tell(batch, 0, place, change, &[(TCA_EWAN_CHANGE, &[])], at);
}

/// A long text takes several requests, of which the last one says what to do with it.
fn tell(batch: &mut Batch, flags: i32, place: Place, what: &impl Serialize, then: &[(u16, &[u8])], at: &str) {
    let text = serde_json::to_vec(what).expect("numbers and texts");
    let mut parts = text.chunks(PART).peekable();
    let mut flags = flags;
    while let Some(part) = parts.next() {
        request(batch, flags, place, "ewan", at.to_owned(), |body| {
            body.nested(TCA_OPTIONS, &[], |options| {
                options.bytes(TCA_EWAN_TEXT, part);
                if parts.peek().is_none() {
                    for (key, value) in then {
                        options.bytes(*key, value);
                    }
                }
            });
        });
        flags = 0;
    }
}

/// None: the kernel's link is not made yet.
pub fn report(stats: &[u8]) -> Option<DirectionReport> {
    serde_json::from_slice(stats).ok()
}

/// The counters of each flow that leaves by the interface `exit`: a class of its queueing discipline.
pub fn flows(exit: u32, socket: &Socket) -> Result<Vec<FlowReport>, String> {
    const TCA_STATS2: u16 = 7;
    const TCA_STATS_APP: u16 = 4;
    let here = tcmsg(Place { index: exit, parent: ROOT, handle: 0 }, 0);
    let mut found = Vec::new();
    socket.dump(libc::RTM_GETTCLASS, &here, &mut |message| {
        let of_class = attributes(message.get(here.len()..).unwrap_or_default());
        let stats = of_class.filter(|(kind, _)| *kind == TCA_STATS2).flat_map(|(_, stats)| attributes(stats));
        let reports = stats.filter(|(kind, _)| *kind == TCA_STATS_APP);
        found.extend(reports.filter_map(|(_, report)| serde_json::from_slice::<FlowReport>(report).ok()));
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ewan_model::config::{Delay, Loss};

    #[test]
    fn what_is_long_is_told_in_parts() {
        let place = Place { index: 2, parent: u32::MAX, handle: super::super::ROOT };
        let told = |change: &Change| {
            let mut batch = Batch::default();
            super::change(&mut batch, place, change, "link core forward");
            batch.count()
        };
        assert_eq!(told(&Change { rate_bps: Some(9000), ..Change::default() }), 1);
        let pattern = Loss::Pattern { pattern: "0".repeat(2 * PART) };
        assert_eq!(told(&Change { loss: Some(pattern), ..Change::default() }), 3);
        let delays_ns = vec![100_000_000; 10_000];
        assert_eq!(told(&Change { delay: Some(Delay::Table { delays_ns }), ..Change::default() }), 4);
    }
}
