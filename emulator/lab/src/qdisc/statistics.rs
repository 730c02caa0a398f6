//! What the kernel counted in its links.
//!
//! In: the plan of a lab that is up. Out: per link and direction, packets and bytes through each level of a kernel or tbf
//! link, and what the model of an ewan link counted.
//! Bytes are as the link's framing counts them. Formats: linux/rtnetlink.h, linux/gen_stats.h.

use ewan_model::DirectionReport;
use ewan_system::netlink::{attributes, u32_at, u64_at, Socket};
use serde::Serialize;

use super::{model, tcmsg, ModelStatistics, Place, QUEUE, RATE, ROOT};
use ewan_plan::{Backend, Link, Plan, HEADINGS};

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkStatistics {
    pub name: String,
    /// "forward" or "backward".
    pub direction: &'static str,
    pub sent_packets: u64,
    pub sent_bytes: u64,
    /// By the queue: it was full, or its discipline dropped.
    pub dropped_queue: u64,
    /// By netem: lost on purpose, or its own limit was reached.
    pub dropped_impair_or_limit: u64,
    /// Taken out of the queue to be sent.
    pub served_packets: u64,
    /// The time that packets waited in the queue, summed over packets, counted by psp; null under tbf.
    pub waited_ns: Option<u64>,
    /// Marked with Congestion Experienced by the queue; null: its discipline does not tell.
    pub marked_packets: Option<u64>,
    /// In the queue, where packets wait for their service.
    pub queue_packets: u64,
    pub queue_bytes: u64,
    /// In the queue and in service.
    pub backlog_packets: u64,
    pub backlog_bytes: u64,
    /// In the delay line.
    pub delayed_packets: u64,
    pub delayed_bytes: u64,
    /// Packets that psp released after their instant, and the largest lateness; null under tbf.
    pub late_packets: Option<u64>,
    pub late_max_ns: Option<u64>,
}

/// One direction of a link, by what emulates it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum LinkCounters {
    Kernel(LinkStatistics),
    Model(ModelStatistics),
}

#[derive(Clone, Default)]
struct Counts {
    packets: u64,
    bytes: u64,
    drops: u64,
    marked: Option<u64>,
    waiting_packets: u64,
    waiting_bytes: u64,
    paced: Option<PspCounters>,
    modelled: Option<DirectionReport>,
}

/// Of psp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PspCounters {
    late_packets: u64,
    late_max_ns: u64,
    /// None: a module older than the counter.
    waited_ns: Option<u64>,
}

/// All links that the kernel emulates, in the plan's order, forward before backward; and why some are left out.
pub fn statistics(plan: &Plan) -> Result<(Vec<LinkCounters>, Vec<String>), String> {
    let (mut all, mut missing) = (Vec::new(), Vec::new());
    for link in super::open(plan)? {
        for (direction, counted) in HEADINGS.into_iter().zip(link.counters()?) {
            // A program of the run may have put others in their place.
            match counted {
                Some(counted) => all.push(counted),
                None => missing.push(format!(
                    "link {} {direction}: its queueing disciplines were replaced, so links.json leaves it out",
                    link.name()
                )),
            }
        }
    }
    Ok((all, missing))
}

/// A link's counters, forward and backward, by the interfaces through which its packets leave; none where one of its
/// queueing disciplines is not there.
pub fn of_link(link: &Link, exits: [u32; 2], socket: &Socket) -> Result<[Option<LinkCounters>; 2], String> {
    let name = &link.name;
    let mut found = levels(socket).map_err(|error| format!("link {name}: {error}"))?;
    let mut level = |exit, handle| {
        found.iter_mut().find(|level| level.at == (exit, handle)).map(|level| std::mem::take(&mut level.counts))
    };
    let mut way = |way: usize| {
        let direction = HEADINGS[way];
        if link.backend == Backend::Ewan {
            let report = level(exits[way], ROOT)?.modelled?;
            return Some(LinkCounters::Model(ModelStatistics { name: name.clone(), direction, report }));
        }
        let [root, rate, queue] = [ROOT, RATE, QUEUE].map(|handle| level(exits[way], handle));
        Some(LinkCounters::Kernel(of(name, direction, root?, rate?, queue?)))
    };
    Ok([way(0), way(1)])
}

