//! Clocks and timers: the TSC clock that spinner and probes share, and what this host's clocks can do.

mod bucket;
pub mod classes;
pub mod clock;
mod facts;
mod lateness;
mod report;
mod request;

pub use bucket::TokenBucket;
pub use clock::Clock;
pub use report::{report, spin_beside, spin_here, Spun};
pub use request::Request;
