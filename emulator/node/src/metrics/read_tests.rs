//! Pages made of what stand-ins for spinners answer: all of it is told, and whoever is dead or hangs is told of too.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ewan_model::ClassReport;
use serde_json::{json, Value};

use super::*;

/// A lab's state directory with spinner 0's socket in it; gone at the end.
struct State(PathBuf);

impl State {
    fn new(name: &str) -> State {
        let path = std::env::temp_dir().join(format!("ewan-metrics-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory of the test's own");
        State(path)
    }

    /// Answers every request by `answer`; none: says nothing, and hangs up no sooner than the test ends.
    fn answering(self, answer: impl Fn(&Value) -> Option<Value> + Send + 'static) -> State {
        let listener = UnixListener::bind(self.0.join("spinner-0.sock")).expect("a socket of the test's own");
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming().flatten() {
                let mut writer = stream.try_clone().expect("a second handle");
                open.push(stream.try_clone().expect("a third handle"));
                for line in BufReader::new(stream).lines() {
                    let Ok(line) = line else { break };
                    match answer(&serde_json::from_str(&line).expect("requests are JSON")) {
                        Some(answer) => writeln!(writer, "{answer}").expect("the answer is taken"),
                        None => break,
                    }
                }
            }
        });
        self
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn plan() -> Plan {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/dumbbell.plan.json");
    ewan_plan::read(&golden).expect("a golden plan is a plan")
}

fn stats(link: &str) -> Value {
    let way = |base: u64| {
        json!({
            "in_packets": base + 1, "in_bytes": base + 2, "out_packets": base + 3, "out_bytes": base + 4,
            "drops": {"loss": base + 5, "blackhole": base + 19, "policed": base + 20, "queue_full": base + 6, "aqm": base + 7, "ack_filtered": base + 21, "store_full": base + 8},
            "corrupted_packets": base + 9, "duplicated_packets": base + 10, "ce_packets": base + 11,
            "served_packets": base + 17, "waited_ns": base + 18,
            "queue_packets": base + 12, "queue_bytes": base + 13,
            "queue_max_packets": base + 14, "queue_max_bytes": base + 15, "delay_line_packets": base + 16,
            "lateness_ns": {"samples": 3, "p50": 271, "p99": 271, "max": 260, "classes": [[135, 2], [271, 1]]},
        })
    };
    let drops = json!({"ring_full": 2, "receive": 3, "transmit": 4});
    let port = json!({"interface": "eth0", "kind": "packet", "ring_overruns": 1, "veth_drops": drops, "refused": 5});
    json!({
        "ok": true, "cpu": 1, "shared": true, "policy": "nice -20", "clock": "tsc", "busy_ns": 2_500_000_000u64,
        "gaps": {"count": 1, "lost_ns": 1500, "max_ns": 1500, "classes": [[1535, 1]]},
        "links": {link: {"ports": [port], "forward": way(100), "backward": way(200)}},
    })
}

fn served(request: &Value) -> Option<Value> {
    Some(match request["command"].as_str() {
        Some("stats") => stats("core"),
        _ => json!({"ok": true, "changes": [
            {"link": "core", "direction": "backward", "change": {"rate_bps": 8_000_000}},
            {"link": "core", "direction": "backward", "change": {"rate_bps": 16_000_000}},
        ]}),
    })
}

fn lines(plan: &Plan, state: &State, only: Option<&str>) -> Vec<String> {
    exposition(plan, &state.0, SampleScope { link: only, ..SampleScope::default() })
        .text()
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn all_that_a_spinner_says_is_told_once() {
    let (plan, state) = (plan(), State::new("all").answering(served));
    let lines = lines(&plan, &state, None);
    let lab = &plan.lab;
    for (metric, offset) in [
        ("in_packets_total", 1),
        ("in_bytes_total", 2),
        ("out_packets_total", 3),
        ("out_bytes_total", 4),
        ("corrupted_packets_total", 9),
        ("duplicated_packets_total", 10),
        ("ce_marked_packets_total", 11),
        ("queue_packets", 12),
        ("queue_bytes", 13),
        ("queue_highest_packets", 14),
        ("queue_highest_bytes", 15),
        ("delay_line_packets", 16),
    ] {
        for (direction, base) in [("forward", 100), ("backward", 200)] {
            let labels = format!(r#"{{lab="{lab}",link="core",direction="{direction}",backend="user"}}"#);
            let wanted = format!("ewan_link_{metric}{labels} {}", base + offset);
            assert_eq!(lines.iter().filter(|line| **line == wanted).count(), 1, "{wanted}");
        }
    }
    for (cause, packets) in [
        ("loss", 105),
        ("blackhole", 119),
        ("policed", 120),
        ("queue_full", 106),
        ("aqm", 107),
        ("ack_filtered", 121),
        ("store_full", 108),
    ] {
        let way = r#"direction="forward",backend="user""#;
        let dropped = format!(r#"dropped_packets_total{{lab="{lab}",link="core",{way},cause="{cause}"}} {packets}"#);
        assert!(lines.contains(&format!("ewan_link_{dropped}")), "{dropped}");
    }
    for (cause, packets) in [("ring_overrun", 1), ("ring_full", 2), ("receive", 3), ("transmit", 4), ("refused", 5)] {
        let labels = format!(r#"{{lab="{lab}",link="core",interface="eth0",cause="{cause}"}}"#);
        assert!(lines.contains(&format!("ewan_port_dropped_packets_total{labels} {packets}")), "{cause}");
    }
    let spinner = format!(r#"{{lab="{lab}",spinner="0"}}"#);
    assert!(lines.contains(&format!("ewan_spinner_busy_seconds_total{spinner} 2.5")));
    assert!(lines.contains(&format!("ewan_spinner_gap_seconds_sum{spinner} 0.0000015")));
    assert!(lines.contains(&format!(r#"ewan_up{{lab="{lab}",link="core",backend="user"}} 1"#)));
}

#[test]
fn settings_are_those_after_the_last_change() {
    let (plan, state) = (plan(), State::new("changes").answering(served));
    let rates: Vec<_> =
        lines(&plan, &state, None).into_iter().filter(|line| line.starts_with("ewan_link_rate_bytes")).collect();
    let way = |heading: &str| format!(r#"{{lab="{}",link="core",direction="{heading}",backend="user"}}"#, plan.lab);
    let unchanged = plan.links[0].forward.rate_bps / 8;
    assert_eq!(
        rates,
        [
            format!("ewan_link_rate_bytes_per_second{} {unchanged}", way("forward")),
            format!("ewan_link_rate_bytes_per_second{} 2000000", way("backward")),
        ]
    );
}

#[test]
fn one_link_asks_for_itself_alone() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = asked.clone();
    let state = State::new("one").answering(move |request| {
        kept.lock().expect("no thread failed").push(request.clone());
        served(request)
    });
    let told = lines(&plan(), &state, Some("core"));
    assert!(told.iter().any(|line| line.starts_with("ewan_up{") && line.ends_with(" 1")));
    assert!(told.iter().any(|line| line.starts_with("ewan_spinner_info{")), "core is its spinner's first link");
    assert_eq!(asked.lock().expect("no thread failed")[0], json!({"command": "stats", "link": "core"}));
}

#[test]
fn a_second_link_of_a_spinner_does_not_tell_of_the_spinner_again() {
    let mut plan = plan();
    let other = Link { name: "other".into(), ..plan.links[0].clone() };
    plan.links.push(other);
    plan.spinners[0].links.push("other".into());
    let state = State::new("second").answering(|request| match request["command"].as_str() {
        Some("stats") => Some(stats("other")),
        _ => served(request),
    });
    let told = lines(&plan, &state, Some("other"));
    assert!(told.iter().any(|line| line.contains(r#"link="other""#)));
    assert!(!told.iter().any(|line| line.contains("ewan_spinner") || line.contains(r#"link="core""#)), "{told:?}");
}

fn is_told_as_down(state: &State) {
    let plan = plan();
    let told = lines(&plan, state, None);
    assert!(told.contains(&format!(r#"ewan_up{{lab="{}",link="core",backend="user"}} 0"#, plan.lab)), "{told:?}");
    assert!(!told.iter().any(|line| line.starts_with("ewan_link") || line.starts_with("ewan_spinner")), "{told:?}");
    assert!(told.iter().any(|line| line.starts_with("ewan_build_info")));
}

#[test]
fn a_spinner_that_is_not_there_is_down() {
    is_told_as_down(&State::new("dead"));
}

#[test]
fn a_spinner_that_says_nonsense_is_down() {
    is_told_as_down(&State::new("nonsense").answering(|_| Some(json!({"ok": false, "error": "no"}))));
}

#[test]
fn a_spinner_that_hangs_is_down_after_a_second() {
    let state = State::new("hangs").answering(|_| None);
    let begun = Instant::now();
    is_told_as_down(&state);
    assert!(begun.elapsed() >= ANSWER, "it had its time");
    assert!(begun.elapsed() < 10 * ANSWER, "{:?}", begun.elapsed());
}

#[test]
fn a_kernel_link_tells_what_its_queueing_disciplines_counted() {
    let counted = LinkStatistics {
        name: "core".into(),
        direction: "forward",
        sent_packets: 80,
        sent_bytes: 118_880,
        dropped_queue: 20,
        dropped_impair_or_limit: 3,
        served_packets: 81,
        waited_ns: Some(4_000_000),
        marked_packets: Some(5),
        queue_packets: 1,
        queue_bytes: 1486,
        backlog_packets: 2,
        backlog_bytes: 2972,
        delayed_packets: 7,
        delayed_bytes: 10_402,
        late_packets: Some(1),
        late_max_ns: Some(2500),
    };
    let mut page = Exposition::default();
    let way = Labels::default().with("link", "core");
    kernel_way(&mut page, &way, &counted);
    kernel_way(&mut page, &way, &LinkStatistics { late_packets: None, late_max_ns: None, ..counted });
    let text = page.text();
    let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let (once, twice): (Vec<_>, Vec<_>) =
        samples.iter().partition(|line| samples.iter().filter(|other| other == line).count() == 1);
    assert_eq!(
        once,
        [
            &r#"ewan_link_lateness_max_seconds{link="core"} 0.0000025"#,
            &r#"ewan_link_late_packets_total{link="core"} 1"#
        ],
        "a token bucket tells no lateness"
    );
    assert!(twice.contains(&&r#"ewan_link_dropped_packets_total{link="core",cause="queue"} 20"#));
    assert!(twice.contains(&&r#"ewan_link_dropped_packets_total{link="core",cause="netem"} 3"#));
    assert!(twice.contains(&&r#"ewan_link_out_bytes_total{link="core"} 118880"#));
    assert!(twice.contains(&&r#"ewan_link_queue_packets{link="core"} 1"#), "without the packet in service");
}

#[test]
fn each_class_of_a_queue_tells_what_it_counted() {
    let mut now = plan().links[0].forward.clone();
    now.queue.discipline = serde_json::from_value(json!({
        "kind": "dualpi2", "target_ns": 15_000_000, "update_ns": 16_000_000, "alpha_mhz": 160, "beta_mhz": 3_200,
        "coupling": 2, "step_ns": 1_000_000, "classic_ppb": 100_000_000,
    }))
    .expect("a discipline");
    let class = |served_packets| ClassReport { served_packets, waited_ns: 2_000_000_000, ..ClassReport::default() };
    let counted = DirectionReport { classes: vec![class(7), class(9)], ..DirectionReport::default() };
    let mut page = Exposition::default();
    model_way(&mut page, &Way { labels: Labels::default().with("link", "core"), now: &now }, &counted);
    let text = page.text();
    for line in [
        r#"ewan_class_served_packets_total{link="core",class="l4s"} 7"#,
        r#"ewan_class_served_packets_total{link="core",class="classic"} 9"#,
        r#"ewan_class_waited_seconds_total{link="core",class="classic"} 2"#,
    ] {
        assert!(text.lines().any(|told| told == line), "{line} is not in\n{text}");
    }
}

#[test]
fn a_kernel_link_that_is_not_up_is_down_and_no_error() {
    let mut plan = plan();
    plan.lab = "no-such-lab-is-up".into();
    plan.links[0].backend = Backend::Kernel;
    plan.spinners.clear();
    let told = lines(&plan, &State::new("kernel"), None);
    assert!(told.iter().any(|line| line.starts_with("ewan_up{") && line.ends_with(r#"backend="kernel"} 0"#)));
}

#[test]
fn a_machines_samples_have_its_name_and_the_whole_labs_number_of_its_spinner() {
    let state = State::new("machine").answering(|_| Some(stats("core")));
    let of = SampleScope { machine: Some("two"), first_spinner: 3, ..SampleScope::default() };
    let text = exposition(&plan(), &state.0, of).text();
    let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(samples.iter().all(|line| line.contains("{machine=\"two\",")), "{text}");
    assert!(
        samples
            .iter()
            .any(|line| line.starts_with("ewan_spinner_shared{machine=\"two\",lab=\"dumbbell\",spinner=\"3\"}")),
        "{text}"
    );
}
