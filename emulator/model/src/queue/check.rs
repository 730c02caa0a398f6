//! Which queues there can be; each discipline checks itself.

use alloc::format;

use crate::check::{require, CheckResult, MOST_BYTES, MOST_PACKETS};
use crate::config::Queue;

impl Queue {
    /// Is there a limit, within what a store holds, and a discipline that works?
    pub(crate) fn check(&self) -> CheckResult {
        let Queue { limit_packets, limit_bytes, discipline } = self;
        require(limit_packets.is_some() || limit_bytes.is_some(), || {
            "queue: give limit_packets or limit_bytes, or both".into()
        })?;
        for (key, limit, most) in
            [("limit_packets", limit_packets, MOST_PACKETS), ("limit_bytes", limit_bytes, MOST_BYTES)]
        {
            let limit = limit.unwrap_or(1);
            require((1..=most).contains(&limit), || format!("{key} {limit}: write 1 to {most}"))?;
        }
        discipline.check()
    }

    /// Can this queue filter ACKs, if it is to?
    pub(crate) fn check_ack_filter(&self, filter: bool) -> CheckResult {
        require(!filter || self.discipline.has_one_list(), || {
            "ack_filter: the queue has several lists: write false, or drop_tail, red, codel, pie or step".into()
        })
    }
}
