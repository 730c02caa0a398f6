//! Lets a test kill this process at a chosen step: with EWAN_FAULT_AFTER=k in the environment it gets SIGKILL
//! before its k-th step (counted from 0). Steps are whatever changes the system: each file, namespace, batch, write.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::OnceLock;

use nix::sys::signal::{raise, Signal};

/// To be called before each change of the system.
pub fn step() {
    static LEFT: OnceLock<Option<AtomicI64>> = OnceLock::new();
    let left = LEFT.get_or_init(|| std::env::var("EWAN_FAULT_AFTER").ok()?.parse().ok().map(AtomicI64::new));
    if let Some(left) = left {
        if left.fetch_sub(1, Ordering::SeqCst) == 0 {
            let _ = raise(Signal::SIGKILL);
        }
    }
}
