//! The first process of a container that is a node of a lab: makes the node what the plan says, then looks after it.
//!
//! In: the lab's directory, which all of its containers share (plan.json, hosts; bound at /lab), and the node's name. It
//! needs nobody else: whatever order the containers start in, each waits for what it needs. Out: one line when the node
//! is ready, and below nodes/NODE of that directory `ready`, or `failed` with one line; `warnings`, where there are any.
//! From then on it reaps what ends, and ends everything when it is told to.

mod boot;
mod emulator;
mod handover;
mod interfaces;
mod program;
mod share;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};

use ewan_system::signals::{self, Signals, END_OR_CHILD};
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;

use ewan_lab::{hosts, services};
pub use program::Program;

/// What ends slower than this when asked is ended by the kernel, with its container.
const PATIENCE: Duration = Duration::from_millis(600);
const LOOK: Duration = Duration::from_millis(50);

/// A program that was started for the node and is to run until its end.
struct Child {
    name: String,
    pid: Pid,
    log: PathBuf,
    /// Without it the node is none.
    vital: bool,
}

/// Runs until told to stop, or until a part fails that the node cannot be without.
pub fn run(lab: &Path, name: &str, program: Program) -> Result<(), String> {
    let signals = Signals::block(&END_OR_CHILD)?;
    let file = lab.join("plan.json");
    let plan = ewan_plan::read(&file)
        .map_err(|error| format!("{error}: the lab's directory belongs at {} of this container", lab.display()))?;
    if !plan.nodes.iter().any(|node| node.name == name) {
        return Err(hosts::unknown(&plan, name));
    }
    let own = services::directory(lab, name);
    empty(&own).map_err(|error| format!("{name}: {}: {error}", own.display()))?;
    let result = serve(&signals, lab, plan, name, &own, program);
    let _ = std::fs::remove_file(own.join("ready"));
    if let Err(error) = &result {
        // Who waits for the lab reads it there; where it cannot be written, standard error tells it.
        let _ = std::fs::write(own.join("failed"), format!("{error}\n"));
    }
    result
}

/// What an earlier container of this node left: databases and sockets that a service would stumble over.
fn empty(directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn serve(
    signals: &Signals,
    lab: &Path,
    plan: ewan_plan::Plan,
    name: &str,
    own: &Path,
    program: Program,
) -> Result<(), String> {
    let (sender, booted) = channel();
    let (directory, node) = (lab.to_owned(), name.to_owned());
    // Of its own, so that this one hears a signal while that one waits.
    std::thread::spawn(move || {
        let result = boot::boot(&directory, &plan, &node, &program);
        let _ = sender.send(result);
        signals::wake();
    });
    let Some(children) = wait_for_boot(signals, &booted)? else { return Ok(()) };
    std::fs::write(own.join("ready"), "").map_err(|error| format!("{name}: {}: {error}", own.display()))?;
    let result = watch(signals, name, children);
    match result {
        Ok(children) => {
            end(signals, children);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// None if told to stop. Nothing is reaped here: the one that boots waits for its own.
fn wait_for_boot(
    signals: &Signals,
    booted: &Receiver<Result<Vec<Child>, String>>,
) -> Result<Option<Vec<Child>>, String> {
    loop {
        if let Ok(result) = booted.try_recv() {
            return result.map(Some);
        }
        if stops(signals.wait(Some(LOOK))) {
            return Ok(None);
        }
    }
}

fn stops(signal: Option<Signal>) -> bool {
    matches!(signal, Some(Signal::SIGTERM | Signal::SIGINT))
}

/// Until told to stop; gives what still runs. A vital part that ends is an error.
fn watch(signals: &Signals, node: &str, mut children: Vec<Child>) -> Result<Vec<Child>, String> {
    loop {
        for (child, status) in reap(&mut children) {
            let why = services::last_words(&child.log, &in_words(status));
            if child.vital {
                return Err(format!("{node}: {} ended: {why}", child.name));
            }
            eprintln!("{node}: {} ended: {why}", child.name);
        }
        if stops(signals.wait(None)) {
            return Ok(children);
        }
    }
}

/// All that ended, whoever started it; gives those of ours.
fn reap(children: &mut Vec<Child>) -> Vec<(Child, WaitStatus)> {
    let mut ended = Vec::new();
    while let Ok(status) = waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
        let Some(pid) = status.pid() else { break };
        if let Some(at) = children.iter().position(|child| child.pid == pid) {
            ended.push((children.remove(at), status));
        }
    }
    ended
}

fn in_words(status: WaitStatus) -> String {
    match status {
        WaitStatus::Exited(_, code) => format!("status {code}"),
        WaitStatus::Signaled(_, signal, _) => signal.as_str().into(),
        other => format!("{other:?}"),
    }
}

/// Asks what runs to end, and gives it a moment; the rest ends with this process, as the kernel ends a container.
fn end(signals: &Signals, mut children: Vec<Child>) {
    tell(&children, Signal::SIGTERM);
    let until = Instant::now() + PATIENCE;
    while !children.is_empty() && Instant::now() < until {
        reap(&mut children);
        if !children.is_empty() {
            signals.wait(Some(LOOK));
        }
    }
    // Where this is not the first process, nobody else does it.
    tell(&children, Signal::SIGKILL);
}

/// One that has ended meanwhile needs no telling.
fn tell(children: &[Child], signal: Signal) {
    for child in children {
        let _ = kill(child.pid, signal);
    }
}
