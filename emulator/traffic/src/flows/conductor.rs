//! The thread that leads a run: launches each flow shortly before its start, ends it at its stop, looks at senders and
//! receivers at their instants, and writes what was seen.
//!
//! In: a checked request, a directory, T0. Out: traffic.json, series.csv, media.csv, goodput.csv, exchanges.csv, frames.csv
//! there. It sleeps until
//! exactly the next thing that it has to do, or until the last flow has ended.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ewan_system::clock::monotonic_ns;
use nix::sys::signal::{kill, Signal};
use nix::unistd::getppid;

use super::records::{self, Answer, Record};
use super::request::FlowRequest;
use super::steps::StepEnd;
use super::watch::Watch;
use super::{Ending, Filling, Flow, Request, Running, WakeReason, World, LAUNCH_NS, LEAD_NS};
use crate::multipath::{self, Multipath};
use crate::process;
use crate::socket::{Endpoint, Namespaces, Options};
use crate::table::Table;

/// From the end of the preparations to the first launch.
const READY_NS: i64 = 2_000_000;

pub struct Conductor {
    world: Arc<World>,
    requests: Vec<FlowRequest>,
    seed: u64,
    flows: Vec<Arc<dyn Flow>>,
    /// Flows whose start is not known yet: they wait for steps.
    waiting: BTreeSet<usize>,
    /// When to launch which flow, soonest first, from T0.
    launches: VecDeque<(i64, usize)>,
    /// When to stop which flow, soonest first, from T0.
    stops: BTreeSet<(u64, usize)>,
    /// Steps whose ends are told.
    told: BTreeSet<u32>,
    /// Records have the ports of sources.
    ports: bool,
    watch: Watch,
    out: PathBuf,
}

impl Conductor {
    /// Errors are one line and mean that nothing was sent.
    pub fn prepare(request: Request, out: &Path, begin_ns: Option<i64>) -> Result<Self, String> {
        process::prepare(&request.cpus, request.clock)?;
        let namespaces = Namespaces::open()?;
        probe_ends(&namespaces, &request.flows)?;
        multipath::prepare(&namespaces, request.flows.iter().filter_map(paths_of))?;
        std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
        let watch = Watch::create(&request, &namespaces, out)?;
        let exchanges = Table::create(&out.join("exchanges.csv"))?;
        let frames = request.has_media().then(|| Table::create(&out.join("frames.csv"))).transpose()?;
        let flows = request.make();
        let (waiting, known): (BTreeSet<_>, BTreeSet<_>) =
            (0..flows.len()).partition(|&index| !request.flows[index].after.is_empty());
        let launches = launches(&request.flows, known.iter().copied());
        let needed = launches.front().map_or(0, |&(first, _)| -first.min(0));
        let begin_ns = begin_ns.unwrap_or_else(|| monotonic_ns() + READY_NS + needed);
        let world = Arc::new(World {
            namespaces,
            clock: request.clock,
            begin_ns,
            series_ns: request.series_ns,
            longest_ns: request.longest_ns,
            filling: Filling::new()?,
            running: Running::new(&request.flows, begin_ns),
            exchanges,
            frames,
        });
        let stops = known.iter().filter_map(|&index| request.flows[index].stop_ns.map(|stop_ns| (stop_ns, index)));
        Ok(Self {
            world,
            flows,
            waiting,
            launches,
            stops: stops.collect(),
            told: request.told.into_iter().collect(),
            ports: request.ports,
            requests: request.flows,
            seed: request.seed,
            watch,
            out: out.to_owned(),
        })
    }

    pub fn world(&self) -> Arc<World> {
        self.world.clone()
    }

    /// Until all flows have ended; true when they were interrupted. What was measured is written in any case.
    pub fn run(mut self) -> Result<bool, String> {
        let woken = self.lead();
        let ending = match &woken {
            WakeReason::Interrupted => Ending::Failed("interrupted".into()),
            WakeReason::Failed(error) => Ending::Failed(error.clone()),
            WakeReason::NoneLeft | WakeReason::InTime | WakeReason::StepsEnded(_) => Ending::Stopped,
        };
        let now_ns = self.world.now_ns();
        self.flows.iter().for_each(|flow| flow.end(&self.world, ending.clone(), now_ns));
        let interrupted = woken == WakeReason::Interrupted;
        let failed = if let WakeReason::Failed(error) = woken { Err(error) } else { Ok(()) };
        let watched = self.watch.finish(&self.flows);
        let exchanged = self.world.exchanges.flush().and(self.world.frames.as_ref().map_or(Ok(()), Table::flush));
        let answered = self.answer(interrupted);
        failed.and(watched).and(exchanged).and(answered).map(|()| interrupted)
    }

    /// Why it came to its end: `InTime` for the longest time there is.
    fn lead(&mut self) -> WakeReason {
        let world = self.world.clone();
        loop {
            let launch_at = self.launches.front().map_or(i64::MAX, |&(at, _)| at);
            let end_at = self.stops.first().map_or(u64::MAX, |&(at, _)| at);
            let then = self.watch.next_ns().min(end_at).min(world.longest_ns);
            let next = launch_at.min(then as i64);
            match world.running.wait_until(world.begin_ns + next) {
                WakeReason::InTime => {}
                WakeReason::StepsEnded(steps) => {
                    self.steps_ended(&steps);
                    continue;
                }
                woken => return woken,
            }
            if launch_at == next {
                self.launch();
                continue;
            }
            let now_ns = world.now_ns();
            match self.watch.look(&self.flows, then, now_ns as u64) {
                Ok(met) => met.into_iter().for_each(|step| world.running.step_ended(step, now_ns)),
                Err(error) => return WakeReason::Failed(error),
            }
            while let Some(&(_, index)) = self.stops.first().filter(|(at, _)| *at <= then) {
                self.stops.pop_first();
                self.flows[index].end(&world, Ending::InTime, world.now_ns());
            }
            if then >= world.longest_ns {
                return WakeReason::InTime;
            }
        }
    }

