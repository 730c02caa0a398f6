//! Traffic: probes that measure a link, and flows that load it.

pub mod probe;
