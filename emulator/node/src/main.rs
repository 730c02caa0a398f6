//! `ewan-node`: the one binary that runs on the host, in any image and as init of the virtual kernel.
//!
//! This file reads the command line and calls the part that does the work; errors come back as one line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use nix::sys::stat::{umask, Mode};

mod capture;
mod container;
mod init;
mod metrics;
mod packet_sockets;
mod ready;
mod relay;
mod stretch;
#[cfg(target_arch = "x86_64")]
mod wall;

/// The product's; crates have none of their own.
const VERSION: &str = include_str!("../../../ewan/VERSION").trim_ascii();

#[derive(Parser)]
#[command(name = "ewan-node", version = VERSION, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a lab out of a plan: namespaces, wires, addresses, routes; its spinners are started apart
    Apply {
        /// The plan, as the compiler wrote it
        #[arg(long)]
        plan: PathBuf,
        /// The lab's state directory; made here
        #[arg(long)]
        state: PathBuf,
    },
    /// Remove a lab: exactly what its manifest names, however much of it is there
    Down {
        /// The lab's state directory
        #[arg(long)]
        state: PathBuf,
    },
    /// Run a program inside a node
    Exec {
        /// The lab's state directory
        #[arg(long)]
        state: PathBuf,
        node: String,
        #[arg(last = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Be a container that is a node of a lab: its first process, from its start to its end
    Container {
        /// The lab's directory, which all of its containers share
        #[arg(long)]
        lab: PathBuf,
        /// Which of the plan's nodes
        #[arg(long)]
        node: String,
        /// As whom the image's program runs: USER[:GROUP] of the image
        #[arg(long, default_value = "")]
        user: String,
        /// Where the image's program runs
        #[arg(long, default_value = "")]
        directory: String,
        /// Run the node's commands when all nodes are ready: nobody else does
        #[arg(long)]
        commands: bool,
        /// The image's program, which is started when the node is ready
        #[arg(last = true)]
        words: Vec<String>,
    },
    /// Serve the emulated links of one spinner until told to stop
    Link {
        /// The lab's state directory
        #[arg(long)]
        state: PathBuf,
        /// Which of the plan's spinners
        #[arg(long)]
        spinner: usize,
        /// The manifest's id: `down` finds this process by it
        #[arg(long)]
        id: String,
        /// Where a link's network namespace is, if it has no name: LINK=PATH
        #[arg(long, value_name = "LINK=PATH")]
        netns: Vec<String>,
    },
    /// Send and receive probes between namespaces: a request on standard input, its answer on standard output
    Probe {
        /// Only the ends that are here, in step with the processes of other machines: orders and answers, a line each
        #[arg(long)]
        joint: bool,
        /// Put together what those processes saw of a probe
        #[arg(long, conflicts_with = "joint")]
        merge: bool,
    },
    /// Send and receive the traffic of a request: flows of many kinds, each at its time
    Traffic {
        /// The request
        #[arg(long)]
        request: PathBuf,
        /// Where results go
        #[arg(long)]
        out: PathBuf,
        /// T0 on CLOCK_MONOTONIC, ns; as soon as all is ready if none is given
        #[arg(long)]
        begin_ns: Option<i64>,
    },
    /// Run a program in a lab that is up: probes, then commands in their nodes, each at its time
    Batch {
        /// The lab's state directory
        #[arg(long)]
        state: PathBuf,
        /// What to run
        #[arg(long)]
        program: PathBuf,
        /// Where results go
        #[arg(long)]
        out: PathBuf,
        /// Other machines run other parts: in step with them, by lines of JSON (emulator/batch/src/joint.rs)
        #[arg(long)]
        joint: bool,
    },
    /// Write the packets at interfaces of this node into a pcapng file, until a signal comes
    Capture(capture::Request),
    /// Change one direction of a link that the kernel emulates, now: the change, as JSON, on standard input
    Change {
        /// The lab's state directory
        #[arg(long)]
        state: PathBuf,
        #[arg(long)]
        link: String,
        /// forward or backward
        #[arg(long)]
        direction: String,
    },
    /// Wait until routes carry every pair of hosts, and print how long that took
    Converge {
        /// The lab's state directory
        #[arg(long)]
        state: PathBuf,
        #[arg(long, default_value_t = 120)]
        longest_s: u64,
    },
    /// Tell the routes of all nodes of a machine's share of a lab, as JSON
    #[command(hide = true)]
    Routes {
        /// The share's state directory
        #[arg(long)]
        state: PathBuf,
    },
    /// Say which pairs of hosts the routes of a whole lab carry: those that its machines told of on standard input
    #[command(hide = true)]
    Reach {
        /// The plan of the whole lab
        #[arg(long)]
        plan: PathBuf,
    },
    /// Hand requests to the spinners of a machine's share of a lab: a line each on standard input, their answers on
    /// standard output
    #[command(hide = true)]
    Relay {
        /// The share's state directory
        #[arg(long)]
        state: PathBuf,
    },
    /// Take a link down or bring it up, wait until the routes have followed, and print how long that took
    Carrier {
        /// The lab's state directory
        #[arg(long)]
        state: PathBuf,
        #[arg(long)]
        link: String,
        #[arg(long, conflicts_with = "down", required_unless_present = "down")]
        up: bool,
        #[arg(long)]
        down: bool,
        #[arg(long, default_value_t = 60)]
        longest_s: u64,
    },
    /// Wait in a container until all nodes of its lab are ready
    Ready {
        /// The lab's directory
        #[arg(long)]
        lab: PathBuf,
        /// The node that waits
        #[arg(long)]
        node: String,
        /// How long it waits while no further node gets ready
        #[arg(long, default_value_t = 60)]
        patience_s: u64,
    },
    /// Tell Prometheus what the links of a lab do: a page over HTTP
    Metrics {
        /// The lab's state directory
        #[arg(long)]
        state: PathBuf,
        /// Where to listen, such as 127.0.0.1:9324; port 0 takes any
        #[arg(long, required_unless_present = "once")]
        listen: Option<String>,
        /// This link alone
        #[arg(long)]
        link: Option<String>,
        /// Print the page and end
        #[arg(long, conflicts_with = "listen")]
        once: bool,
    },
    /// Tell Prometheus what the links of a lab over several machines do: whoever started this tells what the machines say
    #[command(hide = true)]
    JointMetrics {
        /// Where to listen, such as 127.0.0.1:9324; port 0 takes any
        #[arg(long, required_unless_present = "once")]
        listen: Option<String>,
        /// Print the page and end
        #[arg(long, conflicts_with = "listen")]
        once: bool,
    },
    /// Let a running program's packet sockets hold what the queues behind them may
    PacketSockets {
        /// The file with its process id
        #[arg(long)]
        pid_file: PathBuf,
    },
    /// Switch the offloads of a lab's interfaces on, which are off in every lab, or off again
    #[command(hide = true)]
    Offloads {
        /// The lab's state directory
        #[arg(long)]
        state: PathBuf,
        #[arg(long, conflicts_with = "off", required_unless_present = "off")]
        on: bool,
        #[arg(long)]
        off: bool,
    },
    /// Say which offloads are on in a lab, of those that are off in every lab: its plan on standard input, JSON on
    /// standard output
    #[command(hide = true)]
    LeftOn,
    /// Say what a lab's cards say of themselves: its plan on standard input, JSON on standard output
    #[command(hide = true)]
    Cards,
    /// Say what the kernels of a lab's hosts and routers counted: its plan on standard input, JSON on standard output
    #[command(hide = true)]
    Drops,
    /// Say what came out of a link's device, as the cards behind it count: JSON on standard output
    #[command(hide = true)]
    Came {
        /// The lab's state directory
        #[arg(long)]
        state: PathBuf,
        link: String,
    },
    /// Measure what a tunnel between two machines does to packets, before a lab is made over it: a request on standard
    /// input; needs root
    Stretch {
        #[command(subcommand)]
        role: stretch::Role,
    },
    /// Measure this host's clocks and timers; JSON on standard output
    Timers {
        /// How long that may take
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Where links spin; the last CPU if none is given
        #[arg(long)]
        link_cpu: Option<u32>,
        /// Where hosts run; the other CPUs if none is given
        #[arg(long, value_delimiter = ',')]
        host_cpus: Vec<u32>,
    },
    /// Spin for a part of `timers`, and print how late deadlines were met
    #[command(hide = true)]
    Spin {
        #[arg(long)]
        cpu: u32,
        #[arg(long)]
        loaded: bool,
        #[arg(long)]
        duration_ns: u64,
    },
    /// The first process of the virtual kernel: makes a lab, runs a program, powers off
    #[command(hide = true)]
    Init {
        /// What the kernel adds of its own
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<std::ffi::OsString>,
    },
    /// Become the virtual kernel behind its wall, or without one where none is asked for; not beyond the death of who
    /// started it
    #[command(hide = true)]
    Launch {
        #[cfg(target_arch = "x86_64")]
        #[command(flatten)]
        wall: wall::Request,
        #[arg(last = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Say which walls around the virtual kernel there are here: JSON on standard output
    #[cfg(target_arch = "x86_64")]
    #[command(hide = true)]
    Walls,
}

fn main() -> ExitCode {
    ewan_datapath::faults::end_process_on_panic();
    only_ours_to_write();
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{}", ewan_system::reading::one_line(&message));
            ExitCode::from(2)
        }
    }
}

