//! Lets go of a spinner's sockets, many at a time, when the process is about to end.
//!
//! The kernel waits for an RCU grace period (some 12 ms) for each AF_XDP socket that closes, and closes those of an
//! ending process one after the other: seconds for a hundred links. Waits that overlap share a grace period.

use std::os::fd::RawFd;

const AT_A_TIME: usize = 64;

/// Closes every socket of this process. Nothing may use one afterwards: only for the way out.
pub fn sockets() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let sockets: Vec<RawFd> = entries
        .flatten()
        .filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:")))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    std::thread::scope(|scope| {
        for some in sockets.chunks(sockets.len().div_ceil(AT_A_TIME).max(1)) {
            scope.spawn(move || {
                for fd in some {
                    // SAFETY: whoever owns it never closes it: the process ends before.
                    unsafe { libc::close(*fd) };
                }
            });
        }
    });
}
