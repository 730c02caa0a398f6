//! The options of each kind of queueing discipline, as bytes.
//!
//! In: a direction of a link, or single numbers. Out: netlink attributes. Structures and numbers are from
//! linux/pkt_sched.h, linux/pkt_cls.h and linux/tc_act/tc_mirred.h; psp's are its own (emulator/kernel/psp).
//! A size table at the root makes every qdisc below count what the link's framing counts.

use std::net::IpAddr;

use ewan_model::config::{
    CodelConfig, Delay, Direction, Discipline, DualPi2Config, FqCodelConfig, Loss, PieConfig, Ppb, RedConfig, ONE_PPB,
};
use ewan_system::netlink::{Attributes, Batch};

use ewan_plan::Protocol;

use super::{fifo_request, narrow, request, Place, CREATE, TCA_OPTIONS};

/// A packet in a qdisc begins with it, and the kernel's own lengths count it.
pub const ETHERNET_HEADER: i32 = 14;

/// A probability as 32 bits count it: of 2^32 draws this many hit.
fn of_2_32(ppb: Ppb) -> u64 {
    ((u64::from(ppb) << 32) + u64::from(ONE_PPB) / 2) / u64::from(ONE_PPB)
}

/// For comparisons `draw < x`; a probability of 1 misses once in 2^32.
fn below(ppb: Ppb) -> u32 {
    narrow(of_2_32(ppb))
}

/// For comparisons `draw <= x`, where 0 means never.
fn up_to(ppb: Ppb) -> u32 {
    match of_2_32(ppb) {
        0 => 0,
        hits => narrow((hits - 1).max(1)),
    }
}

/// Lengths as a framing counts them: max(Ethernet frame without FCS + overhead, minimum).
#[derive(Clone, Copy)]
pub struct Sizes {
    pub overhead_bytes: i32,
    pub minimum_bytes: u32,
    pub mtu: u32,
}

impl Sizes {
    /// What an IP packet counts.
    pub fn counted(&self, ip_bytes: u32) -> u32 {
        let bytes = i64::from(ip_bytes) + i64::from(ETHERNET_HEADER) + i64::from(self.overhead_bytes);
        u32::try_from(bytes).unwrap_or(0).max(self.minimum_bytes)
    }
}

/// struct tc_sizespec: the kernel adds the overhead and looks the sum up, so the table has the minimum in it. Without
/// a minimum there is nothing to look up, and an attribute has no room for more than 32 kB of MTU.
pub fn sizes(table: &mut Attributes, sizes: Sizes) {
    const TCA_STAB_BASE: u16 = 1;
    const TCA_STAB_DATA: u16 = 2;
    const LINKLAYER_ETHERNET: u32 = 1;
    const MOST: u32 = 32_000;
    let largest = sizes.counted(sizes.mtu).saturating_add(1);
    let entries = if sizes.minimum_bytes == 0 || largest > MOST { 0 } else { largest };
    let mut base = [0; 24];
    base[4..8].copy_from_slice(&sizes.overhead_bytes.to_ne_bytes());
    base[8..12].copy_from_slice(&LINKLAYER_ETHERNET.to_ne_bytes());
    base[12..16].copy_from_slice(&sizes.minimum_bytes.to_ne_bytes());
    base[16..20].copy_from_slice(&sizes.mtu.to_ne_bytes());
    base[20..24].copy_from_slice(&entries.to_ne_bytes());
    table.bytes(TCA_STAB_BASE, &base);
    if entries > 0 {
        let data: Vec<u8> =
            (0..entries).flat_map(|bytes| (bytes.max(sizes.minimum_bytes) as u16).to_ne_bytes()).collect();
        table.bytes(TCA_STAB_DATA, &data);
    }
}

/// Packets that netem may hold in its delay line and below. The delay line comes first, so what is offered fills it,
/// not the rate: four times what a full link and a full queue hold (`store_packets` counts them at the smallest
/// packet), and 10 000, so that the queue drops long before netem does.
fn netem_limit(direction: &Direction) -> u32 {
    let limit = direction.store_packets.saturating_mul(4).saturating_add(10_000);
    u32::try_from(limit).unwrap_or(u32::MAX).min(i32::MAX as u32)
}

