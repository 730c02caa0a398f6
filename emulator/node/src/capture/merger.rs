//! Packets that several taps gave, put into the order of their times. Pure.
//!
//! In: packets as they come, tap by tap. Out: those up to a time, the oldest first; of equal times, the first to come.

use super::pcapng::Packet;
use super::tap::CapturedPacket;

/// What one look may gather; the rest waits in the kernel.
const MOST_BYTES: usize = 128 << 20;

#[derive(Default)]
pub struct PacketMerger {
    packets: Vec<Entry>,
    bytes: Vec<u8>,
}

struct Entry {
    interface: usize,
    time_ns: u64,
    start: usize,
    kept: usize,
    length: u32,
    flags: u32,
}

impl PacketMerger {
    /// False where there is room for no more.
    pub fn add(&mut self, interface: usize, came: &CapturedPacket<'_>) -> bool {
        let (start, kept) = (self.bytes.len(), came.bytes.len());
        self.bytes.extend(came.bytes);
        let &CapturedPacket { time_ns, length, flags, .. } = came;
        self.packets.push(Entry { interface, time_ns, start, kept, length, flags });
        self.bytes.len() < MOST_BYTES
    }

    /// Hands over those that are not younger than `time_ns`; an error ends it.
    pub fn until(
        &mut self,
        time_ns: u64,
        mut each: impl FnMut(&Packet<'_>) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        self.packets.sort_by_key(|packet| packet.time_ns);
        let due = self.packets.partition_point(|packet| packet.time_ns <= time_ns);
        for held in &self.packets[..due] {
            let &Entry { interface, time_ns, start, kept, length, flags } = held;
            each(&Packet { interface, time_ns, bytes: &self.bytes[start..start + kept], length, flags })?;
        }
        self.packets.drain(..due);
        let mut bytes = Vec::new();
        for held in &mut self.packets {
            let start = bytes.len();
            bytes.extend(&self.bytes[held.start..held.start + held.kept]);
            held.start = start;
        }
        if bytes.is_empty() {
            // The memory is used again.
            self.bytes.clear();
        } else {
            self.bytes = bytes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_several_taps_come_in_the_order_of_their_times() {
        let mut waiting = PacketMerger::default();
        for (interface, time_ns) in [(0, 10), (0, 40), (1, 5), (1, 10), (1, 50)] {
            let bytes = [time_ns as u8; 3];
            assert!(waiting.add(interface, &CapturedPacket { time_ns, bytes: &bytes, length: 60, flags: 0 }));
        }
        let mut seen = Vec::new();
        let mut look = |waiting: &mut PacketMerger, time_ns| {
            waiting
                .until(time_ns, |packet| {
                    assert_eq!(packet.bytes, [packet.time_ns as u8; 3]);
                    seen.push((packet.interface, packet.time_ns));
                    Ok(())
                })
                .expect("no error");
        };
        look(&mut waiting, 40);
        assert!(waiting.add(0, &CapturedPacket { time_ns: 45, bytes: &[45; 3], length: 60, flags: 0 }));
        look(&mut waiting, u64::MAX);
        assert_eq!(seen, [(1, 5), (0, 10), (1, 10), (0, 40), (0, 45), (1, 50)]);
    }
}
