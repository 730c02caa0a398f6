//! A lab on this machine: made of a plan, started, looked at, changed while it runs, and removed.
//!
//! In: a plan and the lab's state directory. Out: network namespaces, wires, queueing disciplines, services, programs in
//! nodes; what links and kernels counted.

pub mod apply;
pub mod cards;
pub mod carrier;
pub mod converge;
pub mod device;
pub mod down;
pub mod drops;
pub mod ethtool;
pub mod exec;
pub mod fill;
pub mod hosts;
pub mod journal;
pub mod kernel_files;
pub mod links;
pub mod machine;
pub mod manifest;
pub mod parallel;
#[cfg(test)]
mod plan_properties;
pub mod process;
pub mod qdisc;
pub mod services;
pub mod spinners;
pub mod tunnel_ends;
pub mod tunnels;
pub mod vlans;
