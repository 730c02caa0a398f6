//! Random numbers: one stream per stage, all from the direction's seed. Changing what one stage does, or how
//! often it draws, never shifts what another stage draws.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::config::{Ppb, ONE_PPB};

/// Who draws. The number is how many jumps of 2^128 draws a stream starts after the first one, so streams of
/// one seed never overlap.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    Loss = 0,
    Corrupt = 1,
    Duplicate = 2,
    Queue = 3,
    Delay = 4,
    Harq = 5,
    Displace = 6,
}

/// Xoshiro256++ (Blackman & Vigna 2021); integers only, so equal on every machine.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    pub fn new(seed: u64, stage: Stage) -> Self {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..stage as u32 {
            generator.jump();
        }
        Stream(generator)
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in 0..n, by multiplication (Lemire 2019, without the rejection: the bias is below n/2^64).
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// True with the given probability; never at 0, always at one billion.
    #[inline]
    pub fn chance(&mut self, probability: Ppb) -> bool {
        self.below(u64::from(ONE_PPB)) < u64::from(probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let draw = |seed, stage| Stream::new(seed, stage).bits();
        assert_eq!(draw(1, Stage::Loss), draw(1, Stage::Loss));
        assert_ne!(draw(1, Stage::Loss), draw(1, Stage::Delay));
        assert_ne!(draw(1, Stage::Loss), draw(2, Stage::Loss));
    }

    #[test]
    fn certain_and_impossible_are_exact() {
        let mut stream = Stream::new(7, Stage::Loss);
        assert!((0..100_000).all(|_| stream.chance(ONE_PPB) && !stream.chance(0)));
    }
}
