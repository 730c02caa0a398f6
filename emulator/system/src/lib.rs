//! The Linux interfaces that all parts share, each with one home: network namespaces, route netlink, signals, sockets and
//! their options, scheduling, clocks, limits, child processes, files read within limits. Callers pass plain values and get
//! owned resources or a typed error.

pub mod bpf;
pub mod clock;
pub mod counters;
pub mod error;
pub mod fault;
pub mod limits;
pub mod mptcp;
pub mod namespace;
pub mod netlink;
pub mod packet;
pub mod process;
pub mod reading;
pub mod schedule;
pub mod signals;
pub mod socket;
pub mod wait;
pub mod wireguard;

pub use error::{Context, Error, Result};
