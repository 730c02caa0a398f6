//! Network namespaces with names, as ip-netns(8) keeps them: a file below /run/netns with the namespace mounted on it.
//!
//! In: paths. Out: namespaces that outlive this process; `ip netns` sees them.

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::mount::{mount, umount2, MntFlags, MsFlags};
use nix::sched::{setns, unshare, CloneFlags};
use nix::sys::statfs::{fstatfs, FsType};

use crate::fault;

const DIRECTORY: &str = "/run/netns";
const NSFS_MAGIC: FsType = FsType(0x6e73_6673);
const NOTHING: Option<&str> = None;

pub fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// Makes /run/netns a shared mount, so that namespaces made in one mount namespace are seen, and let go, in others.
pub fn prepare() -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| format!("preparing {DIRECTORY}: {error}");
    std::fs::create_dir_all(DIRECTORY).map_err(|error| fail(&error))?;
    // `ip netns add` takes the same lock: otherwise two of us would mount the directory on itself twice.
    let directory = File::open(DIRECTORY).map_err(|error| fail(&error))?;
    let _lock = Flock::lock(directory, FlockArg::LockExclusive).map_err(|(_, error)| fail(&error))?;
    let share = || mount(NOTHING, DIRECTORY, NOTHING, MsFlags::MS_SHARED | MsFlags::MS_REC, NOTHING);
    if share().is_err() {
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(Some(DIRECTORY), DIRECTORY, NOTHING, flags, NOTHING).map_err(|error| fail(&error))?;
        share().map_err(|error| fail(&error))?;
    }
    Ok(())
}

/// Why a namespace could not be made; `taken` when its name was somebody else's.
pub struct Failed {
    pub taken: bool,
    pub why: String,
}

/// Makes a namespace; the calling thread is in it afterwards.
pub fn create(path: &Path) -> Result<File, Failed> {
    let fail = |what: &str, error: &dyn std::fmt::Display| Failed {
        taken: false,
        why: format!("{what} {}: {error}", path.display()),
    };
    fault::step();
    let exclusive = OpenOptions::new().read(true).write(true).create_new(true).mode(0o444).open(path);
    exclusive.map_err(|error| Failed {
        taken: error.kind() == std::io::ErrorKind::AlreadyExists,
        ..fail("creating", &error)
    })?;
    fault::step();
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| fail("making network namespace", &error))?;
    fault::step();
    let own = "/proc/thread-self/ns/net";
    mount(Some(own), path, NOTHING, MsFlags::MS_BIND, NOTHING).map_err(|error| fail("mounting", &error))?;
    File::open(own).map_err(|error| fail("opening", &error))
}

/// Opens a namespace; none if the file is absent or no namespace is mounted on it.
pub fn open(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    let kind = fstatfs(&file).ok()?.filesystem_type();
    (kind == NSFS_MAGIC).then_some(file)
}

/// What tells one namespace from another: device and inode.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Moves the calling thread.
pub fn enter(namespace: impl AsFd) -> Result<(), String> {
    setns(namespace, CloneFlags::CLONE_NEWNET).map_err(|error| format!("entering a network namespace: {error}"))
}

/// Unmounts and removes a namespace, however much of it there is.
pub fn remove(path: &Path) -> Result<bool, String> {
    if !path.exists() {
        return Ok(false);
    }
    fault::step();
    while umount2(path, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW).is_ok() {}
    fault::step();
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("removing {}: {error}", path.display()))
        }
        _ => Ok(true),
    }
}
