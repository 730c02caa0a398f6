//! Stage 1, the loss models: asked once per packet, in order of arrival, whether it is lost. In: the bytes that the packet
//! counts on the link.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use super::check::{probability, require, CheckResult, LONGEST_LIST};
use super::rng::Stream;
use crate::config::{Loss, Ppb, ONE_PPB};

impl Loss {
    /// Is it a model that can be run?
    pub(super) fn check(&self) -> CheckResult {
        match self {
            Loss::None {} => Ok(()),
            Loss::Bernoulli { loss_ppb } => probability("loss_ppb", *loss_ppb),
            Loss::BitErrors { bit_ppb } => probability("bit_ppb", *bit_ppb),
            Loss::GilbertElliott { to_bad_ppb, to_good_ppb, loss_good_ppb, loss_bad_ppb } => {
                probability("to_bad_ppb", *to_bad_ppb)?;
                probability("to_good_ppb", *to_good_ppb)?;
                probability("loss_good_ppb", *loss_good_ppb)?;
                probability("loss_bad_ppb", *loss_bad_ppb)
            }
            Loss::Markov4 { p13_ppb, p31_ppb, p32_ppb, p23_ppb, p14_ppb } => {
                probability("p13_ppb + p14_ppb", p13_ppb.saturating_add(*p14_ppb))?;
                probability("p31_ppb + p32_ppb", p31_ppb.saturating_add(*p32_ppb))?;
                probability("p23_ppb", *p23_ppb)
            }
            Loss::EveryNth { n } => require((1..=i64::MAX as u64).contains(n), || {
                format!("n {n}: every 1st, 2nd … packet can be lost, up to {}; for none write none", i64::MAX)
            }),
            Loss::Pattern { pattern } => {
                let letters = pattern.bytes().all(|letter| letter == b'0' || letter == b'1');
                require(letters && (1..=LONGEST_LIST).contains(&pattern.len()), || {
                    let begins: String = pattern.chars().take(20).collect();
                    format!(
                        "pattern {begins:?}: write a 0 for a packet that passes, a 1 for one that is lost, up to \
                         {LONGEST_LIST}"
                    )
                })
            }
        }
    }
}

/// Probabilities to survive are in units of 2^-63. Each product is rounded down, so that of a packet of n bytes is too small
/// by less than 16 n units: 10^-12 for the longest.
const SURVIVAL_LOG2: u32 = 63;

/// (1 − p)^(8 n): that none of the bits of n bytes is wrong, each with probability p.
#[derive(Clone, Debug)]
pub struct Survival {
    of_byte: u64,
    /// Most neighbours are equal.
    last_bytes: u32,
    last: u64,
}

impl Survival {
    fn new(bit: Ppb) -> Self {
        let whole = 1u128 << SURVIVAL_LOG2;
        let of_bit = (whole * u128::from(ONE_PPB.saturating_sub(bit)) / u128::from(ONE_PPB)) as u64;
        Survival { of_byte: power(of_bit, 8), last_bytes: 0, last: whole as u64 }
    }

    #[inline]
    fn of(&mut self, bytes: u32) -> u64 {
        if bytes != self.last_bytes {
            (self.last_bytes, self.last) = (bytes, power(self.of_byte, bytes));
        }
        self.last
    }
}

/// By squaring.
fn power(mut base: u64, mut exponent: u32) -> u64 {
    let product = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> SURVIVAL_LOG2) as u64;
    let mut result = 1 << SURVIVAL_LOG2;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = product(result, base);
        }
        base = product(base, base);
        exponent >>= 1;
    }
    result
}

/// A loss model with its state; starts in the good state (state 1), before the first packet.
#[derive(Clone, Debug)]
pub enum Model {
    None,
    Bernoulli(Ppb),
    BitErrors(Survival),
    GilbertElliott { bad: bool, to_bad: Ppb, to_good: Ppb, loss_good: Ppb, loss_bad: Ppb },
    Markov4 { state: u8, p13: Ppb, p31: Ppb, p32: Ppb, p23: Ppb, p14: Ppb },
    EveryNth { n: u64, left: u64 },
    Pattern { lost: Box<[bool]>, next: usize },
}

