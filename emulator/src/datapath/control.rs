//! The control socket: one JSON object a line, one answer line a request. In: `stats`, `series`, `set`, `changes`;
//! out: `{"ok":true,…}` or `{"ok":false,"error":"one line"}`. Reads what the spinner shows, sends it changes.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};
use std::sync::mpsc::Sender;
use std::sync::Arc;

use ewan_timers::Clock;
use serde::Deserialize;
use serde_json::{json, Map, Value};

use super::histogram::Histogram;
use super::series::COLUMNS;
use super::shared::{DirectionState, Gaps, Link, Scheduled, Shared};
use crate::config::Delay;
use crate::model::Change;

const DIRECTIONS: [&str; 2] = ["forward", "backward"];
/// Milliseconds behind the present that are surely complete: the spinner writes a row soon after its end.
const SETTLED_MS: u64 = 2;

#[derive(Clone)]
pub struct Control {
    pub clock: Clock,
    pub shared: Arc<Shared>,
    pub changes: Sender<Scheduled>,
    pub next_id: Arc<AtomicU64>,
}

/// Opens the socket (in the place of one left behind) and serves it on threads that inherit the caller's CPUs.
pub fn serve(control: Control, path: &Path) -> Result<(), String> {
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).map_err(|error| format!("{}: {error}", path.display()))?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let control = control.clone();
            std::thread::spawn(move || control.converse(stream));
        }
    });
    Ok(())
}

impl Control {
    fn converse(&self, stream: UnixStream) {
        let Ok(mut writer) = stream.try_clone() else { return };
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            if line.trim().is_empty() {
                continue;
            }
            let mut answer = self.answer(&line).to_string();
            answer.push('\n');
            if writer.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    pub fn answer(&self, line: &str) -> Value {
        let answer = match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(request)) => self.command(request),
            Ok(_) => Err("a request is one JSON object".into()),
            Err(error) => Err(format!("no JSON: {error}")),
        };
        answer.unwrap_or_else(|error| json!({"ok": false, "error": error}))
    }

    fn command(&self, mut request: Map<String, Value>) -> Result<Value, String> {
        let command = request.remove("command");
        match command.as_ref().and_then(Value::as_str) {
            Some("stats") => self.stats(&parse(request)?),
            Some("series") => self.series(parse(request)?),
            Some("set") => self.set(request),
            Some("changes") => Ok(self.applied()),
            _ => Err("command: one of stats, series, set, changes".into()),
        }
    }

    fn link(&self, name: &str) -> Result<usize, String> {
        let names = || self.shared.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
        self.shared
            .links
            .iter()
            .position(|link| link.name == name)
            .ok_or_else(|| format!("link: no {name:?} here; there are {}", names()))
    }

    fn now_ms(&self) -> u64 {
        self.clock.now().saturating_sub(self.shared.started) / 1_000_000
    }

    fn stats(&self, request: &StatsRequest) -> Result<Value, String> {
        let shared = &self.shared;
        let wanted = match &request.link {
            Some(name) => std::slice::from_ref(&shared.links[self.link(name)?]),
            None => &shared.links,
        };
        let links: Map<String, Value> = wanted.iter().map(|link| (link.name.clone(), link_stats(link))).collect();
        Ok(json!({
            "ok": true,
            "now_ms": self.now_ms(),
            "cpu": shared.cpu,
            "shared": shared.give_way.load(Relaxed),
            "policy": shared.policy.lock().map_or(String::new(), |policy| policy.clone()),
            "clock": shared.clock,
            "busy_ns": shared.busy_ns.load(Relaxed),
            "gaps": gaps(&shared.gaps),
            "rests": gaps(&shared.rests),
            "links": links,
        }))
    }

    fn series(&self, request: SeriesRequest) -> Result<Value, String> {
        let link = &self.shared.links[self.link(&request.link)?];
        let end = self.now_ms().saturating_sub(SETTLED_MS);
        let read = link.directions.each_ref().map(|direction| direction.series.since(request.since_ms, end));
        let first = read[0].0;
        let columns = |rows: &[super::series::Row]| -> Map<String, Value> {
            let rows: Vec<_> = rows.iter().map(|row| row.columns()).collect();
            COLUMNS
                .iter()
                .enumerate()
                .map(|(column, name)| (name.to_string(), rows.iter().map(|row| row[column]).collect()))
                .collect()
        };
        Ok(json!({
            "ok": true,
            "link": request.link,
            "first_ms": first,
            "end_ms": end,
            "overwritten_ms": first.saturating_sub(request.since_ms.min(end)),
            "forward": columns(&read[0].1),
            "backward": columns(&read[1].1),
        }))
    }

    fn set(&self, mut request: Map<String, Value>) -> Result<Value, String> {
        let mut target = Map::new();
        for key in ["link", "direction", "in_ns"] {
            target.extend(request.remove_entry(key));
        }
        let target: SetTarget = parse(target)?;
        let change: Change = parse(request)?;
        check(&change)?;
        let link = self.link(&target.link)?;
        let directions = match target.direction.as_str() {
            "both" => 0..2,
            "forward" => 0..1,
            "backward" => 1..2,
            other => return Err(format!("direction: {other:?}; write forward, backward or both")),
        };
        let at = self.clock.now() + target.in_ns;
        let ids: Vec<u64> = directions
            .map(|direction| {
                let id = self.next_id.fetch_add(1, Relaxed);
                let scheduled = Scheduled { id, link, direction, at, change: change.clone() };
                self.changes.send(scheduled).map_err(|_| "the spinner has stopped".to_string())?;
                Ok(id)
            })
            .collect::<Result<_, String>>()?;
        self.shared.changes_waiting.store(true, Release);
        let _ = self.shared.wake.write(1);
        Ok(json!({"ok": true, "ids": ids, "at_ns": at.saturating_sub(self.shared.started)}))
    }

    /// Changes made so far; times since the spinner started, as in `at_ns` of `set`.
    fn applied(&self) -> Value {
        let Ok(applied) = self.shared.applied.lock() else { return json!({"ok": false, "error": "poisoned"}) };
        let since = |time: u64| time.saturating_sub(self.shared.started);
        let changes: Vec<Value> = applied
            .iter()
            .map(|applied| {
                let scheduled = &applied.scheduled;
                json!({
                    "id": scheduled.id,
                    "link": self.shared.links[scheduled.link].name,
                    "direction": DIRECTIONS[scheduled.direction],
                    "requested_ns": since(scheduled.at),
                    "actual_ns": since(applied.actual),
                    "late_ns": applied.actual.saturating_sub(scheduled.at),
                    "change": scheduled.change,
                })
            })
            .collect();
        json!({"ok": true, "changes": changes})
    }
}

