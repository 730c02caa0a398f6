//! What a node is made of where the description says so, as the plan has it; see labs/node_overrides.py. Keys that are not said are
//! not there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NodeSettings {
    /// Of a container, as are `entrypoint`, `cmd`, `binds` and `ports`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cmd: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub binds: Vec<Bind>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// Of programs that are run in the node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Run in the node when the lab is there, one after the other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exec: Vec<Vec<String>>,
    /// A router has a configuration of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup: Option<Startup>,
    /// If set, a router does not tell senders that their packets are too big.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_big: Option<TooBig>,
}

/// A file or directory of the machine that a node sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    pub source: String,
    pub target: String,
    pub read_only: bool,
    pub outside: bool,
}

/// A port of a node at an address of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    pub address: String,
    pub port: u16,
    pub node_port: u16,
    pub protocol: Protocol,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    Tcp,
    Udp,
}

/// What a router says of a packet that is longer than the next link carries; it tells the sender where nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TooBig {
    Silent,
}

/// What becomes of our configuration of a router by its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Startup {
    Merge,
    Replace,
}
