//! The emulated links of a lab that is up, whatever emulates them: what they are now, their counters, changes.
//!
//! In: the lab's plan and state directory. Out: per link and direction its counters, and a change made at once. A spinner
//! keeps the changes of its links itself; those of the kernel's links are in the state directory (CHANGES), one JSON
//! object a line, so that the next who changes a link knows what it is.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use ewan_datapath::client::{self, Client};
use ewan_model::config::Direction;
use ewan_model::{Change, ClassReport, DirectionReport, FlowReport};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::{json, Value};

use crate::carrier;
use crate::device::Device;
use crate::down;
use crate::journal::Journal;
use crate::qdisc::{self, KernelLink, LinkCounters};
use ewan_plan::{kernel_link, Backend, Link, Plan, HEADINGS};

const CHANGES: &str = "changes.jsonl";
/// Time for a spinner to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Of one direction, since the lab came up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub dropped_packets: u64,
    pub lost_packets: u64,
    /// Taken out of the queue to be sent.
    pub served_packets: u64,
    /// The time that packets waited in the queue, summed over packets; none: the link does not count it.
    pub waited_ns: Option<u64>,
    /// Marked with Congestion Experienced by the queue; none: the link does not count it.
    pub marked_packets: Option<u64>,
    /// Came to the link, and copies that it made of those; none: the link does not count them.
    pub in_packets: Option<u64>,
    pub duplicated_packets: Option<u64>,
    /// Waiting now; without the packet in service.
    pub queue_packets: u64,
    pub queue_bytes: u64,
    /// Of a queue with classes, in their order.
    pub classes: Vec<ClassReport>,
}

pub struct Links<'a> {
    plan: &'a Plan,
    /// In the plan's order: forward and backward as they are now, and how often each was changed.
    now: Vec<Now>,
    kernel: HashMap<&'a str, KernelLink<'a>>,
    spinners: Vec<Spinner<'a>>,
    devices: Vec<Device<'a>>,
    /// Of the kernel's links.
    journal: Journal,
}

impl<'a> Links<'a> {
    pub fn open(plan: &'a Plan, state: &Path) -> Result<Self, String> {
        let kernel = qdisc::open(plan)?.into_iter().map(|open| (open.name(), open)).collect();
        let spinners = plan.spinners.iter().enumerate();
        let spinners = spinners.map(|(number, spinner)| Spinner::connect(state, number, &spinner.links));
        let whole = |link: &Link| [0, 1].map(|heading| (link.direction(heading).clone(), 0));
        let mut links = Links {
            plan,
            now: plan.links.iter().map(whole).collect(),
            kernel,
            spinners: spinners.collect::<Result<_, String>>()?,
            devices: Device::open_all(plan, state)?,
            journal: Journal::of(&state.join(CHANGES)),
        };
        links.catch_up()?;
        Ok(links)
    }

    /// Learns what was changed since the lab came up.
    fn catch_up(&mut self) -> Result<(), String> {
        let mut past: Vec<ChangeEntry> = self.journal.news()?;
        for spinner in &mut self.spinners {
            let answer: Changes = spinner.ask(&json!({"command": "changes"}))?;
            past.extend(answer.changes);
        }
        for device in &mut self.devices {
            let answer: Changes = device.ask(&json!({"command": "changes"}))?;
            past.extend(answer.changes);
        }
        note_all(&mut self.now, self.plan, &past)
    }

    /// Changes one direction now. Errors: the link does not answer, or refuses.
    pub fn change(&mut self, number: usize, heading: usize, change: &Change) -> Result<(), String> {
        let link = &self.plan.links[number];
        let request = json!({ "link": link.name, "direction": HEADINGS[heading] });
        if let Some(open) = self.kernel.get(link.name.as_str()) {
            // Others may change it too: what they did is known before, and what we did is written down after.
            let mut held = self.journal.hold()?;
            note_all(&mut self.now, self.plan, &held.news::<ChangeEntry>()?)?;
            let (now, times) = &self.now[number][heading];
            open.change(heading, now, change, *times)?;
            if !change.only_counts() {
                held.append(&merged(request, json!({ "change": change })))?;
            }
        } else if let Some(device) = self.devices.iter_mut().find(|device| device.name() == link.name) {
            device.ask::<Value>(&merged(merged(json!({ "command": "set" }), request), json!(change)))?;
        } else {
            let served = self.spinners.iter_mut().find(|spinner| spinner.links.contains(&link.name));
            let spinner = served.ok_or_else(|| format!("link {}: no spinner of the plan serves it", link.name))?;
            let request = merged(merged(json!({ "command": "set" }), request), json!(change));
            spinner.ask::<Value>(&request).map_err(|error| format!("link {}: {error}", link.name))?;
        }
        if !change.only_counts() {
            note(&mut self.now, number, heading, change);
        }
        Ok(())
    }

