//! The spinners of a share, asked from another machine: this program's own input and output lead to their sockets.
//!
//! In: one JSON object a line, `{"spinner": N, "request": {...}}`. Out: each one's answer, a line each, in order; or
//! `{"ok": false, "error": "...", "silent": true}` where nobody answers. `{"samples": {"machine", "first_spinner"}}` is for
//! the metrics of all (metrics/joint.rs): `{"ok": true, "samples": {family: lines}}`. It ends with its input.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

use ewan_datapath::client::{self, Client};
use serde::Deserialize;
use serde_json::{json, Value};

use crate::metrics::joint;

const ANSWER: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
#[serde(untagged)]
enum RelayRequest {
    Spinner(SpinnerRequest),
    Samples(SamplesRequest),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpinnerRequest {
    spinner: usize,
    request: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SamplesRequest {
    samples: joint::Place,
}

pub fn run(state: &Path, input: impl BufRead, mut output: impl Write) -> Result<(), String> {
    let mut clients = HashMap::new();
    for line in input.lines() {
        let line = line.map_err(|error| format!("a request: {error}"))?;
        let asked: RelayRequest = serde_json::from_str(&line).map_err(|error| format!("a request: {error}"))?;
        let answer = match asked {
            RelayRequest::Spinner(asked) => answer(state, &mut clients, &asked),
            RelayRequest::Samples(asked) => match joint::samples(state, &asked.samples) {
                Ok(samples) => json!({ "ok": true, "samples": samples }).to_string(),
                Err(error) => json!({ "ok": false, "error": error }).to_string(),
            },
        };
        writeln!(output, "{answer}").and_then(|()| output.flush()).map_err(|error| format!("an answer: {error}"))?;
    }
    Ok(())
}

/// A spinner's line as it is, also a refusal.
fn answer(state: &Path, clients: &mut HashMap<usize, Client>, asked: &SpinnerRequest) -> String {
    let known = clients.remove(&asked.spinner).map(Ok);
    let client = known.unwrap_or_else(|| Client::connect(&client::socket(state, asked.spinner), ANSWER));
    let told = client.and_then(|mut client| {
        let line = client.line(&asked.request.to_string())?;
        clients.insert(asked.spinner, client);
        Ok(line)
    });
    match told {
        Ok(line) => line.trim_end().to_owned(),
        Err(error) => json!({ "ok": false, "error": error.to_string(), "silent": true }).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_has_one_answer_also_where_nobody_listens() {
        let asked = b"{\"spinner\": 0, \"request\": {\"command\": \"stats\"}}\n".repeat(2);
        let mut answers = Vec::new();
        run(Path::new("/nonexistent"), &asked[..], &mut answers).expect("it ends with its input");
        let answers = String::from_utf8(answers).expect("text");
        assert_eq!(answers.lines().count(), 2);
        for line in answers.lines() {
            let answer: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!((&answer["ok"], &answer["silent"]), (&json!(false), &json!(true)), "{line}");
        }
        let mut answer = Vec::new();
        let asked = b"{\"samples\": {\"machine\": \"two\", \"first_spinner\": 0}}\n";
        run(Path::new("/nonexistent"), &asked[..], &mut answer).expect("it ends with its input");
        assert_eq!(serde_json::from_slice::<Value>(&answer).expect("JSON")["ok"], json!(false), "there is no plan");
        assert!(run(Path::new("/nonexistent"), &b"nonsense\n"[..], Vec::new()).is_err());
    }
}
