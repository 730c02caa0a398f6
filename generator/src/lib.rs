//! Traffic: probes that measure a link, and flows that load it.

mod clock;
mod packets;
pub mod probe;
mod process;
mod socket;
mod tcp_info;
pub mod traffic;
