//! Programs in their nodes: what each finds there, and what became of it.
//!
//! In: a node, a command line, the surroundings. Out: a process that is ready to be started; what it writes goes to
//! DIR/commands/<name>.{out,err}; files of its own go to DIR/commands/<name>/.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use ewan_system::schedule;
use ewan_system::signals::Signals;
use nix::sys::signal::{killpg, Signal};
use nix::sys::wait::{waitid, waitpid, Id, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::steps::Steps;
use super::{sockets, Surroundings};
use ewan_lab::exec::{self, Place};
use ewan_lab::machine;
use ewan_lab::services::{self, OURSELVES};
use ewan_plan::Plan;

/// What programs find in their environment, in both clocks and on every machine, with EWAN_OUT: where to put files.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/tmp"),
    ("LANG", "C.UTF-8"),
    ("TERM", "dumb"),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    pub node: String,
    pub argv: Vec<String>,
    /// From T0, or from the end of the steps that it comes after.
    #[serde(default)]
    pub at_ns: u64,
    /// Ended when all others have come to their end; nobody waits for its end.
    #[serde(default)]
    pub service: bool,
    /// The step that it is of; none: nobody waits for it.
    #[serde(default)]
    pub step: Option<u32>,
    /// It waits until these steps have ended.
    #[serde(default)]
    pub after: Vec<u32>,
    /// A service: its step has ended, for those that wait for it, when a socket of TCP listens or one of UDP is bound at this
    /// port in its node.
    #[serde(default)]
    pub ready_port: Option<u16>,
    /// Its sockets are wanted, and those of what it starts: command_sockets.csv.
    #[serde(default)]
    pub own_sockets: bool,
    /// In the whole program, from 0, where this machine has a part of it; none: its place here.
    #[serde(default)]
    pub number: Option<usize>,
}

/// In the environment of each command: T0 as time of day, in ns since 1970.
pub const T0: &str = "EWAN_T0_UNIX_NS";

/// What the rest relies on, a queueing discipline changed with tc for one: when it fails, nothing else is run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub node: String,
    pub argv: Vec<String>,
}

impl Step {
    /// Until it has ended, and whatever it left behind in its group with it; true when a signal came instead.
    pub fn run(&self, number: usize, plan: &Plan, signals: &Signals, around: &Surroundings) -> Result<bool, String> {
        let name = format!("prepare-{number}-{}", self.node);
        let mut prepared = prepare(&self.node, &self.argv, plan, around, &name)?;
        let said = around.out.join("commands").join(format!("{name}.err"));
        let mut child = prepared.spawn().map_err(|error| why_not(&error, &self.argv[0], &said))?;
        let group = Pid::from_raw(child.id() as i32);
        let mut interrupted = false;
        while !interrupted && ended(group).is_none() {
            interrupted = signals.wait(None).is_some_and(|signal| signal != Signal::SIGCHLD);
        }
        // Its number is the group's, and nobody else's until it is waited for.
        let _ = killpg(group, Signal::SIGKILL);
        let status = child.wait().map_err(|error| format!("{name}: {error}"))?;
        let _ = std::fs::remove_dir(around.out.join("commands").join(&name));
        if interrupted {
            return Ok(true);
        }
        if status.success() {
            return Ok(false);
        }
        let said = std::fs::read_to_string(&said).unwrap_or_default();
        let why = said.lines().last().map_or_else(|| status.to_string(), str::to_owned);
        Err(format!("preparing {}: {}: {why}", self.node, self.argv.join(" ")))
    }
}

/// How a child of ours ended, if it has; it keeps its number, which is its group's too, until `release`.
pub fn ended(child: Pid) -> Option<WaitStatus> {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    waitid(Id::Pid(child), look).ok().filter(|status| status.pid().is_some())
}

/// Gives up the number of a child that has ended.
pub fn release(child: Pid) {
    let _ = waitpid(child, Some(WaitPidFlag::WNOHANG));
}

