//! One page of a lab that stretches over several machines.
//!
//! On a machine: what the links of its share do, by family (`samples`), which its relay is asked for. Where the page is: a
//! line on standard output for each page that is to be made, and what all machines told of it as a line of JSON on standard
//! input, `{"samples": [{family: lines}], "silent": [{label: value}]}`; `silent` are the links of machines that told nothing.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Mutex;

use ewan_system::schedule;
use serde::Deserialize;

use super::read::{self, SampleScope};
use super::text::{Exposition, Labels};
use super::{serve, Destination};

/// What is said when a page is to be made.
const WANTED: &str = "page";
/// The order of a link's labels, as everywhere.
const LABELS: [&str; 4] = ["machine", "lab", "link", "backend"];

/// Which machine of a lab is meant.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    machine: String,
    /// What the whole lab calls its spinner 0.
    first_spinner: usize,
}

/// What the links of a share do: of each family its samples, as lines.
pub fn samples(state: &Path, place: &Place) -> Result<HashMap<String, String>, String> {
    let plan = ewan_plan::read(&state.join("plan.json"))?;
    // The spinners have CPUs of their own.
    let _ = schedule::keep_to(&plan.host_cpus);
    let of =
        SampleScope { machine: Some(&place.machine), first_spinner: place.first_spinner, ..SampleScope::default() };
    let page = read::exposition(&plan, state, of);
    Ok(page.by_family().into_iter().map(|(name, samples)| (name.to_owned(), samples.to_owned())).collect())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LabSamples {
    samples: Vec<HashMap<String, String>>,
    silent: Vec<HashMap<String, String>>,
}

/// Serves until standard input ends.
pub fn run(destination: &Destination) -> Result<(), String> {
    match destination {
        Destination::StandardOutput => {
            print!("{}", told(std::io::stdin().lock())?.text());
            Ok(())
        }
        Destination::Listen(address) => {
            let asking = Mutex::new(());
            serve(address, move || {
                let _one_at_once = asking.lock();
                let said = writeln!(std::io::stdout(), "{WANTED}").map_err(|error| error.to_string());
                said.and_then(|()| told(std::io::stdin().lock())).unwrap_or_else(|error| {
                    eprintln!("{error}");
                    std::process::exit(2)
                })
            })
        }
    }
}

/// The next line, as a page.
fn told(mut input: impl BufRead) -> Result<Exposition, String> {
    let mut line = String::new();
    if input.read_line(&mut line).map_err(|error| format!("samples: {error}"))? == 0 {
        return Err("samples: nobody tells any".into());
    }
    let told: LabSamples = serde_json::from_str(&line).map_err(|error| format!("samples: {error}"))?;
    let mut page = Exposition::default();
    for each in &told.samples {
        page.absorb(each);
    }
    for link in &told.silent {
        let known = LABELS.iter().filter_map(|name| Some((name, link.get(*name)?)));
        page.add("ewan_up", &known.fold(Labels::default(), |labels, (name, value)| labels.with(name, value)), 0);
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_of_all_machines_stand_together_and_links_of_silent_ones_are_down() {
        let line = concat!(
            r#"{"samples": [{"ewan_up": "ewan_up{machine=\"one\"} 1\n", "ewan_new": "ewan_new 1\n"}, "#,
            r#"{"ewan_build_info": "ewan_build_info{machine=\"two\"} 1\n", "ewan_up": "ewan_up{machine=\"two\"} 1\n"}], "#,
            r#""silent": [{"backend": "user", "lab": "x", "link": "core", "machine": "three"}]}"#,
        );
        let text = told(line.as_bytes()).expect("a page").text();
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("# HELP")).collect();
        assert_eq!(
            lines,
            [
                "# TYPE ewan_build_info gauge",
                r#"ewan_build_info{machine="two"} 1"#,
                "# TYPE ewan_up gauge",
                r#"ewan_up{machine="one"} 1"#,
                r#"ewan_up{machine="two"} 1"#,
                r#"ewan_up{machine="three",lab="x",link="core",backend="user"} 0"#,
            ]
        );
        assert!(told(&b""[..]).is_err() && told(&b"{}\n"[..]).is_err());
    }
}
