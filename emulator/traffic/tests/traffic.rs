//! Real TCP flows between two namespaces: bulk, both ways at once, arriving; their sockets' options; many of them.

mod pair;

use pair::{number, Pair, MS};
use serde_json::{json, Value};

fn bulk(bytes: Option<u64>) -> Value {
    json!({"kind": "bulk", "bytes": bytes})
}

fn arrivals(count: u64) -> Value {
    json!({"kind": "arrivals", "count": count, "interval_ns": {"law": "exponential", "mean": 2 * MS},
           "size_bytes": {"law": "pareto", "mean": 20_000, "shape": 1.3}})
}

#[test]
fn bulk_flows_end_with_their_last_byte_or_in_time() {
    let pair = Pair::new("bulk");
    pair.rate("a", "100mbit", 300_000);
    let stopping = json!({"start_ns": 100 * MS, "stop_ns": 500 * MS});
    let results = pair.run(&[pair.flow(bulk(Some(1_000_000)), json!({})), pair.flow(bulk(None), stopping)], json!({}));
    let [bytes, lasting] = &results.records[..] else { panic!("{:?}", results.records) };
    assert_eq!((bytes["received_bytes"].as_u64(), &bytes["error"]), (Some(1_000_000), &Value::Null), "{bytes}");
    // 8 Mbit at 100 Mbit/s, and what the framing takes; other programs on this machine may take their time.
    let took = number(bytes, "completion_ns");
    assert!(took > 80e6 && took < 400e6 && took == number(bytes, "ended_ns"), "{bytes}");
    assert_eq!(results.binned_bytes(0, 0), 1_000_000);
    assert_eq!(Some(results.binned_bytes(1, 0)), lasting["received_bytes"].as_u64());
    assert!((number(lasting, "ended_ns") - 500e6).abs() < 50e6 && lasting["completion_ns"].is_null(), "{lasting}");
    let rate = number(lasting, "goodput_bps");
    assert!(rate > 40e6 && rate < 105e6 && lasting["error"].is_null(), "{lasting}");
    assert!(results.series_rows >= 6, "{} looks of 50 ms in 0.4 s", results.series_rows);
}

#[test]
fn a_flow_starts_when_the_steps_that_it_waits_for_have_ended() {
    let pair = Pair::new("after");
    pair.rate("a", "100mbit", 300_000);
    let of = |step: u32, after: &[u32], more: Value| {
        let mut keys = json!({"step": step, "after": after});
        keys.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        pair.flow(bulk(Some(500_000)), keys)
    };
    // The first step has two flows, of which the second one starts late; the last one waits 50 ms more.
    let last = of(2, &[1], json!({"start_ns": 50 * MS, "stop_ns": 70 * MS}));
    let flows = [of(1, &[0], json!({})), of(0, &[], json!({})), of(0, &[], json!({"start_ns": 100 * MS})), last];
    let results = pair.run(&flows, json!({}));
    let [second, first, late, last] = &results.records[..] else { panic!("{:?}", results.records) };
    assert!(number(first, "ended_ns") < number(late, "ended_ns"), "{first} {late}");
    // Known when the receiver has its last byte, told a moment later.
    let waited = number(second, "scheduled_ns") - number(late, "ended_ns");
    assert!((0.0..5e6).contains(&waited), "{waited} ns after the end of {late}: {second}");
    assert!(number(second, "started_ns") >= number(second, "scheduled_ns"), "{second}");
    assert!(number(second, "completion_ns") > 40e6, "500 kB at 100 Mbit/s: {second}");
    let pause = number(last, "scheduled_ns") - number(second, "ended_ns");
    assert!((50e6..55e6).contains(&pause), "{pause} ns: {last}");
    // 20 ms after that it is stopped: 250 kB at most, and what was on its way.
    assert!(last["completion_ns"].is_null() && number(last, "received_bytes") < 300e3, "{last}");
    assert_eq!(results.binned_bytes(0, 0), 500_000);
}

#[test]
fn both_ends_of_a_bidirectional_flow_send_on_one_connection() {
    let pair = Pair::new("both");
    pair.rate("b", "20mbit", 300_000);
    let mut work = bulk(Some(500_000));
    work["bidirectional"] = json!(true);
    let results = pair.run(&[pair.flow(work, json!({}))], json!({}));
    let [forward, backward] = &results.records[..] else { panic!("{:?}", results.records) };
    for (part, record) in [forward, backward].into_iter().enumerate() {
        assert_eq!((record["part"].as_u64(), &record["error"]), (Some(part as u64), &Value::Null), "{record}");
        assert_eq!(record["received_bytes"].as_u64(), Some(500_000), "{record}");
        assert_eq!(results.binned_bytes(0, part as u64), 500_000);
    }
    assert_eq!(forward["connected_ns"], backward["connected_ns"]);
    // 4 Mbit at 20 Mbit/s; the other way nothing holds it up.
    assert!(number(backward, "completion_ns") > 190e6, "{backward}");
    assert!(number(forward, "completion_ns") < number(backward, "completion_ns"), "{forward}");
}