/// struct tc_netem_qopt: latency (in an attribute instead), limit, loss, gap, duplicate, jitter (likewise).
pub fn netem_head(direction: &Direction) -> [u8; 24] {
    let loss = match direction.loss {
        Loss::Bernoulli { loss_ppb } => up_to(loss_ppb),
        // Chains of states are said in an attribute (`netem`); what is counted is refused before.
        Loss::None {} | Loss::GilbertElliott { .. } | Loss::Markov4 { .. } => 0,
        Loss::BitErrors { .. } | Loss::EveryNth { .. } | Loss::Pattern { .. } => 0,
    };
    let words = [0, netem_limit(direction), loss, 0, up_to(direction.duplicate_ppb), 0];
    let mut head = [0; 24];
    head.chunks_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_ne_bytes()));
    head
}

fn words<const N: usize>(words: [u32; N]) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_ne_bytes).collect()
}

/// A direction as far as netem makes it: without what the levels below do, and without what never changes.
#[derive(PartialEq)]
pub struct NetemPart<'a> {
    loss: &'a Loss,
    corrupt_ppb: Ppb,
    duplicate_ppb: Ppb,
    delay: &'a Delay,
    reorder: bool,
}

impl<'a> From<&'a Direction> for NetemPart<'a> {
    fn from(direction: &'a Direction) -> Self {
        let &Direction { ref loss, corrupt_ppb, duplicate_ppb, ref delay, reorder, .. } = direction;
        NetemPart { loss, corrupt_ppb, duplicate_ppb, delay, reorder }
    }
}

impl NetemPart<'_> {
    /// Whether netem's generator decides any of it.
    pub fn is_random(&self) -> bool {
        let spread = match self.delay {
            Delay::Constant { .. } => false,
            Delay::Uniform { .. }
            | Delay::Normal { .. }
            | Delay::GaussMarkov { .. }
            | Delay::Pareto { .. }
            | Delay::Table { .. } => true,
        };
        *self.loss != Loss::None {} || self.corrupt_ppb > 0 || self.duplicate_ppb > 0 || spread
    }
}

/// netem(8). Losses of the Gilbert-Elliott chain follow the state that a packet finds, not the one it leaves behind:
/// the same sequence, one packet later.
pub fn netem(options: &mut Attributes, direction: &Direction) {
    const TCA_NETEM_CORRUPT: u16 = 4;
    const TCA_NETEM_LOSS: u16 = 5;
    const TCA_NETEM_LATENCY64: u16 = 10;
    const TCA_NETEM_JITTER64: u16 = 11;
    const TCA_NETEM_PRNG_SEED: u16 = 14;
    const NETEM_LOSS_GI: u16 = 1;
    const NETEM_LOSS_GE: u16 = 2;
    let (delay_ns, jitter_ns) = match direction.delay {
        Delay::Uniform { delay_ns, jitter_ns } => (delay_ns, jitter_ns),
        Delay::Constant { delay_ns }
        | Delay::Normal { delay_ns, .. }
        | Delay::GaussMarkov { delay_ns, .. }
        | Delay::Pareto { delay_ns, .. } => (delay_ns, 0),
        Delay::Table { .. } => (0, 0),
    };
    options.u64(TCA_NETEM_LATENCY64, delay_ns);
    if jitter_ns > 0 {
        options.u64(TCA_NETEM_JITTER64, jitter_ns);
    }
    if direction.corrupt_ppb > 0 {
        options.bytes(TCA_NETEM_CORRUPT, &words([up_to(direction.corrupt_ppb), 0]));
    }
    match direction.loss {
        Loss::GilbertElliott { to_bad_ppb, to_good_ppb, loss_good_ppb, loss_bad_ppb } => {
            let through_bad = narrow(of_2_32(ONE_PPB - loss_bad_ppb).saturating_sub(1));
            options.nested(TCA_NETEM_LOSS, &[], |model| {
                model.bytes(
                    NETEM_LOSS_GE,
                    &words([below(to_bad_ppb), below(to_good_ppb), through_bad, below(loss_good_ppb)]),
                );
            });
        }
        Loss::Markov4 { p13_ppb, p31_ppb, p32_ppb, p23_ppb, p14_ppb } => {
            // Two that leave one state are added up in 32 bits.
            let [p31, p32] = share(p31_ppb, p32_ppb);
            let [p13, p14] = share(p13_ppb, p14_ppb);
            options.nested(TCA_NETEM_LOSS, &[], |model| {
                model.bytes(NETEM_LOSS_GI, &words([p13, p31, p32, p14, below(p23_ppb)]));
            });
        }
        Loss::None {}
        | Loss::Bernoulli { .. }
        | Loss::BitErrors { .. }
        | Loss::EveryNth { .. }
        | Loss::Pattern { .. } => {}
    }
    options.u64(TCA_NETEM_PRNG_SEED, direction.seed);
}

