//! Takes an emulated link down, as a cut cable is, and brings it back: both of its ports, so that both neighbours lose the
//! carrier. What is in the link then is lost as far as its turn comes while it is down.
//!
//! In: a lab that is up, one of its links. Out: the ports' state; down.json in the state directory, `links`: the names of
//! those that are down; and how long the routes took to follow.

use std::path::Path;
use std::time::Duration;

use ewan_system::netlink::{Batch, Socket};
use ewan_system::socket::interface_index;
use ewan_system::{namespace, netlink::requests};
use serde_json::json;

use crate::{converge, exec, links};
use ewan_plan::{Backend, End, Link, Plan, Tunnel};

const DOWN: &str = "down.json";

/// The names of the links that are down.
pub fn down(state: &Path) -> Vec<String> {
    let text = std::fs::read(state.join(DOWN)).unwrap_or_default();
    let told: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    serde_json::from_value(told["links"].clone()).unwrap_or_default()
}

/// Sets both ports; the same twice is nothing new.
pub fn set(plan: &Plan, state: &Path, link: &Link, up: bool) -> Result<(), String> {
    let at = format!("link {}", link.name);
    if link.backend == Backend::Hardware {
        return Err(format!("{at} is a device outside, whose carrier is its own: write loss=100%, or pull its cable"));
    }
    let ports = || -> Result<(), String> {
        namespace::enter(exec::namespace_of(plan, &link.node)?)?;
        let mut batch = Batch::default();
        for port in [&link.port_a, &link.port_b] {
            let index = interface_index(port)?;
            let what = format!("interface {port}: {}", if up { "bringing it up" } else { "taking it down" });
            if up {
                requests::up(&mut batch, index, what);
            } else {
                requests::down(&mut batch, index, what);
            }
        }
        Ok(Socket::open()?.run(batch)?)
    };
    // Namespaces are entered by a thread of its own: the caller stays where it is.
    let done = std::thread::scope(|scope| scope.spawn(ports).join().expect("no thread panicked"));
    done.map_err(|error| format!("{at}: {error}"))?;
    let mut names = down(state);
    names.retain(|name| *name != link.name);
    if !up {
        names.push(link.name.clone());
    }
    let (file, new) = (state.join(DOWN), state.join(".down.json.new"));
    let written =
        std::fs::write(&new, json!({ "links": names }).to_string()).and_then(|()| std::fs::rename(&new, &file));
    written.map_err(|error| format!("{}: {error}", file.display()))
}

/// The other end of a link whose emulator is on another machine: a tunnel does not tell of a carrier that is gone there.
pub fn set_far(plan: &Plan, tunnel: &Tunnel, up: bool) -> Result<(), String> {
    let End { node, interface } = &tunnel.end;
    let end = || -> Result<(), String> {
        namespace::enter(exec::namespace_of(plan, node)?)?;
        let index = interface_index(interface)?;
        let mut batch = Batch::default();
        let what = format!("{node}:{interface}: {} its carrier", if up { "giving back" } else { "taking away" });
        requests::protocol_down(&mut batch, index, !up, what);
        Ok(Socket::open()?.run(batch)?)
    };
    let done = std::thread::scope(|scope| scope.spawn(end).join().expect("no thread panicked"));
    done.map_err(|error| format!("link {}: {error}", tunnel.link))
}

/// Sets a link's ports and prints how the routes followed.
pub fn run(state: &Path, link: &str, up: bool, longest: Duration) -> Result<(), String> {
    let plan = ewan_plan::read(&state.join("plan.json"))?;
    if plan.links.iter().all(|known| known.name != link) {
        if let Some(tunnel) = plan.tunnels.iter().find(|tunnel| tunnel.link == link) {
            return set_far(&plan, tunnel, up);
        }
    }
    let (number, _) = links::find(&plan, link, "forward")?;
    let found = &plan.links[number];
    let recovery = converge::recover(&plan, link, longest, &|| false, || set(&plan, state, found, up))?;
    println!("{}", serde_json::to_string(&recovery).map_err(|error| error.to_string())?);
    Ok(())
}
