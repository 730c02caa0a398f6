//! What a link does with frames that are looked at late is what it does with those looked at on time.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::port::Facts;
use ewan_model::config::{
    CodelConfig, Delay, Direction, Discipline, DropTailConfig, DualPi2Config, FqCodelConfig, Loss, PieConfig, Queue,
    RedConfig, SfqConfig, StepConfig,
};
use ewan_model::{Change, TraceSettings};

const RATE_BPS: u64 = 1_000_000_000;
const START: Nanos = 1_000 * MS;

/// Frames that come, each with its stamp.
type Waiting = VecDeque<(Nanos, Vec<u8>)>;

/// What a test and its ports share: the time, what lies in each ring, and what was sent.
#[derive(Default)]
struct World {
    now: Cell<Nanos>,
    rings: [RefCell<Waiting>; 2],
    staged: [RefCell<Vec<Vec<u8>>>; 2],
}

/// A frame lies in the ring from its stamp on.
struct Ring(Rc<World>, usize);

// SAFETY: the tests have one thread.
unsafe impl Send for Ring {}

impl Port for Ring {
    fn receive(&mut self, clock: &Clock, budget: usize, until: Nanos, each: &mut dyn FnMut(&mut [u8], Nanos)) -> usize {
        for count in 0..budget {
            if self.next_stamp(clock).is_none_or(|stamp| stamp > until) {
                return count;
            }
            let (stamp, mut frame) = self.0.rings[self.1].borrow_mut().pop_front().expect("it lies there");
            each(&mut frame, stamp);
        }
        budget
    }

    fn next_stamp(&mut self, _clock: &Clock) -> Option<Nanos> {
        self.0.rings[self.1].borrow().front().map(|frame| frame.0).filter(|stamp| *stamp <= self.0.now.get())
    }

    fn stage(&mut self, frame: &[u8]) {
        self.0.staged[self.1].borrow_mut().push(frame.to_vec());
    }

    fn flush(&mut self) {}

    fn facts(&self) -> Arc<Facts> {
        Facts::new("lo", "ring", Box::new(|| 0))
    }

    fn descriptor(&self) -> RawFd {
        -1
    }
}

/// A frame of a test: which way it goes, when it is stamped, its length, flow and traffic class.
#[derive(Clone, Copy, Debug)]
struct TestFrame {
    direction: usize,
    stamp: Nanos,
    bytes: usize,
    flow: u8,
    traffic_class: u8,
}

/// UDP over IPv4, with the frame's number behind the headers.
fn frame(number: usize, sent: &TestFrame) -> Vec<u8> {
    let mut frame = vec![0; sent.bytes.max(14 + 20 + 8 + 8)];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let length = (frame.len() - 14) as u16;
    frame[14..16].copy_from_slice(&[0x45, sent.traffic_class]);
    frame[16..18].copy_from_slice(&length.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..38].copy_from_slice(&[0, sent.flow, 0, 9]);
    frame[42..50].copy_from_slice(&(number as u64).to_be_bytes());
    frame
}

/// What came of it: each frame's number as it left, when it was due and whether it carries Congestion Experienced; and
/// what was counted, of each direction.
type Outcome = [(Vec<(u64, Nanos, bool)>, Counters); 2];

struct Bench {
    world: Rc<World>,
    link: Link<Slot>,
    lanes: [Lane; 2],
    ports: [Ring; 2],
    states: [DirectionState; 2],
    clock: Clock,
    left: [Vec<(u64, Nanos, bool)>; 2],
    changes: VecDeque<(usize, Nanos, Change)>,
}

impl Bench {
    fn new(configs: [&Direction; 2], sent: &[TestFrame], changes: &[(usize, Nanos, Change)]) -> Bench {
        let world = Rc::<World>::default();
        for (number, each) in sent.iter().enumerate() {
            world.rings[each.direction].borrow_mut().push_back((each.stamp, frame(number, each)));
        }
        let arena = || Arena::new(4_096, 2_000, 0).unwrap();
        let lane = |config: &Direction| Lane::new(config.framing, arena(), START, None);
        Bench {
            link: Link::with_rooms(configs, [4_096; 2]),
            lanes: configs.map(lane),
            ports: [0, 1].map(|port| Ring(world.clone(), port)),
            states: [(); 2].map(|()| DirectionState::new(TraceSettings::default(), 64)),
            clock: Clock::kernel(),
            left: Default::default(),
            changes: changes.iter().cloned().collect(),
            world,
        }
    }

    fn with<T>(&mut self, direction: usize, act: impl FnOnce(Side, &mut Clock, &DirectionState) -> T) -> T {
        let [a, b] = &mut self.ports;
        let (near, far) = if direction == 0 { (a, b) } else { (b, a) };
        let state = &self.states[direction];
        let side = Side { lane: &mut self.lanes[direction], link: &mut self.link, heading: direction, near, far };
        act(side, &mut self.clock, state)
    }

