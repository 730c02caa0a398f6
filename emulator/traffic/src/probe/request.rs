//! What a probe run is asked to do: JSON, integers, the unit in the key; unknown keys are refused, and every probe
//! is bounded in time and in packets before the first one is sent.

use serde::Deserialize;

use crate::clock::Clock;
use crate::packets::HEADER_BYTES;
pub use crate::socket::Endpoint;

const SECOND_NS: u64 = 1_000_000_000;
const LONGEST_NS: u64 = 600 * SECOND_NS;
const LONGEST_VIRTUAL_NS: u64 = 86_400 * SECOND_NS;
const MOST_PACKETS: u64 = 20_000_000;
const MOST_STREAMS: usize = 16_384;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    #[serde(default)]
    pub clock: Clock,
    /// Where the probe's threads may run; empty: anywhere.
    pub cpus: Vec<u32>,
    pub probes: Vec<Probe>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Probe {
    /// Stamped packets at a slow pace: one-way delay.
    Delay(Udp),
    /// Many small packets at a pace well below the link's rate: counts.
    Loss(Udp),
    /// More than the link carries, long enough to fill its queue: rate and queue limit.
    Saturate(Udp),
    /// Each packet is answered: round-trip time without the time the answering end took.
    Rtt(Udp),
    Tcp(Tcp),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Udp {
    pub name: String,
    pub streams: Vec<Stream>,
    /// How long to wait for packets under way after the last one was sent.
    pub drain_ns: u64,
    /// Width of the bins of `arrived_series_packets`; 0: no series.
    #[serde(default)]
    pub series_ns: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    pub name: String,
    pub from: Endpoint,
    pub to: Endpoint,
    /// Size of the IP packet.
    pub packet_bytes: usize,
    /// Packets that the host could not send within 1.25 × `packets` × `interval_ns` stay unsent.
    pub interval_ns: u64,
    pub packets: u64,
    /// When its first packet is due, from the start of the probe.
    #[serde(default)]
    pub start_ns: u64,
    /// Packets that go out together when the last of them is due; 0: in the live clock what is due within 0.1 ms, as
    /// each wake-up is late; in the virtual clock 1, as none is.
    #[serde(default)]
    pub batch_packets: u64,
    /// Start of the steady part, counted from the first arrival; the rate is that of the steady part.
    #[serde(default)]
    pub skip_ns: u64,
    /// Answer with each delay, and each time between two arrivals, in order of arrival.
    #[serde(default)]
    pub raw: bool,
    /// An earlier stream that goes over the same link: what is steady is that of both together, and told with the other.
    #[serde(default)]
    pub shares_with: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    pub name: String,
    pub from: Endpoint,
    pub to: Endpoint,
    /// Named always: the kernel's default differs between machines.
    #[serde(default = "cubic")]
    pub congestion: String,
    pub duration_ns: u64,
    /// The last part of the duration, over which goodput is counted.
    pub steady_ns: u64,
    #[serde(default = "tenth_of_a_second")]
    pub sample_ns: u64,
    #[serde(default = "five_seconds")]
    pub connect_timeout_ns: u64,
}

fn cubic() -> String {
    "cubic".into()
}

fn tenth_of_a_second() -> u64 {
    SECOND_NS / 10
}

fn five_seconds() -> u64 {
    5 * SECOND_NS
}

impl Request {
    pub fn parse(text: &str) -> Result<Self, String> {
        let request: Self = serde_json::from_str(text).map_err(|error| format!("probe request: {error}"))?;
        for probe in &request.probes {
            probe.check(request.clock).map_err(|what| format!("probe {:?}: {what}", probe.name()))?;
        }
        Ok(request)
    }
}

impl Probe {
    pub fn name(&self) -> &str {
        match self {
            Self::Delay(udp) | Self::Loss(udp) | Self::Saturate(udp) | Self::Rtt(udp) => &udp.name,
            Self::Tcp(tcp) => &tcp.name,
        }
    }

    /// An upper bound of its duration.
    pub fn longest_ns(&self) -> u64 {
        match self {
            Self::Delay(udp) | Self::Loss(udp) | Self::Saturate(udp) | Self::Rtt(udp) => {
                udp.streams.iter().map(Stream::longest_ns).max().unwrap_or(0).saturating_add(udp.drain_ns)
            }
            Self::Tcp(tcp) => tcp.duration_ns.saturating_add(tcp.connect_timeout_ns),
        }
    }

    pub fn check(&self, clock: Clock) -> Result<(), String> {
        let most = if clock == Clock::Virtual { LONGEST_VIRTUAL_NS } else { LONGEST_NS };
        match self {
            Self::Delay(udp) | Self::Loss(udp) | Self::Saturate(udp) | Self::Rtt(udp) => udp.check()?,
            Self::Tcp(tcp) => tcp.check()?,
        }
        match self.longest_ns() {
            longest if longest <= most => Ok(()),
            longest => Err(format!("takes up to {} s, at most {} s", longest / SECOND_NS, most / SECOND_NS)),
        }
    }
}

impl Udp {
    fn check(&self) -> Result<(), String> {
        if self.streams.len() > MOST_STREAMS {
            return Err(format!("{} streams, at most {MOST_STREAMS}", self.streams.len()));
        }
        let packets = self.streams.iter().fold(0u64, |sum, stream| sum.saturating_add(stream.packets));
        if packets > MOST_PACKETS {
            return Err(format!("{packets} packets, at most {MOST_PACKETS}"));
        }
        for (number, stream) in self.streams.iter().enumerate() {
            let first =
                |name: &String| self.streams[..number].iter().any(|s| s.shares_with.is_none() && s.name == *name);
            if let Some(name) = stream.shares_with.as_ref().filter(|name| !first(name)) {
                return Err(format!(
                    "stream {:?}: shares_with {name:?}: give an earlier stream of its own",
                    stream.name
                ));
            }
        }
        self.streams.iter().try_for_each(Stream::check)
    }
}

impl Stream {
    fn duration_ns(&self) -> u64 {
        self.interval_ns.saturating_mul(self.packets)
    }

    /// From the start of the probe; a host that is too slow gets a quarter more time.
    pub fn longest_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns()).saturating_add(self.duration_ns() / 4)
    }

    /// Bytes of the UDP payload that make an IP packet of `packet_bytes`.
    pub fn payload_bytes(&self) -> usize {
        self.packet_bytes.saturating_sub(self.headers_bytes())
    }

    fn headers_bytes(&self) -> usize {
        8 + if self.to.address.is_ipv6() { 40 } else { 20 }
    }

    fn check(&self) -> Result<(), String> {
        let least = self.headers_bytes() + HEADER_BYTES;
        let most = if self.to.address.is_ipv6() { 65_575 } else { 65_535 };
        if self.from.address.is_ipv6() != self.to.address.is_ipv6() {
            Err(format!("stream {:?}: from and to are of different address families", self.name))
        } else if !(least..=most).contains(&self.packet_bytes) {
            Err(format!("stream {:?}: packet_bytes {}: give {least} to {most}", self.name, self.packet_bytes))
        } else if self.packets == 0 || self.interval_ns == 0 {
            Err(format!("stream {:?}: packets and interval_ns must be above 0", self.name))
        } else {
            Ok(())
        }
    }
}

