//! Runs a program inside a node: its network namespace, its names, its CPUs.
//!
//! In: a lab's state directory, a node, a command. Out: on success never: this process becomes the command.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;

use nix::mount::{mount, MsFlags};
use nix::sched::{sched_setaffinity, unshare, CloneFlags, CpuSet};
use nix::unistd::Pid;

use crate::{hosts, namespace, plan};

const NOTHING: Option<&str> = None;

/// Enters `node` and becomes `command`; returns only the reason why that failed.
pub fn run(state: &Path, node: &str, command: &[OsString]) -> Result<(), String> {
    let plan = plan::read(&state.join("plan.json"))?;
    if !plan.nodes.iter().any(|known| known.name == node) {
        return Err(hosts::unknown(&plan, node));
    }
    let path = plan.netns_path(node);
    let lab = &plan.lab;
    let open = namespace::open(&path)
        .ok_or_else(|| format!("node {node} of lab {lab} is not up: remove the lab with `ewan down {lab}`"))?;
    namespace::enter(open)?;
    own_mounts(state)?;
    keep_to(&plan.host_cpus)?;
    let error = std::process::Command::new(&command[0]).args(&command[1..]).exec();
    Err(format!("{}: {error}", command[0].to_string_lossy()))
}

/// A mount namespace in which /sys shows the node's interfaces and /etc/hosts its lab's names.
fn own_mounts(state: &Path) -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| format!("making a mount namespace: {error}"))?;
    // A slave sees later unmounts of namespaces, so a program left in a node keeps none of them.
    mount(NOTHING, "/", NOTHING, MsFlags::MS_SLAVE | MsFlags::MS_REC, NOTHING)
        .map_err(|error| format!("separating mounts: {error}"))?;
    mount(Some("ewan"), "/sys", Some("sysfs"), MsFlags::empty(), NOTHING)
        .map_err(|error| format!("mounting /sys: {error}"))?;
    let hosts = state.join("hosts");
    mount(Some(&hosts), "/etc/hosts", NOTHING, MsFlags::MS_BIND, NOTHING)
        .map_err(|error| format!("mounting {} on /etc/hosts: {error}", hosts.display()))
}

/// Keeps the calling thread, and what it starts, off the spinners' CPUs.
pub fn keep_to(cpus: &[u32]) -> Result<(), String> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu as usize).map_err(|error| format!("CPU {cpu}: {error}"))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|error| format!("keeping to CPUs {cpus:?}: {error}"))
}
