//! Clocks and timers: the TSC clock that spinner and probes share, and what this host's clocks can do.

use std::io::Write;

pub fn report(_out: impl Write) -> Result<(), String> {
    Err("not built yet".into())
}
