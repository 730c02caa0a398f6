//! Halves with known offsets and drifts give the true delays.

use std::fs;
use std::path::Path;

use super::super::{Answer, Request, FORMAT};
use super::*;

const NOW: i64 = 1_790_000_000_000_000_000;
const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;

fn stream(name: &str, packets: u64) -> Stream {
    let end = |side| format!(r#"{{"netns": "/run/netns/{side}", "address": "192.0.2.1"}}"#);
    serde_json::from_str(&format!(
        r#"{{"name": "{name}", "from": {}, "to": {}, "packet_bytes": 100, "interval_ns": 1000000, "packets": {packets},
            "raw": true}}"#,
        end("a"),
        end("b")
    ))
    .unwrap()
}

fn probe(streams: Vec<Stream>) -> Udp {
    Udp { name: "p".into(), streams, drain_ns: 1, series_ns: 0 }
}

/// A clock that was ahead by `offset_ns` at NOW and by `ppb` more for each second that passed.
#[derive(Clone, Copy)]
struct Ahead {
    offset_ns: i64,
    ppb: i64,
}

const RIGHT: Ahead = Ahead { offset_ns: 0, ppb: 0 };

impl Ahead {
    fn by(self, true_ns: i64) -> i64 {
        self.offset_ns + (true_ns - NOW) * self.ppb / SECOND
    }

    fn shows(self, true_ns: i64) -> i64 {
        true_ns + self.by(true_ns)
    }

    /// Compared at the probe's beginning and a bit after its end.
    fn compared(self, uncertainty_ns: u64) -> Option<Clock> {
        let reading = |at_ns| Reading { at_ns, offset_ns: self.by(at_ns), uncertainty_ns };
        Some(Clock { before: reading(NOW), after: reading(NOW + 10 * SECOND) })
    }
}

fn sent(offered: u64) -> Option<SenderRecord> {
    Some(SenderRecord { offered, first_ns: NOW, last_ns: NOW + 1, ..SenderRecord::default() })
}

fn share(streams: Vec<observation::Stream>, clock: Option<Clock>) -> Share {
    Share { half: Observation::Udp(observation::Udp { clock_step_ns: 0, streams }), clock }
}

/// One packet a millisecond, each of which truly takes `delay_ns`, as two clocks show them.
fn arrivals(sender: Ahead, receiver: Ahead, delay_ns: i64, packets: u64) -> Vec<Arrival> {
    let arrival = |sequence: u64| {
        let (left, came) = (NOW + sequence as i64 * MS, NOW + sequence as i64 * MS + delay_ns);
        let at_ns = receiver.shows(came);
        Arrival { sequence, at_ns, delay_ns: at_ns - sender.shows(left) }
    };
    (0..packets).map(arrival).collect()
}

fn half_sent(packets: u64) -> observation::Stream {
    observation::Stream { sent: sent(packets), ..observation::Stream::default() }
}

fn half_arrived(arrivals: Vec<Arrival>) -> observation::Stream {
    observation::Stream { arrivals: Some(arrivals), ..observation::Stream::default() }
}

#[test]
fn offsets_and_drifts_of_both_clocks_are_taken_out_of_a_one_way_delay() {
    let probe = probe(vec![stream("s", 9000)]);
    let slow = Ahead { offset_ns: -3 * SECOND, ppb: -40_000 };
    let fast = Ahead { offset_ns: 250 * MS, ppb: 25_000 };
    for (sender, receiver) in [(RIGHT, fast), (slow, RIGHT), (slow, fast), (fast, slow)] {
        let arrived = arrivals(sender, receiver, 50 * MS, 9000);
        let shares = vec![
            share(vec![half_arrived(arrived.clone())], receiver.compared(700)),
            share(vec![half_sent(9000)], sender.compared(20_000)),
        ];
        let measured = udp(&probe, shares, false).unwrap();
        let found = &measured.streams[0];
        let delay = found.delay.as_ref().unwrap();
        assert!((delay.min_ns - 50 * MS).abs() <= 2 && (delay.max_ns - 50 * MS).abs() <= 2, "{delay:?}");
        assert_eq!(found.clocks_ns, Some(20_700));
        assert_eq!((found.counts.received_packets, found.counts.lost_packets), (9000, 0));
        // The pace of arrivals is the receiver's clock's, untouched.
        let spacings: Vec<_> = arrived.windows(2).map(|two| two[1].at_ns - two[0].at_ns).collect();
        assert_eq!(found.spacings_ns.as_ref().unwrap(), &spacings);
    }
}

