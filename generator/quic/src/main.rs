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
mod writes;

use std::process::ExitCode;

pub const LIBRARY: &str = "quinn";
pub const CONGESTION: &[&str] = &["cubic", "bbr", "newreno"];

fn main() -> ExitCode {
    let clock = clock::Clock::start();
    let request = match arguments::read(std::env::args().skip(1)) {
        Ok(request) => request,
        Err(error) => return fail(&error),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("starting: {error}")),
    };
    let ended = runtime.block_on(async {
        match request.end {
            arguments::End::Send => send::run(&request, clock).await,
            arguments::End::Receive => receive::run(&request, clock).await,
            arguments::End::Serve => http3::serve(&request, clock).await,
            arguments::End::Get => http3::get(&request, clock).await,
        }
    });
    match ended.and_then(|record| record.print()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &str) -> ExitCode {
    eprintln!("ewan-quic: {error}");
    ExitCode::FAILURE
}