/// All links, or one: what each costs to tell adds up where many are asked for one by one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatsRequest {
    #[serde(default)]
    link: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesRequest {
    link: String,
    #[serde(default)]
    since_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetTarget {
    link: String,
    direction: String,
    #[serde(default)]
    in_ns: u64,
}

fn parse<T: for<'a> Deserialize<'a>>(object: Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(object)).map_err(|error| error.to_string())
}

/// What the types do not say.
fn check(change: &Change) -> Result<(), String> {
    if *change == Change::default() {
        return Err(
            "nothing to change: name rate_bps, delay, reorder, loss, corrupt_ppb, duplicate_ppb or queue".into()
        );
    }
    if change.rate_bps.is_some_and(|rate| !(8_000..=100_000_000_000).contains(&rate)) {
        return Err("rate_bps: from 8000 to 100000000000".into());
    }
    if change.delay.as_ref().is_some_and(|delay| longest(delay) > 10_000_000_000) {
        return Err("delay: at most 10 s (10000000000 ns)".into());
    }
    if change.corrupt_ppb.max(change.duplicate_ppb) > Some(crate::config::ONE_PPB) {
        return Err("corrupt_ppb, duplicate_ppb: at most 1000000000".into());
    }
    if change.queue.as_ref().is_some_and(|queue| queue.limit_packets.is_none() && queue.limit_bytes.is_none()) {
        return Err("queue: limit_packets or limit_bytes must be set".into());
    }
    Ok(())
}

fn longest(delay: &Delay) -> u64 {
    match delay {
        Delay::Constant { delay_ns } => *delay_ns,
        Delay::Uniform { delay_ns, jitter_ns }
        | Delay::Normal { delay_ns, jitter_ns }
        | Delay::Pareto { delay_ns, jitter_ns } => (*delay_ns).max(*jitter_ns),
        Delay::Table { delays_ns } => delays_ns.iter().copied().max().unwrap_or(0),
    }
}

fn link_stats(link: &Link) -> Value {
    let drops = link.interfaces.drops();
    let ports: Vec<Value> = link
        .ports
        .iter()
        .zip(drops)
        .map(|(port, drops)| {
            json!({
                "interface": port.interface,
                "kind": port.kind,
                "reason": port.reason,
                "ring_overruns": (port.overruns)(),
                "veth_drops": drops,
                "checksums_completed": port.checksums_completed.load(Relaxed),
                "refused": port.refused.load(Relaxed),
            })
        })
        .collect();
    json!({
        "ports": ports,
        "forward": direction_stats(&link.directions[0]),
        "backward": direction_stats(&link.directions[1]),
    })
}

