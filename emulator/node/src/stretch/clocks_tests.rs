//! Clocks whose offset and drift are known, over ways whose delays are drawn: what is stated must hold.

use proptest::prelude::*;

use super::*;

const MS: i64 = 1_000_000;

/// Two clocks and what is between them, ns.
#[derive(Clone, Copy, Debug)]
struct World {
    offset_ns: i64,
    drift_ppb: i64,
    /// Smallest delays, and the means of what single packets wait beyond.
    there_ns: i64,
    back_ns: i64,
    jitter_there_ns: i64,
    jitter_back_ns: i64,
    /// What the other end takes to answer.
    answers_ns: i64,
}

const BEGUN_NS: i64 = 1_790_000_000_000_000_000;

impl World {
    /// The other clock minus ours when ours shows `at_ns`.
    fn offset_at(&self, at_ns: i64) -> i64 {
        self.offset_ns + (i128::from(at_ns - BEGUN_NS) * i128::from(self.drift_ppb) / 1_000_000_000) as i64
    }

    /// `draws`: of each exchange two numbers below 1, from which exponential waits come.
    fn exchanges(&self, draws: &[(f64, f64)], interval_ns: i64) -> Vec<Exchange> {
        let wait = |mean_ns: i64, draw: f64| (-(1.0 - draw).ln() * mean_ns as f64) as i64;
        let exchange = |(number, &(there, back)): (usize, &(f64, f64))| {
            let sent_ns = BEGUN_NS + number as i64 * interval_ns;
            let heard_ns = sent_ns + self.there_ns + wait(self.jitter_there_ns, there);
            let said_ns = heard_ns + self.answers_ns;
            let received_ns = said_ns + self.back_ns + wait(self.jitter_back_ns, back);
            Exchange {
                sent_ns,
                received_ns,
                there_ns: heard_ns + self.offset_at(heard_ns) - sent_ns,
                back_ns: received_ns - said_ns - self.offset_at(said_ns),
            }
        };
        draws.iter().enumerate().map(exchange).collect()
    }
}

fn found(exchanges: &[Exchange]) -> ClockComparison {
    compare(exchanges).expect("there are exchanges").expect("steady clocks")
}

fn even_draws(count: usize) -> Vec<(f64, f64)> {
    // Of period `count`, so that each value comes once each way, in another order.
    (0..count).map(|k| ((k * 37 % count) as f64 / count as f64, (k * 61 % count) as f64 / count as f64)).collect()
}

const SYMMETRIC: World = World {
    offset_ns: -3_200 * MS,
    drift_ppb: 0,
    there_ns: 5 * MS,
    back_ns: 5 * MS,
    jitter_there_ns: 2 * MS,
    jitter_back_ns: MS / 10,
    answers_ns: 70_000,
};

#[test]
fn the_ways_are_alike_and_the_offset_is_exact_whatever_the_jitter() {
    let found = found(&SYMMETRIC.exchanges(&even_draws(200), 5 * MS));
    // The smallest waits of 200 are 0 each way; theirs alone decide.
    assert!((found.offset_ns - SYMMETRIC.offset_ns).abs() <= 20_000, "{found:?}");
    // And what a drift that nobody knows makes of the time from question to answer.
    assert!((5 * MS..5 * MS + 12_000).contains(&found.uncertainty_ns), "{found:?}");
    // Single exchanges are wrong by half of what they waited more one way.
    assert!(found.scatter_ns.is_some_and(|scatter| (50_000..2 * MS).contains(&scatter)), "{found:?}");
    assert_eq!(found.drift_ppb, None);
}

#[test]
fn a_drift_is_seen_when_it_is_more_than_the_round_trips_hide() {
    // 1 s with 40 µs of round trip: 40 ppm at most are hidden.
    let near = World { there_ns: 20_000, back_ns: 20_000, jitter_there_ns: 5_000, jitter_back_ns: 9_000, ..SYMMETRIC };
    let drifting = World { drift_ppb: 80_000, ..near };
    let seen = found(&drifting.exchanges(&even_draws(200), 5 * MS));
    let drift = seen.drift_ppb.expect("a drift");
    assert!((drift - 80_000).abs() <= 10_000 && (drift - 80_000).abs() <= seen.drift_uncertainty_ppb, "{seen:?}");
    assert!((seen.offset_ns - drifting.offset_at(seen.at_ns)).abs() <= 2_000, "{seen:?}");
    let hidden = found(&World { drift_ppb: 5_000, ..near }.exchanges(&even_draws(200), 5 * MS));
    assert_eq!(hidden.drift_ppb, None);
    assert!(hidden.drift_uncertainty_ppb >= 5_000 && hidden.drift_uncertainty_ppb < 100_000, "{hidden:?}");
}

