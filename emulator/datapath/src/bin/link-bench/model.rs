//! The model alone, for tests that hold others to it. In, on standard input: a direction, or both of a link, and the
//! arrivals of packets, in order. Out: the releases, in order.

use ewan_model::config::Direction;
use ewan_model::{check, Link, Nanos};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    direction: Direction,
    #[serde(default)]
    backward: Option<Direction>,
    /// When a trace begins.
    #[serde(default)]
    begin_ns: Nanos,
    arrivals: Vec<Arrival>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arrival {
    at_ns: Nanos,
    ip_bytes: u32,
    #[serde(default)]
    backward: bool,
    /// The frame's first bytes, with its headers, in hexadecimal.
    head: String,
}

/// Of the packet with this number, from 0.
#[derive(Serialize)]
struct Departure {
    packet: usize,
    due_ns: Nanos,
    mark_ce: bool,
    /// The random number that chose the bit that was turned over.
    corrupt: Option<u32>,
    bleach: bool,
}

pub fn run() -> Result<(), String> {
    let request: Request = serde_json::from_reader(std::io::stdin()).map_err(|error| error.to_string())?;
    for direction in std::iter::once(&request.direction).chain(&request.backward) {
        check(direction)?;
    }
    let departures = departures(&request)?;
    serde_json::to_writer(std::io::stdout(), &departures).map_err(|error| error.to_string())
}

/// Number, the random number that turned a bit over, whether ECN was bleached.
type Packet = (usize, Option<u32>, bool);

type Model = Link<Packet>;

fn collect(link: &mut Model, now: Nanos, departures: &mut Vec<Departure>) {
    link.evaluate(now);
    for heading in 0..2 {
        let model = link.direction_mut(heading);
        while let Some(release) = model.pop(now) {
            let (packet, corrupt, bleach) = release.packet;
            departures.push(Departure { packet, due_ns: release.due, mark_ce: release.mark_ce, corrupt, bleach });
        }
        while model.dropped().is_some() {}
    }
}

fn departures(request: &Request) -> Result<Vec<Departure>, String> {
    let mut link = Model::new([&request.direction, request.backward.as_ref().unwrap_or(&request.direction)]);
    link.begin(request.begin_ns);
    let mut departures = Vec::new();
    for (packet, arrival) in request.arrivals.iter().enumerate() {
        let (now, head) = (arrival.at_ns, bytes(&arrival.head)?);
        collect(&mut link, now, &mut departures);
        link.at(usize::from(arrival.backward), now, |model| {
            let mut meta = model.describe(&head, arrival.ip_bytes);
            let fate = model.impair(now, &mut meta);
            let copies = if fate.lost { 0 } else { 1 + usize::from(fate.duplicate) };
            for copy in 0..copies {
                // A copy is intact; who is dropped is not told here.
                let corrupt = fate.corrupt.filter(|_| copy == 0);
                let _ = model.enqueue((packet, corrupt, fate.bleach), meta, now);
            }
        });
    }
    collect(&mut link, Nanos::MAX, &mut departures);
    departures.sort_by_key(|departure| departure.due_ns);
    Ok(departures)
}

fn bytes(hexadecimal: &str) -> Result<Vec<u8>, String> {
    let digits = hexadecimal.as_bytes();
    let two = |two: &[u8]| std::str::from_utf8(two).ok().and_then(|two| u8::from_str_radix(two, 16).ok());
    digits.chunks(2).map(|pair| two(pair).ok_or_else(|| format!("head {hexadecimal:?}: is not hexadecimal"))).collect()
}