/// A command and what became of it; times from T0.
#[derive(Serialize)]
pub struct Entry {
    pub node: String,
    argv: Vec<String>,
    /// From T0; none: steps that it waits for have not ended.
    pub at_ns: Option<u64>,
    pub service: bool,
    pub started_ns: Option<i64>,
    pub ended_ns: Option<i64>,
    /// Exit status; none if a signal ended it or it never ran.
    status: Option<i32>,
    signal: Option<String>,
    /// Ended by us: a service, at the end of time, or interrupted.
    pub stopped: bool,
    /// Why it could not be started.
    error: Option<String>,
    out: String,
    err: String,
    /// The directory that it was told of as EWAN_OUT; not there where it put nothing into it.
    pub files: String,
    /// A service: since when its port listens; none: it does not, or nobody asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    ready_ns: Option<i64>,
    #[serde(skip)]
    ready_port: Option<u16>,
    /// In the whole program, from 0.
    #[serde(skip)]
    pub number: usize,
    #[serde(skip)]
    pub own_sockets: bool,
    #[serde(skip)]
    pub step: Option<u32>,
    #[serde(skip)]
    after: Vec<u32>,
    /// From the end of those.
    #[serde(skip)]
    later_ns: u64,
    #[serde(skip)]
    pub process: Option<Pid>,
    #[serde(skip)]
    prepared: Option<std::process::Command>,
}

impl Command {
    /// Has its step ended when it has, or is ready?
    pub fn ends_step(&self) -> bool {
        !self.service || self.ready_port.is_some()
    }
}

impl Entry {
    /// `place`: in the program, from 0.
    pub fn prepare(place: usize, command: &Command, plan: &Plan, around: &Surroundings) -> Result<Self, String> {
        let name = format!("{}-{}", command.number.unwrap_or(place) + 1, command.node);
        Ok(Entry {
            prepared: Some(prepare(&command.node, &command.argv, plan, around, &name)?),
            node: command.node.clone(),
            argv: command.argv.clone(),
            at_ns: command.after.is_empty().then_some(command.at_ns),
            service: command.service,
            ready_ns: None,
            ready_port: command.ready_port,
            number: command.number.unwrap_or(place),
            own_sockets: command.own_sockets,
            step: command.step.filter(|_| command.ends_step()),
            after: command.after.clone(),
            later_ns: command.at_ns,
            started_ns: None,
            ended_ns: None,
            status: None,
            signal: None,
            stopped: false,
            error: None,
            out: format!("commands/{name}.out"),
            err: format!("commands/{name}.err"),
            files: format!("commands/{name}"),
            process: None,
        })
    }

    /// When it is to start, in ns from T0, if that is known and it has not.
    pub fn due_ns(&self) -> Option<u64> {
        self.at_ns.filter(|_| self.prepared.is_some())
    }

    /// Looks whether the steps that it waits for have ended; true when its start became known by that.
    pub fn begins(&mut self, steps: &Steps) -> bool {
        if self.at_ns.is_some() {
            return false;
        }
        self.at_ns = steps.all_ended(&self.after).map(|ns| self.later_ns.saturating_add(ns.max(0) as u64));
        self.at_ns.is_some()
    }

    pub fn start(&mut self, out: &Path, t0_unix_ns: i64, now: impl Fn() -> i64) {
        let Some(mut prepared) = self.prepared.take() else { return };
        match prepared.env(T0, t0_unix_ns.to_string()).spawn() {
            Ok(child) => {
                self.started_ns = Some(now());
                self.process = Some(Pid::from_raw(child.id() as i32));
            }
            Err(error) => self.error = Some(why_not(&error, &self.argv[0], &out.join(&self.err))),
        }
    }

    pub fn take(&mut self, status: WaitStatus, now_ns: i64) {
        match status {
            WaitStatus::Exited(_, status) => self.status = Some(status),
            WaitStatus::Signaled(_, signal, _) => self.signal = Some(signal.as_str().into()),
            _ => return,
        }
        self.ended_ns = Some(now_ns);
    }

