//! Commands that start when steps have ended, and traffic that waits for commands.
//!
//! In: a program; what ended when. Out: from when on the times of a command count. A step of commands has ended with the
//! last of them, however it ended; a step of traffic when the traffic says so.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// When each step ended, in ns from T0.
#[derive(Default)]
pub struct Steps {
    ended: BTreeMap<u32, i64>,
}

impl Steps {
    /// The first call for a step counts; true for that one.
    pub fn end(&mut self, step: u32, at_ns: i64) -> bool {
        if self.ended.contains_key(&step) {
            return false;
        }
        self.ended.insert(step, at_ns);
        true
    }

    /// When the last of these ended; none: one of them has not.
    pub fn all_ended(&self, steps: &[u32]) -> Option<i64> {
        let ends = steps.iter().map(|step| self.ended.get(step).copied());
        ends.collect::<Option<Vec<_>>>()?.into_iter().max()
    }
}

/// What the traffic's request says of steps: those whose ends it tells, and those whose ends it must be told.
pub fn exchanged(request: &Value) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let listed = |key: &str| request[key].as_array().map_or(&[][..], Vec::as_slice);
    let steps = |key: &str| listed(key).iter().filter_map(|step| step.as_u64()?.try_into().ok()).collect();
    (steps("told"), steps("elsewhere"))
}

/// Why commands and changes of links cannot wait as they say: nobody would tell of a step's end.
///
/// `others`: steps whose ends other machines tell.
pub fn check(
    commands: &[super::Command],
    events: &[super::Event],
    traffic: Option<&Value>,
    others: &[u32],
) -> Result<(), String> {
    let (told, elsewhere) = traffic.map(exchanged).unwrap_or_default();
    let own = commands.iter().filter(|each| each.ends_step()).filter_map(|each| each.step);
    let own: BTreeSet<u32> = own.chain(others.iter().copied()).collect();
    if let Some(step) = elsewhere.difference(&own).next() {
        return Err(format!("the traffic waits for step {step}, which no command is of"));
    }
    let waiting = commands.iter().map(|each| (format!("node {}: a command", each.node), &each.after));
    for (who, after) in waiting.chain(events.iter().map(|each| ("an event".to_owned(), &each.after))) {
        if let Some(step) = after.iter().find(|step| !own.contains(step) && !told.contains(step)) {
            return Err(format!("{who} waits for step {step}, whose end nobody tells"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_end_of_a_step_counts_and_the_last_of_several_steps() {
        let mut steps = Steps::default();
        assert!(steps.end(3, 50) && !steps.end(3, 80));
        assert_eq!(steps.all_ended(&[3, 4]), None);
        assert!(steps.end(4, 20));
        assert_eq!((steps.all_ended(&[3, 4]), steps.all_ended(&[4])), (Some(50), Some(20)));
    }

    #[test]
    fn a_step_whose_end_nobody_tells_is_refused() {
        let command = |step: u32, after: &[u32]| -> super::super::Command {
            let asked =
                json!({"node": "a", "argv": ["true"], "at_ns": 0, "service": false, "step": step, "after": after});
            serde_json::from_value(asked).expect("a command")
        };
        let traffic = json!({"told": [1], "elsewhere": [2]});
        assert_eq!(check(&[command(2, &[1]), command(3, &[2])], &[], Some(&traffic), &[]), Ok(()));
        assert_eq!(check(&[command(3, &[5])], &[], Some(&traffic), &[2, 5]), Ok(()));
        let error = check(&[command(2, &[5])], &[], Some(&traffic), &[]).expect_err("nobody tells of 5");
        assert!(error.contains("step 5"), "{error}");
        let error = check(&[command(3, &[1])], &[], Some(&traffic), &[]).expect_err("traffic waits for 2");
        assert!(error.contains("step 2"), "{error}");
    }
}