/// A drop is counted at its own level and at each above it.
fn of(name: &str, direction: &'static str, root: Counts, rate: Counts, queue: Counts) -> LinkStatistics {
    LinkStatistics {
        name: name.to_owned(),
        direction,
        sent_packets: root.packets,
        sent_bytes: root.bytes,
        dropped_queue: queue.drops,
        dropped_impair_or_limit: root.drops.saturating_sub(rate.drops.max(queue.drops)),
        served_packets: queue.packets,
        waited_ns: rate.paced.and_then(|paced| paced.waited_ns),
        marked_packets: queue.marked,
        queue_packets: queue.waiting_packets,
        queue_bytes: queue.waiting_bytes,
        backlog_packets: rate.waiting_packets,
        backlog_bytes: rate.waiting_bytes,
        delayed_packets: root.waiting_packets.saturating_sub(rate.waiting_packets),
        delayed_bytes: root.waiting_bytes.saturating_sub(rate.waiting_bytes),
        late_packets: rate.paced.map(|paced| paced.late_packets),
        late_max_ns: rate.paced.map(|paced| paced.late_max_ns),
    }
}

struct Level {
    /// Interface and handle.
    at: (u32, u32),
    counts: Counts,
}

/// All qdiscs of the socket's namespace.
fn levels(socket: &Socket) -> Result<Vec<Level>, String> {
    const TCA_STATS2: u16 = 7;
    const TCA_KIND: u16 = 1;
    let everywhere = tcmsg(Place { index: 0, parent: 0, handle: 0 }, 0);
    let header = everywhere.len();
    let mut found = Vec::new();
    socket.dump(libc::RTM_GETQDISC, &everywhere, &mut |message| {
        if message.len() < header {
            return;
        }
        let value = |wanted| {
            attributes(&message[header..]).find(|(kind, _)| *kind == wanted).map_or(&[][..], |(_, value)| value)
        };
        let counts = counts(value(TCA_STATS2), value(TCA_KIND));
        found.push(Level { at: (u32_at(message, 4), u32_at(message, 8)), counts });
    })?;
    Ok(found)
}

/// `kind_of`: of the queueing discipline, with a zero at its end.
fn counts(stats: &[u8], kind_of: &[u8]) -> Counts {
    const TCA_STATS_BASIC: u16 = 1;
    const TCA_STATS_QUEUE: u16 = 3;
    const TCA_STATS_APP: u16 = 4;
    const TCA_STATS_PKT64: u16 = 8;
    let mut counts = Counts { marked: (kind_of.ends_with(b"fifo\0")).then_some(0), ..Counts::default() };
    for (kind, value) in attributes(stats) {
        match kind {
            // struct gnet_stats_basic: bytes in 64 bits, packets in 32.
            TCA_STATS_BASIC if value.len() >= 12 => {
                counts.bytes = u64_at(value, 0);
                counts.packets = counts.packets.max(u64::from(u32_at(value, 8)));
            }
            // Only where 32 bits were too few.
            TCA_STATS_PKT64 if value.len() >= 8 => counts.packets = u64_at(value, 0),
            // struct gnet_stats_queue: packets, bytes, drops, requeues, overlimits.
            TCA_STATS_QUEUE if value.len() >= 20 => {
                counts.waiting_packets = u64::from(u32_at(value, 0));
                counts.waiting_bytes = u64::from(u32_at(value, 4));
                counts.drops = u64::from(u32_at(value, 8));
            }
            // struct tc_psp_xstats (emulator/kernel/psp): 64 bits each, the fifth, the seventh and the twelfth.
            TCA_STATS_APP if kind_of == b"ewan\0" => counts.modelled = model::report(value),
            TCA_STATS_APP if kind_of == b"psp\0" && value.len() >= 56 => {
                counts.paced = Some(PspCounters {
                    late_packets: u64_at(value, 32),
                    late_max_ns: u64_at(value, 48),
                    waited_ns: (value.len() >= 96).then(|| u64_at(value, 88)),
                });
            }
            TCA_STATS_APP => counts.marked = marked(kind_of, value),
            _ => {}
        }
    }
    counts
}

