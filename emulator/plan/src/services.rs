//! What a plan may ask of a node's services.

use std::collections::HashSet;

use crate::Node;

/// Refuses what would leave the node's directory, or could never be started.
pub fn check(node: &Node) -> Result<(), String> {
    let mut names = HashSet::new();
    let inside = |name: &String| !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']);
    for service in &node.services {
        let say = |what: &str| Err(format!("node {}: service {:?}: {what}", node.name, service.name));
        if !inside(&service.name) || !service.files.keys().chain(&service.ready).all(inside) {
            return say("its name and its files' are names in the node's own directory, not paths");
        }
        if service.argv.is_empty() {
            return say("a program must be named");
        }
        if !names.insert(&service.name) {
            return say("the node has two of this name");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(services: &str) -> Node {
        let text = format!(
            r#"{{"name": "r1", "kind": "router", "interfaces": [], "routes": [], "learned_routes": [], "stack": null, "sysctls": {{}}, "services": [{services}]}}"#
        );
        serde_json::from_str(&text).expect("a node")
    }

    #[test]
    fn what_would_leave_the_nodes_directory_is_refused() {
        let with = |name: &str, file: &str, ready: &str, argv: &str| {
            node(&format!(
                r#"{{"name": "{name}", "kind": "daemon", "argv": {argv}, "files": {{"{file}": ""}}, "ready": "{ready}"}}"#
            ))
        };
        check(&with("zebra", "zebra.conf", "zebra.pid", r#"["zebra"]"#)).expect("names of the node's own");
        for (name, file, ready) in [("../x", "f", "r"), ("x", "../f", "r"), ("x", "f", "/tmp/r"), ("x", "f", "")] {
            let refused = check(&with(name, file, ready, r#"["zebra"]"#)).expect_err("a path");
            assert!(refused.contains("names in the node's own directory"), "{refused}");
        }
        let refused = check(&with("x", "f", "r", "[]")).expect_err("no program");
        assert_eq!(refused, "node r1: service \"x\": a program must be named");
    }
}
