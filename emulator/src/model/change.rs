//! What may be changed while a link runs: a subset of a direction's configuration, absent where it stays.

use serde::{Deserialize, Serialize};

use crate::config::{Delay, Loss, Ppb, Queue};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Change {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupt_ppb: Option<Ppb>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_ppb: Option<Ppb>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}
