//! Runs link models on real packets: one thread spins on a CPU of its own and serves many links, a second answers
//! the control socket, the first (which called `run`) waits for the signal to stop.

mod arena;
mod changes;
pub mod client;
mod control;
mod error;
mod events;
pub mod faults;
mod guarded;
mod histogram;
mod interfaces;
mod lane;
mod memory;
mod naps;
pub mod packet;
pub mod port;
#[cfg(all(test, address_sanitizer))]
mod sanitizer_tests;
mod series;
mod shared;
pub mod sharing;
mod spinner;
mod stamps;

/// What `guarded` is made of; its test puts loom's in their place.
mod atomic {
    pub use std::sync::atomic::{fence, AtomicU64, Ordering};
}

use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ewan_system::clock::Clock;
use ewan_system::signals::{Signal, Signals};
use ewan_system::{namespace, schedule, Context};

use arena::Arena;
use control::Control;
pub use error::{Error, Result};
use ewan_model::config::Direction;
use packet::AfPacket;
use port::Port;
use shared::{DirectionState, Shared};
use sharing::Registration;
use spinner::Spinner;

/// One spinner: its CPU, and the links it serves.
pub struct SpinnerConfig {
    pub cpu: u32,
    /// Where the control thread may run.
    pub control_cpus: Vec<u32>,
    pub control_socket: PathBuf,
    pub links: Vec<LinkConfig>,
    /// It never sleeps, as with `EWAN_SCHED=spin`.
    pub always_spins: bool,
}

/// One link: two ports in the emulator node's namespace.
pub struct LinkConfig {
    pub name: String,
    pub netns: PathBuf,
    pub port_a: String,
    pub port_b: String,
    pub mtu: u32,
    /// From port a to port b.
    pub forward: Direction,
    pub backward: Direction,
    /// How much of the delay of each direction something else makes (`DirectionModel::leave_out`), in ns.
    pub elsewhere_ns: [u64; 2],
}

const OPENERS: usize = 64;
/// How long the first thread waits for a signal before it looks at the others.
const LOOK: Duration = Duration::from_millis(200);
/// Milliseconds of counters kept per direction; fewer where many directions share the memory.
const SERIES_MS: usize = 8192;
const SERIES_DIRECTIONS: usize = 64;
/// A spinner that is told to stop looks every millisecond; one that does not is stuck, and ends with the process.
const STOPS: Duration = Duration::from_secs(2);
/// Frames that came in and were not read yet, for all ports together.
const RINGS_BYTES: usize = 256 << 20;
/// Packet memory fetched before the first packet, over all directions.
const PREFAULT_BYTES: u64 = 128 << 20;

