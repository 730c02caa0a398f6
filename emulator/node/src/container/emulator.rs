//! A container that is an emulated link: the spinner of its CPU, or a namespace for the spinner of another container.
//!
//! In: the lab's directory, the plan, a spinner's number, the node's link. Out: the programs that run now. The container
//! of a spinner's first link runs it; those of its other links hand their namespaces over. Its log and its control
//! socket are in the lab's directory, spinner-N.log and spinner-N.sock, as a lab of namespaces has them.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ewan_datapath::client;
use ewan_system::{namespace, process};
use nix::ifaddrs::getifaddrs;
use nix::sched::{sched_getaffinity, CpuSet};
use nix::unistd::Pid;

use super::handover::{self, Handover};
use super::{share, Child};
use ewan_lab::services;
use ewan_plan::{Link, Plan};

/// This binary, which is also the spinner and the server of metrics.
const SELF: &str = "/proc/self/exe";
/// The container's interface in the management network, over which Prometheus asks for metrics.
const MANAGEMENT: &str = "eth0";
const METRICS_PORT: u16 = 9324;
const STARTS: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

/// Is the spinner's CPU one of this container's?
pub fn check_cpus(node: &str, cpu: u32) -> Result<(), String> {
    let set = sched_getaffinity(Pid::from_raw(0)).map_err(|error| format!("{node}: CPUs: {error}"))?;
    if set.is_set(cpu as usize).unwrap_or(false) {
        return Ok(());
    }
    let usable: Vec<_> = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect();
    let usable: Vec<_> = usable.iter().map(ToString::to_string).collect();
    Err(format!(
        "{node}: its link spins on CPU {cpu}, and this container may use {}: \
         give it that CPU (cpu-set), or compile the description on this machine",
        usable.join(", ")
    ))
}

/// Serves the link, in this container or in another one: back when it is served. Gives the spinner, if it is here.
pub fn serve(lab: &Path, plan: &Plan, number: usize, link: &Link) -> Result<Option<Child>, String> {
    let spinner = &plan.spinners[number];
    let socket = lab.join(format!("spinner-{number}.netns"));
    let node = &link.node;
    let first = spinner.links.first().map_or("", String::as_str);
    if link.name != first {
        handover::give(&socket, &link.name, || {
            println!("{node}: waiting for the container of link {first}, whose spinner serves this link");
        })?;
        return Ok(None);
    }
    let others: Vec<_> = spinner.links.iter().skip(1).map(String::as_str).collect();
    let given = handover::collect(&socket, &others, |missing| {
        println!("{node}: waiting for the containers of links {}", missing.join(", "));
    })?;
    let child = spin(lab, number, link, &given).map_err(|error| format!("{node}: spinner {number}: {error}"))?;
    given.into_values().for_each(Handover::tell);
    Ok(Some(child))
}

fn spin(lab: &Path, number: usize, link: &Link, given: &BTreeMap<String, Handover>) -> Result<Child, String> {
    let own = OwnedFd::from(namespace::own()?);
    let others = given.iter().map(|(name, gift)| (name.as_str(), &gift.namespace));
    let namespaces: Vec<_> = std::iter::once((link.name.as_str(), &own)).chain(others).collect();
    let (log, answers) = (lab.join(format!("spinner-{number}.log")), client::socket(lab, number));
    let _ = std::fs::remove_file(&answers);
    let mut command = Command::new(SELF);
    command.arg("link").arg("--state").arg(lab).args(["--spinner", &number.to_string(), "--id", "container"]);
    for (name, namespace) in &namespaces {
        command.arg("--netns").arg(format!("{name}=/proc/self/fd/{}", namespace.as_raw_fd()));
    }
    let kept = namespaces.iter().map(|(_, namespace)| namespace.as_raw_fd()).collect();
    let mut process = start(&mut command, &log, kept)?;
    share::raise(process.id());
    let until = Instant::now() + STARTS;
    while UnixStream::connect(&answers).is_err() {
        let ended = process.try_wait().map_err(|error| error.to_string())?;
        if let Some(status) = ended {
            return Err(services::last_words(&log, &status.to_string()));
        }
        if Instant::now() > until {
            let late = format!("it does not answer after {} s", STARTS.as_secs());
            return Err(services::last_words(&log, &late));
        }
        std::thread::sleep(POLL);
    }
    Ok(Child { name: format!("spinner {number}"), pid: Pid::from_raw(process.id() as i32), log, vital: true })
}

/// Serves the link's metrics over HTTP.
pub fn metrics(lab: &Path, link: &Link, own: &Path) -> Result<Child, String> {
    let log = own.join("metrics.log");
    let mut command = Command::new(SELF);
    let addresses = getifaddrs().map_err(|error| format!("{}: metrics: {error}", link.node))?.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
        Some((interface.interface_name, v4.or(address.as_sockaddr_in6().map(|v6| v6.ip().into()))?))
    });
    let listen = listen_at(addresses).to_string();
    command.arg("metrics").arg("--state").arg(lab).args(["--listen", &listen, "--link", &link.name]);
    let process = start(&mut command, &log, Vec::new()).map_err(|error| format!("{}: metrics: {error}", link.node))?;
    Ok(Child { name: "metrics".into(), pid: Pid::from_raw(process.id() as i32), log, vital: false })
}

/// The management network's address, an IPv4 one before others; without that network nobody else asks.
fn listen_at(addresses: impl Iterator<Item = (String, IpAddr)>) -> SocketAddr {
    let link_local = |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let found = addresses.filter(|(name, address)| name == MANAGEMENT && !link_local(address));
    let first = found.map(|(_, address)| address).min_by_key(IpAddr::is_ipv6);
    SocketAddr::new(first.unwrap_or(Ipv4Addr::LOCALHOST.into()), METRICS_PORT)
}

/// In a session of its own, where its priority counts against all others; `kept` stays open in it.
fn start(command: &mut Command, log: &Path, kept: Vec<RawFd>) -> Result<std::process::Child, String> {
    let say = |error: std::io::Error| format!("{}: {error}", log.display());
    let output = File::create(log).map_err(say)?;
    command.stdin(Stdio::null()).stdout(output.try_clone().map_err(say)?).stderr(output);
    let detach = move || {
        process::detach();
        // SAFETY: the parent holds these open until the child is the program.
        kept.iter().try_for_each(|kept| process::keep_open(unsafe { BorrowedFd::borrow_raw(*kept) }))
    };
    // SAFETY: system calls alone, which a child of a process with threads may make.
    unsafe { command.pre_exec(detach) };
    command.spawn().map_err(|error| format!("{SELF}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_told_in_the_management_network_alone() {
        let at = |addresses: &[(&str, &str)]| {
            let given = addresses.iter().map(|(name, address)| ((*name).into(), address.parse().expect("an address")));
            listen_at(given).to_string()
        };
        let lab = ("eth1", "10.64.0.1");
        let (lo, v4, v6) = (("lo", "127.0.0.1"), ("eth0", "172.20.20.5"), ("eth0", "3fff:172:20:20::5"));
        assert_eq!(at(&[lo, lab, ("eth0", "fe80::1"), v6, v4]), "172.20.20.5:9324");
        assert_eq!(at(&[lo, lab, v6]), "[3fff:172:20:20::5]:9324");
        assert_eq!(at(&[lo, lab]), "127.0.0.1:9324");
    }
}
