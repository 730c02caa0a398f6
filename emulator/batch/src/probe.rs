//! The probes of a program, one after the other.
//!
//! In: a request for `ewan_traffic::probe`. Out: DIR/probe.json, with the results of all that came to their end.

use std::path::Path;
use std::sync::mpsc;

use ewan_system::signals::Signals;
use nix::sys::signal::Signal;
use serde_json::{json, Value};

/// One probe after the other, so that those which are done are kept whatever happens to the next.
pub fn run(request: &Value, signals: &Signals, out: &Path) -> Result<bool, String> {
    let probes = request["probes"].as_array().cloned().unwrap_or_default();
    let mut answer = json!({ "format": ewan_traffic::probe::FORMAT, "results": [] });
    let mut interrupted = false;
    for (index, probe) in probes.iter().enumerate() {
        let name = probe["name"].as_str().unwrap_or("").to_owned();
        eprintln!("probe {} of {}: {name}", index + 1, probes.len());
        let mut single = request.clone();
        single["probes"] = json!([probe]);
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut answer = Vec::new();
            let result = ewan_traffic::probe::run(single.to_string().as_bytes(), &mut answer);
            let _ = sender.send(result.map(|()| answer)); // whoever was interrupted does not listen any more
            ewan_system::signals::wake();
        });
        let text = loop {
            if let Ok(result) = receiver.try_recv() {
                break result?;
            }
            if signals.wait(None).is_some_and(|signal| signal != Signal::SIGCHLD) {
                interrupted = true; // the thread that probes ends with this process
                break Vec::new();
            }
        };
        if interrupted {
            break;
        }
        let done: Value = serde_json::from_slice(&text).map_err(|error| format!("answer of probe {name}: {error}"))?;
        let results = answer["results"].as_array_mut().expect("made above");
        results.extend(done["results"].as_array().cloned().unwrap_or_default());
    }
    super::write(&out.join("probe.json"), &answer)?;
    Ok(interrupted)
}
