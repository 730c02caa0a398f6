//! What both ends of a measurement are asked: JSON, integers, the unit in the key; unknown keys are refused, and all is
//! bounded before the first packet is sent.

use std::io::Read;
use std::net::IpAddr;

use ewan_traffic::packets::HEADER_BYTES;
use serde::Deserialize;

use super::{words, FORMAT};

/// More than a request has.
const MOST_TEXT: u64 = 64 << 10;
const MOST_VNI: u32 = (1 << 24) - 1;
/// The least that an interface of IPv4 has (RFC 791).
const MTUS: std::ops::RangeInclusive<u32> = 68..=65_535;
/// Of IPv4 without options, and of UDP.
pub const HEADERS_BYTES: usize = 20 + 8;
const LONGEST_NS: u64 = 60_000_000_000;
const LEAST_INTERVAL_NS: u64 = 10_000;
pub const MOST_BURST_BYTES: u64 = 64_000_000;
/// Where a burst is asked for: fewer packets have no pace.
const FEWEST_IN_BURST: u64 = 16;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    format: String,
    /// Tells the tunnels of a UDP port apart (VXLAN, RFC 7348).
    pub vni: u32,
    /// Of this machine.
    pub local: IpAddr,
    /// Of the other one.
    pub remote: IpAddr,
    /// UDP, of both machines.
    pub port: u16,
    /// Of the interface inside the tunnel: the largest IP packet that a lab will send.
    pub mtu: u32,
    /// Whose round trips are measured.
    pub packets: u64,
    pub interval_ns: u64,
    /// Of the burst each way by which the rate is measured; 0: no burst.
    pub rate_bytes: u64,
}

impl Request {
    /// The first JSON object of `input`, which may stay open.
    pub fn read(input: impl Read) -> Result<Self, String> {
        let mut documents = serde_json::Deserializer::from_reader(input.take(MOST_TEXT)).into_iter::<Self>();
        let say = |what: String| format!("stretch: standard input: {what}");
        let request = documents.next().ok_or_else(|| say("is empty: give the request, a JSON object".into()))?;
        let request = request.map_err(|error| say(error.to_string()))?;
        request.check().map_err(say)?;
        Ok(request)
    }

    fn check(&self) -> Result<(), String> {
        let Self { vni, local, remote, mtu, packets, interval_ns, rate_bytes, .. } = *self;
        if self.format != FORMAT {
            return Err(format!("format {:?}: give {FORMAT:?}", self.format));
        }
        if vni == 0 || vni > MOST_VNI {
            return Err(format!("vni {vni}: give 1 to {MOST_VNI}"));
        }
        for (key, address) in [("local", local), ("remote", remote)] {
            let linked = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
            if linked || address.is_unspecified() || address.is_multicast() {
                return Err(format!("{key} {address}: give an address that the other machine has a route to"));
            }
        }
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(format!("local {local}, remote {remote}: give two addresses of one family"));
        }
        if local == remote {
            return Err(format!("local and remote are both {local}: give the other machine's address as remote"));
        }
        if self.port == 0 {
            return Err("port 0: give a UDP port, such as 4789".into());
        }
        if !MTUS.contains(&mtu) {
            return Err(format!("mtu {mtu}: give {} to {}", MTUS.start(), MTUS.end()));
        }
        if packets == 0 || packets > words::MOST_PACKETS {
            return Err(format!("packets {packets}: give 1 to {}", words::MOST_PACKETS));
        }
        if interval_ns < LEAST_INTERVAL_NS || interval_ns.saturating_mul(packets) > LONGEST_NS {
            return Err(format!(
                "interval_ns {interval_ns}: give {LEAST_INTERVAL_NS} or more, for {packets} packets at most {}",
                LONGEST_NS / packets
            ));
        }
        if rate_bytes > MOST_BURST_BYTES {
            return Err(format!("rate_bytes {rate_bytes}: give at most {MOST_BURST_BYTES}"));
        }
        Ok(())
    }

    /// UDP payload of the largest packet.
    pub fn most_payload_bytes(&self) -> usize {
        self.mtu as usize - HEADERS_BYTES
    }

    /// How many packets of this payload a burst has.
    pub fn burst_packets(&self, payload_bytes: usize) -> u64 {
        match self.rate_bytes {
            0 => 0,
            bytes => (bytes / payload_bytes as u64).clamp(FEWEST_IN_BURST, words::MOST_PACKETS),
        }
    }
}

/// The smallest packet that says anything.
pub const LEAST_BYTES: usize = HEADERS_BYTES + HEADER_BYTES;

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const GOOD: &str = r#"{"format": "ewan-stretch/1", "vni": 7, "local": "10.0.0.1", "remote": "10.0.0.2",
        "port": 4789, "mtu": 1450, "packets": 100, "interval_ns": 1000000, "rate_bytes": 1000000}"#;

    fn refused(from: &str, to: &str) -> String {
        let text = GOOD.replace(from, to);
        assert_ne!(text, GOOD);
        let error = Request::read(text.as_bytes()).unwrap_err();
        assert!(!error.contains('\n') && error.starts_with("stretch: standard input: "), "{error}");
        error
    }

    #[test]
    fn the_first_object_is_read_and_what_follows_is_not_waited_for() {
        let request = Request::read(format!("{GOOD}\nrest").as_bytes()).unwrap();
        assert_eq!((request.vni, request.most_payload_bytes()), (7, 1422));
        assert_eq!((request.burst_packets(1422), request.burst_packets(1_000_000)), (703, 16));
    }

    #[test]
    fn what_cannot_be_done_is_refused_in_one_line() {
        for (from, to, says) in [
            ("stretch/1", "stretch/2", r#"format "ewan-stretch/2": give "ewan-stretch/1""#),
            (r#""vni": 7"#, r#""vni": 0"#, "vni 0: give 1 to 16777215"),
            (r#""vni": 7"#, r#""vni": 16777216"#, "vni 16777216"),
            ("10.0.0.1", "10.0.0.300", "invalid IP address"),
            ("10.0.0.1", "fd00::1", "one family"),
            ("10.0.0.1", "10.0.0.2", "the other machine's address"),
            ("10.0.0.2", "224.0.0.1", "remote 224.0.0.1: give an address that the other machine has a route to"),
            ("10.0.0.2", "fe80::1", "remote fe80::1: give an address"),
            ("4789", "0", "port 0"),
            ("4789", "65536", "65536"),
            ("1450", "67", "mtu 67: give 68 to 65535"),
            (r#""packets": 100"#, r#""packets": 0"#, "packets 0: give 1 to 100000"),
            (r#""interval_ns": 1000000"#, r#""interval_ns": 9999"#, "interval_ns 9999: give 10000 or more"),
            (r#""interval_ns": 1000000"#, r#""interval_ns": 600000001"#, "at most 600000000"),
            (r#""rate_bytes": 1000000"#, r#""rate_bytes": 64000001"#, "at most 64000000"),
            (r#""rate_bytes": 1000000"#, r#""rate_bytes": "1 MB""#, "invalid type"),
            (r#""rate_bytes": 1000000"#, r#""rate_bytes": 1, "seed": 1"#, "unknown field `seed`"),
            (r#", "rate_bytes": 1000000"#, "", "missing field `rate_bytes`"),
            (GOOD, "", "is empty: give the request"),
            (GOOD, "[", "EOF"),
        ] {
            let error = refused(from, to);
            assert!(error.contains(says), "{error}");
        }
    }
}
