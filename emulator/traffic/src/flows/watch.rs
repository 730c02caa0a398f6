//! Looks at flows while they run: at senders (TCP_INFO, and the state of their congestion control or rate control) and at
//! what receivers got, each at its instants.
//!
//! In: flows, from their launch on, and instants. Out: rows of series.csv, media.csv and goodput.csv, and the conditions that hold now.
//! Between flows nobody is woken.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::condition::Condition;
use super::records::{Goodput, MediaRow, SenderSample};
use super::{Flow, Received, Request};
use crate::congestion::Columns;
use crate::multipath::{self, SubflowSample};
use crate::socket::{Namespaces, Options};
use crate::table::Table;
use crate::tcp_info::Info;

const NEVER: u64 = u64::MAX;

pub(super) struct Watch {
    series: Table<SenderSample>,
    /// If a flow has several paths.
    subflows: Option<Table<SubflowSample>>,
    /// None: no flow is of media.
    media: Option<Table<MediaRow>>,
    goodput: Table<Goodput>,
    /// The interval at which the senders of each flow of the request are looked at; 0: never.
    asked: Vec<u64>,
    /// The number of each flow of the request, which rows have.
    numbers: Vec<u32>,
    /// The congestion control of each flow of the request.
    congestion: Vec<Option<String>>,
    /// The flows of the request that have several paths.
    multipath: BTreeSet<usize>,
    states: Columns,
    /// The step of each flow of the request.
    steps: Vec<Option<u32>>,
    /// Those that have not held.
    conditions: Vec<(Condition, Looks)>,
    samples: BTreeMap<u64, Looks>,
    bins: Looks,
    /// What the parts of the flows in `bins` had received.
    received: BTreeMap<usize, BTreeMap<u32, Received>>,
    binned_until_ns: u64,
}

/// At multiples of an interval, while there are flows.
struct Looks {
    every_ns: u64,
    next_ns: u64,
    flows: BTreeSet<usize>,
}

impl Looks {
    fn new(every_ns: u64) -> Self {
        Self { every_ns, next_ns: NEVER, flows: BTreeSet::new() }
    }

    /// The first look at a flow that starts at `after_ns` comes after that.
    fn begin(&mut self, index: usize, after_ns: u64) {
        self.flows.insert(index);
        self.next_ns = self.next_ns.min((after_ns / self.every_ns + 1) * self.every_ns);
    }

    /// In the live clock a busy machine may have missed some.
    fn passed(&mut self, now_ns: u64) {
        let missed = now_ns.saturating_sub(self.next_ns) / self.every_ns;
        self.next_ns = if self.flows.is_empty() { NEVER } else { self.next_ns + self.every_ns * (missed + 1) };
    }
}

impl Watch {
    pub fn create(request: &Request, namespaces: &Namespaces, out: &Path) -> Result<Self, String> {
        let asked = request.flows.iter().map(|flow| flow.sample_ns.unwrap_or(request.sample_ns));
        let states = states(request, namespaces)?;
        let multipath = request.flows.iter().enumerate().filter(|(_, flow)| flow.socket.multipath.is_some());
        let multipath: BTreeSet<usize> = multipath.map(|(place, _)| place).collect();
        let subflows = (!multipath.is_empty()).then(|| Table::create(&out.join("subflows.csv"))).transpose()?;
        Ok(Self {
            subflows,
            multipath,
            series: Table::with_more(&out.join("series.csv"), &states.names)?,
            media: request.has_media().then(|| Table::create(&out.join("media.csv"))).transpose()?,
            goodput: Table::create(&out.join("goodput.csv"))?,
            asked: asked.collect(),
            numbers: (0..).zip(&request.flows).map(|(place, flow)| flow.number(place)).collect(),
            congestion: request.flows.iter().map(|flow| flow.socket.congestion.clone()).collect(),
            states,
            steps: request.flows.iter().map(|flow| flow.step).collect(),
            conditions: request.conditions.iter().map(|each| (each.clone(), Looks::new(each.every_ns))).collect(),
            samples: BTreeMap::new(),
            bins: Looks::new(request.series_ns),
            received: BTreeMap::new(),
            binned_until_ns: 0,
        })
    }

    /// The next instant at which something is to be looked at.
    pub fn next_ns(&self) -> u64 {
        let conditions = self.conditions.iter().map(|(_, looks)| looks.next_ns);
        self.samples.values().map(|looks| looks.next_ns).chain(conditions).min().unwrap_or(NEVER).min(self.bins.next_ns)
    }

    /// From the launch of a flow on, which in the live clock may come after its start.
    pub fn begin(&mut self, index: usize, start_ns: u64, now_ns: i64) {
        let every_ns = self.asked[index];
        let after_ns = start_ns.max(now_ns.max(0) as u64);
        if every_ns > 0 {
            self.samples.entry(every_ns).or_insert_with(|| Looks::new(every_ns)).begin(index, after_ns);
        }
        let step = self.steps[index];
        for (_, looks) in self.conditions.iter_mut().filter(|(each, _)| step == Some(each.of)) {
            looks.begin(index, after_ns);
        }
        if self.bins.every_ns > 0 {
            self.bins.begin(index, after_ns);
            if self.received.is_empty() {
                self.binned_until_ns = self.bins.next_ns - self.bins.every_ns;
            }
            self.received.insert(index, BTreeMap::new());
        }
    }