#[test]
fn arrivals_come_by_their_own_seed_and_each_is_sent_whole() {
    let pair = Pair::new("arrivals");
    let drawn = |flows: &[Value], seed: u64| -> Vec<(f64, f64)> {
        let results = pair.run(flows, json!({"seed": seed}));
        let first = results.records.iter().filter(|record| record["flow"] == 0).collect::<Vec<_>>();
        assert_eq!(first.len(), 100);
        for (record, part) in first.iter().zip(0u64..) {
            assert_eq!((record["part"].as_u64(), &record["error"]), (Some(part), &Value::Null), "{record}");
            assert_eq!(record["received_bytes"], record["volume_bytes"], "{record}");
            assert!(number(record, "started_ns") >= number(record, "scheduled_ns"), "{record}");
        }
        let total: u64 = (0..100).map(|part| results.binned_bytes(0, part)).sum();
        assert_eq!(total, first.iter().map(|record| record["volume_bytes"].as_u64().expect("bytes")).sum::<u64>());
        first.iter().map(|record| (number(record, "scheduled_ns"), number(record, "volume_bytes"))).collect()
    };
    let alone = drawn(&[pair.flow(arrivals(100), json!({}))], 1);
    let beside = drawn(&[pair.flow(arrivals(100), json!({})), pair.flow(arrivals(5), json!({}))], 1);
    assert_eq!(alone, beside, "a flow added at the end changes no other");
    assert_ne!(alone, drawn(&[pair.flow(arrivals(100), json!({}))], 2));
    assert!(alone[0].0 == 0.0 && alone.windows(2).all(|two| two[0].0 < two[1].0), "{alone:?}");
    // The mean of 99 exponential intervals of 2 ms lies within 40 % of it, at four deviations.
    assert!((alone[99].0 / 198e6 - 1.0).abs() < 0.4, "{alone:?}");
}

#[test]
fn arrivals_that_are_stopped_keep_those_that_came() {
    let pair = Pair::new("stopped");
    let mut work = arrivals(1);
    work["count"] = Value::Null;
    let results = pair.run(&[pair.flow(work, json!({"stop_ns": 100 * MS}))], json!({}));
    assert!((20..100).contains(&results.records.len()), "{}", results.records.len());
    assert!(results.records.iter().all(|record| number(record, "scheduled_ns") < 100e6));
}

#[test]
fn no_more_than_the_window_is_in_flight() {
    let pair = Pair::new("window");
    // Its queue has room for more.
    pair.rate("a", "50mbit", 1_000_000);
    let (window, bytes) = (100_000, 2_000_000);
    let socket = json!({"congestion": "reno", "window_bytes": window});
    let flow = pair.flow(bulk(Some(bytes)), json!({"socket": socket, "sample_ns": MS}));
    let results = pair.run(&[flow], json!({}));
    let record = &results.records[0];
    assert_eq!(record["received_bytes"].as_u64(), Some(bytes), "{record}");
    let most =
        results.series.iter().map(|row| row[7]).max().expect("samples") * record["segment_bytes"].as_u64().unwrap();
    // What does not fill a segment may be in one of its own.
    assert!(most > 90_000 && most < window + 1448, "{most} bytes in flight");
}

#[test]
fn what_a_flow_wants_of_its_sockets_is_what_they_do() {
    let pair = Pair::new("options");
    let ect = || pair.counter("b", "InECT0Pkts");
    let send = |socket: Value| {
        let results = pair.run(&[pair.flow(bulk(Some(1_000_000)), json!({"socket": socket}))], json!({}));
        results.records[0].clone()
    };
    let plain = send(json!({"congestion": "reno"}));
    assert_eq!((&plain["congestion"], plain["segment_bytes"].as_u64()), (&json!("reno"), Some(1448)), "{plain}");
    assert_eq!(ect(), 0);
    let marked = send(json!({"congestion": "cubic", "mss_bytes": 1000, "ecn": true, "nodelay": true, "dscp": 10,
                             "send_buffer_bytes": 200_000, "receive_buffer_bytes": 200_000}));
    // The option that carries time stamps takes 12 of the 1000.
    assert_eq!((&marked["congestion"], marked["segment_bytes"].as_u64()), (&json!("cubic"), Some(988)), "{marked}");
    assert!(ect() > 10, "{} packets", ect());
    assert_eq!(pair.sysctl("a", "net/ipv4/tcp_ecn"), "2", "as it was");
}

