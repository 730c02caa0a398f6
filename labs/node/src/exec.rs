//! Runs a program inside a node: its network namespace, its names, its CPUs.
//!
//! In: a lab's state directory, a node, a command. Out: on success never: this process becomes the command.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use ewan_system::{namespace, schedule};
use nix::mount::{mount, MsFlags};
use nix::sched::{unshare, CloneFlags};

use crate::hosts;
use crate::plan::{self, Plan};

const NOTHING: Option<&str> = None;

/// Enters `node` and becomes `command`; returns only the reason why that failed.
pub fn run(state: &Path, node: &str, command: &[OsString]) -> Result<(), String> {
    let plan = plan::read(&state.join("plan.json"))?;
    let place = Place { namespace: namespace_of(&plan, node)?, hosts: state.join("hosts"), tree: None };
    place.enter()?;
    schedule::keep_to(&plan.host_cpus)?;
    let error = std::process::Command::new(&command[0]).args(&command[1..]).exec();
    Err(format!("{}: {error}", command[0].to_string_lossy()))
}

/// The open network namespace of a node that is up.
pub fn namespace_of(plan: &Plan, node: &str) -> Result<File, String> {
    if !plan.nodes.iter().any(|known| known.name == node) {
        return Err(hosts::unknown(plan, node));
    }
    let lab = &plan.lab;
    namespace::open(&plan.netns_path(node))
        .ok_or_else(|| format!("node {node} of lab {lab} is not up: remove the lab with `ewan down {lab}`"))
}

/// Where a program finds itself.
pub struct Place {
    pub namespace: File,
    /// The lab's names, shown as /etc/hosts.
    pub hosts: PathBuf,
    /// A mounted file tree that becomes the program's root; none: the root as it is.
    pub tree: Option<PathBuf>,
}

impl Place {
    /// Moves the calling thread there: the node's network, and a mount namespace in which /sys shows the node's
    /// interfaces and /etc/hosts its lab's names.
    pub fn enter(&self) -> Result<(), String> {
        namespace::enter(&self.namespace)?;
        unshare(CloneFlags::CLONE_NEWNS).map_err(|error| format!("making a mount namespace: {error}"))?;
        // A slave sees later unmounts of namespaces, so a program left in a node keeps none of them.
        mount(NOTHING, "/", NOTHING, MsFlags::MS_SLAVE | MsFlags::MS_REC, NOTHING)
            .map_err(|error| format!("separating mounts: {error}"))?;
        let tree = self.tree.as_deref().unwrap_or(Path::new("/"));
        mount(Some("ewan"), &tree.join("sys"), Some("sysfs"), MsFlags::empty(), NOTHING)
            .map_err(|error| format!("mounting /sys: {error}"))?;
        mount(Some(&self.hosts), &tree.join("etc/hosts"), NOTHING, MsFlags::MS_BIND, NOTHING)
            .map_err(|error| format!("mounting {} on /etc/hosts: {error}", self.hosts.display()))?;
        let Some(tree) = &self.tree else { return Ok(()) };
        nix::unistd::chroot(tree).map_err(|error| format!("making {} the root: {error}", tree.display()))
    }
}
