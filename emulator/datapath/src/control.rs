//! The control socket: one JSON object a line, one answer line a request. In: `stats`, `series`, `flows`, `set`, `changes`;
//! out: `{"ok":true,…}` or `{"ok":false,"error":"one line"}`. Reads what the spinner shows, sends it changes.
//!
//! Connections, the length of a line and the number of changes that wait are bounded.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ewan_system::clock::Clock;
use ewan_system::{socket, Context};
use serde::Deserialize;
use serde_json::{json, Map, Value};

use super::changes::Outbox;
use super::faults;
use super::histogram::Histogram;
use super::series::COLUMNS;
use super::shared::{DirectionState, Gaps, Link, Shared};
use ewan_model::{Change, FlowTable};

const DIRECTIONS: [&str; 2] = ["forward", "backward"];
/// Served at a time; each has a thread.
const MOST_CONNECTIONS: usize = 64;
/// A table of 2^20 delays of up to 10 s fits.
const LONGEST_LINE: u64 = 16 << 20;
/// A change waits for a day at most.
const LONGEST_WAIT_NS: u64 = 86_400_000_000_000;
/// The longest time for a spinner to copy what flows counted, which it does once a millisecond, and how often one looks.
const FLOWS_COPIED: Duration = Duration::from_millis(100);
const FLOWS_LOOK: Duration = Duration::from_micros(200);

#[derive(Clone)]
pub struct Control {
    pub clock: Clock,
    pub shared: Arc<Shared>,
    pub changes: Arc<Mutex<Outbox>>,
}

/// Opens the socket (in the place of one left behind) and serves it on threads that inherit the caller's CPUs.
pub fn serve(control: Control, path: &Path) -> ewan_system::Result<()> {
    let listener = socket::private_listener(path).attempting(|| path.display().to_string())?;
    std::thread::spawn(move || accept(&listener, &Arc::new(control)));
    Ok(())
}