    /// As the spinner does: frames in bursts, changes, and what is due, until nothing is left to do at `now`.
    fn look(&mut self, now: Nanos) {
        self.world.now.set(now);
        let mut moved = true;
        while moved {
            moved = false;
            let hold = self.changes.front().map_or(Nanos::MAX, |change| change.1);
            for direction in 0..2 {
                let take = |mut side: Side, clock: &mut Clock, state: &DirectionState| {
                    side.receive(clock, 16, hold, now, &|| now, state).0
                };
                moved |= self.with(direction, take) > 0;
            }
            if let Some((direction, at, change)) = self.changes.pop_front() {
                let waits = at > now || self.with(direction, |mut side, clock, _| side.frames_wait_before(clock, at));
                if waits {
                    self.changes.push_front((direction, at, change));
                } else {
                    let made =
                        self.with(direction, |mut side, _, _| side.take_over(&mut ModelChange::new(&change), at));
                    assert_eq!(made, at, "it is made at its time");
                    moved = true;
                }
            }
            let hold = self.changes.front().map_or(Nanos::MAX, |change| change.1);
            for direction in 0..2 {
                let staged = self.with(direction, |mut side, clock, _| side.release(clock, hold, now).0);
                let frames = self.world.staged[1 - direction].take();
                moved |= staged.frames > 0;
                for (frame, due) in frames.iter().zip(staged.due()) {
                    assert!(*due <= now);
                    let number = u64::from_be_bytes(frame[42..50].try_into().expect("eight"));
                    self.left[direction].push((number, *due, frame[15] & 3 == 3));
                }
            }
        }
    }

    fn outcome(mut self) -> Outcome {
        let now = self.world.now.get();
        (1..100).for_each(|step| self.look(now + step * 5 * MS));
        let counters = [0, 1].map(|heading| self.link.direction(heading).counters().clone());
        let [forward, backward] = counters;
        let [a, b] = self.left;
        [(a, forward), (b, backward)]
    }
}

/// Looks whenever a frame comes, a change is due or the model has something to do.
fn on_time(configs: [&Direction; 2], sent: &[TestFrame], changes: &[(usize, Nanos, Change)]) -> Outcome {
    let mut bench = Bench::new(configs, sent, changes);
    let mut now = START;
    loop {
        bench.look(now);
        let frames = bench.world.rings.iter().filter_map(|ring| ring.borrow().front().map(|frame| frame.0)).min();
        let events = [0, 1].into_iter().filter_map(|heading| next_event(bench.link.direction(heading))).min();
        let next = [frames, events, bench.changes.front().map(|change| change.1)].into_iter().flatten().min();
        match next {
            Some(next) => now = next.max(now + 2_000),
            None => return bench.outcome(),
        }
    }
}

/// Looks at these distances.
fn late(configs: [&Direction; 2], sent: &[TestFrame], changes: &[(usize, Nanos, Change)], looks: &[Nanos]) -> Outcome {
    let mut bench = Bench::new(configs, sent, changes);
    let mut now = START;
    let last = sent.iter().map(|sent| sent.stamp).chain(changes.iter().map(|change| change.1)).max().unwrap_or(START);
    for distance in looks.iter().cycle() {
        now += distance.max(&1_000);
        bench.look(now);
        if now > last {
            break;
        }
    }
    bench.outcome()
}

fn plain(limit: u64, delay_ns: Nanos) -> Direction {
    Direction::plain(RATE_BPS, Queue::drop_tail(Some(limit), None), delay_ns)
}

/// 100 frames at 10 Gbit/s into 1 Gbit/s with room for 5: the first is in service, and while they come 9 more leave.
#[test]
fn a_burst_that_is_looked_at_late_loses_what_it_loses_on_time() {
    let config = plain(5, 0);
    let sent: Vec<_> = (0..100)
        .map(|number| TestFrame {
            direction: 0,
            stamp: START + 1_230 * number,
            bytes: 1_514,
            flow: 1,
            traffic_class: 0,
        })
        .collect();
    for late_ns in [0, 100_000, MS, 5 * MS] {
        let mut bench = Bench::new([&config, &config], &sent, &[]);
        if late_ns == 0 {
            assert_eq!(on_time([&config, &config], &sent, &[])[0].0.len(), 15);
        }
        bench.look(START + 123_000 + late_ns);
        assert_eq!(bench.outcome()[0].0.len(), 15, "looked at {late_ns} ns late");
    }
}

/// A medium that both directions share: who comes first sends first, whichever ring is looked at first.
#[test]
fn frames_of_both_directions_take_turns_by_their_stamps() {
    let config = Direction { half_duplex: true, ..plain(100, 0) };
    let sent: Vec<_> = (0..40)
        .map(|number| TestFrame {
            direction: usize::from(number % 3 == 0),
            stamp: START + 1_230 * number,
            bytes: 1_514,
            flow: 1,
            traffic_class: 0,
        })
        .collect();
    assert_eq!(late([&config; 2], &sent, &[], &[5 * MS]), on_time([&config; 2], &sent, &[]));
}

