//! Over which interface somebody is logged in from elsewhere.
//!
//! In: the environments of this process and of those that started it (sudo passes SSH_CONNECTION on to nobody). Out: the
//! addresses of the other ends of SSH sessions (ssh(1)), each with the interface that it names itself, if it does.

use std::net::IpAddr;

const VARIABLE: &str = "SSH_CONNECTION=";
/// A process has fewer ancestors.
const MOST: usize = 256;

/// The other end of a session.
#[derive(Debug, PartialEq, Eq)]
pub struct Peer {
    pub address: IpAddr,
    /// Of a link-local address.
    pub interface: Option<String>,
}

pub fn peers() -> Vec<Peer> {
    let own = std::process::id();
    let mut found: Vec<Peer> = Vec::new();
    for process in std::iter::successors(Some(own), |process| parent(*process)).take(MOST) {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        found.extend(peer(&environment).filter(|peer| !found.contains(peer)));
    }
    found
}

fn parent(process: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
    (parent != 0).then_some(parent)
}

fn peer(environment: &[u8]) -> Option<Peer> {
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(VARIABLE.as_bytes()))?;
    let first = String::from_utf8_lossy(value).split(' ').next()?.to_owned();
    let (address, interface) = first.split_once('%').map_or((first.as_str(), None), |(a, i)| (a, Some(i)));
    Some(Peer { address: address.parse().ok()?, interface: interface.map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_of_a_session_is_read_from_an_environment() {
        let found = |text: &str| peer(text.as_bytes()).map(|peer| (peer.address.to_string(), peer.interface));
        assert_eq!(found("A=1\0SSH_CONNECTION=192.0.2.7 50022 192.0.2.1 22\0"), Some(("192.0.2.7".into(), None)));
        assert_eq!(
            found("SSH_CONNECTION=fe80::1%eth1 1 fe80::2%eth1 22"),
            Some(("fe80::1".into(), Some("eth1".into())))
        );
        assert_eq!(found("NOT_SSH_CONNECTION=192.0.2.7 1 192.0.2.1 22"), None);
        assert_eq!(found("SSH_CONNECTION=UNKNOWN 65535 UNKNOWN 65535"), None);
    }
}