impl Model {
    /// Every 0th and an empty pattern lose nothing.
    pub fn new(config: &Loss) -> Self {
        match *config {
            Loss::None {} => Model::None,
            Loss::Bernoulli { loss_ppb: 0 } | Loss::BitErrors { bit_ppb: 0 } | Loss::EveryNth { n: 0 } => Model::None,
            Loss::Bernoulli { loss_ppb } => Model::Bernoulli(loss_ppb),
            Loss::BitErrors { bit_ppb } => Model::BitErrors(Survival::new(bit_ppb)),
            Loss::GilbertElliott { to_bad_ppb, to_good_ppb, loss_good_ppb, loss_bad_ppb } => Model::GilbertElliott {
                bad: false,
                to_bad: to_bad_ppb,
                to_good: to_good_ppb,
                loss_good: loss_good_ppb,
                loss_bad: loss_bad_ppb,
            },
            Loss::Markov4 { p13_ppb, p31_ppb, p32_ppb, p23_ppb, p14_ppb } => {
                Model::Markov4 { state: 1, p13: p13_ppb, p31: p31_ppb, p32: p32_ppb, p23: p23_ppb, p14: p14_ppb }
            }
            Loss::EveryNth { n } => Model::EveryNth { n, left: n },
            Loss::Pattern { ref pattern } if pattern.is_empty() => Model::None,
            Loss::Pattern { ref pattern } => {
                Model::Pattern { lost: pattern.bytes().map(|letter| letter == b'1').collect(), next: 0 }
            }
        }
    }

