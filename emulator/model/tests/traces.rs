//! A link follows its trace at exact instants.

mod common;

use common::{direction, drop_tail};
use ewan_model::config::{Delay, Direction, Framing, Loss, Opportunity, Row, Trace};
use ewan_model::{check, Change, DirectionModel, Meta, Nanos};

const MS: Nanos = 1_000_000;

/// No framing, no delay: 1000 bytes at 1 Mbit/s take 8 ms.
fn plain(trace: Trace) -> Direction {
    Direction {
        framing: Framing { overhead_bytes: 0, minimum_bytes: 0 },
        delay: Delay::Constant { delay_ns: 0 },
        trace,
        ..direction(1_000_000)
    }
}

fn rates(period_ns: Nanos, rates: &[(Nanos, u64)]) -> Direction {
    let row = |(at_ns, rate_bps): &(Nanos, u64)| Row { at_ns: *at_ns, rate_bps: Some(*rate_bps), ..Row::default() };
    plain(Trace::Rows { period_ns, rows: rates.iter().map(row).collect() })
}

fn opportunities(period_ns: Nanos, at: &[(Nanos, u32)]) -> Direction {
    let one = |(at_ns, count): &(Nanos, u32)| Opportunity { at_ns: *at_ns, count: *count };
    plain(Trace::Opportunities { period_ns, opportunities: at.iter().map(one).collect() })
}

/// When packets of so many bytes that arrive at these times are due, found event by event.
fn due(config: &Direction, begin: Nanos, arrivals: &[(Nanos, u32)]) -> Vec<Nanos> {
    check(config).expect("a direction");
    let mut model = DirectionModel::new(config);
    model.begin(begin);
    let mut found = Vec::new();
    let mut collect = |model: &mut DirectionModel<usize>, until: Nanos| {
        while let Some(event) = model.next_event().filter(|event| *event <= until) {
            while let Some(release) = model.pop(event) {
                assert_eq!(release.due, event, "nothing is found late");
                found.push(release.due);
            }
        }
    };
    for (number, (at, ip_bytes)) in arrivals.iter().enumerate() {
        collect(&mut model, *at);
        let mut meta = Meta { ip_bytes: *ip_bytes, ..Meta::default() };
        if !model.impair(*at, &mut meta).lost {
            let _ = model.enqueue(number, meta, *at);
        }
    }
    collect(&mut model, Nanos::MAX);
    found
}

#[test]
fn a_rate_that_changes_in_mid_packet_holds_for_the_bits_that_are_left() {
    let config = rates(0, &[(0, 1_000_000), (2 * MS, 4_000_000)]);
    assert_eq!(due(&config, 0, &[(0, 1000), (0, 1000)]), [3_500_000, 5_500_000]);
    assert_eq!(due(&config, 7, &[(7, 1000)]), [3_500_007], "the trace's time 0 is its beginning");
}

#[test]
fn an_outage_keeps_the_bits_that_are_left() {
    let config = rates(0, &[(0, 1_000_000), (2 * MS, 0), (12 * MS + 1, 2_000_000)]);
    assert_eq!(due(&config, 0, &[(0, 1000), (5 * MS, 250)]), [15 * MS + 1, 16 * MS + 1]);
    assert_eq!(due(&config, 0, &[(5 * MS, 250)]), [13 * MS + 1], "one that arrives in the outage waits for its end");
}

#[test]
fn who_leaves_at_the_instant_of_a_row_has_left_before_it() {
    let rows = vec![
        Row { at_ns: 0, rate_bps: Some(1_000_000), delay_ns: Some(5 * MS), ..Row::default() },
        Row { at_ns: 8 * MS, rate_bps: Some(2_000_000), delay_ns: Some(20 * MS), ..Row::default() },
        Row { at_ns: 14 * MS, delay_ns: Some(MS), ..Row::default() },
    ];
    let config = plain(Trace::Rows { period_ns: 0, rows });
    let arrivals = [(0, 1000), (0, 1000), (0, 1000)];
    assert_eq!(due(&config, 0, &arrivals), [13 * MS, 32 * MS, 32 * MS], "order is kept");
    assert_eq!(due(&Direction { reorder: true, ..config }, 0, &arrivals), [13 * MS, 17 * MS, 32 * MS]);
}

#[test]
fn a_trace_repeats_or_holds() {
    let both = [(0, 1_000_000), (2 * MS, 4_000_000)];
    // 10 ms of 1 and 4 Mbit/s: 2 + 8 × 4 = 34 kbit a period.
    let repeated = rates(10 * MS, &both);
    assert_eq!(due(&repeated, 0, &[(0, 4250), (0, 250)]), [10 * MS, 12 * MS]);
    assert_eq!(due(&repeated, 0, &[(1_000_000_000 * MS, 1000)]), [1_000_000_003_500_000], "after long idleness too");
    assert_eq!(due(&rates(0, &both), 0, &[(1_000_000_000 * MS, 1000)]), [1_000_000_002_000_000]);
}

