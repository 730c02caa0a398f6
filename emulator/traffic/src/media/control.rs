//! What a rate control is asked, and which there are. Pure.

use serde::Deserialize;

use super::encoder::Frame;
use super::gcc::Gcc;
use super::history::Feedback;
use super::scream::Scream;

/// The rates within which a control moves.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub initial_bps: f64,
    pub least_bps: f64,
    pub most_bps: f64,
    /// Packets are sent as ECT(1), so that marks are those of L4S (RFC 9331).
    pub l4s: bool,
    pub frames_per_second: f64,
    /// The most of a packet.
    pub packet_bytes: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    None,
    Gcc,
    Scream,
}

pub trait Control: Send {
    /// The rate that the encoder is to have.
    fn target_bps(&self) -> f64;

    /// None: packets of a frame go at once.
    fn pacing_bps(&self) -> Option<f64>;

    /// How much may be in flight; none: as much as there is.
    fn window_bytes(&self) -> Option<u64> {
        None
    }

    fn take(&mut self, feedback: &Feedback);

    /// A packet went, with which so much is in flight.
    fn sent(&mut self, _in_flight_bytes: u64) {}

    /// A frame was put into the sender's queue, whose first packet has waited for so long.
    fn queued(&mut self, _frame: &Frame, _waited_ns: u64) {}

    /// Frames that have waited longer at the sender are thrown away; none: they wait.
    fn discards_after_ns(&self) -> Option<u64> {
        None
    }

    /// Its estimate of how long packets wait in the network; none: it has none.
    fn queue_delay_ns(&self) -> Option<u64>;
}

/// When a receiver reports: at the latest so long after the last report, where something came since.
#[derive(Clone, Copy, Debug)]
pub struct FeedbackRule {
    pub every_ns: u64,
    /// Sooner after so many packets.
    pub packets: usize,
    /// Sooner at the end of each frame.
    pub each_frame: bool,
}

impl Kind {
    pub fn feedback(self) -> FeedbackRule {
        match self {
            Self::None | Self::Gcc => FeedbackRule { every_ns: 50_000_000, packets: 64, each_frame: false },
            // What draft-ietf-ccwg-rfc8298bis-screamv2 says that was tested with good results.
            Self::Scream => FeedbackRule { every_ns: 40_000_000, packets: 16, each_frame: true },
        }
    }

    pub fn make(self, bounds: Bounds) -> Box<dyn Control> {
        match self {
            Self::None => Box::new(Constant(bounds.initial_bps)),
            Self::Gcc => Box::new(Gcc::new(bounds)),
            Self::Scream => Box::new(Scream::new(bounds)),
        }
    }
}

/// The rate that it was given, whatever the network does.
struct Constant(f64);

impl Control for Constant {
    fn target_bps(&self) -> f64 {
        self.0
    }

    fn pacing_bps(&self) -> Option<f64> {
        None
    }

    fn take(&mut self, _feedback: &Feedback) {}

    fn queue_delay_ns(&self) -> Option<u64> {
        None
    }
}
