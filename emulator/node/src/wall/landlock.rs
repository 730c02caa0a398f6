//! Landlock: rules on paths, TCP, signals and abstract sockets, which a process sets for itself and its children
//! (Linux 5.13; Documentation/userspace-api/landlock.rst).
//!
//! In: what is shown and what may be written to. Out: this process and all that it starts have no other right. Looking
//! at other processes (ptrace) is refused by Landlock as such.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ewan_system::process::owned;
use ewan_system::{Context, Error, Result};

use zerocopy::{Immutable, IntoBytes};

use super::{place, tree, Request};

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE;
const SHOWN: u64 = EXECUTE | READ_FILE | READ_DIR;
/// Plain files and directories: no link, socket, pipe or device.
const WRITTEN: u64 =
    READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | REFER;
const DEVICE: u64 = READ_FILE | WRITE_FILE;
/// All rights to files that a version knows, from version 0 on.
const RIGHTS: [u64; 6] = [0, (1 << 13) - 1, (1 << 14) - 1, (1 << 15) - 1, (1 << 15) - 1, (1 << 16) - 1];
const BIND_AND_CONNECT_TCP: u64 = 3;
const ABSTRACT_SOCKETS_AND_SIGNALS: u64 = 3;
const CREATE_VERSION: u32 = 1;
const PATH_BENEATH: u32 = 1;

#[repr(C)]
#[derive(IntoBytes, Immutable)]
struct Ruleset {
    files: u64,
    /// From version 4 on.
    network: u64,
    /// From version 6 on.
    scoped: u64,
}

#[repr(C, packed)]
#[derive(IntoBytes, Immutable)]
struct PathRule {
    allowed: u64,
    parent: i32,
}

/// The kernel's, 0 where there is none.
pub fn version() -> usize {
    // SAFETY: asking for the version passes no memory.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<Ruleset>(), 0usize, CREATE_VERSION)
    };
    usize::try_from(version).unwrap_or(0)
}

/// Restricts this thread, for good. `inside`: the file tree has nothing but what is shown, so all of it may be listed.
pub fn restrict(request: &Request, inside: bool) -> Result<()> {
    let version = version();
    if version == 0 {
        return Ok(());
    }
    let rights = RIGHTS[version.min(RIGHTS.len() - 1)];
    let all = Ruleset {
        files: rights,
        network: if version >= 4 { BIND_AND_CONNECT_TCP } else { 0 },
        scoped: if version >= 6 { ABSTRACT_SOCKETS_AND_SIGNALS } else { 0 },
    };
    let size = match version {
        1..4 => 8,
        4..6 => 16,
        _ => 24,
    };
    // SAFETY: `all` has at least `size` bytes; what comes back is a new descriptor or an error.
    let rules = unsafe { owned(libc::syscall(libc::SYS_landlock_create_ruleset, &raw const all, size as usize, 0)) }
        .attempting(|| "Landlock: making rules")?;
    if inside {
        allow(&rules, Path::new("/"), READ_DIR)?;
    }
    let shown = request.reads.iter().filter_map(|path| Some((path.as_path(), place(path)?)));
    shown.into_iter().try_for_each(|(path, parent)| allow_at(&rules, path, &parent.into(), SHOWN & rights))?;
    let files = tree::FILES.iter().map(Path::new);
    files.map(|path| (path, SHOWN)).try_for_each(|(path, right)| allow(&rules, path, right & rights))?;
    let devices = tree::DEVICES.iter().map(Path::new);
    devices.map(|path| (path, DEVICE)).try_for_each(|(path, right)| allow(&rules, path, right & rights))?;
    request.writes.iter().try_for_each(|path| allow(&rules, path, WRITTEN & rights))?;
    // Newer kernels keep the start of their programs' processes as a file beside the memory, which is executed there.
    let mut executed = request.builds.iter().chain(&request.memory_in);
    executed.try_for_each(|path| allow(&rules, path, (WRITTEN | EXECUTE) & rights))?;
    nix::sys::prctl::set_no_new_privs().attempting(|| "giving up new privileges")?;
    // SAFETY: a descriptor that we own.
    match unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) } {
        0 => Ok(()),
        _ => Err(Error::last("Landlock: setting rules")),
    }
}

/// What is not there, or cannot be reached, gives no right.
fn allow(rules: &OwnedFd, path: &Path, right: u64) -> Result<()> {
    let mut options = OpenOptions::new();
    let Ok(parent) = options.read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(path) else { return Ok(()) };
    allow_at(rules, path, &parent, right)
}

fn allow_at(rules: &OwnedFd, path: &Path, parent: &File, right: u64) -> Result<()> {
    let allowed = if is_directory(parent) { right } else { right & OF_FILES };
    let rule = PathRule { allowed, parent: parent.as_raw_fd() };
    // SAFETY: both descriptors are open, and the rule has the form that its type says.
    let added =
        unsafe { libc::syscall(libc::SYS_landlock_add_rule, rules.as_raw_fd(), PATH_BENEATH, &raw const rule, 0) };
    match added {
        0 => Ok(()),
        _ => Err(Error::last(format!("Landlock: a rule for {}", path.display()))),
    }
}

fn is_directory(file: &File) -> bool {
    file.metadata().is_ok_and(|found| found.is_dir())
}
