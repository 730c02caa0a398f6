//! Waits until routes carry every pair of hosts that the topology still joins, and tells when that was.
//!
//! In: a lab that is up. Out: routing.json's content: the protocol, whether and how long after the start of the routers'
//! daemons it was so, which pairs are left. Nothing is sent: the nodes' own routing tables are read, again whenever one
//! of them says that it changed; the moment is that of the last change that was needed. Where no link is dead the pairs
//! that the plan means to talk must also go the plan's way, or a measurement could begin on a detour.

mod fib;
mod reach;
mod sockets;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use ewan_system::clock::monotonic_ns;
use serde::Serialize;
use serde_json::json;

use crate::services;
use ewan_plan::{Node, NodeKind, Plan, Routing};
use fib::Fib;
pub use reach::Map;
use reach::{Pair, Reach};
use sockets::Sockets;

pub const FORMAT: &str = "ewan-routing/1";
/// In the lab's directory: after how many ns it converged first or last, as far as anybody looked.
const RECORD: &str = "converged";
/// Told of many.
const MOST_PAIRS: usize = 20;
/// All is read so often, whatever is told: a full socket loses what it is told.
pub const AGAIN: Duration = Duration::from_secs(1);
/// A detour that stays so long is where the routers' own configurations lead.
const DETOUR: Duration = Duration::from_secs(30);
/// How often a wait looks up, to be ended.
const LOOK_UP: Duration = Duration::from_millis(100);

#[derive(Debug, Serialize)]
pub struct Outcome {
    pub format: &'static str,
    pub protocol: Routing,
    pub converged: bool,
    /// From the start of the first router's first daemon to the last change that was needed. An upper bound where all
    /// was settled before anybody looked.
    pub after_ns: i64,
    pub waited_ns: i64,
    /// The first of them.
    pub unreachable: Vec<Pair>,
    pub cut_off: Vec<Pair>,
    pub astray: Vec<Pair>,
    #[serde(skip)]
    pub interrupted: bool,
    /// Routers with configurations of their own.
    #[serde(skip)]
    own: Vec<String>,
}

impl Outcome {
    /// One line, where it did not converge.
    pub fn failure(&self) -> Option<String> {
        let left = self.unreachable.first().map(|pair| ("no route from", pair));
        let (what, pair) = left.or(self.astray.first().map(|pair| ("a detour from", pair)))?;
        let (protocol, waited) = (name(self.protocol), self.waited_ns / 1_000_000_000);
        let (from, to) = (&pair.from, &pair.to);
        let own = match self.own.as_slice() {
            [] => String::new(),
            routers => format!(
                ": the configurations of {} (startup) lead elsewhere than the plan's paths, by which a lab is measured",
                routers.join(", ")
            ),
        };
        (!self.converged).then(|| format!("{protocol} has not converged after {waited} s: {what} {from} to {to}{own}"))
    }
}

pub fn name(protocol: Routing) -> &'static str {
    match protocol {
        Routing::Static => "static routing",
        Routing::Ospf => "OSPF",
        Routing::Bgp => "BGP",
        Routing::Isis => "IS-IS",
    }
}

/// The routes of a lab, as they are now and as they change.
pub struct Watch {
    map: Map,
    sockets: Sockets,
    fibs: Vec<Fib>,
    read_ns: i64,
    /// Routers have configurations of their own, so that a detour may stay.
    own: bool,
}

impl Watch {
    pub fn open(plan: &Plan) -> Result<Self, String> {
        let map = Map::of(plan)?;
        let sockets = Sockets::open(plan, &map.nodes)?;
        let fibs = (0..map.nodes.len()).map(|node| sockets.read(node)).collect::<Result<_, String>>()?;
        Ok(Watch { map, sockets, fibs, read_ns: monotonic_ns(), own: plan.nodes.iter().any(with_startup) })
    }

