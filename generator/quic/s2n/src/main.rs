//! ewan-s2n-quic: one transfer by QUIC, over the library s2n-quic with rustls; the same command line and the same record as
//! ewan-quic (../../src), from which it has all that is of no library. It has neither HTTP/3 nor qlog.

#[path = "../../src/arguments.rs"]
mod arguments;
#[path = "../../src/clock.rs"]
mod clock;
mod config;
mod events;
#[allow(dead_code)]
#[path = "../../../../emulator/traffic/src/flows/law.rs"]
mod law;
#[path = "../../src/program.rs"]
mod program;
mod receive;
#[path = "../../src/record.rs"]
mod record;
#[allow(dead_code)]
#[path = "../../../../emulator/traffic/src/flows/schedule.rs"]
mod schedule;
mod send;
#[allow(dead_code)]
#[path = "../../src/signals.rs"]
mod signals;
#[path = "../../src/socket.rs"]
mod socket;
#[path = "../../src/span.rs"]
mod span;
#[path = "../../src/tls.rs"]
mod tls;
#[path = "../../src/volume.rs"]
mod volume;
#[path = "../../src/writes.rs"]
mod writes;

use std::process::ExitCode;

use arguments::End;

pub const LIBRARY: &str = "s2n-quic";
pub const CONGESTION: &[&str] = &["cubic", "bbr"];

fn main() -> ExitCode {
    let clock = clock::Clock::start();
    program::run("ewan-s2n-quic", |request| async move {
        match request.end {
            End::Send => send::run(&request, clock).await,
            End::Receive => receive::run(&request, clock).await,
            End::Serve | End::Get => Err("has no HTTP/3 here".into()),
        }
    })
}