    /// Tells of steps that ended, and lets flows that waited for them come.
    fn steps_ended(&mut self, steps: &[StepEnd]) {
        for (step, at_ns) in steps.iter().filter(|(step, _)| self.told.contains(step)) {
            tell(*step, *at_ns);
        }
        let running = &self.world.running;
        let begun =
            self.waiting.iter().filter_map(|&index| Some((index, running.all_ended(&self.requests[index].after)?)));
        let begun: Vec<_> = begun.collect();
        for &(index, begin_ns) in &begun {
            self.waiting.remove(&index);
            let request = self.requests[index].clone().begun(begin_ns.max(0) as u64);
            self.flows[index] = request.make(request.number(index), self.seed);
            self.stops.extend(request.stop_ns.map(|stop_ns| (stop_ns, index)));
            self.requests[index] = request;
        }
        let all = self.launches.iter().map(|&(_, index)| index).chain(begun.iter().map(|&(index, _)| index));
        self.launches = launches(&self.requests, all.collect::<BTreeSet<_>>().into_iter());
    }

    fn launch(&mut self) {
        let Some((_, index)) = self.launches.pop_front() else { return };
        let flow = &self.flows[index];
        self.watch.begin(index, self.requests[index].start_ns, self.world.now_ns());
        if let Err(why) = flow.clone().launch(&self.world) {
            flow.end(&self.world, Ending::Failed(why), self.world.now_ns());
        }
    }

    fn answer(&self, interrupted: bool) -> Result<(), String> {
        // What still waits has no times that could be told.
        let begun = (0..self.flows.len()).filter(|index| !self.waiting.contains(index));
        let of_flow = |index: usize| {
            let told = self.ports || self.requests[index].half.is_some();
            let records = self.flows[index].records().into_iter();
            records.map(move |record| Record { port: record.port.filter(|_| told), ..record })
        };
        let flows: Vec<Record> = begun.flat_map(of_flow).collect();
        let path = self.out.join("traffic.json");
        let say = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut file = BufWriter::new(File::create(&path).map_err(say)?);
        let answer = Answer { format: records::FORMAT, interrupted, flows };
        serde_json::to_writer_pretty(&mut file, &answer).map_err(|error| say(error.into()))?;
        file.write_all(b"\n").and_then(|()| file.flush()).map_err(say)
    }
}

/// When to launch which of the flows `which`: `LEAD_NS` before its start, or so much sooner that those which start after
/// it, launched one by one, all have their lead. What starts sooner than that is launched at once.
fn launches(flows: &[FlowRequest], which: impl Iterator<Item = usize>) -> VecDeque<(i64, usize)> {
    let mut order: Vec<usize> = which.collect();
    order.sort_by_key(|&index| flows[index].start_ns);
    let mut launches = VecDeque::with_capacity(flows.len());
    let mut next = i64::MAX;
    for index in order.into_iter().rev() {
        let sockets = flows[index].work.sockets();
        let own = flows[index].start_ns as i64 - LEAD_NS as i64;
        next = own.min(next).saturating_sub((LAUNCH_NS * sockets) as i64);
        launches.push_front((next, index));
    }
    launches
}

/// Tells whoever started this process that a step ended. One that is gone needs no telling: its end is ours.
fn tell(step: u32, at_ns: i64) {
    let mut out = std::io::stdout();
    if writeln!(out, "{step} {at_ns}").and_then(|()| out.flush()).is_ok() {
        let _ = kill(getppid(), Signal::SIGCHLD);
    }
}

/// Opens a socket in every place and with every congestion control that flows will want.
/// Of a flow with several paths.
fn paths_of(flow: &FlowRequest) -> Option<(&Multipath, &Endpoint, &Endpoint)> {
    Some((flow.socket.multipath.as_ref()?, flow.from.as_ref()?, flow.to.as_ref()?))
}

fn probe_ends(namespaces: &Namespaces, flows: &[FlowRequest]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for flow in flows {
        let congestion = flow.socket.congestion.as_ref().filter(|_| flow.work.is_tcp());
        for end in flow.ends() {
            if seen.insert((&end.netns, end.address, congestion, flow.socket.multipath.is_some())) {
                let multipath = flow.socket.multipath.clone();
                let options = Options { congestion: congestion.cloned(), multipath, ..Options::default() };
                namespaces.tcp(end, &options).map_err(|error| format!("flow {:?}: {error}", flow.name))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_that_start_together_are_launched_one_by_one_each_with_its_lead() {
        let end = r#"{"netns": "/run/netns/a", "address": "10.0.0.1"}"#;
        let flow = |start_ns: u64| {
            format!(
                r#"{{"name": "f", "from": {end}, "to": {end}, "start_ns": {start_ns},
                     "socket": {{"congestion": "reno"}}, "work": {{"kind": "bulk", "bytes": 1}}}}"#
            )
        };
        let second = 1_000_000_000;
        let flows: Vec<String> = [second, second, 0, second + 1].into_iter().map(flow).collect();
        let text =
            format!(r#"{{"format": "ewan-traffic/1", "longest_ns": 2000000000, "flows": [{}]}}"#, flows.join(","));
        let request = Request::parse(&text).unwrap();
        let (lead, each) = (LEAD_NS as i64, LAUNCH_NS as i64);
        let last = second as i64 + 1 - lead - each;
        let expected = [(-lead - each, 2), (last - 2 * each, 0), (last - each, 1), (last, 3)];
        assert_eq!(launches(&request.flows, 0..4), expected);
    }
}
