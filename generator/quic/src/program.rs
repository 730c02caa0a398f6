//! The frame of a program, the same with each library: its command line, its one thread, and at its end a record, or one
//! line on standard error.

use std::future::Future;
use std::process::ExitCode;

use crate::arguments::{self, Request};
use crate::record::Record;

/// Makes the transfer that this command line asks for. `name` is the program's.
pub fn run<F>(name: &str, transfer: impl FnOnce(Request) -> F) -> ExitCode
where
    F: Future<Output = Result<Record, String>>,
{
    let made = || -> Result<(), String> {
        let request = arguments::read(std::env::args().skip(1))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| format!("starting: {error}"))?.block_on(transfer(request))?.print()
    };
    match made() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}
