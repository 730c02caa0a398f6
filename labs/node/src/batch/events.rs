//! Changes of links at their times after T0.
//!
//! In: the events of a program, checked against the plan before anything runs. Out: changed links, and events.json, which
//! says of each when it was made. A lab that outlives the program gets its links back as they were.

use std::path::Path;

use ewan_emulator::model::Change;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::links::{self, Links};
use crate::plan::{Plan, HEADINGS};

pub const FORMAT: &str = "ewan-events/1";

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// From T0.
    at_ns: u64,
    link: String,
    direction: String,
    change: Change,
}

/// Whether all can be made, one after the other, on links as the plan has them.
pub fn check(events: &[Event], plan: &Plan) -> Result<(), String> {
    let mut now: Vec<_> = plan.links.iter().map(|link| [0, 1].map(|heading| link.direction(heading).clone())).collect();
    for event in ordered(events) {
        let at = |error: String| format!("event at {} ns on {} {}: {error}", event.at_ns, event.link, event.direction);
        let (number, heading) = links::find(plan, &event.link, &event.direction).map_err(at)?;
        let direction = &mut now[number][heading];
        links::refusal(&plan.links[number], direction, &event.change).map_err(at)?;
        *direction = event.change.applied(direction);
    }
    Ok(())
}

fn ordered(events: &[Event]) -> Vec<Event> {
    let mut events = events.to_vec();
    events.sort_by_key(|event| event.at_ns);
    events
}

/// An event and what became of it.
#[derive(Serialize)]
struct Made {
    #[serde(flatten)]
    event: Event,
    /// From T0; none: it was not made.
    applied_ns: Option<i64>,
    error: Option<String>,
    #[serde(skip)]
    target: (usize, usize),
    /// What takes it back.
    #[serde(skip)]
    undo: Option<Change>,
}

/// The events of a program, in the order of their times.
pub struct Events {
    all: Vec<Made>,
    next: usize,
}

impl Events {
    pub fn of(events: &[Event], plan: &Plan) -> Result<Self, String> {
        let made = |event: Event| {
            let target = links::find(plan, &event.link, &event.direction)?;
            Ok(Made { event, applied_ns: None, error: None, target, undo: None })
        };
        Ok(Events { all: ordered(events).into_iter().map(made).collect::<Result<_, String>>()?, next: 0 })
    }

    /// When the next one is due, from T0.
    pub fn due_ns(&self) -> Option<u64> {
        self.all.get(self.next).map(|made| made.event.at_ns)
    }

    /// Makes all that are due; `now` reads the time since T0.
    pub fn make(&mut self, links: &mut Links, now: impl Fn() -> i64) -> Result<(), String> {
        while let Some(made) = self.all.get_mut(self.next).filter(|made| made.event.at_ns as i64 <= now()) {
            self.next += 1;
            let (number, heading) = made.target;
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

    /// Takes all back, the last one first.
    pub fn undo(&self, links: &mut Links) -> Result<(), String> {
        let mut undone = Ok(());
        for made in self.all.iter().rev() {
            if let Some(undo) = &made.undo {
                let (number, heading) = made.target;
                undone = undone.and(links.change(number, heading, undo));
            }
        }
        undone
    }

    pub fn write(&self, out: &Path) -> Result<(), String> {
        super::write(&out.join("events.json"), &json!({ "format": FORMAT, "events": self.all }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/dumbbell-virtual.plan.json");
        crate::plan::read(Path::new(golden)).expect("a golden plan")
    }

    fn said(events: &str) -> String {
        let events: Vec<Event> = serde_json::from_str(events).expect("events");
        check(&events, &plan()).err().unwrap_or_default()
    }

    #[test]
    fn all_events_are_checked_before_any_is_made() {
        assert_eq!(said(r#"[{"at_ns": 5, "link": "core", "direction": "forward", "change": {"rate_bps": 8000}}]"#), "");
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
        assert_eq!(Events::of(&events, &plan()).expect("known links").due_ns(), Some(3));
    }
}
