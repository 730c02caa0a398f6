//! Traffic: probes that measure a link, and flows that load it.

mod bulk;
mod clock;
pub mod probe;
mod socket;
mod tcp_info;
