//! From a bare container to a node: its interfaces as the plan has them, its names, its services, its links.
//!
//! In: the lab's directory, the plan, the node's name. Out: what runs now. The calling thread is in the node, and may
//! wait for other containers as long as they take; what it waits for, it says.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use ewan_system::netlink::{Batch, Socket};
use ewan_system::schedule;
use ewan_system::socket::interface_index;
use nix::unistd::Pid;

use super::{emulator, interfaces, program, tools, Child, Program};
use crate::ready;
use ewan_lab::fill::{self, Notes};
use ewan_lab::kernel_files::sysctl;
use ewan_lab::{hosts, services, vlans};
use ewan_plan::layout::{Layout, PlacedNode, PlacedPort};
use ewan_plan::Plan;

const HOSTS: &str = "/etc/hosts";
/// How long the node's commands wait while no other node gets ready.
const COMMANDS_WAIT: Duration = Duration::from_secs(60);

pub fn boot(lab: &Path, plan: &Plan, name: &str, program: &Program) -> Result<Vec<Child>, String> {
    let mut layout = Layout::of(plan)?;
    let number = layout.nodes.iter().position(|placed| placed.node.name == name);
    let placed = number.map(|number| &mut layout.nodes[number]).ok_or_else(|| hosts::unknown(plan, name))?;
    let link = plan.links.iter().find(|link| link.node == name);
    let spinner = link.and_then(|link| plan.spinners.iter().position(|spinner| spinner.links.contains(&link.name)));
    if let Some(spinner) = spinner {
        emulator::check_cpus(name, plan.spinners[spinner].cpu)?;
    }
    // A container of emulators may have no CPU but the spinner's; then there is no other to keep to.
    let _ = schedule::keep_to(&plan.host_cpus);
    let notes = Notes::default();
    fill::keep_quiet();
    fill::set_sysctls(placed, &notes, false)?;
    shape(placed, plan, &notes)?;
    add_names(lab, plan).unwrap_or_else(|error| notes.warn(format!("names of nodes do not resolve: {HOSTS}: {error}")));
    let own = services::directory(lab, name);
    tools::link(placed.node, &own, Path::new("/"))
        .unwrap_or_else(|error| notes.warn(format!("tools of services do not find them by themselves: {error}")));
    let mut children: Vec<_> = services::start(placed.node, &own)?
        .into_iter()
        .map(|daemon| Child {
            pid: Pid::from_raw(daemon.process.id() as i32),
            log: own.join(format!("{}.log", daemon.name)),
            name: format!("service {}", daemon.name),
            vital: false,
        })
        .collect();
    if let (Some(link), Some(spinner)) = (link, spinner) {
        children.extend(emulator::serve(lab, plan, spinner, link)?);
    }
    if let (Some(link), true) = (link, plan.containers.dashboards) {
        children.push(emulator::metrics(lab, link, &own)?);
    }
    children.extend(program.start(&own)?);
    let warnings = notes.take();
    report(name, placed, children.len(), &warnings);
    if !warnings.is_empty() {
        let lines: String = warnings.keys().map(|warning| format!("{warning}\n")).collect();
        std::fs::write(own.join("warnings"), lines).map_err(|error| format!("{}: {error}", own.display()))?;
    }
    if program.commands {
        std::fs::write(own.join("ready"), "").map_err(|error| format!("{}: {error}", own.display()))?;
        ready::wait_for_all(lab, plan, COMMANDS_WAIT)?;
        program::run_commands(placed.node, &own)?;
        std::fs::write(own.join(ready::COMMANDS_DONE), "").map_err(|error| format!("{}: {error}", own.display()))?;
    }
    Ok(children)
}

/// The one line that tells of success, after what the node does without.
fn report(name: &str, placed: &PlacedNode, programs: usize, warnings: &BTreeMap<String, u32>) {
    for warning in warnings.keys() {
        println!("{name}: {warning}");
    }
    let (interfaces, routes) = (placed.ports.len(), placed.node.routes.len());
    println!("{name}: ready: {interfaces} interfaces, {routes} routes, {programs} programs");
}

/// Waits for the interfaces, and gives them what `apply` gives those that it makes.
fn shape(placed: &mut PlacedNode, plan: &Plan, notes: &Notes) -> Result<(), String> {
    let socket = Socket::open()?;
    let found = interfaces::wait(&socket, placed, plan.containers.management)?;
    for port in &mut placed.ports {
        port.index = found.get(&port.interface.name).map_or(0, |found| found.index);
    }
    inherit(placed);
    let mut batch = Batch::replacing();
    interfaces::correct(&mut batch, placed, &found);
    socket.run(batch)?;
    let find = |port: &PlacedPort| Ok(interface_index(&port.interface.name)?);
    vlans::make(&socket, placed, true, &find)?;
    for port in placed.ports.iter_mut().filter(|port| port.interface.parent().is_some()) {
        port.index = find(port)?;
    }
    fill::settle(placed, &socket, plan, &OnceLock::new(), notes)?;
    let mut batch = Batch::replacing();
    interfaces::forget_own_addresses(&mut batch, &socket, placed)?;
    fill::requests(&mut batch, placed)?;
    Ok(socket.run(batch)?)
}

/// An interface that was moved in may be older than the settings for new ones.
fn inherit(placed: &PlacedNode) {
    let quiet = ["net/ipv6/conf/default/addr_gen_mode", "net/ipv6/conf/default/mldv2_unsolicited_report_interval"];
    let named = placed.node.sysctls.keys().map(String::as_str).filter(|key| key.contains("/conf/default/"));
    for key in quiet.into_iter().chain(named) {
        let Ok(value) = std::fs::read_to_string(Path::new("/proc/sys").join(key)) else { continue };
        for port in &placed.ports {
            let own = key.replace("/conf/default/", &format!("/conf/{}/", port.interface.name));
            let _ = sysctl(&own, value.trim());
        }
    }
}

/// The lab's names before those that the engine gave, once: a node's own name is its address in the lab, not that in the
/// engine's network. The file is mounted, so it is written in place.
///
/// The lab's own file of names has those of other machines too, where it stretches over several.
fn add_names(lab: &Path, plan: &Plan) -> std::io::Result<()> {
    let there = std::fs::read_to_string(HOSTS).unwrap_or_default();
    let names = std::fs::read_to_string(lab.join("hosts")).unwrap_or_else(|_| hosts::file(plan));
    let of_nodes = names.lines().filter(|line| !line.ends_with("localhost") && !line.ends_with("loopback"));
    let missing = of_nodes.filter(|line| !there.lines().any(|known| known == *line));
    let missing: String = missing.map(|line| format!("{line}\n")).collect();
    std::fs::write(HOSTS, missing + &there)
}
