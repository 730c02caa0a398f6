//! The host's own network cards in a lab: each is recorded, moved into its node, and given back as it was.
//!
//! In: the `cards` of a plan. Out: their records for the manifest, before anything is touched; the cards in their nodes; the
//! cards at home. A card has a second name (`mark`) from before it is touched until it is as it was, and is found by
//! that wherever it has got to: when a namespace ends, the kernel moves the cards in it to its first namespace, under
//! whatever name is free there. Every step of giving back may be done twice.

mod card_facts;
mod find;
mod give_back;
mod messages;
mod record;
mod refusal;
mod session;
mod take;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use card_facts::tell;
pub use give_back::{give_back, Restoration};
pub use messages::Message;
pub use record::record;
pub use take::take;

/// All marks begin so; the lab's name and the beginning of its manifest's id follow.
const MARK: &str = "ewan.";

/// What a lab has of a host's cards, as its manifest keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabCards {
    /// The network namespace in which they were: device and inode.
    pub home: [u64; 2],
    pub cards: Vec<Record>,
}

/// A card as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub name: String,
    /// The node's, below /run/netns.
    pub namespace: String,
    pub mark: String,
    pub index: u32,
    pub mac: String,
    pub mtu: u32,
    pub queue_length: u32,
    /// The most segments of TCP that a packet may hold.
    pub segments: u32,
    pub up: bool,
    pub promiscuous: bool,
    pub all_multicast: bool,
    /// Those of its features (`ethtool -k`) that were asked for.
    pub features: Vec<String>,
    /// Paths below /proc/sys with their values, where these are other than a new interface's.
    pub sysctls: BTreeMap<String, String>,
    pub addresses: Vec<Message>,
    pub routes: Vec<Message>,
    pub neighbours: Vec<Message>,
}

/// The lab of a mark.
fn lab_of(mark: &str) -> Option<&str> {
    let (lab, id) = mark.strip_prefix(MARK)?.rsplit_once('.')?;
    (!lab.is_empty() && !id.is_empty()).then_some(lab)
}

fn mark(lab: &str, id: &str, number: usize) -> String {
    format!("{MARK}{lab}.{:.8}-{number}", id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_its_lab() {
        assert_eq!(lab_of(&mark("a.b", "0123456789abcdef", 3)), Some("a.b"));
        assert_eq!(mark("lab", "0123456789abcdef", 3), "ewan.lab.01234567-3");
        assert!(mark(&"x".repeat(64), "0123456789", 9999).len() < 128, "the kernel's limit of a second name");
        assert_eq!(lab_of("enp1s0"), None);
        assert_eq!(lab_of("ewan.lab"), None);
    }

    #[test]
    fn the_golden_manifest_of_a_card_is_read_and_written_as_it_is() {
        let text = include_str!("../../../../tests/golden/cards.manifest.json");
        let manifest: crate::manifest::Manifest = serde_json::from_str(text).expect("a manifest");
        assert_eq!(manifest.cards.as_ref().map(|taken| taken.cards.len()), Some(1));
        assert_eq!(serde_json::to_string_pretty(&manifest).expect("JSON") + "\n", text);
        let unknown = text.replace("\"mtu\"", "\"mut\"");
        assert!(serde_json::from_str::<crate::manifest::Manifest>(&unknown).is_err());
    }
}
