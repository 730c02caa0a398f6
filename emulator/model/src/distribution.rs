//! How long a packet stays in the delay line: one draw per packet, in order of departure.
//!
//! Draws are the same on every machine: integer arithmetic on quantile tables. The compiler computes the tables, by
//! additions, multiplications and divisions of `f64`, which IEEE 754 defines to the last bit (Rust neither reorders nor
//! fuses them). Nothing here calculates with `f64` when it runs, for it may run in a kernel. Between entries a table is
//! read by linear interpolation.

use alloc::format;
use alloc::sync::Arc;

use super::check::{require, time, CheckResult, LONGEST_LIST, LONGEST_NS};
use super::rng::Stream;
use super::Nanos;
use crate::config::{Delay, Ppb, ONE_PPB};

impl Delay {
    /// The delay that the link is said to have; of a table the mean, rounded down.
    pub fn nominal_ns(&self) -> Nanos {
        match self {
            Delay::Constant { delay_ns }
            | Delay::Uniform { delay_ns, jitter_ns: _ }
            | Delay::Normal { delay_ns, jitter_ns: _ }
            | Delay::GaussMarkov { delay_ns, jitter_ns: _, correlation_ppb: _ }
            | Delay::Pareto { delay_ns, jitter_ns: _ } => *delay_ns,
            Delay::Table { delays_ns } => delays_ns.iter().sum::<u64>() / (delays_ns.len() as u64).max(1),
        }
    }

    /// Are they delays that packets can have?
    pub(super) fn check(&self) -> CheckResult {
        match self {
            Delay::Constant { delay_ns } => time("delay_ns", *delay_ns, 0, LONGEST_NS),
            Delay::Uniform { delay_ns, jitter_ns }
            | Delay::Normal { delay_ns, jitter_ns }
            | Delay::Pareto { delay_ns, jitter_ns } => spread(*delay_ns, *jitter_ns),
            Delay::GaussMarkov { delay_ns, jitter_ns, correlation_ppb } => {
                spread(*delay_ns, *jitter_ns)?;
                require(*correlation_ppb < ONE_PPB, || {
                    format!("correlation_ppb {correlation_ppb}: write less than {ONE_PPB} (100 %)")
                })
            }
            Delay::Table { delays_ns } => {
                require((1..=LONGEST_LIST).contains(&delays_ns.len()), || {
                    format!("delays_ns: a table of delays has 1 to {LONGEST_LIST}, this one {}", delays_ns.len())
                })?;
                delays_ns.iter().try_for_each(|each| time("delays_ns", *each, 0, LONGEST_NS))
            }
        }
    }
}

fn spread(delay_ns: Nanos, jitter_ns: Nanos) -> CheckResult {
    time("delay_ns", delay_ns, 0, LONGEST_NS)?;
    require(jitter_ns <= delay_ns, || format!("jitter_ns {jitter_ns}: must not be above delay_ns ({delay_ns})"))
}

const TABLE_LOG2: u32 = 13;
const CELLS: usize = 1 << TABLE_LOG2;
/// Entries are in units of 2^-24 of the jitter.
const UNIT_LOG2: u32 = 24;

/// Quantiles at 0, 1/8192 … 1.
type Quantiles = [i32; CELLS + 1];

#[derive(Clone, Debug)]
pub enum Distribution {
    Constant(Nanos),
    /// First value, how many there are.
    Uniform(Nanos, u64),
    Quantiles {
        delay: Nanos,
        jitter: Nanos,
        table: &'static Quantiles,
    },
    GaussMarkov {
        delay: Nanos,
        jitter: Nanos,
        process: GaussMarkov,
    },
    Table(Arc<[Nanos]>),
}

/// x_k = ρ x_(k−1) + √(1 − ρ²) z_k with z_k standard normal, so that each x_k is, too. x_0 is z_0. No x is beyond ±4, where
/// `NORMAL` ends.
#[derive(Clone, Debug)]
pub struct GaussMarkov {
    /// ρ and √(1 − ρ²), in units of 2^-31.
    keeps: i64,
    renews: i64,
    /// In units of 2^-48; none before the first packet.
    last: Option<i64>,
}

