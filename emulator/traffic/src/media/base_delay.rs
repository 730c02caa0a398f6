//! How long packets wait, from their one-way delays alone: what a delay is more than the least one of late. Pure.

use std::collections::VecDeque;

/// The least delay is that of about ten minutes (RFC 6817, section 2.4.2).
const MINUTE_NS: u64 = 60_000_000_000;
const MINUTES: usize = 10;

#[derive(Default)]
pub struct BaseDelay {
    /// The least delay of each minute, and when it began.
    least: VecDeque<(u64, u64)>,
    latest_ns: u64,
}

impl BaseDelay {
    /// What a packet waited, which was sent and came at these times.
    pub fn take(&mut self, sent_ns: u64, arrived_ns: u64) -> u64 {
        self.latest_ns = arrived_ns.saturating_sub(sent_ns);
        match self.least.back_mut() {
            Some((begun_ns, least_ns)) if arrived_ns < *begun_ns + MINUTE_NS => {
                *least_ns = self.latest_ns.min(*least_ns)
            }
            _ => self.least.push_back((arrived_ns, self.latest_ns)),
        }
        if self.least.len() > MINUTES {
            self.least.pop_front();
        }
        self.wait_ns().expect("there is one")
    }

    /// Of the last packet; none: there was none.
    pub fn wait_ns(&self) -> Option<u64> {
        self.least.iter().map(|&(_, least_ns)| self.latest_ns.saturating_sub(least_ns)).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_what_a_delay_is_more_than_the_least_of_ten_minutes() {
        let mut base = BaseDelay::default();
        assert_eq!(base.wait_ns(), None);
        let second = 1_000_000_000;
        let waits = [(0, 50), (1, 70), (2, 40), (3, 60)].map(|(at, delay)| base.take(at * second, at * second + delay));
        assert_eq!(waits, [0, 20, 0, 20]);
        // Eleven minutes later nobody knows of 40.
        for minute in 1..=11 {
            base.take(minute * 61 * second, minute * 61 * second + 60);
        }
        assert_eq!(base.wait_ns(), Some(0));
    }
}
