//! What paces the sources behind a host's card: a queueing discipline with a class for each rate, below the card's.
//!
//! In: the plan's `Egress::Sources`. Out: requests in a `Batch`. A socket names its class by SO_PRIORITY (CLASSES and the
//! class's number); for all others filters look at the destination. Packets pass the pacer first, then the card.

use std::net::IpAddr;

use ewan_system::netlink::Batch;
use ewan_traffic::CLASSES;

use super::kinds::{self, Class, Departure, Mode, Sizes};
use super::{add, card, fifo, psp_class, psp_root, tcmsg, Place, CREATE, FIRST, ROOT, TCA_KIND, TCA_OPTIONS, TCA_STAB};
use ewan_plan::layout::ip;
use ewan_plan::{Egress, Filter, PacedClass, Pacer, Sorter};

/// Handles of what is in the classes.
const LEAVES: u32 = 0x0010_0000;
const MOST_CLASSES: usize = 65_000;
const MOST_BANDS: usize = 16;
const NEEDS_PSP: &str = "psp, which paces sources: build it (emulator/kernel/psp, also by DKMS), or write pacing as \
                         tbf (16 rates of a host at most), or take the virtual clock";
const NEEDS_GAPS: &str =
    "psp, which fills the line with gap packets: build it (emulator/kernel/psp, also by DKMS), or \
                          write pacing as tbf (16 rates of a host at most)";

pub fn make(batch: &mut Batch, root: Place, mtu: u32, egress: &Egress, at: &str) -> Result<(), String> {
    let Egress::Sources {
        card: below,
        classes,
        default,
        sorter,
        limit_bytes,
        limit_packets,
        overhead_bytes,
        minimum_bytes,
    } = egress
    else {
        return Err(format!("{at}: paces no sources"));
    };
    let most = if *sorter == Sorter::Prio { MOST_BANDS } else { MOST_CLASSES };
    if !(2..=most).contains(&classes.len()) || *default == 0 || *default as usize > classes.len() {
        return Err(format!("{at}: {} classes, the rest in class {default}: give 2 to {most}", classes.len()));
    }
    let sizes = Sizes { overhead_bytes: *overhead_bytes, minimum_bytes: *minimum_bytes, mtu };
    let line = line_of(egress).map_err(|why| format!("{at}: {why}"))?;
    // The line itself holds packets to its rate, as long as nothing but psp gives it packets.
    let place = if line.is_some() { Place { handle: CLASSES, ..root } } else { exit(batch, root, below, mtu, at)? };
    sort(batch, place, (*sorter, line), classes.len(), *default, sizes, at);
    for (number, class) in (FIRST..).zip(classes) {
        if *sorter != Sorter::Prio {
            let class = psp_of(&class.pacer);
            psp_class(batch, CREATE, place, number, &class, &format!("{at}: class {number}"));
        }
        let leaf = Place { parent: CLASSES | number, handle: LEAVES + (number << 16), ..root };
        let packets = limit_packets.unwrap_or_else(|| limit_bytes / sizes.counted(mtu).max(1)).max(1);
        match class.pacer {
            Pacer::None {} | Pacer::Psp { .. } | Pacer::Gap { .. } => {
                if let Some(other) = unfit(&class.pacer, *sorter) {
                    return Err(format!("{at}: class {number}: its sorter does not pace so: give the sorter {other}"));
                }
                fifo(batch, leaf, limit_packets.map(u64::from), u64::from(*limit_bytes), at);
            }
            Pacer::Tbf { rate_bps, burst_bytes } => {
                add(batch, leaf, "tbf", format!("{at}: sources at {rate_bps} bit/s"), |body| {
                    body.nested(TCA_OPTIONS, &[], |options| {
                        kinds::tbf(options, rate_bps, burst_bytes, *limit_bytes, 0);
                    });
                });
                batch.needs("the queueing discipline tbf (CONFIG_NET_SCH_TBF)");
            }
            Pacer::Fq { rate_bps } => {
                add(batch, leaf, "fq", format!("{at}: connections at {rate_bps} bit/s"), |body| {
                    body.nested(TCA_OPTIONS, &[], |options| kinds::fq(options, rate_bps, packets));
                });
                batch.needs("the queueing discipline fq (CONFIG_NET_SCH_FQ): write pacing as tbf");
            }
        }
        filters(batch, root.index, number, class, at)?;
    }
    Ok(())
}

