//! What a trace says, and how far it has been followed: when the link is something else, and what it is then.
//!
//! Rows give the rate, the delay, the loss and the queue's limit from an instant on. Opportunities let waiting bytes leave,
//! each at its instant. A trace is made once; following it allocates nothing.

use alloc::boxed::Box;
use alloc::format;

use super::check::{probability, require, time, CheckResult, LONGEST_LIST, LONGEST_NS, MOST_BYTES};
use super::{rate, Change, Nanos};
use crate::config::{Discipline, Opportunity, Queue, Row, Trace};

/// Of one opportunity: a packet of mahimahi's.
pub const OPPORTUNITY_BYTES: u64 = 1504;

const SHORTEST_PERIOD_NS: Nanos = 1_000_000;
/// A day.
const LONGEST_PERIOD_NS: Nanos = 86_400_000_000_000;
/// Rows or opportunities of a period follow each other so closely at most, on average.
const CLOSEST_NS: Nanos = 1_000;
/// Of an instant.
const MOST_OPPORTUNITIES: u64 = 1 << 20;
const LEAST_MEAN_BPS: u128 = 8_000;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

impl Row {
    fn check(&self) -> CheckResult {
        let Row { at_ns, rate_bps, delay_ns, loss_ppb, limit_bytes } = *self;
        time("rows: at_ns", at_ns, 0, LONGEST_PERIOD_NS)?;
        rate_bps.filter(|rate| *rate > 0).map_or(Ok(()), rate::check).map_err(|why| format!("rows: {why}"))?;
        delay_ns.map_or(Ok(()), |delay| time("rows: delay_ns", delay, 0, LONGEST_NS))?;
        loss_ppb.map_or(Ok(()), |loss| probability("rows: loss_ppb", loss))?;
        let limit = limit_bytes.unwrap_or(1);
        require((1..=MOST_BYTES).contains(&limit), || format!("rows: limit_bytes {limit}: write 1 to {MOST_BYTES}"))
    }
}

impl Trace {
    /// Then the rate is no token bucket's.
    pub fn says_rate(&self) -> bool {
        match self {
            Trace::None {} => false,
            Trace::Rows { rows, .. } => rows.iter().any(|row| row.rate_bps.is_some()),
            Trace::Opportunities { .. } => true,
        }
    }

    /// Can it be followed on a link with this queue, and does whatever waits leave in the end?
    pub(super) fn check(&self, queue: &Queue) -> CheckResult {
        match self {
            Trace::None {} => Ok(()),
            Trace::Rows { period_ns, rows } => {
                count("rows", rows.len(), *period_ns)?;
                rows.iter().try_for_each(Row::check)?;
                require(rows[0].at_ns == 0, || format!("rows: the first at_ns is {}: write 0", rows[0].at_ns))?;
                let order = rows.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns);
                require(order, || "rows: at_ns must grow from row to row".into())?;
                let last = rows[rows.len() - 1].at_ns;
                require(*period_ns == 0 || *period_ns > last, || {
                    format!("period_ns {period_ns}: write 0 (the last row holds) or more than {last}")
                })?;
                for (name, has) in COLUMNS {
                    let whole = !rows.iter().any(has) || has(&rows[0]);
                    require(whole, || format!("rows: the first one has no {name}, which a later one has"))?;
                }
                let classes = matches!(queue.discipline, Discipline::Classes(_));
                require(!classes || rows[0].limit_bytes.is_none(), || {
                    "rows: limit_bytes: a queue of classes has a limit for each class".into()
                })?;
                rates_suffice(rows, *period_ns)
            }
            Trace::Opportunities { period_ns, opportunities } => {
                count("opportunities", opportunities.len(), *period_ns)?;
                require(*period_ns > 0, || "period_ns 0: opportunities repeat: write their period".into())?;
                let order = opportunities.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns);
                let last = opportunities[opportunities.len() - 1].at_ns;
                require(order && last <= *period_ns, || {
                    "opportunities: at_ns must grow from one to the next, up to period_ns".into()
                })?;
                let sane = |one: &Opportunity| (1..=MOST_OPPORTUNITIES).contains(&u64::from(one.count));
                require(opportunities.iter().all(sane), || {
                    format!("opportunities: count: write 1 to {MOST_OPPORTUNITIES}")
                })?;
                let count: u64 = opportunities.iter().map(|one| u64::from(one.count)).sum();
                let bits = u128::from(count) * u128::from(8 * OPPORTUNITY_BYTES);
                mean_suffices("opportunities", bits * NANOS_PER_SECOND / u128::from(*period_ns))
            }
        }
    }

    /// What a running link can therefore not be told.
    pub fn says(&self) -> TraceSettings {
        match self {
            Trace::None {} => TraceSettings::default(),
            Trace::Rows { rows, .. } => {
                let first = rows.first().copied().unwrap_or_default();
                TraceSettings {
                    anything: true,
                    departures: false,
                    rate: first.rate_bps.is_some(),
                    delay: first.delay_ns.is_some(),
                    loss: first.loss_ppb.is_some(),
                    limit: first.limit_bytes.is_some(),
                }
            }
            Trace::Opportunities { .. } => {
                TraceSettings { anything: true, departures: true, rate: true, ..TraceSettings::default() }
            }
        }
    }
}

