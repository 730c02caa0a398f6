//! The first process of the virtual kernel: makes a lab with the very code of the live clock, runs a program in it,
//! writes what came of it, powers off.
//!
//! In: EWAN_RUN in the environment (set on the kernel's command line), the host's directory of this run, mounted at
//! /run/lab: plan.json and program.json. Out, there: what the crate batch writes, links.json (the links' last counters) and,
//! last of all, ended.json. The root is read-only; everything else that is written lives in memory.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ewan_system::clock::monotonic_ns;
use ewan_system::signals::{Signals, END_OR_CHILD};
use nix::errno::Errno;
use nix::kmod::{finit_module, ModuleInitFlags};
use nix::mount::{mount, MsFlags};
use nix::sys::reboot::{reboot, set_cad_enabled, RebootMode};
use serde_json::{json, Value};

use ewan_batch::{KernelModule, Program, Surroundings};
use ewan_lab::{apply, links, services};

const RUN: &str = "/run/lab";
/// Where the process outside has put the modules that the program names.
const MODULES: &str = "/modules";
/// Beside them, the layouts of the private states of their congestion controls, by the names of these.
const STATES: &str = "states.json";
/// The host's file tree, for commands.
const HOST: &str = "/host";
const FIRST_SECOND: Duration = Duration::from_secs(1);
/// An interface whose other end came up after it sends only when the kernel has heard of that: a hundred in a second
/// (net/core/link_watch.c); half of that is counted on.
const WIRES_A_SECOND: usize = 50;

/// Powers off at its end; returns only where it is not the first process.
pub fn run() -> Result<(), String> {
    if std::process::id() != 1 {
        return Err("init is for the virtual kernel to start: ewan lab dumbbell --rtt 100ms --runtime virtual".into());
    }
    let (mut warnings, mut congestion) = (Vec::new(), None);
    let result = serve(&mut warnings, &mut congestion);
    let (how, error) = match result {
        Ok(false) => ("completed", None),
        Ok(true) => ("interrupted", None),
        Err(error) => ("failed", Some(error)),
    };
    if let Some(error) = &error {
        eprintln!("ewan-node: {error}");
    }
    let mut ended = json!({
        "format": "ewan-ended/1", "how": how, "error": error, "warnings": warnings,
        "virtual_ns": monotonic_ns(), "kernel": kernel(),
    });
    if let Some(Congestion { all, added }) = congestion {
        ended["congestion"] = all.into();
        ended["congestion_added"] = added.into();
    }
    if let Err(error) = write("ended.json", &ended) {
        eprintln!("ewan-node: {error}");
    }
    nix::unistd::sync();
    // The last call of this system.
    let Err(error) = reboot(RebootMode::RB_POWER_OFF);
    Err(format!("powering off failed: {error}"))
}

/// The names of the kernel's congestion controls, and those among them that it has of the program's modules.
struct Congestion {
    all: Vec<String>,
    added: Vec<String>,
}

/// True when a signal ended it early. `congestion` gets the kernel's congestion controls where the program has `modules`.
fn serve(warnings: &mut Vec<String>, congestion: &mut Option<Congestion>) -> Result<bool, String> {
    // What ctrl-alt-del does, here: it becomes SIGINT to this process.
    let _ = set_cad_enabled(false);
    let signals = Signals::block(&END_OR_CHILD)?;
    mount_system()?;
    let mut program = Program::read(&Path::new(RUN).join("program.json"))?;
    if let Some(modules) = &program.modules {
        let before = available();
        modules.iter().try_for_each(load)?;
        let all: Vec<String> = available().split_whitespace().map(str::to_owned).collect();
        modules.iter().try_for_each(|module| registered(module, &all))?;
        let added = all.iter().filter(|name| !before.split_whitespace().any(|each| each == *name)).cloned().collect();
        *congestion = Some(Congestion { all, added });
        program.see_states(states()?);
    }
    widen();
    nix::sys::prctl::set_timerslack(1).map_err(|error| format!("timer slack: {error}"))?;
    let plan_file = Path::new(RUN).join("plan.json");
    let plan = ewan_plan::read(&plan_file)?;
    if !plan.spinners.is_empty() {
        return Err("the plan has links that spin, which are of the live clock: compile it for the virtual one".into());
    }
    let state = Path::new("/run/ewan").join(&plan.lab);
    apply::run(&plan_file, &state, false)?;
    warnings.extend(warned(&state));
    // Programs take a clock at zero for one that was never read (ping does).
    let wires = plan.nodes.iter().map(|node| node.interfaces.len()).sum::<usize>() / 2;
    std::thread::sleep(FIRST_SECOND * (1 + wires / WIRES_A_SECOND) as u32);
    let serves = services::any(&plan);
    let tree = if program.runs_programs() || serves { Some(mount_host()?) } else { None };
    let directory = PathBuf::from(std::env::var("EWAN_DIRECTORY").unwrap_or_else(|_| "/".into()));
    if tree.is_some() {
        let folder = std::env::var_os("EWAN_FOLDER").map(PathBuf::from);
        let more = folder.into_iter().chain(program.needs().map(PathBuf::from));
        std::iter::once(directory.clone()).chain(more).try_for_each(|path| show(&path))?;
    }
    if serves {
        services::start_all(&plan, &state, tree)?;
    }
    let around = Surroundings { state: &state, tree, out: Path::new(RUN), directory, outlives: false };
    let result = program.run(&plan, &signals, &around, None);
    // What was measured is kept, also of a run that failed.
    let kept = links::record(&plan, &state, Path::new(RUN)).map(|left_out| warnings.extend(left_out));
    result.and_then(|interrupted| kept.map(|()| interrupted))
}

