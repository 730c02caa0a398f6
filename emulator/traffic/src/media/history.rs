//! What a sender knows of the packets that it sent. Pure.
//!
//! In: packets as they go, and reports. Out: feedback: which packets came and when, and which are lost, each once. A packet
//! is lost when a second report says that it had not come though a later one had: the first may only have been overtaken.

use std::collections::VecDeque;

use super::wire::{Report, CE};

/// As long as a TCP waits at least for an answer (RFC 6298, section 2.4).
const SILENCE_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Unknown,
    Missing,
    Came,
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct SentPacket {
    bytes: u32,
    sent_ns: u64,
    fate: Fate,
}

#[derive(Default)]
pub struct History {
    begin: u32,
    packets: VecDeque<SentPacket>,
    /// One more than the highest sequence number that came.
    acknowledged: u32,
    in_flight_bytes: u64,
    /// When the last report came, or it was last given up.
    heard_ns: u64,
}

/// A packet that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcknowledgedPacket {
    pub bytes: u32,
    pub sent_ns: u64,
    pub arrived_ns: u64,
    pub marked: bool,
}

/// What a report brings that was not known before.
#[derive(Clone, Debug, Default)]
pub struct Feedback {
    pub now_ns: u64,
    /// Without the time for which the receiver kept it.
    pub rtt_ns: Option<u64>,
    /// In the order in which they were sent.
    pub came: Vec<AcknowledgedPacket>,
    pub lost_packets: u32,
    pub lost_bytes: u64,
    /// Up to the highest sequence number that came, lost ones too.
    pub newly_acknowledged_bytes: u64,
    /// Sent after the last one that came.
    pub in_flight_bytes: u64,
}

impl History {
    /// Of the next packet.
    pub fn next_sequence(&self) -> u32 {
        self.begin + self.packets.len() as u32
    }

    pub fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    pub fn sent(&mut self, bytes: u32, sent_ns: u64) {
        self.packets.push_back(SentPacket { bytes, sent_ns, fate: Fate::Unknown });
        self.in_flight_bytes += u64::from(bytes);
    }

    /// Where nothing has been heard for long: what was in flight for so long is lost, and no longer in flight.
    pub fn give_up(&mut self, now_ns: u64) -> Option<Feedback> {
        if self.in_flight_bytes == 0 || now_ns < self.heard_ns + SILENCE_NS {
            return None;
        }
        let mut feedback = Feedback { now_ns, ..Feedback::default() };
        let mut sequence = self.acknowledged;
        while let Some(sent) = self.at(sequence).filter(|sent| sent.sent_ns + SILENCE_NS <= now_ns) {
            let bytes = u64::from(sent.bytes);
            sent.fate = Fate::Lost;
            feedback.lost_packets += 1;
            feedback.lost_bytes += bytes;
            self.in_flight_bytes -= bytes;
            sequence += 1;
        }
        self.acknowledged = sequence;
        feedback.in_flight_bytes = self.in_flight_bytes;
        if feedback.lost_packets > 0 {
            self.heard_ns = now_ns;
        }
        (feedback.lost_packets > 0).then_some(feedback)
    }