/// Which settings of a link its trace says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceSettings {
    anything: bool,
    /// The instants at which packets leave.
    departures: bool,
    rate: bool,
    delay: bool,
    loss: bool,
    limit: bool,
}

impl TraceSettings {
    /// Does the change leave alone what the trace says?
    pub fn check(self, change: &Change) -> CheckResult {
        let Change { rate_bps, burst_bytes, aggregate, half_duplex, delay, loss, queue, restart_trace, .. } = change;
        require(self.anything || restart_trace.is_none(), || "restart_trace: the link has no trace".into())?;
        for (key, told, said) in [
            ("rate_bps", rate_bps.is_some(), self.rate),
            ("burst_bytes", burst_bytes.is_some_and(|bytes| bytes > 0), self.rate),
            ("aggregate", aggregate.is_some(), self.departures),
            ("half_duplex", half_duplex.is_some(), self.departures),
            ("delay", delay.is_some(), self.delay),
            ("loss", loss.is_some(), self.loss),
            ("queue", queue.is_some(), self.limit),
        ] {
            require(!(told && said), || format!("{key}: the link's trace says it: leave {key} out"))?;
        }
        Ok(())
    }
}

type Column = (&'static str, fn(&Row) -> bool);

const COLUMNS: [Column; 4] = [
    ("rate_bps", |row| row.rate_bps.is_some()),
    ("delay_ns", |row| row.delay_ns.is_some()),
    ("loss_ppb", |row| row.loss_ppb.is_some()),
    ("limit_bytes", |row| row.limit_bytes.is_some()),
];

fn count(key: &str, found: usize, period_ns: Nanos) -> CheckResult {
    require((1..=LONGEST_LIST).contains(&found), || format!("{key}: {found} of them: write 1 to {LONGEST_LIST}"))?;
    if period_ns == 0 {
        return Ok(());
    }
    time("period_ns", period_ns, SHORTEST_PERIOD_NS, LONGEST_PERIOD_NS)?;
    require(found as u64 <= period_ns / CLOSEST_NS, || {
        format!("{key}: {found} of them in a period_ns of {period_ns}: write one a microsecond at most")
    })
}

fn rates_suffice(rows: &[Row], period_ns: Nanos) -> CheckResult {
    if rows[0].rate_bps.is_none() {
        return Ok(());
    }
    let (mut rate, mut bits) = (0, 0);
    for (number, row) in rows.iter().enumerate() {
        rate = row.rate_bps.unwrap_or(rate);
        let end = rows.get(number + 1).map_or(period_ns, |next| next.at_ns);
        bits += u128::from(rate) * u128::from(end.saturating_sub(row.at_ns));
    }
    if period_ns == 0 {
        return require(rate > 0, || "rows: the last rate_bps holds for ever and is 0: write a rate".into());
    }
    mean_suffices("rows", bits / u128::from(period_ns))
}

fn mean_suffices(key: &str, mean_bps: u128) -> CheckResult {
    require(mean_bps >= LEAST_MEAN_BPS, || {
        format!("{key}: {mean_bps} bit/s on average: write at least {LEAST_MEAN_BPS} (8 kbit/s)")
    })
}

/// What happens at an instant.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Become(Row),
    /// So many bytes may leave.
    Deliver(u64),
}