fn direction_stats(direction: &DirectionState) -> Value {
    let totals = direction.totals.lock().map(|totals| totals.clone()).unwrap_or_default();
    let model = &totals.model;
    json!({
        "in_packets": model.in_packets,
        "in_bytes": totals.in_bytes,
        "out_packets": model.out.packets,
        "out_bytes": model.out.bytes,
        "drops": {
            "loss": model.lost_packets,
            "queue_full": model.queue_full.packets,
            "aqm": model.aqm.packets,
            "store_full": model.store_full.packets,
        },
        "corrupted_packets": model.corrupted_packets,
        "duplicated_packets": model.duplicated_packets,
        "ce_packets": model.ce_packets,
        "queue_packets": model.queued.packets,
        "queue_bytes": model.queued.bytes,
        "queue_max_packets": model.queued_max.packets,
        "queue_max_bytes": model.queued_max.bytes,
        "delay_line_packets": model.delayed.packets,
        "stamps_replaced": direction.stamps_replaced.load(Relaxed),
        "lateness_ns": percentiles(&direction.lateness),
        "lateness_undisturbed_ns": percentiles(&direction.lateness_undisturbed),
        "hand_over_ns": percentiles(&direction.hand_over),
    })
}

fn gaps(gaps: &Gaps) -> Value {
    json!({
        "count": gaps.lengths.count(),
        "lost_ns": gaps.lost_ns.load(Relaxed),
        "max_ns": gaps.lengths.max(),
        "classes": gaps.lengths.classes(),
    })
}

fn percentiles(histogram: &Histogram) -> Value {
    json!({
        "samples": histogram.count(),
        "p50": histogram.percentile(500),
        "p99": histogram.percentile(990),
        "p999": histogram.percentile(999),
        "max": histogram.max(),
        "classes": histogram.classes(),
    })
}

/// One line per link for the log, when the spinner stops.
pub fn summary(shared: &Shared) -> Vec<String> {
    let mut lines = Vec::new();
    for link in &shared.links {
        for (name, direction) in DIRECTIONS.iter().zip(&link.directions) {
            let totals = direction.totals.lock().map(|totals| totals.clone()).unwrap_or_default();
            let (model, late) = (&totals.model, &direction.lateness);
            lines.push(format!(
                "{} {name}: in {} out {} packets; dropped: loss {} queue {} aqm {} store {}; late p50 {} p99 {} max {} ns",
                link.name,
                model.in_packets,
                model.out.packets,
                model.lost_packets,
                model.queue_full.packets,
                model.aqm.packets,
                model.store_full.packets,
                late.percentile(500),
                late.percentile(990),
                late.max(),
            ));
        }
        for (port, drops) in link.ports.iter().zip(link.interfaces.drops()) {
            let (overruns, refused) = ((port.overruns)(), port.refused.load(Relaxed));
            let completed = port.checksums_completed.load(Relaxed);
            if overruns + refused + completed + drops.ring_full + drops.transmit + drops.receive > 0 {
                lines.push(format!(
                    "{} {}: ring overruns {overruns}, veth ring full {}, refused {refused}, dropped by the receiver's \
                     queue {}, dropped on receipt {}, checksums completed {completed}",
                    link.name, port.interface, drops.ring_full, drops.transmit, drops.receive,
                ));
            }
        }
    }
    let gaps = &shared.gaps;
    lines.push(format!(
        "spinner on CPU {}: lost the CPU {} times, {} ns in all, {} ns at most",
        shared.cpu,
        gaps.lengths.count(),
        gaps.lost_ns.load(Relaxed),
        gaps.lengths.max()
    ));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(request: &str) -> String {
        let (changes, _) = std::sync::mpsc::channel();
        let shared = Arc::new(Shared::new(1, "test", 0, vec![]).unwrap());
        let control = Control { clock: Clock::kernel(), shared, changes, next_id: Arc::default() };
        let answer = control.answer(request);
        assert_eq!(answer["ok"], false, "{answer}");
        answer["error"].as_str().unwrap_or_default().to_string()
    }

    #[test]
    fn says_in_one_line_what_is_wrong_with_a_request() {
        for (request, part) in [
            ("{", "no JSON"),
            (r#"{"command":"dance"}"#, "one of stats, series, set, changes"),
            (r#"{"command":"series"}"#, "missing field `link`"),
            (r#"{"command":"series","link":"core"}"#, r#"no "core" here"#),
            (r#"{"command":"stats","link":"core"}"#, r#"no "core" here"#),
            (r#"{"command":"set","link":"core","direction":"both"}"#, "nothing to change"),
            (r#"{"command":"set","link":"core","direction":"both","rate":1}"#, "unknown field `rate`"),
            (r#"{"command":"set","link":"core","direction":"both","rate_bps":7999}"#, "from 8000"),
            (
                r#"{"command":"set","link":"core","direction":"both","delay":{"kind":"constant","delay_ns":10000000001}}"#,
                "at most 10 s",
            ),
        ] {
            let error = error_of(request);
            assert!(error.contains(part) && !error.contains('\n'), "{request}: {error}");
        }
    }
}