    /// As it is now.
    pub fn direction(&self, number: usize, heading: usize) -> &Direction {
        &self.now[number][heading].0
    }

    /// What each spinner of the plan, in its order, answers to `stats`; `T` is what the caller reads of it.
    pub fn ask_spinners<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, String> {
        self.spinners.iter_mut().map(|spinner| spinner.ask(&json!({"command": "stats"}))).collect()
    }

    /// The counters of each flow in both directions of each link of these numbers; none of a link that counts no flows.
    pub fn flows(&mut self, numbers: &[usize]) -> Result<Vec<[Vec<FlowReport>; 2]>, String> {
        let asked = json!({"command": "flows"});
        let of_spinners = numbers.iter().any(|number| !self.plan.links[*number].is_of_kernel());
        let mut answers = HashMap::new();
        for spinner in self.spinners.iter_mut().filter(|_| of_spinners) {
            let answer: FlowAnswer = spinner.ask(&asked)?;
            answers.extend(answer.links);
        }
        let of = |number: &usize| {
            let name = &self.plan.links[*number].name;
            match self.kernel.get(name.as_str()) {
                Some(open) => open.flows(),
                None => Ok(answers.remove(name).map_or_else(Default::default, |way| [way.forward, way.backward])),
            }
        };
        numbers.iter().map(of).collect()
    }

    /// All links in the plan's order, forward and backward; none where a link's queueing disciplines were replaced.
    pub fn counts(&mut self) -> Result<Vec<[Option<Counts>; 2]>, String> {
        let mut answers = HashMap::new();
        for answer in self.ask_spinners::<Stats>()? {
            answers.extend(answer.links);
        }
        let devices = &self.devices;
        let counts = self.plan.links.iter().map(|link| match self.kernel.get(link.name.as_str()) {
            Some(open) => Ok(open.counters()?.map(|way| way.map(Counts::from))),
            None if link.backend == Backend::Hardware => {
                let device = devices.iter().find(|device| device.name() == link.name);
                device.map_or(Ok([None, None]), Device::counts)
            }
            None => {
                let found = answers.get(&link.name);
                let found = found.ok_or_else(|| format!("link {}: its spinner tells nothing of it", link.name))?;
                Ok([&found.forward, &found.backward].map(|way| Some(Counts::from(way))))
            }
        });
        counts.collect()
    }
}

type Now = [(Direction, u64); 2];

fn note_all(now: &mut [Now], plan: &Plan, past: &[ChangeEntry]) -> Result<(), String> {
    for each in past {
        let (number, heading) = find(plan, &each.link, &each.direction)?;
        note(now, number, heading, &each.change);
    }
    Ok(())
}

fn note(now: &mut [Now], number: usize, heading: usize, change: &Change) {
    let (direction, times) = &mut now[number][heading];
    *direction = change.applied(direction);
    *times += 1;
}

/// Changes one direction of a link of a lab that is up, as JSON on `input` says.
pub fn run(state: &Path, link: &str, direction: &str, input: impl std::io::Read) -> Result<(), String> {
    let plan = ewan_plan::read(&state.join("plan.json"))?;
    let (number, heading) = find(&plan, link, direction)?;
    let change: Change = serde_json::from_reader(input).map_err(|error| format!("link {link}: {error}"))?;
    let mut links = Links::open(&plan, state)?;
    let now = links.direction(number, heading);
    refusal(&plan.links[number], now, &change).map_err(|error| format!("link {link} {direction}: {error}"))?;
    links.change(number, heading, &change)
}

/// links.json: what the links counted since the lab came up; and why some are left out.
pub fn record(plan: &Plan, state: &Path, out: &Path) -> Result<Vec<String>, String> {
    let spinners: Vec<_> = (0..plan.spinners.len()).map(|number| down::last_stats(state, number)).collect();
    let (links, left_out) = qdisc::statistics(plan)?;
    let path = out.join("links.json");
    let mut told = json!({ "format": "ewan-links/1", "links": links, "spinners": spinners });
    let down = carrier::down(state);
    if !down.is_empty() {
        told["down"] = json!(down);
    }
    let text = format!("{told:#}\n");
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(left_out)
}

