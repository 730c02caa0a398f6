//! From the halves of a probe to its result: pure. In: the probe, what each machine saw of it, and how far the machines'
//! clocks are apart. Out: the answer that a process gives which has all ends.
//!
//! A one-way delay between two machines is read off two clocks. Each clock's offset is known before and after the probe
//! and is taken to change evenly in between. A round trip begins and ends at one clock, and the time that its answer
//! took is of the other one alone: the offsets cancel.

use serde::{Deserialize, Serialize};

use super::observation::{self, Observation, Sample, SenderRecord};
use super::request::{Probe, Stream, Tcp, Udp};
use super::stats::{self, Arrival, Counts, Percentiles, Steady};

/// A probe that could not run says why; the others still run.
#[derive(Serialize)]
pub struct Outcome {
    pub name: String,
    pub elapsed_ns: u64,
    #[serde(flatten)]
    pub measured: Measured,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Measured {
    Delay(UdpMeasured),
    Loss(UdpMeasured),
    Rtt(UdpMeasured),
    Saturate(UdpMeasured),
    Tcp(TcpMeasured),
    Failed { error: String },
}

#[derive(Serialize)]
pub struct UdpMeasured {
    /// How far the clock was stepped while the probe ran: anything but a few µs makes the delays worthless.
    clock_step_ns: i64,
    streams: Vec<StreamMeasured>,
}

#[derive(Serialize)]
struct StreamMeasured {
    name: String,
    packet_bytes: usize,
    /// Handed to the network; those the own interface's queue refused are not among them.
    sent_packets: u64,
    refused_packets: u64,
    /// The host was too slow to send these in time.
    unsent_packets: u64,
    refused_why: Option<String>,
    /// First to last packet sent.
    sending_ns: u64,
    longest_sender_gap_ns: i64,
    #[serde(flatten)]
    counts: Counts,
    /// Arrived, but found the probe's own receive buffer full: not a loss of the link, but counted in lost_packets.
    socket_drops_packets: u64,
    /// One-way delay; round-trip time in an rtt probe. None when nothing arrived.
    delay: Option<Percentiles>,
    /// The one-way delay is read off two machines' clocks, whose difference is known to ± so much.
    #[serde(skip_serializing_if = "Option::is_none")]
    clocks_ns: Option<u64>,
    jitter_ns: f64,
    /// With those that share its link; None of a stream that shares another's.
    steady: Option<Steady>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arrived_series_packets: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delays_ns: Option<Vec<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spacings_ns: Option<Vec<i64>>,
    /// How many packets in a row were lost, and how often.
    loss_runs: Vec<(u64, u64)>,
}

#[derive(Serialize)]
pub struct TcpMeasured {
    congestion: String,
    connect_ns: u64,
    /// Payload that reached the receiver in the last `steady_ns`, in order or not: what the application gets waits
    /// for holes and then comes at once.
    goodput_bps: f64,
    steady_ns: u64,
    received_bytes: u64,
    segment_bytes: u32,
    min_rtt_ns: u64,
    srtt_ns: u64,
    retransmitted_segments: u32,
    /// How much of the steady part the CPUs of this process (all hosts and routers run there) had nothing to do; of two
    /// machines, those that had less.
    idle_ratio: f64,
    series: Vec<Sample>,
}

/// A machine's clock beside the first machine's: when the first one showed `at_ns`, this one was `offset_ns` ahead.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    pub at_ns: i64,
    pub offset_ns: i64,
    /// The true offset is within ± this.
    pub uncertainty_ns: u64,
}

/// The same before and after a probe.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    pub before: Reading,
    pub after: Reading,
}

impl Clock {
    /// How far ahead it is when it shows `at_ns`; outside of the two readings as at the nearer one.
    fn offset_ns(&self, at_ns: i64) -> i64 {
        let Self { before, after } = self;
        // Both by this clock.
        let begin = before.at_ns + before.offset_ns;
        let (passed, whole) = (at_ns - begin, after.at_ns + after.offset_ns - begin);
        let share = if whole > 0 { (passed as f64 / whole as f64).clamp(0.0, 1.0) } else { 0.0 };
        before.offset_ns + (share * (after.offset_ns - before.offset_ns) as f64).round() as i64
    }

    fn middle_ns(&self) -> i64 {
        self.before.offset_ns + (self.after.offset_ns - self.before.offset_ns) / 2
    }

    fn uncertainty_ns(&self) -> u64 {
        self.before.uncertainty_ns.max(self.after.uncertainty_ns)
    }
}

/// What one machine saw; without a clock it is the first machine, with whose all others are compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    pub half: Observation,
    #[serde(default)]
    pub clock: Option<Clock>,
}