#[test]
fn both_ends_on_one_machine_need_no_offset() {
    let probe = probe(vec![stream("s", 100)]);
    let fast = Ahead { offset_ns: 250 * MS, ppb: 25_000 };
    let whole = observation::Stream { sent: sent(100), ..half_arrived(arrivals(fast, fast, 5 * MS, 100)) };
    let measured = udp(&probe, vec![share(vec![whole], fast.compared(700))], false).unwrap();
    assert_eq!(measured.streams[0].clocks_ns, None);
    // 25 ppm of 5 ms.
    assert_eq!(measured.streams[0].delay.as_ref().unwrap().p50_ns, 5 * MS + 125);
}

#[test]
fn a_round_trip_is_as_its_halves_have_it() {
    let probe = probe(vec![stream("s", 10)]);
    let asked = observation::Stream { sent: sent(10), ..half_arrived(arrivals(RIGHT, RIGHT, 70 * MS, 10)) };
    let shares = vec![
        share(vec![observation::Stream { socket_drops_packets: 3, ..observation::Stream::default() }], None),
        share(vec![asked], Ahead { offset_ns: SECOND, ppb: 0 }.compared(9)),
    ];
    let measured = udp(&probe, shares, true).unwrap();
    let found = &measured.streams[0];
    assert_eq!((found.delay.as_ref().unwrap().p50_ns, found.clocks_ns, found.socket_drops_packets), (70 * MS, None, 3));
}

#[test]
fn senders_on_two_machines_share_a_link_in_the_order_of_one_clock() {
    let mut second = stream("t", 50);
    second.shares_with = Some("s".into());
    let probe = probe(vec![stream("s", 50), second]);
    let other = Ahead { offset_ns: -SECOND, ppb: 0 };
    let shares = vec![
        share(
            vec![observation::Stream { sent: sent(50), ..half_arrived(arrivals(RIGHT, RIGHT, MS, 50)) }, half_sent(50)],
            None,
        ),
        share(
            vec![observation::Stream::default(), half_arrived(arrivals(RIGHT, other, MS + MS / 2, 50))],
            other.compared(9),
        ),
    ];
    let measured = udp(&probe, shares, false).unwrap();
    let steady = measured.streams[0].steady.as_ref().unwrap();
    assert_eq!((steady.packets, steady.window_ns), (99, 49 * MS as u64 + MS as u64 / 2));
    assert!(measured.streams[1].steady.is_none());
}

#[test]
fn what_was_never_sent_did_not_arrive() {
    let probe = probe(vec![stream("s", 100)]);
    let shares =
        vec![share(vec![half_sent(40)], None), share(vec![half_arrived(arrivals(RIGHT, RIGHT, MS, 41))], None)];
    let found = &udp(&probe, shares, false).unwrap().streams[0];
    assert_eq!((found.counts.received_packets, found.counts.lost_packets, found.unsent_packets), (40, 0, 60));
}

#[test]
fn halves_that_are_missing_or_do_not_fit_are_an_error() {
    let probe = probe(vec![stream("s", 10)]);
    for (streams, says) in [
        (vec![half_sent(10)], "what arrived"),
        (vec![half_arrived(Vec::new())], "what was sent"),
        (vec![], "a half of 0 streams"),
        (vec![observation::Stream { sent: sent(11), ..half_arrived(Vec::new()) }], "more was sent"),
    ] {
        let error = udp(&probe, vec![share(streams, None)], false).err().unwrap();
        assert!(error.contains(says), "{error}");
    }
    let half = Observation::Tcp(observation::Tcp::default());
    assert!(udp(&probe, Share::whole(half), false).is_err());
}

