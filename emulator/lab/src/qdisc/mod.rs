//! Queueing disciplines: what an interface of the plan sends through, and links made of the kernel's own parts.
//!
//! In: parts of the plan and interface numbers. Out: requests in a `Batch`. Per direction of a kernel link, what
//! comes in at one port is redirected to the other, whose root is netem (delay, loss, corruption, duplicates), below
//! it psp or tbf (the rate), below that the queue. So the delay line comes before the queue, other than in a user
//! link, where it comes last: a packet meets the queue later by the delay, and all else is the same. A link whose back end
//! is `ewan` has the user link's own model at its root, and nothing below it.

mod change;
mod kinds;
mod live;
mod model;
mod sources;
mod statistics;

use ewan_model::config::Direction;
use ewan_system::netlink::{Attributes, Batch, Socket};
use kinds::{Class, Departure};

use ewan_plan::{Backend, Egress, Link};

const CREATE: i32 = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
const TC_H_ROOT: u32 = u32::MAX;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STAB: u16 = 8;

/// Handles, by level: the root, the rate below it, the queue below that.
const ROOT: u32 = 0x0001_0000;
const RATE: u32 = 0x0002_0000;
const QUEUE: u32 = 0x0003_0000;
/// The only class of a qdisc that has one.
const FIRST: u32 = 1;

pub use live::{open, open_one, KernelLink};
pub use model::ModelStatistics;
pub use sources::line_of;
pub use statistics::{statistics, LinkCounters, LinkStatistics};

/// Where a qdisc goes: its interface, its parent, its own handle.
#[derive(Clone, Copy)]
struct Place {
    index: u32,
    parent: u32,
    handle: u32,
}

fn tcmsg(place: Place, info: u32) -> [u8; 20] {
    let mut header = [0; 20];
    header[4..8].copy_from_slice(&place.index.to_ne_bytes());
    header[8..12].copy_from_slice(&place.handle.to_ne_bytes());
    header[12..16].copy_from_slice(&place.parent.to_ne_bytes());
    header[16..20].copy_from_slice(&info.to_ne_bytes());
    header
}

fn add(batch: &mut Batch, place: Place, kind: &str, what: String, fill: impl FnOnce(&mut Attributes)) {
    request(batch, CREATE, place, kind, what, fill);
}

/// `flags`: CREATE, or 0 for a qdisc that is there and takes other options.
fn request(batch: &mut Batch, flags: i32, place: Place, kind: &str, what: String, fill: impl FnOnce(&mut Attributes)) {
    batch.add(libc::RTM_NEWQDISC, flags, &tcmsg(place, 0), what, |body| {
        body.text(TCA_KIND, kind);
        fill(body);
    });
}

/// The root queueing discipline of an interface, if the plan asks for one.
pub fn egress(batch: &mut Batch, index: u32, mtu: u32, egress: &Egress, at: &str) -> Result<(), String> {
    let root = Place { index, parent: TC_H_ROOT, handle: ROOT };
    match *egress {
        Egress::Sources { .. } => sources::make(batch, root, mtu, egress, at)?,
        Egress::None {} => {}
        Egress::Fifo { limit_packets } => {
            add(batch, root, "pfifo", format!("{at}: queue of {limit_packets} packets"), |body| {
                body.bytes(TCA_OPTIONS, &limit_packets.to_ne_bytes());
            });
            batch.needs("the queueing discipline pfifo (CONFIG_NET_SCHED)");
        }
        Egress::Tbf { rate_bps, burst_bytes, limit_bytes, overhead_bytes } => {
            add(batch, root, "tbf", format!("{at}: rate of {rate_bps} bit/s"), |body| {
                body.nested(TCA_OPTIONS, &[], |options| {
                    kinds::tbf(options, rate_bps, burst_bytes, limit_bytes, overhead_bytes);
                });
            });
            batch.needs("the queueing discipline tbf (CONFIG_NET_SCH_TBF)");
        }
        Egress::Psp { rate_bps, overhead_bytes, minimum_bytes, limit_bytes, limit_packets, dither_ns, seed } => {
            let class = Class { rate_bps, overhead_bytes, minimum_bytes, dither_ns, seed, departure: Departure::End };
            card(batch, root, &class, mtu, at);
            let below = Place { index, parent: ROOT | FIRST, handle: RATE };
            fifo(batch, below, limit_packets.map(u64::from), u64::from(limit_bytes), at);
        }
    }
    Ok(())
}

/// A card of psp, without what waits below it.
fn card(batch: &mut Batch, root: Place, class: &Class, mtu: u32, at: &str) {
    let &Class { rate_bps, overhead_bytes, minimum_bytes, dither_ns, .. } = class;
    let what = format!("{at}: rate of {rate_bps} bit/s, processing time below {dither_ns} ns");
    psp(batch, root, class, Some(kinds::Sizes { overhead_bytes, minimum_bytes, mtu }), &what);
}