/// What a change of netem says besides, as netem keeps what it is not told: corruption also where there is none, and
/// whether packets may overtake. With a rate, however high, none leaves before the one that came before it; the rate
/// here takes less than a nanosecond for the largest packet.
pub fn netem_anew(options: &mut Attributes, direction: &Direction) {
    const TCA_NETEM_CORRUPT: u16 = 4;
    const TCA_NETEM_RATE: u16 = 6;
    const TCA_NETEM_RATE64: u16 = 8;
    if direction.corrupt_ppb == 0 {
        options.bytes(TCA_NETEM_CORRUPT, &words([0, 0]));
    }
    // struct tc_netem_rate: rate, overhead, cell size, cell overhead.
    options.bytes(TCA_NETEM_RATE, &words([0; 4]));
    if !direction.reorder {
        options.u64(TCA_NETEM_RATE64, 1 << 62);
    }
}

fn share(first: Ppb, second: Ppb) -> [u32; 2] {
    let first = below(first);
    [first, below(second).min(u32::MAX - first)]
}

/// A class of psp.
pub struct Class {
    /// 0: no rate.
    pub rate_bps: u64,
    pub overhead_bytes: i32,
    pub minimum_bytes: u32,
    pub dither_ns: u64,
    pub seed: u64,
    pub departure: Departure,
}

/// When a packet leaves a class of psp that has a rate.
#[derive(Clone, Copy)]
pub enum Departure {
    /// With its first bit: a packet alone does not wait.
    Start = 0,
    /// With its last bit, as at the far end of a real link.
    End = 1,
}

/// How psp waits.
#[derive(Clone, Copy)]
pub enum Mode {
    Timer,
    /// By PAUSE frames, which fill a line of this rate.
    Gap {
        line_bps: u64,
    },
}

/// What no filter claims goes to class `rest`.
pub fn psp(options: &mut Attributes, mode: Mode, rest: u32) {
    const TCA_PSP_MODE: u16 = 1;
    const TCA_PSP_DEFAULT: u16 = 2;
    const TCA_PSP_LINE_RATE64: u16 = 3;
    const TIMER: u8 = 0;
    const GAP: u8 = 1;
    match mode {
        Mode::Timer => options.bytes(TCA_PSP_MODE, &[TIMER]).u32(TCA_PSP_DEFAULT, rest),
        Mode::Gap { line_bps } => {
            options.bytes(TCA_PSP_MODE, &[GAP]).u32(TCA_PSP_DEFAULT, rest).u64(TCA_PSP_LINE_RATE64, line_bps)
        }
    };
}

pub fn psp_class(options: &mut Attributes, class: &Class) {
    const TCA_PSP_RATE64: u16 = 4;
    const TCA_PSP_OVERHEAD: u16 = 5;
    const TCA_PSP_MPU: u16 = 6;
    const TCA_PSP_DEPARTURE: u16 = 7;
    const TCA_PSP_DITHER64: u16 = 8;
    const TCA_PSP_SEED64: u16 = 9;
    options
        .u64(TCA_PSP_RATE64, class.rate_bps)
        .bytes(TCA_PSP_OVERHEAD, &class.overhead_bytes.to_ne_bytes())
        .u32(TCA_PSP_MPU, class.minimum_bytes)
        .bytes(TCA_PSP_DEPARTURE, &[class.departure as u8]);
    if class.dither_ns > 0 {
        options.u64(TCA_PSP_DITHER64, class.dither_ns).u64(TCA_PSP_SEED64, class.seed);
    }
}

