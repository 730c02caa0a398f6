//! ewan-quic: one transfer by QUIC, over the library quinn with rustls.
//!
//! In: the command line, EWAN_T0_UNIX_NS and EWAN_OUT of the environment; SIGTERM or SIGINT ends it early. Out: one line
//! of JSON on standard output, whatever ended it; exit status 1, with one line on standard error, where there was no
//! transfer. Times are ns from T0. generator/external/quic.py writes the command lines and reads the lines;
//! ewan_aioquic beside this folder does the same over another library.
//!
//! The one thread of this program does all the work: in the virtual clock the same seed then gives the same bytes. The
//! receiver makes a certificate of its own, and the sender takes any.

mod arguments;
mod clock;
mod config;
mod http3;
mod in_order;
#[allow(dead_code)]
#[path = "../../../emulator/traffic/src/flows/law.rs"]
mod law;
mod measured;
mod program;
mod receive;
mod record;
#[allow(dead_code)]
#[path = "../../../emulator/traffic/src/flows/schedule.rs"]
mod schedule;
mod send;
mod signals;
mod socket;
mod span;
mod tls;
mod volume;
mod writes;

use std::process::ExitCode;

use arguments::End;

pub const LIBRARY: &str = "quinn";
pub const CONGESTION: &[&str] = &["cubic", "bbr", "newreno"];

fn main() -> ExitCode {
    let clock = clock::Clock::start();
    program::run("ewan-quic", |request| async move {
        match request.end {
            End::Send => send::run(&request, clock).await,
            End::Receive => receive::run(&request, clock).await,
            End::Serve => http3::serve(&request, clock).await,
            End::Get => http3::get(&request, clock).await,
        }
    })
}
