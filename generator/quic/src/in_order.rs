//! How much of a stream is there without a gap.

use std::collections::BTreeMap;

#[derive(Default)]
pub struct InOrder {
    /// The bytes before this one are all there.
    until: u64,
    /// What is there behind a gap: ends by beginnings.
    behind: BTreeMap<u64, u64>,
}

impl InOrder {
    /// Adds a piece that was not there yet; returns the number of bytes that are in order by it.
    pub fn add(&mut self, offset: u64, bytes: u64) -> u64 {
        let before = self.until;
        if offset > self.until {
            self.behind.insert(offset, offset + bytes);
            return 0;
        }
        self.until = self.until.max(offset + bytes);
        while let Some(first) = self.behind.first_entry() {
            if *first.key() > self.until {
                break;
            }
            self.until = self.until.max(first.remove());
        }
        self.until - before
    }
}
