//! The answering end: what it says to each packet, and what it counts. Who asks gives the order; this end knows none.

use std::io::Read;
use std::os::fd::AsFd;

use ewan_system::clock::monotonic_ns;
use ewan_traffic::packets::{Header, Receiver, Sender, HEADER_BYTES};
use ewan_traffic::probe::stats::{self, Arrival};
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

use super::burst::{self, InOrder};
use super::request::MOST_BURST_BYTES;
use super::tunnel::End;
use super::words::{Count, Word, MOST_PACKETS};
use super::Request;

/// Whoever forgets this end does not leave it there for ever.
const LONGEST_NS: i64 = 120_000_000_000;
/// Network copies of packets are kept too, up to so many.
const MOST_ARRIVALS: usize = 2 * MOST_PACKETS as usize;

/// Answers until `stdin` is closed, or for two minutes.
pub fn until_closed(end: &End, request: &Request, mut stdin: impl Read + AsFd) -> Result<(), String> {
    let most_payload = request.most_payload_bytes();
    let (mut sender, mut receiver) = (Sender::new(most_payload), Receiver::new());
    let (mut heard, over_ns) = (RunState::default(), monotonic_ns() + LONGEST_NS);
    loop {
        let left_ms = (over_ns - monotonic_ns()) / 1_000_000;
        if left_ms <= 0 {
            return Ok(());
        }
        let timeout = PollTimeout::try_from(left_ms).unwrap_or(PollTimeout::MAX);
        let watched = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut ready = [watched(end.socket.as_fd()), watched(stdin.as_fd())];
        match poll(&mut ready, timeout) {
            Err(Errno::EINTR) => continue,
            polled => polled.map_err(|error| format!("poll: {error}"))?,
        };
        let [socket, closing] = ready.map(|each| each.any().unwrap_or(true));
        if closing && matches!(stdin.read(&mut [0; 4096]), Ok(0) | Err(_)) {
            return Ok(());
        }
        if !socket {
            continue;
        }
        let mut asked = None;
        receiver.drain(&end.socket, |header, at_ns, bytes| match heard.take(header, at_ns, bytes, most_payload) {
            // One that is refused counts as lost.
            Say::Answer(header, bytes) => drop(sender.send(&end.socket, end.peer, bytes, header, 1, None)),
            Say::Burst(header, bytes, packets) => asked = Some((header, bytes, packets)),
            Say::Nothing => {}
        })?;
        if let Some((header, bytes, packets)) = asked {
            heard.burst_sent = burst::send(&end.socket, end.peer, &mut sender, bytes, header, packets);
        }
    }
}

/// What follows from a packet.
#[derive(Debug, PartialEq, Eq)]
enum Say {
    Nothing,
    /// With so many bytes of payload.
    Answer(Header, usize),
    /// The first packet's header, payload, and how many.
    Burst(Header, usize, u64),
}

/// Of one run, from its Hello on.
#[derive(Default)]
struct RunState {
    run: u32,
    timed: Vec<Arrival>,
    burst: Vec<Arrival>,
    burst_asked: bool,
    burst_sent: u64,
}

impl RunState {
    /// `at_ns`: when it came, by our clock; `bytes`: its payload.
    fn take(&mut self, header: Header, at_ns: i64, bytes: usize, most_payload: usize) -> Say {
        let Some(word) = Word::of(u64::from(header.index)) else { return Say::Nothing };
        if word == Word::Hello && header.run != self.run {
            *self = Self { run: header.run, ..Self::default() };
        }
        if bytes < HEADER_BYTES || header.run != self.run {
            return Say::Nothing;
        }
        let delay_ns = at_ns - header.sent_ns;
        let answer = Header { forward_ns: delay_ns, ..header };
        let arrival = Arrival { sequence: header.sequence, at_ns, delay_ns };
        match word {
            Word::Hello | Word::SizeThere => Say::Answer(answer, HEADER_BYTES),
            Word::Time => {
                keep(&mut self.timed, arrival);
                Say::Answer(answer, HEADER_BYTES)
            }
            Word::SizeBack => match payload(header.forward_ns, most_payload) {
                Some(bytes) => Say::Answer(answer, bytes),
                None => Say::Nothing,
            },
            Word::BurstThere => {
                keep(&mut self.burst, arrival);
                Say::Nothing
            }
            Word::BurstBack => {
                let packets = header.sequence.min(MOST_PACKETS);
                match payload(header.forward_ns, most_payload) {
                    // The question comes again where its burst has not come yet.
                    Some(bytes) if !self.burst_asked && packets * bytes as u64 <= MOST_BURST_BYTES => {
                        self.burst_asked = true;
                        Say::Burst(Header { sequence: 0, forward_ns: 0, ..header }, bytes, packets)
                    }
                    _ => Say::Nothing,
                }
            }
            Word::Count => match Count::of(header.sequence) {
                Some(count) => Say::Answer(Header { forward_ns: self.count(count) as i64, ..header }, HEADER_BYTES),
                None => Say::Nothing,
            },
        }
    }