    /// From now on whoever waits for SIGCHLD wakes when something changes.
    pub fn wake_by_signal(&self) -> Result<(), String> {
        self.sockets.wake_by_signal()
    }

    /// Has the next look read all: a dead carrier is told of later than it is there to be read.
    pub fn forget(&mut self) {
        self.read_ns = i64::MIN / 2;
    }

    /// Reads what changed since the last look.
    pub fn look(&mut self) -> Result<Reach, String> {
        let all = monotonic_ns() - self.read_ns > AGAIN.as_nanos() as i64;
        let changed = self.sockets.changed();
        for node in (0..self.fibs.len()).filter(|node| all || changed.contains(node)) {
            self.fibs[node] = self.sockets.read(node)?;
        }
        if all {
            self.read_ns = monotonic_ns();
        }
        Ok(self.map.reach(&self.fibs))
    }

    /// Until all is settled; the moment, on CLOCK_MONOTONIC, and what is left. None: it was so before.
    fn wait(&mut self, longest: Duration, ended: &dyn Fn() -> bool) -> Result<(Option<i64>, Reach, bool), String> {
        let until_ns = monotonic_ns() + longest.as_nanos() as i64;
        let mut moment_ns = None;
        let mut reach = self.look()?;
        let mut since_ns = monotonic_ns();
        loop {
            let now_ns = monotonic_ns();
            let stays = self.own && reach.unreachable.is_empty() && now_ns - since_ns > DETOUR.as_nanos() as i64;
            if reach.settled() || stays || now_ns >= until_ns {
                return Ok((moment_ns, reach, false));
            }
            if ended() {
                return Ok((moment_ns, reach, true));
            }
            let left = Duration::from_nanos((until_ns - now_ns) as u64).min(LOOK_UP);
            if self.sockets.wait(left)? || monotonic_ns() - self.read_ns > AGAIN.as_nanos() as i64 {
                moment_ns = Some(monotonic_ns());
                let found = self.look()?;
                if found != reach {
                    since_ns = monotonic_ns();
                    reach = found;
                }
            }
        }
    }
}

/// Waits in a lab whose plan names a protocol. `state`: the lab's directory, where nodes have left when they started.
pub fn settle(plan: &Plan, state: &Path, longest: Duration, ended: &dyn Fn() -> bool) -> Result<Outcome, String> {
    let begin_ns = monotonic_ns();
    let started_ns = started(plan, state).unwrap_or(begin_ns);
    let mut watch = Watch::open(plan)?;
    let (moment_ns, mut reach, interrupted) = watch.wait(longest, ended)?;
    let now_ns = monotonic_ns();
    let converged = reach.settled();
    let after_ns = moment_ns.unwrap_or(now_ns) - started_ns;
    // Who comes later finds all settled; when that was, the first one saw.
    let record = state.join(RECORD);
    let seen = std::fs::read_to_string(&record).ok().filter(|_| converged && moment_ns.is_none());
    let seen = seen.and_then(|text| text.trim().parse().ok());
    if converged && seen.is_none() {
        std::fs::write(&record, format!("{after_ns}\n")).map_err(|error| format!("{}: {error}", record.display()))?;
    }
    for pairs in [&mut reach.unreachable, &mut reach.cut_off, &mut reach.astray] {
        pairs.truncate(MOST_PAIRS);
    }
    Ok(Outcome {
        format: FORMAT,
        protocol: plan.routing,
        converged,
        after_ns: seen.unwrap_or(after_ns),
        waited_ns: now_ns - begin_ns,
        unreachable: reach.unreachable,
        cut_off: reach.cut_off,
        astray: reach.astray,
        interrupted,
        own: plan.nodes.iter().filter(|node| with_startup(node)).map(|node| node.name.clone()).collect(),
    })
}

fn with_startup(node: &Node) -> bool {
    node.own.as_ref().is_some_and(|own| own.startup.is_some())
}

