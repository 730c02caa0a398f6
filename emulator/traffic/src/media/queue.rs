//! Packets of frames that wait at the sender: for the pacing, and for room in the window. Pure.

use std::collections::VecDeque;

use super::encoder::Frame;
use super::wire;

/// A sender that is late, on a busy machine or by the window, makes up for no more.
const LATE_NS: u64 = 20_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub frame: u32,
    pub key: bool,
    pub part: u16,
    pub parts: u16,
    /// With its header.
    pub bytes: u32,
    pub queued_ns: u64,
}

#[derive(Default)]
pub struct Queue {
    packets: VecDeque<Packet>,
    bytes: u64,
    /// By the pacing, the next may go then.
    free_ns: f64,
}

impl Queue {
    pub fn push(&mut self, frame: &Frame, most_bytes: usize) {
        let sizes = wire::sizes(frame.bytes, most_bytes);
        let parts = sizes.len() as u16;
        for (part, bytes) in (0..).zip(sizes) {
            let (number, key, queued_ns) = (frame.number, frame.key, frame.captured_ns);
            self.packets.push_back(Packet { frame: number, key, part, parts, bytes, queued_ns });
            self.bytes += u64::from(bytes);
        }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// For how long the first has waited.
    pub fn waited_ns(&self, now_ns: u64) -> u64 {
        self.packets.front().map_or(0, |packet| now_ns.saturating_sub(packet.queued_ns))
    }

    /// When the next may go, by the pacing; none: none waits, or the window has no room for it.
    pub fn next_ns(&self, room_bytes: Option<u64>) -> Option<u64> {
        let packet = self.packets.front()?;
        let fits = room_bytes.is_none_or(|room| u64::from(packet.bytes) <= room);
        fits.then_some(self.free_ns.ceil() as u64)
    }

    /// The next, which goes at `now_ns`; `pacing_bps`: none is held back.
    pub fn pop(&mut self, now_ns: u64, pacing_bps: Option<f64>) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        let takes_ns = pacing_bps.map_or(0.0, |bps| f64::from(packet.bytes) * 8e9 / bps);
        let due_ns = self.free_ns.max(packet.queued_ns as f64).max(now_ns.saturating_sub(LATE_NS) as f64);
        self.free_ns = due_ns + takes_ns;
        Some(packet)
    }

    /// Throws away the frames of which nothing has gone yet; the first of them, if there was one.
    pub fn discard(&mut self) -> Option<u32> {
        let begun = self.packets.front().filter(|packet| packet.part > 0).map(|packet| packet.frame);
        let first = self.packets.iter().find(|packet| Some(packet.frame) != begun).map(|packet| packet.frame);
        self.packets.retain(|packet| Some(packet.frame) == begun);
        self.bytes = self.packets.iter().map(|packet| u64::from(packet.bytes)).sum();
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: u32, bytes: u32) -> Frame {
        Frame { number, key: false, bytes, captured_ns: u64::from(number) * 1_000_000 }
    }

    #[test]
    fn packets_go_at_the_rate_of_the_pacing_and_as_the_window_has_room() {
        let mut queue = Queue::default();
        queue.push(&frame(1, 1952), 1000);
        assert_eq!((queue.bytes(), queue.next_ns(None), queue.waited_ns(3_000_000)), (2000, Some(0), 2_000_000));
        queue.pop(1_000_000, Some(8e6));
        assert_eq!((queue.next_ns(Some(999)), queue.next_ns(Some(1000))), (None, Some(2_000_000)));
        // Late by 0.5 ms: the next is not.
        queue.pop(2_500_000, Some(8e6));
        queue.push(&frame(2, 10), 1000);
        assert_eq!(queue.next_ns(None), Some(3_000_000));
        queue.pop(100_000_000, Some(8e6));
        assert!(queue.free_ns > 80e6 && queue.free_ns < 81e6, "{}", queue.free_ns);
    }

    #[test]
    fn a_frame_that_has_begun_goes_on_and_others_are_thrown_away() {
        let mut queue = Queue::default();
        (1..4).for_each(|number| queue.push(&frame(number, 1952), 1000));
        queue.pop(0, None);
        assert_eq!((queue.discard(), queue.bytes()), (Some(2), 1000));
        assert_eq!(queue.discard(), None);
    }
}
