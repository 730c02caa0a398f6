//! Changes of links at their times after T0.
//!
//! In: the events of a program, checked against the plan before anything runs. Out: changed links, links that are down or
//! up again, and events.json, which says of each when it was made, and when the routes had followed. A lab that outlives
//! the program gets its links back as they were.

use std::collections::BTreeMap;
use std::path::Path;

use ewan_model::Change;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::steps::Steps;
use ewan_lab::carrier;
use ewan_lab::converge::{self, Watch};
use ewan_lab::links::{self, Links};
use ewan_plan::{Plan, Routing, HEADINGS};

pub const FORMAT: &str = "ewan-events/1";

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// From T0.
    at_ns: u64,
    link: String,
    /// Of a change.
    #[serde(default)]
    direction: String,
    #[serde(default)]
    change: Change,
    /// The link goes down (true) or comes back (false), instead of a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    down: Option<bool>,
    /// It waits until these steps have ended: its time counts from then, not from T0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u32>,
    /// In words, what it waits for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    when: String,
}

impl Event {
    /// Of an event that takes a link down the direction means nothing.
    fn target(&self, plan: &Plan) -> Result<Target, String> {
        let far = plan.tunnels.iter().position(|tunnel| tunnel.link == self.link);
        match far.filter(|_| self.down.is_some() && plan.links.iter().all(|link| link.name != self.link)) {
            Some(far) => Ok(Target::Far(far)),
            None => {
                let heading = if self.down.is_some() { HEADINGS[0] } else { &self.direction };
                links::find(plan, &self.link, heading).map(|(number, heading)| Target::Link(number, heading))
            }
        }
    }
}

/// What changes.
#[derive(Clone, Copy)]
enum Target {
    /// A link, one direction of it.
    Link(usize, usize),
    /// The end of a link whose emulator is on another machine: a tunnel.
    Far(usize),
}

/// Whether all can be made, one after the other, on links as the plan has them; those that wait after all others.
pub fn check(events: &[Event], plan: &Plan) -> Result<(), String> {
    let mut now: Vec<_> = plan.links.iter().map(|link| [0, 1].map(|heading| link.direction(heading).clone())).collect();
    for event in ordered(events) {
        let at = |error: String| format!("event at {} ns on {} {}: {error}", event.at_ns, event.link, event.direction);
        let target = event.target(plan).map_err(at)?;
        let Target::Link(number, heading) = target else { continue };
        if event.down.is_some() {
            continue;
        }
        let direction = &mut now[number][heading];
        links::refusal(&plan.links[number], direction, &event.change).map_err(at)?;
        *direction = event.change.applied(direction);
    }
    Ok(())
}

fn ordered(events: &[Event]) -> Vec<Event> {
    let mut events = events.to_vec();
    events.sort_by_key(|event| (!event.after.is_empty(), event.at_ns));
    events
}

/// An event and what became of it.
#[derive(Serialize)]
struct EventRecord {
    #[serde(flatten)]
    event: Event,
    /// From T0; none: it was not made.
    applied_ns: Option<i64>,
    error: Option<String>,
    /// From T0, after a link went down or came back: when routes again carried every pair that links join, where a
    /// protocol finds them; none: not while the program ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    recovered_ns: Option<i64>,
    #[serde(skip)]
    target: Target,
    /// From T0; none: what it waits for has not come.
    #[serde(skip)]
    due_ns: Option<u64>,
    /// What takes it back.
    #[serde(skip)]
    undo: Option<Change>,
}

/// The events of a program, in the order of their times; those that wait come last.
pub struct Events<'a> {
    all: Vec<EventRecord>,
    /// The numbers of those whose time has come, in that order.
    made: Vec<usize>,
    plan: &'a Plan,
    state: &'a Path,
    /// Where a protocol finds routes and a link goes down or up.
    routes: Option<Watch>,
    /// From this one of `made` on, events wait for the routes to follow.
    follows: Option<usize>,
}

impl<'a> Events<'a> {
    /// `whole`: all of the lab is here, so that its routes can be followed.
    pub fn of(events: &[Event], plan: &'a Plan, state: &'a Path, whole: bool) -> Result<Self, String> {
        let made = |event: Event| {
            let target = event.target(plan)?;
            let due_ns = event.after.is_empty().then_some(event.at_ns);
            Ok(EventRecord { event, applied_ns: None, error: None, recovered_ns: None, target, due_ns, undo: None })
        };
        let all = ordered(events).into_iter().map(made).collect::<Result<_, String>>()?;
        let watched = whole && plan.routing != Routing::Static && events.iter().any(|event| event.down.is_some());
        let routes = watched.then(|| Watch::open(plan)).transpose()?;
        if let Some(routes) = &routes {
            routes.wake_by_signal()?;
        }
        Ok(Events { all, made: Vec::new(), plan, state, routes, follows: None })
    }

