//! Makes a lab out of a plan: the manifest first, then namespaces, veth pairs, and what is inside the nodes.
//!
//! In: a plan and a state directory. Out: DIR/{manifest,plan,applied}.json, DIR/hosts, and a lab without spinners.
//! Nothing forks. Namespaces are made and filled by threads that are inside them; the process itself never leaves
//! the host's. Whatever fails, what was made is removed again. Order: a thing is made only after the manifest that
//! names it is on disk, and applied.json, written last, tells a whole lab from a part of one.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use serde::Serialize;

use crate::ethtool::Offloads;
use crate::kernel_files::{sysctl, Sysctl, Sysfs};
use crate::layout::{ip, mac, prefix, Layout, PlacedNode};
use crate::manifest::{self, Manifest};
use crate::netlink::{Batch, Socket};
use crate::plan::{self, Plan};
use crate::{down, exec, fault, hosts, namespace, qdisc, rtnl};

/// More gain nothing: most of the work is done under one lock of the kernel.
const THREADS: usize = 2;
/// A node without these would be up and yet not work.
const ESSENTIAL: [&str; 2] = ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"];
/// Namespaces may use the variants that the host allows to everybody; the host's list is not ours to change.
const CONGESTION_CONTROL: &str = "net/ipv4/tcp_congestion_control";

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
struct Made {
    namespace: File,
    socket: Socket,
}

#[derive(Default)]
struct Notes {
    warnings: Mutex<BTreeMap<String, u32>>,
    /// Namespaces that appeared under our names while we worked: they are somebody else's.
    foreign: Mutex<Vec<String>>,
}

impl Notes {
    fn warn(&self, warning: String) {
        *self.warnings.lock().expect("no thread panicked").entry(warning).or_default() += 1;
    }
}

pub fn run(plan_file: &Path, state: &Path) -> Result<(), String> {
    let text = std::fs::read(plan_file).map_err(|error| format!("{}: {error}", plan_file.display()))?;
    let plan = plan::parse(&text, plan_file)?;
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
    raise_file_limit();
    // Another lab's spinner may have real-time priority on one of the others; a lock held there waits for long.
    let _ = exec::keep_to(&plan.host_cpus);
    let mut manifest = Manifest::of(&plan)?;
    manifest.create(state)?;
    let notes = Notes::default();
    let made = fill_state(&plan, &manifest, &text, state, &notes).and_then(|()| make(&plan, &layout, &notes, state));
    made.map_err(|error| {
        let foreign = notes.foreign.lock().expect("no thread panicked");
        manifest.namespaces.retain(|name| !foreign.contains(name));
        let undone = manifest.replace(state).and_then(|()| down::remove(state).map(|_| ()));
        match undone {
            Ok(()) => error,
            Err(left) => format!("{error}; removing what was made: {left}"),
        }
    })
}

fn write(path: &Path, text: &[u8]) -> Result<(), String> {
    fault::step();
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn fill_state(plan: &Plan, manifest: &Manifest, text: &[u8], state: &Path, notes: &Notes) -> Result<(), String> {
    write(&state.join("plan.json"), text)?;
    let hosts = state.join("hosts");
    write(&hosts, hosts::file(plan).as_bytes())?;
    let hosts = std::path::absolute(&hosts).map_err(|error| format!("{}: {error}", hosts.display()))?;
    for path in &manifest.paths {
        fault::step();
        let linked = link_hosts(path, &hosts);
        if let Err(error) = linked {
            notes.warn(format!("names resolve under `ewan exec`, but not under `ip netns exec`: /etc/netns: {error}"));
        }
    }
    Ok(())
}

/// The hosts file where `ip netns exec` looks for it. A link of a lab that a reboot ended is as good as a new one.
fn link_hosts(path: &Path, hosts: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    match std::os::unix::fs::symlink(hosts, path) {
        Err(_) if std::fs::read_link(path).is_ok_and(|target| target == hosts) => Ok(()),
        result => result,
    }
}

fn make(plan: &Plan, layout: &Layout, notes: &Notes, state: &Path) -> Result<(), String> {
    let mut phases = Vec::new();
    let mut start = Instant::now();
    let mut phase = |name, start: &mut Instant| {
        phases.push((name, start.elapsed().as_micros()));
        *start = Instant::now();
    };
    namespace::prepare()?;
    let made = parallel(layout.nodes.len(), |number| make_namespace(plan, &layout.nodes[number], notes))?;
    phase("namespaces", &mut start);
    make_wires(layout, &made)?;
    phase("wires", &mut start);
    let offloads = OnceLock::new();
    parallel(layout.nodes.len(), |number| fill(&layout.nodes[number], &made[number], plan, &offloads, notes))?;
    phase("nodes", &mut start);
    let applied = Applied {
        format: "ewan-applied/1",
        lab: &plan.lab,
        namespaces: made.len(),
        interfaces: 2 * layout.wires.len(),
        warnings: std::mem::take(&mut notes.warnings.lock().expect("no thread panicked")),
        phases_us: phases,
    };
    let summary = serde_json::to_string(&applied).map_err(|error| error.to_string())?;
    write(&state.join(".applied.json.new"), summary.as_bytes())?;
    fault::step();
    std::fs::rename(state.join(".applied.json.new"), state.join("applied.json")).map_err(|error| error.to_string())?;
    println!("{summary}");
    Ok(())
}

/// Runs `work` for 0..count on a few threads of their own, in which namespaces may be entered; results in order.
fn parallel<T: Send>(count: usize, work: impl Fn(usize) -> Result<T, String> + Sync) -> Result<Vec<T>, String> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    let worker = || -> Result<(), String> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            let result = work(number).inspect_err(|_| next.store(count, Ordering::Relaxed))?;
            results.lock().expect("no thread panicked")[number] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no thread panicked"))
    })?;
    Ok(results.into_inner().expect("no thread panicked").into_iter().flatten().collect())
}

