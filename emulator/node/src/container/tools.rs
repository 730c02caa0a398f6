//! FRRouting's and Open vSwitch's own tools find the node's daemons without being told where: `docker exec NODE vtysh`.
//!
//! In: a node that is a container, and its own directory, where its services' sockets lie. Out: links to that directory
//! from where `vtysh`, `ovs-vsctl` and `ovs-ofctl` look by themselves.

use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use ewan_plan::Node;

/// A service, and the directory below the container's root in which its tools look for sockets.
const PLACES: [(&str, &str); 2] = [("zebra", "run/frr"), ("ovsdb-server", "run/openvswitch")];

/// Makes the links that the node's services call for, below `root`; the error names the place.
pub fn link(node: &Node, own: &Path, root: &Path) -> Result<(), String> {
    for (service, place) in PLACES {
        if node.services.iter().any(|each| each.name == service) {
            let place = root.join(place);
            replace(&place, own).map_err(|error| format!("{}: {error}", place.display()))?;
        }
    }
    Ok(())
}

/// A link of an earlier start and an empty directory of the image give way; what has files in it stays.
fn replace(place: &Path, target: &Path) -> io::Result<()> {
    match place.symlink_metadata() {
        Ok(found) if found.is_dir() => std::fs::remove_dir(place)?,
        Ok(_) => std::fs::remove_file(place)?,
        Err(_) => {}
    }
    symlink(target, place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ewan_plan::{Service, ServiceKind};

    fn node(services: &[&str]) -> Node {
        let service = |name: &&str| Service {
            name: (*name).into(),
            kind: ServiceKind::Daemon,
            argv: vec![(*name).into()],
            files: Default::default(),
            ready: None,
        };
        let text = r#"{"name": "r1", "kind": "router", "interfaces": [], "routes": [], "learned_routes": [], "stack": null, "machine": null, "sysctls": {}, "services": []}"#;
        let bare: Node = serde_json::from_str(text).expect("a node");
        Node { services: services.iter().map(service).collect(), ..bare }
    }

    #[test]
    fn tools_find_what_the_node_runs_and_nothing_else() {
        let root = std::env::temp_dir().join(format!("ewan-tools-{}", std::process::id()));
        let own = root.join("lab/nodes/r1");
        std::fs::create_dir_all(root.join("run/frr")).expect("the image's directory");
        std::fs::create_dir_all(&own).expect("the node's directory");
        // Twice: a container that is started again finds its own link.
        for _ in 0..2 {
            link(&node(&["zebra", "ospfd"]), &own, &root).expect("links");
            assert_eq!(std::fs::read_link(root.join("run/frr")).expect("a link"), own);
            assert!(root.join("run/openvswitch").symlink_metadata().is_err());
        }
        link(&node(&["database", "ovsdb-server"]), &own, &root).expect("links");
        assert_eq!(std::fs::read_link(root.join("run/openvswitch")).expect("a link"), own);
        std::fs::remove_file(root.join("run/frr")).expect("removed");
        std::fs::create_dir_all(root.join("run/frr/used")).expect("somebody's");
        let refused = link(&node(&["zebra"]), &own, &root).expect_err("it is in use");
        assert!(refused.contains("run/frr: "), "{refused}");
        std::fs::remove_dir_all(&root).expect("removed");
    }
}
