//! What a card says of itself (linux/ethtool.h): the speed of its line, and which time stamps it can take. Nothing changes.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use ewan_system::namespace;
use ewan_system::netlink::Socket;
use serde::Serialize;

use crate::ethtool::ask;
use crate::qdisc;
use ewan_plan::Egress;

const BPS_PER_MBPS: u64 = 1_000_000;

#[derive(Serialize)]
struct CardFacts<'a> {
    card: &'a str,
    node: &'a str,
    interface: &'a str,
    /// None where the card does not say.
    speed_bps: Option<u64>,
    /// SOF_TIMESTAMPING (linux/net_tstamp.h).
    time_stamps: u32,
}

/// Says so, as JSON, of all cards of a lab that is up, in the order of its plan, which is read from `plan`.
pub fn tell(mut plan: impl Read, mut out: impl Write) -> Result<(), String> {
    let mut text = Vec::new();
    plan.read_to_end(&mut text).map_err(|error| format!("standard input: {error}"))?;
    let plan = ewan_plan::parse(&text, Path::new("standard input"))?;
    let home = namespace::own()?;
    let mut found = Vec::new();
    for ewan_plan::Card { name, end, .. } in &plan.cards {
        namespace::within(&plan.netns_path(&end.node), &home, || {
            let socket = Socket::open().map_err(|error| error.to_string())?;
            found.push(CardFacts {
                card: name,
                node: &end.node,
                interface: &end.interface,
                speed_bps: speed(&socket, &end.interface),
                time_stamps: time_stamps(&socket, &end.interface),
            });
            Ok::<(), String>(())
        })?;
    }
    let text = serde_json::to_string(&found).map_err(|error| error.to_string())?;
    writeln!(out, "{text}").map_err(|error| error.to_string())
}

/// In bit/s; None where it does not say, as without a cable or while it is down.
pub fn speed(socket: impl AsFd, interface: &str) -> Option<u64> {
    const GSET: u32 = 0x1;
    let mut command = [0; 11];
    command[0] = GSET;
    ask(socket, interface, &mut command).ok()?;
    speed_of(&command)
}

/// struct ethtool_cmd: two halves of the speed, in Mbit/s.
fn speed_of(command: &[u32; 11]) -> Option<u64> {
    let half = |word: u32| u32::from(u16::from_ne_bytes(word.to_ne_bytes()[..2].try_into().expect("two bytes")));
    let speed = half(command[7]) << 16 | half(command[3]);
    (speed != 0 && speed != u32::MAX).then_some(u64::from(speed) * BPS_PER_MBPS)
}

fn time_stamps(socket: impl AsFd, interface: &str) -> u32 {
    const GET_TS_INFO: u32 = 0x41;
    let mut info = [0; 11];
    info[0] = GET_TS_INFO;
    ask(socket, interface, &mut info).map_or(0, |_| info[1])
}

/// One line where gap packets would fill a line of another rate than the card's, which says its speed.
pub fn other_line(egress: &Egress, speed_bps: Option<u64>) -> Option<String> {
    let line = qdisc::line_of(egress).ok()??;
    let speed = speed_bps.filter(|speed| *speed != line)?;
    Some(format!(
        "gap packets would fill a line of {line} bit/s, and this one has {speed} bit/s: write that as the rate of its \
         link, or pacing with gap: timer"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_is_read_from_its_two_halves() {
        let command = |low: u16, high: u16| {
            let mut command = [0; 11];
            (command[3], command[7]) = (u32::from(low) | 0xff01_0000, u32::from(high) | 0x0100_0000);
            speed_of(&command)
        };
        assert_eq!(command(1000, 0), Some(1_000_000_000));
        assert_eq!(command(0x86a0, 1), Some(100_000_000_000));
        assert_eq!([command(0, 0), command(u16::MAX, u16::MAX)], [None, None], "it does not know");
    }

    #[test]
    fn gap_packets_are_of_the_rate_of_their_line() {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/gaps.plan.json");
        let plan = ewan_plan::read(Path::new(golden)).expect("a golden plan");
        let said = |node: usize, speed| other_line(&plan.nodes[node].interfaces[0].egress, speed);
        let paced = plan.nodes.iter().position(|node| node.name == "left1").expect("left1");
        assert_eq!(said(paced, Some(1_000_000_000)), None);
        assert_eq!(said(paced, None), None, "a card that is down says nothing");
        assert!(said(paced, Some(100_000_000)).is_some_and(|line| line.contains("has 100000000 bit/s")));
        let free = plan.nodes.iter().position(|node| node.name == "right1").expect("right1");
        assert_eq!(said(free, Some(100_000_000)), None);
    }
}
