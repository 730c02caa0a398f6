//! `ewan-node stretch`: what a tunnel between two machines does to packets, before a lab is made over it.
//!
//! In: on both machines the same JSON object on standard input (`Request`), with `local` and `remote` exchanged. Out: of
//! `answer` one line, `{"ready":true}`, and answers until its standard input is closed; of `measure` one JSON object
//! (`result::TunnelResult`). Both make the tunnel that a lab would have, with its end in a network namespace without a name:
//! nothing of it is seen in the host's own, and all of it is gone with the process. Packets are taken from inside
//! the tunnel alone.

mod answer;
mod arrivals;
mod burst;
mod clocks;
mod measure;
mod request;
mod result;
mod size;
mod tunnel;
mod words;

use std::io::{Read, Write};
use std::os::fd::AsFd;

use clap::Subcommand;

pub use request::Request;

/// Of the request and of what `measure` prints.
const FORMAT: &str = "ewan-stretch/1";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub enum Role {
    /// Answer at one end of the tunnel until standard input is closed, 120 s at most: {"ready":true} is printed when it
    /// listens
    Answer,
    /// Measure from the other end: delay, loss, rate and largest packet each way, and by how much the two machines'
    /// clocks differ; JSON on standard output
    Measure,
}

/// Errors are one line.
pub fn run(role: Role, mut input: impl Read + AsFd, mut output: impl Write) -> Result<(), String> {
    let request = Request::read(&mut input)?;
    ewan_traffic::clock::Clock::Live.prepare()?;
    let end = tunnel::End::open(&request, role)?;
    let mut print = |text: String| {
        let written = writeln!(output, "{text}").and_then(|()| output.flush());
        written.map_err(|error| format!("standard output: {error}"))
    };
    match role {
        Role::Answer => {
            print(r#"{"ready":true}"#.into())?;
            answer::until_closed(&end, &request, input)
        }
        Role::Measure => {
            let found = measure::all(&end, &request)?;
            print(serde_json::to_string(&found).map_err(|error| error.to_string())?)
        }
    }
}
