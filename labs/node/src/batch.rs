//! A program: preparations one after the other, then probes, then commands side by side in their nodes, each started at
//! its time after T0. The same code in both clocks.
//!
//! In: a plan whose lab is up, a program (JSON, written by labs/runtime/program.py), a directory. Out: DIR/probe.json,
//! DIR/commands/<n>-<node>.{out,err}, prepare-<n>-<node>.{out,err} beside them, and DIR/commands.json with what became
//! of each command. One thread waits for whatever comes next: a start, an end, a signal.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::sys::signal::{killpg, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

use crate::exec::{self, Place};
use crate::plan::Plan;
use crate::signals::Signals;

pub const FORMAT: &str = "ewan-program/1";
/// From the end of the preparations to T0.
const LEAD: Duration = Duration::from_millis(10);
/// From the signal that asks a command to end to the one that ends it.
const PATIENCE: Duration = Duration::from_secs(1);
/// What programs find in their environment, in both clocks and on every machine, with EWAN_OUT: where to put files.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/tmp"),
    ("LANG", "C.UTF-8"),
    ("TERM", "dumb"),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    format: String,
    /// One after the other, before all else.
    #[serde(default)]
    prepare: Vec<Step>,
    /// A request for `ewan_generator::probe`.
    probe: Option<Value>,
    commands: Vec<Command>,
    /// From T0; what still runs then is ended.
    longest_ns: u64,
}

/// What the rest relies on, a queueing discipline changed with tc for one: when it fails, nothing else is run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    node: String,
    argv: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    node: String,
    argv: Vec<String>,
    /// From T0.
    at_ns: u64,
    /// Ended when all others have come to their end; nobody waits for it.
    service: bool,
}

/// How commands see the machine.
pub struct Surroundings<'a> {
    /// The lab's state directory.
    pub state: &'a Path,
    /// What becomes the commands' root; none: the root as it is.
    pub tree: Option<&'a Path>,
    /// Where results go; seen by the commands under the same name.
    pub out: &'a Path,
    /// Where commands begin, as they see it.
    pub directory: PathBuf,
}

impl Program {
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let program: Self = serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        if program.format != FORMAT {
            return Err(format!("{}: format is {:?}, not {FORMAT:?}", path.display(), program.format));
        }
        let commands = program.commands.iter().map(|command| (&command.node, &command.argv));
        let mut all = commands.chain(program.prepare.iter().map(|step| (&step.node, &step.argv)));
        if let Some((node, _)) = all.find(|(_, argv)| argv.is_empty()) {
            return Err(format!("{}: node {node}: a command without words", path.display()));
        }
        Ok(program)
    }

    /// Whether it needs the host's programs.
    pub fn runs_programs(&self) -> bool {
        !self.commands.is_empty() || !self.prepare.is_empty()
    }

    /// Runs all of it; true when a signal ended it early, with all that was measured until then written.
    pub fn run(&self, plan: &Plan, signals: &Signals, around: &Surroundings) -> Result<bool, String> {
        for (index, step) in self.prepare.iter().enumerate() {
            if step.run(index + 1, plan, signals, around)? {
                return Ok(true);
            }
        }
        if let Some(request) = &self.probe {
            if probe(request, signals, around.out)? {
                return Ok(true);
            }
        }
        if self.commands.is_empty() {
            return Ok(false);
        }
        Batch::prepare(self, plan, around)?.run(signals, Duration::from_nanos(self.longest_ns), around.out)
    }
}

impl Step {
    /// Until it has ended, and whatever it left behind in its group with it; true when a signal came instead.
    fn run(&self, number: usize, plan: &Plan, signals: &Signals, around: &Surroundings) -> Result<bool, String> {
        let name = format!("prepare-{number}-{}", self.node);
        let mut prepared = prepare(&self.node, &self.argv, plan, around, &name)?;
        let said = around.out.join("commands").join(format!("{name}.err"));
        let mut child = prepared.spawn().map_err(|error| why_not(&error, &self.argv[0], &said))?;
        let group = Pid::from_raw(child.id() as i32);
        let mut interrupted = false;
        let ended = loop {
            let ended = child.try_wait().map_err(|error| format!("{name}: {error}"))?;
            if ended.is_some() || interrupted {
                break ended;
            }
            interrupted = signals.wait(None).is_some_and(|signal| signal != Signal::SIGCHLD);
        };
        let _ = killpg(group, Signal::SIGKILL);
        match ended {
            None => child.wait().map(|_| true).map_err(|error| format!("{name}: {error}")),
            Some(status) if status.success() => Ok(false),
            Some(status) => {
                let said = std::fs::read_to_string(&said).unwrap_or_default();
                let why = said.lines().last().map_or_else(|| status.to_string(), str::to_owned);
                Err(format!("preparing {}: {}: {why}", self.node, self.argv.join(" ")))
            }
        }
    }
}

