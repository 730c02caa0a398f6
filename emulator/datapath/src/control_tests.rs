use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use serde_json::json;

use super::super::changes::{self, Inbox};
use super::super::interfaces::Interfaces;
use super::super::port::Facts;
use super::super::series::Row;
use super::*;
use ewan_model::config::Trace;
use ewan_model::TraceSettings;

fn link(name: &str) -> Link {
    let facts = || Facts::new("lo", "none", Box::new(|| 0));
    Link {
        name: name.into(),
        ended: Default::default(),
        ports: [facts(), facts()],
        interfaces: Interfaces::open(["lo", "lo"]).expect("every namespace has lo"),
        directions: [TraceSettings::default(); 2].map(|says| DirectionState::new(says, 4096)),
    }
}

fn control() -> (Control, Inbox) {
    let (outbox, inbox) = changes::channel();
    let shared = Arc::new(Shared::new(1, "test", 0, vec![link("here")]).unwrap());
    shared.settled_ms.store(u64::MAX, Release);
    (Control { clock: Clock::kernel(), shared, changes: Arc::new(Mutex::new(outbox)) }, inbox)
}

fn error_of(control: &Control, request: &str) -> String {
    let answer = control.answer(request.as_bytes());
    assert_eq!(answer["ok"], false, "{answer}");
    answer["error"].as_str().unwrap_or_default().to_string()
}

