//! From arrivals to figures: pure. In: what was sent and every arrival with its kernel time stamp. Out: counts,
//! percentiles of the one-way delay, jitter (RFC 3550, section 6.4.1), reordering (RFC 4737, section 3.3) and the
//! steady part from which a rate is counted.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub sequence: u64,
    pub at_ns: i64,
    pub delay_ns: i64,
}

#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    pub min_ns: i64,
    pub p1_ns: i64,
    pub p50_ns: i64,
    pub p90_ns: i64,
    pub p99_ns: i64,
    pub p999_ns: i64,
    pub max_ns: i64,
    pub mean_ns: f64,
    /// Of a sample: divided by n − 1.
    pub deviation_ns: f64,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Different packets that arrived.
    pub received_packets: u64,
    pub lost_packets: u64,
    /// Further copies of packets that had arrived.
    pub duplicated_packets: u64,
    pub reordered_packets: u64,
}

/// Everything that arrived after the start of the steady part, copies included: they take their share of the rate.
#[derive(Debug, PartialEq, Serialize)]
pub struct Steady {
    /// Arrivals after the first of the part: the number of service times in `window_ns`.
    pub packets: u64,
    pub l3_bytes: u64,
    /// First to last arrival of the part.
    pub window_ns: u64,
    /// The same by the medians of its first and last tenth: packets that came late in a bunch do not decide it.
    pub fitted_window_ns: f64,
    /// Longest pause between two arrivals.
    pub longest_gap_ns: i64,
    /// The pauses as multiples of the shortest one, each rounded, together: of packets of equal size that a full queue
    /// sends, the service times in `window_ns`, also of those of them that were damaged and did not arrive.
    pub services: u64,
    /// Of the longest run without a pause of the link: packets after the first, and the time they took.
    pub busy_packets: u64,
    pub busy_window_ns: u64,
    pub delay: Percentiles,
}

/// Nearest-rank percentile (the smallest value with at least `per_mille` of all at or below it) of sorted values.
pub fn percentile(sorted: &[i64], per_mille: usize) -> i64 {
    let rank = (sorted.len() * per_mille).div_ceil(1000).max(1);
    sorted[rank - 1]
}

/// `None` without values: there is no percentile of nothing.
pub fn percentiles(mut values: Vec<i64>) -> Option<Percentiles> {
    let (&first, count) = (values.first()?, values.len() as f64);
    values.sort_unstable();
    // Around the first value: nanoseconds since 1970 leave no digits for a variance in 64 bits.
    let mean = values.iter().map(|value| (value - first) as f64).sum::<f64>() / count;
    let squares = values.iter().map(|value| ((value - first) as f64 - mean).powi(2)).sum::<f64>();
    Some(Percentiles {
        min_ns: values[0],
        p1_ns: percentile(&values, 10),
        p50_ns: percentile(&values, 500),
        p90_ns: percentile(&values, 900),
        p99_ns: percentile(&values, 990),
        p999_ns: percentile(&values, 999),
        max_ns: values[values.len() - 1],
        mean_ns: mean + first as f64,
        deviation_ns: if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 },
    })
}

pub fn counts(arrivals: &[Arrival], offered: u64, sent: u64) -> Counts {
    let mut seen = vec![false; offered as usize];
    let mut counts = Counts::default();
    let mut next = 0;
    for arrival in arrivals {
        if std::mem::replace(&mut seen[arrival.sequence as usize], true) {
            counts.duplicated_packets += 1;
            continue;
        }
        counts.received_packets += 1;
        if arrival.sequence < next {
            counts.reordered_packets += 1;
        } else {
            next = arrival.sequence + 1;
        }
    }
    counts.lost_packets = sent.saturating_sub(counts.received_packets);
    counts
}

/// How many packets in a row were lost, and how often so many: ascending. Of `offered` packets the last ones are left
/// out where nothing arrived after them, as they may not have been sent.
pub fn loss_runs(arrivals: &[Arrival]) -> Vec<(u64, u64)> {
    let mut sequences: Vec<u64> = arrivals.iter().map(|arrival| arrival.sequence).collect();
    sequences.sort_unstable();
    let mut runs = std::collections::BTreeMap::new();
    let mut next = 0;
    for sequence in sequences {
        if sequence > next {
            *runs.entry(sequence - next).or_insert(0) += 1;
        }
        next = next.max(sequence + 1);
    }
    runs.into_iter().collect()
}

/// Times between arrivals, in their order.
pub fn spacings_ns(arrivals: &[Arrival]) -> Vec<i64> {
    arrivals.windows(2).map(|two| two[1].at_ns - two[0].at_ns).collect()
}

/// J ← J + (|D| − J)/16 over arrivals in their order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jitter {
    before_ns: Option<i64>,
    ns: f64,
}

impl Jitter {
    pub fn take(&mut self, delay_ns: i64) {
        if let Some(before) = self.before_ns.replace(delay_ns) {
            self.ns += ((delay_ns - before).abs() as f64 - self.ns) / 16.0;
        }
    }

