//! A medium that both directions share, against its definition: no two transmissions at once, none later than it may be,
//! and turns where both wait.

use std::collections::VecDeque;

use ewan_model::config::{Aggregate, CodelConfig, Delay, Direction, Discipline, DropTailConfig, PieConfig, Queue};
use ewan_model::{Change, Link, Meta, Nanos};
use proptest::prelude::*;

/// A byte takes 8 ns, so that all instants are whole.
const RATE_BPS: u64 = 1_000_000_000;
const OVERHEAD_BYTES: u32 = 38;

fn direction(delay_ns: Nanos) -> Direction {
    Direction { half_duplex: true, ..Direction::plain(RATE_BPS, Queue::drop_tail(Some(1_000), None), delay_ns) }
}

fn time_of(ip_bytes: u32) -> Nanos {
    8 * Nanos::from((ip_bytes + OVERHEAD_BYTES).max(84))
}

/// A packet's time, direction and length.
type Arrival = (Nanos, usize, u32);

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![3 => 0..3_000u64, 2 => 0..40_000u64, 1 => 0..200_000u64];
    prop::collection::vec((gap, 0..2usize, 20..1_500u32), 1..400).prop_map(|gaps| {
        let mut now = 1_000;
        let at = |(gap, direction, bytes)| {
            now += gap;
            (now, direction, bytes)
        };
        gaps.into_iter().map(at).collect()
    })
}

/// Number and time of departure of each packet, by direction, in order: one loop over transmissions.
fn defined(arrivals: &[Arrival]) -> [Vec<(usize, Nanos)>; 2] {
    let mut waiting: [VecDeque<(usize, Nanos, u32)>; 2] = Default::default();
    let mut left: [Vec<(usize, Nanos)>; 2] = Default::default();
    let mut coming = arrivals.iter().enumerate().peekable();
    let (mut free_at, mut last) = (0, 1);
    loop {
        let first = waiting.iter().filter_map(|queue| queue.front()).map(|packet| packet.1).min();
        let start = match (first, coming.peek()) {
            (Some(at), _) => at.max(free_at),
            (None, Some((_, next))) => next.0.max(free_at),
            (None, None) => return left,
        };
        while let Some((number, &(at, direction, bytes))) = coming.next_if(|(_, next)| next.0 < start) {
            waiting[direction].push_back((number, at, bytes));
        }
        if waiting.iter().all(VecDeque::is_empty) {
            let (number, &(at, direction, bytes)) = coming.next().expect("it decided the start");
            waiting[direction].push_back((number, at, bytes));
        }
        let turn = if waiting[1 - last].is_empty() { last } else { 1 - last };
        let (number, at, bytes) = waiting[turn].pop_front().expect("someone waits");
        free_at = at.max(free_at) + time_of(bytes);
        last = turn;
        left[turn].push((number, free_at));
    }
}

struct Bench {
    link: Link<usize>,
    left: [Vec<(usize, Nanos)>; 2],
}

impl Bench {
    fn new(configs: [&Direction; 2]) -> Bench {
        Bench { link: Link::new(configs), left: Default::default() }
    }

    fn arrive(&mut self, number: usize, (now, heading, ip_bytes): Arrival) {
        self.link.at(heading, now, |model| {
            let mut meta = Meta { ip_bytes, ..Meta::default() };
            assert!(!model.impair(now, &mut meta).lost);
            let _ = model.enqueue(number, meta, now);
        });
    }

    fn change(&mut self, heading: usize, change: &Change, now: Nanos) {
        self.link.at(heading, now, |model| model.reconfigure(change, now));
    }

