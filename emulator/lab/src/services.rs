//! Services: programs that belong to a node, routing daemons and switches, started in it one after the other.
//!
//! In: a plan, the lab's state directory. Out: daemons that run on, each in a session of its own; in nodes/NODE of the
//! state directory their files, what they write (NAME.log), and when the first of them was started (`started`,
//! CLOCK_MONOTONIC in ns). The same code on the host, in the virtual kernel and in a container.

mod error;

use std::fs::File;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ewan_system::clock::monotonic_ns;
use ewan_system::{fault, process, Context};

use crate::exec::{self, Place};
use crate::parallel;
pub use error::{Error, Fault, Why};
use ewan_plan::{Node, Plan, Service, ServiceKind};

/// Where services' programs are looked for. Routing daemons are in no user's PATH.
const SEARCH: [&str; 8] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/lib/frr", "/usr/libexec/frr"];
/// In a command line: this program, wherever it lies.
pub const OURSELVES: &str = "ewan-node";
/// Where Open vSwitch's programs put what no option names.
const OVS_DIRECTORIES: [&str; 4] = ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"];
/// A Unix socket's path has at most 107 bytes; its own name within the directory takes the rest.
const LONGEST_RUN: usize = 107 - 1 - 23;
/// Nodes whose services start at the same time: mostly they wait.
const THREADS: usize = 8;
const STARTS: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(2);

/// A daemon that was started.
pub struct Daemon {
    pub name: String,
    pub process: Child,
}

/// A node's own directory.
pub fn directory(state: &Path, node: &str) -> PathBuf {
    state.join("nodes").join(node)
}

pub fn any(plan: &Plan) -> bool {
    plan.nodes.iter().any(|node| !node.services.is_empty())
}

/// Before anything is made: are all programs there, and are the sockets' paths short enough?
pub fn check_host(plan: &Plan, state: &Path) -> Result<(), Error> {
    for node in plan.nodes.iter().filter(|node| !node.services.is_empty()) {
        check_length(node, &directory(state, &node.name))?;
        for service in &node.services {
            find(node, service)?;
        }
    }
    Ok(())
}

fn check_length(node: &Node, run: &Path) -> Result<(), Error> {
    let over = run.as_os_str().len().saturating_sub(LONGEST_RUN);
    match over {
        0 => Ok(()),
        _ => Err(Error::of(&node.name, Why::TooLong { run: run.to_owned(), over })),
    }
}

/// Starts the services of all nodes, many nodes at once, each node's in their order.
///
/// `state` is absolute; `tree`: a mounted file tree that becomes the services' root; none: the root as it is.
pub fn start_all(plan: &Plan, state: &Path, tree: Option<&Path>) -> Result<(), Error> {
    let nodes: Vec<_> = plan.nodes.iter().filter(|node| !node.services.is_empty()).collect();
    parallel::run(THREADS, nodes.len(), |number| {
        let node = nodes[number];
        let run = directory(state, &node.name);
        let place = Place {
            namespace: exec::namespace_of(plan, &node.name)?,
            hosts: state.join("hosts"),
            own: run.clone(),
            tree: tree.map(Path::to_owned),
        };
        // A thread of its own for each: it keeps the mounts, and the root, that it enters.
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                place.enter().map_err(|error| Error::of(&node.name, error))?;
                keep_temporary(&run);
                start(node, &run).map(drop)
            });
            inside.join().expect("no thread panicked")
        })
    })
    .map(drop)
}

/// Has what programs leave in /var/tmp lie in the node's own directory: FRRouting's daemons keep what they were about to
/// log there, wherever else they are told to keep things, and one that is killed leaves it. Without the mount it is there.
fn keep_temporary(run: &Path) {
    let nothing: Option<&str> = None;
    if std::fs::create_dir_all(run).is_ok() {
        let _ = nix::mount::mount(Some(run), "/var/tmp", nothing, nix::mount::MsFlags::MS_BIND, nothing);
    }
}

/// Starts a node's services, from a thread that is in the node; `run` is the node's own directory.
///
/// What was started before a failure runs on: whoever removes the lab, or ends the container, ends it.
pub fn start(node: &Node, run: &Path) -> Result<Vec<Daemon>, Error> {
    if node.services.is_empty() {
        return Ok(Vec::new());
    }
    check_length(node, run)?;
    let fail = |why: Why| Error::of(&node.name, why);
    let text = run.to_str().ok_or_else(|| fail(Why::NoText(run.to_owned())))?;
    let here = |words: &str| words.replace("{run}", text);
    std::fs::create_dir_all(run).attempting(|| text).map_err(|error| fail(error.into()))?;
    for (name, content) in node.services.iter().flat_map(|service| &service.files) {
        write(&run.join(name), &here(content)).map_err(|error| fail(error.into()))?;
    }
    write(&run.join("started"), &format!("{}\n", monotonic_ns())).map_err(|error| fail(error.into()))?;
    let mut daemons = Vec::new();
    for service in &node.services {
        let say = |fault: Fault| Error::of_service(&node.name, &service.name, fault);
        let program = find(node, service)?;
        // Of a start before this one.
        let ready = service.ready.as_ref().map(|name| run.join(name));
        ready.iter().for_each(|ready| drop(std::fs::remove_file(ready)));
        let log = run.join(format!("{}.log", service.name));
        let mut process = spawn(&program, service, run, &log, here).map_err(|error| say(error.into()))?;
        match service.kind {
            ServiceKind::Setup => finish(&mut process, &log).map_err(say)?,
            ServiceKind::Daemon => {
                ready.map_or(Ok(()), |ready| wait_for(&ready, &mut process, &log)).map_err(say)?;
                daemons.push(Daemon { name: service.name.clone(), process });
            }
        }
    }
    for Daemon { name, process } in &mut daemons {
        if let Some(status) = process.try_wait().ok().flatten() {
            let said = last_words(&run.join(format!("{name}.log")), &status.to_string());
            return Err(Error::of_service(&node.name, name, Fault::Ended { said }));
        }
    }
    Ok(daemons)
}