/// The rate of the line that gap packets fill; None where none do.
pub fn line_of(egress: &Egress) -> Result<Option<u64>, &'static str> {
    match egress {
        Egress::Sources { sorter: Sorter::PspGap, card, .. } => match **card {
            Egress::Tbf { rate_bps, .. } => Ok(Some(rate_bps)),
            _ => Err("gap packets need the rate of the line: give the card kind tbf"),
        },
        _ => Ok(None),
    }
}

/// The sorter that a pacer needs, where it is another one.
fn unfit(pacer: &Pacer, sorter: Sorter) -> Option<&'static str> {
    match (pacer, sorter) {
        (Pacer::Psp { .. }, Sorter::Prio | Sorter::PspGap) => Some("psp"),
        (Pacer::Gap { .. }, Sorter::Prio | Sorter::Psp) => Some("psp_gap"),
        _ => None,
    }
}

/// Makes the card, and gives the place below it.
fn exit(batch: &mut Batch, root: Place, below: &Egress, mtu: u32, at: &str) -> Result<Place, String> {
    match *below {
        // Nothing waits for a card without a rate.
        Egress::None {} | Egress::Fifo { .. } => return Ok(Place { handle: CLASSES, ..root }),
        Egress::Tbf { rate_bps, burst_bytes, overhead_bytes, limit_bytes: _ } => {
            add(batch, root, "tbf", format!("{at}: rate of {rate_bps} bit/s"), |body| {
                body.nested(TCA_OPTIONS, &[], |options| {
                    kinds::tbf(options, rate_bps, burst_bytes, 0, overhead_bytes);
                });
            });
            batch.needs("the queueing discipline tbf (CONFIG_NET_SCH_TBF)");
        }
        Egress::Psp { rate_bps, overhead_bytes, minimum_bytes, dither_ns, seed, .. } => {
            let class = Class { rate_bps, overhead_bytes, minimum_bytes, dither_ns, seed, departure: Departure::End };
            card(batch, root, &class, mtu, at);
        }
        Egress::Sources { .. } => return Err(format!("{at}: sources before sources")),
    }
    Ok(Place { parent: ROOT | FIRST, handle: CLASSES, ..root })
}

/// The queueing discipline with the classes, and the line that it fills. At the root it makes all below it count as `sizes`
/// say.
fn sort(
    batch: &mut Batch,
    place: Place,
    (sorter, line): (Sorter, Option<u64>),
    classes: usize,
    rest: u32,
    sizes: Sizes,
    at: &str,
) {
    let what = format!("{at}: {classes} classes of sources");
    let sizes = (place.parent != (ROOT | FIRST)).then_some(sizes);
    match sorter {
        Sorter::Psp | Sorter::PspGap => {
            let mode = line.map_or(Mode::Timer, |line_bps| Mode::Gap { line_bps });
            psp_root(batch, place, mode, rest, sizes, &what);
            batch.needs(if line.is_some() { NEEDS_GAPS } else { NEEDS_PSP });
        }
        Sorter::Prio => {
            add(batch, place, "prio", what, |body| {
                if let Some(sizes) = sizes {
                    body.nested(TCA_STAB, &[], |table| kinds::sizes(table, sizes));
                }
                body.bytes(TCA_OPTIONS, &kinds::prio(classes, rest));
            });
            batch.needs("the queueing discipline prio (CONFIG_NET_SCH_PRIO)");
        }
    }
}

