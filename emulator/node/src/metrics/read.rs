//! What the links of a lab count, whoever emulates them, as samples.
//!
//! In: the plan and the state directory of a lab; perhaps the one link that is wanted. Out: an exposition. Whoever does not
//! answer is told as `ewan_up 0`, never as an error.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use ewan_datapath::client::{self, Client};
use ewan_model::config::Direction;
use ewan_model::{Change, DirectionReport};
use serde::Deserialize;
use serde_json::json;

use super::text::{sum_of_classes, Exposition, Labels, Seconds};
use ewan_lab::qdisc::{self, LinkCounters, LinkStatistics};
use ewan_plan::{Backend, Link, Plan, HEADINGS};

/// Time for a spinner to answer: a scrape waits for it.
const ANSWER: Duration = Duration::from_secs(1);
/// Bounds of lateness: 2^k and 1.5 × 2^k ns, from 256 ns to 67 ms; they are bounds of the spinner's own classes too.
const LATENESS_POWERS: std::ops::RangeInclusive<u32> = 8..=26;
/// Bounds of gaps: 2^k ns, from 1 µs to 134 ms.
const GAP_POWERS: std::ops::RangeInclusive<u32> = 10..=27;

/// Whose samples are told.
#[derive(Clone, Copy, Default)]
pub struct SampleScope<'a> {
    /// The link of this name alone.
    pub link: Option<&'a str>,
    /// A machine of a lab that stretches over several: a label of every sample.
    pub machine: Option<&'a str>,
    /// What the whole lab calls spinner 0.
    pub first_spinner: usize,
}

/// All links of the plan, or the one that is meant.
pub fn exposition(plan: &Plan, state: &Path, of: SampleScope) -> Exposition {
    let only = of.link;
    let mut page = Exposition::default();
    let everything = of.machine.map_or_else(Labels::default, |machine| Labels::default().with("machine", machine));
    let lab = everything.with("lab", &plan.lab);
    page.add("ewan_build_info", &everything.with("version", crate::VERSION), 1);
    let routing = serde_json::to_value(plan.routing).unwrap_or_default();
    let routing = routing.as_str().unwrap_or_default();
    page.add("ewan_lab_info", &lab.with("topology", &plan.topology).with("routing", routing), 1);

    let spinners = ask_all(plan, state, only);
    let changes = changes(plan, state, &spinners);
    for link in plan.links.iter().filter(|link| only.is_none_or(|only| link.name == only)) {
        let backend = serde_json::to_value(link.backend).unwrap_or_default();
        let backend = backend.as_str().unwrap_or_default().to_owned();
        let of_link = lab.with("link", &link.name);
        let way = |heading: usize| of_link.with("direction", HEADINGS[heading]).with("backend", &backend);
        let now = as_set_now(link, &changes);
        let ways = [0, 1].map(|heading| Way { labels: way(heading), now: &now[heading] });
        let up = match link.backend {
            Backend::User => match spinners.iter().find_map(|spinner| spinner.stats.as_ref()?.links.get(&link.name)) {
                Some(stats) => {
                    user_link(&mut page, &of_link, &ways, stats);
                    true
                }
                None => false,
            },
            // Its keeper reads the device each second; a scrape asks nothing more of it.
            Backend::Hardware => state.join(format!("device-{}.sock", link.name)).exists(),
            Backend::Kernel | Backend::Tbf | Backend::Ewan => kernel_link(&mut page, &ways, plan, link, only.is_some()),
        };
        page.add("ewan_up", &of_link.with("backend", &backend), u8::from(up));
        if up {
            ways.iter().for_each(|way| settings(&mut page, &way.labels, way.now));
        }
    }
    for spinner in &spinners {
        // Beside one link's samples only in one place: where the spinner itself runs, at its first link.
        let told_here = only.is_none_or(|only| plan.spinners[spinner.number].links.first().is_some_and(|l| l == only));
        if let (true, Some(stats)) = (told_here, &spinner.stats) {
            spinner_itself(&mut page, &lab.with("spinner", of.first_spinner + spinner.number), stats);
        }
    }
    page
}

/// One direction of a link: the labels of its samples, and the direction as it is set now.
struct Way<'a> {
    labels: Labels,
    now: &'a Direction,
}

fn settings(page: &mut Exposition, labels: &Labels, now: &Direction) {
    page.add("ewan_link_rate_bytes_per_second", labels, now.rate_bps as f64 / 8.0);
    page.add("ewan_link_delay_seconds", labels, Seconds(now.delay.nominal_ns()));
    page.add_known("ewan_link_queue_limit_bytes", labels, now.queue.limit_bytes);
    page.add_known("ewan_link_queue_limit_packets", labels, now.queue.limit_packets);
}

