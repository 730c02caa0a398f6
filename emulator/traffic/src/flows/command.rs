//! The command `ewan-node traffic`: a request from a file, run until all flows have ended or a signal came.
//!
//! In: paths, perhaps T0, and where flows wait for what others do, a line on standard input for each such step: its number
//! and when it ended, in ns from T0. Out: what `Conductor` writes; after SIGINT or SIGTERM all the same, with all flows
//! ended.

use std::path::Path;

use ewan_system::signals::{self, Signals};

use super::conductor::Conductor;
use super::{Request, World};
use ewan_system::reading;

/// Errors are one line. `begin_ns`: T0 on CLOCK_MONOTONIC; none: as soon as all can be ready.
pub fn run(request: &Path, out: &Path, begin_ns: Option<i64>) -> Result<(), String> {
    // Blocked before the first thread is made, so that all inherit it and one alone takes them.
    let signals = Signals::block(&signals::END)?;
    let say = |error: &dyn std::fmt::Display| format!("{}: {error}", request.display());
    let text = String::from_utf8(reading::regular(request).map_err(|error| say(&error))?);
    let request = Request::parse(&text.map_err(|error| say(&error))?)?;
    let listens = !request.elsewhere.is_empty();
    let conductor = Conductor::prepare(request, out, begin_ns)?;
    let world = conductor.world();
    if listens {
        let world = world.clone();
        spawn(move || listen(&world))?;
    }
    let waiting = move || {
        if signals.wait(None).is_some() {
            world.running.interrupt();
        }
    };
    spawn(waiting)?;
    conductor.run().map(drop)
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let made = std::thread::Builder::new().stack_size(super::STACK_BYTES).spawn(work);
    made.map(drop).map_err(|error| format!("thread: {error}"))
}

/// Steps that ended elsewhere, until nobody tells any more.
fn listen(world: &World) {
    for line in std::io::stdin().lines() {
        let Ok(line) = line else { return };
        let mut words = line.split_ascii_whitespace();
        let (step, at_ns) = (words.next().map(str::parse), words.next().map(str::parse));
        match (step, at_ns) {
            (Some(Ok(step)), Some(Ok(at_ns))) => world.running.step_ended(step, at_ns),
            _ => return world.running.fail(format!("{line:?} on standard input: it is not a step and its end")),
        }
    }
}
