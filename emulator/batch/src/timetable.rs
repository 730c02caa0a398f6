//! From T0 on: commands, traffic, changes of links and looks at their counters, each at its time.
//!
//! In: a program and a lab that is up. Out: commands.json, events.json, links.csv, command_sockets.csv, and the tables of what disturbed the
//! links. One thread waits for whatever comes next: a start, an end, a change, a look, a signal. It alone works when a command is started, for the child runs code
//! of ours before it becomes the command.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Duration;

use ewan_model::config::Trace;
use ewan_model::Change;
use ewan_system::clock::monotonic_ns;
use ewan_system::signals::Signals;
use nix::sys::signal::{killpg, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag};
use nix::unistd::Pid;
use serde_json::json;

use super::command::{self, Entry};
use super::disturbances::{Disturbances, Lab, Offset};
use super::events::Events;
use super::flow_watch::FlowWatch;
use super::joint::{Joint, Order};
use super::socket_watch::SocketWatch;
use super::steps::Steps;
use super::traffic::{self, Traffic};
use super::watch::Watch;
use super::{write, Program, Surroundings};
use ewan_lab::links::Links;
use ewan_plan::Plan;

/// From the end of the preparations to T0.
const LEAD: Duration = Duration::from_millis(10);
/// From the signal that asks a command to end to the one that ends it.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same for traffic, which writes what became of each flow; before it is asked at all when its time is over, for
/// it keeps the time itself.
const TRAFFIC_WRITES: Duration = Duration::from_secs(20);
const TRAFFIC_ENDS: Duration = Duration::from_secs(2);
/// From one look at the port of a service for which somebody waits to the next.
const READY_LOOK_NS: u64 = 1_000_000;

pub struct Timetable<'a> {
    plan: &'a Plan,
    state: &'a Path,
    out: &'a Path,
    /// T0 on CLOCK_MONOTONIC.
    begin_ns: i64,
    /// The same on CLOCK_REALTIME, as it was set then: what programs stamp their output with.
    begin_unix_ns: i64,
    longest_ns: u64,
    entries: Vec<Entry>,
    steps: Steps,
    traffic: Option<Traffic>,
    links: Option<Links<'a>>,
    /// Number and heading of those that follow a trace, which begins at T0.
    traced: Vec<(usize, usize)>,
    events: Option<Events<'a>>,
    watch: Option<Watch>,
    flows: Option<FlowWatch>,
    sockets: Option<SocketWatch>,
    disturbances: Option<Disturbances>,
    restore: bool,
    joint: Option<Joint>,
}

/// Why it came to an end.
enum End {
    Over,
    OutOfTime,
    Interrupted,
    Failed(String),
}

impl<'a> Timetable<'a> {
    pub fn prepare(
        program: &Program,
        plan: &'a Plan,
        around: &Surroundings<'a>,
        signals: &Signals,
        mut joint: Option<Joint>,
    ) -> Result<Self, String> {
        let entry = |(number, command)| Entry::prepare(number, command, plan, around);
        let entries = program.commands.iter().enumerate().map(entry).collect::<Result<Vec<_>, String>>()?;
        let sockets = SocketWatch::open(&entries, plan, around.out, around.outlives)?;
        let looks = program.watch_ns > 0;
        let events = (!program.events.is_empty())
            .then(|| Events::of(&program.events, plan, around.state, joint.is_none()))
            .transpose()?;
        let traced = traced(plan);
        // A lab that ends with its program is one of the virtual clock.
        let disturbances = program.disturbances.filter(|_| around.outlives);
        let asked = looks || events.is_some() || !traced.is_empty() || disturbances.is_some();
        let mut links = asked.then(|| Links::open(plan, around.state)).transpose()?;
        let disturbances = disturbances.map(|wanted| Disturbances::new(wanted, plan, around.out)).transpose()?;
        let watch = looks.then(|| Watch::new(program.watch_ns, around.out)).transpose()?;
        let flows = match (&program.flows, &mut links) {
            (Some(counted), Some(links)) if looks => Some(FlowWatch::begin(counted, links, plan, around.out)?),
            _ => None,
        };
        let lead = program.traffic.as_ref().map_or(LEAD, traffic::lead);
        let begin_ns = match &mut joint {
            None => monotonic_ns() + lead.as_nanos() as i64,
            Some(joint) => joint.begin(lead, signals)?,
        };
        let traffic = program.traffic.as_ref().map(|request| Traffic::start(request, around.out, begin_ns));
        Ok(Timetable {
            plan,
            state: around.state,
            out: around.out,
            begin_ns,
            begin_unix_ns: begin_ns + Offset::read().ns,
            longest_ns: program.longest_ns,
            entries,
            steps: Steps::default(),
            traffic: traffic.transpose()?,
            links,
            traced,
            events,
            watch,
            flows,
            sockets,
            disturbances,
            restore: around.outlives,
            joint,
        })
    }

