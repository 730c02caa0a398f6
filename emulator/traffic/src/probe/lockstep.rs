//! One step of a probe after the other, together with the processes of other machines that have the other ends.
//!
//! A probe is carried out the same way whether all its ends are here (`SingleMachine`) or not (`joint::Session`).

use serde::{Deserialize, Serialize};

use super::request::Endpoint;
use crate::clock::real_ns;

/// The ports of each stream's ends (of TCP: of the one connection); None of ends that are not here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ports {
    pub from: Vec<Option<u16>>,
    pub to: Vec<Option<u16>>,
}

/// What was agreed once all sockets are open.
pub struct Begin {
    pub at_ns: i64,
    /// Tells the packets of this probe from those of earlier ones.
    pub run: u32,
    pub ports: Ports,
}

pub trait Lockstep {
    /// Whether this process has to open that end.
    fn here(&self, end: &Endpoint) -> bool;

    /// The ends that are here are open, at these ports. Returns when the others' are too, with the ports of all.
    fn begin(&mut self, ports: Ports) -> Result<Begin, String>;

    /// Nothing more will be sent from here.
    fn sent(&mut self) -> Result<(), String>;

    /// Whether nobody sends any more; asked only after `sent`.
    fn all_sent(&mut self) -> Result<bool, String>;
}

/// All ends are here.
pub struct SingleMachine;

impl Lockstep for SingleMachine {
    fn here(&self, _: &Endpoint) -> bool {
        true
    }

    fn begin(&mut self, ports: Ports) -> Result<Begin, String> {
        let now = real_ns();
        Ok(Begin { at_ns: now, run: now as u32, ports })
    }

    fn sent(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn all_sent(&mut self) -> Result<bool, String> {
        Ok(true)
    }
}