fn model_way(page: &mut Exposition, Way { labels: way, now }: &Way, counted: &DirectionReport) {
    page.add("ewan_link_in_bytes_total", way, counted.in_bytes);
    page.add("ewan_link_in_packets_total", way, counted.in_packets);
    page.add("ewan_link_out_bytes_total", way, counted.out_bytes);
    page.add("ewan_link_out_packets_total", way, counted.out_packets);
    let drops = &counted.drops;
    for (cause, packets) in [
        ("loss", drops.loss),
        ("blackhole", drops.blackhole),
        ("policed", drops.policed),
        ("queue_full", drops.queue_full),
        ("aqm", drops.aqm),
        ("ack_filtered", drops.ack_filtered),
        ("store_full", drops.store_full),
    ] {
        page.add("ewan_link_dropped_packets_total", &way.with("cause", cause), packets);
    }
    page.add("ewan_link_corrupted_packets_total", way, counted.corrupted_packets);
    page.add("ewan_link_duplicated_packets_total", way, counted.duplicated_packets);
    page.add("ewan_link_ce_marked_packets_total", way, counted.ce_packets);
    page.add("ewan_link_queue_bytes", way, counted.queue_bytes);
    page.add("ewan_link_queue_packets", way, counted.queue_packets);
    page.add("ewan_link_queue_highest_bytes", way, counted.queue_max_bytes);
    page.add("ewan_link_queue_highest_packets", way, counted.queue_max_packets);
    page.add("ewan_link_delay_line_packets", way, counted.delay_line_packets);
    for (name, class) in now.queue.discipline.class_names().into_iter().zip(&counted.classes) {
        let of_class = way.with("class", name);
        page.add("ewan_class_served_packets_total", &of_class, class.served_packets);
        page.add("ewan_class_waited_seconds_total", &of_class, Seconds(class.waited_ns));
        page.add("ewan_class_dropped_packets_total", &of_class, class.dropped_packets);
        page.add("ewan_class_ce_marked_packets_total", &of_class, class.ce_packets);
        page.add("ewan_class_queue_bytes", &of_class, class.queue_bytes);
        page.add("ewan_class_queue_packets", &of_class, class.queue_packets);
    }
}

fn user_link(page: &mut Exposition, of_link: &Labels, ways: &[Way; 2], stats: &LinkStats) {
    for (way, counted) in ways.iter().zip([&stats.forward, &stats.backward]) {
        model_way(page, way, &counted.report);
        let late = &counted.lateness_ns;
        let bounds: Vec<u64> = LATENESS_POWERS.flat_map(|power| [1 << power, 3 << (power - 1)]).collect();
        let sum = sum_of_classes(&late.classes);
        let way = &way.labels;
        page.add_histogram("ewan_link_lateness_seconds", way, &late.classes, &bounds, sum);
        page.add("ewan_link_lateness_max_seconds", way, Seconds(late.max));
    }
    for port in &stats.ports {
        let of_port = of_link.with("interface", &port.interface);
        for (cause, packets) in [
            ("ring_overrun", port.ring_overruns),
            ("ring_full", port.veth_drops.ring_full),
            ("receive", port.veth_drops.receive),
            ("transmit", port.veth_drops.transmit),
            ("refused", port.refused),
        ] {
            page.add("ewan_port_dropped_packets_total", &of_port.with("cause", cause), packets);
        }
    }
}

fn spinner_itself(page: &mut Exposition, labels: &Labels, stats: &Stats) {
    let info = labels.with("cpu", stats.cpu).with("clock", &stats.clock).with("policy", &stats.policy);
    page.add("ewan_spinner_info", &info, 1);
    page.add("ewan_spinner_shared", labels, u8::from(stats.shared));
    page.add("ewan_spinner_busy_seconds_total", labels, Seconds(stats.busy_ns));
    let bounds: Vec<u64> = GAP_POWERS.map(|power| 1 << power).collect();
    let gaps = &stats.gaps;
    page.add_histogram("ewan_spinner_gap_seconds", labels, &gaps.classes, &bounds, Seconds(gaps.lost_ns));
    page.add("ewan_spinner_gap_max_seconds", labels, Seconds(gaps.max_ns));
}

/// False where its queueing disciplines are not there.
fn kernel_link(page: &mut Exposition, ways: &[Way; 2], plan: &Plan, link: &Link, inside: bool) -> bool {
    let Ok(Ok([Some(forward), Some(backward)])) = qdisc::open_one(plan, link, inside).map(|open| open.counters())
    else {
        return false;
    };
    for (way, counted) in ways.iter().zip([forward, backward]) {
        match counted {
            LinkCounters::Kernel(counted) => kernel_way(page, &way.labels, &counted),
            LinkCounters::Model(counted) => model_way(page, way, &counted.report),
        }
    }
    true
}

