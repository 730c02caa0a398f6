//! A program: preparations one after the other, then probes, then traffic, commands and changes of links side by side,
//! each at its time after T0. The same code in both clocks.
//!
//! First of all it waits for the routes, where a protocol finds them.
//!
//! In: a plan whose lab is up, a program (JSON, written by labs/runtime/program.py), a directory. Out: DIR/routing.json
//! where a protocol finds the routes, DIR/probe.json,
//! DIR/commands/<n>-<node>.{out,err}, prepare-<n>-<node>.{out,err} beside them, directories of the same names with what
//! the programs put there, DIR/commands.json with what became of
//! each command, DIR/links.json with the links' last counters, DIR/events.json with when each change was made,
//! DIR/drops.csv with what hosts and routers dropped, DIR/command_sockets.csv with the sockets of commands, DIR/links.csv with the links' counters over time, DIR/{releases,spinners,machine}.csv with what may have disturbed the
//! links of a live lab, and what the traffic generator writes into DIR/traffic.

mod command;
mod disturbances;
mod events;
mod flow_watch;
mod joint;
mod probe;
mod socket_watch;
mod sockets;
mod steps;
mod timetable;
mod traffic;
mod watch;

use std::path::{Path, PathBuf};

pub use command::T0;
use command::{Command, Step};
use events::Event;
use ewan_system::signals::{Signals, END_OR_CHILD};
use joint::Joint;
use nix::sys::signal::Signal;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use timetable::Timetable;

use ewan_lab::drops::Drops;
use ewan_lab::{converge, links};
use ewan_plan::{Plan, Routing};

pub const FORMAT: &str = "ewan-program/1";
/// For a routing protocol to find all routes; links of seconds of delay need tens of them.
const CONVERGES: std::time::Duration = std::time::Duration::from_secs(300);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    format: String,
    /// One after the other, before all else.
    #[serde(default)]
    prepare: Vec<Step>,
    /// A request for `ewan_traffic::probe`.
    probe: Option<Value>,
    /// A request for `ewan-node traffic`.
    #[serde(default)]
    traffic: Option<Value>,
    #[serde(default)]
    commands: Vec<Command>,
    #[serde(default)]
    events: Vec<Event>,
    /// The links' counters are read so often from T0 on; 0: never.
    #[serde(default)]
    watch_ns: u64,
    /// The links that count flows, which are read at the same times; none: no link does.
    #[serde(default)]
    flows: Option<flow_watch::CountedFlows>,
    /// How what disturbs the links is watched from T0 on, in the live clock; none: it is not.
    #[serde(default)]
    disturbances: Option<disturbances::DisturbanceSettings>,
    /// Counters of hosts and routers (ewan_system::counters), of which drops.csv tells how much they grew.
    #[serde(default)]
    drops: Vec<String>,
    /// Steps whose ends other machines tell, where they run parts of it.
    #[serde(default)]
    elsewhere: Vec<u32>,
    /// Files and directories of the machine that commands read in the virtual clock.
    #[serde(default)]
    needs: Vec<String>,
    /// Modules that the virtual kernel loads before the lab is made.
    #[serde(default)]
    pub modules: Option<Vec<KernelModule>>,
    /// The program beside the virtual kernel that sets windows; it is started outside.
    #[serde(default, rename = "controller")]
    _controller: Option<IgnoredAny>,
    /// From T0; what still runs then is ended.
    #[serde(default)]
    longest_ns: u64,
}

/// A module of the virtual kernel; its compiled file has the name `NAME.ko`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelModule {
    pub source: ModuleSource,
    /// The congestion controls that it registers.
    #[serde(default)]
    pub controls: Vec<String>,
    /// Assignments as insmod takes them, `alpha=2 beta=3`.
    #[serde(default)]
    pub parameters: String,
}

impl Program {
    /// Gives the traffic the layouts of the states of congestion controls, which were read from their modules.
    pub fn see_states(&mut self, layouts: Value) {
        if let Some(traffic) = &mut self.traffic {
            traffic["congestion_state"] = layouts;
        }
    }
}

/// The source that a module is compiled from. Its C file has the module's name.
#[derive(Deserialize)]
pub struct ModuleSource {
    file: String,
}

impl KernelModule {
    /// The name that the kernel knows it by.
    pub fn name(&self) -> &str {
        let name = self.source.file.strip_suffix(".c").unwrap_or(&self.source.file);
        name.strip_suffix(".bpf").unwrap_or(name)
    }
}

/// How commands see the machine.
pub struct Surroundings<'a> {
    /// The lab's state directory.
    pub state: &'a Path,
    /// What becomes the commands' root; none: the root as it is.
    pub tree: Option<&'a Path>,
    /// Where results go; seen by the commands under the same name.
    pub out: &'a Path,
    /// Where commands begin, as they see it.
    pub directory: PathBuf,
    /// Whether the lab is there afterwards.
    pub outlives: bool,
}

