//! Real sessions and message passing between two namespaces.

mod pair;

use pair::{constant, number, Pair, MS};
use serde_json::{json, Value};

fn requests(more: Value) -> Value {
    let mut work = json!({"kind": "requests", "count": 20, "request_bytes": constant(300),
                          "response_bytes": constant(5000), "think_ns": constant(10 * MS)});
    work.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    work
}

#[test]
fn a_session_asks_thinks_and_asks_again() {
    let pair = Pair::new("session");
    for new_connection in [false, true] {
        let work = requests(json!({"new_connection": new_connection}));
        let results = pair.run(&[pair.flow(work, json!({"start_ns": 20 * MS}))], json!({}));
        let record = &results.records[0];
        assert_eq!((&record["error"], record["received_bytes"].as_u64()), (&Value::Null, Some(20 * 5300)), "{record}");
        assert_eq!(record["volume_bytes"].as_u64(), Some(20 * 5300), "{record}");
        // 19 think times of 10 ms.
        let took = number(record, "completion_ns");
        assert!((190e6..500e6).contains(&took), "{record}");
        assert_eq!(results.exchanges.len(), 20);
        for (row, number) in results.exchanges.iter().zip(0..) {
            let [flow, part, found, start, duration, sent, received] = row[..] else { panic!("{row:?}") };
            assert_eq!((flow, part, found, sent, received), (0, 0, number, 300, 5000));
            assert!(start >= 20 * MS && duration < 100 * MS, "{row:?}");
        }
        let gap = |two: &[Vec<u64>]| two[1][3] - (two[0][3] + two[0][4]);
        assert!(results.exchanges.windows(2).all(|two| gap(two) >= 10 * MS), "{:?}", results.exchanges);
        assert_eq!(results.binned_bytes(0, 0), 20 * 5300);
        assert!(results.series_rows > 0 || new_connection);
    }
}

#[test]
fn a_response_takes_the_time_that_the_link_needs_for_it() {
    let pair = Pair::new("response");
    pair.rate("b", "10mbit", 300_000);
    // 125 kB are 100 ms at 10 Mbit/s, and 87 frames of 66 bytes more.
    let work = requests(json!({"count": 3, "response_bytes": constant(125_000)}));
    let results = pair.run(&[pair.flow(work, json!({}))], json!({}));
    assert_eq!(results.exchanges.len(), 3);
    for row in &results.exchanges {
        assert!((100 * MS..250 * MS).contains(&row[4]), "{row:?}");
    }
}

#[test]
fn a_session_that_is_stopped_keeps_what_it_did() {
    let pair = Pair::new("stopped");
    let work = requests(json!({"count": null, "think_ns": constant(20 * MS)}));
    let results = pair.run(&[pair.flow(work, json!({"stop_ns": 200 * MS}))], json!({}));
    let record = &results.records[0];
    assert!(record["error"].is_null() && record["completion_ns"].is_null(), "{record}");
    assert!((200e6..260e6).contains(&number(record, "ended_ns")), "{record}");
    assert!((4..=10).contains(&results.exchanges.len()), "{:?}", results.exchanges);
    let whole = 5300 * results.exchanges.len() as u64;
    assert!((whole..=whole + 5300).contains(&record["received_bytes"].as_u64().expect("bytes")), "{record}");
}

/// Ranks alternately on a and b.
fn messages(pair: &Pair, pattern: &str, ranks: usize, more: Value) -> Value {
    let ranks: Vec<Value> = (0..ranks).map(|rank| pair.end(if rank % 2 == 0 { "a" } else { "b" })).collect();
    let mut work = json!({"kind": "messages", "pattern": pattern, "ranks": ranks, "iterations": 10,
                          "size_bytes": constant(10_000), "compute_ns": constant(2 * MS)});
    work.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    json!({"name": "m", "work": work, "socket": {"congestion": "reno", "send_buffer_bytes": 5000}})
}