/// Packets that a queue's discipline marked, from its own statistics (linux/pkt_sched.h): struct tc_red_xstats,
/// tc_codel_xstats (beyond its target, and beyond its threshold for marks), tc_pie_xstats, tc_fq_codel_xstats (as
/// codel), tc_dualpi2_xstats (which counts those of its step among all).
fn marked(kind_of: &[u8], value: &[u8]) -> Option<u64> {
    let fields: &[usize] = match kind_of {
        b"red\0" => &[12],
        b"codel\0" => &[24, 32],
        b"pie\0" => &[36],
        b"fq_codel\0" => &[12, 28],
        b"dualpi2\0" => &[24],
        _ => return None,
    };
    let count = |&at: &usize| (value.len() >= at + 4).then(|| u64::from(u32_at(value, at)));
    fields.iter().map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_the_kernels_structures() {
        let mut stats = Vec::new();
        let mut attribute = |kind: u16, value: &[u8]| {
            stats.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
            stats.extend_from_slice(&kind.to_ne_bytes());
            stats.extend_from_slice(value);
        };
        attribute(1, &[1_538_000u64.to_ne_bytes().as_slice(), &1000u32.to_ne_bytes(), &[0; 4]].concat());
        attribute(3, &[7u32, 10_766, 3, 0, 0].map(u32::to_ne_bytes).concat());
        let paced = [1000u64, 1_538_000, 3, 0, 2, 90, 60, 0, 0, 0, 0, 12_304_000].map(u64::to_ne_bytes);
        attribute(4, &paced.concat());
        let found = counts(&stats, b"psp\0");
        assert_eq!((found.packets, found.bytes, found.drops), (1000, 1_538_000, 3));
        assert_eq!((found.waiting_packets, found.waiting_bytes), (7, 10_766));
        let told = PspCounters { late_packets: 2, late_max_ns: 60, waited_ns: Some(12_304_000) };
        assert_eq!(found.paced, Some(told));
        assert_eq!(counts(&stats, b"pfifo\0").paced, None, "another qdisc's own statistics");
        let mut older = Vec::new();
        older.extend_from_slice(&(4 + 88u16).to_ne_bytes());
        older.extend_from_slice(&4u16.to_ne_bytes());
        older.extend_from_slice(&paced[..11].concat());
        assert_eq!(counts(&older, b"psp\0").paced, Some(PspCounters { waited_ns: None, ..told }), "an older module");
    }

    #[test]
    fn marks_are_told_by_disciplines_that_mark() {
        let own = |words: &[u32]| {
            let value = words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
            [&(4 + value.len() as u16).to_ne_bytes()[..], &4u16.to_ne_bytes(), &value].concat()
        };
        assert_eq!(counts(&own(&[1, 2, 3, 4]), b"red\0").marked, Some(4));
        assert_eq!(counts(&own(&[1, 2, 3, 4, 5, 6, 70, 8, 9]), b"codel\0").marked, Some(79));
        assert_eq!(counts(&own(&[0, 0, 1, 2, 3, 4, 5, 6, 7, 80]), b"pie\0").marked, Some(80));
        assert_eq!(counts(&own(&[0, 1, 2, 30, 4, 5, 6, 7]), b"fq_codel\0").marked, Some(37));
        assert_eq!(counts(&own(&[0, 1, 2, 3, 4, 5, 60, 7]), b"dualpi2\0").marked, Some(60));
        assert_eq!(counts(&own(&[0, 0, 1, 2, 3, 4]), b"pie\0").marked, None, "an older kernel's");
        assert_eq!(counts(&[], b"bfifo\0").marked, Some(0));
        assert_eq!(counts(&[], b"netem\0").marked, None);
    }

    #[test]
    fn each_drop_is_told_once_and_where() {
        let root =
            Counts { packets: 90, bytes: 900, drops: 10, waiting_packets: 30, waiting_bytes: 300, ..Counts::default() };
        let rate =
            Counts { packets: 90, bytes: 900, drops: 4, waiting_packets: 11, waiting_bytes: 110, ..Counts::default() };
        let queue =
            Counts { packets: 90, bytes: 900, drops: 4, waiting_packets: 10, waiting_bytes: 100, ..Counts::default() };
        let told = of("core", "forward", root, rate, queue);
        assert_eq!((told.dropped_queue, told.dropped_impair_or_limit), (4, 6));
        assert_eq!((told.queue_packets, told.backlog_packets, told.delayed_packets), (10, 11, 19));
    }
}