    /// Does somebody wait for its port?
    pub fn becomes_ready(&self) -> bool {
        self.runs() && self.ready_port.is_some() && self.ready_ns.is_none()
    }

    /// Looks whether its port listens.
    pub fn look(&mut self, now_ns: i64) {
        let (Some(port), Some(process)) = (self.ready_port, self.process) else { return };
        if self.becomes_ready() && sockets::listens(process.as_raw(), port) {
            self.ready_ns = Some(now_ns);
        }
    }

    /// When those that wait for it may go on: it ended, or could not be started, or as a service it is ready; none: not yet.
    pub fn end_ns(&self, now_ns: i64) -> Option<i64> {
        if self.service {
            return self.ready_ns;
        }
        self.ended_ns.or_else(|| self.error.as_ref().map(|_| now_ns))
    }

    pub fn over(&self) -> bool {
        self.ended_ns.is_some() || self.error.is_some()
    }

    /// Takes away the directory for its files where it is empty.
    pub fn tidy(&self, out: &Path) {
        let _ = std::fs::remove_dir(out.join(&self.files));
    }

    pub fn runs(&self) -> bool {
        self.process.is_some() && self.ended_ns.is_none()
    }
}

/// In words: what the child said before it became the program, or that there is no such program.
fn why_not(error: &std::io::Error, program: &str, said: &Path) -> String {
    match std::fs::read_to_string(said) {
        Ok(text) if !text.is_empty() => text,
        _ if error.kind() == std::io::ErrorKind::NotFound => format!("{program}: there is no such program"),
        _ => format!("{program}: {error}"),
    }
}

/// A program in its node, ready to be started; what it writes goes to commands/<name>.{out,err}.
fn prepare(
    node: &str,
    argv: &[String],
    plan: &Plan,
    around: &Surroundings,
    name: &str,
) -> Result<std::process::Command, String> {
    let home = services::directory(around.state, node);
    let place = Place {
        namespace: exec::namespace_of(plan, node)?,
        hosts: around.state.join("hosts"),
        own: home.clone(),
        tree: around.tree.map(Path::to_owned),
    };
    let (cpus, directory) = (plan.host_cpus.clone(), around.directory.clone());
    let files = around.out.join("commands");
    let own = files.join(name);
    let say = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(&own).map_err(|error| say(&own, error))?;
    let create = |ending: &str| {
        let path = files.join(format!("{name}.{ending}"));
        File::create(&path).map_err(|error| say(&path, error))
    };
    let asked: Vec<_> = argv.iter().map(OsString::from).collect();
    // This very program is there in every root and image, whatever is installed; it stays beside a machine.
    let ours = argv[0] == OURSELVES;
    let words = if ours { asked } else { machine::words(around.state, node, &asked, false) };
    let mut prepared = std::process::Command::new(if ours { OsStr::new("/proc/self/exe") } else { &words[0] });
    prepared
        .arg0(&words[0])
        .args(&words[1..])
        .env_clear()
        .envs(ENVIRONMENT)
        .envs(exec::environment(&home))
        .envs(plan.environment(node))
        .env("EWAN_OUT", &own)
        .stdin(Stdio::null())
        .stdout(create("out")?)
        .stderr(create("err")?)
        .process_group(0);
    let enter = move || {
        Signals::unblock();
        // Only a number reaches the parent by itself; the words go to the command's own error output.
        let entered = place.enter().and_then(|()| schedule::keep_to(&cpus));
        entered.inspect_err(|error| eprint!("{error}")).map_err(|_| std::io::Error::from_raw_os_error(libc::EPERM))?;
        std::env::set_current_dir(&directory).or_else(|_| std::env::set_current_dir("/"))
    };
    // SAFETY: this process has one thread when it starts commands, so the child may allocate.
    unsafe { prepared.pre_exec(enter) };
    Ok(prepared)
}
