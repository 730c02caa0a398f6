//! The command line.
//!
//!   ewan-quic receive --address ADDRESS --port P --streams N [--bin-ns N] [--bytes B]… [--window B] [--buffer B] [--qlog on]
//!   ewan-quic send --address ADDRESS --port P --streams N --congestion NAME [--sample-ns N] [--at-ns N]
//!       [--after-ns N] [--bytes B]… [--for-ns N] [--buffer B] [--qlog on]
//!
//! The address and the port are the receiver's. A transfer has one connection for each of `--streams`, and `--bytes` as
//! often, in their order. A sender begins at --at-ns, or, without that, --after-ns after its process did. With --for-ns it ends so long after that,
//! whatever is in flight; with --bytes when all of these are acknowledged.

use std::net::{IpAddr, SocketAddr};

pub const CONGESTION: [&str; 3] = ["cubic", "bbr", "newreno"];
/// Bytes that a receiver lets be in flight on a connection, where `--window` does not say.
const WINDOW_BYTES: u64 = 64_000_000;
/// Bytes of the buffer of what a socket received.
const BUFFER_BYTES: u64 = 8_000_000;
const MOST_STREAMS: u64 = 1000;

#[derive(Clone, Copy, PartialEq)]
pub enum End {
    Send,
    Receive,
}

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
}

pub fn read(mut words: impl Iterator<Item = String>) -> Result<Request, String> {
    let end = match words.next().as_deref() {
        Some("send") => End::Send,
        Some("receive") => End::Receive,
        _ => return Err("write send or receive first".into()),
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
            "--congestion" => return Err(format!("--congestion {text}: quinn has {}", CONGESTION.join(", "))),
            "--bytes" => request.bytes.push(number()?),
            "--at-ns" => request.at_ns = Some(number()? as i64),
            "--after-ns" => request.after_ns = number()? as i64,
            "--for-ns" => request.for_ns = Some(number()? as i64),
            "--bin-ns" => request.bin_ns = number()? as i64,
            "--sample-ns" => request.sample_ns = number()? as i64,
            "--window" => request.window_bytes = number()?.max(1),
            "--buffer" => request.buffer_bytes = number()? as usize,
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