    pub fn ns(&self) -> f64 {
        self.ns
    }
}

pub fn jitter_ns(arrivals: &[Arrival]) -> f64 {
    let mut jitter = Jitter::default();
    arrivals.iter().for_each(|arrival| jitter.take(arrival.delay_ns));
    jitter.ns()
}

/// The part from `skip_ns` after the first arrival to the last; `None` with fewer than two arrivals in it.
pub fn steady(arrivals: &[Arrival], skip_ns: u64, packet_bytes: u64) -> Option<Steady> {
    let from = arrivals.first()?.at_ns + skip_ns as i64;
    let part: Vec<&Arrival> = arrivals.iter().filter(|arrival| arrival.at_ns >= from).collect();
    let window = part.last()?.at_ns - part.first()?.at_ns;
    if part.len() < 2 || window <= 0 {
        return None;
    }
    let packets = part.len() as u64 - 1;
    let delay = percentiles(part.iter().map(|arrival| arrival.delay_ns).collect())?;
    let least = arrivals.iter().map(|arrival| arrival.delay_ns).min()?;
    let (busy_packets, busy_window_ns) = busy(&part, least, delay.p50_ns - least);
    let gaps_ns: Vec<i64> = part.windows(2).map(|two| two[1].at_ns - two[0].at_ns).collect();
    Some(Steady {
        packets,
        l3_bytes: packets * packet_bytes,
        window_ns: window as u64,
        fitted_window_ns: fitted_window_ns(&part),
        longest_gap_ns: gaps_ns.iter().copied().max().unwrap_or(0),
        services: services(&gaps_ns),
        busy_packets,
        busy_window_ns,
        delay,
    })
}

fn services(gaps_ns: &[i64]) -> u64 {
    let shortest = gaps_ns.iter().copied().min().unwrap_or(0).max(1) as f64;
    gaps_ns.iter().map(|&gap| (gap as f64 / shortest).round() as u64).sum()
}

/// The longest run of packets that all waited in the queue, so that the link was never idle; broken where packets
/// came much later than those around them, which is no waiting in the queue.
fn busy(part: &[&Arrival], least_ns: i64, usual_ns: i64) -> (u64, u64) {
    const WAITED_NS: i64 = 100_000;
    const PAUSE_NS: i64 = 1_000_000;
    let last = part.len() - 1;
    let pace = (part[last].at_ns - part[0].at_ns) / last as i64;
    let waited = |arrival: &Arrival| {
        let excess = arrival.delay_ns - least_ns;
        (WAITED_NS..=usual_ns + usual_ns / 10 + 2 * WAITED_NS).contains(&excess)
    };
    let (mut best, mut from) = ((0, 0), 0);
    for index in 0..part.len() {
        if !waited(part[index]) {
            from = index + 1;
        } else if index > from && part[index].at_ns - part[index - 1].at_ns > PAUSE_NS + 3 * pace {
            from = index;
        } else if index > from {
            let window = (part[index].at_ns - part[from].at_ns) as u64;
            if window > best.1 {
                best = ((index - from) as u64, window);
            }
        }
    }
    best
}

/// How long arrivals of an even pace take from first to last: their times less those of an even pace between the two
/// ends are how late each is; the difference of the medians of both ends' tenths is what the pace is wrong by.
fn fitted_window_ns(part: &[&Arrival]) -> f64 {
    let (from, last) = (part[0].at_ns, part.len() - 1);
    let window = (part[last].at_ns - from) as f64;
    let late = |index: usize| (part[index].at_ns - from) as f64 - window * index as f64 / last as f64;
    let tenth = (part.len() / 10).max(1);
    let median = |from: usize| {
        let mut values: Vec<f64> = (from..from + tenth).map(late).collect();
        values.sort_unstable_by(f64::total_cmp);
        (values[(tenth - 1) / 2] + values[tenth / 2]) / 2.0
    };
    let between = (part.len() - tenth) as f64;
    window + (median(part.len() - tenth) - median(0)) * last as f64 / between
}

