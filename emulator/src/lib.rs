//! The link: its model (the crate `ewan-model`, time passed in) and the datapath that runs it on real packets.

pub mod datapath;

pub use ewan_model as model;
pub use ewan_model::config;