#[test]
fn each_pattern_moves_its_messages_in_every_iteration() {
    let pair = Pair::new("patterns");
    for (pattern, ranks, each_bytes) in [
        ("ping-pong", 4, 10_000),
        ("all-to-all", 5, 40_000),
        ("neighbour-exchange", 5, 20_000),
        ("neighbour-exchange", 2, 10_000),
        ("barrier", 6, 3),
    ] {
        let results = pair.run(&[messages(&pair, pattern, ranks, json!({}))], json!({}));
        assert_eq!(results.records.len(), ranks, "{pattern}");
        for (record, part) in results.records.iter().zip(0..) {
            assert!(record["error"].is_null() && record["part"] == json!(part), "{pattern}: {record}");
            assert_eq!(record["received_bytes"].as_u64(), Some(10 * each_bytes), "{pattern}: {record}");
            assert!(number(record, "completion_ns") >= 20e6, "{pattern}: {record}");
            assert_eq!(results.binned_bytes(0, part), 10 * each_bytes, "{pattern}");
        }
        assert_eq!(results.exchanges.len(), 10 * ranks, "{pattern}");
        for row in &results.exchanges {
            assert!(row[4] >= 2 * MS && row[5] == each_bytes && row[6] == each_bytes, "{pattern}: {row:?}");
        }
    }
}

#[test]
fn nobody_leaves_a_barrier_before_the_last_has_come() {
    let pair = Pair::new("barrier");
    let work = json!({"compute_ns": {"law": "exponential", "mean": 5 * MS}});
    let results = pair.run(&[messages(&pair, "barrier", 5, work)], json!({}));
    for iteration in 0..10 {
        let rows: Vec<_> = results.exchanges.iter().filter(|row| row[2] == iteration).collect();
        let ends: Vec<u64> = rows.iter().map(|row| row[3] + row[4]).collect();
        let last_start = rows.iter().map(|row| row[3]).max().expect("five rows");
        assert!(rows.len() == 5 && ends.iter().all(|&end| end >= last_start), "{rows:?}");
    }
}

#[test]
fn large_messages_through_small_buffers_do_not_block_each_other() {
    let pair = Pair::new("large");
    let work = json!({"iterations": 2, "size_bytes": constant(2_000_000), "compute_ns": constant(0)});
    for pattern in ["all-to-all", "neighbour-exchange", "ping-pong"] {
        let results = pair.run(&[messages(&pair, pattern, 4, work.clone())], json!({}));
        assert!(results.records.iter().all(|record| record["error"].is_null()), "{pattern}: {:?}", results.records);
    }
}

#[test]
fn ranks_that_ask_for_ecn_meet_as_well() {
    let pair = Pair::new("ecn");
    let mut flow = messages(&pair, "all-to-all", 6, json!({"iterations": 3}));
    flow["socket"] = json!({"congestion": "reno", "ecn": true});
    let results = pair.run(&[flow], json!({}));
    assert!(results.records.iter().all(|record| record["error"].is_null()), "{:?}", results.records);
    assert_eq!(results.exchanges.len(), 18);
}

#[test]
fn a_group_is_stopped_as_a_whole() {
    let pair = Pair::new("group");
    let mut flow = messages(&pair, "all-to-all", 4, json!({"iterations": 1_000_000}));
    flow["stop_ns"] = json!(150 * MS);
    let results = pair.run(&[flow], json!({}));
    for record in &results.records {
        assert!(record["error"].is_null() && record["completion_ns"].is_null(), "{record}");
        assert!((150e6..250e6).contains(&number(record, "ended_ns")), "{record}");
    }
    assert!(results.exchanges.len() > 8, "{}", results.exchanges.len());
}

#[test]
fn a_rank_that_cannot_be_reached_ends_with_the_longest_time() {
    let pair = Pair::new("unreached");
    pair.rate("a", "8bit", 1);
    let results = pair.run(&[messages(&pair, "ping-pong", 2, json!({}))], json!({"longest_ns": 300 * MS}));
    for record in &results.records {
        assert!(record["error"].as_str().is_some_and(|error| error.contains("longest time")), "{record}");
    }
}
