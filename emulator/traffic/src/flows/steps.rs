//! Steps of a run, and flows that start when others have ended. Pure.
//!
//! In: the flows of a request, and what ended when. Out: when each step ended, and for a flow that waits the instant that
//! its times count from. A step has ended with the last of its flows, whatever became of them. Steps of commands are in
//! another process, which tells when they ended.

use std::collections::{BTreeMap, BTreeSet};

use super::request::FlowRequest;

/// A step and when it ended, in ns from T0.
pub type StepEnd = (u32, i64);

#[derive(Default)]
pub struct Steps {
    /// Of each flow, by its number.
    of: BTreeMap<u32, Option<u32>>,
    /// How many flows of a step have not ended.
    left: BTreeMap<u32, usize>,
    ended: BTreeMap<u32, i64>,
}

impl Steps {
    pub fn new(flows: &[FlowRequest]) -> Self {
        let of: BTreeMap<_, _> = (0..).zip(flows).map(|(place, flow)| (flow.number(place), flow.step)).collect();
        let mut left = BTreeMap::new();
        of.values().flatten().for_each(|step| *left.entry(*step).or_insert(0) += 1);
        Self { of, left, ended: BTreeMap::new() }
    }

    /// The step that ends with this flow, if one does.
    pub fn flow_ended(&mut self, flow: u32, at_ns: i64) -> Option<StepEnd> {
        let step = (*self.of.get(&flow)?)?;
        let left = self.left.get_mut(&step)?;
        *left -= 1;
        (*left == 0).then(|| self.step_ended(step, at_ns))
    }

    /// The first call for a step counts.
    pub fn step_ended(&mut self, step: u32, at_ns: i64) -> StepEnd {
        (step, *self.ended.entry(step).or_insert(at_ns))
    }

    /// When the last of these steps ended; none: one of them has not.
    pub fn all_ended(&self, steps: &[u32]) -> Option<i64> {
        let ends = steps.iter().map(|step| self.ended.get(step).copied());
        ends.collect::<Option<Vec<_>>>()?.into_iter().max()
    }
}

/// Why flows cannot wait for each other as they say: for a step that is not there, or in a circle.
pub fn check(flows: &[FlowRequest], elsewhere: &[u32]) -> Result<(), String> {
    let mut left = Steps::new(flows);
    for step in elsewhere {
        left.step_ended(*step, 0);
    }
    let known: BTreeSet<u32> = left.left.keys().chain(left.ended.keys()).copied().collect();
    let mut waiting: Vec<usize> = (0..flows.len()).collect();
    for flow in flows {
        if let Some(step) = flow.after.iter().find(|step| !known.contains(step)) {
            return Err(format!("flow {:?}: after step {step}, which no flow is of", flow.name));
        }
    }
    loop {
        let before = waiting.len();
        let (now, later): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|&index| flows[index].after.is_empty() || left.all_ended(&flows[index].after).is_some());
        for index in now {
            left.flow_ended(flows[index].number(index), 0);
        }
        match later.first() {
            None => return Ok(()),
            Some(&index) if later.len() == before => {
                return Err(format!("flow {:?}: the steps that it waits for wait for it", flows[index].name));
            }
            Some(_) => waiting = later,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flows of these steps, each with the steps that it comes after.
    fn flows(asked: &[(u32, &[u32])]) -> Vec<FlowRequest> {
        let flow = |(step, after): &(u32, &[u32])| {
            let text = format!(
                r#"{{"name": "f{step}", "step": {step}, "after": {after:?}, "work": {{"kind": "bulk", "bytes": 1}}}}"#
            );
            serde_json::from_str(&text).expect("a flow")
        };
        asked.iter().map(flow).collect()
    }

    #[test]
    fn a_step_ends_with_the_last_of_its_flows_and_the_last_of_several_steps_counts() {
        let mut steps = Steps::new(&flows(&[(0, &[]), (0, &[]), (1, &[]), (2, &[0, 1])]));
        assert_eq!(steps.flow_ended(0, 70), None);
        assert_eq!(steps.flow_ended(2, 90), Some((1, 90)));
        assert_eq!(steps.all_ended(&[0, 1]), None);
        assert_eq!(steps.flow_ended(1, 80), Some((0, 80)));
        assert_eq!((steps.all_ended(&[0, 1]), steps.all_ended(&[0])), (Some(90), Some(80)));
    }

    #[test]
    fn waiting_in_a_circle_or_for_nobody_is_refused() {
        assert_eq!(check(&flows(&[(1, &[0]), (0, &[]), (2, &[1, 7])]), &[7]), Ok(()));
        let error = check(&flows(&[(0, &[]), (1, &[0, 2]), (2, &[1])]), &[]).expect_err("a circle");
        assert!(error.contains("f1") && error.contains("wait for it"), "{error}");
        let error = check(&flows(&[(0, &[3])]), &[]).expect_err("nobody");
        assert!(error.contains("step 3"), "{error}");
    }
}
