//! The link: a pure model (`model`, time passed in) and the datapath that runs it on real packets.

pub mod config;
pub mod datapath;
pub mod model;
