//! Runs a program inside a node: its network namespace, its names, its CPUs. Tools of the node's services (`vtysh`,
//! `ovs-vsctl`) find these without being told where they are.
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

use crate::{hosts, machine, services};
use ewan_plan::Plan;

const NOTHING: Option<&str> = None;
/// Where FRRouting's tools look for its daemons; no option of theirs stands in the environment.
const FRR: &str = "run/frr";
/// Of a node's own directory: it runs FRRouting, or Open vSwitch.
const FRR_RUNS: &str = "zserv.api";
const OVS_RUNS: &str = "db.sock";

/// Enters `node` and becomes `command`; returns only the reason why that failed.
pub fn run(state: &Path, node: &str, command: &[OsString]) -> Result<(), String> {
    let plan = ewan_plan::read(&state.join("plan.json"))?;
    let own = services::directory(state, node);
    let place =
        Place { namespace: namespace_of(&plan, node)?, hosts: state.join("hosts"), own: own.clone(), tree: None };
    place.enter()?;
    schedule::keep_to(&plan.host_cpus)?;
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let words = machine::words(state, node, command, terminal);
    let mut program = std::process::Command::new(&words[0]);
    let error = program.args(&words[1..]).envs(environment(&own)).envs(plan.environment(node)).exec();
    Err(format!("{}: {error}", words[0].to_string_lossy()))
}

/// Why a node cannot be entered.
#[derive(Debug, thiserror::Error)]
pub enum MissingNode {
    /// The lab has no such node: one line with the nearest names.
    #[error("{0}")]
    Unknown(String),
    #[error("node {node} of lab {lab} is not up: remove the lab with `ewan down {lab}`")]
    NotUp { node: String, lab: String },
}

impl From<MissingNode> for String {
    fn from(error: MissingNode) -> String {
        error.to_string()
    }
}

/// The open network namespace of a node that is up.
pub fn namespace_of(plan: &Plan, node: &str) -> Result<File, MissingNode> {
    if !plan.nodes.iter().any(|known| known.name == node) {
        return Err(MissingNode::Unknown(hosts::unknown(plan, node)));
    }
    namespace::open(&plan.netns_path(node))
        .ok_or_else(|| MissingNode::NotUp { node: node.to_owned(), lab: plan.lab.clone() })
}

/// Where a program finds itself.
pub struct Place {
    pub namespace: File,
    /// The lab's names, shown as /etc/hosts.
    pub hosts: PathBuf,
    /// The node's own directory, with its services' sockets.
    pub own: PathBuf,
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
        self.show_routing(tree);
        let Some(tree) = &self.tree else { return Ok(()) };
        nix::unistd::chroot(tree).attempting(|| format!("making {} the root", tree.display()))
    }

    /// Shows the node's own directory where FRRouting's tools look. Without that place they must be told
    /// (`vtysh --vty_socket`); on the host nobody makes it but FRRouting's package.
    fn show_routing(&self, tree: &Path) {
        if self.own.join(FRR_RUNS).exists() {
            let place = tree.join(FRR);
            if self.tree.is_some() {
                let _ = std::fs::create_dir_all(&place);
            }
            let _ = mount(Some(&self.own), &place, NOTHING, MsFlags::MS_BIND, NOTHING);
        }
    }
}

/// What tells Open vSwitch's tools where the node's switch is; `own`: the node's own directory.
pub fn environment(own: &Path) -> Option<(&'static str, PathBuf)> {
    own.join(OVS_RUNS).exists().then(|| ("OVS_RUNDIR", own.to_owned()))
}
