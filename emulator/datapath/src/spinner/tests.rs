//! The spinner between ports of the test's own.

use std::cell::Cell;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};
use std::sync::Arc;

use ewan_system::clock::Clock;

use super::*;
use crate::changes::{channel, Outbox};
use crate::interfaces::Interfaces;
use crate::port::Facts;
use crate::shared::{DirectionState, Link};
use ewan_model::config::{Delay, Loss, Queue};
use ewan_model::{Change, TraceSettings};

/// Counts what the calling thread takes from and gives back to the system's allocator.
struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator unchanged.
unsafe impl std::alloc::GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
        std::alloc::System.alloc(layout)
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: std::alloc::Layout) {
        let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
        std::alloc::System.dealloc(memory, layout)
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Gives `left` frames of 1000 bytes, up to 16 at a time, and takes what it is given.
struct Fake {
    left: usize,
    staged: usize,
    frame: Vec<u8>,
    told: Arc<PortScript>,
}

/// What a fake port saw, and what it is to do.
#[derive(Default)]
struct PortScript {
    received: AtomicU64,
    sent: AtomicU64,
    /// How long a call to send takes.
    flush_ns: AtomicU64,
    /// Panics at this frame from it (counted from 1).
    panics_at: AtomicU64,
    /// Allocations on the spinner's thread when this port was last asked for frames.
    calls: AtomicU64,
    /// Bursts that all ports have sent, when this port was last looked at, and most between two looks.
    bursts: Arc<AtomicU64>,
    bursts_before: AtomicU64,
    bursts_most: AtomicU64,
}

impl Port for Fake {
    fn receive(
        &mut self,
        clock: &Clock,
        budget: usize,
        _until: Nanos,
        each: &mut dyn FnMut(&mut [u8], Nanos),
    ) -> usize {
        self.told.calls.store(CALLS.get(), Relaxed);
        let count = self.left.min(budget);
        for _ in 0..count {
            self.left -= 1;
            let number = self.told.received.load(Relaxed) + 1;
            assert!(number != self.told.panics_at.load(Relaxed), "frame {number} is one too many");
            self.told.received.store(number, Relaxed);
            each(&mut self.frame, clock.now());
        }
        count
    }

    fn next_stamp(&mut self, clock: &Clock) -> Option<Nanos> {
        let bursts = self.told.bursts.load(Relaxed);
        let since = bursts - self.told.bursts_before.swap(bursts, Relaxed);
        self.told.bursts_most.fetch_max(since, Relaxed);
        (self.left > 0).then(|| clock.now())
    }

    fn stage(&mut self, _frame: &[u8]) {
        self.staged += 1;
    }

    fn flush(&mut self) {
        let until = std::time::Instant::now() + std::time::Duration::from_nanos(self.told.flush_ns.load(Relaxed));
        while std::time::Instant::now() < until {}
        self.told.sent.fetch_add(self.staged as u64, Relaxed);
        self.told.bursts.fetch_add(1, Relaxed);
        self.staged = 0;
    }

    fn facts(&self) -> Arc<Facts> {
        Facts::new("lo", "fake", Box::new(|| 0))
    }

    fn descriptor(&self) -> RawFd {
        -1
    }
}

/// Gives frames at the times of their stamps, as a ring does.
#[derive(Default)]
struct StampedPort {
    stamps: std::collections::VecDeque<Nanos>,
    /// When it is looked at from this time on, once, the spinner loses its CPU for so long.
    stall: Option<(Nanos, Nanos)>,
    /// Its frames are longer than any that a link takes.
    too_long: bool,
    staged: u64,
    sent: Arc<AtomicU64>,
}

impl StampedPort {
    fn new(stamps: impl IntoIterator<Item = Nanos>) -> StampedPort {
        StampedPort { stamps: stamps.into_iter().collect(), ..StampedPort::default() }
    }
}

impl Port for StampedPort {
    fn receive(&mut self, clock: &Clock, budget: usize, until: Nanos, each: &mut dyn FnMut(&mut [u8], Nanos)) -> usize {
        let mut count = 0;
        while count < budget && self.next_stamp(clock).is_some_and(|stamp| stamp <= until) {
            let stamp = self.stamps.pop_front().expect("it has a stamp");
            if !self.too_long {
                each(&mut [0; 1000], stamp);
            }
            count += 1;
        }
        count
    }

    fn next_stamp(&mut self, clock: &Clock) -> Option<Nanos> {
        if let Some((_, ns)) = self.stall.take_if(|(from, _)| clock.now() >= *from) {
            let until = clock.now() + ns;
            while clock.now() < until {}
        }
        self.stamps.front().copied().filter(|stamp| *stamp <= clock.now())
    }

    fn stage(&mut self, _frame: &[u8]) {
        self.staged += 1;
    }

    fn flush(&mut self) {
        self.sent.fetch_add(std::mem::take(&mut self.staged), Relaxed);
    }

    fn facts(&self) -> Arc<Facts> {
        Facts::new("lo", "stamped", Box::new(|| 0))
    }

    fn descriptor(&self) -> RawFd {
        -1
    }
}

/// A spinner of these links, none of which gives way, and who asks it for changes.
fn spinner(clock: Clock, links: Vec<(Direction, [StampedPort; 2])>) -> (Spinner, Arc<Shared>, Outbox) {
    let (mut ports, mut directions, mut shared) = (Vec::<Box<dyn Port>>::new(), Vec::new(), Vec::new());
    for (number, (direction, both)) in links.into_iter().enumerate() {
        shared.push(Link {
            name: format!("wan{number}"),
            ended: Default::default(),
            ports: both.each_ref().map(|port| port.facts()),
            interfaces: Interfaces::open(["lo", "lo"]).expect("every namespace has lo"),
            directions: [TraceSettings::default(); 2].map(|says| DirectionState::new(says, 4_096)),
        });
        for port in both {
            ports.push(Box::new(port));
            directions.push((direction.clone(), 0, Arena::new(20_000, 1514, 0).unwrap()));
        }
    }
    let shared = Arc::new(Shared::new(1, "test", clock.now(), shared).unwrap());
    let (outbox, inbox) = channel();
    (Spinner::new(clock, shared.clone(), ports, directions, inbox), shared, outbox)
}

/// Runs it until this time.
fn run_until(clock: &Clock, spinner: Spinner, shared: &Arc<Shared>, end: Nanos) {
    shared.changes_waiting.store(true, Release);
    let thread = std::thread::spawn(move || spinner.run(Policy::Spin).len());
    while clock.now() < end {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    shared.stop.store(true, Relaxed);
    thread.join().expect("it ends");
}

fn all_lost() -> Change {
    Change { loss: Some(Loss::Bernoulli { loss_ppb: 1_000_000_000 }), ..Change::default() }
}

/// The change is further away than the spinner looks ahead when it loses its CPU, and is over when it has it again.
#[test]
fn frames_from_after_a_change_meet_it_though_the_spinner_lost_its_cpu() {
    let clock = Clock::new();
    let from = clock.now() + 20 * MS;
    let mut near = StampedPort::new([from + MS / 2, from + 3 * MS / 2, from + 5 * MS / 2, from + 7 * MS / 2]);
    near.stall = Some((from, 4 * MS));
    let far = StampedPort::default();
    let sent = far.sent.clone();
    let (spinner, shared, mut outbox) = spinner(clock, vec![(direction(1_000_000_000, 5 * MS), [near, far])]);
    outbox.send(0, 0..1, from + 2 * MS, &all_lost()).expect("room for a change");
    run_until(&clock, spinner, &shared, from + 20 * MS);
    assert_eq!(sent.load(Relaxed), 2);
    let made: Vec<_> = outbox.made().map(|made| (made.requested, made.actual)).collect();
    assert_eq!(made, [(from + 2 * MS, from + 2 * MS)]);
}

/// It has more frames from before its change than a turn takes.
#[test]
fn a_link_whose_frames_wait_does_not_keep_others_from_their_changes() {
    let clock = Clock::new();
    let at = clock.now() + 10 * MS;
    let busy = StampedPort::new(std::iter::repeat_n(at - MS, 2_000));
    let other = StampedPort::new([at + 1]);
    let ports = [StampedPort::default(), StampedPort::default()];
    let sent = ports.each_ref().map(|port| port.sent.clone());
    let [first, second] = ports;
    let links =
        vec![(direction(1_000_000_000, 5 * MS), [busy, first]), (direction(1_000_000_000, 5 * MS), [other, second])];
    let (mut spinner, _, mut outbox) = spinner(clock, links);
    for link in 0..2 {
        outbox.send(link, 0..1, at, &all_lost()).expect("room for a change");
    }
    spinner.changes.look();
    while clock.now() < at + MS {}
    spinner.look(0, false);
    spinner.turn(clock.now());
    spinner.turn(clock.now());
    let made: Vec<_> = outbox.made().map(|made| (made.link, made.actual)).collect();
    assert_eq!(made, [(1, at)], "the first one has taken some of its frames");
    while outbox.made().count() < 2 {
        let now = spinner.look(0, false);
        spinner.turn(now);
    }
    assert_eq!(outbox.made().map(|made| made.actual).collect::<Vec<_>>(), [at, at]);
    while clock.now() < at + 40 * MS {
        let now = spinner.look(0, false);
        spinner.turn(now);
    }
    assert_eq!(sent.map(|sent| sent.load(Relaxed)), [2_000, 0]);
}

/// The packet is due, and waits for what lies in the other direction's ring, which then is not taken.
#[test]
fn a_frame_that_is_too_long_strands_no_packet_of_a_shared_medium() {
    let clock = Clock::new();
    let from = clock.now() + 5 * MS;
    let half = Direction { half_duplex: true, ..direction(1_000_000_000, 5 * MS) };
    let mut far = StampedPort::new([from + 1_000]);
    far.too_long = true;
    let sent = far.sent.clone();
    let (mut spinner, _, _outbox) = spinner(clock, vec![(half, [StampedPort::new([from]), far])]);
    let until = |time: Nanos| while clock.now() < time {};
    until(from + MS);
    spinner.look(0, false);
    spinner.receive(0);
    until(from + 8 * MS);
    // As if the frame came after its ring was looked at.
    spinner.look(0, false);
    spinner.release(clock.now() + MS);
    assert_eq!(sent.load(Relaxed), 0, "it waits for the frame");
    spinner.receive(1);
    spinner.release(clock.now() + MS);
    assert_eq!(sent.load(Relaxed), 1);
}

#[test]
fn a_sleep_that_ends_at_once_tells_nothing_of_waking_late() {
    let clock = Clock::new();
    let (mut spinner, shared, _outbox) = spinner(
        clock,
        vec![(direction(1_000_000_000, 50 * MS), [StampedPort::new([clock.now()]), StampedPort::default()])],
    );
    let before = spinner.sleeper.wake_up.ns();
    for _ in 0..200 {
        shared.waker.wake(); // as the frame does that lies in a ring already
        spinner.seen = clock.now();
        assert!(spinner.nap(Waiting::Sharing));
    }
    assert_eq!(spinner.sleeper.wake_up.ns(), before);
}

#[test]
fn a_spinner_that_woke_too_late_to_sleep_tries_it_again_after_some_seconds() {
    let clock = Clock::new();
    let (mut spinner, shared, _outbox) =
        spinner(clock, vec![(direction(1_000_000_000, 3 * MS), [StampedPort::default(), StampedPort::default()])]);
    spinner.sleeper.woke_late(9 * MS);
    let begun = clock.now();
    shared.waker.wake();
    let tries = (0..1_000).find(|n| {
        spinner.seen = begun + n * 100 * MS;
        spinner.nap(Waiting::Sharing)
    });
    assert!(tries.is_some_and(|tries| (10..100).contains(&tries)), "{tries:?}");
}

fn direction(rate_bps: u64, delay_ns: u64) -> Direction {
    Direction {
        store_packets: 200_000,
        store_bytes: 64 << 20,
        ..Direction::plain(rate_bps, Queue::drop_tail(Some(200_000), None), delay_ns)
    }
}

struct Bench {
    shared: Arc<Shared>,
    outbox: Outbox,
    /// Of each link: what its port a saw, and its port b.
    told: Vec<[Arc<PortScript>; 2]>,
    thread: Option<std::thread::JoinHandle<usize>>,
}

impl Bench {
    /// Links, each with this many frames that come in at port a; the spinner gives way.
    fn new(direction: &Direction, frames: &[usize], about: impl Fn(usize, &[Arc<PortScript>; 2])) -> Bench {
        Bench::with(direction, frames, (Policy::Fair, true), about)
    }

    fn with(
        direction: &Direction,
        frames: &[usize],
        (policy, give_way): (Policy, bool),
        about: impl Fn(usize, &[Arc<PortScript>; 2]),
    ) -> Bench {
        let clock = Clock::new();
        let mut links = Vec::new();
        let (mut ports, mut directions) = (Vec::<Box<dyn Port>>::new(), Vec::new());
        let mut told = Vec::<[Arc<PortScript>; 2]>::new();
        let bursts = Arc::<AtomicU64>::default();
        for (number, &left) in frames.iter().enumerate() {
            told.push([(); 2].map(|()| Arc::new(PortScript { bursts: bursts.clone(), ..PortScript::default() })));
            about(number, &told[number]);
            let facts = [left, 0].into_iter().zip(&told[number]).map(|(left, told)| {
                let fake = Fake { left, staged: 0, frame: vec![0; 1000], told: told.clone() };
                let facts = fake.facts();
                ports.push(Box::new(fake));
                directions.push((direction.clone(), 0, Arena::new(200_000, 1514, 0).unwrap()));
                facts
            });
            links.push(Link {
                name: format!("wan{number}"),
                ended: Default::default(),
                ports: facts.collect::<Vec<_>>().try_into().ok().expect("two"),
                interfaces: Interfaces::open(["lo", "lo"]).expect("every namespace has lo"),
                directions: [TraceSettings::default(); 2].map(|says| DirectionState::new(says, 4_096)),
            });
        }
        let shared = Arc::new(Shared::new(1, "test", clock.now(), links).unwrap());
        shared.give_way.store(give_way, Relaxed);
        let (outbox, inbox) = channel();
        let spinner = Spinner::new(clock, shared.clone(), ports, directions, inbox);
        let thread = std::thread::spawn(move || spinner.run(policy).len());
        Bench { shared, outbox, told, thread: Some(thread) }
    }

    fn wait(&mut self, what: &str, mut done: impl FnMut(&mut Bench) -> bool) {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !done(self) {
            assert!(std::time::Instant::now() < until, "{what}");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn change(&mut self, link: usize, change: &Change) {
        self.outbox.send(link, 0..2, 0, change).expect("room for a change");
        self.shared.changes_waiting.store(true, Release);
        self.shared.waker.wake();
    }

    /// How many ports it gave back.
    fn stop(&mut self) -> usize {
        self.shared.stop.store(true, Relaxed);
        self.shared.waker.wake();
        self.thread.take().expect("it runs").join().expect("it ends")
    }
}

impl std::ops::Drop for Bench {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        self.shared.waker.wake();
    }
}

/// All 16 are due at once; the last has left when the call that sends them is back.
#[test]
fn a_release_counts_until_the_call_that_sent_it_is_back() {
    const CALL_NS: u64 = 3_000_000;
    let told = |_: usize, told: &[Arc<PortScript>; 2]| told[1].flush_ns.store(CALL_NS, Relaxed);
    let mut bench = Bench::new(&direction(100_000_000_000, 0), &[16], told);
    bench.wait("all sent", |bench| bench.told[0][1].sent.load(Relaxed) == 16);
    bench.stop();
    let late = &bench.shared.links[0].directions[0].lateness;
    assert_eq!(late.count(), 16);
    assert!(late.percentile(1) >= CALL_NS, "{}", late.percentile(1));
}

#[test]
fn a_panic_ends_its_link_and_the_others_go_on() {
    let about = |number: usize, told: &[Arc<PortScript>; 2]| {
        if number == 1 {
            told[0].panics_at.store(700, Relaxed);
        }
    };
    let mut bench = Bench::new(&direction(10_000_000_000, 0), &[5_000, 5_000, 5_000], about);
    bench.wait("the others deliver all", |bench| {
        [0, 2].iter().all(|link| bench.told[*link][1].sent.load(Relaxed) == 5_000)
    });
    let ended: Vec<_> = bench.shared.links.iter().map(|link| link.ended.get().map(String::as_str)).collect();
    assert_eq!(ended, [None, Some("frame 700 is one too many"), None]);
    assert_eq!(bench.told[1][0].received.load(Relaxed), 699, "nothing is taken from its ports any more");
    let counted = bench.shared.links[1].directions[0].series.added_up(0, 4_000).1.expect("it did something");
    assert_eq!(counted.in_packets, 699, "its last row is written");
    let faster = Change { rate_bps: Some(20_000_000_000), ..Change::default() };
    (0..3).for_each(|link| bench.change(link, &faster));
    bench.wait("changes of those that run", |bench| bench.outbox.made().count() == 4);
    assert!(bench.outbox.made().all(|made| made.link != 1));
    assert_eq!(bench.stop(), 6, "all ports are given back");
}

/// 10 Gbit/s × 100 ms of small packets are more than 65,536 at a time.
#[test]
fn the_spinner_neither_allocates_nor_frees() {
    const FRAMES: usize = 150_000;
    let mut bench = Bench::new(&direction(100_000_000_000, 400_000_000), &[FRAMES], |_, _| {});
    let received = |bench: &Bench| bench.told[0][0].received.load(Relaxed);
    bench.wait("the first frames", |bench| received(bench) > 1_000);
    let before = bench.told[0][0].calls.load(Relaxed);
    let table = Change {
        delay: Some(Delay::Table { delays_ns: vec![400_000_000; 1000] }),
        loss: Some(Loss::Pattern { pattern: "0".repeat(1000) }),
        reorder: Some(true),
        ..Change::default()
    };
    for _ in 0..20 {
        bench.change(0, &table);
    }
    bench.wait("all changes", |bench| bench.outbox.made().count() == 40);
    bench.wait("all frames", |bench| received(bench) == FRAMES as u64);
    let most = bench.shared.links[0].directions[0].totals.lock().unwrap().model.delayed.packets;
    bench.wait("they leave", |bench| bench.told[0][1].sent.load(Relaxed) == FRAMES as u64);
    assert_eq!(bench.told[0][0].calls.load(Relaxed), before, "allocations with up to {most} packets in flight");
    bench.stop();
}

/// Each call to send takes longer than a turn may send for: then one burst follows each group of ports, and rings are
/// looked at in between, however many links have something to send.
#[test]
fn under_overload_rings_are_looked_at_after_every_few_bursts() {
    const LINKS: usize = 16;
    let about = |_: usize, told: &[Arc<PortScript>; 2]| told[1].flush_ns.store(RELEASE_NS + 100_000, Relaxed);
    let mut bench = Bench::new(&direction(100_000_000_000, 0), &[100; LINKS], about);
    bench.wait("all sent", |bench| bench.told.iter().all(|told| told[1].sent.load(Relaxed) == 100));
    bench.stop();
    let groups = 2 * LINKS / PORTS_PER_LOOK;
    for told in bench.told.iter().flatten() {
        // A port near a group's end may be looked at before and after the turn's own last burst.
        let most = told.bursts_most.load(Relaxed);
        assert!(most <= groups as u64 + 2, "{most} bursts between two looks");
    }
}

/// What a reader was told to be complete stays as it was, and at the end no row is missing.
#[test]
fn rows_that_readers_may_have_never_change() {
    rows_never_change(Policy::Fair);
}

/// It sleeps until each next event, often several times in a millisecond.
#[test]
fn rows_of_a_spinner_that_yields_have_all_that_happened() {
    rows_never_change(Policy::Shared);
}

fn rows_never_change(policy: Policy) {
    let frames = [3_000, 1_000, 50];
    let mut bench = Bench::with(&direction(1_000_000_000, 0), &frames, (policy, policy == Policy::Fair), |_, _| {});
    let rows = |bench: &Bench, end: u64| -> Vec<Vec<u64>> {
        let links = bench.shared.links.iter().flat_map(|link| &link.directions);
        links
            .map(|way| {
                way.series.since(0, end, usize::MAX).1.iter().map(|row| row.in_packets + row.out_packets).collect()
            })
            .collect()
    };
    let mut known: Vec<(u64, Vec<Vec<u64>>)> = Vec::new();
    bench.wait("all sent", |bench| {
        let end = bench.shared.settled_ms.load(Acquire);
        known.push((end, rows(bench, end)));
        bench.told.iter().zip(frames).all(|(told, frames)| told[1].sent.load(Relaxed) == frames as u64)
    });
    bench.stop();
    assert_eq!(bench.shared.settled_ms.load(Acquire), u64::MAX);
    for (end, told) in known.iter().filter(|(end, _)| *end < 4_000) {
        assert_eq!(&rows(&bench, *end), told, "rows before {end}");
    }
    for (link, frames) in bench.shared.links.iter().zip(frames) {
        let sum = link.directions[0].series.added_up(0, 4_000).1.expect("it did something");
        assert_eq!((sum.in_packets, sum.out_packets), (frames as u64, frames as u64), "{}", link.name);
    }
}

/// Idle, a link with a delay sleeps: readers still know up to when rows are complete, a change is made, and it ends at once.
#[test]
fn an_idle_spinner_sleeps_until_it_is_needed() {
    let mut bench = Bench::with(&direction(1_000_000_000, 20_000_000), &[100], (Policy::Fair, false), |_, _| {});
    bench.wait("all sent", |bench| bench.told[0][1].sent.load(Relaxed) == 100);
    bench.wait("asleep", |bench| bench.shared.settled_ms.load(Acquire) == u64::MAX);
    let rows = &bench.shared.links[0].directions[0].series;
    let sum = rows.added_up(0, 4_000).1.expect("it did something");
    assert_eq!((sum.in_packets, sum.out_packets), (100, 100));
    bench.change(0, &Change { rate_bps: Some(2_000_000_000), ..Change::default() });
    bench.wait("the change", |bench| bench.outbox.made().count() == 2);
    bench.stop();
    assert!(bench.shared.naps.lengths.count() > 0);
    assert_eq!(bench.shared.links[0].directions[0].lateness.count(), 100);
}

#[test]
fn a_spinner_whose_link_has_no_delay_never_sleeps() {
    let mut bench = Bench::with(&direction(1_000_000_000, 0), &[100], (Policy::Fair, false), |_, _| {});
    bench.wait("all sent", |bench| bench.told[0][1].sent.load(Relaxed) == 100);
    std::thread::sleep(std::time::Duration::from_millis(10));
    bench.stop();
    assert_eq!(bench.shared.naps.lengths.count(), 0);
}
