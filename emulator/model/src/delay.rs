//! The delay line: holds packets from the departure of their last bit until they are due. First in, first
//! out, unless reordering is on; then packets that are due before an earlier one wait in a heap beside it.
//!
//! A displaced packet is kept aside until so many others have come that are not displaced. It is then due when the last of
//! them is, right behind it; so it is displaced by exactly so many in the sense of RFC 5236, whoever else is aside.

use alloc::collections::BinaryHeap;
use alloc::format;
use core::cmp::Ordering;

use super::check::{probability, require, time, CheckResult, LONGEST_NS};
use super::fifo::{List, Pool};
use super::Nanos;
use crate::config::{Held, Ppb};

const MOST_DISPLACED_BY: u32 = 1_000;

/// Can packets be displaced so, or, where all is 0, are none?
pub(super) fn check(share: Ppb, packets: u32, within: Nanos) -> CheckResult {
    probability("displace_ppb", share)?;
    if share == 0 {
        return require(packets == 0 && within == 0, || {
            "displace_ppb 0: write 0 for displace_packets and displace_within_ns too".into()
        });
    }
    require((1..=MOST_DISPLACED_BY).contains(&packets), || {
        format!("displace_packets {packets}: write 1 to {MOST_DISPLACED_BY}")
    })?;
    time("displace_within_ns", within, 1, LONGEST_NS)
}

/// Which packets are displaced, by how many others, and for how long at most.
#[derive(Clone, Copy, Debug)]
pub struct Displace {
    /// 0: none is.
    pub share: Ppb,
    pub packets: u32,
    pub within: Nanos,
}

