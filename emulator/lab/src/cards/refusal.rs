//! Which cards a lab may not have, and what to say of each in one line. Pure: the host is what was read of it.

use std::collections::HashSet;
use std::net::IpAddr;

use ewan_system::netlink::interfaces::Interface;

use super::lab_of;
use super::messages::Route;

const ETHERNET: u16 = 1;
const LOOPBACK: u16 = 772;

/// What of a host says whether a card may leave.
#[derive(Default)]
pub struct Host {
    pub interfaces: Vec<Interface>,
    pub routes: Vec<Route>,
    /// The other ends of SSH sessions, and the numbers of the interfaces that lead there.
    pub sessions: Vec<(IpAddr, u32)>,
    /// Names of wireless cards.
    pub wireless: HashSet<String>,
    /// Queueing disciplines that somebody has set: the number of the interface, the kind.
    pub disciplines: Vec<(u32, String)>,
    /// Cards that other labs have: name of the card, lab.
    pub elsewhere: Vec<(String, String)>,
}

impl Host {
    /// The card, if a lab may have it with this MTU; else why not. The same lab asks once for each of its cards.
    pub fn card(&self, name: &str, mtu: u32) -> Result<&Interface, String> {
        let Some(card) = self.interfaces.iter().find(|interface| interface.name == name) else {
            return Err(self.absent(name));
        };
        match self.refusal(card, mtu) {
            None => Ok(card),
            Some(why) => Err(why),
        }
    }

    fn absent(&self, name: &str) -> String {
        if let Some((_, lab)) = self.elsewhere.iter().find(|(card, _)| card == name) {
            return format!("lab {lab} has it: `ewan down {lab}` gives it back");
        }
        let second = self.interfaces.iter().find(|interface| interface.other_names.iter().any(|other| other == name));
        if let Some(Interface { name: first, .. }) = second {
            return format!("is a second name of {first}: write {first}");
        }
        let others = self.interfaces.iter().filter(|other| other.hardware == ETHERNET).map(|other| other.name.as_str());
        let others: Vec<_> = others.take(10).collect();
        match others.is_empty() {
            true => "there is no such interface here, nor any other Ethernet card".into(),
            false => format!("there is no such interface here: write one of {}", others.join(", ")),
        }
    }

    fn name(&self, index: u32) -> String {
        let found = self.interfaces.iter().find(|interface| interface.index == index);
        found.map_or_else(|| format!("interface {index}"), |found| found.name.clone())
    }