/// A link's number in the plan, and 0 for forward or 1 for backward.
pub fn find(plan: &Plan, link: &str, direction: &str) -> Result<(usize, usize), String> {
    let number = plan.links.iter().position(|known| known.name == link);
    let names = || plan.links.iter().take(10).map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
    let number = number.ok_or_else(|| format!("lab {} has no link {link}; it has {}", plan.lab, names()))?;
    let heading = HEADINGS.iter().position(|heading| *heading == direction);
    let heading = heading.ok_or_else(|| format!("link {link}: direction {direction:?}: write forward or backward"))?;
    Ok((number, heading))
}

/// Why a link cannot become so while it runs.
pub fn refusal(link: &Link, now: &Direction, change: &Change) -> Result<(), String> {
    change.check_for(now)?;
    match link.backend {
        // What a device can its keeper knows.
        Backend::User | Backend::Ewan | Backend::Hardware => Ok(()),
        Backend::Kernel | Backend::Tbf => {
            kernel_link::refusal(now, &change.applied(now)).map_or(Ok(()), |why| Err(why.to_owned()))
        }
    }
}

fn merged(mut object: Value, more: Value) -> Value {
    if let (Value::Object(into), Value::Object(more)) = (&mut object, more) {
        into.extend(more);
    }
    object
}

/// A spinner that is connected, and the links that it serves.
struct Spinner<'a> {
    number: usize,
    links: &'a [String],
    client: Client,
}

impl<'a> Spinner<'a> {
    fn connect(state: &Path, number: usize, links: &'a [String]) -> Result<Self, String> {
        let client = Client::connect(&client::socket(state, number), ANSWER);
        let client = client.map_err(|error| dead(number, &error))?;
        Ok(Spinner { number, links, client })
    }

    /// The error of a refusal is the spinner's own.
    fn ask<T: DeserializeOwned>(&mut self, request: &Value) -> Result<T, String> {
        self.client.ask(request).map_err(|error| match error {
            client::Error::Refused(why) => why,
            error => dead(self.number, &error),
        })
    }
}

fn dead(number: usize, error: &dyn std::fmt::Display) -> String {
    format!("spinner {number} does not answer, its links are dead: {error}")
}

#[derive(Deserialize)]
struct Changes {
    changes: Vec<ChangeEntry>,
}

/// A change that was made.
#[derive(Deserialize)]
struct ChangeEntry {
    link: String,
    direction: String,
    change: Change,
}

#[derive(Deserialize)]
struct FlowAnswer {
    links: HashMap<String, LinkFlows>,
}

#[derive(Deserialize)]
struct LinkFlows {
    forward: Vec<FlowReport>,
    backward: Vec<FlowReport>,
}

#[derive(Deserialize)]
struct Stats {
    links: HashMap<String, LinkStats>,
}

#[derive(Deserialize)]
struct LinkStats {
    forward: DirectionReport,
    backward: DirectionReport,
}

impl From<&DirectionReport> for Counts {
    fn from(way: &DirectionReport) -> Self {
        let drops = &way.drops;
        Counts {
            sent_packets: way.out_packets,
            sent_bytes: way.out_bytes,
            dropped_packets: drops.queue_full + drops.aqm + drops.ack_filtered + drops.store_full + drops.cut,
            lost_packets: drops.loss + drops.blackhole + drops.policed,
            served_packets: way.served_packets,
            waited_ns: Some(way.waited_ns),
            marked_packets: Some(way.ce_packets),
            in_packets: Some(way.in_packets),
            duplicated_packets: Some(way.duplicated_packets),
            queue_packets: way.queue_packets,
            queue_bytes: way.queue_bytes,
            classes: way.classes.clone(),
        }
    }
}

impl From<LinkCounters> for Counts {
    fn from(way: LinkCounters) -> Self {
        match way {
            LinkCounters::Kernel(way) => Counts::from(way),
            LinkCounters::Model(way) => Counts::from(&way.report),
        }
    }
}

impl From<qdisc::LinkStatistics> for Counts {
    fn from(way: qdisc::LinkStatistics) -> Self {
        Counts {
            sent_packets: way.sent_packets,
            sent_bytes: way.sent_bytes,
            dropped_packets: way.dropped_queue,
            lost_packets: way.dropped_impair_or_limit,
            served_packets: way.served_packets,
            waited_ns: way.waited_ns,
            marked_packets: way.marked_packets,
            in_packets: None,
            duplicated_packets: None,
            queue_packets: way.queue_packets,
            queue_bytes: way.queue_bytes,
            classes: Vec::new(),
        }
    }
}