    fn count(&self, count: Count) -> u64 {
        let of = |arrivals: &[Arrival]| stats::counts(arrivals, MOST_PACKETS, 0);
        match count {
            Count::TimeReceived => of(&self.timed).received_packets,
            Count::TimeReordered => of(&self.timed).reordered_packets,
            Count::TimeDuplicated => of(&self.timed).duplicated_packets,
            Count::BurstReceived => of(&self.burst).received_packets,
            Count::BurstInOrder => InOrder::of(&self.burst).packets,
            Count::BurstWindowNs => InOrder::of(&self.burst).window_ns,
            Count::BurstSent => self.burst_sent,
        }
    }
}

fn keep(arrivals: &mut Vec<Arrival>, arrival: Arrival) {
    if arrival.sequence < MOST_PACKETS && arrivals.len() < MOST_ARRIVALS {
        arrivals.push(arrival);
    }
}

/// The payload that was asked for, where this end can send it.
fn payload(asked: i64, most: usize) -> Option<usize> {
    usize::try_from(asked).ok().filter(|bytes| (HEADER_BYTES..=most).contains(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 1422;

    fn question(word: Word, sequence: u64, forward_ns: i64) -> Header {
        Header { run: 5, index: word as u32, sequence, sent_ns: 1_000, forward_ns }
    }

    fn greeted() -> RunState {
        let mut heard = RunState::default();
        let answer = heard.take(question(Word::Hello, 0, 0), 1_300, 32, MOST);
        assert_eq!(answer, Say::Answer(question(Word::Hello, 0, 300), 32));
        heard
    }

    #[test]
    fn nothing_is_said_to_what_no_hello_began() {
        let mut heard = greeted();
        let other = Header { run: 6, ..question(Word::Time, 0, 0) };
        assert_eq!(heard.take(other, 2_000, 32, MOST), Say::Nothing);
        assert_eq!(heard.take(question(Word::Time, 0, 0), 2_000, 24, MOST), Say::Nothing);
        assert_eq!(heard.take(Header { index: 99, ..other }, 2_000, 32, MOST), Say::Nothing);
        assert_eq!(RunState::default().take(question(Word::Time, 0, 0), 2_000, 32, MOST), Say::Nothing);
    }

    #[test]
    fn timed_packets_are_answered_with_their_delay_and_counted() {
        let mut heard = greeted();
        for sequence in [0, 2, 1, 2] {
            let said = heard.take(question(Word::Time, sequence, 0), 1_700, 32, MOST);
            assert_eq!(said, Say::Answer(question(Word::Time, sequence, 700), 32));
        }
        let mut count = |count: Count| heard.take(question(Word::Count, count as u64, 0), 9, 32, MOST);
        for (each, expected) in [(Count::TimeReceived, 3), (Count::TimeReordered, 1), (Count::TimeDuplicated, 1)] {
            assert_eq!(count(each), Say::Answer(question(Word::Count, each as u64, expected), 32));
        }
        // A new run counts anew.
        heard.take(Header { run: 6, ..question(Word::Hello, 0, 0) }, 1, 32, MOST);
        assert_eq!(heard.count(Count::TimeReceived), 0);
    }

    #[test]
    fn answers_are_as_large_as_asked_and_no_larger_than_this_end_sends() {
        let mut heard = greeted();
        let mut said = |bytes: i64| heard.take(question(Word::SizeBack, 1, bytes), 1_000, 32, MOST);
        assert_eq!(said(1422), Say::Answer(question(Word::SizeBack, 1, 0), 1422));
        for bytes in [1423, 31, -1] {
            assert_eq!(said(bytes), Say::Nothing);
        }
    }

    #[test]
    fn a_burst_is_sent_once_and_within_bounds() {
        let mut heard = greeted();
        assert_eq!(heard.take(question(Word::BurstBack, 50_000, 1422), 1, 32, MOST), Say::Nothing);
        let first = question(Word::BurstBack, 0, 0);
        assert_eq!(heard.take(question(Word::BurstBack, 100, 1422), 1, 32, MOST), Say::Burst(first, 1422, 100));
        assert_eq!(heard.take(question(Word::BurstBack, 100, 1422), 1, 32, MOST), Say::Nothing);
    }
}
