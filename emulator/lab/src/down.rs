//! Removes a lab: exactly what its manifest names, whatever state it is in, as often as asked.
//!
//! In: a state directory. Out: what was removed, with the spinners' last counters. Order: processes, the host's cards,
//! namespaces, processes that entered meanwhile, files, and the state directory with the manifest last, so that an interrupted removal can be taken up again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ewan_datapath::client::{self, Client};
use ewan_system::{fault, namespace};
use serde::Serialize;
use serde_json::{json, Value};

use crate::cards::{self, Restoration};
use crate::manifest::{self, Manifest};
use crate::process::{self, EndedProcess, Members, Process};

/// Time for a spinner to answer.
const ANSWER: Duration = Duration::from_secs(1);
/// Time to end when asked: a spinner takes its ports down one by one; who else is here may not want to.
const SPINNER_ENDS: Duration = Duration::from_secs(10);
const OTHERS_END: Duration = Duration::from_secs(1);

#[derive(Serialize)]
pub struct Removal {
    lab: Option<String>,
    namespaces: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cards: Vec<Restoration>,
    processes: Vec<EndedProcess>,
    paths: Vec<PathBuf>,
    /// Per spinner its answer to "stats" before it was ended, or why there is none.
    spinners: Vec<Value>,
}

pub fn run(state: &Path) -> Result<(), String> {
    let removed = remove(state)?;
    println!("{}", serde_json::to_string(&removed).map_err(|error| error.to_string())?);
    Ok(())
}

pub fn remove(state: &Path) -> Result<Removal, String> {
    let mut removed =
        Removal { lab: None, namespaces: vec![], cards: vec![], processes: vec![], paths: vec![], spinners: vec![] };
    let Some(manifest) = Manifest::read(state)? else {
        if manifest::remove_unfinished(state)? {
            removed.paths.push(state.into());
        }
        return Ok(removed);
    };
    removed.spinners = (0..manifest.spinners).map(|spinner| last_stats(state, spinner)).collect();
    let namespaces: Vec<_> = manifest.namespaces.iter().map(|name| namespace::path(name)).collect();
    let members = Members::of(&manifest.id, &namespaces);
    let spinners = members.spinners();
    spinners.iter().for_each(Process::unpin);
    process::end(&spinners, SPINNER_ENDS);
    let others = members.others();
    process::end(&others, OTHERS_END);
    removed.processes = spinners.into_iter().chain(others).map(EndedProcess::from).collect();
    // What started meanwhile was not asked to end; it may do nothing but start others.
    let kill_all = || {
        let killed = members.kill_all();
        killed.map_err(|left| format!("lab {}: {left}; end what starts it and try again", manifest.lab))
    };
    removed.processes.extend(kill_all()?);
    // Spinners that were killed leave their registrations.
    ewan_datapath::sharing::sweep();
    // Before their namespaces go: what the kernel makes of a card then depends on its driver.
    if let Some(taken) = &manifest.cards {
        let given = cards::give_back(taken, manifest.age());
        removed.cards = given.map_err(|error| format!("lab {}: {error}; try again", manifest.lab))?;
    }
    for (name, path) in manifest.namespaces.iter().zip(&namespaces) {
        if namespace::remove(path)? {
            removed.namespaces.push(name.clone());
        }
    }
    // Now nobody else can enter; somebody may have before.
    removed.processes.extend(kill_all()?);
    for path in &manifest.paths {
        if remove_link(path)? {
            removed.paths.push(path.clone());
        }
    }
    for directory in &manifest.directories {
        fault::step();
        // Not empty: somebody put a file of their own there, which is not ours to remove.
        let _ = std::fs::remove_dir(directory);
    }
    check_gone(&manifest, &namespaces)?;
    manifest::remove_state(state)?;
    removed.paths.push(state.into());
    removed.lab = Some(manifest.lab);
    Ok(removed)
}

/// Only symbolic links are made outside the state directory; a file in their place is somebody else's.
fn remove_link(path: &Path) -> Result<bool, String> {
    if !path.is_symlink() {
        return Ok(false);
    }
    fault::step();
    std::fs::remove_file(path).map(|()| true).map_err(|error| format!("removing {}: {error}", path.display()))
}

fn check_gone(manifest: &Manifest, namespaces: &[PathBuf]) -> Result<(), String> {
    let left = namespaces.iter().find(|path| path.exists());
    match left.or(manifest.paths.iter().find(|path| path.is_symlink())) {
        Some(path) => Err(format!("{} of lab {} is still there; try again", path.display(), manifest.lab)),
        None => Ok(()),
    }
}

/// A spinner's counters, or why there are none.
pub fn last_stats(state: &Path, spinner: usize) -> Value {
    let ask = || Client::connect(&client::socket(state, spinner), ANSWER)?.ask(&json!({"command": "stats"}));
    match ask() {
        Ok::<Value, client::Error>(stats) => json!({ "spinner": spinner, "stats": stats }),
        Err(error) => json!({ "spinner": spinner, "error": error.to_string() }),
    }
}
