//! The link model as scripts: what is sent when, what comes out when.

mod common;

use std::num::NonZeroU64;

use common::{direction, drop_tail};
use ewan_model::config::{Aggregate, CodelConfig, Delay, Direction, Discipline, Framing, Harq, Loss, Queue};
use ewan_model::frame::Ack;
use ewan_model::{Change, DirectionModel, Drop, Meta, Nanos};

/// 1500 bytes and 38 of framing at 1 Gbit/s.
const SLOT: Nanos = 12_304;
const MS: Nanos = 1_000_000;

struct Script {
    model: DirectionModel<char>,
}

impl Script {
    fn new(config: Direction) -> Self {
        Script { model: DirectionModel::new(&config) }
    }

    fn queue(queue: Queue) -> Self {
        Script::new(Direction { queue, ..direction(1_000_000_000) })
    }

    /// Sends packets of `ip_bytes` at `now`; gives back the names of those accepted.
    fn send(&mut self, now: Nanos, ip_bytes: u32, names: &str) -> String {
        let meta = Meta { ip_bytes, ..Meta::default() };
        names.chars().filter(|name| self.model.enqueue(*name, meta, now).is_ok()).collect()
    }

    fn change(&mut self, now: Nanos, change: Change) {
        self.model.reconfigure(&change, now);
    }

    /// What comes out by `now`, with its due time.
    fn out(&mut self, now: Nanos) -> Vec<(char, Nanos)> {
        std::iter::from_fn(|| self.model.pop(now)).map(|release| (release.packet, release.due)).collect()
    }

    fn all(&mut self) -> Vec<(char, Nanos)> {
        self.out(Nanos::MAX)
    }
}

#[test]
fn a_packet_takes_its_serialisation_and_then_the_delay() {
    let mut link = Script::new(direction(1_000_000_000));
    link.send(5, 1500, "a");
    assert_eq!(link.model.next_event(), Some(5 + SLOT + MS));
    assert_eq!(link.out(5 + SLOT + MS - 1), []);
    assert_eq!(link.out(5 + SLOT + MS), [('a', 5 + SLOT + MS)]);
    assert_eq!(link.model.next_event(), None);
}

/// In a tunnel, say: the link makes the rest, and tells the whole; what is longer than the whole it cannot make up for.
#[test]
fn what_of_a_delay_passes_elsewhere_is_left_out() {
    let mut link = Script::new(direction(1_000_000_000));
    link.model.leave_out(MS / 4);
    link.send(0, 1500, "a");
    assert_eq!(link.model.next_event(), Some(SLOT + MS * 3 / 4));
    assert_eq!(link.all(), [('a', SLOT + MS * 3 / 4)]);
    link.change(2 * MS, Change { delay: Some(Delay::Constant { delay_ns: 5 * MS }), ..Change::default() });
    link.send(2 * MS, 1500, "b");
    assert_eq!(link.all(), [('b', 2 * MS + SLOT + 5 * MS - MS / 4)]);
    link.model.leave_out(9 * MS);
    link.send(8 * MS, 1500, "c");
    assert_eq!(link.model.next_event(), Some(8 * MS + SLOT));
    assert_eq!(link.all(), [('c', 8 * MS + SLOT)]);
}

#[test]
fn a_short_packet_counts_as_the_shortest_frame() {
    let mut link = Script::new(direction(1_000_000_000));
    link.send(0, 20, "a");
    assert_eq!(link.all(), [('a', 672 + MS)]);
    let framing = Framing { overhead_bytes: 0, minimum_bytes: 0 };
    let mut link = Script::new(Direction { framing, ..direction(1_000_000_000) });
    link.send(0, 20, "a");
    assert_eq!(link.all(), [('a', 160 + MS)]);
}

