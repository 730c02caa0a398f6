//! Makes a lab out of a plan: the manifest first, then namespaces, veth pairs, and what is inside the nodes.
//!
//! In: a plan and a state directory. Out: DIR/{manifest,plan,applied}.json, DIR/hosts, and a lab without spinners.
//! Nothing forks but services, last. Namespaces are made and filled by threads that are inside them; the process itself
//! never leaves the host's. Whatever fails, what was made is removed again. Order: a thing is made only after the manifest that
//! names it is on disk, and applied.json, written last, tells a whole lab from a part of one.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use ewan_system::namespace::{self, CreateError};
use ewan_system::netlink::requests;
use ewan_system::netlink::{Batch, Socket};
use ewan_system::{fault, limits, schedule};
use serde::Serialize;

use crate::cards::LabCards;
use crate::ethtool::Offloads;
use crate::fill::{self, Notes};
use crate::manifest::{self, Manifest};
use crate::{cards, down, hosts, parallel, services, tunnel_ends, tunnels, vlans};
use ewan_plan::layout::{Layout, PlacedNode};
use ewan_plan::Plan;

/// More gain nothing: most of the work is done under one lock of the kernel.
const THREADS: usize = 2;
const DESCRIPTORS_OF_NODE: u64 = 2;
/// In the virtual clock the commands of a run are this process's children, and have its limit: a server of ten thousand
/// connections fits.
const OTHER_DESCRIPTORS: u64 = 20_000;

/// What `apply` prints and leaves in applied.json.
#[derive(Serialize)]
struct Applied<'a> {
    format: &'static str,
    lab: &'a str,
    namespaces: usize,
    interfaces: usize,
    /// What this kernel lacks and the lab does without; how many times.
    warnings: BTreeMap<String, u32>,
    phases_us: Vec<(&'static str, u128)>,
}

/// A namespace that exists, and a netlink socket in it.
struct NodeNamespace {
    namespace: File,
    socket: Socket,
}

/// A lab that is being made.
struct Work<'a> {
    plan: &'a Plan,
    layout: &'a Layout<'a>,
    /// Absolute.
    state: &'a Path,
    serve: bool,
    notes: Notes,
    /// Namespaces that appeared under our names while we worked: they are somebody else's.
    foreign: Mutex<Vec<String>>,
}

/// Makes the lab; `serve`: starts its nodes' services too.
pub fn run(plan_file: &Path, state: &Path, serve: bool) -> Result<(), String> {
    let text = ewan_system::reading::regular(plan_file).map_err(|error| format!("{}: {error}", plan_file.display()))?;
    let plan = ewan_plan::parse(&text, plan_file)?;
    let layout = Layout::of(&plan)?;
    if !nix::unistd::geteuid().is_root() {
        return Err("making network namespaces needs root: use sudo".into());
    }
    manifest::check_absent(state, &plan.lab)?;
    if let Some(node) = plan.nodes.iter().find(|node| plan.netns_path(&node.name).exists()) {
        let name = plan.namespace(&node.name);
        let lab = &plan.lab;
        return Err(format!(
            "network namespace {name} exists already: if it is a lab's, remove it with `ewan down {lab}`, \
             if not, with `ip netns del {name}`, or give this lab another name"
        ));
    }
    let state = &std::path::absolute(state).map_err(|error| format!("{}: {error}", state.display()))?;
    if serve {
        services::check_host(&plan, state)?;
    }
    tunnel_ends::check_kernel(&plan)?;
    limits::raise_open_files(DESCRIPTORS_OF_NODE * plan.nodes.len() as u64 + OTHER_DESCRIPTORS);
    // Another lab's spinner may have real-time priority on one of the others; a lock held there waits for long.
    let _ = schedule::keep_to(&plan.host_cpus);
    let mut manifest = Manifest::of(&plan)?;
    manifest.cards = cards::record(&plan, &manifest.id, state)?;
    manifest.create(state)?;
    let work = Work { plan: &plan, layout: &layout, state, serve, notes: Notes::default(), foreign: Mutex::default() };
    let made = work.fill_state(&manifest, &text).and_then(|()| work.make(manifest.cards.as_ref()));
    made.map_err(|error| {
        let foreign = work.foreign.lock().expect("no thread panicked");
        manifest.namespaces.retain(|name| !foreign.contains(name));
        let undone = manifest.replace(state).and_then(|()| down::remove(state).map(|_| ()));
        match undone {
            Ok(()) => error,
            Err(left) => format!("{error}; removing what was made: {left}"),
        }
    })
}

