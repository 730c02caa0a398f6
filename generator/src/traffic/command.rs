//! The command `ewan-node traffic`: a request from a file, run until all flows have ended or a signal came.
//!
//! In: paths, perhaps T0. Out: what `Conductor` writes; after SIGINT or SIGTERM all the same, with all flows ended.

use std::path::Path;

use ewan_system::signals::{self, Signals};

use super::conductor::Conductor;
use super::Request;
use crate::reading;

/// Errors are one line. `begin_ns`: T0 on CLOCK_MONOTONIC; none: as soon as all can be ready.
pub fn run(request: &Path, out: &Path, begin_ns: Option<i64>) -> Result<(), String> {
    // Blocked before the first thread is made, so that all inherit it and one alone takes them.
    let signals = Signals::block(&signals::END)?;
    let say = |error: &dyn std::fmt::Display| format!("{}: {error}", request.display());
    let text = String::from_utf8(reading::regular(request).map_err(|error| say(&error))?);
    let request = Request::parse(&text.map_err(|error| say(&error))?)?;
    let conductor = Conductor::prepare(request, out, begin_ns)?;
    let world = conductor.world();
    let waiting = move || {
        if signals.wait(None).is_some() {
            world.running.interrupt();
        }
    };
    std::thread::Builder::new()
        .stack_size(super::STACK_BYTES)
        .spawn(waiting)
        .map_err(|error| format!("thread: {error}"))?;
    conductor.run().map(drop)
}
