//! What the kernels of hosts and routers dropped: sockets, IP and queueing discipline of each, as each namespace counts it.
//! Links and switches are not among them; their own counters tell of them.
//!
//! In: the plan of a lab that is up, names of counters (labs/record/host_drops.py). Out: drops.csv, with a row for each counter
//! that grew between two looks; or for who looks himself, all counters of each node as JSON.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::Path;

use ewan_system::counters::{self, Counters};
use ewan_system::namespace;
use ewan_traffic::table::{add, Row, Table};
use serde::Serialize;

use ewan_plan::{NodeKind, Plan};

const FILE: &str = "drops.csv";

/// A node's counters.
#[derive(Serialize)]
struct Node<'a> {
    node: &'a str,
    counters: Counters,
}

struct DropRow<'a> {
    node: &'a str,
    counter: &'a str,
    count: u64,
}

impl Row for DropRow<'_> {
    const COLUMNS: &'static str = "node,counter,count";

    fn line(&self, line: &mut String) {
        let Self { node, counter, count } = self;
        add(line, format_args!("{node},{counter},{count}"));
    }
}

/// A first look, and what is wanted of the second.
pub struct Drops<'a> {
    plan: &'a Plan,
    names: &'a [String],
    before: Vec<Node<'a>>,
}

impl<'a> Drops<'a> {
    /// `fresh`: of a lab that is there for the program alone, whose counters began at zero.
    pub fn watch(plan: &'a Plan, names: &'a [String], fresh: bool) -> Result<Self, String> {
        let before = if fresh { Vec::new() } else { look(plan, Some(names))? };
        Ok(Self { plan, names, before })
    }

    /// The second look: drops.csv below `out`, where anything was dropped.
    pub fn tell(&self, out: &Path) -> Result<(), String> {
        let after = look(self.plan, Some(self.names))?;
        let nothing = Counters::new();
        let before: HashMap<_, _> = self.before.iter().map(|old| (old.node, &old.counters)).collect();
        let grown = after.iter().flat_map(|new| {
            let old = before.get(new.node).copied().unwrap_or(&nothing);
            let count = |name| counters::grown(old, &new.counters, name);
            self.names.iter().map(move |name| DropRow { node: new.node, counter: name, count: count(name) })
        });
        let rows: Vec<_> = grown.filter(|row| row.count > 0).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let table = Table::create(&out.join(FILE))?;
        rows.iter().try_for_each(|row| table.add(row)).and_then(|()| table.flush())
    }
}

/// The counters of these names, or all, of those nodes that are there; a container that has ended has none.
fn look<'a>(plan: &'a Plan, names: Option<&[String]>) -> Result<Vec<Node<'a>>, String> {
    let home = namespace::own()?;
    let mut found = Vec::new();
    for node in plan.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Host | NodeKind::Router)) {
        let path = plan.netns_path(&node.name);
        if !path.exists() {
            continue;
        }
        let read = || {
            let read = names.map_or_else(counters::read_all, counters::read);
            read.map_err(|error| format!("{}: its counters: {error}", node.name))
        };
        found.push(Node { node: &node.name, counters: namespace::within(&path, &home, read)? });
    }
    Ok(found)
}

/// All of each node, as JSON; the plan is read from `plan`.
pub fn tell(mut plan: impl Read, mut out: impl Write) -> Result<(), String> {
    let mut text = Vec::new();
    plan.read_to_end(&mut text).map_err(|error| format!("standard input: {error}"))?;
    let plan = ewan_plan::parse(&text, Path::new("standard input"))?;
    let text = serde_json::to_string(&look(&plan, None)?).map_err(|error| error.to_string())?;
    writeln!(out, "{text}").map_err(|error| error.to_string())
}
