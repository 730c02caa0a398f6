//! Drop-tail: the limit of the queue decides alone.

use serde::{Deserialize, Serialize};

use super::{Aqm, Config};
use crate::check::CheckResult;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropTailConfig {}

#[derive(Clone, Debug)]
pub struct DropTail;

impl Config for DropTailConfig {
    type Model = DropTail;

    fn check(&self) -> CheckResult {
        Ok(())
    }

    fn model(&self) -> DropTail {
        DropTail
    }
}

impl Aqm for DropTail {}
