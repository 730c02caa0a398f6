//! What the kernel allows this process, and how more of it is asked for.

use nix::sys::resource::{getrlimit, setrlimit, Resource};

/// As many open files as this process may have, and `wanted` where that is more and the kernel lets us.
pub fn raise_open_files(wanted: u64) {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let most = hard.max(wanted);
        if setrlimit(Resource::RLIMIT_NOFILE, most, most).is_err() {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
    }
}
