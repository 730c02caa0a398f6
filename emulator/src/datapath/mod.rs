//! Runs link models on real packets: one thread spins on a CPU of its own and serves many links.

use std::path::PathBuf;

use crate::config::Direction;

/// One spinner: its CPU, and the links it serves.
pub struct SpinnerConfig {
    pub cpu: u32,
    /// Where the control thread may run.
    pub control_cpus: Vec<u32>,
    pub control_socket: PathBuf,
    pub links: Vec<LinkConfig>,
}

/// One link: two ports in the emulator node's namespace.
pub struct LinkConfig {
    pub name: String,
    pub netns: PathBuf,
    pub port_a: String,
    pub port_b: String,
    pub mtu: u32,
    /// From port a to port b.
    pub forward: Direction,
    pub backward: Direction,
}

/// Serves the links until SIGTERM or SIGINT.
pub fn run(config: SpinnerConfig) -> Result<(), String> {
    Err(format!("not built yet: spinner on CPU {}", config.cpu))
}