/// Where a filter sees packets: as they come, or as they leave, before the queueing discipline.
#[derive(Clone, Copy)]
pub enum Hook {
    Ingress = 0xfff2,
    Egress = 0xfff3,
}

/// Has a BPF program decide on the packets of an interface; of several, that with the lowest `order` comes first.
pub fn classify(socket: &Socket, index: u32, to: Hook, order: u16, program: i32, what: &str) -> Result<(), String> {
    const CLSACT: u32 = 0xffff_0000;
    const TC_H_CLSACT: u32 = 0xffff_fff1;
    const TCA_BPF_FD: u16 = 6;
    const TCA_BPF_NAME: u16 = 7;
    const TCA_BPF_FLAGS: u16 = 8;
    const ACTS: u32 = 1;
    let mut batch = Batch::default();
    add(&mut batch, Place { index, parent: TC_H_CLSACT, handle: CLSACT }, "clsact", what.to_owned(), |_| {});
    match socket.run(batch) {
        Err(error) if error.number() == Some(libc::EEXIST) => {}
        made => made?,
    }
    let mut batch = Batch::default();
    let info = u32::from(order) << 16 | u32::from((libc::ETH_P_ALL as u16).to_be());
    let header = tcmsg(Place { index, parent: CLSACT | to as u32, handle: 0 }, info);
    batch.add(libc::RTM_NEWTFILTER, CREATE, &header, what.to_owned(), |body| {
        body.text(TCA_KIND, "bpf").nested(TCA_OPTIONS, &[], |options| {
            options.u32(TCA_BPF_FD, program as u32).text(TCA_BPF_NAME, "vlan").u32(TCA_BPF_FLAGS, ACTS);
        });
    });
    batch.needs("802.1Q (CONFIG_VLAN_8021Q), and filters by BPF in its place (CONFIG_NET_CLS_BPF)");
    Ok(socket.run(batch)?)
}

/// A token bucket at the root of an interface, made or changed, for what measures its timer.
pub fn token_bucket(batch: &mut Batch, index: u32, rate_bps: u64, burst_bytes: u32, limit_bytes: u32) {
    let root = Place { index, parent: TC_H_ROOT, handle: ROOT };
    request(batch, batch.creates(), root, "tbf", format!("rate of {rate_bps} bit/s"), |body| {
        body.nested(TCA_OPTIONS, &[], |options| kinds::tbf(options, rate_bps, burst_bytes, limit_bytes, 0));
    });
    batch.needs("the queueing discipline tbf (CONFIG_NET_SCH_TBF)");
}

/// psp with one class, which all packets take.
fn psp(batch: &mut Batch, place: Place, class: &Class, sizes: Option<kinds::Sizes>, what: &str) {
    psp_root(batch, place, kinds::Mode::Timer, FIRST, sizes, what);
    batch.needs("psp (build it from emulator/kernel/psp): write emulator: user");
    psp_class(batch, CREATE, place, FIRST, class, what);
}

/// psp without its classes; packets that name none go to class `rest`.
fn psp_root(batch: &mut Batch, place: Place, mode: kinds::Mode, rest: u32, sizes: Option<kinds::Sizes>, what: &str) {
    add(batch, place, "psp", what.to_owned(), |body| {
        if let Some(sizes) = sizes {
            body.nested(TCA_STAB, &[], |table| kinds::sizes(table, sizes));
        }
        body.nested(TCA_OPTIONS, &[], |options| kinds::psp(options, mode, rest));
    });
}

fn psp_class(batch: &mut Batch, flags: i32, place: Place, number: u32, class: &Class, what: &str) {
    let inner = Place { parent: place.handle, handle: place.handle | number, ..place };
    batch.add(libc::RTM_NEWTCLASS, flags, &tcmsg(inner, 0), what.to_owned(), |body| {
        body.text(TCA_KIND, "psp").nested(TCA_OPTIONS, &[], |options| kinds::psp_class(options, class));
    });
}

fn fifo(batch: &mut Batch, place: Place, limit_packets: Option<u64>, limit_bytes: u64, at: &str) {
    fifo_request(batch, CREATE, place, limit_packets, limit_bytes, at);
}

