//! Laws by which sizes and pauses are drawn, each by the mean that a description names, and seeded streams to draw from.
//!
//! In: `{"law": "pareto", "mean": 100000, "shape": 1.3, "most": 1e9}` and a seed. Out: values, the same in every run and
//! on every machine. `most` and the normal law's 0 cut what lies beyond them to their own value, so a cut law has another
//! mean than the one it names. Sums of values carry what rounding to whole nanoseconds leaves: a schedule does not drift.

use rand_core::SeedableRng;
use rand_distr::{Distribution, Exp, Gamma, Normal, Pareto, Uniform, Weibull};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Deserialize;

pub type Stream = Xoshiro256PlusPlus;

/// One of a flow's streams, by what it is for (its sizes, its pauses, …): a use that draws more changes no other.
pub fn stream(seed: u64, purpose: u64) -> Stream {
    Stream::seed_from_u64(mix(mix(seed).wrapping_add(purpose)))
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), after one step of its sequence.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// No value is above this: four years in nanoseconds, 2^57 bytes.
const LARGEST: f64 = (1u64 << 57) as f64;

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "Named")]
pub struct Law {
    kind: Kind,
    mean: f64,
    /// Nothing below is drawn, and nothing above.
    least: f64,
    most: f64,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Constant(f64),
    Uniform(Uniform<f64>),
    Exponential(Exp<f64>),
    Pareto(Pareto<f64>),
    Weibull(Weibull<f64>),
    Normal(Normal<f64>),
    Gamma(Gamma<f64>),
}

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    law: String,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    mean: Option<f64>,
    shape: Option<f64>,
    deviation: Option<f64>,
    most: Option<f64>,
}

impl TryFrom<Named> for Law {
    type Error = String;

    fn try_from(named: Named) -> Result<Self, String> {
        let given = [
            ("value", named.value),
            ("low", named.low),
            ("high", named.high),
            ("mean", named.mean),
            ("shape", named.shape),
            ("deviation", named.deviation),
        ];
        let law = named.law.as_str();
        let keys: &[&str] = match law {
            "constant" => &["value"],
            "uniform" => &["low", "high"],
            "exponential" => &["mean"],
            "pareto" | "weibull" | "gamma" => &["mean", "shape"],
            "normal" => &["mean", "deviation"],
            _ => return Err(unknown(law)),
        };
        if let Some((key, _)) = given.iter().find(|(key, value)| value.is_some() && !keys.contains(key)) {
            return Err(format!("law {law} has no {key}: give {}", keys.join(" and ")));
        }
        let take = |key: &str| match given.iter().find(|(name, _)| *name == key) {
            Some((_, Some(value))) if value.is_finite() && (0.0..=LARGEST).contains(value) => Ok(*value),
            Some((_, Some(value))) => Err(format!("law {law}: {key} {value}: give 0 or more, up to 2^57")),
            _ => Err(format!("law {law}: {key} is missing: give {}", keys.join(" and "))),
        };
        let above = |key: &str, least: f64| match take(key)? {
            value if value > least => Ok(value),
            value => Err(format!("law {law}: {key} {value}: give more than {least}")),
        };
        let most = match named.most {
            None => LARGEST,
            Some(most) if most >= 0.0 => most.min(LARGEST),
            Some(most) => return Err(format!("law {law}: most {most}: give 0 or more")),
        };
        let odd = |error: &dyn std::fmt::Display| format!("law {law}: {error}");
        let (kind, mean, least, highest) = match law {
            "constant" => {
                let value = take("value")?;
                (Kind::Constant(value), value, value, value)
            }
            "uniform" => {
                let (low, high) = (take("low")?, take("high")?);
                if low > high {
                    return Err(format!("law uniform: low {low} is above high {high}"));
                }
                let kind = Kind::Uniform(Uniform::new_inclusive(low, high).map_err(|error| odd(&error))?);
                (kind, (low + high) / 2.0, low, high)
            }
            "exponential" => {
                let mean = above("mean", 0.0)?;
                (Kind::Exponential(Exp::new(1.0 / mean).map_err(|error| odd(&error))?), mean, 0.0, LARGEST)
            }
            "pareto" => {
                let (mean, shape) = (above("mean", 0.0)?, above("shape", 1.0)?);
                let scale = mean * (shape - 1.0) / shape;
                (Kind::Pareto(Pareto::new(scale, shape).map_err(|error| odd(&error))?), mean, scale, LARGEST)
            }
            "weibull" => {
                let (mean, shape) = (above("mean", 0.0)?, above("shape", 0.0)?);
                let scale = mean / libm::tgamma(1.0 + 1.0 / shape);
                (Kind::Weibull(Weibull::new(scale, shape).map_err(|error| odd(&error))?), mean, 0.0, LARGEST)
            }
            "gamma" => {
                let (mean, shape) = (above("mean", 0.0)?, above("shape", 0.0)?);
                (Kind::Gamma(Gamma::new(shape, mean / shape).map_err(|error| odd(&error))?), mean, 0.0, LARGEST)
            }
            "normal" => {
                let (mean, deviation) = (take("mean")?, take("deviation")?);
                (Kind::Normal(Normal::new(mean, deviation).map_err(|error| odd(&error))?), mean, 0.0, LARGEST)
            }
            _ => return Err(unknown(law)),
        };
        let most = most.min(highest);
        Ok(Self { kind, mean, least: least.min(most), most })
    }
}

