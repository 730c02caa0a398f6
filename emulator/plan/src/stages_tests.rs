//! The stages of links have the same kinds and keys here as in Python (labs/link): `tests/golden/stages.json`, which
//! `python -m ewan.labs.tests.test_stages` writes, lists Python's; what serde expects is ours.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ewan_model::config::{Aggregate, Delay, Direction, Discipline, Framing, Harq, Loss, Queue, Trace};
use ewan_model::Change;
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::{json, Value};

use super::{Egress, Pacer};

type Keys = BTreeSet<String>;
type Kinds = BTreeMap<String, Keys>;

/// By key and by discipline what an example becomes in the plan.
#[derive(Deserialize)]
struct Examples {
    changes: BTreeMap<String, Change>,
    disciplines: BTreeMap<String, Discipline>,
}

/// The names in what serde says that it expected instead of `data`.
fn expected<T: DeserializeOwned>(data: Value) -> Keys {
    let error = serde_json::from_value::<T>(data).err().expect("nothing has the name ?").to_string();
    let (said, names) = error.split_once(',').unwrap_or((&error, ""));
    assert!(said.starts_with("unknown ") && said.contains("`?`"), "{error}");
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn keys<T: DeserializeOwned>() -> Keys {
    expected::<T>(json!({"?": 0}))
}

fn kinds<T: DeserializeOwned>() -> Kinds {
    let names = expected::<T>(json!({"kind": "?"}));
    names.into_iter().map(|kind| (kind.clone(), expected::<T>(json!({"kind": kind, "?": 0})))).collect()
}

#[test]
fn python_has_the_same_kinds_and_keys_of_stages() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/stages.json");
    let text = std::fs::read(&path).expect("the golden file");
    let mut golden: BTreeMap<String, Value> = serde_json::from_slice(&text).expect("a listing");
    let examples: Examples =
        serde_json::from_value(golden.remove("examples").expect("examples")).expect("of these types");
    let ours: BTreeMap<&str, Value> = [
        ("aggregate", json!(keys::<Aggregate>())),
        // A program of a run asks for flows to be counted, and no description does.
        ("change", json!(keys::<Change>().into_iter().filter(|key| key != "flows").collect::<Keys>())),
        ("delay", json!(kinds::<Delay>())),
        ("direction", json!(keys::<Direction>())),
        ("discipline", json!(kinds::<Discipline>())),
        ("egress", json!(kinds::<Egress>())),
        ("framing", json!(keys::<Framing>())),
        ("harq", json!(keys::<Harq>())),
        ("loss", json!(kinds::<Loss>())),
        ("pacer", json!(kinds::<Pacer>())),
        ("queue", json!(keys::<Queue>())),
        ("trace", json!(kinds::<Trace>())),
    ]
    .into();
    let bounds: BTreeMap<String, [u64; 2]> =
        serde_json::from_value(golden.remove("bounds").expect("bounds")).expect("of two numbers");
    let names = |listing: Vec<&str>| listing.join(", ");
    assert_eq!(names(golden.keys().map(String::as_str).collect()), names(ours.keys().copied().collect()), "stages");
    for (stage, ours) in ours {
        assert_eq!(golden[stage], ours, "{stage}: Python's (tests/golden/stages.json) left, Rust's right");
    }
    for (key, change) in examples.changes {
        assert_eq!(change.check(), Ok(()), "{key}");
    }
    for (field, [least, most]) in bounds {
        let allowed = |value: u64| {
            serde_json::from_value::<Change>(json!({&field: value})).is_ok_and(|change| change.check().is_ok())
        };
        assert!(allowed(0) && allowed(least) && allowed(most), "{field}");
        assert!(!allowed(most + 1) && (least == 1 || !allowed(least - 1)), "{field}");
    }
    for (word, discipline) in examples.disciplines {
        let queue = Queue { discipline, ..Queue::drop_tail(Some(100), None) };
        assert_eq!(Change { queue: Some(queue), ..Change::default() }.check(), Ok(()), "{word}");
    }
}
