//! Namespaces of the guest's own: processes, network, System V IPC, names, and a file tree of what is shown and nothing
//! else.
//!
//! In: paths. Out: the calling process is in the tree. What is shown lies where it lies outside, read-only; symbolic
//! links on the way to it are there too. Needs root, or a namespace of users.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::{create_dir_all, File};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use ewan_system::{Context, Error, Result};

use nix::mount::{mount, umount2, MntFlags, MsFlags};

use super::{limits, place, Caller, Request};

/// The tree is made here, where nothing lies that is shown.
const PLACE: &str = "/sys";
/// What the virtual kernel mounts on, whether something is shown there or not.
const PLACES: [&str; 8] = ["/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp", "/etc", "/dev/shm"];
/// Older names of places, by which programs know them: FRRouting's sockets lie in /var/run/frr.
const OLDER_NAMES: [(&str, &str); 2] = [("/var/run", "/run"), ("/var/lock", "/run/lock")];
pub const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// The virtual kernel takes the processor's features from there.
pub const FILES: [&str; 1] = ["/proc/cpuinfo"];
const NOTHING: Option<&str> = None;
const MOST_LINKS: usize = 40;
/// Beyond what the kernel is given: other files of its processes.
const BEYOND: u64 = 64 << 20;

const READ_ONLY: u64 = 1;
const NO_SETUID: u64 = 2;
const NO_DEVICES: u64 = 4;
const NO_EXECUTION: u64 = 8;

/// As fork, into namespaces of the child's own; the error says which right is missing.
pub fn fork(caller: Caller) -> std::result::Result<i32, String> {
    let spaces = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
    let mut attempts = vec![spaces | libc::CLONE_NEWUSER];
    if caller.uid.is_root() {
        attempts.insert(0, spaces);
    }
    let mut why = String::new();
    for flags in attempts {
        // SAFETY: this process has one thread, and the child goes on with a copy of its stack, as after fork.
        let child = unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) };
        if child < 0 {
            why = std::io::Error::last_os_error().to_string();
            continue;
        }
        if child == 0 && flags & libc::CLONE_NEWUSER != 0 {
            if let Err(error) = map(caller) {
                eprintln!("ewan-node: {error}");
                std::process::exit(2);
            }
        }
        return Ok(child as i32);
    }
    Err(why)
}

/// The caller is himself in his namespace of users; all others are nobody there.
fn map(caller: Caller) -> Result<()> {
    let write = |file: &str, text: String| std::fs::write(file, text).attempting(|| file.to_owned());
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("{0} {0} 1", caller.uid))?;
    write("/proc/self/gid_map", format!("{0} {0} 1", caller.gid))
}

/// Makes the tree the root of the calling process, the first of its namespaces.
pub fn enter(request: &Request) -> std::result::Result<(), String> {
    Ok(make(request)?)
}

fn make(request: &Request) -> Result<()> {
    limits::number_processes(request.processes)?;
    mount(NOTHING, "/", NOTHING, MsFlags::MS_PRIVATE | MsFlags::MS_REC, NOTHING).attempting(|| "separating mounts")?;
    attach_memory(Path::new(PLACE), "mode=0755,size=4m,nr_inodes=8k")?;
    let mut tree = Tree { root: PLACE.into(), shown: BTreeSet::new() };
    for place in PLACES {
        tree.directory(Path::new(place))?;
    }
    for (name, place) in OLDER_NAMES {
        symlink(place, tree.at(Path::new(name))).attempting(|| format!("making {name}"))?;
    }
    let mut reads: Vec<&Path> = request.reads.iter().map(PathBuf::as_path).collect();
    reads.sort_by_key(|path| path.components().count());
    for path in reads {
        tree.show(path)?;
    }
    for path in &request.links {
        tree.link(path, MOST_LINKS);
    }
    // Their places are made while the tree can still be written to.
    let written = request.writes.iter().chain(&request.builds);
    for path in written.chain(&request.memory_in).filter(|path| !tree.covers(path)) {
        tree.directory(path)?;
    }
    for path in DEVICES.iter().chain(&FILES).map(Path::new) {
        tree.file(path)?;
    }
    set(Path::new(PLACE), libc::AT_RECURSIVE as u32, READ_ONLY | NO_SETUID | NO_DEVICES, 0)?;
    for path in DEVICES.iter().chain(&FILES).map(Path::new) {
        // A device that is not there is not shown. What is written to one goes to the device also where its mount, and so
        // its mode, owner and times, is read-only.
        if tree.bind(path).is_ok() {
            set(&tree.at(path), 0, READ_ONLY | NO_SETUID | NO_EXECUTION, 0)?;
        }
    }
    for path in &request.writes {
        tree.bind(path)?;
        set(&tree.at(path), 0, NO_SETUID | NO_DEVICES | NO_EXECUTION, READ_ONLY)?;
    }
    for path in &request.builds {
        tree.bind(path)?;
        set(&tree.at(path), 0, NO_SETUID | NO_DEVICES, READ_ONLY)?;
    }
    if let Some(path) = &request.memory_in {
        attach_memory(&tree.at(path), &format!("mode=0700,size={}", request.memory + BEYOND))?;
    }
    nix::unistd::chdir(PLACE).attempting(|| format!("entering {PLACE}"))?;
    nix::unistd::pivot_root(".", ".").attempting(|| "changing the root")?;
    umount2(".", MntFlags::MNT_DETACH).attempting(|| "leaving the former root")?;
    let directory = request.writes.iter().chain(&request.builds).next().map_or(Path::new("/"), PathBuf::as_path);
    nix::unistd::chdir(directory).attempting(|| format!("entering {}", directory.display()))
}