/// Through all stages, back to back: the last of a million packets is due at the exact time, rounded up.
#[test]
fn rates_are_exact_over_a_million_packets() {
    for rate in [8_000, 1_000_000_007, 10_000_000_000, 100_000_000_000, 1_000_000_000_000] {
        let mut model = DirectionModel::<u32>::new(&direction(rate));
        let (mut bits, mut last) = (0u128, 0);
        for n in 0..1_000_000u32 {
            let ip_bytes = [46, 1500, 1500, 9000][(n % 4) as usize];
            // The moment the link is free: 50 packets always wait, so it never idles.
            if n >= 50 {
                last = model.next_event().unwrap();
                assert!(model.pop(last).is_some());
            }
            let arrival = last.saturating_sub(MS);
            model.enqueue(n, Meta { ip_bytes, ..Meta::default() }, arrival).unwrap();
            bits += u128::from(ip_bytes + 38) * 8;
        }
        while let Some(release) = model.pop(Nanos::MAX) {
            last = release.due;
        }
        let exact = (bits * 1_000_000_000).div_ceil(u128::from(rate));
        assert_eq!(u128::from(last - MS), exact, "at {rate} bit/s");
    }
}

#[test]
fn a_limit_in_packets_counts_those_that_wait() {
    let mut link = Script::queue(drop_tail(Some(2), None));
    assert_eq!(link.send(0, 1500, "abcd"), "abc");
    assert_eq!(link.send(SLOT - 1, 1500, "e"), "");
    assert_eq!(link.send(SLOT, 1500, "fg"), "f");
    assert_eq!(link.all().last(), Some(&('f', 4 * SLOT + MS)));
    let counters = link.model.counters();
    assert_eq!((counters.queue_full.packets, counters.queue_full.bytes), (3, 3 * 1538));
    assert_eq!((counters.queued_max.packets, counters.queued_max.bytes), (2, 2 * 1538));
}

/// The wait ends where service begins: the packet in service does not wait, and one that finds the link idle never did.
#[test]
fn waits_are_counted_until_service_begins() {
    let mut link = Script::new(direction(1_000_000_000));
    link.send(0, 1500, "abc");
    let told = |link: &Script| (link.model.counters().served_packets, link.model.counters().waited_ns);
    assert_eq!(told(&link), (1, 0), "a is in service, b and c wait");
    link.out(SLOT);
    assert_eq!(told(&link), (2, SLOT));
    link.out(2 * SLOT);
    assert_eq!(told(&link), (3, SLOT + 2 * SLOT));
    link.send(3 * SLOT + 7, 1500, "d");
    assert_eq!(told(&link), (4, 3 * SLOT));
    link.send(3 * SLOT + 8, 1500, "e");
    link.all();
    assert_eq!(told(&link), (5, 3 * SLOT + SLOT - 1));
}

#[test]
fn a_limit_in_bytes_counts_them_with_framing() {
    let mut link = Script::queue(drop_tail(None, Some(2 * 1538)));
    assert_eq!(link.send(0, 1500, "abcd"), "abc");
    assert_eq!(link.send(0, 20, "e"), "");
    let mut link = Script::queue(drop_tail(None, Some(2 * 1538 - 1)));
    assert_eq!(link.send(0, 1500, "abcd"), "ab");
    assert_eq!(link.send(0, 20, "e"), "e");
}

#[test]
fn of_two_limits_the_first_reached_counts() {
    let mut link = Script::queue(drop_tail(Some(3), Some(2 * 1538)));
    assert_eq!(link.send(0, 1500, "abcd"), "abc");
    let mut link = Script::queue(drop_tail(Some(3), Some(2 * 1538)));
    assert_eq!(link.send(0, 20, "abcdef"), "abcd");
}

#[test]
fn without_room_only_an_idle_link_takes_a_packet() {
    let mut link = Script::queue(drop_tail(Some(0), None));
    assert_eq!(link.send(0, 1500, "ab"), "a");
    assert_eq!(link.send(SLOT, 1500, "cd"), "c");
}