    pub fn take(&mut self, report: &Report, now_ns: u64) -> Feedback {
        self.heard_ns = now_ns;
        let mut feedback = Feedback { now_ns, ..Feedback::default() };
        let latest = report.last.checked_sub(report.begin).and_then(|place| report.packets.get(place as usize));
        if let (Some(Some(arrival)), Some(sent)) = (latest, self.at(report.last)) {
            let held_ns = report.sent_ns.saturating_sub(arrival.at_ns);
            feedback.rtt_ns = Some(now_ns.saturating_sub(sent.sent_ns).saturating_sub(held_ns).max(1));
        }
        for (sequence, arrival) in (report.begin..).zip(&report.packets) {
            let Some(sent) = self.at(sequence) else { continue };
            match (arrival, sent.fate) {
                (Some(arrival), Fate::Unknown | Fate::Missing | Fate::Lost) => {
                    sent.fate = Fate::Came;
                    feedback.came.push(AcknowledgedPacket {
                        bytes: sent.bytes,
                        sent_ns: sent.sent_ns,
                        arrived_ns: arrival.at_ns,
                        marked: arrival.ecn == CE,
                    });
                    self.acknowledge(sequence, &mut feedback);
                }
                (None, Fate::Unknown) => sent.fate = Fate::Missing,
                (None, Fate::Missing) => {
                    sent.fate = Fate::Lost;
                    feedback.lost_packets += 1;
                    feedback.lost_bytes += u64::from(sent.bytes);
                }
                (Some(_), Fate::Came) | (None, Fate::Came | Fate::Lost) => {}
            }
        }
        feedback.in_flight_bytes = self.in_flight_bytes;
        // Reports that come tell of them no more.
        while self.begin < report.begin.min(self.acknowledged) {
            let Some(sent) = self.packets.pop_front() else { break };
            self.begin += 1;
            if sent.fate == Fate::Missing {
                feedback.lost_packets += 1;
                feedback.lost_bytes += u64::from(sent.bytes);
            }
        }
        feedback
    }

    fn acknowledge(&mut self, sequence: u32, feedback: &mut Feedback) {
        for place in self.acknowledged..=sequence {
            let bytes = self.at(place).map_or(0, |sent| u64::from(sent.bytes));
            feedback.newly_acknowledged_bytes += bytes;
            self.in_flight_bytes -= bytes;
        }
        self.acknowledged = self.acknowledged.max(sequence + 1);
    }

    fn at(&mut self, sequence: u32) -> Option<&mut SentPacket> {
        let place = sequence.checked_sub(self.begin)?;
        self.packets.get_mut(place as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::arrivals::Arrivals;
    use super::*;

    #[test]
    fn each_packet_is_acknowledged_or_lost_once() {
        let (mut history, mut arrivals) = (History::default(), Arrivals::default());
        (0..5).for_each(|number| history.sent(100, number * 10));
        // The second is lost, the third is overtaken by the fourth.
        for (sequence, at_ns) in [(0, 1000), (3, 1040)] {
            arrivals.take(sequence, at_ns, 0);
        }
        let first = history.take(&arrivals.report(1, 2040, false)[0], 3000);
        assert_eq!((first.came.len(), first.lost_packets, first.newly_acknowledged_bytes), (2, 0, 400));
        // 3000 − 30 less the 1000 for which the receiver kept it.
        assert_eq!((first.rtt_ns, first.in_flight_bytes), (Some(1970), 100));
        arrivals.take(2, 2050, CE);
        let second = history.take(&arrivals.report(1, 3040, false)[0], 4000);
        assert_eq!((second.came.len(), second.lost_packets, second.lost_bytes), (1, 1, 100));
        assert!(second.came[0].marked && second.newly_acknowledged_bytes == 0);
        arrivals.take(4, 3050, 0);
        let third = history.take(&arrivals.report(1, 4040, false)[0], 5000);
        assert_eq!((third.came.len(), third.lost_packets, third.in_flight_bytes), (1, 0, 0));
        assert_eq!(history.next_sequence(), 5);
    }

    #[test]
    fn after_a_second_of_silence_what_was_in_flight_is_lost() {
        let mut history = History::default();
        [0, 10, 900_000_000].into_iter().for_each(|sent_ns| history.sent(100, sent_ns));
        assert!(history.give_up(SILENCE_NS - 1).is_none());
        let feedback = history.give_up(SILENCE_NS + 10).expect("silence");
        assert_eq!((feedback.lost_packets, feedback.in_flight_bytes), (2, 100));
        assert!(history.give_up(2 * SILENCE_NS).is_none());
        // It had come all the same.
        let mut arrivals = Arrivals::default();
        (0..3).for_each(|sequence| arrivals.take(sequence, 1_000_000_000, 0));
        let late = history.take(&arrivals.report(1, 1_000_000_000, false)[0], 1_100_000_000);
        assert_eq!((late.came.len(), late.in_flight_bytes, late.newly_acknowledged_bytes), (3, 0, 100));
    }
}