fn write(path: &Path, text: &str) -> ewan_system::Result<()> {
    fault::step();
    std::fs::write(path, text).attempting(|| path.display().to_string())
}

/// The program's file; else one line with the package that it comes with.
fn find(node: &Node, service: &Service) -> Result<PathBuf, Error> {
    let name = &service.argv[0];
    let executable = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let found = if name == OURSELVES {
        std::env::current_exe().ok()
    } else if name.contains('/') {
        Some(PathBuf::from(name)).filter(|path| executable(path))
    } else {
        SEARCH.iter().map(|directory| Path::new(directory).join(name)).find(|path| executable(path))
    };
    found.ok_or_else(|| {
        let remedy = match package(name) {
            Some(package) => format!("install the package {package} (apt-get install {package})"),
            None => format!("looked for in {}", SEARCH.join(", ")),
        };
        Error::of_service(&node.name, &service.name, Fault::NoProgram { program: name.clone(), remedy })
    })
}

fn package(program: &str) -> Option<&'static str> {
    match program.rsplit('/').next()? {
        "zebra" | "staticd" | "ospfd" | "ospf6d" | "bgpd" | "isisd" | "bfdd" | "mgmtd" | "watchfrr" | "vtysh" => {
            Some("frr")
        }
        name if name.starts_with("ovs-") || name.starts_with("ovsdb-") => Some("openvswitch-switch"),
        "ip" | "tc" | "bridge" => Some("iproute2"),
        "dnsmasq" => Some("dnsmasq-base"),
        _ => None,
    }
}

fn spawn(
    program: &Path,
    service: &Service,
    run: &Path,
    log: &Path,
    here: impl Fn(&str) -> String,
) -> ewan_system::Result<Child> {
    fault::step();
    let say = || log.display().to_string();
    let output = File::create(log).attempting(say)?;
    let errors = output.try_clone().attempting(say)?;
    let mut command = Command::new(program);
    command
        .args(service.argv[1..].iter().map(|word| here(word)))
        .env_clear()
        .env("PATH", SEARCH.join(":"))
        .env("HOME", run)
        .env("LANG", "C.UTF-8")
        .env("TERM", "dumb")
        .envs(OVS_DIRECTORIES.map(|name| (name, run)))
        .current_dir(run)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    // Nothing stays open that is ours, or our caller's: a lock that a daemon held on to would never be free again.
    let become_daemon = || {
        process::detach();
        process::close_all();
        Ok(())
    };
    // SAFETY: system calls alone, which a child of a process with threads may make.
    unsafe { command.pre_exec(become_daemon) };
    command.spawn().attempting(|| program.display().to_string())
}

fn finish(process: &mut Child, log: &Path) -> Result<(), Fault> {
    let until = Instant::now() + STARTS;
    let failed = |otherwise: &str| Fault::Failed { said: last_words(log, otherwise) };
    loop {
        match process.try_wait().attempting(|| "waiting for it")? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(failed(&status.to_string())),
            None if Instant::now() > until => {
                let _ = process.kill();
                return Err(failed(&format!("it has not come to its end in {} s", STARTS.as_secs())));
            }
            None => std::thread::sleep(POLL),
        }
    }
}

/// Whether the file is there; a socket is there before its program listens.
fn is_ready(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Err(_) => false,
        Ok(file) if file.file_type().is_socket() => {
            let refused = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
            !UnixStream::connect(path).err().is_some_and(refused)
        }
        Ok(_) => true,
    }
}

fn wait_for(ready: &Path, process: &mut Child, log: &Path) -> Result<(), Fault> {
    let until = Instant::now() + STARTS;
    while !is_ready(ready) {
        if let Some(status) = process.try_wait().attempting(|| "waiting for it")? {
            return Err(Fault::Ended { said: last_words(log, &status.to_string()) });
        }
        if Instant::now() > until {
            let missing = format!("{} is not there after {} s", ready.display(), STARTS.as_secs());
            return Err(Fault::NotReady { said: last_words(log, &missing) });
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// The last line that a program wrote, as why it ended; `otherwise` where it wrote nothing.
pub fn last_words(log: &Path, otherwise: &str) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let said = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    said.map_or_else(|| otherwise.to_owned(), str::to_owned)
}

#[cfg(test)]
#[path = "services_tests.rs"]
mod tests;
