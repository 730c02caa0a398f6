//! Two namespaces of a test's own with a veth pair between them, and traffic in it. Needs root and iproute2's `ip` and
//! `tc`; without them it fails: a machine that cannot run this cannot run a lab.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::{json, Value};

pub const MS: u64 = 1_000_000;

pub struct Pair {
    tag: String,
}

fn sh(line: &str) {
    let output = Command::new("sh").args(["-c", line]).output().expect("sh");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Pair {
    /// Namespaces a and b, 192.0.2.1 and 192.0.2.2.
    pub fn new(name: &str) -> Self {
        let tag = format!("traffic-test-{}-{name}", std::process::id());
        let (a, b) = (format!("{tag}-a"), format!("{tag}-b"));
        let pair = Self { tag };
        for side in [&a, &b] {
            sh(&format!("ip netns add {side}"));
        }
        sh(&format!("ip -n {a} link add eth0 type veth peer name eth0 netns {b}"));
        for (netns, number) in [(&a, 1), (&b, 2)] {
            sh(&format!("ip -n {netns} address add 192.0.2.{number}/24 dev eth0"));
            sh(&format!("ip -n {netns} link set eth0 up && ip -n {netns} link set lo up"));
        }
        pair
    }

    /// A token bucket where a sends, or b.
    pub fn rate(&self, side: &str, rate: &str, limit_bytes: u64) {
        let netns = format!("{}-{side}", self.tag);
        sh(&format!("tc -n {netns} qdisc add dev eth0 root tbf rate {rate} burst 3028 limit {limit_bytes}"));
    }

    /// A counter of the side's IP.
    #[allow(dead_code)]
    pub fn counter(&self, side: &str, name: &str) -> u64 {
        let text = self.inside(side, "cat /proc/net/netstat");
        let mut lines = text.lines().filter(|line| line.starts_with("IpExt:")).map(str::split_whitespace);
        let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
        let found = names.zip(values).find(|(each, _)| *each == name).expect("a counter of this name");
        found.1.parse().expect("a number")
    }

    #[allow(dead_code)]
    pub fn sysctl(&self, side: &str, key: &str) -> String {
        self.inside(side, &format!("cat /proc/sys/{key}")).trim().to_owned()
    }

    /// All values that a sysctl of the side has until `ended`.
    #[allow(dead_code)]
    pub fn seen(&self, side: &str, key: &str, ended: &AtomicBool) -> BTreeSet<String> {
        let netns = std::fs::File::open(format!("/run/netns/{}-{side}", self.tag)).expect("a namespace");
        ewan_system::namespace::enter(netns).expect("entering it");
        let mut seen = BTreeSet::new();
        while !ended.load(Relaxed) {
            let value = std::fs::read_to_string(format!("/proc/sys/{key}")).expect("a sysctl");
            seen.insert(value.trim().to_owned());
        }
        seen
    }

    #[allow(dead_code)]
    pub fn inside(&self, side: &str, line: &str) -> String {
        let netns = format!("{}-{side}", self.tag);
        let output = Command::new("ip").args(["netns", "exec", &netns, "sh", "-c", line]).output().expect("ip");
        String::from_utf8(output.stdout).expect("text")
    }

    pub fn end(&self, side: &str) -> Value {
        let number = if side == "a" { 1 } else { 2 };
        json!({"netns": format!("/run/netns/{}-{side}", self.tag), "address": format!("192.0.2.{number}")})
    }

    /// From a to b; `more` are other keys of the flow.
    pub fn flow(&self, work: Value, more: Value) -> Value {
        let mut flow = json!({"name": "f", "from": self.end("a"), "to": self.end("b"), "work": work,
                              "socket": {"congestion": "cubic"}});
        flow.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        flow
    }

    /// Runs flows; `more` are other keys of the request.
    pub fn run(&self, flows: &[Value], more: Value) -> Results {
        let directory = self.directory();
        self.send(&directory, flows, more).expect("traffic");
        let results = Results::read(&directory);
        std::fs::remove_dir_all(&directory).expect("gone");
        results
    }

    /// The error of flows that cannot be; nothing of them was sent.
    #[allow(dead_code)]
    pub fn refused(&self, flows: &[Value]) -> String {
        let directory = self.directory();
        let error = self.send(&directory, flows, json!({})).expect_err("an error");
        assert!(!directory.join("traffic.json").exists());
        std::fs::remove_dir_all(&directory).expect("gone");
        error
    }

    fn directory(&self) -> PathBuf {
        let directory = std::env::temp_dir().join(&self.tag);
        std::fs::create_dir_all(&directory).expect("a directory");
        directory
    }

    fn send(&self, directory: &Path, flows: &[Value], more: Value) -> Result<(), String> {
        let mut request = json!({"format": "ewan-traffic/1", "clock": "live", "seed": 1, "longest_ns": 20_000 * MS,
                                 "series_ns": 50 * MS, "sample_ns": 50 * MS, "flows": flows});
        request.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let file = directory.join("request.json");
        std::fs::write(&file, request.to_string()).expect("a request");
        ewan_traffic::flows::run(&file, directory, None)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for side in ["a", "b"] {
            let _ = Command::new("ip").args(["netns", "del", &format!("{}-{side}", self.tag)]).status();
        }
    }
}

/// What a run left. (Each test program uses what it tests.)
#[allow(dead_code)]
pub struct Results {
    pub records: Vec<Value>,
    pub exchanges: Vec<Vec<u64>>,
    pub goodput: Vec<Vec<u64>>,
    pub series: Vec<Vec<u64>>,
    pub series_rows: usize,
}

impl Results {
    fn read(directory: &Path) -> Self {
        let text = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap_or_else(|_| panic!("no {name}"));
        let answer: Value = serde_json::from_str(&text("traffic.json")).expect("JSON");
        assert_eq!((&answer["format"], &answer["interrupted"]), (&json!("ewan-traffic-result/1"), &json!(false)));
        let rows = |name: &str| -> Vec<Vec<u64>> {
            let number = |field: &str| match field {
                // No value.
                "" => u64::MAX,
                _ => field.parse().unwrap_or_else(|_| panic!("{name}: {field}")),
            };
            text(name).lines().skip(1).map(|line| line.split(',').map(number).collect()).collect()
        };
        Self {
            records: answer["flows"].as_array().expect("flows").clone(),
            exchanges: rows("exchanges.csv"),
            goodput: rows("goodput.csv"),
            series_rows: text("series.csv").lines().count() - 1,
            series: rows("series.csv"),
        }
    }

    /// Of a part of a flow: all bytes in its bins.
    pub fn binned_bytes(&self, flow: u64, part: u64) -> u64 {
        self.goodput.iter().filter(|row| row[..2] == [flow, part]).map(|row| row[4]).sum()
    }
}

pub fn number(record: &Value, key: &str) -> f64 {
    record[key].as_f64().unwrap_or_else(|| panic!("no {key} in {record}"))
}

#[allow(dead_code)]
pub fn constant(value: u64) -> Value {
    json!({"law": "constant", "value": value})
}
