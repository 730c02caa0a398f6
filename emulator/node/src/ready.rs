//! Waits in one container of a lab until all of its nodes are ready, so that a deployment ends when the lab can be used.
//!
//! In: the lab's directory, the node that waits, and for how long while nothing gets on. Out: one line; or what failed, in
//! that node's own words, or which nodes are missing. With a routing protocol it also waits until it reaches every host.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ewan_lab::hosts;
use ewan_plan::{Node, NodeKind, Plan, Routing};

const POLL: Duration = Duration::from_millis(20);
const BETWEEN_PINGS: Duration = Duration::from_millis(200);
const MOST_NAMES: usize = 5;
/// In the own directory of a node with commands: they have come to their ends.
pub const COMMANDS_DONE: &str = "commands-done";

pub fn run(lab: &Path, node: &str, patience: Duration) -> Result<(), String> {
    let plan = ewan_plan::read(&lab.join("plan.json"))?;
    let begin = Instant::now();
    wait_for_all(lab, &plan, patience)?;
    let with_commands: Vec<_> = plan.nodes.iter().filter(|node| has_commands(node)).collect();
    let run = wait_for_nodes(lab, &with_commands, COMMANDS_DONE, patience);
    run.map_err(|reason| format!("lab {}: commands: {reason}", plan.lab))?;
    let containers = plan.nodes.iter().filter(|node| is_container(&plan, node)).count();
    let mut words = format!("{}: {containers} nodes are ready", plan.lab);
    if plan.routing != Routing::Static {
        reach_all(&plan, node, patience).map_err(|reason| format!("lab {}: {reason}", plan.lab))?;
        words += &format!(", and {node} reaches every host");
    }
    println!("{words} ({:.1} s)", begin.elapsed().as_secs_f64());
    Ok(())
}

/// Until each container has made itself what the plan says.
pub fn wait_for_all(lab: &Path, plan: &Plan, patience: Duration) -> Result<(), String> {
    let containers: Vec<_> = plan.nodes.iter().filter(|node| is_container(plan, node)).collect();
    wait_for_nodes(lab, &containers, "ready", patience).map_err(|reason| format!("lab {}: {reason}", plan.lab))
}

fn has_commands(node: &Node) -> bool {
    node.own.as_ref().is_some_and(|own| !own.exec.is_empty())
}

/// A switch may be a bridge of the host, which tells nothing.
fn is_container(plan: &Plan, node: &Node) -> bool {
    !(plan.containers.ovs_bridge && node.kind == NodeKind::Switch)
}

/// `sign`: the file of a node's own directory that says so.
fn wait_for_nodes(lab: &Path, nodes: &[&Node], sign: &str, patience: Duration) -> Result<(), String> {
    let mut missing: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
    let mut since = Instant::now();
    loop {
        for name in &missing {
            if let Ok(reason) = std::fs::read_to_string(lab.join("nodes").join(name).join("failed")) {
                return Err(reason.trim().to_string());
            }
        }
        let before = missing.len();
        missing.retain(|name| !lab.join("nodes").join(name).join(sign).exists());
        if missing.is_empty() {
            return Ok(());
        }
        if missing.len() < before {
            since = Instant::now();
        }
        if since.elapsed() > patience {
            return Err(format!("not ready: {} (their containers' logs say more)", listed(&missing)));
        }
        std::thread::sleep(POLL);
    }
}

/// Pings every other host, each family, until all have answered once.
fn reach_all(plan: &Plan, from: &str, patience: Duration) -> Result<(), String> {
    let others = plan.nodes.iter().filter(|node| node.kind == NodeKind::Host && node.name != from);
    let mut silent: Vec<_> = others.flat_map(first_addresses).collect();
    let mut since = Instant::now();
    loop {
        let before = silent.len();
        silent.retain(|address| !answers(address));
        if silent.is_empty() {
            return Ok(());
        }
        if silent.len() < before {
            since = Instant::now();
        }
        if since.elapsed() > patience {
            return Err(format!("the routes did not converge: {from} does not reach {}", listed(&silent)));
        }
        std::thread::sleep(BETWEEN_PINGS);
    }
}

/// The node's first address of each family.
fn first_addresses(node: &Node) -> impl Iterator<Item = &str> {
    [false, true].into_iter().filter_map(|v6| hosts::first_address(node, v6))
}

fn answers(address: &str) -> bool {
    let mut ping = Command::new("ping");
    ping.args(["-n", "-q", "-c", "1", "-W", "2", address]);
    ping.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    ping.status().is_ok_and(|status| status.success())
}

fn listed(names: &[&str]) -> String {
    let more = if names.len() > MOST_NAMES { " …" } else { "" };
    format!("{}{more}", names[..names.len().min(MOST_NAMES)].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/dumbbell.plan.json");
        ewan_plan::read(&path).expect("a plan")
    }

    fn lab(name: &str, plan: &Plan) -> std::path::PathBuf {
        let lab = std::env::temp_dir().join(format!("ewan-ready-{}-{name}", std::process::id()));
        for node in &plan.nodes {
            std::fs::create_dir_all(lab.join("nodes").join(&node.name)).expect("a directory");
        }
        std::fs::write(lab.join("plan.json"), serde_json::to_vec(plan).expect("JSON")).expect("a file");
        lab
    }

    #[test]
    fn it_waits_for_every_node_and_says_which_are_missing() {
        let plan = plan();
        let lab = lab("missing", &plan);
        for node in plan.nodes.iter().filter(|node| node.name != "core") {
            std::fs::write(lab.join("nodes").join(&node.name).join("ready"), "").expect("a file");
        }
        let said = run(&lab, "left1", Duration::from_millis(50)).expect_err("core is not ready");
        assert!(said.starts_with("lab dumbbell: not ready: core ("), "{said}");
        std::fs::write(lab.join("nodes/core/ready"), "").expect("a file");
        assert_eq!(run(&lab, "left1", Duration::from_millis(50)), Ok(()));
        std::fs::remove_dir_all(lab).expect("removed");
    }

    #[test]
    fn a_node_that_failed_is_told_at_once_in_its_words() {
        let plan = plan();
        let lab = lab("failed", &plan);
        std::fs::write(lab.join("nodes/r1/failed"), "r1: interface eth1 did not come\n").expect("a file");
        let said = run(&lab, "left1", Duration::from_secs(60));
        assert_eq!(said, Err("lab dumbbell: r1: interface eth1 did not come".into()));
        std::fs::remove_dir_all(lab).expect("removed");
    }

    #[test]
    fn hosts_are_reached_by_both_families() {
        let plan = plan();
        let left = plan.nodes.iter().find(|node| node.name == "left1").expect("left1");
        assert_eq!(first_addresses(left).collect::<Vec<_>>(), ["10.65.0.5", "fd65:7761:6e01:1::1"]);
    }
}