fn make_namespace(plan: &Plan, placed: &PlacedNode, notes: &Notes) -> Result<Made, String> {
    let node = placed.node;
    let made = namespace::create(&plan.netns_path(&node.name)).map_err(|failed| {
        if failed.taken {
            notes.foreign.lock().expect("no thread panicked").push(plan.namespace(&node.name));
        }
        format!("node {}: {}", node.name, failed.why)
    })?;
    // Nothing of the kernel's own crosses the links later: no link-local addresses, whose owner solicits routers, and
    // the reports of multicast groups at once, before the links run. Without IPv6 there is nothing to keep quiet.
    for (key, value) in [("addr_gen_mode", "1"), ("mldv2_unsolicited_report_interval", "1")] {
        let _ = sysctl(&format!("net/ipv6/conf/default/{key}"), value);
    }
    set_sysctls(placed, notes, false)?;
    Ok(Made { namespace: made, socket: Socket::open()? })
}

/// Sets the node's sysctls that name one of its interfaces, or all others.
fn set_sysctls(placed: &PlacedNode, notes: &Notes, of_interfaces: bool) -> Result<(), String> {
    for (key, value) in placed.node.sysctls.iter().filter(|(key, _)| names_interface(key, placed) == of_interfaces) {
        fault::step();
        let node = &placed.node.name;
        match sysctl(key, value) {
            Ok(()) => {}
            Err(Sysctl::Absent) if ESSENTIAL.contains(&key.as_str()) => {
                return Err(format!("node {node}: this kernel has no sysctl {key} in a network namespace"));
            }
            Err(Sysctl::Absent) => notes.warn(format!("this kernel has no sysctl {key} in a network namespace")),
            Err(Sysctl::Refused(error)) if key == CONGESTION_CONTROL && error.raw_os_error() == Some(libc::EPERM) => {
                // Reno is allowed everywhere. Not the host's default: a socket that begins under BBR keeps BBR's
                // pacing, a timer for each packet, when its program names another variant after it has connected.
                let _ = sysctl(key, "reno");
                notes.warn(format!(
                    "the nodes' default congestion control is reno: the host allows no namespace {value} (on the \
                     host: sysctl net.ipv4.tcp_allowed_congestion_control); programs that name theirs have it"
                ));
            }
            Err(Sysctl::Refused(error)) => {
                return Err(format!("node {node}: sysctl {key} = {value:?}: this kernel refuses it: {error}"));
            }
        }
    }
    Ok(())
}

fn names_interface(key: &str, placed: &PlacedNode) -> bool {
    key.split('/').any(|part| placed.ports.iter().any(|port| port.interface.name == part))
}

/// All veth pairs, one batch per node that has a wire's first end.
fn make_wires(layout: &Layout, made: &[Made]) -> Result<(), String> {
    let mut batches: BTreeMap<usize, Batch> = BTreeMap::new();
    for [a, b] in &layout.wires {
        let port = |end: &(usize, usize)| &layout.nodes[end.0].ports[end.1];
        let rtnl_port = |end| {
            let port = port(end);
            let (name, mtu) = (&port.interface.name, port.interface.mtu);
            rtnl::Port { name, index: port.index, mac: port.mac, mtu }
        };
        let what = format!(
            "wire {}:{} to {}:{}",
            layout.nodes[a.0].node.name,
            port(a).interface.name,
            layout.nodes[b.0].node.name,
            port(b).interface.name
        );
        let batch = batches.entry(a.0).or_default();
        rtnl::veth(batch, &rtnl_port(a), &rtnl_port(b), made[b.0].namespace.as_raw_fd(), what);
    }
    let batches: Vec<_> = batches.into_iter().map(|(node, batch)| (node, Mutex::new(batch))).collect();
    parallel(batches.len(), |number| {
        fault::step();
        let (node, batch) = &batches[number];
        made[*node].socket.run(std::mem::take(&mut batch.lock().expect("no thread panicked")))
    })?;
    Ok(())
}