fn kernel_way(page: &mut Exposition, way: &Labels, counted: &LinkStatistics) {
    page.add("ewan_link_out_bytes_total", way, counted.sent_bytes);
    page.add("ewan_link_out_packets_total", way, counted.sent_packets);
    for (cause, packets) in [("queue", counted.dropped_queue), ("netem", counted.dropped_impair_or_limit)] {
        page.add("ewan_link_dropped_packets_total", &way.with("cause", cause), packets);
    }
    page.add("ewan_link_queue_bytes", way, counted.queue_bytes);
    page.add("ewan_link_queue_packets", way, counted.queue_packets);
    page.add("ewan_link_delay_line_packets", way, counted.delayed_packets);
    page.add_known("ewan_link_lateness_max_seconds", way, counted.late_max_ns.map(Seconds));
    page.add_known("ewan_link_late_packets_total", way, counted.late_packets);
}

/// Both directions with all changes that were made since the lab came up.
fn as_set_now(link: &Link, changes: &[ChangeEntry]) -> [Direction; 2] {
    [0, 1].map(|heading| {
        let made = changes.iter().filter(|past| past.link == link.name && past.direction == HEADINGS[heading]);
        made.fold(link.direction(heading).clone(), |now, past| past.change.applied(&now))
    })
}

/// Those of the kernel's links are written down in the state directory (emulator/lab/src/links.rs). What cannot be read is
/// left out: a setting shown as it was is better than no counters.
fn changes(plan: &Plan, state: &Path, spinners: &[SpinnerAnswer]) -> Vec<ChangeEntry> {
    let mut changes: Vec<ChangeEntry> = spinners.iter().flat_map(|spinner| spinner.changes.clone()).collect();
    if plan.links.iter().any(Link::is_of_kernel) {
        let text = std::fs::read_to_string(state.join("changes.jsonl")).unwrap_or_default();
        changes.extend(text.lines().filter_map(|line| serde_json::from_str(line).ok()));
    }
    changes
}

/// What one spinner said.
struct SpinnerAnswer {
    number: usize,
    stats: Option<Stats>,
    changes: Vec<ChangeEntry>,
}

/// Those that serve a wanted link; at the same time, so that several that hang cost no more than one.
fn ask_all(plan: &Plan, state: &Path, only: Option<&str>) -> Vec<SpinnerAnswer> {
    let all = plan.spinners.iter().enumerate();
    let wanted = all.filter(|(_, spinner)| only.is_none_or(|only| spinner.links.iter().any(|link| link == only)));
    std::thread::scope(|scope| {
        let asking: Vec<_> = wanted.map(|(number, _)| scope.spawn(move || ask(state, number, only))).collect();
        asking.into_iter().filter_map(|asked| asked.join().ok()).collect()
    })
}

/// Whatever was said before it failed counts.
fn ask(state: &Path, number: usize, only: Option<&str>) -> SpinnerAnswer {
    let mut asked = SpinnerAnswer { number, stats: None, changes: Vec::new() };
    let stats = only.map_or(json!({"command": "stats"}), |link| json!({"command": "stats", "link": link}));
    if let Ok(mut client) = Client::connect(&client::socket(state, number), ANSWER) {
        asked.stats = client.ask(&stats).ok();
        if asked.stats.is_some() {
            let changes = client.ask(&json!({"command": "changes"}));
            asked.changes = changes.map_or(Vec::new(), |answer: Changes| answer.changes);
        }
    }
    asked
}

// Answers of a spinner (emulator/datapath/src/control.rs), as far as they are told here.

#[derive(Deserialize)]
struct Stats {
    cpu: u32,
    shared: bool,
    policy: String,
    clock: String,
    busy_ns: u64,
    gaps: Gaps,
    links: HashMap<String, LinkStats>,
}

#[derive(Deserialize)]
struct Gaps {
    lost_ns: u64,
    max_ns: u64,
    classes: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
struct LinkStats {
    ports: Vec<PortStats>,
    forward: DirectionStats,
    backward: DirectionStats,
}

#[derive(Deserialize)]
struct PortStats {
    interface: String,
    ring_overruns: u64,
    veth_drops: VethDrops,
    refused: u64,
}

#[derive(Deserialize)]
struct VethDrops {
    ring_full: u64,
    receive: u64,
    transmit: u64,
}

#[derive(Deserialize)]
struct DirectionStats {
    #[serde(flatten)]
    report: DirectionReport,
    lateness_ns: Lateness,
}

#[derive(Deserialize)]
struct Lateness {
    max: u64,
    classes: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
struct Changes {
    changes: Vec<ChangeEntry>,
}

#[derive(Clone, Deserialize)]
struct ChangeEntry {
    link: String,
    direction: String,
    change: Change,
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