    fn release(&mut self, now: Nanos) {
        self.link.evaluate(now);
        for (heading, left) in self.left.iter_mut().enumerate() {
            let model = self.link.direction_mut(heading);
            while let Some(release) = model.pop(now) {
                left.push((release.packet, release.due));
            }
            while model.dropped().is_some() {}
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        [0, 1].into_iter().filter_map(|heading| self.link.direction(heading).next_event()).min()
    }

    /// Releases at the model's own events until `until`, as a link does; none is late.
    fn run(&mut self, until: Nanos) {
        let mut steps = 0;
        while let Some(at) = self.next_event().filter(|at| *at <= until) {
            let known = self.left.each_ref().map(Vec::len);
            self.release(at);
            for (left, known) in self.left.iter().zip(known) {
                assert!(left[known..].iter().all(|(_, due)| *due == at), "released at {at}: {:?}", &left[known..]);
            }
            steps += 1;
            assert!(steps < 100_000, "no progress at {at}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(256), ..ProptestConfig::default() })]

    /// Equal to the definition to the nanosecond, whether packets are released when they are due or all at the end.
    #[test]
    fn transmissions_take_turns(arrivals in arrivals(), delays in [0..300_000u64, 0..300_000u64], at_once in any::<bool>()) {
        let configs = delays.map(direction);
        let mut bench = Bench::new(configs.each_ref());
        for (number, arrival) in arrivals.iter().enumerate() {
            if at_once {
                bench.run(arrival.0 - 1);
            }
            bench.arrive(number, *arrival);
        }
        if at_once {
            bench.run(Nanos::MAX);
        }
        bench.release(Nanos::MAX / 2);
        let mut expected = defined(&arrivals);
        for (left, delay) in expected.iter_mut().zip(delays) {
            left.iter_mut().for_each(|(_, at)| *at += delay);
        }
        prop_assert_eq!(&bench.left, &expected);
    }

    /// Whoever sends alone notices nothing of the medium.
    #[test]
    fn one_that_is_alone_sends_as_in_full_duplex(arrivals in arrivals(), rate_bps in 1_000_000..40_000_000_000u64) {
        let half = Direction { rate_bps, ..direction(5_000) };
        let full = Direction { half_duplex: false, ..half.clone() };
        let [mut shared, mut alone] = [&half, &full].map(|config| Bench::new([config, config]));
        for (number, (now, _, bytes)) in arrivals.into_iter().enumerate() {
            for bench in [&mut shared, &mut alone] {
                bench.run(now - 1);
                bench.arrive(number, (now, 0, bytes));
            }
        }
        for bench in [&mut shared, &mut alone] {
            bench.run(Nanos::MAX);
        }
        prop_assert_eq!(&shared.left, &alone.left);
        prop_assert_eq!(shared.link.direction(0).counters(), alone.link.direction(0).counters());
    }

    /// With any queue, aggregates and changes from one to the other: all that comes in leaves or is dropped, and the medium
    /// is used as long as somebody waits.
    #[test]
    fn nothing_is_stuck(
        arrivals in arrivals(),
        kinds in [0..4u8, 0..4u8],
        changes in prop::collection::vec((0..400usize, 0..2usize, any::<bool>()), 0..6),
    ) {
        let configs = kinds.map(|kind| {
            let mut config = direction(10_000);
            config.queue.discipline = match kind {
                0 => Discipline::Codel(CodelConfig { target_ns: 20_000, interval_ns: 100_000, ecn: false }),
                1 => Discipline::Pie(PieConfig { target_ns: 20_000, update_ns: 100_000, alpha_mhz: 50_000, beta_mhz: 500_000, ecn: false }),
                _ => Discipline::DropTail(DropTailConfig {}),
            };
            if kind == 3 {
                config.aggregate = Aggregate { packets: 8, time_ns: 0, gap_ns: 3_000 };
            }
            config
        });
        let mut bench = Bench::new(configs.each_ref());
        for (number, arrival) in arrivals.iter().enumerate() {
            bench.run(arrival.0 - 1);
            for (_, direction, half_duplex) in changes.iter().filter(|change| change.0 == number) {
                let change = Change { half_duplex: Some(*half_duplex), ..Change::default() };
                bench.change(*direction, &change, arrival.0);
            }
            bench.arrive(number, *arrival);
        }
        bench.run(Nanos::MAX);
        for (heading, left) in bench.left.iter().enumerate() {
            let counters = bench.link.direction(heading).counters();
            prop_assert_eq!(counters.in_packets, left.len() as u64 + counters.queue_full.packets + counters.aqm.packets);
            prop_assert_eq!(counters.queued.packets + counters.in_service.packets + counters.delayed.packets, 0);
        }
    }
}

/// While the medium is stopped by a trace nobody sends, and with its next rate both go on.
#[test]
fn a_changed_rate_moves_the_other_ones_turn() {
    let config = Direction { delay: Delay::Constant { delay_ns: 0 }, ..direction(0) };
    let mut bench = Bench::new([&config, &config]);
    bench.arrive(0, (0, 0, 1_212));
    bench.arrive(1, (0, 1, 1_212));
    assert_eq!(bench.next_event(), Some(10_000));
    bench.change(0, &Change { rate_bps: Some(RATE_BPS / 2), ..Change::default() }, 5_000);
    bench.run(Nanos::MAX);
    assert_eq!(bench.left, [vec![(0, 15_000)], vec![(1, 25_000)]], "half of the packet at half of the rate");
}
