//! Finding and ending the processes that belong to a lab: by what they are, never by name alone.
//!
//! A process is held by a descriptor (pidfd) before it is looked at, so the one that is ended is the one that was
//! looked at, whatever happens to its number in between.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ewan_system::process::Pidfd;
use ewan_system::signals::Signal;
use ewan_system::{fault, namespace, schedule};
use serde::Serialize;

/// `python -m` this: labs/runtime/keeper.py; and what 0.1 called it, whose labs may still be up.
const KEEPERS: [&str; 2] = ["ewan.labs.runtime.keeper", "labs.runtime.keeper"];

pub struct Process {
    pid: i32,
    command: String,
    held: Pidfd,
}

/// A process that is no longer held.
#[derive(Serialize)]
pub struct EndedProcess {
    pid: i32,
    command: String,
}

impl From<Process> for EndedProcess {
    fn from(process: Process) -> Self {
        EndedProcess { pid: process.pid, command: process.command }
    }
}

fn arguments(pid: i32) -> Vec<String> {
    let text = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    text.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// Whether a process is of this process's user.
fn is_own(pid: i32) -> bool {
    let owner = std::fs::metadata(format!("/proc/{pid}")).map(|found| found.uid());
    owner.is_ok_and(|uid| uid == nix::unistd::geteuid().as_raw())
}

/// The number that was given last to a process, or to a thread; None where /proc does not tell it.
fn last_number() -> Option<i32> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().nth(4)?.parse().ok()
}

/// Numbers given after `from` until `to`, in their order: they begin anew after the highest.
fn given(from: i32, to: i32, highest: i32) -> impl Iterator<Item = i32> {
    let anew = to < from;
    (from + 1..=if anew { highest } else { to }).chain(1..=if anew { to } else { 0 })
}

/// Shows every process but this one and the first, held; false where one could not be held.
///
/// The listing of /proc tells nothing of what was started after it was read, so these are looked at by their numbers,
/// until there are no new ones: a process that starts another and ends is met, or the one that it started.
fn each(mut see: impl FnMut(Process)) -> bool {
    let own = std::process::id() as i32;
    let mut complete = true;
    let mut look = |pid: i32| {
        if pid == own || pid == 1 {
            return;
        }
        match Pidfd::open(pid) {
            Ok(held) => see(Process { pid, command: String::new(), held }),
            // Another error says that there is no process of this number.
            Err(error) => {
                let number = error.raw_os_error();
                complete &= !matches!(number, Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENODEV));
            }
        }
    };
    let mut seen = last_number();
    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).for_each(&mut look);
    let highest = std::fs::read_to_string("/proc/sys/kernel/pid_max").ok();
    let highest = highest.and_then(|text| text.trim().parse().ok()).unwrap_or(i32::MAX);
    while let (Some(from), Some(to)) = (seen, last_number()) {
        if from == to {
            break;
        }
        given(from, to, highest).for_each(&mut look);
        seen = Some(to);
    }
    complete
}

/// The processes of a lab: its spinners, wherever they are, and all that lives in its namespaces.
pub struct Members {
    id: String,
    /// The namespaces' identities, which are nobody else's while `held` is open.
    networks: HashSet<(u64, u64)>,
    _held: Vec<File>,
}

impl Members {
    /// Of the lab whose manifest has this `id`; files without a namespace on them count for nothing.
    pub fn of(id: &str, namespaces: &[PathBuf]) -> Self {
        let own = namespace::identity(Path::new("/proc/self/ns/net"));
        let held: Vec<_> = namespaces.iter().filter_map(|path| namespace::open(path)).collect();
        let identities = held.iter().filter_map(|file| file.metadata().ok().map(|file| (file.dev(), file.ino())));
        let networks = identities.filter(|identity| Some(*identity) != own).collect();
        Members { id: id.to_owned(), networks, _held: held }
    }