#[test]
fn an_arrival_before_an_earlier_look_still_starts_when_it_came() {
    let mut link = Script::new(direction(1_000_000_000));
    assert_eq!(link.out(5_000), []);
    link.send(4_000, 1500, "a");
    link.send(3_990, 1500, "b");
    assert_eq!(link.all(), [('a', 4_000 + SLOT + MS), ('b', 4_000 + 2 * SLOT + MS)]);
}

#[test]
fn a_drop_at_service_is_known_at_that_instant() {
    let discipline = Discipline::Codel(CodelConfig { target_ns: 1, interval_ns: 2, ecn: false });
    let mut link = Script::queue(Queue { discipline, ..drop_tail(Some(100), None) });
    link.send(0, 1500, "abcdef");
    for instant in [SLOT, 2 * SLOT] {
        assert_eq!(link.model.dropped(), None);
        assert_eq!(link.model.next_event(), Some(instant));
        assert_eq!(link.out(instant), []);
    }
    // b has seen the target exceeded, c finds it so for an interval.
    assert_eq!(link.model.dropped(), Some('c'));
}

#[test]
fn a_rate_change_keeps_the_queue_and_the_bits_already_sent() {
    let mut link = Script::new(direction(1_000_000_000));
    link.send(0, 1500, "ab");
    // Half of a is out; the other half and b go at half the rate.
    link.change(SLOT / 2, Change { rate_bps: Some(500_000_000), ..Change::default() });
    assert_eq!(link.all(), [('a', SLOT / 2 + SLOT + MS), ('b', SLOT / 2 + 3 * SLOT + MS)]);
}

#[test]
fn a_smaller_limit_keeps_what_waits() {
    let mut link = Script::new(direction(1_000_000_000));
    assert_eq!(link.send(0, 1500, "abcde"), "abcde");
    link.change(0, Change { queue: Some(drop_tail(Some(1), None)), ..Change::default() });
    assert_eq!(link.send(SLOT, 1500, "f"), "");
    assert_eq!(link.send(4 * SLOT, 1500, "gh"), "g");
    assert_eq!(link.all().len(), 6);
    assert_eq!(link.model.dropped(), None);
}

#[test]
fn a_shorter_delay_leaves_the_delay_line_as_it_is() {
    let shorter = |reorder| Change {
        delay: Some(Delay::Constant { delay_ns: MS / 2 }),
        reorder: Some(reorder),
        ..Change::default()
    };
    // a is in the delay line, b still in the queue. Without reordering b waits for a.
    let mut link = Script::new(direction(1_000_000_000));
    link.send(0, 1500, "ab");
    link.change(SLOT, shorter(false));
    link.send(MS, 1500, "c");
    assert_eq!(link.all(), [('a', SLOT + MS), ('b', SLOT + MS), ('c', MS + SLOT + MS / 2)]);
    // With reordering it overtakes.
    let mut link = Script::new(direction(1_000_000_000));
    link.send(0, 1500, "ab");
    link.change(SLOT, shorter(true));
    assert_eq!(link.all(), [('b', 2 * SLOT + MS / 2), ('a', SLOT + MS)]);
}

/// In order, a packet leaves with the last of those before it, so jitter makes the mean delay longer: the same figures as
/// in calibration/tests/test_distribution.py, for packets a tenth of the jitter apart.
#[test]
fn jitter_in_order_makes_the_mean_delay_longer() {
    const PACKETS: u64 = 200_000;
    let (delay_ns, jitter_ns) = (100 * MS, 10 * MS);
    for (delay, longer) in
        [(Delay::Uniform { delay_ns, jitter_ns }, 0.5228), (Delay::Normal { delay_ns, jitter_ns }, 1.2114)]
    {
        let mean = |reorder| {
            let mut model =
                DirectionModel::new(&Direction { delay: delay.clone(), reorder, ..direction(1_000_000_000) });
            let mut total = 0;
            for n in 0..PACKETS {
                let arrival = n * MS;
                model.enqueue(arrival, Meta { ip_bytes: 1500, ..Meta::default() }, arrival).expect("room");
                total += std::iter::from_fn(|| model.pop(arrival)).map(|out| out.due - out.packet).sum::<Nanos>();
            }
            total += std::iter::from_fn(|| model.pop(Nanos::MAX)).map(|out| out.due - out.packet).sum::<Nanos>();
            (total as f64 / PACKETS as f64 - (delay_ns + SLOT) as f64) / jitter_ns as f64
        };
        assert!(mean(true).abs() < 0.01, "{delay:?}: {}", mean(true));
        assert!((mean(false) - longer).abs() < 0.02, "{delay:?}: {}", mean(false));
    }
}