#[test]
fn only_the_flow_that_asks_for_ecn_has_it() {
    let pair = Pair::new("ecn");
    let flow = |ecn: bool, bytes: u64| {
        pair.flow(bulk(Some(bytes)), json!({"socket": {"congestion": "reno", "ecn": ecn}, "start_ns": 100 * MS}))
    };
    // The node's own word is looked at all the while: other programs in it connect too.
    let ended = std::sync::atomic::AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let looking = scope.spawn(|| pair.seen("a", "net/ipv4/tcp_ecn", &ended));
        let many: Vec<Value> = (0..100).map(|_| flow(true, 1)).collect();
        let results = pair.run(&many, json!({}));
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        let failed: Vec<_> = results.records.iter().filter(|record| !record["error"].is_null()).collect();
        assert!(failed.is_empty(), "{failed:?}");
        looking.join().expect("no thread panicked")
    });
    assert_eq!(seen, ["2"].map(str::to_owned).into());
    // With the plain flow's they would be twice as many: 691 segments each.
    let before = pair.counter("b", "InECT0Pkts");
    pair.run(&[flow(true, 1_000_000), flow(false, 1_000_000)], json!({}));
    let marked = pair.counter("b", "InECT0Pkts") - before;
    assert!((600..1000).contains(&marked), "{marked} packets");
    assert_eq!(pair.inside("a", "ip rule; ip -6 rule").lines().filter(|rule| rule.contains("fwmark")).count(), 0);
    assert!(!pair.inside("a", "ip route show table all").contains("features"));
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_sent() {
    let pair = Pair::new("refused");
    let flow = |more: Value| pair.flow(bulk(Some(10)), more);
    let nowhere = json!({"netns": "/run/netns/traffic-test-none", "address": "192.0.2.1"});
    for (flow, says) in [
        (flow(json!({"socket": {"congestion": "vegan"}})), "congestion control \"vegan\": unknown to this kernel"),
        (flow(json!({"socket": {}})), "give socket.congestion"),
        (flow(json!({"from": nowhere})), "/run/netns/traffic-test-none"),
        (flow(json!({"to": null})), "give from and to"),
        (flow(json!({"start_ns": 20_000 * MS})), "it starts at or after longest_ns"),
        (flow(json!({"start_ns": 5, "stop_ns": 5})), "stop_ns must be after start_ns"),
        (flow(json!({"rate_bps": 5})), "unknown field `rate_bps`"),
        (flow(json!({"work": {"kind": "bulk"}})), "give bytes or stop_ns"),
        (flow(json!({"sample_ns": 10})), "sample_ns 10: give 100000"),
        (flow(json!({"socket": {"congestion": "reno", "dscp": 64}})), "socket.dscp: give 0 to 63"),
        (flow(json!({"socket": {"congestion": "reno", "mss_bytes": 10}})), "socket.mss_bytes: give 88"),
    ] {
        let error = pair.refused(&[flow]);
        assert!(error.contains(says) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn a_flow_that_does_not_connect_says_why_and_the_others_go_on() {
    let pair = Pair::new("none");
    // Nothing leaves b.
    pair.rate("b", "8bit", 1);
    let longest = json!({"longest_ns": 300 * MS});
    let results = pair.run(&[pair.flow(bulk(Some(10)), json!({})), pair.flow(bulk(Some(10)), json!({}))], longest);
    for record in &results.records {
        assert!(record["error"].as_str().is_some_and(|error| error.contains("longest time")), "{record}");
        assert_eq!((record["received_bytes"].as_u64(), &record["completion_ns"]), (Some(0), &Value::Null));
        assert!(record["connected_ns"].is_null() && record["started_ns"].is_i64(), "{record}");
    }
}

#[test]
fn a_thousand_flows_at_once() {
    let pair = Pair::new("many");
    // Slow enough that all are there before the first has ended: 20 MB at 100 Mbit/s.
    pair.rate("a", "100mbit", 3_000_000);
    let flows: Vec<Value> =
        (0..1000).map(|k| pair.flow(bulk(Some(20_000)), json!({"start_ns": k * MS / 10}))).collect();
    let results = pair.run(&flows, json!({"longest_ns": 60_000 * MS}));
    assert_eq!(results.records.len(), 1000);
    assert!(results.records.iter().all(|record| record["received_bytes"] == 20_000 && record["error"].is_null()));
    let ended = |record: &Value| number(record, "ended_ns");
    let started = results.records.iter().map(|record| number(record, "started_ns")).fold(0.0, f64::max);
    let active = results.records.iter().filter(|record| ended(record) > started).count();
    assert!(active > 500, "{active} flows were active at once");
}