impl Program {
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = ewan_system::reading::regular(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let program: Self = serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        if program.format != FORMAT {
            return Err(format!("{}: format is {:?}, not {FORMAT:?}", path.display(), program.format));
        }
        if let Some(why) = program.disturbances.and_then(|wanted| wanted.refusal()) {
            return Err(format!("{}: {why}", path.display()));
        }
        let commands = program.commands.iter().map(|command| (&command.node, &command.argv));
        let mut all = commands.chain(program.prepare.iter().map(|step| (&step.node, &step.argv)));
        if let Some((node, _)) = all.find(|(_, argv)| argv.is_empty()) {
            return Err(format!("{}: node {node}: a command without words", path.display()));
        }
        steps::check(&program.commands, &program.events, program.traffic.as_ref(), &program.elsewhere)
            .map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(program)
    }

    pub fn needs(&self) -> impl Iterator<Item = &str> {
        self.needs.iter().map(String::as_str)
    }

    /// Whether it needs the host's programs.
    pub fn runs_programs(&self) -> bool {
        !self.commands.is_empty() || !self.prepare.is_empty()
    }

    /// Runs all of it; true when a signal ended it early, with all that was measured until then written.
    ///
    /// `joint`: other machines run other parts of it. Who drives all of them has waited for the routes, which no machine
    /// sees alone.
    pub fn run(
        &self,
        plan: &Plan,
        signals: &Signals,
        around: &Surroundings,
        joint: Option<Joint>,
    ) -> Result<bool, String> {
        events::check(&self.events, plan)?;
        if joint.is_none() && plan.routing != Routing::Static && converges(plan, signals, around)? {
            return Ok(true);
        }
        for (index, step) in self.prepare.iter().enumerate() {
            if step.run(index + 1, plan, signals, around)? {
                return Ok(true);
            }
        }
        let drops = (!self.drops.is_empty()).then(|| Drops::watch(plan, &self.drops, !around.outlives)).transpose()?;
        let result = self.measure(plan, signals, around, joint);
        // What was dropped is told, also of a run that failed.
        let told = drops.map_or(Ok(()), |drops| drops.tell(around.out));
        result.and_then(|interrupted| told.map(|()| interrupted))
    }

    /// All but what comes before it; true when a signal ended it early.
    fn measure(
        &self,
        plan: &Plan,
        signals: &Signals,
        around: &Surroundings,
        joint: Option<Joint>,
    ) -> Result<bool, String> {
        if let Some(request) = &self.probe {
            if probe::run(request, signals, around.out)? {
                return Ok(true);
            }
        }
        let nothing =
            self.commands.is_empty() && self.traffic.is_none() && self.events.is_empty() && self.watch_ns == 0;
        if nothing && joint.is_none() {
            return Ok(false);
        }
        Timetable::prepare(self, plan, around, signals, joint)?.run(signals)
    }
}

/// Waits until the routes are there, routing.json; true when a signal came instead.
fn converges(plan: &Plan, signals: &Signals, around: &Surroundings) -> Result<bool, String> {
    let protocol = converge::name(plan.routing);
    eprintln!("routing: waiting for {protocol}");
    let signal = || signals.wait(Some(std::time::Duration::ZERO)).is_some_and(|came| came != Signal::SIGCHLD);
    let outcome = converge::settle(plan, around.state, CONVERGES, &signal)?;
    write(&around.out.join("routing.json"), &outcome)?;
    if outcome.interrupted {
        return Ok(true);
    }
    eprintln!("routing: {protocol} converged in {:.3} s", outcome.after_ns as f64 / 1e9);
    outcome.failure().map_or(Ok(false), Err)
}

/// Runs a program in a lab of the live clock; `joint`: other machines run other parts of it.
pub fn run(state: &Path, program: &Path, out: &Path, joint: bool) -> Result<(), String> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()));
    let (state, out) = (absolute(state)?, absolute(out)?);
    let plan = ewan_plan::read(&state.join("plan.json"))?;
    let program = Program::read(program)?;
    let signals = Signals::block(&END_OR_CHILD)?;
    nix::sys::prctl::set_timerslack(1).map_err(|error| format!("timer slack: {error}"))?;
    // Whatever commands leave behind comes to us, and ends with its command.
    nix::sys::prctl::set_child_subreaper(true).map_err(|error| format!("becoming subreaper: {error}"))?;
    let directory = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let around = Surroundings { state: &state, tree: None, out: &out, directory, outlives: true };
    let joint = joint.then(Joint::open).transpose()?;
    let result = program.run(&plan, &signals, &around, joint);
    // What was measured is kept, also of a run that failed.
    let kept = links::record(&plan, &state, &out);
    result.and_then(|_| kept.map(drop))
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), String> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| error.to_string())?;
    text.push(b'\n');
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