fn sample(time_ns: u64, delivered_segments: u32, idle_ns: u64) -> Sample {
    Sample {
        time_ns,
        received_bytes: 0,
        delivered_segments,
        cwnd_segments: 10,
        ssthresh_segments: 10,
        srtt_ns: 1,
        retransmitted_segments: 0,
        lost_segments: 0,
        idle_ns,
    }
}

#[test]
fn the_busier_of_two_machines_says_how_idle_they_were() {
    let end = r#"{"netns": "/run/netns/a", "address": "192.0.2.1"}"#;
    let probe: Tcp = serde_json::from_str(&format!(
        r#"{{"name": "t", "from": {end}, "to": {end}, "duration_ns": 2000000000, "steady_ns": 1000000000}}"#
    ))
    .unwrap();
    let second = SECOND as u64;
    let source = observation::Source {
        connect_ns: 1,
        segment_bytes: 1000,
        min_rtt_ns: 1,
        series: (0..=20).map(|k| sample(k * second / 10, 100 * k as u32, k * second / 10)).collect(),
        idle: observation::Idle { cpus: 2, series: Vec::new() },
    };
    // Idle at first, then for a fifth of the time.
    let series = (0..=20).map(|k| (k * second / 10, second + (k.saturating_sub(10)) * second / 50)).collect();
    let sink = observation::Tcp { source: None, sink: Some(observation::Idle { cpus: 1, series }) };
    let alone = observation::Tcp { source: Some(source), sink: None };
    let shares = [sink, alone].map(|half| Share { half: Observation::Tcp(half), clock: None });
    let found = tcp(&probe, Vec::from(shares)).unwrap();
    assert_eq!((found.goodput_bps, found.steady_ns), (8e6, second));
    assert!((found.idle_ratio - 0.2).abs() < 1e-9, "{}", found.idle_ratio);
}

/// Python writes the requests and reads the answers: labs/runtime/probe_documents.py, and its test, which reads the same
/// two files.
#[test]
fn requests_and_answers_are_those_of_the_golden_files() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let request = Request::parse(&fs::read_to_string(golden.join("probe.request.json")).unwrap()).unwrap();
    let results = request.probes.iter().map(|probe| {
        let measured = of(probe, seen(probe)).unwrap_or_else(|error| Measured::Failed { error });
        Outcome { name: probe.name().to_string(), elapsed_ns: 7, measured }
    });
    let answer = Answer { format: FORMAT, results: results.collect() };
    let text = serde_json::to_string_pretty(&answer).unwrap() + "\n";
    assert_eq!(text, fs::read_to_string(golden.join("probe.answer.json")).unwrap(), "{text}");
}

/// Of each stream every tenth packet is lost; of a probe that is "deaf" nothing is known.
fn seen(probe: &Probe) -> Vec<Share> {
    let (udp, sender, receiver) = match probe {
        Probe::Tcp(_) => {
            let series = (0..=4).map(|k| sample(k * MS as u64, 100 * k as u32, k * MS as u64)).collect();
            let idle = observation::Idle { cpus: 2, series: Vec::new() };
            let source = observation::Source { connect_ns: 1, segment_bytes: 1448, min_rtt_ns: 1, series, idle };
            return Share::whole(Observation::Tcp(observation::Tcp { source: Some(source), sink: None }));
        }
        Probe::Delay(udp) if udp.name == "deaf" => return Vec::new(),
        Probe::Delay(udp) => (udp, RIGHT, Ahead { offset_ns: SECOND, ppb: 0 }),
        Probe::Loss(udp) | Probe::Saturate(udp) | Probe::Rtt(udp) => (udp, RIGHT, RIGHT),
    };
    let arrived = |stream: &Stream| {
        arrivals(sender, receiver, 5 * MS, stream.packets).into_iter().filter(|each| each.sequence % 10 != 4).collect()
    };
    let ends = udp.streams.iter().map(|each| (half_sent(each.packets), half_arrived(arrived(each))));
    let (sent, came) = ends.unzip();
    vec![share(sent, None), share(came, receiver.compared(9))]
}
