//! `ewan-node`: the one binary that runs on the host, in any image and as init of the virtual kernel.
//!
//! This file reads the command line and calls the part that does the work; errors come back as one line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod apply;
mod batch;
mod down;
mod ethtool;
mod exec;
mod fault;
mod hosts;
mod init;
mod kernel_files;
mod layout;
mod links;
mod manifest;
mod namespace;
mod netlink;
mod plan;
mod process;
mod qdisc;
mod rtnl;
mod signals;

#[derive(Parser)]
#[command(name = "ewan-node", version, about)]
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
        /// Sleep between frames: for a kernel with virtual time
        #[arg(long)]
        sleep: bool,
    },
    /// Send and receive probes between namespaces: a request on standard input, its answer on standard output
    Probe,
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
    },
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
    /// Measure this host's clocks and timers
    Timers,
    /// The first process of the virtual kernel: makes a lab, runs a program, powers off
    #[command(hide = true)]
    Init {
        /// What the kernel adds of its own
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<std::ffi::OsString>,
    },
    /// Become the virtual kernel, not beyond the death of who started it
    #[command(hide = true)]
    Launch {
        #[arg(last = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<(), String> {
    match command {
        Command::Apply { plan, state } => apply::run(&plan, &state),
        Command::Down { state } => down::run(&state),
        Command::Exec { state, node, command } => exec::run(&state, &node, &command),
        Command::Link { state, spinner, id: _, sleep } => {
            ewan_emulator::datapath::run(spinner_config(&state, spinner, sleep)?)
        }
        Command::Probe => ewan_generator::probe::run(std::io::stdin(), std::io::stdout()),
        Command::Traffic { request, out, begin_ns } => ewan_generator::traffic::run(&request, &out, begin_ns),
        Command::Batch { state, program, out } => batch::run(&state, &program, &out),
        Command::Change { state, link, direction } => links::run(&state, &link, &direction, std::io::stdin()),
        Command::Init { rest: _ } => init::run(),
        Command::Launch { command } => Err(process::launch(&command)),
        Command::Timers => ewan_timers::report(std::io::stdout()),
    }
}

fn spinner_config(
    state: &std::path::Path,
    index: usize,
    sleep: bool,
) -> Result<ewan_emulator::datapath::SpinnerConfig, String> {
    let plan = plan::read(&state.join("plan.json"))?;
    let spinner = plan.spinners.get(index).ok_or_else(|| format!("the plan has no spinner {index}"))?;
    let links = spinner.links.iter().map(|name| {
        let link =
            plan.links.iter().find(|link| link.name == *name).ok_or_else(|| format!("the plan has no link {name}"))?;
        Ok(ewan_emulator::datapath::LinkConfig {
            name: link.name.clone(),
            netns: plan.netns_path(&link.node),
            port_a: link.port_a.clone(),
            port_b: link.port_b.clone(),
            mtu: plan.mtu(&link.a)?,
            forward: link.forward.clone(),
            backward: link.backward.clone(),
        })
    });
    Ok(ewan_emulator::datapath::SpinnerConfig {
        cpu: spinner.cpu,
        control_cpus: plan.host_cpus.clone(),
        control_socket: state.join(format!("spinner-{index}.sock")),
        links: links.collect::<Result<_, String>>()?,
        sleep,
    })
}