impl Displace {
    pub fn of(held: &Held) -> Self {
        Displace { share: held.displace_ppb, packets: held.displace_packets, within: held.displace_within_ns }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Entry<P> {
    /// Of a packet that is aside: when it leaves at the latest.
    pub due: Nanos,
    /// Of a packet that is aside: how many have `passed` when it leaves.
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
    /// The memory of the three lists.
    pool: Pool<Entry<P>>,
    /// In order of due time and of sequence: all that are not due before `latest`.
    ring: List,
    /// Displaced packets that wait for others to pass, in order of due time and of sequence.
    aside: List,
    /// Those that leave before so many have passed, in order of due time; none is due after one that is aside.
    expired: List,
    /// How many are aside or expired.
    displaced: usize,
    /// Packets that came while one was aside or could be.
    passed: u64,
    overtaking: BinaryHeap<Entry<P>>,
    sequence: u64,
    latest: Nanos,
}

impl<P: Copy> Line<P> {
    /// Either half may have to hold all packets: reordering can be switched on while the link runs.
    pub fn new(capacity: usize, overtaking: usize) -> Self {
        Line {
            pool: Pool::new(capacity),
            ring: List::EMPTY,
            aside: List::EMPTY,
            expired: List::EMPTY,
            displaced: 0,
            passed: 0,
            overtaking: BinaryHeap::with_capacity(overtaking),
            sequence: 0,
            latest: 0,
        }
    }

    /// Takes memory for `packets` in all, of which with `reorder` any may overtake; false if the system has none.
    #[inline]
    pub fn reserve(&mut self, packets: usize, reorder: bool) -> bool {
        let more = packets.saturating_sub(self.overtaking.len());
        self.pool.reserve(packets)
            && (!reorder || self.overtaking.capacity() >= packets || self.overtaking.try_reserve(more).is_ok())
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
            self.pool.push_back(&mut self.ring, entry);
        }
    }

    /// Is a displaced packet here, so that `push_past` is to be called?
    #[inline]
    pub fn keeps_displaced(&self) -> bool {
        self.displaced > 0
    }

    /// Who is to leave before `now` waits for nobody any more, though nobody has looked. To be called before `push_past` and
    /// `set_aside`, at the time of which they know what comes.
    pub fn expire(&mut self, now: Nanos) {
        while self.pool.front(&self.aside).is_some_and(|first| first.due < now) {
            let Some(first) = self.pool.pop_front(&mut self.aside) else { return };
            self.pool.push_back(&mut self.expired, first);
        }
    }

    /// `push`; who was aside until this packet leaves right behind it.
    pub fn push_past(&mut self, packet: P, bytes: u32, mark_ce: bool, due: Nanos, reorder: bool) {
        let due = if reorder { due } else { due.max(self.latest) };
        self.push(packet, bytes, mark_ce, due, reorder);
        self.passed += 1;
        while self.pool.front(&self.aside).is_some_and(|first| first.sequence <= self.passed) {
            let Some(first) = self.pool.pop_front(&mut self.aside) else { return };
            if first.due < due {
                self.pool.push_back(&mut self.expired, first);
            } else {
                self.displaced -= 1;
                self.push(first.packet, first.bytes, first.mark_ce, due, reorder);
            }
        }
    }

    /// Takes in a packet that is displaced. It holds up nobody, and leaves no earlier than those displaced before it.
    pub fn set_aside(
        &mut self,
        packet: P,
        bytes: u32,
        mark_ce: bool,
        due: Nanos,
        reorder: bool,
        Displace { packets, within, .. }: Displace,
    ) {
        let due = if reorder { due } else { due.max(self.latest) };
        let mut entry = Entry {
            due: due.saturating_add(within),
            sequence: self.passed + u64::from(packets),
            packet,
            bytes,
            mark_ce,
        };
        if let Some(before) = self.pool.back(&self.aside) {
            entry.due = entry.due.max(before.due);
            entry.sequence = entry.sequence.max(before.sequence);
        } else if let Some(before) = self.pool.back(&self.expired) {
            entry.due = entry.due.max(before.due);
        }
        self.pool.push_back(&mut self.aside, entry);
        self.displaced += 1;
    }

    #[inline]
    pub fn next_due(&self) -> Option<Nanos> {
        let first = match (self.pool.front(&self.ring), self.overtaking.peek()) {
            (Some(first), None) => Some(first.due),
            (None, other) => other.map(|entry| entry.due),
            (Some(first), Some(other)) => Some(first.due.min(other.due)),
        };
        if self.displaced == 0 {
            return first;
        }
        let displaced = self.first_displaced();
        first.map_or(displaced, |first| displaced.map(|displaced| displaced.min(first)))
    }

    /// When the first of those that are aside or expired leaves at the latest.
    fn first_displaced(&self) -> Option<Nanos> {
        self.pool.front(&self.expired).or_else(|| self.pool.front(&self.aside)).map(|entry| entry.due)
    }

    /// Those that will be due next, the first one first, as far as nothing overtakes them.
    #[inline]
    pub fn ahead(&self) -> [Option<P>; 2] {
        [self.pool.front(&self.ring), self.pool.second(&self.ring)].map(|entry| entry.map(|entry| entry.packet))
    }

    /// The packet due first, if that is not after `now`.
    #[inline]
    pub fn pop(&mut self, now: Nanos) -> Option<Entry<P>> {
        if self.displaced > 0 {
            if let Some(entry) = self.pop_displaced(now) {
                return Some(entry);
            }
        }
        let first = self.pool.front(&self.ring);
        if let Some(other) = self.overtaking.peek() {
            if first.is_none_or(|first| other > first) {
                return if other.due <= now { self.overtaking.pop() } else { None };
            }
        }
        if first?.due <= now {
            self.pool.pop_front(&mut self.ring)
        } else {
            None
        }
    }

    /// One whose time is over, behind all that are due by then.
    fn pop_displaced(&mut self, now: Nanos) -> Option<Entry<P>> {
        let due = self.first_displaced()?;
        let others = [self.pool.front(&self.ring), self.overtaking.peek()];
        if due > now || others.into_iter().flatten().any(|other| other.due <= due) {
            return None;
        }
        let entry = self.pool.pop_front(&mut self.expired).or_else(|| self.pool.pop_front(&mut self.aside))?;
        self.displaced -= 1;
        Some(entry)
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

    const TWO: Displace = Displace { share: 1, packets: 2, within: 100 };

    fn timed(line: &mut Line<char>, now: Nanos) -> Vec<(char, Nanos)> {
        std::iter::from_fn(|| line.pop(now)).map(|entry| (entry.packet, entry.due)).collect()
    }

    #[test]
    fn a_displaced_packet_leaves_right_behind_the_one_that_it_waited_for() {
        let mut line = Line::new(4, 4);
        line.set_aside('a', 1, false, 300, false, TWO);
        for (packet, due) in [('b', 310), ('c', 320), ('d', 330)] {
            line.push_past(packet, 1, false, due, false);
        }
        assert!(!line.keeps_displaced());
        assert_eq!(timed(&mut line, Nanos::MAX), [('b', 310), ('c', 320), ('a', 320), ('d', 330)]);
    }

    #[test]
    fn each_of_several_is_displaced_by_as_many() {
        let mut line = Line::new(8, 8);
        for (n, packet) in "abCdEfgh".chars().enumerate() {
            let due = 300 + n as Nanos;
            if packet.is_uppercase() || packet == 'b' {
                line.set_aside(packet, 1, false, due, false, TWO);
            } else {
                line.push_past(packet, 1, false, due, false);
            }
        }
        // b, C and E come at places 1, 2 and 4, and leave at 3, 4 and 6.
        assert_eq!(all(&mut line), "adfbCgEh");
    }

    #[test]
    fn who_waits_in_vain_leaves_when_its_time_is_over() {
        let mut line = Line::new(4, 4);
        line.set_aside('a', 1, false, 300, false, TWO);
        line.set_aside('b', 1, false, 300, false, TWO);
        line.push_past('c', 1, false, 350, false);
        assert_eq!((line.next_due(), line.pop(349).is_none()), (Some(350), true));
        assert_eq!(timed(&mut line, 399), [('c', 350)]);
        assert_eq!(line.next_due(), Some(400));
        assert_eq!(timed(&mut line, 400), [('a', 400), ('b', 400)]);
        assert!(!line.keeps_displaced() && line.next_due().is_none());
    }

    /// The packet that it waits for is here, and due too late; another one is due before that.
    #[test]
    fn when_one_looks_makes_no_difference_to_who_waits_in_vain() {
        for looks in [&[][..], &[400], &[400, 450]] {
            let mut line = Line::new(4, 4);
            line.set_aside('a', 1, false, 300, false, TWO);
            line.push_past('b', 1, false, 400, false);
            let mut found: Vec<_> = looks.iter().take(1).flat_map(|now| timed(&mut line, *now)).collect();
            line.set_aside('c', 1, false, 401, false, TWO);
            line.push_past('d', 1, false, 450, false);
            found.extend(looks.iter().skip(1).flat_map(|now| timed(&mut line, *now)));
            line.push_past('e', 1, false, 460, false);
            found.extend(timed(&mut line, Nanos::MAX));
            assert_eq!(found, [('b', 400), ('a', 400), ('d', 450), ('e', 460), ('c', 460)], "{looks:?}");
        }
    }

    #[test]
    fn with_reordering_it_follows_the_one_that_came_n_th() {
        let mut line = Line::new(8, 8);
        line.set_aside('a', 1, false, 300, true, TWO);
        for (packet, due) in [('b', 340), ('c', 320), ('d', 330)] {
            line.push_past(packet, 1, false, due, true);
        }
        assert_eq!(timed(&mut line, Nanos::MAX), [('c', 320), ('a', 320), ('d', 330), ('b', 340)]);
    }

    #[test]
    fn a_change_to_fewer_packets_or_less_time_lets_nobody_pass_those_that_are_aside() {
        let mut line = Line::new(8, 8);
        line.set_aside('a', 1, false, 300, false, TWO);
        line.set_aside('b', 1, false, 300, false, Displace { packets: 1, within: 5, ..TWO });
        line.push_past('c', 1, false, 302, false);
        assert_eq!(line.next_due(), Some(302));
        line.push_past('d', 1, false, 303, false);
        assert_eq!(timed(&mut line, Nanos::MAX), [('c', 302), ('d', 303), ('a', 303), ('b', 303)]);
    }
}
