//! What a process may take: memory, processes, capabilities.
//!
//! In: the request. Out: limits of this process, which all that it starts inherit. The kernel's memory is a shared file,
//! whose size its file system bounds; what is beyond it is private and small.

use std::os::unix::fs::MetadataExt;

use ewan_system::{Context, Error, Result};

use nix::sys::resource::{getrlimit, setrlimit, Resource};
use nix::unistd::geteuid;

use super::Request;

/// Private memory of each process. A kernel takes some MB, programs of the host that are tested here some more.
const PRIVATE: u64 = 512 << 20;
/// Address space of each process, beyond twice the kernel's memory: it is mapped once, and in pieces once more.
const ADDRESSES: u64 = 4 << 30;
const LAST_CAPABILITY: libc::c_ulong = 63;
const CAP_DAC_OVERRIDE: libc::c_ulong = 1;
const CAP_DAC_READ_SEARCH: libc::c_ulong = 2;
const CAPABILITY_VERSION: u32 = 0x2008_0522;
/// From here on each namespace of processes has a highest number of its own (Linux 6.14).
const OWN_HIGHEST: (u32, u32) = (6, 14);
const LEAST_HIGHEST: u64 = 400;

/// `inside`: this is the first process of namespaces of its own.
pub fn set(request: &Request, inside: bool) -> Result<()> {
    lower(Resource::RLIMIT_CORE, 0)?;
    lower(Resource::RLIMIT_DATA, PRIVATE)?;
    lower(Resource::RLIMIT_AS, 2 * request.memory + ADDRESSES)?;
    // Without a namespace of users, all processes of the user count.
    let others = if inside { 0 } else { threads() };
    lower(Resource::RLIMIT_NPROC, request.processes + others)?;
    drop_capabilities(request)
}

/// Bounds the numbers of processes, while /proc is still there. Root has no other limit of theirs.
pub fn number_processes(most: u64) -> Result<()> {
    if !geteuid().is_root() || !numbers_are_own() {
        return Ok(());
    }
    let file = "/proc/sys/kernel/pid_max";
    std::fs::write(file, most.max(LEAST_HIGHEST).to_string()).attempting(|| file)
}

/// Whether a bound on their number holds for this user.
pub fn are_for_processes(inside: bool) -> bool {
    !geteuid().is_root() || (inside && numbers_are_own())
}

/// On an older kernel the number that is written would be the whole machine's.
fn numbers_are_own() -> bool {
    let Ok(name) = nix::sys::utsname::uname() else { return false };
    let release = name.release().to_string_lossy().into_owned();
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map_while(|part| part.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= OWN_HIGHEST
}

/// All threads of the machine, as /proc/loadavg counts them.
fn threads() -> u64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let total = text.split_whitespace().nth(3).and_then(|part| part.split_once('/')?.1.parse().ok());
    total.unwrap_or(1 << 15)
}

fn lower(what: Resource, most: u64) -> Result<()> {
    let attempt = || format!("limiting {what:?} to {most}");
    let (_, hard) = getrlimit(what).attempting(attempt)?;
    let most = most.min(hard);
    setrlimit(what, most, most).attempting(attempt)
}

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// None are left; root alone keeps the right to the files of others where the run's directory is somebody else's.
fn drop_capabilities(request: &Request) -> Result<()> {
    let own = |path: &std::path::PathBuf| std::fs::metadata(path).is_ok_and(|found| found.uid() == geteuid().as_raw());
    let keeps = geteuid().is_root() && !request.writes.iter().chain(&request.builds).all(own);
    let kept = |number| keeps && [CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH].contains(&number);
    for number in (0..=LAST_CAPABILITY).filter(|number| !kept(*number)) {
        // SAFETY: no memory is passed. Without the right to it, or for a number that there is not, nothing happens.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) };
    }
    let low = (0..32).filter(|number| kept(*number)).fold(0u32, |set, number| set | 1 << number);
    // Effective, permitted, inheritable; then those from number 32 on.
    let sets: [u32; 6] = [low, low, 0, 0, 0, 0];
    let header = Header { version: CAPABILITY_VERSION, pid: 0 };
    // SAFETY: version 3 of the call reads two sets of three words.
    match unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) } {
        0 => Ok(()),
        _ => Err(Error::last("giving up capabilities")),
    }
}