/// Arrivals in each `bin_ns` since the first; empty when `bin_ns` is 0.
pub fn series(arrivals: &[Arrival], bin_ns: u64) -> Vec<u64> {
    let mut bins = Vec::new();
    if let (Some(first), true) = (arrivals.first(), bin_ns > 0) {
        for arrival in arrivals {
            let bin = ((arrival.at_ns - first.at_ns).max(0) as u64 / bin_ns) as usize;
            bins.resize(bins.len().max(bin + 1), 0);
            bins[bin] += 1;
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(sequence: u64, at_ns: i64, delay_ns: i64) -> Arrival {
        Arrival { sequence, at_ns, delay_ns }
    }

    #[test]
    fn runs_of_losses_are_counted_by_their_length() {
        let arrivals: Vec<_> = [1, 4, 3, 3, 5, 8, 11].map(|sequence| at(sequence, 0, 0)).into();
        assert_eq!(loss_runs(&arrivals), [(1, 2), (2, 2)]);
        assert_eq!(loss_runs(&[]), []);
    }

    #[test]
    fn spacings_are_between_neighbours() {
        assert_eq!(spacings_ns(&[at(0, 5, 0), at(1, 7, 0), at(2, 20, 0)]), [2, 13]);
        assert_eq!(spacings_ns(&[]), [0; 0]);
    }

    #[test]
    fn percentiles_of_one_to_thousand() {
        let found = percentiles((1..=1000).rev().collect()).unwrap();
        assert_eq!((found.min_ns, found.p1_ns, found.p50_ns, found.p90_ns), (1, 10, 500, 900));
        assert_eq!((found.p99_ns, found.p999_ns, found.max_ns), (990, 999, 1000));
        assert!((found.mean_ns - 500.5).abs() < 1e-9);
        assert!((found.deviation_ns - 288.819_436).abs() < 1e-5);
    }

    #[test]
    fn of_one_value_all_percentiles_are_that_value_and_of_none_there_are_none() {
        let found = percentiles(vec![7]).unwrap();
        assert_eq!((found.min_ns, found.p50_ns, found.max_ns), (7, 7, 7));
        assert_eq!(percentiles(vec![]), None);
    }

    #[test]
    fn lost_duplicated_reordered() {
        // Sent 0 to 5; 2 comes late, 3 comes twice, 5 never.
        let arrivals = [at(0, 0, 0), at(1, 1, 0), at(3, 2, 0), at(2, 3, 0), at(3, 4, 0), at(4, 5, 0)];
        let expected = Counts { received_packets: 5, lost_packets: 1, duplicated_packets: 1, reordered_packets: 1 };
        assert_eq!(counts(&arrivals, 6, 6), expected);
    }

    #[test]
    fn a_packet_the_host_refused_is_not_lost_by_the_link() {
        assert_eq!(counts(&[at(0, 0, 0)], 2, 1).lost_packets, 0);
    }

    #[test]
    fn jitter_by_hand() {
        // |D| = 16, then 0: 0 + 16/16 = 1; 1 − 1/16.
        assert_eq!(jitter_ns(&[at(0, 0, 100), at(1, 1, 116), at(2, 2, 116)]), 0.9375);
    }

    #[test]
    fn the_steady_part_counts_service_times_not_packets() {
        let arrivals: Vec<_> = (0..11).map(|k| at(k, 1000 + 10 * k as i64, 5)).collect();
        let found = steady(&arrivals, 50, 1500).unwrap();
        assert_eq!((found.packets, found.l3_bytes, found.window_ns, found.longest_gap_ns), (5, 7500, 50, 10));
        assert_eq!(steady(&arrivals, 100, 1500), None);
    }

    #[test]
    fn packets_that_were_damaged_took_their_time_too() {
        // 123.4 ns each; every seventh does not arrive, nor the one after the 70th.
        let missing = |k: u64| k.is_multiple_of(7) || k == 71;
        let arrivals: Vec<_> =
            (1..100).filter(|&k| !missing(k)).map(|k| at(k, (k as f64 * 123.4).ceil() as i64, 5)).collect();
        let found = steady(&arrivals, 0, 1500).unwrap();
        assert_eq!((found.packets, found.services), (83, 98));
    }

    #[test]
    fn the_longest_busy_run_ends_where_the_queue_was_empty() {
        // One a ms; all wait for 5 ms, except the 40th, which finds the queue empty.
        let ms = 1_000_000;
        let wait = |k: i64| if k == 40 { 0 } else { 5 * ms };
        let arrivals: Vec<_> = (0..100).map(|k| at(k as u64, k * ms, 50 * ms + wait(k))).collect();
        let found = steady(&arrivals, 0, 1500).unwrap();
        assert_eq!((found.busy_packets, found.busy_window_ns), (58, 58_000_000));
    }

    #[test]
    fn a_bunch_of_late_packets_does_not_change_the_pace() {
        // One every 10 ns for 10 µs; the first five wait for the sixth.
        let arrivals: Vec<_> = (0..1001).map(|k| at(k, if k < 5 { 50 } else { 10 * k as i64 }, 5)).collect();
        let found = steady(&arrivals, 0, 1500).unwrap();
        assert_eq!(found.window_ns, 9950);
        assert!((found.fitted_window_ns - 10_000.0).abs() < 5.0, "{found:?}");
        let even: Vec<_> = (0..1001).map(|k| at(k, 10 * k as i64, 5)).collect();
        assert!((steady(&even, 0, 1500).unwrap().fitted_window_ns - 10_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_series_has_a_bin_for_silence() {
        assert_eq!(series(&[at(0, 100, 0), at(1, 105, 0), at(2, 125, 0)], 10), [2, 0, 1]);
    }
}
