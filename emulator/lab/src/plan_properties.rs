//! Plans of any bytes, damaged ones, and plans with any number or text in any place: each is refused in one line that says
//! where, or all that is made of it before the kernel is asked is made without a fault.
//! `PROPTEST_CASES=100000 cargo test --release -p ewan-lab plan_properties` looks longer.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use ewan_datapath::SpinnerConfig;
use ewan_model::{Change, DirectionModel, Meta};
use ewan_system::netlink::Batch;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, Index};
use serde_json::{json, Value};

use crate::{converge, fill, hosts, links, spinners};
use ewan_plan::layout::Layout;
use ewan_plan::{Plan, HEADINGS};

const FILE: &str = "lab.plan.json";

/// The golden plans: of both clocks, and one with every kind of stage.
fn golden() -> &'static [Value] {
    static PLANS: OnceLock<Vec<Value>> = OnceLock::new();
    PLANS.get_or_init(|| {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
        let names = ["dumbbell", "dumbbell-virtual", "stages", "stages-virtual", "gaps"];
        let read = |name| std::fs::read(directory.join(format!("{name}.plan.json"))).expect("a golden plan");
        names.map(|name| serde_json::from_slice(&read(name)).expect("JSON")).to_vec()
    })
}

/// Ends of ranges more often than other numbers.
fn numbers() -> impl Strategy<Value = u64> {
    let near = (0..=64u32, -1i64..2).prop_map(|(bit, by)| 1u64.checked_shl(bit).unwrap_or(0).wrapping_add_signed(by));
    let known = vec![13, 14, 68, 575, 1500, 7999, 1_000_000_000, 1_000_000_001, 10_000_000_000, u64::from(u32::MAX)];
    prop_oneof![3 => near, 2 => select(known), 1 => any::<u64>()]
}

fn texts() -> impl Strategy<Value = Value> {
    let words = ["", ".", "..", "/", "a", "eth0", "core", "left1", "10.0.0.1", "10.0.0.1/33", "::/0", "net/../x"];
    let more = ["\u{0}", "ü", "02:00:00:00:00:01", "02:00:00:00:00:01:zz", "{run}", "kernel", "tbf", "user", "fifo"];
    let known = select([&words[..], &more].concat());
    prop_oneof![3 => known.prop_map(|text| json!(text)), 1 => "[ -~]{0,300}".prop_map(|text| json!(text))]
}

/// Values of other types.
fn anything() -> impl Strategy<Value = Value> {
    let structures =
        vec![json!(null), json!([]), json!({}), json!([[]]), json!({"kind": "none"}), json!({"kind": "tbf"})];
    prop_oneof![
        numbers().prop_map(|number| json!(number)),
        texts(),
        any::<i64>().prop_map(|number| json!(number)),
        any::<f64>().prop_map(|number| json!(number)),
        any::<bool>().prop_map(|value| json!(value)),
        select(structures),
    ]
}

/// What to do to one value of a document.
#[derive(Clone, Debug)]
enum Damage {
    Replace(Value),
    /// A text by this one, true by false.
    Alike(Value),
    Remove,
    /// Of a list: one more of what it begins with; of an object: an unknown key.
    Add(Value),
    /// With the value of another place.
    Copy(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => texts().prop_map(Damage::Alike),
        4 => anything().prop_map(Damage::Replace),
        1 => Just(Damage::Remove),
        1 => anything().prop_map(Damage::Add),
        2 => any::<Index>().prop_map(Damage::Copy),
    ]
}

/// JSON pointers (RFC 6901) of places that are alike: they differ in numbers of lists alone.
type Places = BTreeMap<String, Vec<String>>;

/// The places of those values that are wanted.
fn places(value: &Value, at: &str, alike: &str, wanted: fn(&Value) -> bool, all: &mut Places) {
    if wanted(value) {
        all.entry(alike.to_owned()).or_default().push(at.to_owned());
    }
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), &format!("{alike}/*"), wanted, all);
            }
        }
        Value::Object(entries) => {
            for (key, item) in entries {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(item, &format!("{at}/{key}"), &format!("{alike}/{key}"), wanted, all);
            }
        }
        _ => {}
    }
}

/// Which kind of place, and which of those.
type Where = (Index, Index);

fn find(document: &Value, (kind, place): Where, wanted: fn(&Value) -> bool) -> String {
    let mut all = Places::new();
    places(document, "", "", wanted, &mut all);
    let all: Vec<_> = all.into_values().collect();
    let alike = &all[kind.index(all.len())];
    alike[place.index(alike.len())].clone()
}

fn damaged(document: &mut Value, place: Where, damage: &Damage) {
    let at = find(document, place, |_| true);
    let other = match damage {
        Damage::Copy(from) => document.pointer(&find(document, (*from, place.1), |_| true)).cloned(),
        _ => None,
    };
    if let Damage::Remove = damage {
        let (parent, key) = at.rsplit_once('/').unwrap_or(("", ""));
        match document.pointer_mut(parent) {
            Some(Value::Object(entries)) => drop(entries.remove(&key.replace("~1", "/").replace("~0", "~"))),
            Some(Value::Array(items)) => drop(key.parse().map(|index: usize| items.remove(index))),
            _ => {}
        }
        return;
    }
    let Some(value) = document.pointer_mut(&at) else { return };
    match (damage, value) {
        (Damage::Replace(new), value) => *value = new.clone(),
        (Damage::Alike(text), value @ Value::String(_)) => *value = text.clone(),
        (Damage::Alike(_), Value::Bool(value)) => *value = !*value,
        (Damage::Alike(_), _) => {}
        (Damage::Add(new), Value::Object(entries)) => drop(entries.insert("?".into(), new.clone())),
        (Damage::Add(_), Value::Array(items)) => items.extend(items.first().cloned()),
        (_, value) => *value = other.unwrap_or_default(),
    }
}

