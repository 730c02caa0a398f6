//! Names of nodes: the hosts file that every node sees, and the nearest names when one is not known.
//!
//! labs/render/files.py writes the same file into the directory of containers; tests/golden/dumbbell.hosts is what both of
//! them make of tests/golden/dumbbell.plan.json.

use std::fmt::Write;

use ewan_plan::{Node, NodeKind, Plan};

/// One line per node and family: a node's first address stands for it.
pub fn file(plan: &Plan) -> String {
    let mut text = String::from("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n");
    for node in plan.nodes.iter().filter(|node| node.kind != NodeKind::Emulator) {
        for v6 in [false, true] {
            if let Some(address) = first_address(node, v6) {
                let _ = writeln!(text, "{address} {}", node.name);
            }
        }
    }
    text
}

/// The address that stands for a node, of one family.
pub fn first_address(node: &Node, v6: bool) -> Option<&str> {
    let all = node.interfaces.iter().flat_map(|interface| &interface.addresses);
    all.filter_map(|address| address.split('/').next()).find(|address| address.contains(':') == v6)
}

/// What to say about a node that does not exist: up to three names like it.
pub fn unknown(plan: &Plan, name: &str) -> String {
    let mut near: Vec<_> = plan.nodes.iter().map(|node| (distance(&node.name, name), node.name.as_str())).collect();
    near.sort();
    let near: Vec<_> = near.iter().take(3).map(|(_, name)| *name).collect();
    format!("lab {} has no node {name}: nearest are {}", plan.lab, near.join(", "))
}

/// Levenshtein's edit distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, file};

    #[test]
    fn the_hosts_file_is_the_golden_one() {
        let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
        let plan = ewan_plan::read(&golden.join("dumbbell.plan.json")).expect("a golden plan is a plan");
        assert_eq!(file(&plan), std::fs::read_to_string(golden.join("dumbbell.hosts")).expect("a golden file"));
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("left1", "left1"), 0);
        assert_eq!(distance("left1", "lefl1"), 1);
        assert_eq!(distance("left1", "lef"), 2);
        assert_eq!(distance("", "core"), 4);
    }
}
