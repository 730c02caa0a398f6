//! The delay line: holds packets from the departure of their last bit until they are due. First in, first
//! out, unless reordering is on; then packets that are due before an earlier one wait in a heap beside it.

use alloc::collections::BinaryHeap;
use core::cmp::Ordering;

use super::fifo::Fifo;
use super::Nanos;

#[derive(Clone, Copy, Debug)]
pub struct Entry<P> {
    pub due: Nanos,
    sequence: u64,
    pub packet: P,
    pub bytes: u32,
    pub mark_ce: bool,
}

// The heap gives its greatest: that is the one due first, and among equals the one that came first.
impl<P> Ord for Entry<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.sequence).cmp(&(self.due, self.sequence))
    }
}
impl<P> PartialOrd for Entry<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> PartialEq for Entry<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<P> Eq for Entry<P> {}

#[derive(Debug)]
pub struct Line<P> {
    /// In order of due time and of sequence: all that are not due before `latest`.
    ring: Fifo<Entry<P>>,
    overtaking: BinaryHeap<Entry<P>>,
    sequence: u64,
    latest: Nanos,
}

impl<P: Copy> Line<P> {
    /// Either half may have to hold all packets: reordering can be switched on while the link runs.
    pub fn new(capacity: usize, overtaking: usize) -> Self {
        Line { ring: Fifo::new(capacity), overtaking: BinaryHeap::with_capacity(overtaking), sequence: 0, latest: 0 }
    }

    /// Takes a packet in. Without `reorder` it is due no earlier than any packet before it.
    #[inline]
    pub fn push(&mut self, packet: P, bytes: u32, mark_ce: bool, due: Nanos, reorder: bool) {
        self.sequence += 1;
        let entry = Entry { due: due.max(self.latest), sequence: self.sequence, packet, bytes, mark_ce };
        if due < self.latest && reorder {
            self.overtaking.push(Entry { due, ..entry });
        } else {
            self.latest = entry.due;
            self.ring.push_back(entry);
        }
    }

    #[inline]
    pub fn next_due(&self) -> Option<Nanos> {
        match (self.ring.front(), self.overtaking.peek()) {
            (Some(first), None) => Some(first.due),
            (None, other) => other.map(|entry| entry.due),
            (Some(first), Some(other)) => Some(first.due.min(other.due)),
        }
    }

    /// Those that will be due next, the first one first, as far as nothing overtakes them.
    #[inline]
    pub fn ahead(&self) -> [Option<P>; 2] {
        [self.ring.front(), self.ring.second()].map(|entry| entry.map(|entry| entry.packet))
    }

    /// The packet due first, if that is not after `now`.
    #[inline]
    pub fn pop(&mut self, now: Nanos) -> Option<Entry<P>> {
        let first = self.ring.front();
        if let Some(other) = self.overtaking.peek() {
            if first.is_none_or(|first| other > first) {
                return if other.due <= now { self.overtaking.pop() } else { None };
            }
        }
        if first?.due <= now {
            self.ring.pop_front()
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(line: &mut Line<char>) -> String {
        std::iter::from_fn(|| line.pop(Nanos::MAX)).map(|entry| entry.packet).collect()
    }

    #[test]
    fn without_reordering_nobody_overtakes() {
        let mut line = Line::new(4, 4);
        line.push('a', 1, false, 300, false);
        line.push('b', 1, false, 100, false);
        assert_eq!(line.next_due(), Some(300));
        assert!(line.pop(299).is_none());
        assert_eq!(all(&mut line), "ab");
    }

    #[test]
    fn with_reordering_the_one_due_first_leaves_first_and_equals_keep_their_order() {
        let mut line = Line::new(4, 4);
        for (packet, due) in [('d', 300), ('a', 100), ('e', 300), ('b', 200), ('c', 200), ('f', 300)] {
            line.push(packet, 1, false, due, true);
        }
        assert_eq!(line.next_due(), Some(100));
        assert_eq!(all(&mut line), "abcdef");
    }

    #[test]
    fn switching_reordering_off_keeps_what_is_inside() {
        let mut line = Line::new(4, 4);
        line.push('c', 1, false, 300, true);
        line.push('a', 1, false, 100, true);
        line.push('d', 1, false, 50, false);
        line.push('b', 1, false, 200, true);
        assert_eq!(all(&mut line), "abcd");
    }
}