fn attach_memory(at: &Path, options: &str) -> Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("ewan"), at, Some("tmpfs"), flags, Some(options))
        .attempting(|| format!("mounting memory on {}", at.display()))
}

/// A tree below `root`; what is `shown` lies there as outside.
struct Tree {
    root: PathBuf,
    shown: BTreeSet<PathBuf>,
}

impl Tree {
    fn at(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn covers(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.shown.contains(above))
    }

    fn directory(&self, path: &Path) -> Result<()> {
        let place = self.at(path);
        create_dir_all(&place).attempting(|| format!("making {}", place.display()))
    }

    fn file(&self, path: &Path) -> Result<()> {
        if let Some(above) = path.parent() {
            self.directory(above)?;
        }
        let place = self.at(path);
        File::create(&place).attempting(|| format!("making {}", place.display())).map(drop)
    }

    fn bind(&self, path: &Path) -> Result<()> {
        self.bind_from(path, path)
    }

    fn bind_from(&self, what: &Path, path: &Path) -> Result<()> {
        mount(Some(what), &self.at(path), NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)
            .attempting(|| format!("showing {}", path.display()))
    }

    /// Shows what lies at `path`, and nothing where a symbolic link is on the way. What is not there is left out.
    fn show(&mut self, path: &Path) -> Result<()> {
        if self.covers(path) {
            return Ok(());
        }
        let Some(found) = place(path).map(File::from) else { return Ok(()) };
        match found.metadata() {
            Ok(status) if status.is_dir() => self.directory(path)?,
            Ok(_) => self.file(path)?,
            Err(_) => return Ok(()),
        }
        self.bind_from(Path::new(&format!("/proc/self/fd/{}", found.as_raw_fd())), path)?;
        self.shown.insert(path.to_owned());
        Ok(())
    }

    /// Makes the symbolic links on the way that `path` goes, until it comes to what is shown.
    fn link(&self, path: &Path, links: usize) {
        let mut real = PathBuf::from("/");
        let mut parts = path.components();
        while let Some(part) = parts.next() {
            match part {
                Component::Normal(name) => real.push(name),
                Component::ParentDir => drop(real.pop()),
                _ => continue,
            }
            let Ok(found) = real.symlink_metadata() else { return };
            if !found.is_symlink() {
                continue;
            }
            let Ok(target) = std::fs::read_link(&real) else { return };
            let above = real.parent().unwrap_or(Path::new("/"));
            if !self.covers(&real) {
                // One that was a directory before is not gone through: outside of the tree something else lies there.
                let is_link = |path: &Path| self.at(path).symlink_metadata().is_ok_and(|found| found.is_symlink());
                if above.ancestors().any(is_link) || self.directory(above).is_err() {
                    return;
                }
                let _ = symlink(&target, self.at(&real));
            }
            if links > 0 {
                self.link(&above.join(target).join(parts.as_path()), links - 1);
            }
            return;
        }
    }
}

#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    users: u64,
}

/// Changes what may be done at a mount (mount_setattr, Linux 5.12).
fn set(path: &Path, flags: u32, set: u64, clear: u64) -> Result<()> {
    let attempt = || format!("restricting {}", path.display());
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| Error::new(attempt(), nix::Error::EINVAL))?;
    let wanted = Attributes { set, clear, propagation: 0, users: 0 };
    let size = size_of::<Attributes>();
    // SAFETY: a path that ends in NUL, and a structure of the size that is said.
    let done = unsafe {
        libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, name.as_ptr(), flags, &raw const wanted, size)
    };
    match done {
        0 => Ok(()),
        _ => Err(Error::last(attempt())),
    }
}