/// Whatever umask was inherited, others may not write to what this process makes: root believes the files of a lab.
fn only_ours_to_write() {
    let others = Mode::S_IWGRP | Mode::S_IWOTH;
    let before = umask(others);
    umask(before | others);
}

fn run(command: Command) -> Result<(), String> {
    match command {
        Command::Apply { plan, state } => ewan_lab::apply::run(&plan, &state, true),
        Command::Down { state } => ewan_lab::down::run(&state),
        Command::Exec { state, node, command } => ewan_lab::exec::run(&state, &node, &command),
        Command::Container { lab, node, user, directory, commands, words } => {
            container::run(&lab, &node, container::Program { words, user, directory, commands })
        }
        Command::Link { state, spinner, id: _, netns } => {
            let file = state.join("plan.json");
            let plan = ewan_plan::read(&file)?;
            let config = ewan_lab::spinners::config(&plan, &file, &state, spinner, &netns)?;
            ewan_system::limits::raise_open_files(0);
            Ok(ewan_datapath::run(config)?)
        }
        Command::Probe { joint: true, .. } => ewan_traffic::probe::joint(std::io::stdin(), std::io::stdout()),
        Command::Probe { merge: true, .. } => ewan_traffic::probe::merge(std::io::stdin(), std::io::stdout()),
        Command::Probe { .. } => ewan_traffic::probe::run(std::io::stdin(), std::io::stdout()),
        Command::Traffic { request, out, begin_ns } => ewan_traffic::flows::run(&request, &out, begin_ns),
        Command::Batch { state, program, out, joint } => ewan_batch::run(&state, &program, &out, joint),
        Command::Capture(request) => capture::run(&request),
        Command::Change { state, link, direction } => ewan_lab::links::run(&state, &link, &direction, std::io::stdin()),
        Command::Converge { state, longest_s } => {
            ewan_lab::converge::run(&state, std::time::Duration::from_secs(longest_s))
        }
        Command::Carrier { state, link, up, down: _, longest_s } => {
            ewan_lab::carrier::run(&state, &link, up, std::time::Duration::from_secs(longest_s))
        }
        Command::Routes { state } => ewan_lab::converge::tell(&state, std::io::stdout()),
        Command::Reach { plan } => ewan_lab::converge::judge(&plan, std::io::stdin(), std::io::stdout()),
        Command::Relay { state } => relay::run(&state, std::io::stdin().lock(), std::io::stdout()),
        Command::Init { rest: _ } => init::run(),
        #[cfg(target_arch = "x86_64")]
        Command::Launch { wall, command } if !wall.is_empty() => Err(wall::launch(&wall, &command)),
        Command::Launch { command, .. } => Err(ewan_lab::process::launch(&command)),
        #[cfg(target_arch = "x86_64")]
        Command::Walls => wall::tell(std::io::stdout()),
        Command::Ready { lab, node, patience_s } => ready::run(&lab, &node, std::time::Duration::from_secs(patience_s)),
        Command::Metrics { state, listen, link, once: _ } => {
            let destination = listen.map_or(metrics::Destination::StandardOutput, metrics::Destination::Listen);
            metrics::run(&state, link, &destination)
        }
        Command::JointMetrics { listen, once: _ } => {
            let destination = listen.map_or(metrics::Destination::StandardOutput, metrics::Destination::Listen);
            metrics::joint::run(&destination)
        }
        Command::PacketSockets { pid_file } => packet_sockets::run(&pid_file),
        Command::Offloads { state, on, off: _ } => ewan_lab::ethtool::run(&state, on),
        Command::Cards => ewan_lab::cards::tell(std::io::stdin(), std::io::stdout()),
        Command::Drops => ewan_lab::drops::tell(std::io::stdin(), std::io::stdout()),
        Command::Came { state, link } => ewan_lab::device::tell(&state, &link, std::io::stdout()),
        Command::LeftOn => ewan_lab::ethtool::tell(std::io::stdin(), std::io::stdout()),
        Command::Stretch { role } => stretch::run(role, std::io::stdin(), std::io::stdout()),
        Command::Timers { seconds, link_cpu, host_cpus } => {
            let duration = std::time::Duration::try_from_secs_f64(seconds);
            let duration = duration.map_err(|error| format!("--seconds: {error}"))?;
            let request = ewan_timers::Request::new(duration, link_cpu, host_cpus)?;
            ewan_timers::report(&request, &ewan_lab::qdisc::token_bucket, &spin, std::io::stdout())
        }
        Command::Spin { cpu, loaded, duration_ns } => {
            let spun = ewan_timers::spin_here(cpu, loaded, duration_ns)?;
            serde_json::to_writer(std::io::stdout(), &spun).map_err(|error| format!("writing what was found: {error}"))
        }
    }
}

/// This program once more, which spins.
fn spin(cpu: u32, loaded: bool, duration_ns: u64) -> Result<ewan_timers::SpinResult, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let mut program = std::process::Command::new(program);
    program.args(["spin", "--cpu", &cpu.to_string(), "--duration-ns", &duration_ns.to_string()]);
    program.args(loaded.then_some("--loaded"));
    ewan_timers::spin_beside(&mut program)
}