    /// Is the next packet lost?
    #[inline]
    pub fn lost(&mut self, bytes: u32, stream: &mut Stream) -> bool {
        match self {
            Model::None => false,
            Model::Bernoulli(loss) => stream.chance(*loss),
            Model::BitErrors(survival) => stream.bits() >> (64 - SURVIVAL_LOG2) >= survival.of(bytes),
            // First the transition, then the loss in the state reached; always two draws.
            Model::GilbertElliott { bad, to_bad, to_good, loss_good, loss_bad } => {
                let turn = stream.chance(if *bad { *to_good } else { *to_bad });
                *bad ^= turn;
                stream.chance(if *bad { *loss_bad } else { *loss_good })
            }
            Model::Markov4 { state, p13, p31, p32, p23, p14 } => {
                let draw = stream.below(1_000_000_000);
                let below = |a: &Ppb, b: Ppb| draw < u64::from(*a) + u64::from(b);
                *state = match *state {
                    1 if below(p14, 0) => 4,
                    1 if below(p14, *p13) => 3,
                    2 if below(p23, 0) => 3,
                    3 if below(p32, 0) => 2,
                    3 if below(p32, *p31) => 1,
                    4 => 1,
                    same => same,
                };
                *state >= 3
            }
            Model::EveryNth { n, left } => {
                *left -= 1;
                let lost = *left == 0;
                if lost {
                    *left = *n;
                }
                lost
            }
            Model::Pattern { lost, next } => {
                let now = lost[*next];
                *next = if *next + 1 == lost.len() { 0 } else { *next + 1 };
                now
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rng::Stage;
    use super::*;

    const MILLION: usize = 1_000_000;

    fn outcomes(config: &Loss) -> Vec<bool> {
        let mut model = Model::new(config);
        let mut stream = Stream::new(11, Stage::Loss);
        (0..MILLION).map(|_| model.lost(1538, &mut stream)).collect()
    }

    fn share(outcomes: &[bool]) -> f64 {
        outcomes.iter().filter(|lost| **lost).count() as f64 / outcomes.len() as f64
    }

    /// Mean number of losses in a row.
    fn burst(outcomes: &[bool]) -> f64 {
        let starts = outcomes.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        outcomes.iter().filter(|lost| **lost).count() as f64 / starts as f64
    }

    fn letters(config: &Loss, count: usize) -> String {
        outcomes(config)[..count].iter().map(|lost| if *lost { '1' } else { '0' }).collect()
    }

    /// Within four standard deviations of a sum of independent draws, widened for their correlation.
    fn assert_near(found: f64, expected: f64, samples: f64, correlation: f64) {
        let deviation = (expected * (1.0 - expected) / samples * (1.0 + correlation) / (1.0 - correlation)).sqrt();
        assert!((found - expected).abs() < 4.0 * deviation, "{found} is not {expected} ± 4 × {deviation}");
    }

    #[test]
    fn bernoulli() {
        for loss_ppb in [1_000_000, 10_000_000, 500_000_000] {
            let seen = outcomes(&Loss::Bernoulli { loss_ppb });
            let p = f64::from(loss_ppb) / 1e9;
            assert_near(share(&seen), p, 1e6, 0.0);
            let both = seen.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64 / 1e6;
            assert_near(both, p * p, 1e6, p);
        }
        assert!(outcomes(&Loss::Bernoulli { loss_ppb: 1_000_000_000 }).iter().all(|lost| *lost));
    }

    /// Against the definition, in floating point: exact to 10^-12, and none or all at the ends.
    #[test]
    fn a_packet_survives_if_all_of_its_bits_do() {
        for bit_ppb in [1, 100, 12_345, 1_000_000, 50_000_000] {
            let mut survival = Survival::new(bit_ppb);
            for bytes in [1, 84, 1538, 9038, 65_573, 84] {
                let exact = (8.0 * f64::from(bytes) * (-f64::from(bit_ppb) / 1e9).ln_1p()).exp();
                let found = survival.of(bytes) as f64 / (1u64 << SURVIVAL_LOG2) as f64;
                assert!((found - exact).abs() < 1e-12, "{bit_ppb} ppb, {bytes} bytes: {found} is not {exact}");
            }
        }
        assert_eq!(Survival::new(0).of(1538), 1 << SURVIVAL_LOG2);
        assert_eq!(Survival::new(1_000_000_000).of(84), 0);
    }

    #[test]
    fn bit_errors_lose_long_packets_more_often() {
        let config = Loss::BitErrors { bit_ppb: 10_000 };
        let (mut model, mut stream) = (Model::new(&config), Stream::new(11, Stage::Loss));
        let mut lost = |bytes| (0..MILLION).map(|_| model.lost(bytes, &mut stream)).collect::<Vec<_>>();
        for bytes in [84, 1538, 9038] {
            let seen = lost(bytes);
            let p = 1.0 - (1.0 - 1e-5f64).powi(8 * bytes as i32);
            assert_near(share(&seen), p, 1e6, 0.0);
            let both = seen.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64 / 1e6;
            assert_near(both, p * p, 1e6, p);
        }
        assert!(outcomes(&Loss::BitErrors { bit_ppb: 1_000_000_000 }).iter().all(|lost| *lost));
        assert!(matches!(Model::new(&Loss::BitErrors { bit_ppb: 0 }), Model::None));
    }

    /// Bad for p/(p + r) of the time, 1/r packets at a time; the state's memory decays by 1 − p − r.
    #[test]
    fn gilbert_elliott() {
        let config = |loss_good_ppb, loss_bad_ppb| Loss::GilbertElliott {
            to_bad_ppb: 10_000_000,
            to_good_ppb: 240_000_000,
            loss_good_ppb,
            loss_bad_ppb,
        };
        let seen = outcomes(&config(0, 1_000_000_000));
        assert_near(share(&seen), 0.04, 1e6, 0.75);
        let bursts = share(&seen) * 1e6 * 0.24;
        let deviation = (1.0f64 - 0.24).sqrt() / 0.24 / bursts.sqrt();
        assert!((burst(&seen) - 1.0 / 0.24).abs() < 4.0 * deviation, "{}", burst(&seen));
        let seen = outcomes(&config(1_000_000, 500_000_000));
        assert_near(share(&seen), 0.96 * 0.001 + 0.04 * 0.5, 1e6, 0.75);
    }

    /// Salsano et al. 2009: with π1 + π2 + π3 + π4 = 1, π4 = p14 π1, π3 = p13 π1 / p31 and
    /// π2 = p32 π3 / p23, as entries equal exits in every state.
    #[test]
    fn markov_of_four_states() {
        let (p13, p31, p32, p23, p14) = (0.01, 0.2, 0.1, 0.3, 0.005);
        let ppb = |p: f64| (p * 1e9) as Ppb;
        let seen = outcomes(&Loss::Markov4 {
            p13_ppb: ppb(p13),
            p31_ppb: ppb(p31),
            p32_ppb: ppb(p32),
            p23_ppb: ppb(p23),
            p14_ppb: ppb(p14),
        });
        let third = p13 / p31;
        let whole = 1.0 + third + third * p32 / p23 + p14;
        assert_near(share(&seen), (third + p14) / whole, 1e6, 0.8);
        // Lost alone: from state 1 and back there.
        let alone = seen.windows(3).filter(|three| **three == [false, true, false]).count() as f64 / 1e6;
        let short = third / whole * (p31 + p32) * (p31 + p32);
        assert_near(alone, p14 / whole + short, 1e6, 0.5);
    }

    #[test]
    fn counted_losses() {
        assert_eq!(letters(&Loss::EveryNth { n: 3 }, 10), "0010010010");
        assert_eq!(letters(&Loss::EveryNth { n: 1 }, 4), "1111");
        assert_eq!(letters(&Loss::Pattern { pattern: "01100".into() }, 12), "011000110001");
        assert_eq!(letters(&Loss::None {}, 3), "000");
    }
}