fn unknown(law: &str) -> String {
    let known = "constant, uniform, exponential, pareto, weibull, normal, gamma";
    format!("law {law:?} is unknown: there are {known}")
}

impl Law {
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        let value = match &self.kind {
            Kind::Constant(value) => *value,
            Kind::Uniform(law) => law.sample(stream),
            Kind::Exponential(law) => law.sample(stream),
            Kind::Pareto(law) => law.sample(stream),
            Kind::Weibull(law) => law.sample(stream),
            Kind::Normal(law) => law.sample(stream),
            Kind::Gamma(law) => law.sample(stream),
        };
        value.clamp(self.least, self.most)
    }

    /// Drawn and rounded to whole bytes or nanoseconds.
    pub fn draw_whole(&self, stream: &mut Stream) -> u64 {
        self.draw(stream).round() as u64
    }

    /// The mean that it names; what is drawn has a lower one where `most` cuts, a higher one where 0 does.
    pub fn mean(&self) -> f64 {
        self.mean.min(self.most)
    }

    /// Nothing below is drawn.
    pub fn least(&self) -> f64 {
        self.least
    }

    /// Nothing above is drawn; none for a law that has no end.
    pub fn most(&self) -> Option<f64> {
        (self.most < LARGEST).then_some(self.most)
    }
}

/// What has been drawn so far, summed: instants in whole nanoseconds, none of which is off by more than half of one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    whole_ns: u64,
    rest: f64,
}

impl Sum {
    pub fn from_ns(ns: u64) -> Self {
        Self { whole_ns: ns, rest: 0.0 }
    }

    pub fn add(&mut self, value: f64) {
        let sum = self.rest + value;
        let whole = sum.floor();
        self.whole_ns = self.whole_ns.saturating_add(whole as u64);
        self.rest = sum - whole;
    }

