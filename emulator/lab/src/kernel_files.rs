//! What the kernel takes through files only: sysctls, and on which CPUs received packets are processed (RPS).
//!
//! Both show the namespace of the thread that opens them: call these in a thread that is in the node's namespace.

use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use ewan_system::process::owned;
use nix::fcntl::{openat, OFlag};
use nix::sys::stat::Mode;

/// Why a sysctl was not set.
pub enum Sysctl {
    /// This kernel has none of that name inside a namespace.
    Absent,
    Refused(std::io::Error),
}

/// Writes below /proc/sys/net, the only part that a network namespace has of its own.
pub fn sysctl(key: &str, value: &str) -> Result<(), Sysctl> {
    let open = OpenOptions::new().write(true).open(Path::new("/proc/sys").join(key));
    let mut file = open.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Sysctl::Absent,
        _ => Sysctl::Refused(error),
    })?;
    file.write_all(value.as_bytes()).map_err(Sysctl::Refused)
}

/// A file system mounted nowhere, as it shows itself to the calling thread: it goes when it is closed. `options`: its
/// flags.
pub fn mounted_nowhere(kind: &CStr, options: &[&CStr]) -> std::io::Result<OwnedFd> {
    const CLOSE_ON_EXEC: libc::c_uint = 1;
    const FLAG: libc::c_uint = 0;
    const CREATE: libc::c_uint = 6;
    let nothing = std::ptr::null::<libc::c_char>();
    // SAFETY: strings end in a zero and outlive the calls; each descriptor is owned as soon as it exists.
    unsafe {
        let context = owned(libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOSE_ON_EXEC))?;
        let fd = context.as_raw_fd();
        for option in options {
            if libc::syscall(libc::SYS_fsconfig, fd, FLAG, option.as_ptr(), nothing, 0) < 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        if libc::syscall(libc::SYS_fsconfig, fd, CREATE, nothing, nothing, 0) < 0 {
            return Err(std::io::Error::last_os_error());
        }
        owned(libc::syscall(libc::SYS_fsmount, fd, CLOSE_ON_EXEC, 0))
    }
}

/// Writes a file of such a file system.
pub fn write_below(directory: &OwnedFd, path: &str, text: &str) -> std::io::Result<()> {
    let file = openat(directory, path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    std::fs::File::from(file).write_all(text.as_bytes())
}

/// A sysfs of the calling thread's network namespace.
pub struct Sysfs(OwnedFd);

impl Sysfs {
    pub fn open() -> std::io::Result<Self> {
        mounted_nowhere(c"sysfs", &[]).map(Sysfs)
    }

    /// Whether there is a file or directory of this path.
    pub fn has(&self, path: &str) -> bool {
        openat(&self.0, path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).is_ok()
    }

    /// Has an interface's received packets processed on `cpus`.
    pub fn steer(&self, interface: &str, cpus: &[u32]) -> std::io::Result<()> {
        write_below(&self.0, &format!("class/net/{interface}/queues/rx-0/rps_cpus"), &mask(cpus))
    }
}

/// CPUs as the kernel writes them: hexadecimal words of 32 bits, the highest first.
fn mask(cpus: &[u32]) -> String {
    let mut words = vec![0u32; cpus.iter().max().map_or(1, |most| most / 32 + 1) as usize];
    for cpu in cpus {
        words[(cpu / 32) as usize] |= 1 << (cpu % 32);
    }
    words.iter().rev().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn a_mask_has_one_word_for_32_cpus() {
        assert_eq!(mask(&[0]), "00000001");
        assert_eq!(mask(&[0, 1, 31]), "80000003");
        assert_eq!(mask(&[0, 33]), "00000002,00000001");
    }
}
