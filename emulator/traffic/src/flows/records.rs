//! What is kept of flows: a record of each in traffic.json, and rows of tables as they come.
//!
//! Keys and columns are those of labs/record/tables.py; times are nanoseconds from T0, sizes payload bytes.

use serde::Serialize;

use super::udp::reception::Reception;
use crate::table::{add, Row};
use crate::tcp_info::Sample;

pub const FORMAT: &str = "ewan-traffic-result/1";

#[derive(Serialize)]
pub(crate) struct Answer {
    pub format: &'static str,
    pub interrupted: bool,
    pub flows: Vec<Record>,
}

/// One flow, or one part of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Record {
    pub flow: u32,
    pub part: u32,
    pub kind: &'static str,
    pub congestion: Option<String>,
    pub scheduled_ns: u64,
    /// When its first system call was made; none: never.
    pub started_ns: Option<i64>,
    pub connected_ns: Option<i64>,
    pub ended_ns: Option<i64>,
    /// From `scheduled_ns` to the last of its bytes; none: not all came.
    pub completion_ns: Option<u64>,
    pub volume_bytes: Option<u64>,
    pub received_bytes: u64,
    pub goodput_bps: Option<f64>,
    pub segment_bytes: Option<u32>,
    pub min_rtt_ns: Option<u64>,
    pub retransmitted_segments: Option<u32>,
    pub copied_segments: Option<u32>,
    pub timeouts: Option<u32>,
    /// The source's, by which links, and a process that has the other end, tell it from others; none: not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Why it went no further.
    pub error: Option<String>,
    #[serde(flatten)]
    pub udp: Option<UdpRecord>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct UdpRecord {
    pub sent_packets: u64,
    pub received_packets: u64,
    pub lost_packets: u64,
    pub reordered_packets: u64,
    pub duplicate_packets: u64,
    pub delay_min_ns: Option<i64>,
    pub delay_p50_ns: Option<i64>,
    pub delay_p95_ns: Option<i64>,
    pub delay_p99_ns: Option<i64>,
    pub delay_max_ns: Option<i64>,
    pub jitter_ns: Option<f64>,
}

impl UdpRecord {
    /// Of what a receiver made of so many packets.
    pub(super) fn of(heard: &Reception, sent_packets: u64) -> Self {
        let delay = |per_mille| heard.delays.percentile(per_mille);
        Self {
            sent_packets,
            received_packets: heard.packets,
            lost_packets: sent_packets.saturating_sub(heard.packets),
            reordered_packets: heard.reordered,
            duplicate_packets: heard.duplicates,
            delay_min_ns: heard.delays.least(),
            delay_p50_ns: delay(500),
            delay_p95_ns: delay(950),
            delay_p99_ns: delay(990),
            delay_max_ns: heard.delays.largest(),
            jitter_ns: (heard.packets > 0).then(|| heard.jitter.ns()),
        }
    }
}

impl Record {
    /// Sets the goodput of the payload received from the scheduled start to `ended_ns`.
    pub fn with_goodput(mut self) -> Self {
        let took = self.ended_ns.map(|ended| ended - self.scheduled_ns as i64).filter(|&ns| ns > 0);
        self.goodput_bps = took.map(|ns| self.received_bytes as f64 * 8e9 / ns as f64);
        self
    }
}

/// A request with its response; an iteration of a rank.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    pub flow: u32,
    pub part: u32,
    pub number: u64,
    pub start_ns: i64,
    pub duration_ns: i64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

impl Row for Exchange {
    const COLUMNS: &'static str = "flow,part,number,start_ns,duration_ns,sent_bytes,received_bytes";

    fn line(&self, line: &mut String) {
        let Self { flow, part, number, start_ns, duration_ns, sent_bytes, received_bytes } = self;
        add(line, format_args!("{flow},{part},{number},{start_ns},{duration_ns},{sent_bytes},{received_bytes}"));
    }
}

/// A frame of a media flow, and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct FrameRow {
    pub flow: u32,
    pub number: u32,
    pub key: bool,
    pub size_bytes: u32,
    pub captured_ns: u64,
    pub sent_ns: Option<u64>,
    pub completed_ns: Option<u64>,
    pub shown_ns: Option<u64>,
}