#[test]
fn says_in_one_line_what_is_wrong_with_a_request() {
    let (control, _inbox) = control();
    let set = |keys: &str| format!(r#"{{"command":"set","link":"here","direction":"both",{keys}}}"#);
    for (request, part) in [
        ("{".into(), "no JSON"),
        (r#"{"command":"dance"}"#.into(), "one of stats, series, flows, activity, set, changes"),
        (r#"{"command":"series"}"#.into(), "missing field `link`"),
        (r#"{"command":"series","link":"core"}"#.into(), r#"no "core" here; there are here"#),
        (r#"{"command":"series","link":"here","columns":["colour"]}"#.into(), r#"columns: no "colour"; there are in_"#),
        (r#"{"command":"stats","link":"core"}"#.into(), r#"no "core" here"#),
        (r#"{"command":"set","link":"here","direction":"both"}"#.into(), "nothing to change"),
        (set(r#""rate":1"#), "unknown field `rate`"),
        (set(r#""rate_bps":7999"#), "rate_bps 7999: write 8000"),
        (set(r#""delay":{"kind":"constant","delay_ns":10000000001}"#), "delay_ns 10000000001: write 0 to 10000000000"),
        (set(r#""loss":{"kind":"bernoulli","loss_ppb":2000000000}"#), "loss_ppb 2000000000: a probability"),
        (set(r#""rate_bps":8000,"in_ns":18446744073709551615"#), "in_ns 18446744073709551615: write at most"),
        (
            set(
                r#""queue":{"limit_packets":9,"limit_bytes":null,"discipline":{"kind":"pie","target_ns":1,"update_ns":0,
                "alpha_mhz":1,"beta_mhz":1,"ecn":false}}"#,
            ),
            "update_ns 0: write 100000",
        ),
        (
            set(
                r#""queue":{"limit_packets":9,"limit_bytes":null,"discipline":{"kind":"red","min_bytes":9,"max_bytes":8,
                "max_p_ppb":1,"weight_log2":9,"ecn":false}}"#,
            ),
            "min_bytes 9: must be below max_bytes (8)",
        ),
    ] {
        let request = request.replace('\n', " ");
        let error = error_of(&control, &request);
        assert!(error.contains(part) && !error.contains('\n'), "{request}: {error}");
    }
}

#[test]
fn a_series_has_the_rows_and_columns_that_are_asked_for() {
    let (control, _inbox) = control();
    let answer = control.answer(br#"{"command":"series","link":"here","most":0,"columns":["out_bytes"]}"#);
    assert_eq!(answer["forward"], json!({"out_bytes": []}));
}

#[test]
fn activity_names_only_the_links_that_did_something() {
    let (control, _inbox) = control();
    let now = control.answer(br#"{"command":"activity"}"#);
    let end = now["end_ms"].as_u64().expect("a time");
    assert_eq!((&now["first_ms"], &now["links"]), (&json!(end), &json!({})));
    let forward = &control.shared.links[0].directions[0].series;
    forward.write(end, &Row { out_bytes: 1000, queue_max_bytes: 9, lateness_max_ns: 5, ..Row::default() });
    forward.write(end + 2, &Row { out_bytes: 500, queue_max_bytes: 4, queue_bytes: 4, ..Row::default() });
    let found = loop {
        let found = control.answer(format!(r#"{{"command":"activity","since_ms":{end}}}"#).as_bytes());
        if found["end_ms"].as_u64() > Some(end + 2) {
            break found;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    assert_eq!(found["links"].as_object().map(|links| links.len()), Some(1));
    let sums = &found["links"]["here"]["forward"];
    let told = ["out_bytes", "queue_max_bytes", "queue_bytes", "lateness_max_ns"].map(|name| sums[name].as_u64());
    assert_eq!(told, [1500, 9, 4, 5].map(Some), "{found}");
    assert_eq!(found["links"]["here"]["backward"], Value::Null);
}

/// A time that wraps would be one in the past.
#[test]
fn the_latest_change_is_the_last_to_be_made() {
    let (control, mut inbox) = control();
    for in_ns in [LONGEST_WAIT_NS, 0] {
        let request =
            format!(r#"{{"command":"set","link":"here","direction":"forward","in_ns":{in_ns},"rate_bps":9000}}"#);
        assert_eq!(control.answer(request.as_bytes())["ok"], true);
    }
    inbox.look();
    let soonest = inbox.soonest().expect("one");
    assert!(soonest <= control.clock.now());
}

#[test]
fn what_a_trace_says_cannot_be_told() {
    let (outbox, _inbox) = changes::channel();
    let trace = Trace::Opportunities { period_ns: 1_000_000, opportunities: vec![(1_000_000, 1).into()] };
    let mut traced = link("here");
    traced.directions[1] = DirectionState::new(trace.says(), 8);
    let shared = Arc::new(Shared::new(1, "test", 0, vec![traced]).unwrap());
    let control = Control { clock: Clock::kernel(), shared, changes: Arc::new(Mutex::new(outbox)) };
    let set = |way: &str, keys: &str| format!(r#"{{"command":"set","link":"here","direction":"{way}",{keys}}}"#);
    for way in ["backward", "both"] {
        let error = error_of(&control, &set(way, r#""rate_bps":8000"#));
        assert_eq!(error, "rate_bps: the link's trace says it: leave rate_bps out");
    }
    assert_eq!(control.answer(set("forward", r#""rate_bps":8000"#).as_bytes())["ok"], true);
    assert_eq!(control.answer(set("backward", r#""corrupt_ppb":5"#).as_bytes())["ok"], true);
}

#[test]
fn a_link_that_ended_says_so_and_takes_no_change() {
    let (control, _inbox) = control();
    let stats = control.answer(br#"{"command":"stats"}"#);
    assert_eq!((&stats["links"]["here"]["running"], &stats["links"]["here"]["ended"]), (&json!(true), &Value::Null));
    control.shared.links[0].ended.set("index out of bounds".into()).unwrap();
    let stats = control.answer(br#"{"command":"stats"}"#);
    assert_eq!(stats["links"]["here"]["running"], false);
    assert_eq!(stats["links"]["here"]["ended"], "index out of bounds");
    let error = error_of(&control, r#"{"command":"set","link":"here","direction":"both","rate_bps":9000}"#);
    assert!(error.contains("link here has ended"), "{error}");
    assert!(summary(&control.shared).iter().any(|line| line == "here ended before: index out of bounds"));
}

fn asked(path: &Path, request: &[u8]) -> (UnixStream, String) {
    let mut stream = UnixStream::connect(path).expect("a connection");
    let _ = stream.write_all(request);
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).expect("a line");
    (stream, line)
}

#[test]
fn connections_and_lines_are_bounded_and_the_socket_serves_on() {
    let path = std::env::temp_dir().join(format!("ewan-control-{}.sock", std::process::id()));
    let (control, _inbox) = control();
    serve(control, &path).expect("served");
    let stats = b"{\"command\":\"stats\"}\n";
    let mut open: Vec<UnixStream> = Vec::new();
    for _ in 0..MOST_CONNECTIONS {
        let (stream, line) = asked(&path, stats);
        assert!(line.contains("\"ok\":true"), "{line}");
        open.push(stream);
    }
    let (_, line) = asked(&path, b"");
    assert!(line.contains("64 connections are open"), "{line}");
    open.clear();
    let long = vec![b' '; LONGEST_LINE as usize + 1];
    let served = AtomicBool::new(false);
    for _ in 0..200 {
        let (_, line) = asked(&path, &long);
        if line.contains("bytes at most") {
            served.store(true, Relaxed);
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5)); // the 64 are still closing
    }
    assert!(served.load(Relaxed));
    assert!(asked(&path, stats).1.contains("\"ok\":true"));
    let _ = std::fs::remove_file(&path);
}

/// Values that a client may send by mistake or on purpose.
fn values() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        Just(json!(0)),
        Just(json!(1)),
        Just(json!(-1)),
        Just(json!(8000)),
        Just(json!(1_000_000_000u64)),
        Just(json!(u64::MAX)),
        Just(json!(1e300)),
        Just(json!(0.5)),
        any::<u32>().prop_map(|number| json!(number)),
    ];
    let kind = prop_oneof![
        Just("bernoulli"),
        Just("gilbert_elliott"),
        Just("every"),
        Just("constant"),
        Just("normal"),
        Just("table"),
        Just("red"),
        Just("pie"),
        Just("codel"),
        Just("drop_tail"),
        Just("none"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number,
        "[a-z]{0,9}".prop_map(Value::String)
    ];
    let key = prop_oneof![
        Just("loss_ppb"),
        Just("delay_ns"),
        Just("jitter_ns"),
        Just("delays_ns"),
        Just("limit_packets"),
        Just("limit_bytes"),
        Just("discipline"),
        Just("target_ns"),
        Just("interval_ns"),
        Just("update_ns"),
        Just("min_bytes"),
        Just("max_bytes"),
        Just("max_p_ppb"),
        Just("weight_log2"),
        Just("alpha_mhz"),
        Just("beta_mhz"),
        Just("ecn"),
    ];
    leaf.prop_recursive(3, 24, 6, move |inner| {
        let object = (kind.clone(), prop::collection::btree_map(key.clone(), inner.clone(), 0..6));
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::Array),
            object.prop_map(|(kind, members)| {
                let members = members.into_iter().map(|(key, value)| (key.to_string(), value));
                Value::Object(std::iter::once(("kind".to_string(), json!(kind))).chain(members).collect())
            }),
        ]
    })
}

proptest! {
    /// Whatever comes is answered in one line of a bounded length, and changes nothing unless it is right.
    #[test]
    fn any_request_is_answered(
        command in prop_oneof![Just("set"), Just("stats"), Just("series"), Just("activity"), Just("flows"), Just("changes"), Just("dance")],
        keys in prop::collection::btree_map(
            prop_oneof![
                Just("rate_bps"), Just("loss"), Just("delay"), Just("queue"), Just("corrupt_ppb"), Just("duplicate_ppb"),
                Just("reorder"), Just("in_ns"), Just("from"), Just("bogus"),
            ],
            values(),
            0..4,
        ),
        direction in prop_oneof![Just("forward"), Just("backward"), Just("both"), Just("up")],
    ) {
        let (control, _inbox) = control();
        let mut request = json!({"command": command, "link": "here", "direction": direction});
        request.as_object_mut().unwrap().extend(keys.into_iter().map(|(key, value)| (key.to_string(), value)));
        let answer = control.answer(request.to_string().as_bytes());
        let accepted = answer["ok"] == true;
        if let Some(error) = answer["error"].as_str() {
            prop_assert!(!accepted && !error.contains('\n') && error.len() < 2000, "{}", error);
        } else {
            prop_assert!(accepted, "{}", answer);
        }
    }

    #[test]
    fn any_bytes_are_answered(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let (control, _inbox) = control();
        let answer = control.answer(&line);
        prop_assert!(answer["ok"].is_boolean());
    }
}