    pub fn ns(&self) -> u64 {
        self.whole_ns.saturating_add(u64::from(self.rest >= 0.5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn law(text: &str) -> Law {
        serde_json::from_str(text).unwrap()
    }

    fn drawn(law: &Law) -> Vec<f64> {
        let mut stream = stream(1, 0);
        let mut values: Vec<f64> = (0..DRAWS).map(|_| law.draw(&mut stream)).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    /// Mean and variance of a sample within four standard errors of the law's, the variance's by its fourth moment.
    fn has(text: &str, mean: f64, variance: f64, kurtosis: f64) {
        let values = drawn(&law(text));
        let count = DRAWS as f64;
        let found = values.iter().sum::<f64>() / count;
        let spread = values.iter().map(|value| (value - found).powi(2)).sum::<f64>() / count;
        assert!((found - mean).abs() <= 4.0 * (variance / count).sqrt() + 1e-9, "{text}: mean {found}, not {mean}");
        let error = variance * ((kurtosis - 1.0) / count).sqrt();
        assert!((spread - variance).abs() <= 4.0 * error + 1e-9, "{text}: variance {spread}, not {variance}");
    }

    /// Quantiles at 10, 50, 90 and 99 %, each within four standard errors (of the rank).
    fn is(text: &str, quantile: impl Fn(f64) -> f64) {
        let values = drawn(&law(text));
        for p in [0.1, 0.5, 0.9, 0.99] {
            let error = 4.0 * (p * (1.0 - p) / DRAWS as f64).sqrt();
            let (low, high) = (quantile(p - error), quantile(p + error));
            let found = values[(p * DRAWS as f64) as usize];
            assert!(low <= found && found <= high, "{text}: {found} at {p}, not within {low}..{high}");
        }
    }

    #[test]
    fn each_law_has_its_mean_and_variance() {
        has(r#"{"law": "constant", "value": 1470}"#, 1470.0, 0.0, 1.0);
        has(r#"{"law": "uniform", "low": 100, "high": 700}"#, 400.0, 600.0 * 600.0 / 12.0, 1.8);
        has(r#"{"law": "exponential", "mean": 250}"#, 250.0, 250.0 * 250.0, 9.0);
        has(r#"{"law": "normal", "mean": 1000, "deviation": 100}"#, 1000.0, 1e4, 3.0);
        // Gamma of mean m and shape k: variance m²/k, kurtosis 3 + 6/k.
        has(r#"{"law": "gamma", "mean": 300, "shape": 2.5}"#, 300.0, 36_000.0, 5.4);
        has(r#"{"law": "gamma", "mean": 300, "shape": 0.5}"#, 300.0, 180_000.0, 15.0);
        // Pareto of scale s and shape 6: mean 6s/5, variance s²·6/(25·4); excess kurtosis 35.67 (shape above 4).
        has(r#"{"law": "pareto", "mean": 120, "shape": 6}"#, 120.0, 600.0, 38.67);
        // Weibull of shape 2 (Rayleigh) and scale s: mean s·√π/2, variance s²(1 − π/4), kurtosis 3.245.
        let scale = 2.0 * 100.0 / std::f64::consts::PI.sqrt();
        let variance = scale * scale * (1.0 - std::f64::consts::FRAC_PI_4);
        has(r#"{"law": "weibull", "mean": 100, "shape": 2}"#, 100.0, variance, 3.245);
    }

    #[test]
    fn heavy_tails_have_the_quantiles_of_their_formulas() {
        // The files of the JGN2 papers: mean 100 kB, so the scale is 100 kB · 0.3/1.3.
        is(r#"{"law": "pareto", "mean": 100000, "shape": 1.3}"#, |p| 1e5 * 0.3 / 1.3 * (1.0 - p).powf(-1.0 / 1.3));
        is(r#"{"law": "exponential", "mean": 5}"#, |p| -5.0 * (1.0 - p).ln());
        // Γ(1 + 1/0.5) = Γ(3) = 2.
        is(r#"{"law": "weibull", "mean": 10, "shape": 0.5}"#, |p| 10.0 / 2.0 * (-(1.0 - p).ln()).powi(2));
    }

    #[test]
    fn cut_values_become_the_limit_and_lower_the_mean() {
        // Mean of an exponential cut at c: m(1 − e^(−c/m)).
        let values = drawn(&law(r#"{"law": "exponential", "mean": 100, "most": 100}"#));
        let (found, expected) = (values.iter().sum::<f64>() / DRAWS as f64, 100.0 * (1.0 - (-1f64).exp()));
        assert!((found - expected).abs() < 0.5, "{found}, not {expected}");
        assert_eq!(values[DRAWS - 1], 100.0);
        let at_zero = drawn(&law(r#"{"law": "normal", "mean": 0, "deviation": 5}"#));
        assert_eq!((at_zero[0], at_zero[DRAWS * 49 / 100]), (0.0, 0.0));
        assert!(at_zero[DRAWS * 51 / 100] > 0.0);
        let least = law(r#"{"law": "pareto", "mean": 130, "shape": 1.3, "most": 1000}"#);
        assert!((least.least() - 30.0).abs() < 1e-9);
        assert_eq!((least.most(), law(r#"{"law": "gamma", "mean": 1, "shape": 1}"#).most()), (Some(1000.0), None));
    }

    #[test]
    fn a_stream_is_the_same_in_every_run_and_others_do_not_touch_it() {
        let law = law(r#"{"law": "uniform", "low": 0, "high": 1}"#);
        let first = |seed, purpose| law.draw(&mut stream(seed, purpose));
        assert_eq!(first(1, 0), first(1, 0));
        let all = [first(1, 0), first(1, 1), first(2, 0), first(0, 1), first(2, 1)];
        for (index, value) in all.iter().enumerate() {
            assert!(!all[..index].contains(value), "{all:?}");
        }
    }

    #[test]
    fn a_sum_of_fractions_does_not_drift() {
        // 1470 bytes at 9 Mbit/s: 1306666.67 ns each; a million of them take 1306.67 s to the nanosecond.
        let mut sum = Sum::from_ns(5);
        (0..1_000_000).for_each(|_| sum.add(1470.0 * 8.0 / 9e6 * 1e9));
        assert_eq!(sum.ns(), 1_306_666_666_672);
    }

    #[test]
    fn what_is_no_law_is_refused_with_what_to_write() {
        for (text, says) in [
            (r#"{"law": "cauchy"}"#, "law \"cauchy\" is unknown: there are constant, uniform"),
            (r#"{"law": "pareto", "mean": 1}"#, "law pareto: shape is missing: give mean and shape"),
            (r#"{"law": "pareto", "mean": 1, "shape": 1}"#, "law pareto: shape 1: give more than 1"),
            (r#"{"law": "constant", "value": 1, "mean": 1}"#, "law constant has no mean: give value"),
            (r#"{"law": "uniform", "low": 3, "high": 2}"#, "low 3 is above high 2"),
            (r#"{"law": "exponential", "mean": 0}"#, "law exponential: mean 0: give more than 0"),
            (r#"{"law": "constant", "value": -1}"#, "law constant: value -1: give 0 or more"),
            (r#"{"law": "constant", "value": 1, "least": 1}"#, "unknown field `least`"),
        ] {
            let error = serde_json::from_str::<Law>(text).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
    }
}