impl GaussMarkov {
    const SHARE_LOG2: u32 = 31;
    const STATE_LOG2: u32 = 48;
    const MOST: i64 = 4;

    /// ρ is rounded to 2^-31; √(1 − ρ²) fits what it became, so that the deviation is right.
    fn new(correlation: Ppb) -> Self {
        let keeps = ((u64::from(correlation) << Self::SHARE_LOG2) + u64::from(ONE_PPB) / 2) / u64::from(ONE_PPB);
        let renews = ((1 << (2 * Self::SHARE_LOG2)) - keeps * keeps).isqrt();
        GaussMarkov { keeps: keeps as i64, renews: renews as i64, last: None }
    }

    /// The next x, in the units of the tables.
    #[inline]
    fn step(&mut self, z: i64) -> i64 {
        const FINER: u32 = GaussMarkov::STATE_LOG2 - UNIT_LOG2;
        const MOST: i64 = GaussMarkov::MOST << GaussMarkov::STATE_LOG2;
        let z = z << FINER;
        let next = self.last.map_or(z, |last| {
            let sum = i128::from(last) * i128::from(self.keeps) + i128::from(z) * i128::from(self.renews);
            ((sum + (1 << (Self::SHARE_LOG2 - 1))) >> Self::SHARE_LOG2) as i64
        });
        let next = next.clamp(-MOST, MOST);
        self.last = Some(next);
        next >> FINER
    }
}

impl Distribution {
    /// Values below 0 become 0; an empty table and a jitter of 0 give a constant delay.
    pub fn new(config: &Delay) -> Self {
        match *config {
            Delay::Constant { delay_ns }
            | Delay::Uniform { delay_ns, jitter_ns: 0 }
            | Delay::Normal { delay_ns, jitter_ns: 0 }
            | Delay::GaussMarkov { delay_ns, jitter_ns: 0, .. }
            | Delay::Pareto { delay_ns, jitter_ns: 0 } => Distribution::Constant(delay_ns),
            Delay::Uniform { delay_ns, jitter_ns } => {
                let first = delay_ns.saturating_sub(jitter_ns);
                Distribution::Uniform(first, delay_ns.saturating_add(jitter_ns) - first + 1)
            }
            Delay::Normal { delay_ns, jitter_ns } => {
                Distribution::Quantiles { delay: delay_ns, jitter: jitter_ns, table: &NORMAL }
            }
            Delay::GaussMarkov { delay_ns, jitter_ns, correlation_ppb } => Distribution::GaussMarkov {
                delay: delay_ns,
                jitter: jitter_ns,
                process: GaussMarkov::new(correlation_ppb),
            },
            Delay::Pareto { delay_ns, jitter_ns } => {
                Distribution::Quantiles { delay: delay_ns, jitter: jitter_ns, table: &PARETO }
            }
            Delay::Table { ref delays_ns } if delays_ns.is_empty() => Distribution::Constant(0),
            Delay::Table { ref delays_ns } => Distribution::Table(delays_ns.as_slice().into()),
        }
    }

    /// The delay of the next packet.
    #[inline]
    pub fn draw(&mut self, stream: &mut Stream) -> Nanos {
        match self {
            Distribution::Constant(delay) => *delay,
            Distribution::Uniform(first, count) => *first + stream.below(*count),
            Distribution::Quantiles { delay, jitter, table } => offset(*delay, *jitter, read(table, stream.bits())),
            Distribution::GaussMarkov { delay, jitter, process } => {
                offset(*delay, *jitter, process.step(read(&NORMAL, stream.bits())))
            }
            Distribution::Table(delays) => delays[stream.below(delays.len() as u64) as usize],
        }
    }

    /// No packet stays shorter than this.
    pub fn least(&self) -> Nanos {
        match self {
            Distribution::Constant(delay) | Distribution::Uniform(delay, _) => *delay,
            Distribution::Quantiles { delay, jitter, table } => {
                offset(*delay, *jitter, i64::from(table[0].min(table[CELLS])))
            }
            Distribution::GaussMarkov { delay, jitter, .. } => offset(*delay, *jitter, -GaussMarkov::MOST << UNIT_LOG2),
            Distribution::Table(delays) => delays.iter().copied().min().unwrap_or(0),
        }
    }
}