    /// All that is due at `at_ns`; `now_ns` may be later. The steps of the conditions that hold, and count no more.
    pub fn look(&mut self, flows: &[Arc<dyn Flow>], at_ns: u64, now_ns: u64) -> Result<Vec<u32>, String> {
        if self.bins.next_ns == at_ns {
            self.count(flows, at_ns)?;
            self.bins.passed(now_ns);
        }
        for looks in self.samples.values_mut().filter(|looks| looks.next_ns == at_ns) {
            looks.flows.retain(|&index| !flows[index].ended());
            for &index in &looks.flows {
                let flow = (self.numbers[index], self.congestion[index].as_deref());
                let subflows = self.subflows.as_ref().filter(|_| self.multipath.contains(&index));
                sample((&self.series, subflows), &self.states, flow, &*flows[index], now_ns)?;
                if let Some((media, sample)) = self.media.as_ref().zip(flows[index].media()) {
                    media.add(&MediaRow { flow: flow.0, time_ns: now_ns, sample })?;
                }
            }
            looks.passed(now_ns);
        }
        Ok(self.met(flows, at_ns, now_ns))
    }

    /// The steps of the conditions that are looked at now and hold: for any sender.
    fn met(&mut self, flows: &[Arc<dyn Flow>], at_ns: u64, now_ns: u64) -> Vec<u32> {
        let mut met = Vec::new();
        let (states, congestion) = (&self.states, &self.congestion);
        self.conditions.retain_mut(|(condition, looks)| {
            if looks.next_ns != at_ns {
                return true;
            }
            looks.flows.retain(|&index| !flows[index].ended());
            let mut holds = false;
            for &index in &looks.flows {
                flows[index].senders(&mut |_, socket| {
                    holds = holds || condition.holds(states, &states.cells(congestion[index].as_deref(), &socket));
                });
            }
            looks.passed(now_ns);
            met.extend(holds.then_some(condition.step));
            !holds
        });
        met
    }

    /// When all flows have ended, what came since the last bin.
    pub fn finish(&mut self, flows: &[Arc<dyn Flow>]) -> Result<(), String> {
        let counted = if self.bins.next_ns == NEVER { Ok(()) } else { self.count(flows, self.bins.next_ns) };
        let subflows = self.subflows.as_ref().map_or(Ok(()), Table::flush);
        let media = self.media.as_ref().map_or(Ok(()), Table::flush);
        counted.and(self.series.flush()).and(subflows).and(media).and(self.goodput.flush())
    }

    /// What came in the bin that ends at `until_ns`; who has ended is not looked at again.
    fn count(&mut self, flows: &[Arc<dyn Flow>], until_ns: u64) -> Result<(), String> {
        let bin_ns = until_ns - self.binned_until_ns;
        self.binned_until_ns = until_ns;
        let mut result = Ok(());
        let (goodput, received, numbers) = (&self.goodput, &mut self.received, &self.numbers);
        self.bins.flows.retain(|&index| {
            let ended = flows[index].ended();
            let before = received.remove(&index).unwrap_or_default();
            let mut now = BTreeMap::new();
            flows[index].received(&mut |part, received| {
                let earlier = before.get(&part).copied().unwrap_or_default();
                let later = received.after(&earlier);
                now.insert(part, later);
                let delivered_bytes = later.delivered_bytes - earlier.delivered_bytes;
                let arrived_bytes = later.arrived_bytes.map(|bytes| bytes - earlier.arrived_bytes.unwrap_or(0));
                if delivered_bytes > 0 || arrived_bytes.unwrap_or(0) > 0 || !ended {
                    let flow = numbers[index];
                    let row = Goodput { flow, part, time_ns: until_ns, bin_ns, delivered_bytes, arrived_bytes };
                    keep(&mut result, goodput.add(&row));
                }
            });
            if !ended {
                received.insert(index, now);
            }
            !ended
        });
        result
    }
}

/// The columns of those congestion controls that flows have whose senders are looked at. Refuses conditions of what
/// this kernel does not tell.
fn states(request: &Request, namespaces: &Namespaces) -> Result<Columns, String> {
    let (mut columns, layouts) = (Columns::default(), &request.congestion_state);
    for flow in request.flows.iter().filter(|flow| flow.work.is_tcp()) {
        let (Some(control), Some(end)) = (&flow.socket.congestion, flow.ends().first().copied()) else { continue };
        let conditions = request.conditions.iter().filter(|each| flow.step == Some(each.of));
        let seen = flow.sample_ns.unwrap_or(request.sample_ns) > 0 || conditions.clone().next().is_some();
        if seen && Columns::may_have(control, layouts) && !columns.has(control) {
            let options = Options { congestion: Some(control.clone()), ..Options::default() };
            columns.add(control, layouts, &namespaces.tcp(end, &options)?);
        }
        for each in conditions {
            each.check(control, &columns).map_err(|why| format!("flow {:?}: {why}", flow.name))?;
        }
    }
    Ok(columns)
}

/// `sender`: the flow's number and its congestion control; the second table is of a flow with several paths.
fn sample(
    (series, subflows): (&Table<SenderSample>, Option<&Table<SubflowSample>>),
    states: &Columns,
    sender: (u32, Option<&str>),
    flow: &dyn Flow,
    time_ns: u64,
) -> Result<(), String> {
    let (number, control) = sender;
    let mut result = Ok(());
    flow.senders(&mut |part, socket| {
        if let Some(table) = subflows {
            multipath::look(&socket, number, part, time_ns, &mut |each| keep(&mut result, table.add(each)));
        }
        let info = if subflows.is_some() { multipath::info(&socket) } else { Info::of(&socket) };
        if let Ok(info) = info {
            let state = states.cells(control, &socket);
            keep(&mut result, series.add(&SenderSample { flow: number, part, sample: info.sample(time_ns), state }));
        }
    });
    result
}

/// The first error.
fn keep(result: &mut Result<(), String>, next: Result<(), String>) {
    if result.is_ok() {
        *result = next;
    }
}