    fn refusal(&self, card: &Interface, mtu: u32) -> Option<String> {
        let name = &card.name;
        if card.hardware == LOOPBACK {
            return Some("is the loopback, which every namespace has of its own: write the name of a card".into());
        }
        if card.hardware != ETHERNET || card.mac.is_none() {
            return Some("is no Ethernet card: write the name of one".into());
        }
        if self.wireless.contains(name) {
            return Some("is wireless, and stays where its radio is: take a card with a cable".into());
        }
        if let Some(lab) = card.other_names.iter().find_map(|other| lab_of(other)) {
            return Some(format!("lab {lab} has it: `ewan down {lab}` gives it back"));
        }
        if let Some(master) = card.master {
            let master = self.name(master);
            return Some(format!("belongs to {master}: take another card, or `ip link set {name} nomaster` first"));
        }
        // The kernel removes what lies on an interface that leaves.
        let lies_on = |other: &&Interface| {
            other.over == Some(card.index) && other.index != card.index && other.kind.as_deref() != Some("veth")
        };
        if let Some(other) = self.interfaces.iter().find(lies_on) {
            return Some(format!("{} lies on it: take another card, or remove {} first", other.name, other.name));
        }
        if card.stays {
            return Some(
                "cannot leave its network namespace, as bridges and bonds cannot: write the name of a card".into(),
            );
        }
        let own = || self.routes.iter().filter(|route| route.out.contains(&card.index));
        if own().any(|route| route.default) {
            return Some("carries this machine's default route: take another card, or remove that route first".into());
        }
        if let Some((peer, _)) = self.sessions.iter().find(|(_, index)| *index == card.index) {
            return Some(format!("carries the SSH session from {peer}: take another card"));
        }
        if own().any(|route| route.shared) {
            return Some("is one of the next hops of a route: take another card, or remove that route first".into());
        }
        if let Some((_, kind)) = self.disciplines.iter().find(|(index, _)| *index == card.index) {
            let remedy = if kind == "ingress" || kind == "clsact" { kind.as_str() } else { "root" };
            return Some(format!(
                "has the queueing discipline {kind}, which would be lost: take another card, or `tc qdisc del dev \
                 {name} {remedy}` first"
            ));
        }
        if card.xdp {
            return Some(format!("has a program of XDP: take another card, or `ip link set {name} xdp off` first"));
        }
        let [least, most] = card.mtus;
        if mtu < least || most != 0 && mtu > most {
            return Some(format!("takes MTUs from {least} to {most}, and the lab has {mtu}: write another mtu"));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(index: u32, name: &str) -> Interface {
        Interface {
            index,
            name: name.into(),
            hardware: ETHERNET,
            mac: Some([2, 0, 0, 0, 0, 1]),
            mtu: 1500,
            mtus: [68, 9000],
            ..Interface::default()
        }
    }

    fn host(change: impl FnOnce(&mut Host)) -> Host {
        let mut host = Host { interfaces: vec![card(2, "eth0"), card(3, "eth1")], ..Host::default() };
        change(&mut host);
        host
    }

    fn said(name: &str, change: impl FnOnce(&mut Host)) -> String {
        host(change).card(name, 1500).err().unwrap_or_default()
    }

    #[test]
    fn a_card_that_nobody_needs_is_taken() {
        assert_eq!(said("eth1", |_| {}), "");
        let of_others = |host: &mut Host| {
            host.routes.push(Route { out: vec![2], default: true, ..Route::default() });
            host.sessions.push(("192.0.2.1".parse().expect("one"), 2));
            host.interfaces.push(Interface { over: Some(3), kind: Some("veth".into()), ..card(4, "peer") });
        };
        assert_eq!(said("eth1", of_others), "", "a veth's other end does not lie on it");
    }

    #[test]
    fn each_card_that_is_needed_is_refused_with_what_to_do() {
        let mine = |change: fn(&mut Interface)| move |host: &mut Host| change(&mut host.interfaces[1]);
        let route = |route: Route| move |host: &mut Host| host.routes.push(Route { out: vec![3], ..route });
        for (change, words) in [
            (Box::new(mine(|card| card.hardware = LOOPBACK)) as Box<dyn FnOnce(&mut Host)>, "is the loopback"),
            (Box::new(mine(|card| card.hardware = 32)), "is no Ethernet card"),
            (Box::new(mine(|card| card.mac = None)), "is no Ethernet card"),
            (Box::new(|host: &mut Host| host.wireless.extend(["eth1".to_owned()])), "is wireless"),
            (Box::new(mine(|card| card.master = Some(2))), "belongs to eth0"),
            (Box::new(mine(|card| card.stays = true)), "cannot leave"),
            (Box::new(mine(|card| card.xdp = true)), "has a program of XDP"),
            (Box::new(mine(|card| card.mtus = [68, 1400])), "takes MTUs from 68 to 1400, and the lab has 1500"),
            (Box::new(mine(|card| card.other_names = vec!["ewan.a.12345678-0".into()])), "lab a has it: `ewan down a`"),
            (Box::new(route(Route { default: true, ..Route::default() })), "carries this machine's default route"),
            (Box::new(route(Route { shared: true, ..Route::default() })), "is one of the next hops"),
            (Box::new(|host: &mut Host| host.sessions.push(("192.0.2.7".parse().expect("one"), 3))), "192.0.2.7"),
            (Box::new(|host: &mut Host| host.disciplines.push((3, "netem".into()))), "tc qdisc del dev eth1 root"),
            (
                Box::new(|host: &mut Host| {
                    host.interfaces.push(Interface { over: Some(3), kind: Some("vlan".into()), ..card(4, "eth1.5") });
                }),
                "eth1.5 lies on it",
            ),
        ] {
            let refused = said("eth1", change);
            assert!(refused.contains(words), "{words}: {refused}");
            assert!(!refused.contains('\n'), "{refused}");
        }
    }

    #[test]
    fn a_card_that_is_not_here_is_told_from_one_that_a_lab_has() {
        assert_eq!(said("eth9", |_| {}), "there is no such interface here: write one of eth0, eth1");
        let other = |host: &mut Host| host.elsewhere.push(("eth9".into(), "bench".into()));
        assert_eq!(said("eth9", other), "lab bench has it: `ewan down bench` gives it back");
        let second = |host: &mut Host| host.interfaces[1].other_names.push("eth9".into());
        assert_eq!(said("eth9", second), "is a second name of eth1: write eth1");
    }
}