impl Row for FrameRow {
    const COLUMNS: &'static str = "flow,part,number,key,size_bytes,captured_ns,sent_ns,completed_ns,shown_ns";

    fn line(&self, line: &mut String) {
        let Self { flow, number, key, size_bytes, captured_ns, .. } = self;
        add(line, format_args!("{flow},0,{number},{key},{size_bytes},{captured_ns}"));
        for time in [self.sent_ns, self.completed_ns, self.shown_ns] {
            add_or_empty(line, time);
        }
    }
}

/// What the rate control of a media sender knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct MediaSample {
    pub target_bps: u64,
    pub encoder_bps: u64,
    pub window_bytes: Option<u64>,
    pub in_flight_bytes: u64,
    pub queued_bytes: u64,
    pub srtt_ns: Option<u64>,
    pub queue_delay_ns: Option<u64>,
}

/// A look at it.
pub(crate) struct MediaRow {
    pub flow: u32,
    pub time_ns: u64,
    pub sample: MediaSample,
}

impl Row for MediaRow {
    const COLUMNS: &'static str = "flow,part,time_ns,target_bps,encoder_bps,window_bytes,in_flight_bytes,queued_bytes,\
        srtt_ns,queue_delay_ns";

    fn line(&self, line: &mut String) {
        let s = &self.sample;
        add(line, format_args!("{},0,{},{},{}", self.flow, self.time_ns, s.target_bps, s.encoder_bps));
        let others = [s.window_bytes, Some(s.in_flight_bytes), Some(s.queued_bytes), s.srtt_ns, s.queue_delay_ns];
        for value in others {
            add_or_empty(line, value);
        }
    }
}

fn add_or_empty(line: &mut String, value: Option<u64>) {
    line.push(',');
    if let Some(value) = value {
        add(line, format_args!("{value}"));
    }
}

/// What a receiver got in a bin.
pub(crate) struct Goodput {
    pub flow: u32,
    pub part: u32,
    /// The bin's end.
    pub time_ns: u64,
    pub bin_ns: u64,
    pub delivered_bytes: u64,
    pub arrived_bytes: Option<u64>,
}

impl Row for Goodput {
    const COLUMNS: &'static str = "flow,part,time_ns,bin_ns,delivered_bytes,arrived_bytes";

    fn line(&self, line: &mut String) {
        let Self { flow, part, time_ns, bin_ns, delivered_bytes, arrived_bytes } = self;
        add(line, format_args!("{flow},{part},{time_ns},{bin_ns},{delivered_bytes},"));
        if let Some(bytes) = arrived_bytes {
            add(line, format_args!("{bytes}"));
        }
    }
}

/// A look at a sender.
pub(crate) struct SenderSample {
    pub flow: u32,
    pub part: u32,
    pub sample: Sample,
    /// Cells of the columns of its congestion control.
    pub state: Vec<String>,
}

impl Row for SenderSample {
    const COLUMNS: &'static str = "flow,part,time_ns,acked_bytes,delivered_segments,cwnd_segments,ssthresh_segments,\
        in_flight_segments,srtt_ns,rttvar_ns,retransmitted_segments,lost_segments,delivery_rate_bps,pacing_rate_bps";

    fn line(&self, line: &mut String) {
        let s = &self.sample;
        add(line, format_args!("{},{},{},{}", self.flow, self.part, s.time_ns, s.acked_bytes));
        add(line, format_args!(",{},{},{}", s.delivered_segments, s.cwnd_segments, s.ssthresh_segments));
        add(line, format_args!(",{},{},{}", s.in_flight_segments, s.srtt_ns, s.rttvar_ns));
        add(line, format_args!(",{},{},{}", s.retransmitted_segments, s.lost_segments, s.delivery_rate_bps));
        match s.pacing_rate_bps {
            Some(rate) => add(line, format_args!(",{rate}")),
            None => line.push(','),
        }
        for cell in &self.state {
            add(line, format_args!(",{cell}"));
        }
    }
}
