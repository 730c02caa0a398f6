//! Probes between network namespaces: packets whose way through a lab is measured.
//!
//! In: one JSON request, `{"cpus": [...], "probes": [...]}`; the probes run one after the other, the streams of a
//! probe side by side. Out: one JSON answer with a result per probe, in the same order. One process holds the
//! sockets of all nodes and reads one clock for both ends, so a one-way delay needs no synchronisation.
//! Progress goes to standard error, one JSON object a line.

use std::io::{Read, Write};
use std::time::Instant;

use serde::Serialize;

mod request;
pub mod stats;
mod tcp;
mod udp;

pub use request::{Probe, Request, Stream, Tcp, Udp};

use crate::clock::Clock;
use crate::process;
use crate::socket::Namespaces;

pub const FORMAT: &str = "ewan-probe/1";

#[derive(Serialize)]
struct Answer {
    format: &'static str,
    results: Vec<Outcome>,
}

/// A probe that could not run says why; the others still run.
#[derive(Serialize)]
struct Outcome {
    name: String,
    elapsed_ns: u64,
    #[serde(flatten)]
    measured: Measured,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Measured {
    Delay(udp::Measured),
    Loss(udp::Measured),
    Rtt(udp::Measured),
    Saturate(udp::Measured),
    Tcp(tcp::Measured),
    Failed { error: String },
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Started { probe: &'a str, index: usize, of: usize, longest_ns: u64 },
    Finished { probe: &'a str, index: usize, of: usize, elapsed_ns: u64 },
}

/// Runs the request on `input`. Errors are one line and mean that nothing was sent.
pub fn run(mut input: impl Read, mut output: impl Write) -> Result<(), String> {
    let mut text = String::new();
    input.read_to_string(&mut text).map_err(|error| format!("probe request: {error}"))?;
    let request = Request::parse(&text)?;
    process::prepare(&request.cpus, request.clock)?;
    let namespaces = Namespaces::open()?;
    let of = request.probes.len();
    let mut results = Vec::with_capacity(of);
    for (index, probe) in request.probes.iter().enumerate() {
        let name = probe.name();
        report(&Event::Started { probe: name, index, of, longest_ns: probe.longest_ns() });
        let begun = Instant::now();
        let measured = measure(&namespaces, probe, request.clock).unwrap_or_else(|error| Measured::Failed { error });
        let elapsed_ns = begun.elapsed().as_nanos() as u64;
        report(&Event::Finished { probe: name, index, of, elapsed_ns });
        results.push(Outcome { name: name.to_string(), elapsed_ns, measured });
    }
    serde_json::to_writer(&mut output, &Answer { format: FORMAT, results })
        .map_err(|error| format!("answer: {error}"))?;
    output.write_all(b"\n").and_then(|()| output.flush()).map_err(|error| format!("answer: {error}"))
}

fn measure(namespaces: &Namespaces, probe: &Probe, clock: Clock) -> Result<Measured, String> {
    Ok(match probe {
        Probe::Delay(probe) => Measured::Delay(udp::run(namespaces, probe, clock, false)?),
        Probe::Loss(probe) => Measured::Loss(udp::run(namespaces, probe, clock, false)?),
        Probe::Saturate(probe) => Measured::Saturate(udp::run(namespaces, probe, clock, false)?),
        Probe::Rtt(probe) => Measured::Rtt(udp::run(namespaces, probe, clock, true)?),
        Probe::Tcp(probe) => Measured::Tcp(tcp::run(namespaces, probe)?),
    })
}

fn report(event: &Event) {
    if let Ok(line) = serde_json::to_string(event) {
        eprintln!("{line}");
    }
}
