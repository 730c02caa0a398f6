//! The traffic of a program: `ewan-node traffic` beside the commands, with the same T0.
//!
//! In: a request (emulator/traffic/src/flows), T0, and steps of commands that ended. Out: what that process writes into
//! DIR/traffic, with the request beside it, steps of its own that ended, and one line when it fails.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use ewan_system::signals::Signals;
use ewan_system::socket::set_nonblocking;
use ewan_traffic::flows::{LAUNCH_NS, LEAD_NS};
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;
use serde_json::Value;

use super::steps;

/// From its start until it launches the first flow: it reads the request and tries each flow's ends.
const STARTS: Duration = Duration::from_millis(100);
const FLOW_TRIED: Duration = Duration::from_micros(100);

/// How long before T0 the traffic must be started.
pub fn lead(request: &Value) -> Duration {
    let flows = request["flows"].as_array().map_or(&[][..], Vec::as_slice);
    let members: usize = flows.iter().map(|flow| flow["work"]["ranks"].as_array().map_or(1, Vec::len)).sum();
    let each = FLOW_TRIED + Duration::from_nanos(LAUNCH_NS);
    STARTS + Duration::from_nanos(LEAD_NS) + each * u32::try_from(members).unwrap_or(u32::MAX)
}

pub struct Traffic {
    process: Pid,
    /// What it says when it fails: in memory, for a full disk may be why.
    said: File,
    ended: Option<Result<(), String>>,
    /// Steps whose ends it must be told, and where.
    elsewhere: BTreeSet<u32>,
    ears: Option<ChildStdin>,
    /// Where it tells of the ends of its own steps, if it is asked to; read as far as there is something.
    tells: Option<ChildStdout>,
    /// A line that is not whole yet.
    begun: String,
}

impl Traffic {
    /// `begin_ns`: T0 on CLOCK_MONOTONIC.
    pub fn start(request: &Value, out: &Path, begin_ns: i64) -> Result<Self, String> {
        let directory = out.join("traffic");
        std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let file = directory.join("request.json");
        super::write(&file, request)?;
        let say = |error: &dyn std::fmt::Display| format!("starting the traffic: {error}");
        let said = memfd_create(c"traffic", MFdFlags::MFD_CLOEXEC).map_err(|error| say(&error))?;
        let said = File::from(said);
        let words = said.try_clone().map_err(|error| say(&error))?;
        let mut command = std::process::Command::new("/proc/self/exe");
        command.arg0("ewan-node").arg("traffic").arg("--request").arg(&file).arg("--out").arg(&directory);
        command.args(["--begin-ns", &begin_ns.to_string()]);
        let (told, elsewhere) = steps::exchanged(request);
        let pipe = |needed: bool| if needed { Stdio::piped() } else { Stdio::null() };
        command.stdin(pipe(!elsewhere.is_empty())).stdout(pipe(!told.is_empty())).stderr(words).process_group(0);
        let parent = nix::unistd::getpid();
        let enter = move || {
            Signals::unblock();
            // Without us nobody would end it.
            nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
            if nix::unistd::getppid() != parent {
                return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        };
        // SAFETY: system calls only.
        unsafe { command.pre_exec(enter) };
        let mut child = command.spawn().map_err(|error| say(&error))?;
        let (ears, tells) = (child.stdin.take(), child.stdout.take());
        if let Some(tells) = &tells {
            set_nonblocking(tells, true).map_err(|error| say(&error))?;
        }
        let process = Pid::from_raw(child.id() as i32);
        Ok(Traffic { process, said, ended: None, elsewhere, ears, tells, begun: String::new() })
    }

    /// The steps that it has told of since the last call, with when they ended, in ns from T0.
    pub fn told(&mut self) -> Vec<(u32, i64)> {
        let mut piece = [0; 4096];
        while let Some(Ok(length @ 1..)) = self.tells.as_mut().map(|tells| tells.read(&mut piece)) {
            self.begun.push_str(&String::from_utf8_lossy(&piece[..length]));
        }
        let whole = self.begun.rfind('\n').map_or(0, |end| end + 1);
        let lines: String = self.begun.drain(..whole).collect();
        let step =
            |line: &str| line.split_once(' ').and_then(|(step, at_ns)| Some((step.parse().ok()?, at_ns.parse().ok()?)));
        lines.lines().filter_map(step).collect()
    }

    /// A step of commands ended. What has ended itself hears nothing.
    pub fn tell(&mut self, step: u32, at_ns: i64) {
        if let Some(ears) = self.ears.as_mut().filter(|_| self.elsewhere.contains(&step)) {
            let _ = writeln!(ears, "{step} {at_ns}").and_then(|()| ears.flush());
        }
    }

    pub fn process(&self) -> Pid {
        self.process
    }

    /// Takes the end of a process for its own, if it is.
    pub fn take(&mut self, status: &WaitStatus) {
        if status.pid() == Some(self.process) {
            self.ended = match status {
                WaitStatus::Exited(_, 0) => Some(Ok(())),
                WaitStatus::Exited(_, status) => Some(Err(self.last_words(&format!("status {status}")))),
                WaitStatus::Signaled(_, signal, _) => Some(Err(self.last_words(signal.as_str()))),
                _ => None,
            };
        }
    }

    pub fn runs(&self) -> bool {
        self.ended.is_none()
    }

    pub fn failure(&self) -> Option<&str> {
        self.ended.as_ref()?.as_ref().err().map(String::as_str)
    }

    pub fn signal(&self, signal: Signal) {
        if self.runs() {
            let _ = kill(self.process, signal);
        }
    }

    fn last_words(&mut self, how: &str) -> String {
        let mut said = Vec::new();
        let _ = self.said.rewind().and_then(|()| self.said.read_to_end(&mut said));
        let said = String::from_utf8_lossy(&said);
        match said.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("traffic: {}", line.trim()),
            None => format!("traffic: it ended without a word ({how})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn more_flows_and_ranks_take_longer_to_start() {
        let request = json!({"flows": [{"work": {"kind": "bulk"}}, {"work": {"ranks": [1, 2, 3]}}]});
        let none = lead(&json!({}));
        assert!(none > STARTS);
        assert_eq!(lead(&request) - none, 4 * (FLOW_TRIED + Duration::from_nanos(LAUNCH_NS)));
    }
}
