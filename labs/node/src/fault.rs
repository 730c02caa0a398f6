//! Lets a test kill this process at a chosen step: with EWAN_FAULT_AFTER=k in the environment it gets SIGKILL
//! before its k-th step (counted from 0). Steps are whatever changes the system: each file, namespace, batch, write.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::OnceLock;

pub fn step() {
    static LEFT: OnceLock<Option<AtomicI64>> = OnceLock::new();
    let left = LEFT.get_or_init(|| std::env::var("EWAN_FAULT_AFTER").ok()?.parse().ok().map(AtomicI64::new));
    if let Some(left) = left {
        if left.fetch_sub(1, Ordering::SeqCst) == 0 {
            // SAFETY: the process ends here; nothing else is asked of it.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
    }
}
