//! The model alone, for tests that hold others to it. In, on standard input: a direction and the arrivals of its packets,
//! in order. Out: the releases, in order.

use ewan_emulator::config::Direction;
use ewan_emulator::model::{check, DirectionModel, Nanos};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    direction: Direction,
    /// When its trace begins.
    #[serde(default)]
    begin_ns: Nanos,
    arrivals: Vec<Arrival>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arrival {
    at_ns: Nanos,
    ip_bytes: u32,
    /// The frame's first bytes, with its headers, in hexadecimal.
    head: String,
}

/// Of the packet with this number, from 0.
#[derive(Serialize)]
struct Released {
    packet: usize,
    due_ns: Nanos,
    mark_ce: bool,
    /// The random number that chose the bit that was turned over.
    corrupt: Option<u32>,
    bleach: bool,
}

pub fn run() -> Result<(), String> {
    let request: Request = serde_json::from_reader(std::io::stdin()).map_err(|error| error.to_string())?;
    check(&request.direction)?;
    let released = releases(&request)?;
    serde_json::to_writer(std::io::stdout(), &released).map_err(|error| error.to_string())
}

fn releases(request: &Request) -> Result<Vec<Released>, String> {
    let mut model = DirectionModel::new(&request.direction);
    model.begin(request.begin_ns);
    let mut released = Vec::new();
    let mut collect = |model: &mut DirectionModel<(usize, Option<u32>, bool)>, now| {
        while let Some(found) = model.pop(now) {
            let (packet, corrupt, bleach) = found.packet;
            released.push(Released { packet, due_ns: found.due, mark_ce: found.mark_ce, corrupt, bleach });
        }
        while model.dropped().is_some() {}
    };
    for (packet, arrival) in request.arrivals.iter().enumerate() {
        collect(&mut model, arrival.at_ns);
        let mut meta = model.describe(&bytes(&arrival.head)?, arrival.ip_bytes);
        let fate = model.impair(arrival.at_ns, &mut meta);
        let copies = if fate.lost { 0 } else { 1 + usize::from(fate.duplicate) };
        for copy in 0..copies {
            // A copy is intact; who is dropped is not told here.
            let corrupt = fate.corrupt.filter(|_| copy == 0);
            let _ = model.enqueue((packet, corrupt, fate.bleach), meta, arrival.at_ns);
        }
    }
    collect(&mut model, Nanos::MAX);
    Ok(released)
}

fn bytes(hexadecimal: &str) -> Result<Vec<u8>, String> {
    let digits = hexadecimal.as_bytes();
    let two = |two: &[u8]| std::str::from_utf8(two).ok().and_then(|two| u8::from_str_radix(two, 16).ok());
    digits.chunks(2).map(|pair| two(pair).ok_or_else(|| format!("head {hexadecimal:?}: is not hexadecimal"))).collect()
}