/// Token bucket filter (net/sched/sch_tbf.c); rates in bytes per second, 64 bits from 34 Gbit/s on. With a limit it
/// makes its own queue.
pub fn tbf(options: &mut Attributes, rate_bps: u64, burst_bytes: u32, limit_bytes: u32, overhead_bytes: u32) {
    const TCA_TBF_PARMS: u16 = 1;
    const TCA_TBF_RATE64: u16 = 4;
    const TCA_TBF_BURST: u16 = 6;
    const LINKLAYER_ETHERNET: u8 = 1;
    let bytes_per_second = rate_bps / 8;
    // struct tc_tbf_qopt: rate, peak rate (unused), limit, buffer, mtu.
    let mut parms = [0; 36];
    parms[1] = LINKLAYER_ETHERNET;
    parms[2..4].copy_from_slice(&(overhead_bytes as u16).to_ne_bytes());
    parms[8..12].copy_from_slice(&narrow(bytes_per_second).to_ne_bytes());
    parms[24..28].copy_from_slice(&limit_bytes.to_ne_bytes());
    parms[28..32].copy_from_slice(&burst_ticks(bytes_per_second, burst_bytes).to_ne_bytes());
    options.bytes(TCA_TBF_PARMS, &parms).u32(TCA_TBF_BURST, burst_bytes);
    if bytes_per_second > u64::from(u32::MAX) - 1 {
        options.u64(TCA_TBF_RATE64, bytes_per_second);
    }
}

/// Fair queueing (net/sched/sch_fq.c) with at most a rate of each connection, in bytes per second, 32 bits.
pub fn fq(options: &mut Attributes, rate_bps: u64, limit_packets: u32) {
    const TCA_FQ_PLIMIT: u16 = 1;
    const TCA_FQ_FLOW_PLIMIT: u16 = 2;
    const TCA_FQ_FLOW_MAX_RATE: u16 = 7;
    options
        .u32(TCA_FQ_PLIMIT, limit_packets)
        .u32(TCA_FQ_FLOW_PLIMIT, limit_packets)
        .u32(TCA_FQ_FLOW_MAX_RATE, narrow(rate_bps / 8));
}

/// struct tc_prio_qopt: as many bands as there are classes; what names no class goes to class `rest`.
pub fn prio(classes: usize, rest: u32) -> [u8; 20] {
    let mut bytes = [rest.saturating_sub(1) as u8; 20];
    bytes[..4].copy_from_slice(&(classes as u32).to_ne_bytes());
    bytes
}

/// What a filter looks for (net/sched/cls_flower.c): a destination, and a port there. The port is in network order.
pub fn flower(options: &mut Attributes, address: IpAddr, port: Option<(Protocol, u16)>, class: u32) {
    const TCA_FLOWER_CLASSID: u16 = 1;
    const TCA_FLOWER_KEY_ETH_TYPE: u16 = 8;
    const TCA_FLOWER_KEY_IP_PROTO: u16 = 9;
    const TCA_FLOWER_KEY_IPV4_DST: u16 = 12;
    const TCA_FLOWER_KEY_IPV6_DST: u16 = 16;
    const TCA_FLOWER_KEY_TCP_DST: u16 = 19;
    const TCA_FLOWER_KEY_UDP_DST: u16 = 21;
    options.u32(TCA_FLOWER_CLASSID, class).bytes(TCA_FLOWER_KEY_ETH_TYPE, &ethertype(address).to_be_bytes());
    match address {
        IpAddr::V4(address) => options.bytes(TCA_FLOWER_KEY_IPV4_DST, &address.octets()),
        IpAddr::V6(address) => options.bytes(TCA_FLOWER_KEY_IPV6_DST, &address.octets()),
    };
    if let Some((protocol, port)) = port {
        let (number, key) = match protocol {
            Protocol::Tcp => (libc::IPPROTO_TCP, TCA_FLOWER_KEY_TCP_DST),
            Protocol::Udp => (libc::IPPROTO_UDP, TCA_FLOWER_KEY_UDP_DST),
        };
        options.bytes(TCA_FLOWER_KEY_IP_PROTO, &[number as u8]).bytes(key, &port.to_be_bytes());
    }
}

