//! How the calling thread is scheduled: its CPUs, its priority, its memory. Each call is about this thread (or, where it
//! says so, this process) and those that it starts afterwards.

use nix::sched::{sched_setaffinity, CpuSet};
use nix::sys::mman::{mlockall, MlockAllFlags};
use nix::unistd::{getpid, getsid, Pid};

use crate::{Context, Error, Result};

/// Keeps the calling thread on these CPUs; none: wherever it may run now. Errors: a number beyond what the kernel can
/// name, or no CPU of these that this thread may use.
pub fn keep_to(cpus: &[u32]) -> Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu as usize).attempting(|| format!("CPU {cpu}"))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).attempting(|| format!("keeping to CPUs {cpus:?}"))
}

/// Puts the calling thread before every ordinary one (SCHED_FIFO). Errors: EPERM, when that is not allowed.
pub fn set_realtime(priority: i32) -> Result<()> {
    set_policy(0, libc::SCHED_FIFO, priority).attempting(|| "SCHED_FIFO")
}

/// An ordinary policy on any CPU for the thread with number `thread`, as every program starts with; best effort, for a
/// thread that ended needs neither.
pub fn unpin(thread: i32) {
    let _ = set_policy(thread, libc::SCHED_OTHER, 0);
    let mut everywhere = CpuSet::new();
    for cpu in 0..CpuSet::count() {
        let _ = everywhere.set(cpu);
    }
    let _ = sched_setaffinity(Pid::from_raw(thread), &everywhere);
}

fn set_policy(thread: i32, policy: i32, priority: i32) -> std::io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads a structure that lives here.
    match unsafe { libc::sched_setscheduler(thread, policy, &parameter) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Sets the calling thread's nice value (on Linux, not the whole process's).
pub fn set_nice(nice: i32) -> Result<()> {
    // SAFETY: no memory is passed.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) } {
        0 => Ok(()),
        _ => Err(Error::last(format!("nice {nice}"))),
    }
}

/// Where sessions share the CPUs as groups (autogroup), a thread's nice value counts within its session alone: raises
/// the session too, if it is ours. Without effect on kernels that know no such groups.
pub fn raise_session() {
    if getsid(None) == Ok(getpid()) {
        let _ = std::fs::write("/proc/self/autogroup", "-20");
    }
}

/// Keeps what this process touches in memory: a page fetched from disk while a packet waits is milliseconds late.
pub fn lock_memory() -> Result<()> {
    let on_fault = MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
    mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | on_fault).attempting(|| "mlockall")
}

/// CPUs of the machine, not of this thread's set.
pub fn cpus_online() -> Option<i64> {
    nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_ONLN).ok().flatten()
}