#[derive(Debug)]
enum Script {
    Rows(Box<[Row]>),
    Opportunities(Box<[Opportunity]>),
}

/// A trace, and how far it has been followed.
#[derive(Debug)]
pub struct Player {
    script: Script,
    period_ns: Nanos,
    /// Of the period that is being followed.
    begin: Nanos,
    next: usize,
    says_rate: bool,
    least_delay: Option<Nanos>,
}

impl Player {
    /// None: the configuration has no trace.
    pub fn new(config: &Trace) -> Option<Self> {
        let (script, period_ns) = match config {
            Trace::Rows { period_ns, rows } if !rows.is_empty() => {
                (Script::Rows(rows.clone().into_boxed_slice()), *period_ns)
            }
            Trace::Opportunities { period_ns, opportunities } if !opportunities.is_empty() => {
                (Script::Opportunities(opportunities.clone().into_boxed_slice()), *period_ns)
            }
            _ => return None,
        };
        let least_delay = match &script {
            Script::Rows(rows) => rows.iter().filter_map(|row| row.delay_ns).min(),
            Script::Opportunities(_) => None,
        };
        Some(Player { script, period_ns, begin: 0, next: 0, says_rate: config.says_rate(), least_delay })
    }

    /// Begins anew.
    pub fn begin(&mut self, now: Nanos) {
        self.begin = now;
        self.next = 0;
    }

    pub fn delivers(&self) -> bool {
        matches!(self.script, Script::Opportunities(_))
    }

    /// Then the rate is no token bucket's.
    pub fn says_rate(&self) -> bool {
        self.says_rate
    }

    /// The shortest delay that a row sets.
    pub fn least_delay(&self) -> Option<Nanos> {
        self.least_delay
    }

    /// When the next step is; the greatest number: never.
    pub fn next_at(&self) -> Nanos {
        let at = match &self.script {
            Script::Rows(rows) => rows.get(self.next).map(|row| row.at_ns),
            Script::Opportunities(all) => all.get(self.next).map(|one| one.at_ns),
        };
        at.map_or(Nanos::MAX, |at| self.begin.saturating_add(at))
    }

    /// On an idle link what lies between two whole periods leaves nothing behind: goes on with the last whole one
    /// before `now`.
    pub fn skip_to(&mut self, now: Nanos) {
        if self.period_ns == 0 {
            return;
        }
        let periods = now.saturating_sub(self.begin) / self.period_ns;
        if periods > 1 {
            self.begin += (periods - 1) * self.period_ns;
            self.next = 0;
        }
    }

    /// The step at `next_at`.
    pub fn step(&mut self) -> Option<Step> {
        let (step, count) = match &self.script {
            Script::Rows(rows) => (rows.get(self.next).map(|row| Step::Become(*row)), rows.len()),
            Script::Opportunities(all) => {
                let deliver = |one: &Opportunity| Step::Deliver(OPPORTUNITY_BYTES * u64::from(one.count));
                (all.get(self.next).map(deliver), all.len())
            }
        };
        self.next += 1;
        if self.next >= count && self.period_ns > 0 {
            self.begin = self.begin.saturating_add(self.period_ns);
            self.next = 0;
        }
        step
    }
}
