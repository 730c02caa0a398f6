//! Traffic: probes that measure a link, and flows that load it.

mod clock;
mod ecn;
mod packets;
pub mod probe;
mod process;
pub mod reading;
mod socket;
pub use socket::CLASSES;
pub mod table;
mod tcp_info;
pub mod traffic;
