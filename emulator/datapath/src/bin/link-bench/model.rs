//! The model alone, for tests that hold others to it. In, on standard input: a direction, or both of a link, and the
//! arrivals of packets, in order. Out: the releases, in order.

use ewan_model::config::Direction;
use ewan_model::{check, share, DirectionModel, Nanos};
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
    let released = releases(&request)?;
    serde_json::to_writer(std::io::stdout(), &released).map_err(|error| error.to_string())
}

/// Number, the random number that turned a bit over, whether ECN was bleached.
type Packet = (usize, Option<u32>, bool);

struct Link {
    ways: [DirectionModel<Packet>; 2],
    both: bool,
    released: Vec<Departure>,
}

impl Link {
    fn share(&mut self, now: Nanos) {
        let [forward, backward] = &mut self.ways;
        if self.both {
            share(forward, backward, now);
        }
    }

    fn collect(&mut self, now: Nanos) {
        self.share(now);
        for way in &mut self.ways {
            while let Some(found) = way.pop(now) {
                let (packet, corrupt, bleach) = found.packet;
                self.released.push(Departure { packet, due_ns: found.due, mark_ce: found.mark_ce, corrupt, bleach });
            }
            while way.dropped().is_some() {}
        }
    }
}

fn releases(request: &Request) -> Result<Vec<Departure>, String> {
    let ways = [&request.direction, request.backward.as_ref().unwrap_or(&request.direction)];
    let ways = ways.map(|config| {
        let mut model = DirectionModel::new(config);
        model.begin(request.begin_ns);
        model
    });
    let mut link = Link { ways, both: request.backward.is_some(), released: Vec::new() };
    for (packet, arrival) in request.arrivals.iter().enumerate() {
        let now = arrival.at_ns;
        link.collect(now);
        let way = &mut link.ways[usize::from(arrival.backward)];
        let mut meta = way.describe(&bytes(&arrival.head)?, arrival.ip_bytes);
        let fate = way.impair(now, &mut meta);
        let copies = if fate.lost { 0 } else { 1 + usize::from(fate.duplicate) };
        for copy in 0..copies {
            // A copy is intact; who is dropped is not told here.
            let corrupt = fate.corrupt.filter(|_| copy == 0);
            let _ = way.enqueue((packet, corrupt, fate.bleach), meta, now);
        }
        link.share(now);
    }
    link.collect(Nanos::MAX);
    link.released.sort_by_key(|released| released.due_ns);
    Ok(link.released)
}

fn bytes(hexadecimal: &str) -> Result<Vec<u8>, String> {
    let digits = hexadecimal.as_bytes();
    let two = |two: &[u8]| std::str::from_utf8(two).ok().and_then(|two| u8::from_str_radix(two, 16).ok());
    digits.chunks(2).map(|pair| two(pair).ok_or_else(|| format!("head {hexadecimal:?}: is not hexadecimal"))).collect()
}