    /// Until traffic and all commands but services have ended, or it is time, or a signal says so: true. All that was
    /// measured is written then, also before an error.
    pub fn run(mut self, signals: &Signals) -> Result<bool, String> {
        let end = self.follow(signals);
        let now_ns = self.now_ns();
        let _ = self.joint.as_mut().map(|joint| joint.ending(now_ns));
        self.end(signals, &end);
        self.entries.iter().for_each(|entry| entry.tidy(self.out));
        let interrupted = matches!(end, End::Interrupted);
        let mut result = match end {
            End::Failed(error) => Err(error),
            End::Over | End::OutOfTime | End::Interrupted => Ok(()),
        };
        if let Some(error) = self.traffic.as_ref().and_then(Traffic::failure) {
            result = result.and(Err(error.to_owned()));
        }
        let document = json!({
            "format": "ewan-commands/1",
            "interrupted": interrupted,
            "t0_unix_ns": self.begin_unix_ns,
            "commands": self.entries,
        });
        result = result.and(write(&self.out.join("commands.json"), &document));
        let now_ns = self.now_ns();
        if let (Some(watch), Some(links)) = (&mut self.watch, &mut self.links) {
            result = result.and(watch.finish(links, self.plan, now_ns));
            if let Some(flows) = &mut self.flows {
                let now = || monotonic_ns() - self.begin_ns;
                result = result.and(flows.finish(links, self.plan, &now, self.restore));
            }
        }
        if let Some(sockets) = &mut self.sockets {
            result = result.and(sockets.finish(&self.entries, now_ns));
        }
        if let (Some(disturbances), Some(links)) = (&mut self.disturbances, &mut self.links) {
            let lab = Lab { plan: self.plan, state: self.state, events: self.events.as_ref() };
            result = result.and(disturbances.finish(links, &lab, now_ns));
        }
        if let (Some(events), Some(links)) = (&self.events, &mut self.links) {
            result = result.and(events.write(self.out));
            if self.restore {
                result = result.and(events.undo(links));
            }
        }
        result.map(|()| interrupted)
    }

    fn follow(&mut self, signals: &Signals) -> End {
        loop {
            self.reap();
            if let Some(error) = self.traffic.as_ref().and_then(Traffic::failure) {
                return End::Failed(error.to_owned());
            }
            if let Err(error) = self.due() {
                return End::Failed(error);
            }
            match self.steps_end() {
                Ok(false) => {}
                Ok(true) => continue,
                Err(error) => return End::Failed(error),
            }
            match self.ends() {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(error) => return End::Failed(error),
            }
            if self.now_ns() >= self.longest_ns as i64 {
                return End::OutOfTime;
            }
            if self.wait(signals, self.next_ns().min(self.longest_ns)).is_some_and(|came| came != Signal::SIGCHLD) {
                return End::Interrupted;
            }
        }
    }

    /// Whether all have done their part, here and on other machines.
    fn ends(&mut self) -> Result<Option<End>, String> {
        let traffic = self.traffic.as_ref().is_some_and(Traffic::runs);
        let over = !traffic && self.entries.iter().all(|entry| entry.service || entry.over());
        let now_ns = self.now_ns();
        let Some(joint) = &mut self.joint else { return Ok(over.then_some(End::Over)) };
        if over {
            joint.over(now_ns)?;
        }
        joint.alive(now_ns)?;
        for order in joint.orders()? {
            match order {
                Order::End {} => return Ok(Some(End::Over)),
                Order::Interrupt {} => return Ok(Some(End::Interrupted)),
                Order::Step { step, at_ns } => {
                    self.steps.end(step, at_ns);
                    self.traffic.iter_mut().for_each(|traffic| traffic.tell(step, at_ns));
                    for entry in &mut self.entries {
                        entry.begins(&self.steps);
                    }
                }
                Order::Begin { .. } => return Err("told to begin twice".into()),
            }
        }
        Ok(joint.left().then_some(End::Interrupted))
    }