    /// `ewan-node link … --id ID`, whatever the binary's file is called, or the keeper of a device: nobody else has a lab's
    /// id on its command line. Other users' processes may say anything: they are not believed.
    fn spins(&self, process: &Process) -> bool {
        let arguments = arguments(process.pid);
        let keeps = || arguments.get(2).is_some_and(|module| KEEPERS.contains(&module.as_str()));
        (arguments.get(1).is_some_and(|command| command == "link") || keeps())
            && arguments.windows(2).any(|pair| pair[0] == "--id" && pair[1] == self.id)
            && is_own(process.pid)
    }

    fn inside(&self, process: &Process) -> bool {
        !self.networks.is_empty()
            && namespace::identity(Path::new(&format!("/proc/{}/ns/net", process.pid)))
                .is_some_and(|identity| self.networks.contains(&identity))
    }

    pub fn spinners(&self) -> Vec<Process> {
        let mut found = Vec::new();
        each(|process| found.extend(self.spins(&process).then(|| process.named())));
        found
    }

    pub fn others(&self) -> Vec<Process> {
        let mut found = Vec::new();
        each(|process| found.extend(self.inside(&process).then(|| process.named())));
        found
    }

    /// Kills each as soon as it is met, and looks again until there is none: processes start others while they are looked
    /// for. Gives those that it killed; the error is what is there still after `KILLED`.
    pub fn kill_all(&self) -> Result<Vec<EndedProcess>, String> {
        let until = Instant::now() + KILLED;
        let mut killed = Vec::new();
        loop {
            let mut found = Vec::new();
            let complete = each(|process| {
                if self.inside(&process) || self.spins(&process) {
                    let process = process.named();
                    process.signal(Signal::SIGKILL);
                    found.push(process);
                }
            });
            if found.is_empty() && complete {
                return Ok(killed);
            }
            for process in &found {
                process.ended(until.saturating_duration_since(Instant::now()));
            }
            if Instant::now() > until {
                return Err(found.pop().map_or_else(
                    || "/proc cannot be searched".into(),
                    |process| format!("process {} is still there: {}", process.pid, process.command),
                ));
            }
            killed.extend(found.into_iter().map(EndedProcess::from));
        }
    }
}

impl Process {
    fn named(self) -> Process {
        Process { command: arguments(self.pid).join(" ").trim().to_owned(), ..self }
    }

    /// Lets a process run anywhere, as others do: one that is pinned to a CPU where somebody else spins with
    /// real-time priority would wait there to end, for as long as that one spins.
    pub fn unpin(&self) {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.pid)) else { return };
        let threads = threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        threads.for_each(schedule::unpin);
    }

    fn signal(&self, signal: Signal) {
        fault::step();
        self.held.signal(signal);
    }

    fn ended(&self, wait: Duration) -> bool {
        self.held.ended(wait)
    }
}

/// Becomes `command`, which is then killed when the process that started this one dies. Returns only the reason why that
/// failed.
pub fn launch(command: &[OsString]) -> String {
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    let error = std::process::Command::new(&command[0]).args(&command[1..]).exec();
    format!("{}: {error}", command[0].to_string_lossy())
}

/// After SIGKILL: the kernel lets go of a process's sockets one after the other, tens of milliseconds each.
const KILLED: Duration = Duration::from_secs(30);

/// Asks all to end, waits, and kills those that did not; false if one is still there.
pub fn end(processes: &[Process], patience: Duration) -> bool {
    for (signal, wait) in [(Signal::SIGTERM, patience), (Signal::SIGKILL, KILLED)] {
        processes.iter().filter(|process| !process.ended(Duration::ZERO)).for_each(|process| process.signal(signal));
        let until = Instant::now() + wait;
        if processes.iter().all(|process| process.ended(until.saturating_duration_since(Instant::now()))) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_were_given_meanwhile_are_all_looked_at() {
        let numbers = |from, to| given(from, to, 10).collect::<Vec<_>>();
        assert_eq!(numbers(3, 5), [4, 5]);
        assert!(numbers(3, 3).is_empty());
        assert_eq!(numbers(8, 2), [9, 10, 1, 2], "they begin anew");
        assert_eq!(numbers(10, 1), [1]);
    }
}
