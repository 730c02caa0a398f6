//! The ends of probes that are on this machine, in step with the processes of other machines that have the others.
//!
//! In: a line of JSON after the other, each answered by one line, as whoever drives all processes needs them (`Order`
//! and `Answer`): what is here; then of each probe what it is, when it begins, and that everybody has sent everything.
//! Out: the halves of the probes, by this machine's clock (`half`). Ends with its input.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver, TryRecvError};
use std::thread;

use serde::{Deserialize, Serialize};

use super::lockstep::{Begin, Lockstep, Ports};
use super::observation::Observation;
use super::request::{Endpoint, Probe};
use crate::clock::{real_ns, Clock};
use crate::process;
use crate::socket::Namespaces;

pub const FORMAT: &str = "ewan-joint/1";
/// A probe that is to begin later than this was told so by a wrong clock.
const LATEST_BEGIN_NS: i64 = 60_000_000_000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Order {
    /// First of all: whose ends are here (paths of network namespaces), and where the probes' threads may run.
    Here {
        format: String,
        netns: HashSet<PathBuf>,
        cpus: Vec<u32>,
    },
    Probe {
        probe: Box<Probe>,
        run: u32,
    },
    /// All ends are open: their ports. `at_ns`: by this machine's CLOCK_REALTIME.
    Begin {
        at_ns: i64,
        ports: Ports,
    },
    /// Everybody has sent everything: what comes later than `drain_ns` from now will not come.
    End {},
    /// In place of the order that would come next: another machine could not do its part.
    Drop {},
}

/// `real_ns`: this machine's CLOCK_REALTIME when it answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Here { format: &'static str, real_ns: i64 },
    Ready { ports: Ports, longest_ns: u64, real_ns: i64 },
    Sent {},
    Half { half: Observation, real_ns: i64 },
    Failed { error: String },
    Dropped {},
}

/// Runs what comes on `input`. Errors are one line: an order that makes no sense.
pub fn run(input: impl Read + Send + 'static, output: impl Write) -> Result<(), String> {
    let mut session =
        Session { orders: listen(input), output, here: HashSet::new(), run: 0, longest_ns: 0, owed: false, over: None };
    let Some(first) = session.next()? else { return Ok(()) };
    let Order::Here { format, netns, cpus } = first else { return Err(misplaced(&first)) };
    if format != FORMAT {
        return Err(format!("orders of {format:?}, this ewan-node has {FORMAT:?}"));
    }
    process::prepare(&cpus, Clock::Live)?;
    let namespaces = Namespaces::open()?;
    session.here = netns;
    session.say(&Answer::Here { format: FORMAT, real_ns: real_ns() })?;
    while let Some(order) = session.next()? {
        let Order::Probe { probe, run } = order else { return Err(misplaced(&order)) };
        probe.check(Clock::Live).map_err(|what| format!("probe {:?}: {what}", probe.name()))?;
        (session.run, session.longest_ns) = (run, probe.longest_ns());
        let half = super::half_of(&namespaces, &probe, Clock::Live, &mut session);
        if !session.conclude(half)? {
            return Ok(());
        }
    }
    Ok(())
}

fn misplaced(order: &Order) -> String {
    let text = format!("{order:?}");
    format!("an order out of turn: {}", text.split(' ').next().unwrap_or_default())
}

/// The orders as they come; the last one is an error if the input ended by one.
fn listen(input: impl Read + Send + 'static) -> Receiver<Result<Order, String>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(input).lines() {
            let order = line
                .map_err(|error| format!("orders: {error}"))
                .and_then(|line| serde_json::from_str(&line).map_err(|error| format!("order: {error}")));
            let last = order.is_err();
            if sender.send(order).is_err() || last {
                return;
            }
        }
    });
    receiver
}

/// Why a probe will not come to its end.
#[derive(Debug)]
enum Abort {
    /// By a machine that could not do its part; we have said that we know.
    Dropped,
    /// The input ended.
    Left,
    /// What came is no order, or not the one that was expected.
    Nonsense(String),
}

struct Session<W> {
    orders: Receiver<Result<Order, String>>,
    output: W,
    here: HashSet<PathBuf>,
    /// Of the present probe.
    run: u32,
    longest_ns: u64,
    /// We said that we have sent all, and were not told yet that all have.
    owed: bool,
    over: Option<Abort>,
}

impl<W: Write> Session<W> {
    fn say(&mut self, answer: &Answer) -> Result<(), String> {
        let failed = |error| format!("answer: {error}");
        let mut line = serde_json::to_vec(answer).map_err(|error| format!("answer: {error}"))?;
        line.push(b'\n');
        self.output.write_all(&line).and_then(|()| self.output.flush()).map_err(failed)
    }

    /// None: the input has ended.
    fn next(&mut self) -> Result<Option<Order>, String> {
        self.orders.recv().map_or(Ok(None), |order| order.map(Some))
    }

    /// The same within a probe, where the end of the input is the probe's. The error is for nobody: `conclude` knows.
    fn within(&mut self, order: Option<Result<Order, String>>) -> Result<Order, String> {
        self.over = Some(match order {
            Some(Ok(Order::Drop {})) => {
                self.say(&Answer::Dropped {})?;
                Abort::Dropped
            }
            Some(Ok(order)) => return Ok(order),
            Some(Err(error)) => Abort::Nonsense(error),
            None => Abort::Left,
        });
        Err("over".into())
    }

    fn end(&mut self, order: Option<Result<Order, String>>) -> Result<(), String> {
        self.owed = false;
        match self.within(order)? {
            Order::End {} => Ok(()),
            order => {
                self.over = Some(Abort::Nonsense(misplaced(&order)));
                Err("over".into())
            }
        }
    }

    /// Says how the probe ended, when it is our turn; false: there is nobody any more.
    fn conclude(&mut self, half: Result<Observation, String>) -> Result<bool, String> {
        if self.owed {
            let order = self.orders.recv().ok();
            let _ = self.end(order);
        }
        match (self.over.take(), half) {
            (Some(Abort::Left), _) => return Ok(false),
            (Some(Abort::Nonsense(what)), _) => return Err(what),
            (Some(Abort::Dropped), _) => {}
            (None, Ok(half)) => self.say(&Answer::Half { half, real_ns: real_ns() })?,
            (None, Err(error)) => self.say(&Answer::Failed { error })?,
        }
        Ok(true)
    }
}

impl<W: Write> Lockstep for Session<W> {
    fn here(&self, end: &Endpoint) -> bool {
        self.here.contains(&end.netns)
    }

    fn begin(&mut self, ports: Ports) -> Result<Begin, String> {
        self.say(&Answer::Ready { ports, longest_ns: self.longest_ns, real_ns: real_ns() })?;
        let order = self.orders.recv().ok();
        match self.within(order)? {
            Order::Begin { at_ns, .. } if at_ns > real_ns() + LATEST_BEGIN_NS => {
                Err("it would begin later than in a minute: is this machine's clock right?".into())
            }
            Order::Begin { at_ns, ports } => Ok(Begin { at_ns, run: self.run, ports }),
            order => {
                self.over = Some(Abort::Nonsense(misplaced(&order)));
                Err("over".into())
            }
        }
    }

    fn sent(&mut self) -> Result<(), String> {
        self.owed = true;
        self.say(&Answer::Sent {})
    }

    fn all_sent(&mut self) -> Result<bool, String> {
        if !self.owed {
            return Ok(true);
        }
        let order = match self.orders.try_recv() {
            Ok(order) => Some(order),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => return Ok(false),
        };
        self.end(order).map(|()| true)
    }
}