pub fn ethertype(address: IpAddr) -> u16 {
    match address {
        IpAddr::V4(_) => libc::ETH_P_IP as u16,
        IpAddr::V6(_) => libc::ETH_P_IPV6 as u16,
    }
}

/// The time in which the rate sends a burst, in the scheduler's ticks of 64 ns (include/net/pkt_sched.h).
fn burst_ticks(bytes_per_second: u64, burst_bytes: u32) -> u32 {
    let ns = u128::from(burst_bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
    u32::try_from(ns.div_ceil(64)).unwrap_or(u32::MAX)
}

/// As for an access link: 100 µs of the rate, four packets at least.
pub fn tbf_burst(rate_bps: u64, packet: u32) -> u32 {
    narrow(rate_bps / 80_000).max(4 * packet)
}

/// The queue of a direction: made, or (without CREATE) told other numbers. CoDel and PIE limit packets in the kernel,
/// RED bytes: a limit in the other unit is as many of the largest packet.
pub fn queue(batch: &mut Batch, flags: i32, place: Place, direction: &Direction, packet: u32, at: &str) {
    let queue = &direction.queue;
    let bytes = queue.limit_bytes.unwrap_or_else(|| queue.limit_packets.unwrap_or(0) * u64::from(packet));
    let packets = narrow(queue.limit_packets.unwrap_or(bytes / u64::from(packet)).max(1));
    let mut active = |kind: &str, needs: &'static str, fill: &dyn Fn(&mut Attributes)| {
        request(batch, flags, place, kind, format!("{at}: {kind} queue"), |body| {
            body.nested(TCA_OPTIONS, &[], fill);
        });
        batch.needs(needs);
    };
    match queue.discipline {
        Discipline::DropTail(_) => fifo_request(batch, flags, place, queue.limit_packets, bytes, at),
        Discipline::Red(RedConfig { min_bytes, max_bytes, max_p_ppb, weight_log2, ecn }) => {
            let packet_us = f64::from(packet) * 8e6 / direction.rate_bps as f64;
            active("red", "red (CONFIG_NET_SCH_RED): write emulator: user", &|options| {
                // A limit would give RED another, empty queue; without one it keeps what it has.
                let limit = if flags == CREATE { narrow(bytes) } else { 0 };
                let thresholds = [limit, narrow(min_bytes), narrow(max_bytes)];
                red(options, thresholds, max_p_ppb, weight_log2, ecn, packet_us);
            });
        }
        Discipline::Codel(CodelConfig { target_ns, interval_ns, ecn }) => {
            active("codel", "codel (CONFIG_NET_SCH_CODEL): write emulator: user", &|options| {
                codel(options, packets, target_ns, interval_ns, ecn);
            });
        }
        Discipline::Pie(PieConfig { target_ns, update_ns, alpha_mhz, beta_mhz, ecn }) => {
            active("pie", "pie (CONFIG_NET_SCH_PIE): write emulator: user", &|options| {
                pie(options, packets, [target_ns, update_ns], [alpha_mhz, beta_mhz], ecn);
            });
        }
        Discipline::FqCodel(ref config) => {
            active("fq_codel", "fq_codel (CONFIG_NET_SCH_FQ_CODEL): write emulator: user", &|options| {
                // The number of its queues is told once.
                fq_codel(options, packets, config, flags == CREATE);
            });
        }
        Discipline::DualPi2(ref config) => {
            active(
                "dualpi2",
                "dualpi2 (CONFIG_NET_SCH_DUALPI2, from Linux 6.17 on): write emulator: user",
                &|options| {
                    dualpi2(options, packets, config);
                },
            );
        }
        // Refused before (`kernel_link::refusal`).
        _ => {}
    }
}