/// Of the same deviation, neighbours differ less, so fewer wait for one before them; a change of the delay begins anew.
#[test]
fn correlated_jitter_in_order_makes_the_mean_less_long() {
    const PACKETS: u64 = 200_000;
    let delay = |correlation_ppb| Delay::GaussMarkov { delay_ns: 100 * MS, jitter_ns: 10 * MS, correlation_ppb };
    let delays = |correlation_ppb| {
        let mut model = DirectionModel::new(&Direction { delay: delay(correlation_ppb), ..direction(1_000_000_000) });
        let mut found = Vec::new();
        for n in 0..PACKETS {
            if n == PACKETS / 2 {
                model.reconfigure(&Change { delay: Some(delay(correlation_ppb)), ..Change::default() }, n * MS);
            }
            model.enqueue(n * MS, Meta { ip_bytes: 1500, ..Meta::default() }, n * MS).expect("room");
            found.extend(std::iter::from_fn(|| model.pop(n * MS)).map(|out| out.due - out.packet));
        }
        found.extend(std::iter::from_fn(|| model.pop(Nanos::MAX)).map(|out| out.due - out.packet));
        found
    };
    let mean = |found: Vec<Nanos>| found.iter().sum::<Nanos>() as f64 / PACKETS as f64 / (10 * MS) as f64 - 10.0;
    assert!((mean(delays(0)) - 1.2114).abs() < 0.02, "as normal");
    let correlated = mean(delays(990_000_000));
    assert!((0.0..0.7).contains(&correlated), "{correlated}");
}

/// A constant delay: a share of the packets leaves three places later, right behind the third of those that follow and are
/// not displaced themselves; all others are where and when they were.
#[test]
fn a_share_of_packets_is_displaced_by_so_many_others() {
    const PACKETS: usize = 200_000;
    let config = Direction {
        displace_ppb: 50_000_000,
        displace_packets: 3,
        displace_within_ns: 50 * MS,
        ..direction(1_000_000_000)
    };
    let mut model = DirectionModel::new(&config);
    let mut found = Vec::new();
    for n in 0..PACKETS {
        let now = n as Nanos * 20_000;
        found.extend(std::iter::from_fn(|| model.pop(now)).map(|out| (out.packet, out.due)));
        model.enqueue(n, Meta { ip_bytes: 1500, ..Meta::default() }, now).expect("room");
    }
    found.extend(std::iter::from_fn(|| model.pop(Nanos::MAX)).map(|out| (out.packet, out.due)));
    assert_eq!((found.len(), model.counters().delayed.packets), (PACKETS, 0));
    let own = |packet: usize| packet as Nanos * 20_000 + SLOT + MS;
    let late: Vec<_> = (0..PACKETS).filter(|place| found[*place].1 != own(found[*place].0)).collect();
    for place in &late {
        assert!(found[*place].0 + 3 == *place && found[*place].1 == found[*place - 1].1 || *place > PACKETS - 10);
    }
    // Five deviations of a binomial.
    let (expected, near) = (0.05 * PACKETS as f64, 5.0 * (0.05 * 0.95 * PACKETS as f64).sqrt());
    assert!((late.len() as f64 - expected).abs() < near, "{}", late.len());
}

