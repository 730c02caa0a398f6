//! Stage 1: what happens to a packet before the queue. It is lost, swallowed by a middlebox or dropped by a policer; or it
//! goes on, perhaps corrupted, copied, or with the bits of ECN cleared.

use super::bucket::Bucket;
use super::change::ModelChange;
use super::config::{Direction, Held, Loss};
use super::counters::Drop;
use super::rng::{Stage, Stream};
use super::{loss, middlebox, Meta, Nanos};

/// What stage 1 decided. A lost packet is neither a duplicate nor corrupt, and nothing is done to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    pub lost: bool,
    /// To be enqueued twice. The copy is intact: corruption is of the first one only.
    pub duplicate: bool,
    /// A random number that chooses the bit to turn over.
    pub corrupt: Option<u32>,
    /// The bits of ECN are to be cleared in the frame, before it is copied.
    pub bleach: bool,
}

impl Fate {
    pub(super) const LOST: Fate = Fate { lost: true, duplicate: false, corrupt: None, bleach: false };
}

#[derive(Debug)]
pub(super) struct Impairments {
    loss: loss::Model,
    police: Option<Bucket>,
    /// Nothing to draw or to do.
    harmless: bool,
    streams: Streams,
}

#[derive(Debug)]
struct Streams {
    loss: Stream,
    corrupt: Stream,
    duplicate: Stream,
}

impl Impairments {
    pub(super) fn new(config: &Direction) -> Self {
        let stream = |stage| Stream::new(config.seed, stage);
        let streams =
            Streams { loss: stream(Stage::Loss), corrupt: stream(Stage::Corrupt), duplicate: stream(Stage::Duplicate) };
        let police = policer(config.police_bps, config.police_bytes, 0);
        let mut stage = Impairments { loss: loss::Model::new(&config.loss), police, harmless: false, streams };
        stage.note_harmless(&Held::of(config));
        stage
    }

    /// `held` is what the change has made of it.
    pub(super) fn take_over(&mut self, change: &mut ModelChange, held: &Held, now: Nanos) {
        if let Some(loss) = &mut change.loss {
            core::mem::swap(&mut self.loss, loss);
        }
        if let (Some(police_bps), Some(police_bytes)) = (change.police_bps, change.police_bytes) {
            self.police = policer(police_bps, police_bytes, now);
        }
        self.note_harmless(held);
    }

    /// From now on each packet is lost with the same probability.
    pub(super) fn lose(&mut self, loss_ppb: u32, held: &Held) {
        self.loss = loss::Model::new(&Loss::Bernoulli { loss_ppb });
        self.note_harmless(held);
    }

    fn note_harmless(&mut self, held: &Held) {
        self.harmless = matches!(self.loss, loss::Model::None)
            && held.corrupt_ppb == 0
            && held.duplicate_ppb == 0
            && !held.ecn_bleach
            && held.blackhole_bytes == 0
            && self.police.is_none();
    }

    /// Of a packet that counts so many bytes. Every model draws for every packet, so one model's outcome never shifts
    /// another's.
    #[inline]
    pub(super) fn judge(&mut self, held: &Held, meta: &mut Meta, bytes: u32, now: Nanos) -> Result<Fate, Drop> {
        if self.harmless {
            return Ok(Fate::default());
        }
        let lost = self.loss.lost(bytes, &mut self.streams.loss);
        let duplicate = held.duplicate_ppb > 0 && self.streams.duplicate.chance(held.duplicate_ppb);
        let corrupt = (held.corrupt_ppb > 0 && self.streams.corrupt.chance(held.corrupt_ppb))
            .then(|| (self.streams.corrupt.bits() >> 32) as u32);
        if lost {
            return Err(Drop::Loss);
        }
        if middlebox::swallows(held, meta) {
            return Err(Drop::Blackhole);
        }
        if self.police.as_mut().is_some_and(|bucket| !bucket.admits(bytes, now)) {
            return Err(Drop::Policed);
        }
        let bleach = middlebox::bleaches(held, meta);
        Ok(Fate { lost, duplicate, corrupt, bleach })
    }
}

/// One that is full; none of a rate of 0.
fn policer(rate_bps: u64, bytes: u64, now: Nanos) -> Option<Bucket> {
    (rate_bps > 0).then(|| Bucket::new(rate_bps, bytes, now))
}