/// RED as the kernel has it: not gentle, above the upper threshold all are dropped (or marked).
fn red(options: &mut Attributes, thresholds: [u32; 3], max_p: Ppb, weight_log2: u8, ecn: bool, packet_us: f64) {
    const TCA_RED_PARMS: u16 = 1;
    const TCA_RED_STAB: u16 = 2;
    const TCA_RED_MAX_P: u16 = 3;
    const TC_RED_ECN: u8 = 1;
    let (cell_log2, idle) = red_idle(weight_log2, packet_us);
    let plog = 0; // of a time before TCA_RED_MAX_P
    let mut parms = words(thresholds);
    parms.extend([weight_log2, plog, cell_log2, if ecn { TC_RED_ECN } else { 0 }]);
    options.bytes(TCA_RED_PARMS, &parms).bytes(TCA_RED_STAB, &idle).u32(TCA_RED_MAX_P, below(max_p));
}

/// How the average sinks while the queue is empty, as if packets of `packet_us` had passed: by 2^-idle[n] after n cells
/// of 2^cell_log2 µs. Within the first cell the kernel lets it sink evenly by its whole, so a cell is the time in which
/// it sinks to 1/e.
fn red_idle(weight_log2: u8, packet_us: f64) -> (u8, [u8; 256]) {
    const MOST: f64 = 31.0;
    let weight = 0.5f64.powi(weight_log2.into());
    let sinks_per_us = -(1.0 - weight).max(0.5f64.powi(31)).ln() / packet_us;
    let cell_log2 = (1.0 / sinks_per_us).log2().round().clamp(0.0, 24.0);
    let halves = sinks_per_us * cell_log2.exp2() / std::f64::consts::LN_2;
    (cell_log2 as u8, std::array::from_fn(|cell| (cell as f64 * halves).round().min(MOST) as u8))
}

/// Times in µs, rounded.
fn micros(ns: u64) -> u32 {
    narrow((ns + 500) / 1000)
}

fn codel(options: &mut Attributes, limit: u32, target_ns: u64, interval_ns: u64, ecn: bool) {
    const TCA_CODEL_TARGET: u16 = 1;
    const TCA_CODEL_LIMIT: u16 = 2;
    const TCA_CODEL_INTERVAL: u16 = 3;
    const TCA_CODEL_ECN: u16 = 4;
    options
        .u32(TCA_CODEL_TARGET, micros(target_ns))
        .u32(TCA_CODEL_LIMIT, limit)
        .u32(TCA_CODEL_INTERVAL, micros(interval_ns))
        .u32(TCA_CODEL_ECN, ecn.into());
}

/// Only the packets are limited, not the memory that they take.
fn fq_codel(options: &mut Attributes, limit: u32, config: &FqCodelConfig, made: bool) {
    const TCA_FQ_CODEL_TARGET: u16 = 1;
    const TCA_FQ_CODEL_LIMIT: u16 = 2;
    const TCA_FQ_CODEL_INTERVAL: u16 = 3;
    const TCA_FQ_CODEL_ECN: u16 = 4;
    const TCA_FQ_CODEL_FLOWS: u16 = 5;
    const TCA_FQ_CODEL_QUANTUM: u16 = 6;
    const TCA_FQ_CODEL_MEMORY_LIMIT: u16 = 9;
    options
        .u32(TCA_FQ_CODEL_TARGET, micros(config.target_ns))
        .u32(TCA_FQ_CODEL_LIMIT, limit)
        .u32(TCA_FQ_CODEL_INTERVAL, micros(config.interval_ns))
        .u32(TCA_FQ_CODEL_ECN, config.ecn.into());
    if made {
        options.u32(TCA_FQ_CODEL_FLOWS, config.flows);
    }
    options.u32(TCA_FQ_CODEL_QUANTUM, config.quantum_bytes).u32(TCA_FQ_CODEL_MEMORY_LIMIT, u32::MAX);
}

