//! One end of a flow whose other end is in a process on another machine: what both must know.
//!
//! Each end keeps its own time, from the same T0, and records what it sees; whoever has both puts them together
//! (labs/cluster/halves.py).

use serde::Deserialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    Source,
    Sink,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Half {
    /// The end that is here.
    pub side: Side,
    /// Where the sink listens.
    pub port: u16,
    /// Tells this run's packets from those of an earlier one.
    #[serde(default)]
    pub run: u32,
    /// How far the sink's clock is ahead of the source's: so much longer one-way delays seem.
    #[serde(default)]
    pub clock_ns: i64,
}

impl Half {
    pub fn check(&self) -> Result<(), String> {
        if self.port == 0 {
            return Err("half.port 0: both ends must know where the sink listens".into());
        }
        Ok(())
    }
}

/// Whether an end is in this process.
pub fn here(half: Option<&Half>, side: Side) -> bool {
    half.is_none_or(|half| half.side == side)
}
