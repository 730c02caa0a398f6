//! By how much the clocks of two machines differ: pure. In: exchanges, each with when its question left and its answer came
//! by our clock and both ways' delays by both clocks as they stand. Out: the other clock's offset and drift, with bounds.
//!
//! The four times of an exchange are those of NTP (RFC 5905, section 8). Where NTP takes half of the difference of both
//! delays, which is wrong by up to half of the round trip, this keeps what each exchange proves: a packet is not there before
//! it is sent. So the offset was at most the delay there when the question left, and at least the delay back, with
//! the sign changed, when the answer came. Clocks drift evenly over a few seconds, so the offset is a line below all of the
//! former points and above all of the latter (as of Moon, Skelly and Towsley, "Estimation and Removal of Clock Skew from
//! Network Delay Measurements", INFOCOM 1999). What all such lines leave open is the uncertainty: it holds however different
//! the two ways are. Mostly it is half of the smallest round trip, and never more than all of it. The estimate is in the
//! middle of what is left with the drift that is stated, so it is exact where the quickest packets took equally long each way.

use ewan_traffic::probe::stats;
use serde::Serialize;

/// One question and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the question left and the answer came, by our clock: T1 and T4 of RFC 5905.
    pub sent_ns: i64,
    pub received_ns: i64,
    /// T2 − T1 and T4 − T3: each by both ends' clocks, so offset included.
    pub there_ns: i64,
    pub back_ns: i64,
}

impl Exchange {
    /// Without the time that the other end took to answer.
    pub fn round_trip_ns(&self) -> i64 {
        self.there_ns + self.back_ns
    }
}

impl ClockComparison {
    /// The exchange with both delays as the clocks stood at `at_ns`: without the drift since, where one is seen.
    pub fn without_drift(&self, exchange: &Exchange) -> Exchange {
        let ppb = i128::from(self.drift_ppb.unwrap_or(0));
        let drifted_ns = |at_ns: i64| (i128::from(at_ns - self.at_ns) * ppb / 1_000_000_000) as i64;
        Exchange {
            there_ns: exchange.there_ns - drifted_ns(exchange.sent_ns),
            back_ns: exchange.back_ns + drifted_ns(exchange.received_ns),
            ..*exchange
        }
    }
}

/// The other machine's clock beside ours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClockComparison {
    /// Theirs minus ours, when ours showed `at_ns`.
    pub offset_ns: i64,
    #[serde(rename = "offset_at_ns")]
    pub at_ns: i64,
    /// The offset is not further from this, whatever the ways there and back are like.
    #[serde(rename = "offset_uncertainty_ns")]
    pub uncertainty_ns: i64,
    /// Standard deviation of what single exchanges give, of each eight successive ones that with the smallest round
    /// trip (the clock filter of RFC 5905, section 10); None of fewer than two such.
    #[serde(rename = "offset_scatter_ns")]
    pub scatter_ns: Option<i64>,
    /// Theirs gains so many ns a second on ours; None where the exchanges allow for both directions.
    pub drift_ppb: Option<i64>,
    /// The drift (0 where it is None) is not further from this.
    pub drift_uncertainty_ppb: i64,
}

/// No line fits: a clock was set meanwhile, or its pace changed.
#[derive(Debug, PartialEq, Eq)]
pub struct UnsteadyClock;

/// Each clock runs wrong by at most 500 ppm, and is slewed by as much (adjtimex(2)). One that is set faster is no clock to
/// measure by.
const MOST_DRIFT: f64 = 2e-3;
const FILTER: usize = 8;
/// Each step leaves two thirds of a range; this leaves less than 10⁻¹⁴ of it.
const STEPS: usize = 80;

