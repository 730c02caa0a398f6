//! Traffic: probes that measure a link, and flows that load it.

pub mod clock;
mod congestion;
mod ecn;
pub mod media;
pub mod multipath;
pub mod packets;
pub mod probe;
mod process;
mod room;
pub mod socket;
pub use socket::CLASSES;
pub mod flows;
pub mod table;
mod tcp_info;
