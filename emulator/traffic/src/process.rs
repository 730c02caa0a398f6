//! What this process needs before it sends: CPUs, timers that fire on time, and room for the sockets.

use ewan_system::limits::raise_open_files;
use ewan_system::schedule::keep_to;

use crate::clock::Clock;

const THREADS: &str = "/proc/sys/kernel/threads-max";
const MOST_THREADS: &str = "100000";
const MOST_FILES: &str = "/proc/sys/fs/nr_open";

/// For this thread and those that it starts. No `cpus`: anywhere.
pub fn prepare(cpus: &[u32], clock: Clock) -> Result<(), String> {
    keep_to(cpus)?;
    clock.prepare()?;
    if clock == Clock::Virtual {
        // Its kernel is ours alone; of the little memory that it has, it would allow few threads.
        std::fs::write(THREADS, MOST_THREADS).map_err(|error| format!("{THREADS}: {error}"))?;
    }
    // As many as the kernel lets anybody have, three a TCP flow; without the right to that, as many as we were given.
    let most = std::fs::read_to_string(MOST_FILES).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    raise_open_files(most);
    Ok(())
}