#[test]
fn a_drift_that_is_seen_is_taken_out_of_the_delays() {
    let drifting = World {
        there_ns: 20_000,
        back_ns: 30_000,
        jitter_there_ns: 0,
        jitter_back_ns: 0,
        drift_ppb: 200_000,
        ..SYMMETRIC
    };
    let exchanges = drifting.exchanges(&even_draws(200), 5 * MS);
    let found = found(&exchanges);
    assert!(exchanges[199].there_ns - exchanges[0].there_ns > 190_000, "that is a drift");
    for each in exchanges.iter().map(|each| found.without_drift(each)) {
        let offset_ns = drifting.offset_at(found.at_ns);
        assert!((each.there_ns - offset_ns - 20_000).abs() <= 1_000, "{each:?} {found:?}");
        assert!((each.back_ns + offset_ns - 30_000).abs() <= 1_000, "{each:?} {found:?}");
    }
}

#[test]
fn ways_that_differ_show_in_the_bound_alone() {
    let slanted = World { there_ns: 9 * MS, back_ns: MS, ..SYMMETRIC };
    let found = found(&slanted.exchanges(&even_draws(100), 5 * MS));
    let error = (found.offset_ns - slanted.offset_ns).abs();
    assert!((4 * MS - 50_000..=4 * MS + 50_000).contains(&error) && error <= found.uncertainty_ns, "{found:?}");
}

#[test]
fn one_exchange_bounds_the_offset_by_half_of_its_round_trip() {
    let exchange = SYMMETRIC.exchanges(&[(0.0, 0.0)], 1);
    let found = found(&exchange);
    assert_eq!((found.offset_ns, found.scatter_ns, found.drift_ppb), (SYMMETRIC.offset_ns, None, None));
    // The drift may be 2 per mille, over half of the time from question to answer.
    assert!((5 * MS..=5 * MS + 11_000).contains(&found.uncertainty_ns), "{found:?}");
    assert_eq!(compare(&[]), None);
}

#[test]
fn a_clock_that_is_set_meanwhile_is_noticed() {
    let mut exchanges = SYMMETRIC.exchanges(&even_draws(100), 5 * MS);
    for each in &mut exchanges[40..60] {
        each.there_ns += 500 * MS;
        each.back_ns -= 500 * MS;
    }
    assert_eq!(compare(&exchanges), Some(Err(UnsteadyClock)));
}

proptest! {
    #[test]
    fn the_true_offset_and_drift_are_within_what_is_stated(
        offset_ns in -1_000_000_000_000_000_000..1_000_000_000_000_000_000_i64,
        drift_ppb in -300_000..300_000_i64,
        there_ns in 1_000..200 * MS,
        back_ns in 1_000..200 * MS,
        jitter_there_ns in 0..20 * MS,
        jitter_back_ns in 0..20 * MS,
        answers_ns in 0..5 * MS,
        interval_ns in 10_000..20 * MS,
        draws in prop::collection::vec((0.0..1.0_f64, 0.0..1.0_f64), 1..120),
    ) {
        let world = World { offset_ns, drift_ppb, there_ns, back_ns, jitter_there_ns, jitter_back_ns, answers_ns };
        let exchanges = world.exchanges(&draws, interval_ns);
        let found = found(&exchanges);
        let error = (found.offset_ns - world.offset_at(found.at_ns)).abs();
        prop_assert!(error <= found.uncertainty_ns + 2, "{error} {found:?}");
        let wrong = (found.drift_ppb.unwrap_or(0) - drift_ppb).abs();
        prop_assert!(wrong <= found.drift_uncertainty_ppb + 1, "{wrong} {found:?}");
        // The smallest round trip, and what a drift that is not known makes of the time from question to answer.
        let best = exchanges.iter().min_by_key(|each| each.round_trip_ns()).expect("at least one");
        let most = best.round_trip_ns() + (best.received_ns - best.sent_ns) / 250 + 2;
        prop_assert!(found.uncertainty_ns <= most, "{most} {found:?}");
    }
}