fn attach(what: &str, kind: &str, at: &str, flags: MsFlags, options: Option<&str>) -> Result<(), String> {
    std::fs::create_dir_all(at).map_err(|error| format!("{at}: {error}"))?;
    mount(Some(what), at, Some(kind), flags, options).map_err(|error| format!("mounting {what} on {at}: {error}"))
}

fn mount_system() -> Result<(), String> {
    let plain = MsFlags::empty();
    for (kind, at) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        attach(kind, kind, at, plain, None)?;
    }
    for at in ["/dev/shm", "/dev/pts", "/run", "/tmp", "/etc"] {
        attach("tmpfs", if at == "/dev/pts" { "devpts" } else { "tmpfs" }, at, plain, None)?;
    }
    let run = std::env::var("EWAN_RUN").map_err(|_| "EWAN_RUN is not on the kernel's command line".to_owned())?;
    attach("run", "hostfs", RUN, plain, Some(&run)).map_err(|error| format!("{error} ({run} on the host)"))
}

/// The host's tree, read-only, with this system's own directories in it.
fn mount_host() -> Result<&'static Path, String> {
    attach("host", "hostfs", HOST, MsFlags::MS_RDONLY, Some("/"))?;
    for at in ["/proc", "/dev", "/tmp", "/run"] {
        let onto = format!("{HOST}{at}");
        mount(Some(at), onto.as_str(), None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
            .map_err(|error| format!("mounting {at} on the host's: {error}"))?;
    }
    Ok(Path::new(HOST))
}

/// Makes what commands read visible where this system's own directories hide it: a directory, or that of a file, in which
/// the wall shows nothing else.
fn show(path: &Path) -> Result<(), String> {
    let hidden = |text: &str| ["/tmp/", "/run/", "/dev/"].iter().any(|above| text.starts_with(above));
    let Some(text) = path.to_str().filter(|text| hidden(text)) else { return Ok(()) };
    let onto = format!("{HOST}{text}");
    if attach("directory", "hostfs", &onto, MsFlags::MS_RDONLY, Some(text)).is_ok() && Path::new(&onto).is_dir() {
        return Ok(());
    }
    let _ = nix::mount::umount(onto.as_str());
    match path.parent().and_then(Path::to_str) {
        Some(parent) if !hidden(parent) => show_file(path, parent, &onto),
        parent => parent.map_or(Ok(()), |parent| show(Path::new(parent))),
    }
}

/// Makes one file visible that stands beside what this system's own directories hide, as in `/tmp`.
fn show_file(path: &Path, parent: &str, onto: &str) -> Result<(), String> {
    const BESIDE: &str = "/run/beside";
    attach("directory", "hostfs", BESIDE, MsFlags::MS_RDONLY, Some(parent))?;
    let source = Path::new(BESIDE).join(path.file_name().unwrap_or_default());
    let attempt = || -> std::io::Result<()> {
        std::fs::remove_dir(onto)?;
        std::fs::File::create(onto)?;
        Ok(mount(Some(&source), onto, None::<&str>, MsFlags::MS_BIND, None::<&str>)?)
    };
    let shown = attempt().map_err(|error| format!("{}: {error}", path.display()));
    nix::mount::umount2(BESIDE, nix::mount::MntFlags::MNT_DETACH).map_err(|error| format!("{BESIDE}: {error}"))?;
    std::fs::remove_dir(BESIDE).map_err(|error| format!("{BESIDE}: {error}"))?;
    shown
}