/// Runs a program in a lab of the live clock.
pub fn run(state: &Path, program: &Path, out: &Path) -> Result<(), String> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()));
    let (state, out) = (absolute(state)?, absolute(out)?);
    let plan = crate::plan::read(&state.join("plan.json"))?;
    let program = Program::read(program)?;
    let signals = Signals::block()?;
    nix::sys::prctl::set_timerslack(1).map_err(|error| format!("timer slack: {error}"))?;
    // Whatever commands leave behind comes to us, and ends with its command.
    nix::sys::prctl::set_child_subreaper(true).map_err(|error| format!("becoming subreaper: {error}"))?;
    let directory = std::env::current_dir().unwrap_or_else(|_| "/".into());
    program.run(&plan, &signals, &Surroundings { state: &state, tree: None, out: &out, directory }).map(drop)
}

/// One probe after the other, so that those which are done are kept whatever happens to the next.
fn probe(request: &Value, signals: &Signals, out: &Path) -> Result<bool, String> {
    let probes = request["probes"].as_array().cloned().unwrap_or_default();
    let mut answer = json!({ "format": ewan_generator::probe::FORMAT, "results": [] });
    let mut interrupted = false;
    for (index, probe) in probes.iter().enumerate() {
        let name = probe["name"].as_str().unwrap_or("").to_owned();
        eprintln!("probe {} of {}: {name}", index + 1, probes.len());
        let mut single = request.clone();
        single["probes"] = json!([probe]);
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut answer = Vec::new();
            let result = ewan_generator::probe::run(single.to_string().as_bytes(), &mut answer);
            let _ = sender.send(result.map(|()| answer)); // whoever was interrupted does not listen any more
            crate::signals::wake();
        });
        let text = loop {
            if let Ok(result) = receiver.try_recv() {
                break result?;
            }
            if signals.wait(None).is_some_and(|signal| signal != Signal::SIGCHLD) {
                interrupted = true; // the thread that probes ends with this process
                break Vec::new();
            }
        };
        if interrupted {
            break;
        }
        let done: Value = serde_json::from_slice(&text).map_err(|error| format!("answer of probe {name}: {error}"))?;
        let results = answer["results"].as_array_mut().expect("made above");
        results.extend(done["results"].as_array().cloned().unwrap_or_default());
    }
    write(&out.join("probe.json"), &answer)?;
    Ok(interrupted)
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), String> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| error.to_string())?;
    text.push(b'\n');
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// A command and what became of it; times from T0.
#[derive(Serialize)]
struct Entry {
    node: String,
    argv: Vec<String>,
    at_ns: u64,
    service: bool,
    started_ns: Option<i64>,
    ended_ns: Option<i64>,
    /// Exit status; none if a signal ended it or it never ran.
    status: Option<i32>,
    signal: Option<String>,
    /// Ended by us: a service, at the end of time, or interrupted.
    stopped: bool,
    /// Why it could not be started.
    error: Option<String>,
    out: String,
    err: String,
    #[serde(skip)]
    process: Option<Pid>,
    #[serde(skip)]
    prepared: Option<std::process::Command>,
}

struct Batch {
    entries: Vec<Entry>,
    start: Instant,
}

impl Batch {
    fn prepare(program: &Program, plan: &Plan, around: &Surroundings) -> Result<Self, String> {
        let entry = |(number, command): (usize, &Command)| {
            let name = format!("{}-{}", number + 1, command.node);
            Ok(Entry {
                prepared: Some(prepare(&command.node, &command.argv, plan, around, &name)?),
                node: command.node.clone(),
                argv: command.argv.clone(),
                at_ns: command.at_ns,
                service: command.service,
                started_ns: None,
                ended_ns: None,
                status: None,
                signal: None,
                stopped: false,
                error: None,
                out: format!("commands/{name}.out"),
                err: format!("commands/{name}.err"),
                process: None,
            })
        };
        let entries = program.commands.iter().enumerate().map(entry).collect::<Result<_, String>>()?;
        Ok(Batch { entries, start: Instant::now() + LEAD })
    }