/// Gains in 256ths of a hertz, rounded; the rest as RFC 9332 has it and our own model.
fn dualpi2(options: &mut Attributes, limit: u32, config: &DualPi2Config) {
    const TCA_DUALPI2_LIMIT: u16 = 1;
    const TCA_DUALPI2_MEMORY_LIMIT: u16 = 2;
    const TCA_DUALPI2_TARGET: u16 = 3;
    const TCA_DUALPI2_TUPDATE: u16 = 4;
    const TCA_DUALPI2_ALPHA: u16 = 5;
    const TCA_DUALPI2_BETA: u16 = 6;
    const TCA_DUALPI2_STEP_THRESH_US: u16 = 8;
    const TCA_DUALPI2_COUPLING: u16 = 10;
    const TCA_DUALPI2_C_PROTECTION: u16 = 13;
    let gain = |mhz: u64| narrow((mhz * 256 + 500) / 1000);
    let percent = (u64::from(config.classic_ppb) * 100 / u64::from(ONE_PPB)) as u8;
    options
        .u32(TCA_DUALPI2_LIMIT, limit)
        .u32(TCA_DUALPI2_MEMORY_LIMIT, u32::MAX)
        .u32(TCA_DUALPI2_TARGET, micros(config.target_ns))
        .u32(TCA_DUALPI2_TUPDATE, micros(config.update_ns))
        .u32(TCA_DUALPI2_ALPHA, gain(config.alpha_mhz))
        .u32(TCA_DUALPI2_BETA, gain(config.beta_mhz))
        .u32(TCA_DUALPI2_STEP_THRESH_US, micros(config.step_ns))
        .bytes(TCA_DUALPI2_COUPLING, &[config.coupling as u8])
        .bytes(TCA_DUALPI2_C_PROTECTION, &[percent]);
}

/// Gains in sixteenths of a hertz; the kernel rounds the update interval to its jiffies.
fn pie(options: &mut Attributes, limit: u32, [target, update]: [u64; 2], [alpha, beta]: [u64; 2], ecn: bool) {
    const TCA_PIE_TARGET: u16 = 1;
    const TCA_PIE_LIMIT: u16 = 2;
    const TCA_PIE_TUPDATE: u16 = 3;
    const TCA_PIE_ALPHA: u16 = 4;
    const TCA_PIE_BETA: u16 = 5;
    const TCA_PIE_ECN: u16 = 6;
    options
        .u32(TCA_PIE_TARGET, micros(target))
        .u32(TCA_PIE_LIMIT, limit)
        .u32(TCA_PIE_TUPDATE, micros(update))
        .u32(TCA_PIE_ALPHA, narrow(alpha * 16 / 1000))
        .u32(TCA_PIE_BETA, narrow(beta * 16 / 1000))
        .u32(TCA_PIE_ECN, ecn.into());
}

/// matchall with one action, mirred: out at `exit`, and nowhere else.
pub fn redirect(options: &mut Attributes, exit: u32) {
    const TCA_MATCHALL_ACT: u16 = 2;
    const FIRST_ACTION: u16 = 1;
    const TCA_ACT_KIND: u16 = 1;
    const TCA_ACT_OPTIONS: u16 = 2;
    const TCA_MIRRED_PARMS: u16 = 2;
    const TC_ACT_STOLEN: u32 = 4;
    const TCA_EGRESS_REDIR: u32 = 1;
    options.nested(TCA_MATCHALL_ACT, &[], |actions| {
        actions.nested(FIRST_ACTION, &[], |action| {
            action.text(TCA_ACT_KIND, "mirred").nested(TCA_ACT_OPTIONS, &[], |mirred| {
                // struct tc_mirred: index, capabilities, action, reference and bind counts; what to do, and where.
                mirred.bytes(TCA_MIRRED_PARMS, &words([0, 0, TC_ACT_STOLEN, 0, 0, TCA_EGRESS_REDIR, exit]));
            });
        });
    });
}

#[cfg(test)]
mod tests;
