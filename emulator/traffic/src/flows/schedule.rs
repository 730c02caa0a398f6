//! When packets or writes are due and how large they are: pure. In: laws and a seed. Out: packets in their order, each due
//! at an exact instant that depends on nothing but what was drawn.

use std::ops::RangeInclusive;

use super::law::{stream, Law, Stream, Sum};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// From T0.
    pub at_ns: u64,
    /// Of payload.
    pub bytes: usize,
}

/// The laws that a schedule is drawn from.
#[derive(Clone, Debug)]
pub struct Laws {
    /// How many; none: without end.
    pub count: Option<u64>,
    pub sizes: Law,
    /// A size that is drawn below or above becomes the least or the most.
    pub bounds: RangeInclusive<u64>,
    pub intervals: Law,
    /// The lengths of the periods in which intervals run, and of those between them.
    pub on_off: Option<(Law, Law)>,
}

/// Why these cannot be the lengths of on and off periods.
pub fn check_periods(on: Option<Law>, off: Option<Law>) -> Result<(), String> {
    if on.is_some() != off.is_some() {
        Err("give both on_ns and off_ns, or neither".into())
    } else if on.is_some_and(|on| on.mean() < 1.0) {
        Err("on_ns: give a mean of 1 ns or more".into())
    } else {
        Ok(())
    }
}

pub struct Schedule {
    intervals: (Law, Stream),
    sizes: (Law, Stream),
    bounds: RangeInclusive<u64>,
    phases: Option<Phases>,
    /// Not yet given; none: without end.
    left: Option<u64>,
    start_ns: u64,
    stop_ns: u64,
    /// Of the next packet, off periods not counted.
    at: Sum,
}

/// Intervals go on where the last on period cut them, so that the rate within on periods is that of the intervals.
struct Phases {
    on: (Law, Stream),
    off: (Law, Stream),
    /// How much on time there is up to the end of the present period, and how much off time before it.
    on_until: Sum,
    off_before: Sum,
}

impl Phases {
    /// Off time before a packet that is due after `on_ns` of on time; more than `most_ns` is not counted.
    fn off_before(&mut self, on_ns: u64, most_ns: u64) -> u64 {
        while on_ns >= self.on_until.ns() && self.off_before.ns() < most_ns {
            self.off_before.add(self.off.0.draw(&mut self.off.1));
            self.on_until.add(self.on.0.draw(&mut self.on.1));
        }
        self.off_before.ns()
    }
}

impl Schedule {
    pub fn new(laws: Laws, seed: u64, start_ns: u64, stop_ns: Option<u64>) -> Self {
        let phases = laws.on_off.map(|(on, off)| {
            let mut on = (on, stream(seed, 2));
            let mut on_until = Sum::default();
            on_until.add(on.0.draw(&mut on.1));
            Phases { on, off: (off, stream(seed, 3)), on_until, off_before: Sum::default() }
        });
        Self {
            intervals: (laws.intervals, stream(seed, 0)),
            sizes: (laws.sizes, stream(seed, 1)),
            bounds: laws.bounds,
            phases,
            left: laws.count,
            start_ns,
            stop_ns: stop_ns.unwrap_or(u64::MAX),
            at: Sum::default(),
        }
    }

    fn size(&mut self) -> usize {
        let drawn = self.sizes.0.draw_whole(&mut self.sizes.1);
        drawn.clamp(*self.bounds.start(), *self.bounds.end()) as usize
    }

    /// Payload of all packets that were not given because time was over; none without a count.
    pub fn rest_bytes(&mut self) -> Option<u64> {
        let left = self.left?;
        Some((0..left).map(|_| self.size() as u64).sum())
    }
}

impl Iterator for Schedule {
    type Item = Departure;

    fn next(&mut self) -> Option<Departure> {
        if self.left == Some(0) {
            return None;
        }
        let on_ns = self.start_ns.saturating_add(self.at.ns());
        let off_ns = self.phases.as_mut().map_or(0, |phases| phases.off_before(self.at.ns(), self.stop_ns));
        let at_ns = on_ns.saturating_add(off_ns);
        if at_ns >= self.stop_ns {
            return None;
        }
        self.at.add(self.intervals.0.draw(&mut self.intervals.1));
        self.left = self.left.map(|left| left - 1);
        Some(Departure { at_ns, bytes: self.size() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::udp::Udp;
    use super::*;

    fn schedule(work: &str, seed: u64, stop_ns: Option<u64>) -> Schedule {
        let work: Udp = serde_json::from_str(work).unwrap();
        Schedule::new(work.laws(), seed, 1000, stop_ns)
    }

    const CONSTANT: &str =
        r#""size_bytes": {"law": "constant", "value": 100}, "interval_ns": {"law": "constant", "value": "#;

    #[test]
    fn a_constant_rate_is_due_at_multiples_of_its_interval() {
        let due: Vec<Departure> = schedule(&format!(r#"{{"count": 4, {CONSTANT} 333.5}}}}"#), 1, None).collect();
        assert_eq!(due.iter().map(|due| due.at_ns).collect::<Vec<_>>(), [1000, 1334, 1667, 2001]);
        assert!(due.iter().all(|due| due.bytes == 100));
    }

    #[test]
    fn nothing_is_due_at_its_stop_or_later_and_the_rest_is_counted() {
        let mut schedule = schedule(&format!(r#"{{"count": 10, {CONSTANT} 100}}}}"#), 1, Some(1300));
        assert_eq!(schedule.by_ref().map(|due| due.at_ns).collect::<Vec<_>>(), [1000, 1100, 1200]);
        assert_eq!(schedule.rest_bytes(), Some(700));
    }

    #[test]
    fn intervals_run_on_in_on_periods_alone() {
        // On for 250, off for 1000: on time 0, 100, 200 | 300, 400 | 500 …
        let text = format!(
            r#"{{"count": 6, {CONSTANT} 100}}, "on_ns": {{"law": "constant", "value": 250}},
                "off_ns": {{"law": "constant", "value": 1000}}}}"#
        );
        let due: Vec<u64> = schedule(&text, 1, None).map(|due| due.at_ns - 1000).collect();
        assert_eq!(due, [0, 100, 200, 1300, 1400, 2500]);
    }

    #[test]
    fn poisson_packets_come_at_their_rate_and_the_seed_alone_decides_when() {
        let text = r#"{"count": 40000, "size_bytes": {"law": "uniform", "low": 100, "high": 200},
            "interval_ns": {"law": "exponential", "mean": 1000}}"#;
        let due: Vec<Departure> = schedule(text, 1, None).collect();
        // Standard error of the mean of 40 000 exponentials: 0.5 %.
        let mean = (due[39_999].at_ns - due[0].at_ns) as f64 / 39_999.0;
        assert!((mean / 1000.0 - 1.0).abs() < 0.02, "{mean}");
        assert_eq!(due, schedule(text, 1, None).collect::<Vec<_>>());
        assert_ne!(due[..10], schedule(text, 2, None).take(10).collect::<Vec<_>>());
    }
}