    /// Starts what is due, reaps what ended, until all but services did, or it is time, or a signal says so.
    fn run(mut self, signals: &Signals, longest: Duration, out: &Path) -> Result<bool, String> {
        let last = self.start + longest;
        let mut interrupted = false;
        while !interrupted {
            self.reap();
            let next = self.start_due(out);
            let all_ended = self.entries.iter().all(|entry| entry.service || entry.over());
            if all_ended || Instant::now() >= last {
                break;
            }
            let until = next.map_or(last, |next| next.min(last));
            let came = signals.wait(Some(until.saturating_duration_since(Instant::now())));
            interrupted = came.is_some_and(|signal| signal != Signal::SIGCHLD);
        }
        self.end(signals, if interrupted { Signal::SIGINT } else { Signal::SIGTERM });
        let document = json!({ "format": "ewan-commands/1", "interrupted": interrupted, "commands": self.entries });
        write(&out.join("commands.json"), &document)?;
        Ok(interrupted)
    }

    fn since_start(&self) -> i64 {
        let now = Instant::now();
        now.saturating_duration_since(self.start).as_nanos() as i64
            - self.start.saturating_duration_since(now).as_nanos() as i64
    }

    /// Starts what is due; when the next one is.
    fn start_due(&mut self, out: &Path) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        for index in 0..self.entries.len() {
            let due = self.start + Duration::from_nanos(self.entries[index].at_ns);
            if self.entries[index].prepared.is_none() {
                continue;
            }
            if due > Instant::now() {
                next = Some(next.map_or(due, |next| next.min(due)));
                continue;
            }
            let mut prepared = self.entries[index].prepared.take().expect("looked at above");
            let started = prepared.spawn();
            let now = self.since_start();
            let entry = &mut self.entries[index];
            match started {
                Ok(child) => {
                    entry.started_ns = Some(now);
                    entry.process = Some(Pid::from_raw(child.id() as i32));
                }
                Err(error) => entry.error = Some(why_not(&error, &entry.argv[0], &out.join(&entry.err))),
            }
        }
        next
    }

    /// All that ended: ours, and whatever was left to us by them.
    fn reap(&mut self) {
        while let Ok(status) = waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
            let Some(pid) = status.pid() else { return };
            let now = self.since_start();
            let Some(entry) = self.entries.iter_mut().find(|entry| entry.process == Some(pid)) else { continue };
            match status {
                WaitStatus::Exited(_, status) => entry.status = Some(status),
                WaitStatus::Signaled(_, signal, _) => entry.signal = Some(signal.as_str().into()),
                _ => continue,
            }
            entry.ended_ns = Some(now);
        }
    }

    /// Ends what still runs: asks, waits, kills; and with each command whatever it left behind in its group.
    fn end(&mut self, signals: &Signals, ask: Signal) {
        for entry in self.entries.iter_mut().filter(|entry| !entry.over()) {
            entry.stopped = true;
            if let Some(group) = entry.process {
                let _ = killpg(group, ask);
            }
        }
        let until = Instant::now() + PATIENCE;
        while self.entries.iter().any(Entry::runs) && Instant::now() < until {
            signals.wait(Some(until.saturating_duration_since(Instant::now())));
            self.reap();
        }
        for group in self.entries.iter().filter_map(|entry| entry.process) {
            let _ = killpg(group, Signal::SIGKILL);
        }
        while self.entries.iter().any(Entry::runs) {
            signals.wait(Some(PATIENCE));
            self.reap();
        }
    }
}

impl Entry {
    fn over(&self) -> bool {
        self.ended_ns.is_some() || self.error.is_some()
    }

    fn runs(&self) -> bool {
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
    let place = Place {
        namespace: exec::namespace_of(plan, node)?,
        hosts: around.state.join("hosts"),
        tree: around.tree.map(Path::to_owned),
    };
    let (cpus, directory) = (plan.host_cpus.clone(), around.directory.clone());
    let files = around.out.join("commands");
    let say = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(&files).map_err(|error| say(&files, error))?;
    let create = |ending: &str| {
        let path = files.join(format!("{name}.{ending}"));
        File::create(&path).map_err(|error| say(&path, error))
    };
    let mut prepared = std::process::Command::new(&argv[0]);
    prepared
        .args(&argv[1..])
        .env_clear()
        .envs(ENVIRONMENT)
        .env("EWAN_OUT", &files)
        .stdin(Stdio::null())
        .stdout(create("out")?)
        .stderr(create("err")?)
        .process_group(0);
    let enter = move || {
        Signals::unblock();
        // Only a number reaches the parent by itself; the words go to the command's own error output.
        let entered = place.enter().and_then(|()| exec::keep_to(&cpus));
        entered.inspect_err(|error| eprint!("{error}")).map_err(|_| std::io::Error::from_raw_os_error(libc::EPERM))?;
        std::env::set_current_dir(&directory).or_else(|_| std::env::set_current_dir("/"))
    };
    // SAFETY: this process has one thread when it starts commands, so the child may allocate.
    unsafe { prepared.pre_exec(enter) };
    Ok(prepared)
}
