//! How late the clocks and timers of this host are, for spinning and for sleeping.

mod bucket;
mod facts;
mod lateness;
mod report;
mod request;

pub use bucket::TokenBucket;
pub use report::{report, spin_beside, spin_here, SpinResult};
pub use request::Request;
