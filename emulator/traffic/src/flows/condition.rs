//! States of congestion controls that others wait for. Pure.
//!
//! In: a request's conditions, and cells of a sender's state. Out: whether a condition holds. A condition counts as a
//! step: it has ended when it first holds for a sender of the flows that it is of, and then flows, commands and changes
//! of links begin that come after it.

use serde::Deserialize;

use crate::congestion::Columns;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The step that it counts as.
    pub step: u32,
    /// The step whose flows' senders are looked at.
    pub of: u32,
    /// From one look to the next, at multiples of it.
    pub every_ns: u64,
    /// All of it holds at once, for one sender.
    pub state: Vec<Comparison>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    pub variable: String,
    #[serde(rename = "is")]
    relation: Relation,
    /// A number, or a word.
    value: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum Relation {
    #[serde(rename = "=")]
    Equal,
    #[serde(rename = "!=")]
    Unequal,
    #[serde(rename = "<")]
    Less,
    #[serde(rename = "<=")]
    AtMost,
    #[serde(rename = ">")]
    More,
    #[serde(rename = ">=")]
    AtLeast,
}

impl Comparison {
    /// Whether a cell is as it is to be; one that is empty is not known, and so it is not.
    fn holds(&self, cell: &str) -> bool {
        let number = |text: &str| text.parse::<f64>().ok();
        let Some((one, other)) = number(cell).zip(number(&self.value)) else {
            return match self.relation {
                Relation::Equal => cell == self.value,
                Relation::Unequal => !cell.is_empty() && cell != self.value,
                _ => false,
            };
        };
        match self.relation {
            Relation::Equal => one == other,
            Relation::Unequal => one != other,
            Relation::Less => one < other,
            Relation::AtMost => one <= other,
            Relation::More => one > other,
            Relation::AtLeast => one >= other,
        }
    }
}

impl Condition {
    /// Whether the control of the flows has all variables; errors name those that it has.
    pub fn check(&self, control: &str, columns: &Columns) -> Result<(), String> {
        let known = columns.of(control);
        match self.state.iter().find(|each| !known.contains(&each.variable.as_str())) {
            None => Ok(()),
            Some(_) if known.is_empty() => Err(format!("this kernel tells no state of {control}")),
            Some(each) => {
                Err(format!("the state of {control} has no {}: this kernel tells {}", each.variable, known.join(", ")))
            }
        }
    }

    /// `cells`: those of a sender.
    pub fn holds(&self, columns: &Columns, cells: &[String]) -> bool {
        let cell = |each: &Comparison| columns.find(&each.variable).and_then(|place| cells.get(place));
        self.state.iter().all(|each| cell(each).is_some_and(|cell| each.holds(cell)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers_and_words_are_the_same_or_not() {
        let held = |relation: &str, value: &str| {
            let text = format!(r#"{{"variable": "a", "is": "{relation}", "value": "{value}"}}"#);
            let asked: Comparison = serde_json::from_str(&text).expect("a comparison");
            ["DRAIN", "2", "2.0", "10", ""].into_iter().filter(|cell| asked.holds(cell)).collect::<Vec<_>>()
        };
        assert_eq!(held("=", "DRAIN"), ["DRAIN"]);
        assert_eq!(held("!=", "DRAIN"), ["2", "2.0", "10"]);
        assert_eq!(held("=", "2"), ["2", "2.0"]);
        assert_eq!(held("!=", "2"), ["DRAIN", "10"]);
        assert_eq!((held("<", "10"), held("<=", "2")), (vec!["2", "2.0"], vec!["2", "2.0"]));
        assert_eq!((held(">", "2"), held(">=", "2")), (vec!["10"], vec!["2", "2.0", "10"]));
        assert!(held("<", "DRAIN").is_empty());
    }
}