/// A packet leaves at the beginning of its time, as in PSPacer: the card sends its bits.
fn psp_of(pacer: &Pacer) -> Class {
    let (rate_bps, overhead_bytes, minimum_bytes) = match *pacer {
        Pacer::Psp { rate_bps, overhead_bytes, minimum_bytes }
        | Pacer::Gap { rate_bps, overhead_bytes, minimum_bytes } => (rate_bps, overhead_bytes, minimum_bytes),
        Pacer::None {} | Pacer::Tbf { .. } | Pacer::Fq { .. } => (0, 0, 0),
    };
    Class { rate_bps, overhead_bytes, minimum_bytes, dither_ns: 0, seed: 0, departure: Departure::Start }
}

/// Those with a port are asked first.
fn filters(batch: &mut Batch, index: u32, number: u32, class: &PacedClass, at: &str) -> Result<(), String> {
    for Filter { address, port, protocol } in &class.filters {
        let address: IpAddr = ip(address).map_err(|error| format!("{at}: class {number}: {error}"))?;
        let port = match (*protocol, *port) {
            (Some(protocol), Some(port)) => Some((protocol, port)),
            (None, None) => None,
            _ => return Err(format!("{at}: class {number}: {address}: give port and protocol, or neither")),
        };
        let order = 1 + u32::from(port.is_none()) * 2 + u32::from(address.is_ipv6());
        let info = order << 16 | u32::from(kinds::ethertype(address).to_be());
        let header = tcmsg(Place { index, parent: CLASSES, handle: 0 }, info);
        batch.add(libc::RTM_NEWTFILTER, CREATE, &header, format!("{at}: packets to {address}"), |body| {
            body.text(TCA_KIND, "flower").nested(TCA_OPTIONS, &[], |options| {
                kinds::flower(options, address, port, CLASSES | number);
            });
        });
        batch.needs("the filter flower (CONFIG_NET_CLS_FLOWER), by which packets to a destination are found");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The requests for the egress of left1 in the golden plan, as `change` leaves it; or why there are none.
    fn requests(change: impl FnOnce(&mut Egress)) -> Result<Batch, String> {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/gaps.plan.json");
        let mut plan = ewan_plan::read(Path::new(golden)).expect("a golden plan");
        let node = plan.nodes.iter_mut().find(|node| node.name == "left1").expect("left1");
        change(&mut node.interfaces[0].egress);
        let mut batch = Batch::default();
        super::super::egress(&mut batch, 7, 1500, &node.interfaces[0].egress, "left1:eth0").map(|()| batch)
    }

    #[test]
    fn gap_packets_have_the_line_to_themselves() {
        let said = format!("{:?}", requests(|_| {}).expect("requests"));
        assert!(!said.contains("rate of 1000000000 bit/s"), "no token bucket before the line: {said}");
        assert!(said.contains(NEEDS_GAPS) && !said.contains(NEEDS_PSP), "{said}");
        let mut options = Vec::new();
        kinds::psp(&mut ewan_system::netlink::Attributes::new(&mut options), Mode::Gap { line_bps: 1_000_000_000 }, 3);
        let wanted: Vec<String> = options.iter().map(u8::to_string).collect();
        assert!(said.contains(&wanted.join(", ")), "psp is told mode, rest and line: {said}");
    }

    #[test]
    fn pacers_that_the_sorter_does_not_have_are_refused() {
        let with = |other: Sorter| {
            move |egress: &mut Egress| {
                let Egress::Sources { sorter, .. } = egress else { panic!("sources") };
                *sorter = other;
            }
        };
        for other in [Sorter::Prio, Sorter::Psp] {
            let refused = requests(with(other)).expect_err("a refusal");
            assert_eq!(refused, "left1:eth0: class 2: its sorter does not pace so: give the sorter psp_gap");
        }
        let bare = |egress: &mut Egress| {
            let Egress::Sources { card, .. } = egress else { panic!("sources") };
            **card = Egress::Fifo { limit_packets: 100 };
        };
        assert!(requests(bare).expect_err("a refusal").contains("need the rate of the line"));
    }
}