/// A change is made at its time among the frames, though the spinner looks later.
#[test]
fn a_change_is_made_between_the_frames_before_it_and_those_after_it() {
    let config = plain(100, MS);
    let sent: Vec<_> = (0..50)
        .map(|number| TestFrame { direction: 0, stamp: START + 20_000 * number, bytes: 100, flow: 1, traffic_class: 0 })
        .collect();
    let all = Change { loss: Some(Loss::Bernoulli { loss_ppb: 1_000_000_000 }), ..Change::default() };
    let outcome = late([&config; 2], &sent, &[(0, START + 450_000, all)], &[4 * MS]);
    assert_eq!(outcome[0].0.iter().map(|left| left.0).collect::<Vec<_>>(), (0..23).collect::<Vec<_>>());
}

fn disciplines() -> impl Strategy<Value = Discipline> {
    prop::sample::select(vec![
        Discipline::DropTail(DropTailConfig {}),
        Discipline::Step(StepConfig { threshold_bytes: 5_000 }),
        Discipline::Red(RedConfig {
            min_bytes: 3_000,
            max_bytes: 9_000,
            max_p_ppb: 200_000_000,
            weight_log2: 2,
            ecn: true,
        }),
        Discipline::Codel(CodelConfig { target_ns: 20_000, interval_ns: 100_000, ecn: true }),
        Discipline::Codel(CodelConfig { target_ns: 20_000, interval_ns: 100_000, ecn: false }),
        Discipline::Pie(PieConfig {
            target_ns: 20_000,
            update_ns: 100_000,
            alpha_mhz: 50_000,
            beta_mhz: 500_000,
            ecn: true,
        }),
        Discipline::FqCodel(FqCodelConfig {
            flows: 4,
            quantum_bytes: 1_538,
            target_ns: 20_000,
            interval_ns: 100_000,
            ecn: true,
        }),
        Discipline::Sfq(SfqConfig { flows: 3, quantum_bytes: 3_000, perturb_ns: 200_000 }),
        Discipline::DualPi2(DualPi2Config {
            target_ns: 20_000,
            update_ns: 100_000,
            alpha_mhz: 50_000,
            beta_mhz: 500_000,
            coupling: 2,
            step_ns: 10_000,
            classic_ppb: 100_000_000,
        }),
    ])
}

fn delays() -> impl Strategy<Value = Delay> {
    prop_oneof![
        Just(Delay::Constant { delay_ns: 0 }),
        (0..3 * MS).prop_map(|delay_ns| Delay::Constant { delay_ns }),
        (0..3 * MS, 0..MS).prop_map(|(delay_ns, jitter_ns)| Delay::Uniform { delay_ns, jitter_ns }),
    ]
}

fn configs() -> impl Strategy<Value = Direction> {
    let displaced = prop_oneof![3 => Just((0, 0, 0)), 1 => (1..300_000_000u32, 1..5u32, 1..MS)];
    (0..12u64, disciplines(), delays(), any::<bool>(), displaced, 0..200_000_000u32, any::<u64>()).prop_map(
        |(limit, discipline, delay, reorder, displace, loss_ppb, seed)| Direction {
            queue: Queue { limit_packets: Some(limit), limit_bytes: None, discipline },
            loss: Loss::Bernoulli { loss_ppb },
            delay,
            reorder,
            seed,
            displace_ppb: displace.0,
            displace_packets: displace.1,
            displace_within_ns: displace.2,
            ..plain(0, 0)
        },
    )
}

fn traffic() -> impl Strategy<Value = Vec<TestFrame>> {
    let gap = prop_oneof![4 => 0..5_000u64, 2 => 5_000..50_000u64, 1 => 50_000..2 * MS];
    let sent = (gap, 0..2usize, 60..1_514usize, 0..4u8, 0..4u8);
    prop::collection::vec(sent, 1..120).prop_map(|all| {
        let mut stamp = START;
        let sent = |(gap, direction, bytes, flow, traffic_class)| {
            stamp += gap;
            TestFrame { direction, stamp, bytes, flow, traffic_class }
        };
        all.into_iter().map(sent).collect()
    })
}

fn changes() -> impl Strategy<Value = Vec<(usize, Nanos, Change)>> {
    let change = (0..2usize, 1..3 * MS, prop::option::of(disciplines()), prop::option::of(delays()));
    prop::collection::vec(change, 0..3).prop_map(|all| {
        let mut at = START;
        let change = |(direction, gap, discipline, delay): (_, _, Option<Discipline>, _)| {
            at += gap;
            let queue = discipline.map(|discipline| Queue { limit_packets: Some(4), limit_bytes: None, discipline });
            (direction, at, Change { queue, delay, ..Change::default() })
        };
        all.into_iter().map(change).collect()
    })
}

proptest! {
    #[test]
    fn a_late_look_changes_nothing(
        forward in configs(), backward in configs(), half_duplex in any::<bool>(), sent in traffic(),
        changes in changes(), looks in prop::collection::vec(0..5 * MS, 1..20),
    ) {
        let [forward, backward] = [forward, backward].map(|config| Direction { half_duplex, ..config });
        let (expected, found) = (on_time([&forward, &backward], &sent, &changes), late([&forward, &backward], &sent, &changes, &looks));
        for (expected, found) in expected.into_iter().zip(found) {
            prop_assert_eq!(found, expected);
        }
    }
}