    /// When the next one is due, from T0.
    pub fn due_ns(&self) -> Option<u64> {
        self.next().and_then(|number| self.all[number].due_ns)
    }

    /// The number of the next one whose time is known.
    fn next(&self) -> Option<usize> {
        let known =
            (0..self.all.len()).filter(|number| self.all[*number].due_ns.is_some() && !self.made.contains(number));
        known.min_by_key(|number| self.all[*number].due_ns)
    }

    /// Steps ended: the times of events that waited for them are known; true when that is so for one.
    pub fn begin(&mut self, steps: &Steps) -> bool {
        let mut begun = false;
        for waiting in self.all.iter_mut().filter(|each| each.due_ns.is_none()) {
            let ended_ns = steps.all_ended(&waiting.event.after);
            waiting.due_ns = ended_ns.map(|at_ns| at_ns.max(0) as u64 + waiting.event.at_ns);
            begun |= ended_ns.is_some();
        }
        begun
    }

    /// Makes all that are due; `now` reads the time since T0.
    pub fn make(&mut self, links: &mut Links, now: impl Fn() -> i64) -> Result<(), String> {
        while let Some(number) =
            self.next().filter(|number| self.all[*number].due_ns.is_some_and(|due_ns| due_ns as i64 <= now()))
        {
            self.made.push(number);
            let made = &mut self.all[number];
            if let Some(down) = made.event.down {
                if let Err(error) = set_carrier(self.plan, self.state, made.target, !down) {
                    made.error = Some(error.clone());
                    return Err(format!("event at {} ns on {}: {error}", made.event.at_ns, made.event.link));
                }
                made.applied_ns = Some(now());
                if let Some(routes) = &mut self.routes {
                    routes.forget();
                    self.follows.get_or_insert(self.made.len() - 1);
                }
                continue;
            }
            let Target::Link(number, heading) = made.target else { continue };
            let undo = made.event.change.undone(links.direction(number, heading));
            match links.change(number, heading, &made.event.change) {
                Ok(()) => (made.applied_ns, made.undo) = (Some(now()), Some(undo)),
                Err(error) => {
                    made.error = Some(error.clone());
                    let (link, heading) = (&made.event.link, HEADINGS[heading]);
                    return Err(format!("event at {} ns on {link} {heading}: {error}", made.event.at_ns));
                }
            }
        }
        Ok(())
    }

    /// Looks whether the routes have followed the links that went down or came back.
    pub fn follow(&mut self, now: impl Fn() -> i64) -> Result<(), String> {
        let (Some(first), Some(routes)) = (self.follows, &mut self.routes) else { return Ok(()) };
        let seen_ns = now();
        if routes.look()?.settled() {
            for &number in &self.made[first..] {
                let made = &mut self.all[number];
                made.recovered_ns = made.event.down.map(|_| seen_ns);
            }
            self.follows = None;
        }
        Ok(())
    }

    /// When to look again, whatever is told until then.
    pub fn again_ns(&self, now_ns: i64) -> Option<u64> {
        self.follows.map(|_| (now_ns.max(0) as u64) + converge::AGAIN.as_nanos() as u64)
    }

    /// The links that went down or came back between two times after T0.
    pub fn moved(&self, since_ns: i64, until_ns: i64) -> Vec<&str> {
        let within = |made: &EventRecord| made.applied_ns.is_some_and(|at_ns| since_ns <= at_ns && at_ns <= until_ns);
        let moved = self.all.iter().filter(|made| made.event.down.is_some() && within(made));
        moved.map(|made| made.event.link.as_str()).collect()
    }

    /// How many carriers were changed by now.
    pub fn carriers(&self) -> usize {
        self.all.iter().filter(|made| made.event.down.is_some() && made.applied_ns.is_some()).count()
    }

    /// Takes all back, the last one first.
    pub fn undo(&self, links: &mut Links) -> Result<(), String> {
        let mut undone = Ok(());
        let down = carrier::down(self.state);
        let made = self.made.iter().map(|number| &self.all[*number]);
        let moved = made.clone().filter(|made| made.event.down.is_some() && made.applied_ns.is_some());
        let last: BTreeMap<&str, &EventRecord> = moved.map(|made| (made.event.link.as_str(), made)).collect();
        for (name, made) in last {
            let is_down = match made.target {
                Target::Link(..) => down.iter().any(|each| each == name),
                Target::Far(_) => made.event.down == Some(true),
            };
            if is_down {
                undone = undone.and(set_carrier(self.plan, self.state, made.target, true));
            }
        }
        for made in made.rev() {
            if let (Some(undo), Target::Link(number, heading)) = (&made.undo, made.target) {
                undone = undone.and(links.change(number, heading, undo));
            }
        }
        undone
    }

