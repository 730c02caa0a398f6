//! A spinner of the plan, as the datapath runs it.
//!
//! In: the plan, and which of its spinners. Out: the spinner's CPU, its control socket and its links, or what the plan lacks.

use std::path::Path;

use ewan_datapath::{LinkConfig, SpinnerConfig};
use ewan_plan::{End, Plan, Tunnel};

/// `file`: where the plan was read, for the error. `namespaces`: LINK=PATH.
pub fn config(
    plan: &Plan,
    file: &Path,
    state: &Path,
    index: usize,
    namespaces: &[String],
) -> Result<SpinnerConfig, String> {
    let spinner = plan.spinners.get(index).ok_or_else(|| format!("spinner {index}: the plan has no such spinner"))?;
    let place = format!("{}: spinners[{index}].links", file.display());
    if spinner.links.is_empty() {
        return Err(format!("{place}: is empty: name the links that this spinner serves"));
    }
    let links = spinner.links.iter().map(|name| {
        let link = plan.links.iter().find(|link| link.name == *name);
        let link = link.ok_or_else(|| format!("{place}: the plan has no link {name}: name one of its links"))?;
        let given = namespaces.iter().filter_map(|text| text.split_once('=')).find(|(name, _)| *name == link.name);
        Ok(LinkConfig {
            name: link.name.clone(),
            netns: given.map_or_else(|| plan.netns_path(&link.node), |(_, path)| path.into()),
            port_a: link.port_a.clone(),
            port_b: link.port_b.clone(),
            mtu: plan
                .mtu(&End { node: link.node.clone(), interface: link.port_a.clone() })
                .map_err(|error| format!("{}: link {}: {error}", file.display(), link.name))?,
            forward: link.forward.clone(),
            backward: link.backward.clone(),
            elsewhere_ns: plan.tunnels.iter().find(|tunnel| tunnel.link == link.name).map_or([0; 2], Tunnel::takes_ns),
        })
    });
    Ok(SpinnerConfig {
        cpu: spinner.cpu,
        control_cpus: plan.host_cpus.clone(),
        control_socket: ewan_datapath::client::socket(state, index),
        links: links.collect::<Result<_, String>>()?,
        always_spins: plan.always_spins,
    })
}