#[test]
fn who_is_displaced_waits_no_longer_than_it_may() {
    let all = Direction {
        displace_ppb: 1_000_000_000,
        displace_packets: 1,
        displace_within_ns: 7,
        ..direction(1_000_000_000)
    };
    let mut link = Script::new(all.clone());
    link.send(0, 1500, "a");
    assert_eq!(link.out(SLOT), []);
    assert_eq!(link.model.next_event(), Some(SLOT + MS + 7));
    link.send(SLOT, 1500, "b");
    assert_eq!(link.all(), [('a', SLOT + MS + 7), ('b', 2 * SLOT + MS + 7)]);
    // None is displaced any more; who is aside leaves as it was to, and a cut link lets go of it, too.
    let none =
        Change { displace_ppb: Some(0), displace_packets: Some(0), displace_within_ns: Some(0), ..Change::default() };
    let mut link = Script::new(Direction { displace_within_ns: MS, ..all.clone() });
    link.send(0, 1500, "a");
    link.out(SLOT);
    link.change(SLOT, none);
    link.send(SLOT, 1500, "bc");
    assert_eq!(link.all(), [('b', 2 * SLOT + MS), ('a', 2 * SLOT + MS), ('c', 3 * SLOT + MS)]);
    let mut link = Script::new(all);
    link.send(0, 1500, "ab");
    link.out(SLOT);
    let cut: String = std::iter::from_fn(|| link.model.cut()).collect();
    assert_eq!((cut.as_str(), link.model.next_event(), link.model.counters().cut.packets), ("ab", None, 2));
}

/// Displacement has numbers of its own: losses and delays are those that they are without it.
#[test]
fn displacement_shifts_no_other_number() {
    let delay = Delay::Uniform { delay_ns: 10 * MS, jitter_ns: MS };
    let plain = Direction { delay, reorder: true, ..direction(1_000_000_000) };
    let dues = |config: Direction| {
        let mut link = Script::new(config);
        let names: String = ('a'..='z').collect();
        link.send(0, 1500, &names);
        link.all().into_iter().collect::<std::collections::HashMap<_, _>>()
    };
    let within = Direction {
        displace_ppb: 300_000_000,
        displace_packets: 1_000,
        displace_within_ns: 1_000 * MS,
        ..plain.clone()
    };
    let (before, after) = (dues(plain), dues(within));
    let late = before.iter().filter(|(name, due)| after[*name] != **due).count();
    assert!((1..20).contains(&late), "{late}");
    // The last of those aside sets the time of none but those behind it.
    assert!(before.iter().all(|(name, due)| after[name] == *due || after[name] >= *due + 1_000 * MS));
}