    pub fn write(&self, out: &Path) -> Result<(), String> {
        super::write(&out.join("events.json"), &json!({ "format": FORMAT, "events": self.all }))
    }
}

fn set_carrier(plan: &Plan, state: &Path, target: Target, up: bool) -> Result<(), String> {
    match target {
        Target::Link(number, _) => carrier::set(plan, state, &plan.links[number], up),
        Target::Far(number) => carrier::set_far(plan, &plan.tunnels[number], up),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/dumbbell-virtual.plan.json");
        let mut plan = ewan_plan::read(Path::new(golden)).expect("a golden plan");
        // Of these not every change can be made.
        plan.links[0].backend = ewan_plan::Backend::Kernel;
        plan
    }

    fn said(events: &str) -> String {
        let events: Vec<Event> = serde_json::from_str(events).expect("events");
        check(&events, &plan()).err().unwrap_or_default()
    }

    #[test]
    fn all_events_are_checked_before_any_is_made() {
        assert_eq!(said(r#"[{"at_ns": 5, "link": "core", "direction": "forward", "change": {"rate_bps": 8000}}]"#), "");
        assert_eq!(
            said(r#"[{"at_ns": 5, "link": "core", "down": true}, {"at_ns": 9, "link": "core", "down": false}]"#),
            ""
        );
        assert!(said(r#"[{"at_ns": 5, "link": "cor", "down": true}]"#).contains("has no link cor; it has core"));
        for (wrong, says) in [
            (r#""link": "cor", "direction": "forward", "change": {"rate_bps": 8000}"#, "has no link cor; it has core"),
            (r#""link": "core", "direction": "both", "change": {"rate_bps": 8000}"#, "write forward or backward"),
            (r#""link": "core", "direction": "forward", "change": {}"#, "nothing to change"),
            (r#""link": "core", "direction": "forward", "change": {"rate_bps": 1}"#, "rate_bps 1: write 8000"),
            (
                r#""link": "core", "direction": "forward", "change": {"loss": {"kind": "every_nth", "n": 3}}"#,
                "event at 5 ns on core forward: netem loses at random only",
            ),
        ] {
            let told = said(&format!(r#"[{{"at_ns": 5, {wrong}}}]"#));
            assert!(told.contains(says) && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn events_come_in_the_order_of_their_times() {
        let text = r#"[{"at_ns": 9, "link": "core", "direction": "forward", "change": {"rate_bps": 8000}},
                       {"at_ns": 3, "link": "core", "direction": "forward", "change": {"rate_bps": 9000}}]"#;
        let events: Vec<Event> = serde_json::from_str(text).expect("events");
        let plan = plan();
        assert_eq!(Events::of(&events, &plan, Path::new(""), true).expect("known links").due_ns(), Some(3));
    }

    #[test]
    fn an_event_that_waits_comes_so_long_after_what_it_waits_for() {
        let text = r#"[{"at_ns": 2, "link": "core", "direction": "forward", "change": {"rate_bps": 8000}, "after": [7]},
                       {"at_ns": 30, "link": "core", "direction": "forward", "change": {"rate_bps": 9000}}]"#;
        let events: Vec<Event> = serde_json::from_str(text).expect("events");
        let (plan, mut steps) = (plan(), Steps::default());
        let mut events = Events::of(&events, &plan, Path::new(""), true).expect("known links");
        assert_eq!((events.begin(&steps), events.due_ns()), (false, Some(30)));
        steps.end(7, 20);
        assert_eq!((events.begin(&steps), events.due_ns(), events.begin(&steps)), (true, Some(22), false));
    }

    #[test]
    fn links_that_moved_between_two_times_are_told() {
        let text = r#"[{"at_ns": 3, "link": "core", "down": true},
                       {"at_ns": 5, "link": "core", "direction": "forward", "change": {"rate_bps": 9000}},
                       {"at_ns": 9, "link": "core", "down": false}]"#;
        let events: Vec<Event> = serde_json::from_str(text).expect("events");
        let plan = plan();
        let mut events = Events::of(&events, &plan, Path::new(""), true).expect("known links");
        assert_eq!(events.moved(0, 100), Vec::<&str>::new(), "none was made yet");
        (events.all[0].applied_ns, events.all[1].applied_ns) = (Some(4), Some(6));
        assert_eq!(events.moved(0, 5), ["core"]);
        assert_eq!(events.moved(5, 100), Vec::<&str>::new(), "a change moves no link, and the last was not made");
    }
}
