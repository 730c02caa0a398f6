//! The record that a program prints at its end: one line of JSON, the same of each library.

use serde::Serialize;
use tokio::task::JoinError;

use crate::LIBRARY;

#[derive(Serialize)]
pub struct Record {
    format: &'static str,
    end: &'static str,
    library: &'static str,
    pub begun_ns: i64,
    pub streams: Vec<Stream>,
}

/// One connection. `last_ns`: the arrival of the last byte at a receiver, the last acknowledgement at a sender.
#[derive(Serialize, Default)]
pub struct Stream {
    pub stream: u32,
    pub started_ns: Option<i64>,
    pub connected_ns: Option<i64>,
    pub ended_ns: Option<i64>,
    pub last_ns: Option<i64>,
    pub bytes: u64,
    pub error: Option<String>,
    pub udp_sent: Counted,
    pub udp_received: Counted,
    pub sent_packets: Option<u64>,
    pub lost_packets: Option<u64>,
    pub congestion_events: Option<u64>,
    pub min_rtt_ns: Option<u64>,
    pub payload_bytes: Option<u64>,
    /// Of a client of HTTP/3: the bytes of all objects that it asked for, where their number was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<u64>,
    /// Of a receiver: the bytes of each bin in which something came, by the bin's number from T0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<Bin>,
    /// Of a client of HTTP/3: what came whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<Object>,
    /// Of a sender: its state from time to time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
}

/// UDP datagrams, and the bytes in them.
#[derive(Serialize, Default)]
pub struct Counted {
    pub datagrams: u64,
    pub bytes: u64,
}

#[derive(Serialize)]
pub struct Bin {
    pub number: i64,
    /// None: the library does not tell.
    pub arrived: Option<u64>,
    pub delivered: u64,
}

#[derive(Serialize)]
pub struct Object {
    pub number: u64,
    pub start_ns: i64,
    pub duration_ns: i64,
    pub bytes: u64,
}

#[derive(Serialize)]
pub struct Sample {
    pub time_ns: i64,
    pub cwnd_bytes: u64,
    pub ssthresh_bytes: Option<u64>,
    pub in_flight_bytes: Option<u64>,
    pub pacing_bps: Option<u64>,
    pub srtt_ns: u64,
    pub rttvar_ns: Option<u64>,
    pub mtu_bytes: u64,
    pub sent_packets: u64,
    pub lost_packets: u64,
    pub congestion_events: Option<u64>,
}

impl Record {
    pub fn new(end: &'static str, begun_ns: i64, streams: Vec<Stream>) -> Self {
        Record { format: "ewan-quic/1", end, library: LIBRARY, begun_ns, streams }
    }

    /// The record of tasks that have ended, a stream each, in the order of the streams. `count` adds what is known only
    /// now.
    pub fn of_streams<T>(
        end: &'static str,
        begun_ns: i64,
        ended: Vec<Result<T, JoinError>>,
        count: impl Fn(T) -> Stream,
    ) -> Result<Self, String> {
        let counted = |each: Result<T, JoinError>| each.map(&count).map_err(|error| format!("a stream: {error}"));
        let mut streams = ended.into_iter().map(counted).collect::<Result<Vec<_>, _>>()?;
        streams.sort_by_key(|each| each.stream);
        Ok(Record::new(end, begun_ns, streams))
    }

    pub fn print(&self) -> Result<(), String> {
        let text = serde_json::to_string(self).map_err(|error| format!("its record: {error}"))?;
        println!("{text}");
        Ok(())
    }
}

impl Stream {
    /// Notes what came now.
    pub fn came(&mut self, now_ns: i64, bin_ns: i64, arrived: Option<u64>, delivered: u64) {
        self.bytes += delivered;
        self.last_ns = Some(now_ns);
        if bin_ns == 0 {
            return;
        }
        let number = now_ns.div_euclid(bin_ns);
        match self.bins.last_mut() {
            Some(bin) if bin.number == number => {
                bin.arrived = bin.arrived.zip(arrived).map(|(known, more)| known + more);
                bin.delivered += delivered;
            }
            _ => self.bins.push(Bin { number, arrived, delivered }),
        }
    }
}
