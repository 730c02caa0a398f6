//! The wall around the virtual kernel: what it becomes, and all that runs inside it, reads what it is shown, writes to its
//! run's directory and reaches nobody.
//!
//! In: paths that are shown, paths that may be written to, limits, a command. Out: this process becomes the command, or
//! waits for it. The wall stands outside the kernel's process, whose code may be anybody's one day:
//!
//! - `tree`: namespaces of its own (mounts, processes, network, System V IPC), with a file tree of what is shown;
//! - `landlock`: the same paths and rights once more, as the kernel's rules, which need no right to be set;
//! - `seccomp`: no sockets, no mounts, no look at other processes, no links;
//! - `limits`: processes, memory, capabilities.
//!
//! Namespaces need root, or user namespaces. Where they are not to be had Landlock and seccomp are the wall, and where
//! Landlock is not to be had namespaces and seccomp are. With neither, nothing is started.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};

use ewan_system::process::close_all;
use ewan_system::signals::Signal;
use ewan_system::wait;

use nix::fcntl::{openat2, OFlag, OpenHow, ResolveFlag, AT_FDCWD};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::stat::fstat;
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::{getegid, geteuid, Gid, Pid, Uid};
use serde_json::json;

mod landlock;
mod limits;
mod seccomp;
mod tree;

/// Where `true` is, with what it needs.
const PROGRAMS: [&str; 4] = ["/usr", "/lib", "/lib64", "/bin"];

/// What stands inside; paths are absolute.
#[derive(clap::Args)]
pub struct Request {
    /// A file or directory that is shown, also to execute; what is not there, or behind a symbolic link, is left out
    #[arg(long = "read", value_name = "PATH")]
    reads: Vec<PathBuf>,
    /// A path by which commands know what is shown: the symbolic links on it are there, and show nothing by themselves
    #[arg(long = "link", value_name = "PATH")]
    links: Vec<PathBuf>,
    /// A directory in which plain files and directories may be made and changed
    #[arg(long = "write", value_name = "DIR")]
    writes: Vec<PathBuf>,
    /// The same, where a build executes what it has made
    #[arg(long = "build", value_name = "DIR")]
    builds: Vec<PathBuf>,
    /// The directory of the kernel's memory file, empty
    #[arg(long = "memory-in", value_name = "DIR")]
    memory_in: Option<PathBuf>,
    /// The memory that the kernel is given, in bytes
    #[arg(long = "memory", default_value_t = 1 << 28)]
    memory: u64,
    /// The most processes at once
    #[arg(long, default_value_t = 1024)]
    processes: u64,
    /// Stand on one of the two walls alone, to test it
    #[arg(long, hide = true)]
    only: Option<WallKind>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum WallKind {
    Landlock,
    Namespaces,
}

/// Whom the wall is for: the one who called, whom files belong to.
#[derive(Clone, Copy)]
struct Caller {
    uid: Uid,
    gid: Gid,
}

impl Request {
    /// Whether a wall is asked for at all.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.builds.is_empty() && self.reads.is_empty()
    }

    /// `inside`: the file tree has nothing but what is shown.
    fn landlock(&self, inside: bool) -> Result<(), String> {
        if self.only == Some(WallKind::Namespaces) {
            return Ok(());
        }
        Ok(landlock::restrict(self, inside)?)
    }
}

/// Opens a place, to name it; None where nothing is there, or a symbolic link is on the way: somebody else may have put it
/// there since the path was looked at.
fn place(path: &Path) -> Option<OwnedFd> {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(AT_FDCWD, path, how).ok()
}

/// Starts `command` behind the wall and waits for it, or becomes it. Returns only the reason why that failed.
pub fn launch(request: &Request, command: &[OsString]) -> String {
    // Where memory runs out the guest is what ends, before anything else of its user.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    if request.only != Some(WallKind::Landlock) {
        match in_namespaces(request, command) {
            Ok(status) => std::process::exit(status),
            Err(error) if landlock::version() == 0 || request.only.is_some() => {
                return format!("there is no wall for the guest here: no Landlock, and no namespaces ({error})");
            }
            Err(_) => {}
        }
    }
    if landlock::version() == 0 {
        return "there is no wall for the guest here: no Landlock".into();
    }
    let _ = set_pdeathsig(Signal::SIGKILL);
    match restrict(request, false) {
        Ok(()) => become_it(command),
        Err(error) => error,
    }
}

/// The exit status of `command`, which ran in namespaces of its own; the error says that there are none.
fn in_namespaces(request: &Request, command: &[OsString]) -> Result<i32, String> {
    let caller = Caller { uid: geteuid(), gid: getegid() };
    let (mut stands, tell) = std::io::pipe().map_err(|error| error.to_string())?;
    let (alive, mut hold) = std::io::pipe().map_err(|error| error.to_string())?;
    let child = tree::fork(caller)?;
    if child == 0 {
        drop((stands, hold));
        std::process::exit(first_process(request, command, tell, &alive));
    }
    drop((tell, alive));
    let mut said = Vec::new();
    let _ = stands.read_to_end(&mut said);
    if said != [0] {
        let _ = waitpid(Pid::from_raw(child), None);
        return Err(String::from_utf8_lossy(&said).into_owned());
    }
    let _ = set_pdeathsig(Signal::SIGKILL);
    let status = exit_status(waitpid(Pid::from_raw(child), None));
    let _ = hold.flush();
    Ok(status)
}