    fn now_ns(&self) -> i64 {
        monotonic_ns() - self.begin_ns
    }

    fn wait(&self, signals: &Signals, until_ns: u64) -> Option<Signal> {
        let left = u64::try_from((until_ns as i64).saturating_sub(self.now_ns())).unwrap_or(0);
        // The kernel adds the timer slack, which is 1 ns at least (prctl(2)).
        let asked = if left > 1 { left - 1 } else { left };
        signals.wait(Some(Duration::from_nanos(asked)))
    }

    /// Does what is due: traces begin first; looks before changes, so that a row tells the rate of the time before it,
    /// changes before starts. Looks for disturbances come last: nothing waits for them.
    fn due(&mut self) -> Result<(), String> {
        let begin_ns = self.begin_ns;
        let now = || monotonic_ns() - begin_ns;
        if let Some(links) = &mut self.links {
            if now() >= 0 {
                let anew = Change { restart_trace: Some(true), ..Change::default() };
                for (number, heading) in self.traced.drain(..) {
                    links.change(number, heading, &anew)?;
                }
            }
            if let Some(watch) = &mut self.watch {
                let now_ns = now();
                if watch.look(links, self.plan, now_ns)? {
                    self.flows.iter_mut().try_for_each(|flows| flows.look(links, self.plan, now_ns, &now))?;
                }
            }
            if let Some(events) = &mut self.events {
                events.make(links, now)?;
                events.follow(now)?;
                self.joint.iter_mut().try_for_each(|joint| joint.carriers(events.carriers(), now()))?;
            }
        }
        for place in 0..self.entries.len() {
            if self.entries[place].due_ns().is_some_and(|due_ns| due_ns as i64 <= now()) {
                self.sockets.iter_mut().try_for_each(|sockets| sockets.begins(place, &self.entries, now()))?;
                self.entries[place].start(self.out, self.begin_unix_ns, now);
            }
        }
        self.sockets.iter_mut().try_for_each(|sockets| sockets.look_if_due(&self.entries, now()))?;
        if let (Some(disturbances), Some(links)) = (&mut self.disturbances, &mut self.links) {
            let lab = Lab { plan: self.plan, state: self.state, events: self.events.as_ref() };
            disturbances.look(links, &lab, now())?;
        }
        Ok(())
    }

    /// Which steps have ended: tells the traffic and who drives other machines, and lets commands and changes of links come
    /// that waited for them; true when one did.
    fn steps_end(&mut self) -> Result<bool, String> {
        let now_ns = self.now_ns();
        for (step, at_ns) in self.traffic.iter_mut().flat_map(Traffic::told) {
            if self.steps.end(step, at_ns) {
                self.joint.iter_mut().try_for_each(|joint| joint.step(step, at_ns))?;
            }
        }
        let mut ends: BTreeMap<u32, Option<i64>> = BTreeMap::new();
        self.entries.iter_mut().for_each(|entry| entry.look(now_ns));
        for entry in &self.entries {
            let Some(step) = entry.step else { continue };
            let end = entry.end_ns(now_ns);
            ends.entry(step).and_modify(|last| *last = last.zip(end).map(|(one, other)| one.max(other))).or_insert(end);
        }
        for (step, end) in ends {
            if let Some(at_ns) = end.filter(|at_ns| self.steps.end(step, *at_ns)) {
                self.traffic.iter_mut().for_each(|traffic| traffic.tell(step, at_ns));
                self.joint.iter_mut().try_for_each(|joint| joint.step(step, at_ns))?;
            }
        }
        let begun = self.entries.iter_mut().map(|entry| entry.begins(&self.steps));
        let begun = begun.fold(false, |any, one| any | one);
        Ok(self.events.iter_mut().fold(begun, |any, events| any | events.begin(&self.steps)))
    }