/// Everything inside a node whose interfaces exist.
fn fill(
    placed: &PlacedNode,
    made: &Made,
    plan: &Plan,
    offloads: &OnceLock<Result<Offloads, String>>,
    notes: &Notes,
) -> Result<(), String> {
    let name = &placed.node.name;
    fault::step();
    let checksums = plan.links.iter().any(|link| link.backend == plan::Backend::User);
    for port in &placed.ports {
        let interface = &port.interface.name;
        let socket = made.socket.as_raw_fd();
        let known = offloads.get_or_init(|| Offloads::of(socket, interface, checksums));
        let off = known.as_ref().map_err(Clone::clone).and_then(|known| known.off(socket, interface));
        off.map_err(|error| format!("{name}:{interface}: {error}"))?;
    }
    let steered = placed.ports.iter().any(|port| port.interface.steer);
    let own_sysctls = placed.node.sysctls.keys().any(|key| names_interface(key, placed));
    if steered || own_sysctls {
        namespace::enter(&made.namespace).map_err(|error| format!("node {name}: {error}"))?;
        set_sysctls(placed, notes, true)?;
    }
    if steered {
        fault::step();
        steer(placed, plan).unwrap_or_else(|error| {
            notes.warn(format!("received packets are not steered away from the spinners' CPUs (RPS): {error}"));
        });
    }
    if let Some(warning) = placed.link.and_then(|(link, _)| qdisc::warning(link)) {
        notes.warn(warning);
    }
    fault::step();
    made.socket.run(requests(placed)?)
}

fn steer(placed: &PlacedNode, plan: &Plan) -> Result<(), String> {
    let sysfs = Sysfs::open().map_err(|error| format!("opening sysfs: {error}"))?;
    let mut steered = placed.ports.iter().filter(|port| port.interface.steer);
    steered.try_for_each(|port| sysfs.steer(&port.interface.name, &plan.host_cpus)).map_err(|error| error.to_string())
}

/// Queueing disciplines before the interfaces go up, as changing them later waits for packets; routes last.
fn requests(placed: &PlacedNode) -> Result<Batch, String> {
    let name = &placed.node.name;
    let mut batch = Batch::default();
    rtnl::up(&mut batch, 1, format!("{name}: loopback"));
    if let Some((link, [a, b])) = placed.link {
        let (a, b) = (&placed.ports[a], &placed.ports[b]);
        qdisc::link(&mut batch, link, a.index, b.index, a.interface.mtu);
    }
    for port in &placed.ports {
        let (interface, index) = (port.interface, port.index);
        let at = format!("{name}:{}", interface.name);
        let wrong = |error: String| format!("{at}: {error}");
        qdisc::egress(&mut batch, index, interface.mtu, &interface.egress, &at);
        rtnl::up(&mut batch, index, format!("{at}: bringing the interface up"));
        for text in &interface.addresses {
            let (address, length) = prefix(text).map_err(wrong)?;
            rtnl::address(&mut batch, index, address, length, format!("{at}: address {text}"));
        }
        for neighbour in &interface.neighbours {
            let (address, mac) = (ip(&neighbour.address).map_err(wrong)?, mac(&neighbour.mac).map_err(wrong)?);
            rtnl::neighbour(&mut batch, index, address, mac, format!("{at}: neighbour {}", neighbour.address));
        }
    }
    for route in &placed.node.routes {
        let wrong = |error: String| format!("{name}: route to {}: {error}", route.to);
        let port = placed.ports.iter().find(|port| port.interface.name == route.interface);
        let port = port.ok_or_else(|| wrong(format!("no interface {}", route.interface)))?;
        let (to, via) = (prefix(&route.to).map_err(wrong)?, ip(&route.via).map_err(wrong)?);
        rtnl::route(&mut batch, port.index, to, via, format!("{name}: route to {} via {}", route.to, route.via));
    }
    Ok(batch)
}

/// Two descriptors a node: as many as we may have.
fn raise_file_limit() {
    use nix::sys::resource::{getrlimit, setrlimit, Resource};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
