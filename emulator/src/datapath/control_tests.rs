use std::sync::atomic::AtomicBool;

use super::super::changes::{self, Inbox};
use super::super::interfaces::Interfaces;
use super::super::port::Facts;
use super::*;

fn link(name: &str) -> Link {
    let facts = || Facts::new("lo", "none", String::new(), Box::new(|| 0));
    Link {
        name: name.into(),
        ended: Default::default(),
        ports: [facts(), facts()],
        interfaces: Interfaces::open(["lo", "lo"]).expect("every namespace has lo"),
        directions: [DirectionState::new(8), DirectionState::new(8)],
    }
}

fn control() -> (Control, Inbox) {
    let (outbox, inbox) = changes::channel();
    let shared = Arc::new(Shared::new(1, "test", 0, vec![link("here")]).unwrap());
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
        (r#"{"command":"dance"}"#.into(), "one of stats, series, set, changes"),
        (r#"{"command":"series"}"#.into(), "missing field `link`"),
        (r#"{"command":"series","link":"core"}"#.into(), r#"no "core" here; there are here"#),
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