/// delay + quantile × jitter, not below 0; rounded down.
fn offset(delay: Nanos, jitter: Nanos, quantile: i64) -> Nanos {
    let sum = i128::from(delay) + ((i128::from(quantile) * i128::from(jitter)) >> UNIT_LOG2);
    sum.max(0) as Nanos
}

/// The quantile at a random place: the first bits choose the cell, the next 32 the place in it.
#[inline]
fn read(table: &Quantiles, bits: u64) -> i64 {
    let cell = (bits >> (64 - TABLE_LOG2)) as usize;
    let place = ((bits >> (32 - TABLE_LOG2)) & 0xffff_ffff) as i64;
    let (low, high) = (i64::from(table[cell]), i64::from(table[cell + 1]));
    low + (((high - low) * place) >> 32)
}

const fn entry(value: f64) -> i32 {
    (value * (1u32 << UNIT_LOG2) as f64) as i32
}

#[allow(long_running_const_eval)] // a few hundred thousand steps
static NORMAL: Quantiles = normal();
#[allow(long_running_const_eval)]
static PARETO: Quantiles = pareto();

/// The standard normal distribution between −4 and 4, from its density summed up by the trapezoidal rule. The
/// density at the next point is the one before times a ratio, which itself shrinks by a constant: no exponential.
const fn normal() -> Quantiles {
    const STEPS: usize = 4 * 1024;
    const WIDTH: f64 = 1.0 / 1024.0;
    /// e^-y to the last bit, for y of 10^-6.
    const fn exponential(y: f64) -> f64 {
        1.0 - y + y * y / 2.0 - y * y * y / 6.0
    }
    let square = WIDTH * WIDTH;
    let shrink = exponential(square);
    let (mut density, mut ratio, mut sum) = (1.0, exponential(square / 2.0), 0.0);
    let mut area = [0.0; STEPS + 1];
    let mut step = 0;
    while step < STEPS {
        let next = density * ratio;
        ratio *= shrink;
        sum += (density + next) / 2.0;
        step += 1;
        area[step] = sum;
        density = next;
    }
    let mut table = [0; CELLS + 1];
    let (mut step, mut n) = (0, 0);
    while n <= CELLS / 2 {
        let wanted = sum * (n as f64) / ((CELLS / 2) as f64);
        while step + 1 < STEPS && area[step + 1] < wanted {
            step += 1;
        }
        let x = WIDTH * (step as f64 + (wanted - area[step]) / (area[step + 1] - area[step]));
        table[CELLS / 2 + n] = entry(x);
        table[CELLS / 2 - n] = -entry(x);
        n += 1;
    }
    table
}

