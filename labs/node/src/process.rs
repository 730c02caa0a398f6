//! Finding and ending the processes that belong to a lab: by what they are, never by name alone.
//!
//! A process is held by a descriptor (pidfd) before it is looked at, so the one that is ended is the one that was
//! looked at, whatever happens to its number in between.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::{fault, namespace};

#[derive(Serialize)]
pub struct Process {
    pub pid: i32,
    pub command: String,
    #[serde(skip)]
    fd: OwnedFd,
}

fn arguments(pid: i32) -> Vec<String> {
    let text = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    text.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// All processes but this one for which `belongs` holds.
fn find(belongs: impl Fn(i32) -> bool) -> Vec<Process> {
    let own = std::process::id() as i32;
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let held = pids.filter(|pid| *pid != own && *pid != 1).filter_map(|pid| {
        // SAFETY: the descriptor is owned as soon as it exists.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32;
        (fd >= 0).then(|| Process { pid, command: String::new(), fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    });
    held.filter(|process| belongs(process.pid))
        .map(|process| Process { command: arguments(process.pid).join(" ").trim().to_owned(), ..process })
        .collect()
}

/// `ewan-node link … --id ID`, whatever the binary's file is called: nobody else has a lab's id on its command line.
pub fn of_manifest(id: &str) -> Vec<Process> {
    find(|pid| {
        let arguments = arguments(pid);
        arguments.get(1).is_some_and(|command| command == "link")
            && arguments.windows(2).any(|pair| pair[0] == "--id" && pair[1] == id)
    })
}

/// Processes that live in one of these namespaces; files without a namespace on them count for nothing.
pub fn inside(namespaces: &[PathBuf]) -> Vec<Process> {
    let own = namespace::identity(Path::new("/proc/self/ns/net"));
    let real = namespaces.iter().filter(|path| namespace::open(path).is_some());
    let theirs: HashSet<_> =
        real.filter_map(|path| namespace::identity(path)).filter(|identity| Some(*identity) != own).collect();
    if theirs.is_empty() {
        return Vec::new();
    }
    find(|pid| {
        namespace::identity(Path::new(&format!("/proc/{pid}/ns/net")))
            .is_some_and(|identity| theirs.contains(&identity))
    })
}

impl Process {
    /// Lets a process run anywhere, as others do: one that is pinned to a CPU where somebody else spins with
    /// real-time priority would wait there to end, for as long as that one spins.
    pub fn unpin(&self) {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.pid)) else { return };
        for thread in threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
            // SAFETY: all-zero structures are valid and outlive the calls; a thread that ended needs neither.
            unsafe {
                let normal: libc::sched_param = std::mem::zeroed();
                libc::sched_setscheduler(thread, libc::SCHED_OTHER, &raw const normal);
                let everywhere = [u8::MAX; size_of::<libc::cpu_set_t>()];
                libc::sched_setaffinity(thread, everywhere.len(), everywhere.as_ptr().cast());
            }
        }
    }

    fn signal(&self, signal: i32) {
        fault::step();
        // SAFETY: a plain system call on a descriptor we own; a process that is gone already is what we want.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.fd.as_raw_fd(), signal, 0, 0) };
    }

    fn ended(&self, wait: Duration) -> bool {
        let mut poll = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, which outlives the call.
        unsafe { libc::poll(&raw mut poll, 1, wait.as_millis() as i32) == 1 }
    }
}

/// Becomes `command`, which is then killed when the process that started this one dies. Returns only the reason why that
/// failed.
pub fn launch(command: &[OsString]) -> String {
    // SAFETY: a plain system call about this process.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let error = std::process::Command::new(&command[0]).args(&command[1..]).exec();
    format!("{}: {error}", command[0].to_string_lossy())
}

/// After SIGKILL: the kernel lets go of a process's sockets one after the other, tens of milliseconds each.
const KILLED: Duration = Duration::from_secs(30);

/// Asks all to end, waits, and kills those that did not; false if one is still there.
pub fn end(processes: &[Process], patience: Duration) -> bool {
    for (signal, wait) in [(libc::SIGTERM, patience), (libc::SIGKILL, KILLED)] {
        processes.iter().filter(|process| !process.ended(Duration::ZERO)).for_each(|process| process.signal(signal));
        let until = Instant::now() + wait;
        if processes.iter().all(|process| process.ended(until.saturating_duration_since(Instant::now()))) {
            return true;
        }
    }
    false
}