fn fifo_request(batch: &mut Batch, flags: i32, place: Place, packets: Option<u64>, bytes: u64, at: &str) {
    let (kind, limit, unit) = match packets {
        Some(packets) => ("pfifo", packets, "packets"),
        None => ("bfifo", bytes, "bytes"),
    };
    request(batch, flags, place, kind, format!("{at}: queue of {limit} {unit}"), |body| {
        body.bytes(TCA_OPTIONS, &narrow(limit).to_ne_bytes());
    });
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Both directions of a link between two ports of one node.
pub fn link(batch: &mut Batch, link: &Link, port_a: u32, port_b: u32, mtu: u32) {
    for (direction, heading, entry, exit) in
        [(&link.forward, "forward", port_a, port_b), (&link.backward, "backward", port_b, port_a)]
    {
        let at = format!("link {} {heading}", link.name);
        match link.backend {
            Backend::Ewan => {
                model::make(batch, Place { index: exit, parent: TC_H_ROOT, handle: ROOT }, direction, entry, &at);
            }
            Backend::Kernel | Backend::Tbf | Backend::User | Backend::Hardware => {
                stages(batch, direction, link.backend, exit, mtu, &at)
            }
        }
        redirect(batch, entry, exit, &at);
    }
}

fn stages(batch: &mut Batch, direction: &Direction, backend: Backend, index: u32, mtu: u32, at: &str) {
    let sizes = sizes(direction, mtu);
    let root = Place { index, parent: TC_H_ROOT, handle: ROOT };
    add(batch, root, "netem", format!("{at}: delay and loss"), |body| {
        body.nested(TCA_STAB, &[], |table| kinds::sizes(table, sizes));
        body.nested(TCA_OPTIONS, &kinds::netem_head(direction), |options| kinds::netem(options, direction));
    });
    batch.needs("netem (CONFIG_NET_SCH_NETEM): write emulator: user");
    let rate = Place { index, parent: ROOT | FIRST, handle: RATE };
    let what = format!("{at}: rate of {} bit/s", direction.rate_bps);
    if backend == Backend::Tbf {
        let burst = kinds::tbf_burst(direction.rate_bps, sizes.counted(mtu));
        add(batch, rate, "tbf", what, |body| {
            body.nested(TCA_OPTIONS, &[], |options| kinds::tbf(options, direction.rate_bps, burst, 0, 0));
        });
        batch.needs("tbf (CONFIG_NET_SCH_TBF): write emulator: user");
    } else {
        psp(batch, rate, &class(direction, sizes), None, &what);
    }
    let place = Place { index, parent: RATE | FIRST, handle: QUEUE };
    kinds::queue(batch, CREATE, place, direction, sizes.counted(mtu), at);
}

fn sizes(direction: &Direction, mtu: u32) -> kinds::Sizes {
    kinds::Sizes {
        overhead_bytes: direction.framing.overhead_bytes as i32 - kinds::ETHERNET_HEADER,
        minimum_bytes: direction.framing.minimum_bytes,
        mtu,
    }
}

fn class(direction: &Direction, sizes: kinds::Sizes) -> Class {
    Class {
        rate_bps: direction.rate_bps,
        overhead_bytes: sizes.overhead_bytes,
        minimum_bytes: sizes.minimum_bytes,
        dither_ns: 0,
        seed: 0,
        departure: Departure::End,
    }
}

/// All that comes in at `entry` leaves at `exit`.
fn redirect(batch: &mut Batch, entry: u32, exit: u32, at: &str) {
    const TC_H_INGRESS: u32 = 0xffff_fff1;
    const INGRESS: u32 = 0xffff_0000;
    const PRIORITY_AND_ANY_PROTOCOL: u32 = 1 << 16 | (libc::ETH_P_ALL as u16).to_be() as u32;
    let place = Place { index: entry, parent: TC_H_INGRESS, handle: INGRESS };
    add(batch, place, "ingress", format!("{at}: entry"), |_| {});
    batch.needs("ingress (CONFIG_NET_SCH_INGRESS): write emulator: user");
    let header = tcmsg(Place { index: entry, parent: INGRESS, handle: 0 }, PRIORITY_AND_ANY_PROTOCOL);
    batch.add(libc::RTM_NEWTFILTER, CREATE, &header, format!("{at}: from port to port"), |body| {
        body.text(TCA_KIND, "matchall").nested(TCA_OPTIONS, &[], |options| kinds::redirect(options, exit));
    });
    batch.needs("matchall or mirred (CONFIG_NET_CLS_MATCHALL, CONFIG_NET_ACT_MIRRED): write emulator: user");
}

/// What a kernel link does without on this kernel.
pub fn warning(link: &Link) -> Option<String> {
    if link.backend == Backend::Ewan {
        return None;
    }
    let random = [&link.forward, &link.backward].into_iter().any(|way| kinds::NetemPart::from(way).is_random());
    let release = nix::sys::utsname::uname().ok()?.release().to_string_lossy().into_owned();
    (random && !takes_seed(&release)).then(|| {
        "this kernel's netem takes no seed (Linux 6.6 does): losses and jitter differ from run to run".to_owned()
    })
}

/// TCA_NETEM_PRNG_SEED came with Linux 6.6.
fn takes_seed(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn netem_takes_a_seed_from_6_6_on() {
        for (release, takes) in
            [("6.6.0-1-amd64", true), ("6.12.117", true), ("6.1.0-37-amd64", false), ("5.15", false)]
        {
            assert_eq!(takes_seed(release), takes, "{release}");
        }
        assert!(takes_seed("7.0"));
    }

    #[test]
    fn a_tc_header_says_where() {
        let header = tcmsg(Place { index: 7, parent: ROOT | FIRST, handle: RATE }, 9);
        let words: Vec<u32> = header.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().expect("four"))).collect();
        assert_eq!(words, [0, 7, 0x0002_0000, 0x0001_0001, 9]);
    }
}