impl Share {
    /// Of a process that has all ends.
    pub fn whole(half: Observation) -> Vec<Self> {
        vec![Self { half, clock: None }]
    }
}

pub fn of(probe: &Probe, shares: Vec<Share>) -> Result<Measured, String> {
    Ok(match probe {
        Probe::Delay(probe) => Measured::Delay(udp(probe, shares, false)?),
        Probe::Loss(probe) => Measured::Loss(udp(probe, shares, false)?),
        Probe::Saturate(probe) => Measured::Saturate(udp(probe, shares, false)?),
        Probe::Rtt(probe) => Measured::Rtt(udp(probe, shares, true)?),
        Probe::Tcp(probe) => Measured::Tcp(tcp(probe, shares)?),
    })
}

/// Both ends of a stream.
#[derive(Default)]
struct StreamEnds {
    sent: Option<SenderRecord>,
    arrivals: Option<Vec<Arrival>>,
    drops: u64,
    /// The machines' numbers.
    sender: usize,
    receiver: usize,
}

fn udp(probe: &Udp, shares: Vec<Share>, round_trip: bool) -> Result<UdpMeasured, String> {
    let mut wholes: Vec<StreamEnds> = probe.streams.iter().map(|_| StreamEnds::default()).collect();
    let (mut clocks, mut clock_step_ns) = (Vec::new(), 0i64);
    for (machine, share) in shares.into_iter().enumerate() {
        let Observation::Udp(half) = share.half else { return Err("a half of TCP".into()) };
        clocks.push(share.clock);
        if half.streams.len() != wholes.len() {
            return Err(format!("a half of {} streams, the probe has {}", half.streams.len(), wholes.len()));
        }
        if half.clock_step_ns.abs() > clock_step_ns.abs() {
            clock_step_ns = half.clock_step_ns;
        }
        for (whole, half) in wholes.iter_mut().zip(half.streams) {
            whole.drops += half.socket_drops_packets;
            if half.sent.is_some() {
                (whole.sent, whole.sender) = (half.sent, machine);
            }
            if half.arrivals.is_some() {
                (whole.arrivals, whole.receiver) = (half.arrivals, machine);
            }
        }
    }
    let mut streams = Vec::with_capacity(wholes.len());
    for (stream, whole) in probe.streams.iter().zip(wholes) {
        streams.push(MergedStream::of(stream, whole, &clocks, round_trip)?);
    }
    let steady: Vec<_> = streams.iter().map(|each| each.steady(&streams)).collect();
    let measured = streams.into_iter().zip(steady).map(|(each, steady)| each.measured(probe, steady));
    Ok(UdpMeasured { clock_step_ns, streams: measured.collect() })
}

/// A stream by the first machine's clock.
struct MergedStream<'a> {
    stream: &'a Stream,
    sent: SenderRecord,
    arrivals: Vec<Arrival>,
    drops: u64,
    clocks_ns: Option<u64>,
}

impl<'a> MergedStream<'a> {
    fn of(stream: &'a Stream, whole: StreamEnds, clocks: &[Option<Clock>], round_trip: bool) -> Result<Self, String> {
        let missing = |what| format!("stream {:?}: no machine says what {what}", stream.name);
        let sent = whole.sent.ok_or_else(|| missing("was sent"))?;
        let mut arrivals = whole.arrivals.ok_or_else(|| missing("arrived"))?;
        if sent.offered > stream.packets || sent.refused > sent.offered {
            return Err(format!("stream {:?}: more was sent than the probe has", stream.name));
        }
        // Of an earlier probe's packets, which bear another number, there are none; of a packet never sent, neither.
        arrivals.retain(|arrival| arrival.sequence < sent.offered);
        let (sender, receiver) = (clocks[whole.sender], clocks[whole.receiver]);
        let two_clocks = !round_trip && whole.sender != whole.receiver;
        if two_clocks {
            let ahead = |clock: Option<Clock>, at_ns| clock.map_or(0, |clock| clock.offset_ns(at_ns));
            for arrival in &mut arrivals {
                let sent_ns = arrival.at_ns - arrival.delay_ns;
                arrival.delay_ns += ahead(sender, sent_ns) - ahead(receiver, arrival.at_ns);
            }
        }
        if let Some(clock) = receiver {
            // All by the same: what an offset is wrong by must not change the time between two arrivals.
            let middle = clock.middle_ns();
            arrivals.iter_mut().for_each(|arrival| arrival.at_ns -= middle);
        }
        let uncertainty = |clock: Option<Clock>| clock.map_or(0, |clock| clock.uncertainty_ns());
        let clocks_ns = two_clocks.then(|| uncertainty(sender) + uncertainty(receiver));
        Ok(Self { stream, sent, arrivals, drops: whole.drops, clocks_ns })
    }

