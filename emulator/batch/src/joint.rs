//! A program of which other machines run other parts: told when to begin and when to end, and telling how far this is.
//!
//! In: lines of JSON on standard input (`Order`), their end too. Out: lines of JSON on standard output (`Answer`). Whoever
//! drives all machines (extras/machines/joint_runs.py) chooses T0 by this machine's CLOCK_REALTIME when all are ready, ends all
//! when all have done their part, and passes on which steps ended. Input is read without a thread: this process starts
//! commands, and the kernel sends it SIGCHLD, for which it waits anyway, when there is something.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::time::Duration;

use ewan_system::clock::{gettime, monotonic_ns};
use ewan_system::signals::Signals;
use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use super::disturbances::Offset;

/// So often it is told that this machine is there.
const ALIVE_NS: i64 = 500_000_000;
/// T0 that is later than this was told by a wrong clock.
const LATEST_BEGIN_NS: i64 = 120_000_000_000;
/// Not in every libc crate.
const F_SETSIG: libc::c_int = 10;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// T0, by this machine's CLOCK_REALTIME.
    Begin { real_ns: i64 },
    /// All have done their part.
    End {},
    /// All are to end early.
    Interrupt {},
    /// A step of which other machines have parts ended, so long after T0.
    Step { step: u32, at_ns: i64 },
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// All but what needs T0 is made. `lead_ns`: how long before T0 it must be told; `real_ns`: CLOCK_REALTIME.
    Ready {
        lead_ns: u64,
        real_ns: i64,
    },
    /// So long after T0 this machine is there.
    Alive {
        at_ns: i64,
    },
    Step {
        step: u32,
        at_ns: i64,
    },
    /// So many changes of carriers were made here by now.
    Carriers {
        made: usize,
        at_ns: i64,
    },
    /// Nothing is left to do here.
    Over {
        at_ns: i64,
    },
    /// It ends here: no more is told.
    Ending {
        at_ns: i64,
    },
}

pub struct Joint {
    /// What came and is no whole line yet.
    begun: Vec<u8>,
    ended: bool,
    over: bool,
    carriers: usize,
    alive_ns: i64,
}

impl Joint {
    /// From now on whoever waits for SIGCHLD wakes when an order comes.
    pub fn open() -> Result<Self, String> {
        let say = |error: &dyn std::fmt::Display| format!("listening to orders: {error}");
        let input = std::io::stdin();
        for (command, value) in [(libc::F_SETOWN, nix::unistd::getpid().as_raw()), (F_SETSIG, libc::SIGCHLD)] {
            // SAFETY: numbers only, for a descriptor that is there.
            if unsafe { libc::fcntl(input.as_raw_fd(), command, value) } < 0 {
                return Err(say(&std::io::Error::last_os_error()));
            }
        }
        let flags = fcntl(&input, FcntlArg::F_GETFL).map_err(|error| say(&error))?;
        let flags = OFlag::from_bits_retain(flags) | OFlag::O_NONBLOCK | OFlag::O_ASYNC;
        fcntl(&input, FcntlArg::F_SETFL(flags)).map_err(|error| say(&error))?;
        Ok(Joint { begun: Vec::new(), ended: false, over: false, carriers: 0, alive_ns: 0 })
    }

    /// Says that all is ready, and waits for T0, on CLOCK_MONOTONIC.
    pub fn begin(&mut self, lead: Duration, signals: &Signals) -> Result<i64, String> {
        let real_ns = gettime(libc::CLOCK_REALTIME) as i64;
        self.say(&Answer::Ready { lead_ns: lead.as_nanos() as u64, real_ns })?;
        loop {
            let orders = self.orders()?;
            if let Some(order) = orders.into_iter().next() {
                let Order::Begin { real_ns } = order else { return Err("it was ended before it began".into()) };
                let begin_ns = real_ns - Offset::read().ns;
                let left_ns = begin_ns - monotonic_ns();
                if left_ns < lead.as_nanos() as i64 {
                    return Err(format!(
                        "T0 was told {:.3} s too late",
                        (lead.as_nanos() as i64 - left_ns) as f64 / 1e9
                    ));
                }
                if left_ns > LATEST_BEGIN_NS {
                    return Err("T0 would be later than in two minutes: is this machine's clock right?".into());
                }
                return Ok(begin_ns);
            }
            if self.ended {
                return Err("whoever drives this machine is gone".into());
            }
            if signals.wait(None).is_some_and(|came| came != Signal::SIGCHLD) {
                return Err("interrupted before it began".into());
            }
        }
    }

    /// The orders that came since the last call.
    pub fn orders(&mut self) -> Result<Vec<Order>, String> {
        let mut piece = [0; 4096];
        while !self.ended {
            match nix::unistd::read(std::io::stdin(), &mut piece) {
                Ok(0) => self.ended = true,
                Ok(length) => self.begun.extend_from_slice(&piece[..length]),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break,
                Err(_) => self.ended = true,
            }
        }
        let whole = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines: Vec<u8> = self.begun.drain(..whole).collect();
        let order = |line: &[u8]| serde_json::from_slice(line).map_err(|error| format!("order: {error}"));
        lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(order).collect()
    }

    /// Nobody drives this machine any more.
    pub fn left(&self) -> bool {
        self.ended
    }

    /// It ends here, whatever the others do: it is silent from now on.
    pub fn ending(&mut self, at_ns: i64) -> Result<(), String> {
        self.say(&Answer::Ending { at_ns })
    }

    /// Nothing is left to do here; told once.
    pub fn over(&mut self, at_ns: i64) -> Result<(), String> {
        if self.over {
            return Ok(());
        }
        self.over = true;
        self.say(&Answer::Over { at_ns })
    }

    /// Part of a step ended here.
    pub fn step(&mut self, step: u32, at_ns: i64) -> Result<(), String> {
        self.say(&Answer::Step { step, at_ns })
    }

    /// So many carriers were changed here: told when there are more than before.
    pub fn carriers(&mut self, made: usize, at_ns: i64) -> Result<(), String> {
        if made <= self.carriers {
            return Ok(());
        }
        self.carriers = made;
        self.say(&Answer::Carriers { made, at_ns })
    }

    /// Tells that this machine is there, when it is time to.
    pub fn alive(&mut self, now_ns: i64) -> Result<(), String> {
        if now_ns < self.alive_ns {
            return Ok(());
        }
        self.alive_ns = (now_ns / ALIVE_NS + 1) * ALIVE_NS;
        self.say(&Answer::Alive { at_ns: now_ns })
    }

    /// When to tell it next, from T0.
    pub fn due_ns(&self) -> u64 {
        self.alive_ns.max(0) as u64
    }

    /// What cannot be told is told to nobody: the end of the input says so.
    fn say(&mut self, answer: &Answer) -> Result<(), String> {
        let mut line = serde_json::to_vec(answer).map_err(|error| format!("answer: {error}"))?;
        line.push(b'\n');
        let mut output = std::io::stdout();
        let _ = output.write_all(&line).and_then(|()| output.flush());
        Ok(())
    }
}