/// Serves the links until SIGTERM or SIGINT. The control socket appears when packets flow.
pub fn run(config: SpinnerConfig) -> Result<()> {
    if config.links.is_empty() {
        return Err(Error::NoLinks);
    }
    for link in &config.links {
        for (heading, direction) in [("forward", &link.forward), ("backward", &link.backward)] {
            ewan_model::check(direction).map_err(|reason| Error::Refused {
                link: link.name.clone(),
                heading,
                reason,
            })?;
        }
    }
    let signals = Signals::block(&[Signal::SIGTERM, Signal::SIGINT])?;
    if !config.control_cpus.is_empty() {
        // A container may have the spinner's CPU alone.
        if let Err(error) = schedule::keep_to(&config.control_cpus) {
            println!("control is not kept off the spinner's CPU: {error}");
        }
    }
    let clock = Clock::new();
    let opened = open_all(&config)?;

    let (mut ports, mut directions, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for (link, opened) in config.links.iter().zip(opened) {
        for port in &opened.facts {
            println!("{} {}: {}", link.name, port.interface, port.kind);
        }
        ports.extend(opened.ports);
        for (way, elsewhere_ns) in [&link.forward, &link.backward].into_iter().zip(link.elsewhere_ns) {
            directions.push((way.clone(), elsewhere_ns, arena(way, link.mtu, config.links.len())?));
        }
        let milliseconds = (SERIES_MS * SERIES_DIRECTIONS / (2 * config.links.len())).clamp(256, SERIES_MS);
        links.push(shared::Link {
            name: link.name.clone(),
            ended: Default::default(),
            ports: opened.facts,
            interfaces: opened.interfaces,
            directions: [&link.forward, &link.backward].map(|way| DirectionState::new(way.trace.says(), milliseconds)),
        });
    }
    if let Err(error) = schedule::lock_memory() {
        println!("memory is not locked: {error}");
    }
    let wanted = match Policy::from_environment()? {
        Policy::Fair if config.always_spins => Policy::Spin,
        asked => asked,
    };
    let turns = Turns::new(config.cpu);
    let shared = Arc::new(Shared::new(config.cpu, clock.source().name(), clock.now(), links)?);
    let give_way = || shared.give_way.store(wanted == Policy::Shared || turns.are_needed(), Relaxed);
    give_way();
    let (outbox, inbox) = changes::channel();
    let spinner = Spinner::new(clock, shared.clone(), ports, directions, inbox);
    let (cpu, state) = (config.cpu, shared.clone());
    let one_cpu = turns.one_cpu;
    // Who looks for a CPU of their own knows it by its name (labs/runtime/cpu.py).
    let thread = std::thread::Builder::new()
        .name(if wanted == Policy::Shared { "shared" } else { "spinner" }.into())
        .spawn(move || -> Result<Vec<Box<dyn Port>>> {
            schedule::keep_to(&[cpu])?;
            let policy = take_priority(wanted, one_cpu);
            println!("spinner on CPU {cpu}: {policy}, clock {}", state.clock);
            if let Ok(mut place) = state.policy.lock() {
                *place = policy;
            }
            Ok(spinner.run(wanted))
        })
        .attempting(|| "starting the spinner")?;
    let control = Control { clock, shared: shared.clone(), changes: Arc::new(Mutex::new(outbox)) };
    control::serve(control, &config.control_socket)?;

    while !thread.is_finished() && signals.wait(Some(LOOK)).is_none() {
        give_way();
    }
    shared.stop.store(true, Relaxed);
    shared.waker.wake();
    let until = Instant::now() + STOPS;
    while !thread.is_finished() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = std::fs::remove_file(&config.control_socket);
    if !thread.is_finished() {
        control::summary(&shared).iter().for_each(|line| println!("{line}"));
        return Err(Error::Stuck(STOPS.as_secs()));
    }
    let result = thread.join().unwrap_or_else(|_| Err(Error::Panicked("the spinner")));
    control::summary(&shared).iter().for_each(|line| println!("{line}"));
    close_all(result?);
    Ok(())
}

/// Who else spins on this CPU.
struct Turns {
    /// None where there is no place for it.
    registration: Option<Registration>,
    one_cpu: bool,
}

impl Turns {
    fn new(cpu: u32) -> Turns {
        let registration = Registration::new(cpu);
        if let Err(error) = &registration {
            println!("other spinners on CPU {cpu} are not seen: {error}");
        }
        Turns { registration: registration.ok(), one_cpu: schedule::cpus_online() == Some(1) }
    }

    fn are_needed(&self) -> bool {
        self.one_cpu || self.registration.as_ref().is_some_and(Registration::is_shared)
    }
}

/// How the spinner is scheduled, and whether it sleeps while it has nothing to do: `EWAN_SCHED=spin` never does; `fifo`
/// is for a CPU that the system keeps free of everything else; `shared` is for one on which others work who are not to
/// wait, and packets then leave when it is the spinner's turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Fair,
    Spin,
    RealTime,
    Shared,
}