fn accept(listener: &UnixListener, control: &Arc<Control>) {
    faults::contain();
    for stream in listener.incoming() {
        // Each conversation holds the control; this thread holds it too.
        let full = Arc::strong_count(control) > MOST_CONNECTIONS;
        match stream {
            Ok(stream) if !socket::is_trusted(&stream) => {
                refuse(stream, "only root and the user who runs this lab may ask");
            }
            Ok(stream) if full => refuse(stream, &format!("{MOST_CONNECTIONS} connections are open: close one first")),
            Ok(stream) => {
                let control = control.clone();
                let work = move || {
                    faults::contain();
                    control.converse(stream);
                };
                // Without a thread for it the connection closes.
                let _ = std::thread::Builder::new().name("control".into()).spawn(work);
            }
            // No descriptors are left, say: others will close theirs.
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    }
}

fn refusal(error: &str) -> Value {
    json!({"ok": false, "error": error})
}

fn refuse(mut stream: UnixStream, error: &str) {
    let _ = stream.write_all(format!("{}\n", refusal(error)).as_bytes());
}

impl Control {
    fn converse(&self, stream: UnixStream) {
        let Ok(mut writer) = stream.try_clone() else { return };
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            match reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.len() as u64 == LONGEST_LINE && line.last() != Some(&b'\n') => {
                    return refuse(writer, &format!("a request has {LONGEST_LINE} bytes at most"));
                }
                Ok(_) if line.trim_ascii().is_empty() => continue,
                Ok(_) => {}
            }
            let mut answer = self.answer(&line).to_string();
            answer.push('\n');
            if writer.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    pub fn answer(&self, line: &[u8]) -> Value {
        let answer = match serde_json::from_slice::<Value>(line) {
            Ok(Value::Object(request)) => self.command(request),
            Ok(_) => Err("a request is one JSON object".into()),
            Err(error) => Err(format!("no JSON: {error}")),
        };
        answer.unwrap_or_else(|error| refusal(&error))
    }

    fn command(&self, mut request: Map<String, Value>) -> Result<Value, String> {
        let command = request.remove("command");
        match command.as_ref().and_then(Value::as_str) {
            Some("stats") => self.stats(&parse(request)?),
            Some("series") => self.series(parse(request)?),
            Some("flows") => self.flows(&parse(request)?),
            Some("activity") => Ok(self.activity(&parse(request)?)),
            Some("set") => self.set(request),
            Some("changes") => self.applied(),
            _ => Err("command: one of stats, series, flows, activity, set, changes".into()),
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

    /// The link that is asked for, or all of them.
    fn wanted(&self, request: &StatsRequest) -> Result<&[Link], String> {
        Ok(match &request.link {
            Some(name) => std::slice::from_ref(&self.shared.links[self.link(name)?]),
            None => &self.shared.links,
        })
    }

    fn now_ms(&self) -> u64 {
        self.clock.now().saturating_sub(self.shared.started) / 1_000_000
    }

    /// Rows before this millisecond are complete. The time is read first: what is noted after that is of later rows. It may
    /// go back to when a sleep began, as that ends.
    fn settled_ms(&self) -> u64 {
        let now = self.now_ms();
        now.min(self.shared.settled_ms.load(Acquire))
    }

    fn stats(&self, request: &StatsRequest) -> Result<Value, String> {
        let shared = &self.shared;
        let wanted = self.wanted(request)?;
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
            "naps": gaps(&shared.naps),
            "wake_up_ns": shared.wake_up_ns.load(Relaxed),
            "links": links,
        }))
    }

    fn series(&self, request: SeriesRequest) -> Result<Value, String> {
        let link = &self.shared.links[self.link(&request.link)?];
        let end = self.settled_ms();
        if let Some(unknown) = request.columns.iter().flatten().find(|name| !COLUMNS.contains(&name.as_str())) {
            return Err(format!("columns: no {unknown:?}; there are {}", COLUMNS.join(", ")));
        }
        let most = request.most.unwrap_or(usize::MAX);
        let read = link.directions.each_ref().map(|direction| direction.series.since(request.since_ms, end, most));
        let first = read[0].0;
        let wanted = |name: &str| request.columns.as_ref().is_none_or(|names| names.iter().any(|each| each == name));
        let columns = |rows: &[super::series::Row]| -> Map<String, Value> {
            let rows: Vec<_> = rows.iter().map(|row| row.columns()).collect();
            COLUMNS
                .iter()
                .enumerate()
                .filter(|(_, name)| wanted(name))
                .map(|(column, name)| (name.to_string(), rows.iter().map(|row| row[column]).collect()))
                .collect()
        };
        Ok(json!({
            "ok": true,
            "link": request.link,
            "first_ms": first,
            "end_ms": end.max(request.since_ms),
            "overwritten_ms": first.saturating_sub(request.since_ms),
            "forward": columns(&read[0].1),
            "backward": columns(&read[1].1),
        }))
    }

    /// The counters of each flow, of one link or of all; empty where flows are not counted.
    fn flows(&self, request: &StatsRequest) -> Result<Value, String> {
        let wanted = self.wanted(request)?;
        let running = wanted.iter().filter(|link| link.ended.get().is_none());
        let directions: Vec<_> = running.flat_map(|link| &link.directions).collect();
        directions.iter().for_each(|direction| direction.flows_wanted.store(true, Release));
        self.shared.waker.wake();
        let patience = Instant::now() + FLOWS_COPIED;
        while directions.iter().any(|direction| direction.flows_wanted.load(Acquire)) && Instant::now() < patience {
            std::thread::sleep(FLOWS_LOOK);
        }
        let now = self.clock.now();
        let links: Map<String, Value> = wanted
            .iter()
            .map(|link| {
                let [forward, backward] = link.directions.each_ref().map(|direction| {
                    let flows = direction.flows.lock().ok();
                    flows.and_then(|flows| flows.as_ref().map(|flows| flows.reports(now))).unwrap_or_default()
                });
                (link.name.clone(), json!({ "forward": forward, "backward": backward }))
            })
            .collect();
        Ok(json!({"ok": true, "links": links}))
    }

    /// What whoever shows hundreds of links many times a second asks for: nothing of those that are idle.
    fn activity(&self, request: &ActivityRequest) -> Value {
        let end = self.settled_ms();
        let since = request.since_ms.unwrap_or(end);
        let mut first = since;
        let mut links = Map::new();
        for link in &self.shared.links {
            let mut found = Map::new();
            for (name, direction) in DIRECTIONS.iter().zip(&link.directions) {
                let (kept, sum) = direction.series.added_up(since, end);
                first = first.max(kept);
                if let Some(sum) = sum {
                    let columns = COLUMNS.iter().map(|name| name.to_string()).zip(sum.columns().map(Value::from));
                    found.insert(name.to_string(), columns.collect::<Map<_, _>>().into());
                }
            }
            if !found.is_empty() {
                links.insert(link.name.clone(), found.into());
            }
        }
        json!({"ok": true, "first_ms": first, "end_ms": end.max(since), "links": links})
    }

    fn set(&self, mut request: Map<String, Value>) -> Result<Value, String> {
        let mut target = Map::new();
        for key in ["link", "direction", "in_ns"] {
            target.extend(request.remove_entry(key));
        }
        let target: SetTarget = parse(target)?;
        let change: Change = parse(request)?;
        change.check()?;
        let link = self.link(&target.link)?;
        if let Some(why) = self.shared.links[link].ended.get() {
            return Err(format!("link {} has ended: a fault in the program: {why}", target.link));
        }
        let directions = match target.direction.as_str() {
            "both" => 0..2,
            "forward" => 0..1,
            "backward" => 1..2,
            other => return Err(format!("direction: {other:?}; write forward, backward or both")),
        };
        for direction in &self.shared.links[link].directions[directions.clone()] {
            direction.says.check(&change)?;
        }
        if target.in_ns > LONGEST_WAIT_NS {
            return Err(format!("in_ns {}: write at most {LONGEST_WAIT_NS} (a day)", target.in_ns));
        }
        if let Some(counting) = &change.flows {
            for direction in &self.shared.links[link].directions[directions.clone()] {
                let table = FlowTable::new(counting);
                direction.flows.lock().map(|mut shown| *shown = table).map_err(|_| "a fault in the program")?;
            }
        }
        let at = self.clock.now().saturating_add(target.in_ns);
        let ids = self.outbox()?.send(link, directions, at, &change)?;
        self.shared.changes_waiting.store(true, Release);
        self.shared.waker.wake();
        Ok(json!({"ok": true, "ids": ids, "at_ns": at.saturating_sub(self.shared.started)}))
    }

    fn outbox(&self) -> Result<std::sync::MutexGuard<'_, Outbox>, String> {
        self.changes.lock().map_err(|_| "changes are not made any more: a fault in the program".into())
    }

    /// Changes made so far; times since the spinner started, as in `at_ns` of `set`.
    fn applied(&self) -> Result<Value, String> {
        let since = |time: u64| time.saturating_sub(self.shared.started);
        let mut outbox = self.outbox()?;
        let changes: Vec<Value> = outbox
            .made()
            .map(|made| {
                json!({
                    "id": made.id,
                    "link": self.shared.links[made.link].name,
                    "direction": DIRECTIONS[made.direction],
                    "requested_ns": since(made.requested),
                    "actual_ns": since(made.actual),
                    "late_ns": made.actual.saturating_sub(made.requested),
                    "change": made.change,
                })
            })
            .collect();
        Ok(json!({"ok": true, "changes": changes}))
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
    /// Rows at most; all if absent.
    #[serde(default)]
    most: Option<usize>,
    /// The columns that are wanted; all if absent.
    #[serde(default)]
    columns: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActivityRequest {
    /// Now if absent: then the answer tells no more than when that is.
    #[serde(default)]
    since_ms: Option<u64>,
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
                "ring_overruns": (port.overruns)(),
                "veth_drops": drops,
                "checksums_completed": port.checksums_completed.load(Relaxed),
                "refused": port.refused.load(Relaxed),
                "too_long": port.too_long.load(Relaxed),
            })
        })
        .collect();
    json!({
        "running": link.ended.get().is_none(),
        "ended": link.ended.get(),
        "ports": ports,
        "forward": direction_stats(&link.directions[0]),
        "backward": direction_stats(&link.directions[1]),
    })
}

