//! The command line.
//!
//!   ewan-quic receive --address ADDRESS --port P --streams N [--bin-ns N] [--bytes B]… [--window B] [--buffer B] [--qlog on]
//!   ewan-quic send --address ADDRESS --port P --streams N --congestion NAME [--sample-ns N] [--at-ns N]
//!       [--after-ns N] [--bytes B]… [--for-ns N] [--writes JSON] [--seed N] [--buffer B] [--qlog on]
//!
//!   ewan-quic serve --address ADDRESS --port P --congestion NAME [--sample-ns N] [--buffer B] [--qlog on]
//!   ewan-quic get --address ADDRESS --port P --size JSON [--count N] [--parallel N] [--seed N] [--at-ns N] [--after-ns N]
//!       [--for-ns N] [--bin-ns N] [--window B] [--buffer B] [--qlog on]
//!
//! The address and the port are the receiver's. A transfer has one connection for each of `--streams`, and `--bytes` as
//! often, in their order. A sender begins at --at-ns, or, without that, --after-ns after its process did. With --for-ns it ends so long after that,
//! whatever is in flight; with --bytes when all of these are acknowledged. With --writes an application limits it: the
//! laws of its writes, as `Writes` of emulator/traffic/src/flows/bulk.rs has them, which are drawn from --seed.
//!
//! `get` is the client of HTTP/3, whose own port is --port too, and `serve` its server. The client asks for --count objects (absent: as
//! many as fit in --for-ns), --parallel of them at a time, whose sizes it draws by a law from --seed.

use std::net::{IpAddr, SocketAddr};

use crate::clock::Clock;
use crate::law::Law;
use crate::writes::Writes;
use crate::{CONGESTION, LIBRARY};

/// Bytes that a receiver lets be in flight on a connection, where `--window` does not say.
const WINDOW_BYTES: u64 = 64_000_000;
/// Bytes of the buffer of what a socket received.
const BUFFER_BYTES: u64 = 8_000_000;
const MOST_STREAMS: u64 = 1000;

#[derive(Clone, Copy, PartialEq)]
pub enum End {
    Send,
    Receive,
    Serve,
    Get,
}

#[derive(Clone)]
pub struct Request {
    pub end: End,
    pub address: SocketAddr,
    pub streams: u32,
    pub congestion: String,
    pub bytes: Vec<u64>,
    pub at_ns: Option<i64>,
    pub after_ns: i64,
    pub for_ns: Option<i64>,
    pub bin_ns: i64,
    pub sample_ns: i64,
    pub window_bytes: u64,
    pub buffer_bytes: usize,
    pub qlog: bool,
    pub writes: Option<Writes>,
    pub seed: u64,
    pub size: Option<Law>,
    pub count: Option<u64>,
    pub parallel: u64,
}

impl End {
    /// Whether it opens the connections.
    pub fn connects(self) -> bool {
        matches!(self, End::Send | End::Get)
    }
}

impl Request {
    /// When the end that connects begins.
    pub fn begin_ns(&self, clock: Clock) -> i64 {
        self.at_ns.unwrap_or(clock.begun_ns() + self.after_ns)
    }
}

pub fn read(mut words: impl Iterator<Item = String>) -> Result<Request, String> {
    let end = match words.next().as_deref() {
        Some("send") => End::Send,
        Some("receive") => End::Receive,
        Some("serve") => End::Serve,
        Some("get") => End::Get,
        _ => return Err("write send, receive, serve or get first".into()),
    };
    let (mut address, mut port) = (None, 0);
    let mut request = Request {
        end,
        address: SocketAddr::from(([0, 0, 0, 0], 0)),
        streams: 1,
        congestion: CONGESTION[0].into(),
        bytes: Vec::new(),
        at_ns: None,
        after_ns: 0,
        for_ns: None,
        bin_ns: 0,
        sample_ns: 0,
        window_bytes: WINDOW_BYTES,
        buffer_bytes: BUFFER_BYTES as usize,
        qlog: false,
        writes: None,
        seed: 0,
        size: None,
        count: None,
        parallel: 1,
    };
    while let Some(name) = words.next() {
        let text = words.next().ok_or_else(|| format!("{name} has no value"))?;
        let number = || {
            let value: Option<u64> = text.parse().ok().filter(|value| *value <= i64::MAX as u64);
            value.ok_or_else(|| format!("{name} {text}: write a whole number"))
        };
        match name.as_str() {
            "--address" => {
                let parsed: Result<IpAddr, _> = text.parse();
                address = Some(parsed.map_err(|_| format!("--address {text}: write an IPv4 or IPv6 address"))?);
            }
            "--port" => port = u16::try_from(number()?).map_err(|_| "--port: write 1 to 65535".to_owned())?,
            "--streams" => request.streams = number()?.clamp(1, MOST_STREAMS) as u32,
            "--congestion" if CONGESTION.contains(&text.as_str()) => request.congestion = text,
            "--congestion" => return Err(format!("--congestion {text}: {LIBRARY} has {}", CONGESTION.join(", "))),
            "--bytes" => request.bytes.push(number()?),
            "--at-ns" => request.at_ns = Some(number()? as i64),
            "--after-ns" => request.after_ns = number()? as i64,
            "--for-ns" => request.for_ns = Some(number()? as i64),
            "--bin-ns" => request.bin_ns = number()? as i64,
            "--sample-ns" => request.sample_ns = number()? as i64,
            "--window" => request.window_bytes = number()?.max(1),
            "--buffer" => request.buffer_bytes = number()? as usize,
            "--writes" => {
                request.writes = Some(serde_json::from_str(&text).map_err(|error| format!("--writes: {error}"))?)
            }
            "--size" => request.size = Some(serde_json::from_str(&text).map_err(|error| format!("--size: {error}"))?),
            "--count" => request.count = Some(number()?),
            "--parallel" => request.parallel = number()?.clamp(1, MOST_STREAMS),
            "--seed" => request.seed = number()?,
            "--qlog" => request.qlog = text == "on",
            _ => return Err(format!("{name}: there is no such option")),
        }
    }
    if port == 0 {
        return Err("--port: write 1 to 65535".into());
    }
    request.address = SocketAddr::new(address.ok_or("--address: write where the receiver is")?, port);
    if !request.bytes.is_empty() && request.bytes.len() != request.streams as usize {
        return Err("--bytes: write it once for each of --streams".into());
    }
    Ok(request)
}
