//! Runs a program inside a node: its network namespace, its names, its CPUs.
//!
//! In: a lab's state directory, a node, a command. Out: on success never: this process becomes the command.

use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use ewan_system::{namespace, schedule, Context};
use nix::mount::{mount, MsFlags};
use nix::sched::{unshare, CloneFlags};

use crate::plan::{self, Plan};
use crate::{hosts, machine};

const NOTHING: Option<&str> = None;

/// Enters `node` and becomes `command`; returns only the reason why that failed.
pub fn run(state: &Path, node: &str, command: &[OsString]) -> Result<(), String> {
    let plan = plan::read(&state.join("plan.json"))?;
    let place = Place { namespace: namespace_of(&plan, node)?, hosts: state.join("hosts"), tree: None };
    place.enter()?;
    schedule::keep_to(&plan.host_cpus)?;
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let words = machine::words(state, node, command, terminal);
    let error = std::process::Command::new(&words[0]).args(&words[1..]).envs(plan.environment(node)).exec();
    Err(format!("{}: {error}", words[0].to_string_lossy()))
}

/// Why a node cannot be entered.
#[derive(Debug, thiserror::Error)]
pub enum NotThere {
    /// The lab has no such node: one line with the nearest names.
    #[error("{0}")]
    Unknown(String),
    #[error("node {node} of lab {lab} is not up: remove the lab with `ewan down {lab}`")]
    NotUp { node: String, lab: String },
}

impl From<NotThere> for String {
    fn from(error: NotThere) -> String {
        error.to_string()
    }
}

/// The open network namespace of a node that is up.
pub fn namespace_of(plan: &Plan, node: &str) -> Result<File, NotThere> {
    if !plan.nodes.iter().any(|known| known.name == node) {
        return Err(NotThere::Unknown(hosts::unknown(plan, node)));
    }
    namespace::open(&plan.netns_path(node))
        .ok_or_else(|| NotThere::NotUp { node: node.to_owned(), lab: plan.lab.clone() })
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
    pub fn enter(&self) -> ewan_system::Result<()> {
        namespace::enter(&self.namespace)?;
        unshare(CloneFlags::CLONE_NEWNS).attempting(|| "making a mount namespace")?;
        // A slave sees later unmounts of namespaces, so a program left in a node keeps none of them.
        mount(NOTHING, "/", NOTHING, MsFlags::MS_SLAVE | MsFlags::MS_REC, NOTHING)
            .attempting(|| "separating mounts")?;
        let tree = self.tree.as_deref().unwrap_or(Path::new("/"));
        mount(Some("ewan"), &tree.join("sys"), Some("sysfs"), MsFlags::empty(), NOTHING)
            .attempting(|| "mounting /sys")?;
        mount(Some(&self.hosts), &tree.join("etc/hosts"), NOTHING, MsFlags::MS_BIND, NOTHING)
            .attempting(|| format!("mounting {} on /etc/hosts", self.hosts.display()))?;
        let Some(tree) = &self.tree else { return Ok(()) };
        nix::unistd::chroot(tree).attempting(|| format!("making {} the root", tree.display()))
    }
}