/// −1 + what a Pareto variable of shape 3 exceeds its scale by, for a scale that gives a standard deviation of 1;
/// cut at 10. Its mean is 1/√3 − 1, so the mean delay is delay − 0.42 jitter. Greatest first.
const fn pareto() -> Quantiles {
    const CUT: f64 = 10.0;
    const SCALE: f64 = 1.154_700_538_379_251_7; // 2/√3
    let mut table = [entry(CUT); CELLS + 1];
    let (mut root, mut n) = (1.0, CELLS);
    while n > 0 {
        let wanted = CELLS as f64 / n as f64;
        // The cube root by Newton's rule, from the neighbour's, which is near.
        let mut turn = 0;
        while turn < 8 {
            root = (2.0 * root + wanted / (root * root)) / 3.0;
            turn += 1;
        }
        let value = SCALE * (root - 1.0) - 1.0;
        table[n] = entry(if value < CUT { value } else { CUT });
        n -= 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::rng::Stage;
    use super::*;

    const MS: Nanos = 1_000_000;

    /// Mean and standard deviation, least and greatest of a million draws, in ms.
    fn moments(config: &Delay) -> (f64, f64, f64, f64) {
        let mut distribution = Distribution::new(config);
        let mut stream = Stream::new(3, Stage::Delay);
        let draws: Vec<f64> = (0..1_000_000).map(|_| distribution.draw(&mut stream) as f64 / 1e6).collect();
        let mean = draws.iter().sum::<f64>() / 1e6;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e6;
        let least = draws.iter().copied().fold(f64::MAX, f64::min);
        assert!(least * 1e6 >= distribution.least() as f64);
        (mean, variance.sqrt(), least, draws.iter().copied().fold(0.0, f64::max))
    }

    #[test]
    fn uniform() {
        let (mean, deviation, least, greatest) = moments(&Delay::Uniform { delay_ns: 20 * MS, jitter_ns: 5 * MS });
        assert!((mean - 20.0).abs() < 0.01 && (deviation - 5.0 / 3f64.sqrt()).abs() < 0.01);
        assert!((15.0..15.001).contains(&least) && (24.999..=25.0).contains(&greatest));
    }

    #[test]
    fn normal_is_cut_at_four_deviations() {
        let (mean, deviation, least, greatest) = moments(&Delay::Normal { delay_ns: 50 * MS, jitter_ns: 5 * MS });
        // A normal variable cut at ±4 has a deviation of 0.99946.
        assert!((mean - 50.0).abs() < 0.02 && (deviation - 4.9973).abs() < 0.012, "{mean} {deviation}");
        assert!((30.0..32.0).contains(&least) && (68.0..=70.0).contains(&greatest));
    }

    #[test]
    fn normal_is_cut_at_zero() {
        let (mean, _, least, _) = moments(&Delay::Normal { delay_ns: 5 * MS, jitter_ns: 5 * MS });
        assert_eq!(least, 0.0);
        assert!(mean > 5.0);
    }

    #[test]
    fn normal_quantiles_are_the_known_ones() {
        let table = normal();
        for (probability, known) in [(0.5, 0.0), (0.75, 0.67446), (0.875, 1.15029), (0.96875, 1.86249)] {
            let found = f64::from(table[(probability * CELLS as f64) as usize]) / f64::from(1 << UNIT_LOG2);
            assert!((found - known).abs() < 5e-4, "{probability}: {found}");
        }
    }

    #[test]
    fn pareto_has_its_tail_and_is_cut_at_ten_deviations() {
        let (mean, deviation, least, greatest) = moments(&Delay::Pareto { delay_ns: 50 * MS, jitter_ns: 5 * MS });
        // Mean 50 + 5 (1/√3 − 1) = 47.887, minus the little that is cut; the cut takes 10 % of the deviation.
        assert!((47.82..47.89).contains(&mean) && (4.2..5.0).contains(&deviation), "{mean} {deviation}");
        assert!((45.0..45.001).contains(&least) && (99.9..=100.0).contains(&greatest));
        let table = pareto();
        let median = f64::from(table[CELLS / 2]) / f64::from(1 << UNIT_LOG2);
        assert!((median - (2.0 / 3f64.sqrt() * (2f64.cbrt() - 1.0) - 1.0)).abs() < 1e-6, "{median}");
    }

    const PERCENT: Ppb = ONE_PPB / 100;

    fn gauss_markov(correlation_ppb: Ppb) -> Delay {
        Delay::GaussMarkov { delay_ns: 50 * MS, jitter_ns: 5 * MS, correlation_ppb }
    }

    #[test]
    fn correlation_changes_neither_mean_nor_deviation() {
        // The more correlated the draws are, the more the mean of a million wanders: (1 + ρ) / (1 − ρ) times its variance.
        for (percent, near) in [(0, 0.02), (50, 0.04), (90, 0.09), (99, 0.28)] {
            let (mean, deviation, least, greatest) = moments(&gauss_markov(percent * PERCENT));
            assert!((mean - 50.0).abs() < near, "{percent} %: {mean}");
            assert!((deviation - 4.9973).abs() < near, "{percent} %: {deviation}");
            assert!((30.0..33.0).contains(&least) && (67.0..=70.0).contains(&greatest), "{percent} %");
        }
    }

    #[test]
    fn correlated_packets_have_the_autocorrelation_of_a_first_order_process() {
        const DRAWS: usize = 1_000_000;
        for percent in [0, 50, 90, 99] {
            let mut distribution = Distribution::new(&gauss_markov(percent * PERCENT));
            let mut stream = Stream::new(5, Stage::Delay);
            let draws: Vec<f64> = (0..DRAWS).map(|_| distribution.draw(&mut stream) as f64 / 5e6 - 10.0).collect();
            let rho = f64::from(percent) / 100.0;
            let covariance = |lag: usize| draws.windows(lag + 1).map(|w| w[0] * w[lag]).sum::<f64>() / DRAWS as f64;
            for lag in [1, 10] {
                let found = covariance(lag) / covariance(0);
                // Five deviations by Bartlett's formula, and what the cut at ±4 takes.
                let square = rho.powi(2 * lag as i32);
                let variance = (1.0 + rho * rho) * (1.0 - square) / (1.0 - rho * rho) - 2.0 * lag as f64 * square;
                let near = 5.0 * (variance / DRAWS as f64).sqrt() + 5e-4;
                assert!((found - rho.powi(lag as i32)).abs() < near, "{percent} % at {lag}: {found}");
            }
        }
    }

    #[test]
    fn without_correlation_each_packet_has_what_the_normal_distribution_gives_it() {
        let mut both = [gauss_markov(0), Delay::Normal { delay_ns: 50 * MS, jitter_ns: 5 * MS }]
            .map(|config| (Distribution::new(&config), Stream::new(9, Stage::Delay)));
        for _ in 0..10_000 {
            let [one, other] = both.each_mut().map(|(distribution, stream)| distribution.draw(stream));
            assert_eq!(one, other);
        }
    }

    /// One part in a billion below 1: neither frozen nor drifting away.
    #[test]
    fn the_greatest_correlation_keeps_its_variance() {
        let GaussMarkov { keeps, renews, .. } = GaussMarkov::new(ONE_PPB - 1);
        let variance = (renews * renews) as f64 / ((1u64 << 62) - (keeps * keeps) as u64) as f64;
        assert!((variance - 1.0).abs() < 1e-4, "{variance}");
        let mut process = GaussMarkov::new(ONE_PPB - 1);
        let first = process.step(1 << UNIT_LOG2);
        let later = (0..1_000_000).fold(0, |_, _| process.step(0));
        assert!(later < first && later > first - first / 500, "{first} {later}");
    }

    #[test]
    fn a_correlated_delay_never_leaves_its_bounds() {
        let mut process = GaussMarkov::new(99 * PERCENT);
        for _ in 0..1_000 {
            assert!(process.step(4 << UNIT_LOG2) <= 4 << UNIT_LOG2);
        }
        assert_eq!(process.step(4 << UNIT_LOG2), 4 << UNIT_LOG2);
        let short = Delay::GaussMarkov { delay_ns: 15 * MS, jitter_ns: 5 * MS, correlation_ppb: 90 * PERCENT };
        assert_eq!((Distribution::new(&short).least(), Distribution::new(&gauss_markov(0)).least()), (0, 30 * MS));
        assert_eq!(moments(&short).2, 0.0);
    }

    #[test]
    fn a_table_gives_its_values_equally_often() {
        let mut distribution = Distribution::new(&Delay::Table { delays_ns: vec![7, 1, 4] });
        let mut stream = Stream::new(3, Stage::Delay);
        let draws: Vec<_> = (0..30_000).map(|_| distribution.draw(&mut stream)).collect();
        for value in [1, 4, 7] {
            let count = draws.iter().filter(|draw| **draw == value).count();
            assert!((9_700..10_300).contains(&count), "{value}: {count}");
        }
        assert_eq!(distribution.least(), 1);
    }

    /// The same numbers on every machine: a change here changes every seeded run.
    #[test]
    fn tables_do_not_depend_on_the_machine() {
        let sum =
            |table: &Quantiles| table.iter().fold(0u64, |sum, entry| sum.wrapping_mul(31).wrapping_add(*entry as u64));
        assert_eq!((sum(&normal()), sum(&pareto())), (11356469852741844416, 16970249211322858812));
    }
}
