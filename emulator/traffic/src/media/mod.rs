//! Interactive video over UDP with a rate that follows the network. Pure: time and random numbers come from outside.
//!
//! A source (`encoder`) makes frames of the rate that a rate control asks for; they become packets (`wire`) that wait for
//! their turn (`queue`). A receiver tells which packets came when (`arrivals`), and shows frames (`playout`). What it tells
//! and what was sent (`history`) is the feedback of a rate control (`control`): `gcc`, `scream`, or none.
//!
//! emulator/traffic/src/flows/media.rs has the sockets and the threads.

pub mod arrivals;
mod base_delay;
pub mod control;
pub mod encoder;
mod gcc;
pub mod history;
pub mod playout;
pub mod queue;
mod scream;
pub mod wire;

#[cfg(test)]
mod simulation;

/// In seconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
