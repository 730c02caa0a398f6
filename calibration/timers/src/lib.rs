//! Clocks and timers: the TSC clock that spinner and probes share, and what this host's clocks can do.

pub mod clock;
mod report;

pub use clock::Clock;
pub use report::report;