/// A letter is a flow, its ACKs have the numbers from 1 on; digits are other packets.
fn acks(link: &mut Script, now: Nanos, sent: &[(char, u32)]) -> String {
    let ack = |flow: char, number| Ack { flow: NonZeroU64::new(flow as u64).expect("not 0"), number, marks: 0 };
    sent.iter()
        .filter(|(name, number)| {
            let ack = (*number > 0).then(|| ack(name.to_ascii_lowercase(), *number));
            let meta = Meta { ip_bytes: if ack.is_some() { 40 } else { 1500 }, ack, ..Meta::default() };
            link.model.enqueue(*name, meta, now).is_ok()
        })
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn a_later_ack_takes_the_place_of_one_that_waits() {
    let filtering = || Script::new(Direction { ack_filter: true, ..direction(1_000_000_000) });
    let names = |link: &mut Script| link.all().into_iter().map(|(name, _)| name).collect::<String>();
    // The one in service is sent; a and A are of one flow, and A waits no longer than a would have.
    let mut link = filtering();
    acks(&mut link, 0, &[('a', 1), ('a', 2), ('0', 0), ('b', 1), ('A', 3), ('B', 9)]);
    assert_eq!([link.model.dropped(), link.model.dropped(), link.model.dropped()], [Some('a'), Some('b'), None]);
    assert_eq!(names(&mut link), "aA0B");
    let counters = link.model.counters();
    assert_eq!((counters.ack_filtered.packets, counters.ack_filtered.bytes, counters.queued.packets), (2, 2 * 84, 0));
    assert_eq!(counters.report().drops.ack_filtered, 2);
    // Duplicates stay, and an ACK that overtook is not taken for a later one. Only the last of them is known.
    let mut link = filtering();
    acks(&mut link, 0, &[('0', 0), ('a', 5), ('a', 5), ('a', 4), ('A', 6)]);
    assert_eq!((link.model.dropped(), names(&mut link)), (Some('a'), "0aaA".into()));
    assert_eq!(link.model.counters().ack_filtered.packets, 1);
    // Once it is in service it is not known any more, also if its place in memory is another packet's.
    let mut link = filtering();
    acks(&mut link, 0, &[('0', 0), ('a', 1)]);
    link.out(SLOT);
    acks(&mut link, SLOT, &[('1', 0), ('A', 2)]);
    assert_eq!((link.model.dropped(), names(&mut link)), (None, "0a1A".into()));
    // Where it waits it makes room.
    let mut link =
        Script::new(Direction { ack_filter: true, queue: drop_tail(Some(2), None), ..direction(1_000_000_000) });
    assert_eq!(acks(&mut link, 0, &[('0', 0), ('1', 0), ('a', 1), ('b', 1), ('A', 2), ('a', 1)]), "01aA");
    assert_eq!((link.model.dropped(), names(&mut link)), (Some('a'), "01A".into()));
}

#[test]
fn ack_filtering_is_switched_and_moves_to_another_queue() {
    let set = |filter| Change { ack_filter: Some(filter), ..Change::default() };
    let codel = Discipline::Codel(CodelConfig { target_ns: MS, interval_ns: 10 * MS, ecn: false });
    let other = Change { queue: Some(Queue { discipline: codel, ..drop_tail(Some(9), None) }), ..Change::default() };
    let mut link = Script::new(direction(1_000_000_000));
    acks(&mut link, 0, &[('0', 0), ('a', 1), ('a', 2)]);
    link.change(0, set(true));
    acks(&mut link, 0, &[('a', 3), ('a', 4)]);
    assert_eq!(link.model.counters().ack_filtered.packets, 1, "those that waited are not known");
    link.change(0, other);
    acks(&mut link, 0, &[('a', 5), ('a', 6)]);
    assert_eq!(link.model.counters().ack_filtered.packets, 2);
    link.change(0, set(false));
    acks(&mut link, 0, &[('a', 7)]);
    link.change(0, set(true));
    acks(&mut link, 0, &[('a', 8), ('a', 9)]);
    assert_eq!((link.model.counters().ack_filtered.packets, link.all().len()), (3, 7));
}

#[test]
fn impairments_can_be_switched_at_run_time() {
    let mut link = Script::new(direction(1_000_000_000));
    let impair = |link: &mut Script, now| link.model.impair(now, &mut Meta { ip_bytes: 1500, ..Meta::default() });
    assert!(!impair(&mut link, 0).lost);
    link.change(0, Change { loss: Some(Loss::EveryNth { n: 2 }), ..Change::default() });
    assert_eq!([1, 2, 3, 4].map(|now| impair(&mut link, now).lost), [false, true, false, true]);
    let certain = Change { loss: Some(Loss::None {}), corrupt_ppb: Some(1_000_000_000), ..Change::default() };
    link.change(0, Change { duplicate_ppb: Some(1_000_000_000), ..certain });
    let fate = impair(&mut link, 5);
    assert!(!fate.lost && fate.duplicate && fate.corrupt.is_some());
    let counters = link.model.counters();
    assert_eq!((counters.in_packets, counters.in_bytes, counters.lost_packets), (6, 6 * 1538, 2));
    assert_eq!((counters.corrupted_packets, counters.duplicated_packets), (1, 1));
}

/// Losses are drawn as without a middlebox; what it swallows is no loss, and what it bleaches is not marked any more.
#[test]
fn a_middlebox_swallows_and_bleaches_at_the_entrance() {
    let base = Direction { loss: Loss::EveryNth { n: 5 }, ..direction(1_000_000_000) };
    let mut link = Script::new(Direction { ecn_bleach: true, blackhole_bytes: 1400, ..base });
    let fates: Vec<_> = (0..10)
        .map(|n| {
            let mut meta = Meta { ip_bytes: [1400, 1401][n % 2], traffic_class: 0xb8 + n as u8 % 4, ..Meta::default() };
            (link.model.impair(n as Nanos, &mut meta), meta.traffic_class)
        })
        .collect();
    for (n, (fate, traffic_class)) in fates.into_iter().enumerate() {
        assert_eq!(fate.lost, n % 2 == 1 || n % 5 == 4, "{n}");
        assert_eq!(fate.bleach, !fate.lost && n % 4 != 0, "{n}");
        assert!(fate.lost || traffic_class == 0xb8);
    }
    let counters = link.model.counters();
    assert_eq!((counters.lost_packets, counters.blackhole_packets, counters.taken_packets()), (2, 4, 6));
    link.change(0, Change { ecn_bleach: Some(false), blackhole_bytes: Some(0), ..Change::default() });
    let mut meta = Meta { ip_bytes: 1500, traffic_class: 2, ..Meta::default() };
    assert_eq!((link.model.impair(9, &mut meta).lost, meta.traffic_class), (false, 2));
}

#[test]
fn a_burst_passes_at_once_and_a_queue_waits_behind_it() {
    let base = Direction { queue: drop_tail(Some(2), None), ..direction(1_000_000_000) };
    let mut link = Script::new(Direction { burst_bytes: 2 * 1538, ..base });
    assert_eq!(link.send(0, 1500, "abcdef"), "abcde", "two leave, one is in service, two wait");
    assert_eq!(link.all(), [('a', MS), ('b', MS), ('c', SLOT + MS), ('d', 2 * SLOT + MS), ('e', 3 * SLOT + MS)]);
}

#[test]
fn a_policer_drops_what_exceeds_its_rate_and_is_counted() {
    let police = Direction { police_bps: 1_000_000_000, police_bytes: 2 * 1538, ..direction(10_000_000_000) };
    let mut link = Script::new(police);
    let lost = |link: &mut Script, now| link.model.impair(now, &mut Meta { ip_bytes: 1500, ..Meta::default() }).lost;
    assert_eq!(
        [0, 0, 0, SLOT - 1, SLOT, SLOT].map(|now| lost(&mut link, now)),
        [false, false, true, true, false, true]
    );
    assert_eq!((link.model.counters().policed_packets, link.model.counters().report().drops.policed), (3, 3));
    link.change(SLOT, Change { police_bps: Some(0), police_bytes: Some(0), ..Change::default() });
    assert!(!lost(&mut link, SLOT));
}

#[test]
fn the_caller_s_own_drops_are_counted_with_the_others() {
    let mut link = Script::new(direction(1_000_000_000));
    link.model.count_drop(Drop::Store, Meta { ip_bytes: 1500, ..Meta::default() });
    assert_eq!((link.model.counters().store_full.packets, link.model.counters().store_full.bytes), (1, 1538));
}

#[test]
fn packets_leave_at_the_ends_of_slots_with_all_that_a_slot_had_room_for() {
    let base = direction(1_000_000_000);
    let mut link = Script::new(Direction { slot_ns: 20_000, ..base.clone() });
    link.send(0, 1500, "abcd");
    assert_eq!(link.model.next_event(), Some(20_000 + MS));
    assert_eq!(link.all(), [('a', 20_000 + MS), ('b', 40_000 + MS), ('c', 40_000 + MS), ('d', 60_000 + MS)]);
    // Ten milliseconds of packets in a row: each has left by the end of the slot in which its last bit was sent.
    let mut long = Script::new(Direction { slot_ns: MS, queue: drop_tail(Some(1000), None), ..base });
    long.send(0, 1500, &"x".repeat(800));
    let due: Vec<Nanos> = long.all().into_iter().map(|(_, due)| due).collect();
    let wanted: Vec<Nanos> = (1..=800).map(|n: Nanos| (n * SLOT).div_ceil(MS) * MS + MS).collect();
    assert_eq!(due, wanted);
}

#[test]
fn waiting_packets_are_sent_together_and_arrive_together() {
    let aggregate = Aggregate { packets: 3, time_ns: 0, gap_ns: 100_000 };
    let mut link = Script::new(Direction { aggregate, ..direction(1_000_000_000) });
    link.send(0, 1500, "abcdef");
    let (first, second) = (100_000 + SLOT, 2 * 100_000 + 4 * SLOT);
    let third = 3 * 100_000 + 6 * SLOT;
    let wanted = [('a', first), ('b', second), ('c', second), ('d', second), ('e', third), ('f', third)];
    assert_eq!(link.model.counters().in_service.packets, 1, "nobody else was there when it began");
    assert_eq!(link.all(), wanted.map(|(name, at)| (name, at + MS)));
}

#[test]
fn no_packet_joins_an_aggregate_that_is_long_enough() {
    let aggregate = Aggregate { packets: 64, time_ns: 2 * SLOT, gap_ns: 0 };
    let mut link = Script::new(Direction { aggregate, ..direction(1_000_000_000) });
    link.send(0, 1500, "abcde");
    let wanted = [('a', SLOT), ('b', 3 * SLOT), ('c', 3 * SLOT), ('d', 5 * SLOT), ('e', 5 * SLOT)];
    assert_eq!(link.all(), wanted.map(|(name, at)| (name, at + MS)));
}

/// What is not sent yet goes at the new rate, and the pause before it stays as long.
#[test]
fn another_rate_leaves_the_pause_before_an_aggregate() {
    let aggregate = Aggregate { packets: 3, time_ns: 0, gap_ns: 100_000 };
    let mut link = Script::new(Direction { aggregate, ..direction(1_000_000_000) });
    link.send(0, 1500, "a");
    link.change(30_000, Change { rate_bps: Some(500_000_000), ..Change::default() });
    assert_eq!(link.all(), [('a', 100_000 + 2 * SLOT + MS)]);
}

#[test]
fn a_cut_link_gives_back_a_whole_aggregate() {
    let aggregate = Aggregate { packets: 3, time_ns: 0, gap_ns: 0 };
    let mut link = Script::new(Direction { aggregate, ..direction(1_000_000_000) });
    link.send(0, 1500, "abcd");
    assert_eq!(link.out(SLOT), []);
    let mut cut: Vec<char> = std::iter::from_fn(|| link.model.cut()).collect();
    cut.sort_unstable();
    assert_eq!(cut, ['a', 'b', 'c', 'd']);
    assert_eq!(link.model.counters().in_service.packets, 0);
}

/// Rounds are whole, packets keep their order, and with `reorder` a packet that was sent again is overtaken.
#[test]
fn a_packet_that_is_sent_again_comes_whole_rounds_later() {
    let harq = Harq { error_ppb: 300_000_000, round_ns: 8 * MS, rounds: 4 };
    for reorder in [false, true] {
        let base = direction(1_000_000_000);
        let mut link = Script::new(Direction { harq, reorder, queue: drop_tail(Some(1000), None), ..base });
        link.send(0, 1500, &"x".repeat(1000));
        let due: Vec<Nanos> = link.all().into_iter().map(|(_, due)| due - MS).collect();
        assert_eq!(due.len(), 1000);
        assert!(due.windows(2).all(|pair| pair[0] <= pair[1]));
        let rounds = due.iter().filter(|due| *due % SLOT == 0).count();
        if reorder {
            // 0.7 are not sent again; five deviations are 73.
            assert!((627..=773).contains(&rounds), "{rounds}");
        } else {
            assert!(rounds < 100, "most wait for an earlier one: {rounds}");
        }
    }
}