    /// Of its own packets, and of those that share its link, as they arrived one after the other.
    fn steady(&self, all: &[Self]) -> Option<Steady> {
        let stream = self.stream;
        if stream.shares_with.is_some() {
            return None;
        }
        let (skip_ns, packet_bytes) = (stream.skip_ns, stream.packet_bytes as u64);
        let others: Vec<_> = all.iter().filter(|each| each.stream.shares_with.as_ref() == Some(&stream.name)).collect();
        if others.is_empty() {
            return stats::steady(&self.arrivals, skip_ns, packet_bytes);
        }
        let mut arrivals = self.arrivals.clone();
        others.iter().for_each(|each| arrivals.extend(&each.arrivals));
        arrivals.sort_by_key(|arrival| arrival.at_ns);
        stats::steady(&arrivals, skip_ns, packet_bytes)
    }

    fn measured(self, probe: &Udp, steady: Option<Steady>) -> StreamMeasured {
        let delays: Vec<i64> = self.arrivals.iter().map(|arrival| arrival.delay_ns).collect();
        let sent = self.sent.offered - self.sent.refused;
        StreamMeasured {
            name: self.stream.name.clone(),
            packet_bytes: self.stream.packet_bytes,
            sent_packets: sent,
            refused_packets: self.sent.refused,
            unsent_packets: self.stream.packets - self.sent.offered,
            refused_why: self.sent.refused_why,
            sending_ns: (self.sent.last_ns - self.sent.first_ns) as u64,
            longest_sender_gap_ns: self.sent.longest_gap_ns,
            counts: stats::counts(&self.arrivals, self.sent.offered, sent),
            socket_drops_packets: self.drops,
            clocks_ns: self.clocks_ns,
            jitter_ns: stats::jitter_ns(&self.arrivals),
            steady,
            arrived_series_packets: stats::series(&self.arrivals, probe.series_ns),
            delay: stats::percentiles(delays.clone()),
            delays_ns: self.stream.raw.then_some(delays),
            spacings_ns: self.stream.raw.then(|| stats::spacings_ns(&self.arrivals)),
            loss_runs: stats::loss_runs(&self.arrivals),
        }
    }
}

fn tcp(probe: &Tcp, shares: Vec<Share>) -> Result<TcpMeasured, String> {
    let (mut source, mut sink) = (None, None);
    for share in shares {
        let Observation::Tcp(half) = share.half else { return Err("a half of UDP".into()) };
        source = half.source.or(source);
        sink = half.sink.or(sink);
    }
    let observation::Source { connect_ns, segment_bytes, min_rtt_ns, series, idle } =
        source.ok_or("no machine says what was sent")?;
    let last = series.last().cloned().ok_or("no sample: duration_ns is below sample_ns")?;
    let from_ns = last.time_ns.saturating_sub(probe.steady_ns);
    let first = series.iter().rev().find(|sample| sample.time_ns <= from_ns).unwrap_or(&series[0]).clone();
    let steady_ns = last.time_ns - first.time_ns;
    let segments = last.delivered_segments.wrapping_sub(first.delivered_segments);
    let bits = 8.0 * f64::from(segments) * f64::from(segment_bytes);
    let own = idle_ratio(last.idle_ns.saturating_sub(first.idle_ns), steady_ns, idle.cpus);
    let other = sink.and_then(|idle| idle_of(&idle, first.time_ns, last.time_ns));
    Ok(TcpMeasured {
        congestion: probe.congestion.clone(),
        connect_ns,
        goodput_bps: if steady_ns == 0 { 0.0 } else { bits * 1e9 / steady_ns as f64 },
        steady_ns,
        received_bytes: last.received_bytes,
        segment_bytes,
        min_rtt_ns,
        srtt_ns: last.srtt_ns,
        retransmitted_segments: last.retransmitted_segments,
        idle_ratio: other.map_or(own, |other| own.min(other)),
        series,
    })
}

fn idle_ratio(idle_ns: u64, of_ns: u64, cpus: usize) -> f64 {
    let each = idle_ns as f64 / cpus.max(1) as f64;
    if of_ns == 0 {
        0.0
    } else {
        (each / of_ns as f64).min(1.0)
    }
}

/// Between these two times since the connection was there, as nearly as they were looked at; None: not at two of them.
fn idle_of(idle: &observation::Idle, from_ns: u64, to_ns: u64) -> Option<f64> {
    let before = |limit_ns: u64| idle.series.iter().rev().find(|(time_ns, _)| *time_ns <= limit_ns);
    let (first, last) = (before(from_ns).or(idle.series.first())?, before(to_ns)?);
    let passed = last.0.checked_sub(first.0).filter(|&passed| passed > 0)?;
    Some(idle_ratio(last.1.saturating_sub(first.1), passed, idle.cpus))
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;