/// None without exchanges.
pub fn compare(exchanges: &[Exchange]) -> Option<Result<ClockComparison, UnsteadyClock>> {
    let best = exchanges.iter().min_by_key(|exchange| exchange.round_trip_ns())?;
    let origin = Origin { at_ns: i64::midpoint(best.sent_ns, best.received_ns), offset_ns: offset_of(best) };
    let lines = Lines::of(exchanges, &origin);
    Some(lines.drifts().map(|(least, most)| {
        let lowest = -maximum(least, most, |drift| -lines.floor(drift)).1;
        let highest = maximum(least, most, |drift| lines.ceiling(drift)).1;
        let seen = least > 0.0 || most < 0.0;
        let drift = if seen { f64::midpoint(least, most) } else { 0.0 };
        let middle = f64::midpoint(lines.floor(drift), lines.ceiling(drift)).round();
        let ppb = |drift: f64| drift * 1e9;
        ClockComparison {
            offset_ns: origin.offset_ns + middle as i64,
            at_ns: origin.at_ns,
            uncertainty_ns: (highest - middle).max(middle - lowest).ceil() as i64,
            scatter_ns: scatter_ns(exchanges, &origin, drift),
            drift_ppb: seen.then(|| ppb(drift).round() as i64),
            drift_uncertainty_ppb: ppb((most - drift).max(drift - least)).ceil() as i64,
        }
    }))
}

/// θ of RFC 5905, section 8.
fn offset_of(exchange: &Exchange) -> i64 {
    i64::midpoint(exchange.there_ns, -exchange.back_ns)
}

/// What times and offsets are counted from, so that they have digits to spare.
struct Origin {
    at_ns: i64,
    offset_ns: i64,
}

/// The points below and above which the line of the offset is: when, and how much.
struct Lines {
    above: Vec<(f64, f64)>,
    below: Vec<(f64, f64)>,
}

impl Lines {
    fn of(exchanges: &[Exchange], origin: &Origin) -> Self {
        let point = |at_ns: i64, offset_ns: i64| ((at_ns - origin.at_ns) as f64, (offset_ns - origin.offset_ns) as f64);
        Self {
            above: exchanges.iter().map(|each| point(each.sent_ns, each.there_ns)).collect(),
            below: exchanges.iter().map(|each| point(each.received_ns, -each.back_ns)).collect(),
        }
    }

    /// The most that the offset at the origin may be with this drift; concave.
    fn ceiling(&self, drift: f64) -> f64 {
        self.above.iter().map(|(at, offset)| offset - drift * at).fold(f64::INFINITY, f64::min)
    }

    /// The least; convex.
    fn floor(&self, drift: f64) -> f64 {
        self.below.iter().map(|(at, offset)| offset - drift * at).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The least and the largest drift with which there is a line.
    fn drifts(&self) -> Result<(f64, f64), UnsteadyClock> {
        let room = |drift: f64| self.ceiling(drift) - self.floor(drift);
        let (best, widest) = maximum(-MOST_DRIFT, MOST_DRIFT, room);
        if widest < 0.0 {
            return Err(UnsteadyClock);
        }
        // `inside` has room; the last drift towards `outside` that has.
        let edge = |mut outside: f64| {
            let mut inside = best;
            if room(outside) >= 0.0 {
                return outside;
            }
            for _ in 0..STEPS {
                let middle = f64::midpoint(inside, outside);
                *(if room(middle) >= 0.0 { &mut inside } else { &mut outside }) = middle;
            }
            outside
        };
        Ok((edge(-MOST_DRIFT), edge(MOST_DRIFT)))
    }
}

/// Where a concave function is largest, and how large.
fn maximum(mut from: f64, mut to: f64, of: impl Fn(f64) -> f64) -> (f64, f64) {
    for _ in 0..STEPS {
        let third = (to - from) / 3.0;
        let (left, right) = (from + third, to - third);
        if of(left) < of(right) {
            from = left;
        } else {
            to = right;
        }
    }
    let middle = f64::midpoint(from, to);
    (middle, of(middle))
}

fn scatter_ns(exchanges: &[Exchange], origin: &Origin, drift: f64) -> Option<i64> {
    let best = exchanges.chunks(FILTER).filter_map(|eight| eight.iter().min_by_key(|each| each.round_trip_ns()));
    let offsets: Vec<i64> = best
        .map(|each| {
            let drifted = drift * (i64::midpoint(each.sent_ns, each.received_ns) - origin.at_ns) as f64;
            offset_of(each) - origin.offset_ns - drifted.round() as i64
        })
        .collect();
    let enough = offsets.len() > 1;
    stats::percentiles(offsets).filter(|_| enough).map(|found| found.deviation_ns.ceil() as i64)
}

#[cfg(test)]
#[path = "clocks_tests.rs"]
mod tests;
