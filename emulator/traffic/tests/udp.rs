//! Real UDP flows between two namespaces.

mod pair;

use pair::{constant, number, Pair, MS};
use serde_json::json;

#[test]
fn a_constant_rate_arrives_whole_and_takes_its_time() {
    let pair = Pair::new("cbr");
    let work = json!({"kind": "udp", "count": 400, "size_bytes": constant(1000), "interval_ns": constant(MS)});
    let results = pair.run(&[pair.flow(work, json!({"start_ns": 20 * MS}))], json!({}));
    let record = &results.records[0];
    assert_eq!((record["sent_packets"].as_u64(), record["lost_packets"].as_u64()), (Some(400), Some(0)), "{record}");
    assert_eq!((record["volume_bytes"].as_u64(), record["received_bytes"].as_u64()), (Some(400_000), Some(400_000)));
    assert_eq!((&record["duplicate_packets"], &record["reordered_packets"]), (&json!(0), &json!(0)), "{record}");
    // The last packet is due 399 intervals after the first; other programs may delay it.
    let took = number(record, "completion_ns");
    assert!((399e6..600e6).contains(&took), "{record}");
    assert!(number(record, "started_ns") >= 20e6 && record["scheduled_ns"] == json!(20 * MS), "{record}");
    assert!(number(record, "delay_min_ns") > 0.0 && number(record, "delay_p50_ns") < 5e6, "{record}");
    assert!(number(record, "delay_p50_ns") <= number(record, "delay_p99_ns") && number(record, "jitter_ns") > 0.0);
    assert_eq!(results.binned_bytes(0, 0), 400_000);
    assert!((6..=14).contains(&results.goodput.len()), "{:?}", results.goodput);
}

#[test]
fn what_a_full_queue_drops_is_lost_and_the_rest_comes_at_the_links_rate() {
    let pair = Pair::new("overload");
    pair.rate("a", "20mbit", 30_000);
    // 1458 bytes of payload are 1500 as the bucket counts: 24 Mbit/s are offered for a second.
    let work = json!({"kind": "udp", "size_bytes": constant(1458), "interval_ns": constant(500_000)});
    let results = pair.run(&[pair.flow(work, json!({"stop_ns": 1000 * MS}))], json!({}));
    let record = &results.records[0];
    let (sent, lost) = (number(record, "sent_packets"), number(record, "lost_packets"));
    // 2000 packets, of which the bucket passes 1667 and the last 20 that waited. A busy machine sends in bursts, of which
    // more are dropped; never fewer, and the bucket never passes more than its rate.
    assert!((1900.0..=2000.0).contains(&sent), "{record}");
    assert!((0.10..0.70).contains(&(lost / sent)), "{record}");
    assert_eq!(number(record, "received_packets") + lost, sent);
    let rate = number(record, "goodput_bps") * 1500.0 / 1458.0;
    assert!((6e6..20.5e6).contains(&rate), "{rate}: {record}");
    assert!((1000e6..1100e6).contains(&number(record, "ended_ns")) && record["error"].is_null(), "{record}");
    assert!(record["completion_ns"].is_null() && record["volume_bytes"].is_null(), "{record}");
    // The queue holds 20 packets of 0.6 ms each.
    assert!((8e6..60e6).contains(&number(record, "delay_p95_ns")), "{record}");
}

#[test]
fn on_and_off_periods_and_random_sizes_are_the_seeds_alone() {
    let pair = Pair::new("onoff");
    let work = json!({"kind": "udp",
        "size_bytes": {"law": "exponential", "mean": 500, "most": 1400}, "interval_ns": constant(MS / 2),
        "on_ns": {"law": "exponential", "mean": 20 * MS}, "off_ns": {"law": "exponential", "mean": 20 * MS}});
    let flow = |start: u64| pair.flow(work.clone(), json!({"start_ns": start, "stop_ns": start + 300 * MS}));
    let run = |seed: u64| pair.run(&[flow(0), flow(10 * MS)], json!({"seed": seed})).records;
    let (first, again, other) = (run(1), run(1), run(2));
    for (one, two) in first.iter().zip(&again) {
        assert_eq!(one["lost_packets"], json!(0), "{one}");
        assert_eq!((&one["sent_packets"], &one["received_bytes"]), (&two["sent_packets"], &two["received_bytes"]));
    }
    assert_ne!(first[0]["received_bytes"], other[0]["received_bytes"]);
    assert_ne!(first[0]["received_bytes"], first[1]["received_bytes"]);
    // On for about half of 300 ms, which would carry 600 packets.
    assert!((60.0..540.0).contains(&number(&first[0], "sent_packets")), "{}", first[0]);
}

#[test]
fn the_shortest_packets_and_many_flows_at_once() {
    let pair = Pair::new("many");
    let work = json!({"kind": "udp", "count": 20, "size_bytes": constant(24), "interval_ns": constant(5 * MS)});
    let flows: Vec<_> = (0..500).map(|_| pair.flow(work.clone(), json!({}))).collect();
    let results = pair.run(&flows, json!({"series_ns": 0, "sample_ns": 0}));
    for record in &results.records {
        assert_eq!(
            (record["received_packets"].as_u64(), record["received_bytes"].as_u64()),
            (Some(20), Some(480)),
            "{record}"
        );
    }
    assert!(results.records.len() == 500 && results.goodput.is_empty());
}

#[test]
fn over_ipv6_and_with_marks_it_is_the_same() {
    let pair = Pair::new("v6");
    let mut end = pair.end("a");
    end["address"] = json!("::1");
    let work = json!({"kind": "udp", "count": 50, "size_bytes": constant(1000), "interval_ns": constant(MS)});
    let socket = json!({"dscp": 46, "ecn": true});
    let results = pair.run(&[pair.flow(work, json!({"from": end, "to": end, "socket": socket}))], json!({}));
    let record = &results.records[0];
    assert_eq!((record["received_packets"].as_u64(), &record["error"]), (Some(50), &json!(null)), "{record}");
    assert!(record["congestion"].is_null() && number(record, "delay_max_ns") < 20e6, "{record}");
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let end = json!({"netns": "/run/netns/none", "address": "192.0.2.1"});
    let refused = |work: serde_json::Value| {
        let flow = json!({"name": "u", "from": end, "to": end, "work": work});
        let request = json!({"format": "ewan-traffic/1", "longest_ns": MS, "flows": [flow]}).to_string();
        ewan_traffic::flows::Request::parse(&request).expect_err("refused")
    };
    let interval = constant(MS);
    for (work, says) in [
        (json!({"kind": "udp", "size_bytes": constant(100), "interval_ns": interval}), "give count or stop_ns"),
        (
            json!({"kind": "udp", "count": 1, "size_bytes": constant(10), "interval_ns": interval}),
            "size_bytes: give 24 to 65507",
        ),
        (
            json!({"kind": "udp", "count": 1, "size_bytes": constant(100), "interval_ns": constant(0)}),
            "interval_ns: give a mean",
        ),
        (
            json!({"kind": "udp", "count": 1, "size_bytes": constant(100), "interval_ns": interval, "on_ns": interval}),
            "give both on_ns and off_ns",
        ),
        (
            json!({"kind": "udp", "count": 1, "size_bytes": {"law": "zipf"}, "interval_ns": interval}),
            "law \"zipf\" is unknown",
        ),
    ] {
        let error = refused(work);
        assert!(
            error.contains(says) && error.contains("flow \"u\"") | error.contains("law") && !error.contains('\n'),
            "{error}"
        );
    }
}