    /// When the next thing is due.
    fn next_ns(&self) -> u64 {
        let starts = self.entries.iter().filter_map(Entry::due_ns);
        let looks = self.watch.iter().map(Watch::due_ns);
        let changes = self.events.iter().filter_map(Events::due_ns);
        let again = self.events.iter().filter_map(|events| events.again_ns(self.now_ns()));
        let traces = self.traced.first().map(|_| 0);
        let looks = looks.chain(self.disturbances.iter().map(Disturbances::due_ns));
        let looks = looks.chain(self.joint.iter().map(Joint::due_ns));
        let ready = self.entries.iter().any(Entry::becomes_ready).then(|| self.now_ns().max(0) as u64 + READY_LOOK_NS);
        let looks = looks.chain(ready).chain(self.sockets.iter().filter_map(SocketWatch::due_ns));
        starts.chain(traces).chain(looks).chain(changes).chain(again).min().unwrap_or(u64::MAX)
    }

    /// All that ended: ours, and whatever was left to us by them. Commands keep their numbers, which are those of their
    /// groups, until all groups have been signalled.
    fn reap(&mut self) {
        let now_ns = self.now_ns();
        for entry in self.entries.iter_mut().filter(|entry| entry.runs()) {
            if let Some(status) = entry.process.and_then(command::ended) {
                entry.take(status, now_ns);
            }
        }
        // Where the kernel tells nobody's children (CONFIG_PROC_CHILDREN), what was left to us stays until our own end.
        let traffic = self.traffic.iter().filter(|traffic| traffic.runs()).map(Traffic::process);
        let others: Vec<_> = traffic.chain(children()).collect();
        let held: HashSet<_> = self.entries.iter().filter_map(|entry| entry.process).collect();
        for child in others.into_iter().filter(|child| !held.contains(child)) {
            if let Ok(status) = waitpid(child, Some(WaitPidFlag::WNOHANG)) {
                self.traffic.iter_mut().for_each(|traffic| traffic.take(&status));
            }
        }
    }

    /// Ends what still runs: asks, waits, kills; and with each command whatever it left behind in its group. Traffic first
    /// ends by itself when its time is over.
    fn end(&mut self, signals: &Signals, end: &End) {
        let ask = if matches!(end, End::Interrupted) { Signal::SIGINT } else { Signal::SIGTERM };
        if matches!(end, End::OutOfTime) {
            self.until(signals, TRAFFIC_ENDS, |all| !all.traffic.as_ref().is_some_and(Traffic::runs));
        }
        self.traffic.iter().for_each(|traffic| traffic.signal(ask));
        for entry in self.entries.iter_mut().filter(|entry| !entry.over()) {
            entry.stopped = true;
            if let Some(group) = entry.process {
                let _ = killpg(group, ask);
            }
        }
        self.until(signals, PATIENCE, |all| !all.entries.iter().any(Entry::runs));
        for group in self.entries.iter().filter_map(|entry| entry.process) {
            let _ = killpg(group, Signal::SIGKILL);
        }
        self.until(signals, TRAFFIC_WRITES, |all| !all.traffic.as_ref().is_some_and(Traffic::runs));
        self.traffic.iter().for_each(|traffic| traffic.signal(Signal::SIGKILL));
        while self.traffic.as_ref().is_some_and(Traffic::runs) || self.entries.iter().any(Entry::runs) {
            signals.wait(Some(PATIENCE));
            self.reap();
        }
        self.entries.iter().filter_map(|entry| entry.process).for_each(command::release);
    }

    /// Waits for `done`, no longer than `longest`.
    fn until(&mut self, signals: &Signals, longest: Duration, done: impl Fn(&Self) -> bool) {
        let last_ns = self.now_ns() + longest.as_nanos() as i64;
        self.reap();
        while !done(self) && self.now_ns() < last_ns {
            let left = last_ns.saturating_sub(self.now_ns());
            signals.wait(Some(Duration::from_nanos(u64::try_from(left).unwrap_or(0))));
            self.reap();
        }
    }
}

/// The directions of links that follow a trace.
fn traced(plan: &Plan) -> Vec<(usize, usize)> {
    let all = (0..plan.links.len()).flat_map(|number| [(number, 0), (number, 1)]);
    all.filter(|(number, heading)| plan.links[*number].direction(*heading).trace != (Trace::None {})).collect()
}

/// Of this thread, which starts all of them; what is left to this process comes to it too.
fn children() -> Vec<Pid> {
    let own = std::process::id();
    let listed = std::fs::read_to_string(format!("/proc/self/task/{own}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|number| number.parse().ok().map(Pid::from_raw)).collect()
}