impl Policy {
    fn from_environment() -> Result<Policy> {
        match std::env::var("EWAN_SCHED").as_deref() {
            Err(_) | Ok("" | "fair") => Ok(Policy::Fair),
            Ok("spin") => Ok(Policy::Spin),
            Ok("fifo") => Ok(Policy::RealTime),
            Ok("shared") => Ok(Policy::Shared),
            Ok(other) => Err(Error::Environment(format!("EWAN_SCHED={other}: write fair, spin, fifo or shared"))),
        }
    }
}

struct LinkPorts {
    ports: [Box<dyn Port>; 2],
    facts: [Arc<port::Facts>; 2],
    interfaces: interfaces::Interfaces,
}

/// On threads of their own, which enter the namespaces; the caller stays where it is. Many at once, because the
/// kernel lets each receive ring wait for a grace period of some 10 ms, which those that wait together share.
fn open_all(config: &SpinnerConfig) -> Result<Vec<LinkPorts>> {
    std::thread::scope(|scope| {
        let openers: Vec<_> = config
            .links
            .chunks(config.links.len().div_ceil(OPENERS))
            .map(|links| scope.spawn(|| links.iter().map(|link| open(link, config)).collect::<Vec<_>>()))
            .collect();
        let results = openers.into_iter().map(|opener| opener.join());
        results.flat_map(|result| result.unwrap_or_else(|_| vec![Err(Error::Panicked("opening the ports"))])).collect()
    })
}

/// Many at once for the same reason: each socket that closes waits for a grace period.
fn close_all(mut ports: Vec<Box<dyn Port>>) {
    let share = ports.len().div_ceil(OPENERS);
    std::thread::scope(|scope| {
        while !ports.is_empty() {
            let some = ports.split_off(ports.len().saturating_sub(share));
            scope.spawn(move || drop(some));
        }
    });
}

/// Leaves the calling thread in the link's namespace.
fn open(link: &LinkConfig, config: &SpinnerConfig) -> Result<LinkPorts> {
    let say = |source| Error::Port { link: link.name.clone(), source };
    let ring_bytes = RINGS_BYTES / (2 * config.links.len());
    namespace::enter_path(&link.netns).map_err(|error| say(error.into()))?;
    let port = |interface: &str| AfPacket::open(interface, link.mtu, ring_bytes).map_err(|error| say(error.into()));
    let ports: [Box<dyn Port>; 2] = [Box::new(port(&link.port_a)?), Box::new(port(&link.port_b)?)];
    let facts = [ports[0].facts(), ports[1].facts()];
    let interfaces = interfaces::Interfaces::open([&link.port_a, &link.port_b]).map_err(say)?;
    Ok(LinkPorts { ports, facts, interfaces })
}

fn arena(direction: &Direction, mtu: u32, links: usize) -> ewan_system::Result<Arena> {
    let prefault = direction.store_bytes.min(PREFAULT_BYTES / (2 * links as u64));
    Arena::new(direction.most_packets(), mtu as usize + ewan_model::frame::FRAME_BYTES_BEYOND_MTU, prefault as usize)
}

/// The best ordinary priority, not a real-time one: measured side by side, a thread under SCHED_FIFO or SCHED_RR that
/// never sleeps loses 50 ms at a stretch to the kernel's fair server as soon as anything else wants the CPU (before
/// Linux 6.12, to throttling whether or not anything does), and starves the kernel's own workers, which the whole
/// machine then waits for. At nice −20 others get their turn within milliseconds, and for as long as they need it.
fn take_priority(wanted: Policy, one_cpu: bool) -> String {
    if wanted == Policy::RealTime {
        return schedule::set_realtime(1).map_or_else(|error| format!("normal ({error})"), |()| "SCHED_FIFO".into());
    }
    if one_cpu || wanted == Policy::Shared {
        return format!("normal ({})", if one_cpu { "there is only one CPU" } else { "EWAN_SCHED=shared" });
    }
    schedule::raise_session();
    schedule::set_nice(-20).map_or_else(|error| format!("normal ({error})"), |()| "nice -20".into())
}
