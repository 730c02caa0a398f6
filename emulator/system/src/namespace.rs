//! Network namespaces with names, as ip-netns(8) keeps them: a file below /run/netns with the namespace mounted on it.
//!
//! In: paths. Out: namespaces that outlive this process (`ip netns` sees them), and threads that are in one.

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::mount::{mount, umount2, MntFlags, MsFlags};
use nix::sched::{setns, unshare, CloneFlags};
use nix::sys::statfs::{fstatfs, FsType};

use crate::{fault, Context, Error, Result};

const DIRECTORY: &str = "/run/netns";
const NSFS_MAGIC: FsType = FsType(0x6e73_6673);
const NOTHING: Option<&str> = None;
/// The namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// The file of the namespace `name`.
pub fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// Makes /run/netns a shared mount, so that namespaces made in one mount namespace are seen, and let go, in others.
pub fn prepare() -> Result<()> {
    let say = || format!("preparing {DIRECTORY}");
    std::fs::create_dir_all(DIRECTORY).attempting(say)?;
    // `ip netns add` takes the same lock: otherwise two of us would mount the directory on itself twice.
    let directory = File::open(DIRECTORY).attempting(say)?;
    let _lock = Flock::lock(directory, FlockArg::LockExclusive).map_err(|(_, error)| error).attempting(say)?;
    let share = || mount(NOTHING, DIRECTORY, NOTHING, MsFlags::MS_SHARED | MsFlags::MS_REC, NOTHING);
    if share().is_err() {
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(Some(DIRECTORY), DIRECTORY, NOTHING, flags, NOTHING).attempting(say)?;
        share().attempting(say)?;
    }
    Ok(())
}

/// Why a namespace could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The name is somebody else's: nothing was made.
    #[error("{0}")]
    Taken(Error),
    #[error("{0}")]
    Failed(#[from] Error),
}

/// Makes a namespace; the calling thread is in it afterwards.
pub fn create(path: &Path) -> std::result::Result<File, CreateError> {
    let say = |what: &'static str| move || format!("{what} {}", path.display());
    fault::step();
    let exclusive = OpenOptions::new().read(true).write(true).create_new(true).mode(0o444).open(path);
    exclusive.attempting(say("creating")).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => CreateError::Taken(error),
        _ => CreateError::Failed(error),
    })?;
    fault::step();
    unshare(CloneFlags::CLONE_NEWNET).attempting(say("making network namespace"))?;
    fault::step();
    mount(Some(OWN), path, NOTHING, MsFlags::MS_BIND, NOTHING).attempting(say("mounting"))?;
    Ok(File::open(OWN).attempting(say("opening"))?)
}

/// Makes a namespace without a name, which is gone with the last thread in it and the last descriptor of it, however the
/// process ends; the calling thread is in it afterwards.
pub fn anonymous() -> Result<File> {
    unshare(CloneFlags::CLONE_NEWNET).attempting(|| "making a network namespace")?;
    own()
}

/// The namespace that the calling thread is in.
pub fn own() -> Result<File> {
    File::open(OWN).attempting(|| OWN)
}

/// Opens a namespace; none if the file is absent or no namespace is mounted on it.
pub fn open(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    let kind = fstatfs(&file).ok()?.filesystem_type();
    (kind == NSFS_MAGIC).then_some(file)
}

/// What tells one namespace from another: device and inode; none if the file is absent.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Moves the calling thread, and with it the sockets that it will open.
pub fn enter(namespace: impl AsFd) -> Result<()> {
    setns(namespace, CloneFlags::CLONE_NEWNET).attempting(|| "entering a network namespace")
}

/// The same by the namespace's file.
pub fn enter_path(path: &Path) -> Result<()> {
    let namespace = File::open(path).attempting(|| path.display().to_string())?;
    setns(namespace, CloneFlags::CLONE_NEWNET).attempting(|| format!("entering {}", path.display()))
}

/// Runs `action` with the calling thread in the namespace of file `path`; afterwards the thread is in `home` again, which
/// is where it came from. `E`: the action's own error.
pub fn within<T, E: From<Error>>(
    path: &Path,
    home: impl AsFd,
    action: impl FnOnce() -> std::result::Result<T, E>,
) -> std::result::Result<T, E> {
    enter_path(path)?;
    let result = action();
    // Staying behind would send what comes next from the wrong node.
    enter(home).expect("return to the own network namespace");
    result
}

/// Unmounts and removes a namespace, however much of it there is; false if there is none.
pub fn remove(path: &Path) -> Result<bool> {
    if !path.exists() {
        return Ok(false);
    }
    fault::step();
    while umount2(path, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW).is_ok() {}
    fault::step();
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::new(format!("removing {}", path.display()), error))
        }
        _ => Ok(true),
    }
}