fn direction_stats(direction: &DirectionState) -> Value {
    let totals = direction.totals.lock().map(|totals| totals.clone()).unwrap_or_default();
    let mut stats = json!(totals.model.report());
    stats["stamps_replaced"] = json!(direction.stamps_replaced.load(Relaxed));
    stats["lateness_ns"] = percentiles(&direction.lateness);
    stats["lateness_undisturbed_ns"] = percentiles(&direction.lateness_undisturbed);
    stats["hand_over_ns"] = percentiles(&direction.hand_over);
    stats
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
        lines.extend(link.ended.get().map(|why| format!("{} ended before: {why}", link.name)));
        for (name, direction) in DIRECTIONS.iter().zip(&link.directions) {
            let totals = direction.totals.lock().map(|totals| totals.clone()).unwrap_or_default();
            let (model, late) = (&totals.model, &direction.lateness);
            lines.push(format!(
                "{} {name}: in {} out {} packets; dropped: loss {} black hole {} policer {} queue {} aqm {} ACK filter {} store {}; late p50 {} p99 {} max {} ns",
                link.name,
                model.in_packets,
                model.out.packets,
                model.lost_packets,
                model.blackhole_packets,
                model.policed_packets,
                model.queue_full.packets,
                model.aqm.packets,
                model.ack_filtered.packets,
                model.store_full.packets,
                late.percentile(500),
                late.percentile(990),
                late.max(),
            ));
        }
        for (port, drops) in link.ports.iter().zip(link.interfaces.drops()) {
            let (overruns, refused) = ((port.overruns)(), port.refused.load(Relaxed));
            let (completed, too_long) = (port.checksums_completed.load(Relaxed), port.too_long.load(Relaxed));
            if overruns + refused + completed + too_long + drops.ring_full + drops.transmit + drops.receive > 0 {
                lines.push(format!(
                    "{} {}: ring overruns {overruns}, veth ring full {}, refused {refused}, too long {too_long}, dropped \
                     by the receiver's queue {}, dropped on receipt {}, checksums completed {completed}",
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
#[path = "control_tests.rs"]
mod tests;
