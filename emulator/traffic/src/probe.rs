//! Probes between network namespaces: packets whose way through a lab is measured.
//!
//! `run`: JSON requests in, one a line, `{"cpus": [...], "probes": [...]}`; the probes run one after the other, the
//! streams of a probe side by side. Out: of each request one JSON answer, a line, with a result per probe, in the same
//! order; it is written before the next request is read. One process holds the sockets of all nodes and reads one clock
//! for both ends, so a one-way delay needs no synchronisation. Progress goes to standard error, one JSON object a line.
//!
//! In a lab over several machines each has a process for the ends that are there (`joint`), and `merge` makes the result
//! of what they saw.

use std::io::{BufRead, BufReader, Read, Write};
use std::time::Instant;

use serde::{Deserialize, Serialize};

mod joint;
mod lockstep;
mod observation;
mod request;
mod results;
pub mod stats;
mod tcp;
mod udp;

pub use joint::run as joint;
pub use request::{Probe, Request, Stream, Tcp, Udp};

use crate::clock::Clock;
use crate::process;
use crate::socket::Namespaces;
use lockstep::{Lockstep, SingleMachine};
use observation::Observation;
use results::{Measured, Outcome, Share};

pub const FORMAT: &str = "ewan-probe/1";

#[derive(Serialize)]
struct Answer {
    format: &'static str,
    results: Vec<Outcome>,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Started { probe: &'a str, index: usize, of: usize, longest_ns: u64 },
    Finished { probe: &'a str, index: usize, of: usize, elapsed_ns: u64 },
}

/// Runs the requests on `input`. Errors are one line and mean that nothing of that request was sent.
pub fn run(input: impl Read, mut output: impl Write) -> Result<(), String> {
    let mut namespaces = None;
    for line in BufReader::new(input).lines() {
        let request = Request::parse(&line.map_err(|error| format!("probe request: {error}"))?)?;
        process::prepare(&request.cpus, request.clock)?;
        let namespaces = match &namespaces {
            Some(known) => known,
            None => namespaces.insert(Namespaces::open()?),
        };
        write(&mut output, &Answer { format: FORMAT, results: results(namespaces, &request) })?;
    }
    Ok(())
}

fn results(namespaces: &Namespaces, request: &Request) -> Vec<Outcome> {
    let of = request.probes.len();
    let mut results = Vec::with_capacity(of);
    for (index, probe) in request.probes.iter().enumerate() {
        let name = probe.name();
        report(&Event::Started { probe: name, index, of, longest_ns: probe.longest_ns() });
        let begun = Instant::now();
        let measured = half_of(namespaces, probe, request.clock, &mut SingleMachine)
            .and_then(|half| results::of(probe, Share::whole(half)))
            .unwrap_or_else(|error| Measured::Failed { error });
        let elapsed_ns = begun.elapsed().as_nanos() as u64;
        report(&Event::Finished { probe: name, index, of, elapsed_ns });
        results.push(Outcome { name: name.to_string(), elapsed_ns, measured });
    }
    results
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Merge {
    probe: Probe,
    elapsed_ns: u64,
    shares: Vec<Share>,
}

/// Puts the halves of one probe together: `{"probe", "elapsed_ns", "shares": [{"half", "clock"}]}` in, its result out.
pub fn merge(input: impl Read, output: impl Write) -> Result<(), String> {
    let Merge { probe, elapsed_ns, shares } =
        serde_json::from_reader(std::io::BufReader::new(input)).map_err(|error| format!("halves: {error}"))?;
    let measured = results::of(&probe, shares).unwrap_or_else(|error| Measured::Failed { error });
    write(output, &Outcome { name: probe.name().to_string(), elapsed_ns, measured })
}

fn half_of(
    namespaces: &Namespaces,
    probe: &Probe,
    clock: Clock,
    others: &mut dyn Lockstep,
) -> Result<Observation, String> {
    match probe {
        Probe::Delay(probe) | Probe::Loss(probe) | Probe::Saturate(probe) => {
            udp::run(namespaces, probe, clock, false, others).map(Observation::Udp)
        }
        Probe::Rtt(probe) => udp::run(namespaces, probe, clock, true, others).map(Observation::Udp),
        Probe::Tcp(probe) => tcp::run(namespaces, probe, others).map(Observation::Tcp),
    }
}

fn write(mut output: impl Write, answer: &impl Serialize) -> Result<(), String> {
    serde_json::to_writer(&mut output, answer).map_err(|error| format!("answer: {error}"))?;
    output.write_all(b"\n").and_then(|()| output.flush()).map_err(|error| format!("answer: {error}"))
}

fn report(event: &Event) {
    if let Ok(line) = serde_json::to_string(event) {
        eprintln!("{line}");
    }
}
