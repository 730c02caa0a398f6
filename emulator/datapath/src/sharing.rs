//! Who else spins on this CPU. Each spinner holds a lock on a file named after its CPU, in a directory that only its user
//! can write to, so nobody else can pretend to be one: whatever lab or state directory spinners belong to, they find each
//! other, and a lock goes with its process however it ends. Another one on the same CPU means that both give way when idle.
//!
//! The lock is a shared one of the open file (fcntl(2), F_OFD_SETLK); others are there if an exclusive one is not to be had.
//! The last to leave removes the file. A spinner that was killed leaves its file behind; `sweep` removes it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{fcntl, FcntlArg};

const DIRECTORY: &str = "/run/ewan-spinners";

/// Our own entry; gone when dropped.
pub struct Registration {
    file: File,
    path: PathBuf,
}

impl Registration {
    pub fn new(cpu: u32) -> Result<Registration, String> {
        Registration::within(Path::new(DIRECTORY), cpu)
    }

    fn within(directory: &Path, cpu: u32) -> Result<Registration, String> {
        let path = directory.join(format!("cpu-{cpu}"));
        let say = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        loop {
            own(directory)?;
            let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
            let file = match opened {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue, // the last one left just now
                opened => opened.map_err(|error| say(&error))?,
            };
            let shared = range(libc::F_RDLCK);
            fcntl(&file, FcntlArg::F_OFD_SETLKW(&shared)).map_err(|error| say(&error))?;
            // Whoever held it last may have removed it before we had the lock.
            let (ours, there) = (file.metadata().map_err(|error| say(&error))?, std::fs::metadata(&path));
            if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
                return Ok(Registration { file, path });
            }
        }
    }

    /// Does another spinner use this CPU?
    pub fn is_shared(&self) -> bool {
        let mut exclusive = range(libc::F_WRLCK);
        let asked = fcntl(&self.file, FcntlArg::F_OFD_GETLK(&mut exclusive));
        asked.is_ok() && exclusive.l_type != libc::F_UNLCK as libc::c_short
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        remove_unused(&self.file, &self.path);
        let _ = self.path.parent().map(std::fs::remove_dir); // stays while another CPU has a file
    }
}

/// Removes the files of spinners that were killed: those that nobody holds a lock on.
pub fn sweep() {
    sweep_within(Path::new(DIRECTORY));
}

fn sweep_within(directory: &Path) {
    let ours = |found: std::fs::Metadata| found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw();
    if !directory.symlink_metadata().is_ok_and(ours) {
        return;
    }
    for path in std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let opened = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(&path);
        if let Ok(file) = opened {
            remove_unused(&file, &path);
        }
    }
    let _ = std::fs::remove_dir(directory);
}

/// Removes the file at `path`, which is open as `file`, unless another open file holds a lock on it.
fn remove_unused(file: &File, path: &Path) {
    // Held exclusively, nobody else is there; who comes now waits, and then finds another file than it opened.
    let exclusive = range(libc::F_WRLCK);
    if fcntl(file, FcntlArg::F_OFD_SETLK(&exclusive)).is_err() {
        return;
    }
    // Between the two calls of a sweep the last spinner may have left and another one may have come.
    let same = |there: std::fs::Metadata| file.metadata().is_ok_and(|own| own.ino() == there.ino());
    if std::fs::symlink_metadata(path).is_ok_and(same) {
        let _ = std::fs::remove_file(path);
    }
}

/// Of the whole file.
fn range(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

/// The directory is there, is ours, and no one else may write to it.
fn own(directory: &Path) -> Result<(), String> {
    let say = |error: &dyn std::fmt::Display| format!("{}: {error}", directory.display());
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(say(&error)),
        _ => {}
    }
    let found = match directory.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return own(directory),
        found => found.map_err(|error| say(&error))?,
    };
    if found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw() && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(say(&"is no directory that this user alone can write to: remove it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{symlink, PermissionsExt};

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("ewan-{name}-{}", std::process::id()))
    }

    #[test]
    fn sees_a_live_one_on_the_same_cpu_and_no_other() {
        let place = place("sharing");
        let new = |cpu| Registration::within(&place, cpu).unwrap();
        let one = new(1);
        assert!(!one.is_shared());
        let other = new(2);
        assert!(!one.is_shared(), "another CPU");
        drop(other);
        let two = new(1);
        assert!(one.is_shared() && two.is_shared());
        drop(one);
        assert!(!two.is_shared(), "it went with its process");
        let three = new(1);
        assert!(two.is_shared() && three.is_shared());
        drop((two, three));
        assert!(!place.exists(), "nothing is left");
    }

    #[test]
    fn a_place_that_others_can_write_to_is_refused() {
        let (place, target) = (place("open"), place("target"));
        std::fs::create_dir(&place).unwrap();
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o777)).unwrap();
        let refused = Registration::within(&place, 1).err().expect("refused");
        assert!(refused.ends_with("alone can write to: remove it"), "{refused}");
        std::fs::remove_dir(&place).unwrap();
        std::fs::create_dir(&target).unwrap();
        symlink(&target, &place).unwrap();
        assert!(Registration::within(&place, 1).is_err(), "a link to somewhere else");
        std::fs::remove_file(&place).unwrap();
        std::fs::remove_dir(&target).unwrap();
    }

    #[test]
    fn a_sweep_removes_what_killed_ones_left_and_nothing_of_live_ones() {
        let place = place("sweep");
        let live = Registration::within(&place, 1).unwrap();
        std::fs::write(place.join("cpu-2"), "").unwrap(); // no process has it open
        sweep_within(&place);
        assert!(place.join("cpu-1").exists() && !place.join("cpu-2").exists());
        drop(live);
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join("cpu-2"), "").unwrap();
        sweep_within(&place);
        assert!(!place.exists(), "the directory goes with the last file");
        sweep_within(&place);
    }

    #[test]
    fn many_that_come_and_go_never_miss_each_other() {
        let place = place("many");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let one = Registration::within(&place, 1).unwrap();
                        let two = Registration::within(&place, 1).unwrap();
                        assert!(one.is_shared() && two.is_shared());
                    }
                });
            }
        });
        assert!(!place.exists());
    }
}