impl Tcp {
    fn check(&self) -> Result<(), String> {
        if self.sample_ns < 1_000_000 {
            Err(format!("sample_ns {}: give 1000000 (1 ms) or more", self.sample_ns))
        } else if self.steady_ns == 0 || self.steady_ns > self.duration_ns {
            Err(format!("steady_ns {}: give 1 to duration_ns", self.steady_ns))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: &str = r#"{"netns": "/run/netns/a", "address": "10.0.0.1"}"#;

    fn delay(stream: &str) -> Result<Request, String> {
        Request::parse(&format!(
            r#"{{"cpus": [0], "probes": [{{"kind": "delay", "name": "d", "drain_ns": 1000, "streams": [
                {{"name": "s", "from": {END}, "to": {END}, {stream}}}]}}]}}"#
        ))
    }

    #[test]
    fn a_stream_is_read() {
        let request = delay(r#""packet_bytes": 100, "interval_ns": 10, "packets": 3"#).unwrap();
        let Probe::Delay(probe) = &request.probes[0] else { panic!("{request:?}") };
        assert_eq!(probe.streams[0].payload_bytes(), 72);
        assert_eq!(request.probes[0].longest_ns(), 1037);
        let later = delay(r#""packet_bytes": 100, "interval_ns": 10, "packets": 3, "start_ns": 500"#).unwrap();
        assert_eq!(later.probes[0].longest_ns(), 1537);
    }

    #[test]
    fn what_cannot_be_done_is_refused_in_one_line() {
        for (stream, says) in [
            (r#""packet_bytes": 100, "interval_ns": 10, "packets": 3, "pause_ns": 1"#, "unknown field `pause_ns`"),
            (r#""packet_bytes": 59, "interval_ns": 10, "packets": 3"#, "packet_bytes 59: give 60 to 65535"),
            (r#""packet_bytes": 100, "interval_ns": 0, "packets": 3"#, "must be above 0"),
            (r#""packet_bytes": 100, "interval_ns": 1000000000, "packets": 481"#, "at most 600 s"),
            (r#""packet_bytes": 100, "interval_ns": 1, "packets": 20000001"#, "at most 20000000"),
            (r#""packet_bytes": 100, "interval_ns": 1, "packets": 1, "shares_with": "s""#, "an earlier stream"),
        ] {
            let error = delay(stream).unwrap_err();
            assert!(error.contains(says), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn only_the_virtual_clock_has_hours_to_spare() {
        let hours = r#""packet_bytes": 100, "interval_ns": 1000000000, "packets": 7200"#;
        let ask = |clock: &str| {
            Request::parse(&format!(
                r#"{{"clock": "{clock}", "cpus": [], "probes": [{{"kind": "delay", "name": "d", "drain_ns": 1,
                    "streams": [{{"name": "s", "from": {END}, "to": {END}, {hours}}}]}}]}}"#
            ))
        };
        assert_eq!(ask("virtual").unwrap().clock, Clock::Virtual);
        assert!(ask("live").unwrap_err().contains("at most 600 s"));
        assert!(ask("lunar").unwrap_err().contains("unknown variant `lunar`"));
    }

    #[test]
    fn both_ends_are_of_one_family() {
        let error = Request::parse(&format!(
            r#"{{"cpus": [], "probes": [{{"kind": "rtt", "name": "p", "drain_ns": 1, "streams": [{{"name": "s",
            "from": {END}, "to": {{"netns": "/run/netns/b", "address": "fd00::1"}},
            "packet_bytes": 100, "interval_ns": 1, "packets": 1}}]}}]}}"#
        ));
        assert!(error.unwrap_err().contains("different address families"));
    }
}