/// The first process of the namespaces, with whose end all others in them end. Gives the command's exit status.
fn first_process(
    request: &Request,
    command: &[OsString],
    mut tell: std::io::PipeWriter,
    alive: &std::io::PipeReader,
) -> i32 {
    let made = tree::enter(request).and_then(|()| reopen_null()).and_then(|()| restrict(request, true));
    if let Err(error) = made {
        let _ = tell.write_all(error.as_bytes());
        return 2;
    }
    // Changed credentials have taken an earlier one away. Whoever started this may have ended meanwhile.
    let _ = set_pdeathsig(Signal::SIGKILL);
    if wait::readable(alive, 0).unwrap_or(true) {
        return 2;
    }
    let _ = nix::unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0));
    let _ = tell.write_all(&[0]);
    drop(tell);
    // SAFETY: this process has one thread, so the child may do as it likes.
    match unsafe { nix::unistd::fork() } {
        Ok(nix::unistd::ForkResult::Child) => {
            close_all();
            eprintln!("ewan-node: {}", become_it(command));
            2
        }
        Ok(nix::unistd::ForkResult::Parent { child }) => {
            keep_only_standard(alive.as_raw_fd());
            loop {
                // Whatever loses its parent in here becomes this process's child.
                match waitpid(None, None) {
                    Ok(status) if status.pid() == Some(child) => return exit_status(Ok(status)),
                    Err(nix::errno::Errno::ECHILD) => return 2,
                    _ => {}
                }
            }
        }
        Err(error) => {
            eprintln!("ewan-node: {}: {error}", command[0].to_string_lossy());
            2
        }
    }
}

/// Opens /dev/null anew where a standard descriptor leads to it: what was inherited lies on a mount of the machine, where
/// root can change its mode, owner and times; here that mount is read-only.
fn reopen_null() -> Result<(), String> {
    let say = |error: std::io::Error| format!("/dev/null: {error}");
    let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") else { return Ok(()) };
    let device = null.metadata().map_err(say)?.rdev();
    for standard in 0..=2 {
        // SAFETY: it is asked about, and closed by nobody.
        let is_null = fstat(unsafe { BorrowedFd::borrow_raw(standard) }).is_ok_and(|found| found.st_rdev == device);
        // SAFETY: both descriptors are open, and nobody else uses the second one meanwhile.
        if is_null && unsafe { libc::dup2(null.as_raw_fd(), standard) } < 0 {
            return Err(say(std::io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// All that a process does to itself; `inside`: it has namespaces of its own.
fn restrict(request: &Request, inside: bool) -> Result<(), String> {
    limits::set(request, inside)?;
    request.landlock(inside)?;
    Ok(seccomp::restrict((!inside).then(landlock::version))?)
}

/// The virtual kernel starts itself again under these conditions, by its name in /proc, which is not shown: fixed
/// addresses, and no restartable sequences of the C library (images/kernel/patches).
fn become_it(command: &[OsString]) -> String {
    // SAFETY: no memory is passed.
    unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
    let mut program = std::process::Command::new(&command[0]);
    let error = program.args(&command[1..]).env("GLIBC_TUNABLES", "glibc.pthread.rseq=0").exec();
    format!("{}: {error}", command[0].to_string_lossy())
}

/// Closes what was inherited, such as the directory of a lock: outside of the namespaces it is held by who waits.
fn keep_only_standard(but: i32) {
    // SAFETY: only descriptors that nobody uses any more are closed.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, but - 1, 0);
        libc::syscall(libc::SYS_close_range, but + 1, libc::c_uint::MAX, 0);
    }
}

fn exit_status(status: nix::Result<WaitStatus>) -> i32 {
    match status {
        Ok(WaitStatus::Exited(_, status)) => status,
        Ok(WaitStatus::Signaled(_, signal, _)) => 128 + signal as i32,
        _ => 2,
    }
}

/// Which walls there are, as JSON: `landlock` its version, 0 without; `namespaces` true, or why there are none;
/// `processes` whether their number can be limited.
pub fn tell(mut to: impl Write) -> Result<(), String> {
    let request = Request {
        reads: PROGRAMS.iter().filter_map(|path| std::fs::canonicalize(path).ok()).collect(),
        links: PROGRAMS.iter().map(PathBuf::from).collect(),
        writes: Vec::new(),
        builds: Vec::new(),
        memory_in: None,
        memory: 1 << 28,
        processes: 64,
        only: Some(WallKind::Namespaces),
    };
    let tried = in_namespaces(&request, &["true".into()]);
    let namespaces = match tried {
        Ok(0) => json!(true),
        Ok(status) => json!(std::process::ExitStatus::from_raw(status << 8).to_string()),
        Err(error) => json!(error),
    };
    let limited = limits::are_for_processes(namespaces == json!(true));
    let found = json!({"landlock": landlock::version(), "namespaces": namespaces, "processes": limited});
    writeln!(to, "{found}").map_err(|error| format!("writing what was found: {error}"))
}
