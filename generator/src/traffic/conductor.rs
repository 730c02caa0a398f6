//! The thread that leads a run: launches each flow shortly before its start, ends it at its stop, looks at senders and
//! receivers at their instants, and writes what was seen.
//!
//! In: a checked request, a directory, T0. Out: traffic.json, series.csv, goodput.csv, exchanges.csv there. It sleeps until
//! exactly the next thing that it has to do, or until the last flow has ended.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ewan_timers::clock::monotonic_ns;

use super::records::{self, Answer, Record};
use super::request::FlowRequest;
use super::watch::Watch;
use super::{Ending, Filling, Flow, Request, Running, Woken, World, LAUNCH_NS, LEAD_NS};
use crate::process;
use crate::socket::{Namespaces, Options};
use crate::table::Table;

/// From the end of the preparations to the first launch.
const READY_NS: i64 = 2_000_000;

pub struct Conductor {
    world: Arc<World>,
    flows: Vec<Arc<dyn Flow>>,
    stops: Vec<Option<u64>>,
    /// When to launch which flow, soonest first, from T0.
    launches: VecDeque<(i64, usize)>,
    watch: Watch,
    out: PathBuf,
}

impl Conductor {
    /// Errors are one line and mean that nothing was sent.
    pub fn prepare(request: Request, out: &Path, begin_ns: Option<i64>) -> Result<Self, String> {
        process::prepare(&request.cpus, request.clock)?;
        let namespaces = Namespaces::open()?;
        probe_ends(&namespaces, &request.flows)?;
        std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
        let watch = Watch::create(&request, out)?;
        let exchanges = Table::create(&out.join("exchanges.csv"))?;
        let flows = request.make();
        let launches = launches(&request.flows);
        let needed = launches.front().map_or(0, |&(first, _)| -first.min(0));
        let world = Arc::new(World {
            namespaces,
            clock: request.clock,
            begin_ns: begin_ns.unwrap_or_else(|| monotonic_ns() + READY_NS + needed),
            series_ns: request.series_ns,
            longest_ns: request.longest_ns,
            filling: Filling::new()?,
            running: Running::new(flows.len()),
            exchanges,
        });
        let stops = request.flows.iter().map(|flow| flow.stop_ns).collect();
        Ok(Self { world, flows, stops, launches, watch, out: out.to_owned() })
    }

    pub fn world(&self) -> Arc<World> {
        self.world.clone()
    }

    /// Until all flows have ended; true when they were interrupted. What was measured is written in any case.
    pub fn run(mut self) -> Result<bool, String> {
        let woken = self.lead();
        let ending = match &woken {
            Woken::Interrupted => Ending::Failed("interrupted".into()),
            Woken::Failed(error) => Ending::Failed(error.clone()),
            Woken::NoneLeft | Woken::InTime => Ending::Stopped,
        };
        let now_ns = self.world.now_ns();
        self.flows.iter().for_each(|flow| flow.end(&self.world, ending.clone(), now_ns));
        let interrupted = woken == Woken::Interrupted;
        let failed = if let Woken::Failed(error) = woken { Err(error) } else { Ok(()) };
        let watched = self.watch.finish(&self.flows);
        let exchanged = self.world.exchanges.flush();
        let answered = self.answer(interrupted);
        failed.and(watched).and(exchanged).and(answered).map(|()| interrupted)
    }

    /// Why it came to its end: `InTime` for the longest time there is.
    fn lead(&mut self) -> Woken {
        let world = self.world.clone();
        let mut ends: Vec<(u64, usize)> =
            self.stops.iter().zip(0..).filter_map(|(&stop, index)| stop.map(|stop_ns| (stop_ns, index))).collect();
        // Soonest last.
        ends.sort_unstable_by(|one, other| other.cmp(one));
        loop {
            let launch_at = self.launches.front().map_or(i64::MAX, |&(at, _)| at);
            let end_at = ends.last().map_or(u64::MAX, |&(at, _)| at);
            let then = self.watch.next_ns().min(end_at).min(world.longest_ns);
            let next = launch_at.min(then as i64);
            match world.running.wait_until(world.begin_ns + next) {
                Woken::InTime => {}
                woken => return woken,
            }
            if launch_at == next {
                self.launch();
                continue;
            }
            if let Err(error) = self.watch.look(&self.flows, then, world.now_ns() as u64) {
                return Woken::Failed(error);
            }
            while let Some((_, index)) = ends.pop_if(|(at, _)| *at <= then) {
                self.flows[index].end(&world, Ending::InTime, world.now_ns());
            }
            if then >= world.longest_ns {
                return Woken::InTime;
            }
        }
    }

    fn launch(&mut self) {
        let Some((_, index)) = self.launches.pop_front() else { return };
        let flow = &self.flows[index];
        self.watch.begin(index, self.world.now_ns());
        if let Err(why) = flow.clone().launch(&self.world) {
            flow.end(&self.world, Ending::Failed(why), self.world.now_ns());
        }
    }

    fn answer(&self, interrupted: bool) -> Result<(), String> {
        let flows: Vec<Record> = self.flows.iter().flat_map(|flow| flow.records()).collect();
        let path = self.out.join("traffic.json");
        let say = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut file = BufWriter::new(File::create(&path).map_err(say)?);
        let answer = Answer { format: records::FORMAT, interrupted, flows };
        serde_json::to_writer_pretty(&mut file, &answer).map_err(|error| say(error.into()))?;
        file.write_all(b"\n").and_then(|()| file.flush()).map_err(say)
    }
}

/// When to launch which flow: `LEAD_NS` before its start, or so much sooner that those which start after it, launched one
/// by one, all have their lead.
fn launches(flows: &[FlowRequest]) -> VecDeque<(i64, usize)> {
    let mut order: Vec<usize> = (0..flows.len()).collect();
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

/// Opens a socket in every place and with every congestion control that flows will want.
fn probe_ends(namespaces: &Namespaces, flows: &[FlowRequest]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for flow in flows {
        let congestion = flow.socket.congestion.as_ref().filter(|_| flow.work.is_tcp());
        for end in flow.ends() {
            if seen.insert((&end.netns, end.address, congestion)) {
                let options = Options { congestion: congestion.cloned(), ..Options::default() };
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
        assert_eq!(launches(&request.flows), expected);
    }
}