/// What became of the routes after a link went down, or came back.
#[derive(Debug, Serialize)]
pub struct Recovery {
    /// From the link's change to the last change of routes that was needed, 0 where none was; none: pairs were left
    /// without a route.
    pub recovered_ns: Option<i64>,
    pub unreachable: Vec<Pair>,
    pub cut_off: Vec<Pair>,
}

/// Changes the topology, and waits until the routes have followed.
pub fn recover(
    plan: &Plan,
    link: &str,
    longest: Duration,
    ended: &dyn Fn() -> bool,
    change: impl FnOnce() -> Result<(), String>,
) -> Result<Recovery, String> {
    let mut watch = Watch::open(plan)?;
    let used = watch.map.uses(&watch.fibs, link);
    let begin_ns = monotonic_ns();
    change()?;
    watch.forget();
    // Where only the plan knows routes, nobody finds others.
    let longest = if plan.routing == Routing::Static { Duration::ZERO } else { longest };
    let (moment_ns, mut reach, _) = watch.wait(longest, ended)?;
    // Routes may have followed before the first look.
    let moment_ns = moment_ns.or(used.then_some(watch.read_ns));
    let recovered_ns = reach.settled().then(|| moment_ns.map_or(0, |moment| moment - begin_ns));
    reach.unreachable.truncate(MOST_PAIRS);
    reach.cut_off.truncate(MOST_PAIRS);
    Ok(Recovery { recovered_ns, unreachable: reach.unreachable, cut_off: reach.cut_off })
}

/// When the first router's first daemon was started.
fn started(plan: &Plan, state: &Path) -> Option<i64> {
    let routers = plan.nodes.iter().filter(|node| node.kind == NodeKind::Router);
    let files = routers.map(|node| services::directory(state, &node.name).join("started"));
    files.filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok()).min()
}

/// The routes of all nodes of a machine's share, for who looks at the whole lab.
pub fn tell(state: &Path, output: impl std::io::Write) -> Result<(), String> {
    let plan = ewan_plan::read(&state.join("plan.json"))?;
    let watch = Watch::open(&plan)?;
    let told: BTreeMap<_, _> = watch.map.nodes.iter().zip(watch.fibs).collect();
    serde_json::to_writer(
        output,
        &json!({ "tables": told, "started_ns": started(&plan, state), "now_ns": monotonic_ns() }),
    )
    .map_err(|error| format!("writing the routes: {error}"))
}

/// What the routes that several machines told of make of the whole lab: a plan, and node → its routes, as JSON.
pub fn judge(plan: &Path, mut input: impl std::io::Read, output: impl std::io::Write) -> Result<(), String> {
    let plan = ewan_plan::read(plan)?;
    let mut text = String::new();
    input.read_to_string(&mut text).map_err(|error| format!("routes: {error}"))?;
    let mut told: BTreeMap<String, Fib> = serde_json::from_str(&text).map_err(|error| format!("routes: {error}"))?;
    let map = Map::of(&plan)?;
    let fibs = map.nodes.iter().map(|node| told.remove(node).ok_or_else(|| format!("routes: {node} is missing")));
    let mut reach = map.reach(&fibs.collect::<Result<Vec<_>, _>>()?);
    for pairs in [&mut reach.unreachable, &mut reach.cut_off, &mut reach.astray] {
        pairs.truncate(MOST_PAIRS);
    }
    let Reach { unreachable, cut_off, astray } = reach;
    serde_json::to_writer(output, &json!({ "unreachable": unreachable, "cut_off": cut_off, "astray": astray }))
        .map_err(|error| format!("writing what the routes say: {error}"))
}

pub fn run(state: &Path, longest: Duration) -> Result<(), String> {
    let plan = ewan_plan::read(&state.join("plan.json"))?;
    let outcome = settle(&plan, state, longest, &|| false)?;
    println!("{}", serde_json::to_string(&outcome).map_err(|error| error.to_string())?);
    Ok(())
}
