//! The Linux interfaces that all parts share, each with one home: network namespaces, route netlink, signals, sockets and
//! their options, scheduling, limits, child processes. Callers pass plain values and get owned resources or a typed error.

pub mod bpf;
pub mod counters;
pub mod error;
pub mod fault;
pub mod limits;
pub mod namespace;
pub mod netlink;
pub mod packet;
pub mod process;
pub mod schedule;
pub mod signals;
pub mod socket;
pub mod wait;

pub use error::{Context, Error, Result};