#[test]
fn losses_and_limits_hold_from_their_row_on() {
    let all = 1_000_000_000;
    let rows = vec![
        Row { at_ns: 0, loss_ppb: Some(0), limit_bytes: Some(1000), ..Row::default() },
        Row { at_ns: 5 * MS, loss_ppb: Some(all), ..Row::default() },
        Row { at_ns: 6 * MS, loss_ppb: Some(0), limit_bytes: Some(2000), ..Row::default() },
    ];
    let config = plain(Trace::Rows { period_ns: 0, rows });
    assert_eq!(due(&config, 0, &[(0, 1000), (0, 1000), (0, 1000)]), [8 * MS, 16 * MS], "one waits at most");
    assert!(due(&config, 0, &[(5 * MS, 1000), (6 * MS - 1, 1000)]).is_empty());
    assert_eq!(due(&config, 0, &[(6 * MS, 1000); 4]), [14 * MS, 22 * MS, 30 * MS], "two wait");
}

#[test]
fn packets_leave_at_opportunities_and_a_long_one_takes_several() {
    let config = opportunities(10 * MS, &[(3 * MS, 1), (7 * MS, 2)]);
    assert_eq!(due(&config, 0, &[(0, 1504), (0, 1504), (0, 1504), (0, 1)]), [3 * MS, 7 * MS, 7 * MS, 13 * MS]);
    assert_eq!(due(&config, 0, &[(0, 3000), (0, 8)]), [7 * MS, 7 * MS]);
    assert_eq!(due(&config, 0, &[(0, 1000), (0, 1000), (0, 1000)]), [3 * MS, 7 * MS, 7 * MS]);
    assert_eq!(due(&config, 0, &[(4 * MS, 1504)]), [7 * MS], "what nobody took is lost");
    assert_eq!(due(&config, 0, &[(7 * MS, 1504)]), [13 * MS], "who comes with the opportunity has missed it");
    assert_eq!(due(&config, 5, &[(1_000_000 * MS, 1504)]), [1_000_003_000_005]);
}

#[test]
fn packets_that_wait_for_an_opportunity_count_in_the_queue() {
    let config = Direction { queue: drop_tail(Some(2), None), ..opportunities(10 * MS, &[(3 * MS, 4)]) };
    assert_eq!(due(&config, 0, &[(0, 1000); 4]), [3 * MS, 3 * MS]);
}

#[test]
fn a_trace_begins_anew() {
    let config = rates(0, &[(0, 1_000_000), (2 * MS, 4_000_000)]);
    let mut model = DirectionModel::new(&config);
    let anew = Change { restart_trace: Some(true), ..Change::default() };
    model.reconfigure(&anew, 20 * MS);
    model.enqueue(0, Meta { ip_bytes: 1000, ..Meta::default() }, 20 * MS).expect("room");
    assert_eq!(model.next_event(), Some(22 * MS));
    assert_eq!(model.pop(22 * MS), None);
    assert_eq!(model.next_event(), Some(23_500_000));
}

#[test]
fn a_link_that_is_cut_in_an_outage_goes_on_empty() {
    let config = rates(0, &[(0, 0), (5 * MS, 1_000_000)]);
    let mut model = DirectionModel::new(&config);
    let packet = Meta { ip_bytes: 1000, ..Meta::default() };
    for number in 0..3 {
        model.enqueue(number, packet, 0).expect("room");
    }
    assert_eq!(std::iter::from_fn(|| model.cut()).count(), 3);
    assert_eq!(model.next_event(), None);
    model.enqueue(3, packet, MS).expect("room");
    assert_eq!(model.pop(13 * MS).map(|release| release.due), Some(13 * MS));
}

#[test]
fn what_would_never_end_or_is_told_twice_is_refused() {
    let refused = |config: &Direction| check(config).expect_err("refused");
    assert!(refused(&rates(0, &[(0, 1_000_000), (5, 0)])).contains("holds for ever"));
    assert!(refused(&rates(10_000 * MS, &[(0, 9_000), (5, 0)])).contains("on average"));
    assert!(refused(&rates(0, &[(1, 1_000_000)])).contains("at_ns is 1: write 0"));
    assert!(refused(&rates(0, &[(0, 1_000_000), (0, 8_000)])).contains("must grow"));
    assert!(refused(&rates(0, &[(0, 7_999)])).contains("write 8000"));
    assert!(refused(&rates(MS, &[(0, 8_000), (MS, 8_000)])).contains("more than 1000000"));
    assert!(refused(&opportunities(0, &[(0, 1)])).contains("period_ns 0"));
    assert!(refused(&opportunities(10_000 * MS, &[(0, 1)])).contains("on average"));
    assert!(refused(&opportunities(MS, &[(2 * MS, 1)])).contains("up to period_ns"));
    let change = Change { rate_bps: Some(9_000), ..Change::default() };
    assert!(change.check_for(&rates(0, &[(0, 8_000)])).expect_err("told twice").contains("the link's trace says it"));
    let loss = Change { loss: Some(Loss::None {}), ..Change::default() };
    assert_eq!(loss.check_for(&rates(0, &[(0, 8_000)])), Ok(()));
    let anew = Change { restart_trace: Some(true), ..Change::default() };
    assert!(anew.check_for(&direction(8_000)).expect_err("no trace").contains("has no trace"));
}