/// A number becomes another one; of what is more than its field can hold the end is left, or the plan would be none.
fn renumbered(document: &mut Value, place: Where, number: u64) {
    let at = find(document, place, Value::is_number);
    let narrow = !at.ends_with("_ns") && !at.ends_with("_bps") && !at.ends_with("_packets") && !at.ends_with("_bytes");
    let narrow = narrow || at.contains("/framing/") || at.contains("/egress/");
    let number = if narrow { number & u64::from(u32::MAX) } else { number };
    *document.pointer_mut(&at).expect("a number") = json!(number);
}

fn is_one_line(error: &str) -> bool {
    !error.is_empty() && !error.contains('\n')
}

/// All that is made of a plan before the kernel is asked.
fn make(plan: &Plan) -> Result<(), String> {
    let layout = Layout::of(plan)?;
    for placed in &layout.nodes {
        let mut batch = Batch::default();
        fill::requests(&mut batch, placed).map_err(|error| {
            assert!(error.starts_with(&placed.node.name), "no node in {error:?}");
            error
        })?;
    }
    for link in &plan.links {
        for (heading, name) in HEADINGS.into_iter().enumerate() {
            let now = link.direction(heading);
            assert!(links::find(plan, &link.name, name).is_ok());
            let change = Change { rate_bps: Some(8000), ..Change::default() };
            let _ = links::refusal(link, now, &change);
            let mut model = DirectionModel::with_room(now, 64);
            let _ = model.impair(0, &mut Meta { ip_bytes: 1500, traffic_class: 2, ..Meta::default() });
            let _ = model.enqueue(0, Meta { ip_bytes: 1500, traffic_class: 2, ..Meta::default() }, 0);
            model.next_event().map(|event| model.pop(event));
        }
    }
    for number in 0..plan.spinners.len() {
        let config: Result<SpinnerConfig, String> =
            spinners::config(plan, Path::new(FILE), Path::new("."), number, &[]);
        config.map(drop)?;
    }
    converge::Map::of(plan).map(drop)
}

/// A plan, if it is one; else the line that says what is wrong, and where.
fn read(text: &[u8]) -> Result<Plan, String> {
    let read = ewan_plan::parse(text, Path::new(FILE));
    if let Err(error) = &read {
        assert!(error.starts_with(&format!("{FILE}: ")) && is_one_line(error), "{error:?}");
        assert!(error.contains(" at line ") || error.contains(": format is "), "no place in {error:?}");
    }
    read
}

#[test]
fn a_golden_plan_is_made() {
    for document in golden() {
        let plan = read(document.to_string().as_bytes()).expect("a plan");
        assert_eq!(make(&plan), Ok(()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1024), ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_refused_with_their_place(bytes in vec(any::<u8>(), 0..200), text in r#"[\[\]{}:," a-z0-9.\\-]{0,60}"#) {
        prop_assert!(read(&bytes).is_err() && read(text.as_bytes()).is_err());
    }

    #[test]
    fn a_plan_with_other_bytes_is_refused_or_made(
        which in any::<Index>(), changes in vec((any::<Index>(), any::<u8>()), 1..4), end in any::<Index>(), cut in any::<bool>(),
    ) {
        let mut text = which.get(golden()).to_string().into_bytes();
        let length = text.len();
        changes.iter().for_each(|(at, byte)| text[at.index(length)] = *byte);
        text.truncate(if cut { end.index(length) } else { length });
        if let Ok(plan) = read(&text) {
            prop_assert!(make(&plan).err().is_none_or(|error| is_one_line(&error)));
        }
    }

    #[test]
    fn a_plan_with_anything_anywhere_is_refused_or_made(
        which in any::<Index>(), changes in vec((any::<Where>(), damage()), 1..5),
    ) {
        let mut document = which.get(golden()).clone();
        changes.iter().for_each(|(at, damage)| damaged(&mut document, *at, damage));
        if let Ok(plan) = read(document.to_string().as_bytes()) {
            prop_assert!(make(&plan).err().is_none_or(|error| !error.is_empty()));
            prop_assert!(!hosts::file(&plan).is_empty());
            let again = serde_json::to_vec(&plan).expect("JSON");
            prop_assert_eq!(read(&again), Ok(plan));
        }
    }

    /// Other numbers alone: most of these are plans by their form, and their numbers are judged.
    #[test]
    fn a_plan_with_any_numbers_is_refused_or_made(
        which in any::<Index>(), backend in select(vec!["user", "kernel", "tbf"]),
        changes in vec((any::<Where>(), numbers()), 1..5),
    ) {
        let mut document = which.get(golden()).clone();
        document["links"].as_array_mut().expect("links").iter_mut().for_each(|link| link["backend"] = json!(backend));
        changes.into_iter().for_each(|(at, number)| renumbered(&mut document, at, number));
        if let Ok(plan) = read(document.to_string().as_bytes()) {
            prop_assert!(make(&plan).err().is_none_or(|error| !error.is_empty()));
        }
    }
}