/// The reasons for which Linux refuses a module as invalid.
const INVALID: &str = "the kernel refuses it: a congestion control needs ssthresh, undo_cwnd, and cong_avoid or \
                       cong_control; a parameter needs a value of its type; kfuncs are listed between \
                       BTF_KFUNCS_START and BTF_KFUNCS_END since Linux 6.9";

/// Loads a module of the guest's root.
fn load(module: &KernelModule) -> Result<(), String> {
    let path = Path::new(MODULES).join(format!("{}.ko", module.name()));
    let refused = |why: String| format!("module {}: {why}", module.name());
    let file = std::fs::File::open(&path).map_err(|error| refused(error.to_string()))?;
    let parameters = CString::new(module.parameters.as_str()).map_err(|error| refused(error.to_string()))?;
    finit_module(file, &parameters, ModuleInitFlags::empty()).map_err(|error| {
        refused(match error {
            Errno::EEXIST => "the virtual kernel has a congestion control of this name: write another name".into(),
            Errno::ENOENT => {
                format!("it needs what this kernel lacks, or has no such parameter: {}", module.parameters)
            }
            Errno::EINVAL => INVALID.into(),
            other => format!("the kernel does not load it: {}", other.desc()),
        })
    })
}

/// An error where a module has not registered the congestion controls that are asked of it.
fn registered(module: &KernelModule, names: &[String]) -> Result<(), String> {
    match module.controls.iter().find(|name| !names.contains(name)) {
        None => Ok(()),
        Some(name) => Err(format!(
            "module {}: it registers no congestion control {name}: the kernel has {}",
            module.name(),
            names.join(", ")
        )),
    }
}

fn states() -> Result<serde_json::Value, String> {
    let path = Path::new(MODULES).join(STATES);
    let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The names of the kernel's congestion controls, in a line.
fn available() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default()
}

/// Limits that a kernel of one lab need not have: what the plan says decides, not shares of a small memory.
fn widen() {
    let pages = nix::sys::sysinfo::sysinfo().map_or(1 << 18, |info| info.ram_total() >> 12);
    let memory = format!("{} {} {}", pages / 2, pages / 4 * 3, pages);
    let congestion = available();
    for (key, value) in [
        // A node, which is no first network namespace, may make only these its own (net/ipv4/tcp_cong.c), and a program
        // without CAP_NET_ADMIN may take only these.
        ("net/ipv4/tcp_allowed_congestion_control", congestion.trim()),
        ("net/ipv4/tcp_mem", memory.as_str()),
        ("net/ipv4/udp_mem", memory.as_str()),
        ("net/core/rmem_max", "2147483647"),
        ("net/core/wmem_max", "2147483647"),
        ("net/core/netdev_max_backlog", "1000000"),
        // No sit0 and the like in each namespace: a node has the interfaces that its plan gives it.
        ("net/core/fb_tunnels_only_for_init_net", "2"),
        ("fs/file-max", "1000000"),
        ("user/max_net_namespaces", "1000000"),
    ] {
        let path = format!("/proc/sys/{key}");
        if let Err(error) = std::fs::write(&path, value) {
            eprintln!("{path}: {error}");
        }
    }
}

/// What `apply` did without, and how often.
fn warned(state: &Path) -> Vec<String> {
    let applied = std::fs::read(state.join("applied.json")).unwrap_or_default();
    let applied: Value = serde_json::from_slice(&applied).unwrap_or_default();
    applied["warnings"].as_object().map_or(Vec::new(), |warnings| warnings.keys().cloned().collect())
}

fn write(name: &str, value: &Value) -> Result<(), String> {
    let path = Path::new(RUN).join(name);
    let text = format!("{value:#}\n");
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn kernel() -> String {
    nix::sys::utsname::uname().map_or(String::new(), |name| {
        format!("{} {}", name.release().to_string_lossy(), name.version().to_string_lossy())
    })
}