impl Work<'_> {
    fn fill_state(&self, manifest: &Manifest, text: &[u8]) -> Result<(), String> {
        write(&self.state.join("plan.json"), text)?;
        let hosts = self.state.join("hosts");
        write(&hosts, hosts::file(self.plan).as_bytes())?;
        for path in &manifest.paths {
            fault::step();
            let linked = link_hosts(path, &hosts);
            if let Err(error) = linked {
                self.notes.warn(format!(
                    "names resolve under `ewan lab exec`, but not under `ip netns exec`: /etc/netns: {error}"
                ));
            }
        }
        Ok(())
    }

    fn make(&self, taken: Option<&LabCards>) -> Result<(), String> {
        let mut phases = Vec::new();
        let mut start = Instant::now();
        let mut phase = |name| {
            phases.push((name, start.elapsed().as_micros()));
            start = Instant::now();
        };
        namespace::prepare()?;
        let nodes = &self.layout.nodes;
        let made = parallel::run(THREADS, nodes.len(), |number| self.make_namespace(&nodes[number]))?;
        phase("namespaces");
        make_wires(self.layout, &made)?;
        phase("wires");
        if !self.layout.tunnels.is_empty() {
            tunnels::make(self.layout, |node| made[node].namespace.as_raw_fd())?;
            phase("tunnels");
        }
        if let Some(taken) = taken {
            cards::take(taken, |number| {
                let (node, port) = self.layout.cards[number];
                (&made[node].namespace, &made[node].socket, &nodes[node].ports[port])
            })?;
            phase("cards");
        }
        let offloads = OnceLock::new();
        parallel::run(THREADS, nodes.len(), |number| self.fill(&nodes[number], &made[number], &offloads))?;
        let with_keys: Vec<_> = (0..nodes.len()).filter(|number| tunnel_ends::needs_keys(&nodes[*number])).collect();
        let within = |work: &(dyn Fn(&PlacedNode) -> Result<(), String> + Sync)| {
            parallel::run(THREADS, with_keys.len(), |place| {
                let (placed, made) = (&nodes[with_keys[place]], &made[with_keys[place]]);
                namespace::enter(&made.namespace).map_err(|error| format!("node {}: {error}", placed.node.name))?;
                work(placed)
            })
        };
        within(&tunnel_ends::give_keys)?;
        if !self.serve && !with_keys.is_empty() {
            std::thread::sleep(tunnel_ends::AFTER_BOOT);
        }
        within(&|placed| tunnel_ends::call(placed, !self.serve))?;
        phase("nodes");
        if self.serve && services::any(self.plan) {
            services::start_all(self.plan, self.state, None)?;
            phase("services");
        }
        let applied = Applied {
            format: "ewan-applied/1",
            lab: &self.plan.lab,
            namespaces: made.len(),
            interfaces: 2 * self.layout.wires.len()
                + self.layout.cards.len()
                + self.layout.tunnels.len()
                + nodes.iter().map(tunnel_ends::count).sum::<usize>(),
            warnings: self.notes.take(),
            phases_us: phases,
        };
        let summary = serde_json::to_string(&applied).map_err(|error| error.to_string())?;
        let (unfinished, path) = (self.state.join(".applied.json.new"), self.state.join("applied.json"));
        write(&unfinished, summary.as_bytes())?;
        fault::step();
        std::fs::rename(unfinished, path).map_err(|error| error.to_string())?;
        println!("{summary}");
        Ok(())
    }

    fn make_namespace(&self, placed: &PlacedNode) -> Result<NodeNamespace, String> {
        let node = placed.node;
        let made = namespace::create(&self.plan.netns_path(&node.name)).map_err(|error| {
            if let CreateError::Taken(_) = error {
                self.foreign.lock().expect("no thread panicked").push(self.plan.namespace(&node.name));
            }
            format!("node {}: {error}", node.name)
        })?;
        fill::keep_quiet();
        fill::set_sysctls(placed, &self.notes, false)?;
        Ok(NodeNamespace { namespace: made, socket: Socket::open()? })
    }

    fn fill(
        &self,
        placed: &PlacedNode,
        made: &NodeNamespace,
        offloads: &OnceLock<Result<Offloads, String>>,
    ) -> Result<(), String> {
        if fill::needs_files(placed) {
            namespace::enter(&made.namespace).map_err(|error| format!("node {}: {error}", placed.node.name))?;
        }
        vlans::make(&made.socket, placed, false, &|port| Ok(port.index))?;
        tunnel_ends::make(&made.socket, placed)?;
        fill::settle(placed, &made.socket, self.plan, offloads, &self.notes)?;
        fault::step();
        let mut batch = Batch::default();
        fill::requests(&mut batch, placed)?;
        Ok(made.socket.run(batch)?)
    }
}

fn write(path: &Path, text: &[u8]) -> Result<(), String> {
    fault::step();
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The hosts file where `ip netns exec` looks for it. A link of a lab that a reboot ended is as good as a new one.
fn link_hosts(path: &Path, hosts: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    match std::os::unix::fs::symlink(hosts, path) {
        Err(_) if std::fs::read_link(path).is_ok_and(|target| target == hosts) => Ok(()),
        result => result,
    }
}

/// All veth pairs, one batch per node that has a wire's first end.
fn make_wires(layout: &Layout, made: &[NodeNamespace]) -> Result<(), String> {
    let mut batches: BTreeMap<usize, Batch> = BTreeMap::new();
    for [a, b] in &layout.wires {
        let port = |end: &(usize, usize)| &layout.nodes[end.0].ports[end.1];
        let rtnl_port = |end| {
            let port = port(end);
            let (name, mtu) = (&port.interface.name, port.interface.mtu);
            requests::Port { name, index: port.index, mac: port.mac, mtu }
        };
        let what = format!(
            "wire {}:{} to {}:{}",
            layout.nodes[a.0].node.name,
            port(a).interface.name,
            layout.nodes[b.0].node.name,
            port(b).interface.name
        );
        let batch = batches.entry(a.0).or_default();
        requests::veth(batch, &rtnl_port(a), &rtnl_port(b), made[b.0].namespace.as_raw_fd(), what);
    }
    let batches: Vec<_> = batches.into_iter().map(|(node, batch)| (node, Mutex::new(batch))).collect();
    parallel::run(THREADS, batches.len(), |number| {
        fault::step();
        let (node, batch) = &batches[number];
        made[*node].socket.run(std::mem::take(&mut batch.lock().expect("no thread panicked")))
    })?;
    Ok(())
}
