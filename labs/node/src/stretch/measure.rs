//! The end that asks, in this order: whether anybody answers; single packets at even intervals, by which delays, loss and
//! clocks are known; the largest packet each way; a burst of such packets each way. Nothing else is on the way meanwhile.

use ewan_generator::clock::sleep_until_monotonic;
use ewan_generator::packets::{Header, Receiver, Sender, HEADER_BYTES};
use ewan_generator::probe::stats::{self, Arrival, Percentiles};
use ewan_system::wait::readable;
use ewan_timers::clock::monotonic_ns;
use nix::errno::Errno;
use serde::Serialize;

use super::burst::{self, InOrder};
use super::clocks::{self, Compared, Exchange};
use super::request::{HEADERS_BYTES, LEAST_BYTES};
use super::tunnel::End;
use super::words::{Count, Word};
use super::{size, Request, FORMAT};

/// How long nobody may answer.
const SILENCE_NS: i64 = 10_000_000_000;
const MS: i64 = 1_000_000;
/// Between questions that are repeated until they are answered, with no round trip known.
const AGAIN_NS: i64 = 100 * MS;
/// What the other end may take to look, beyond a round trip.
const LOOKS_NS: i64 = 50 * MS;
/// Copies of a question of which one answer is enough: with a tenth of all packets lost each way, all are lost in one case of
/// 500 000.
const COPIES: usize = 8;
const BETWEEN_COPIES_NS: i64 = MS;
/// A burst has ended when for so long, beyond a round trip, nothing came.
const PAUSE_NS: i64 = 300 * MS;
const LONGEST_BURST_NS: i64 = 10_000 * MS;

/// What `measure` prints. There: from this machine to the other; back: from it.
#[derive(Debug, Serialize)]
pub struct Found {
    format: &'static str,
    /// Of timed packets: from their being handed to this kernel until the other one had them and the same back, without the time
    /// that the other end took to answer.
    round_trip_ns: Spread,
    /// One-way delays by both ends' clocks as they stand: the offset is in them.
    there_ns: Spread,
    back_ns: Spread,
    #[serde(flatten)]
    clocks: Clocks,
    /// Timed packets that went, and those whose answers came.
    sent: u64,
    answered: u64,
    lost_there: u64,
    lost_back: u64,
    reordered_there: u64,
    reordered_back: u64,
    duplicated_there: u64,
    duplicated_back: u64,
    /// Bits of UDP payload a second: of those packets of a burst, of the largest that pass, that came in order after the
    /// first, by the time from the first to the last. None where no burst was asked for, or too little of it came.
    rate_there_bps: Option<u64>,
    rate_back_bps: Option<u64>,
    burst_there: Burst,
    burst_back: Burst,
    /// The largest IP packet inside the tunnel that passes whole, up to the MTU that was asked for; both ways, and each.
    mtu: usize,
    mtu_there: usize,
    mtu_back: usize,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Spread {
    min: i64,
    p50: i64,
    p99: i64,
    max: i64,
}

impl From<Percentiles> for Spread {
    fn from(found: Percentiles) -> Self {
        Self { min: found.min_ns, p50: found.p50_ns, p99: found.p99_ns, max: found.max_ns }
    }
}

/// The other machine's CLOCK_REALTIME minus ours; see `clocks::Compared`.
#[derive(Debug, Serialize)]
struct Clocks {
    offset_ns: i64,
    /// When: by our CLOCK_REALTIME.
    offset_at_ns: i64,
    offset_uncertainty_ns: i64,
    offset_scatter_ns: Option<i64>,
    drift_ppb: Option<i64>,
    drift_uncertainty_ppb: i64,
}

impl From<Compared> for Clocks {
    fn from(found: Compared) -> Self {
        Self {
            offset_ns: found.offset_ns,
            offset_at_ns: found.at_ns,
            offset_uncertainty_ns: found.uncertainty_ns,
            offset_scatter_ns: found.scatter_ns,
            drift_ppb: found.drift_ppb,
            drift_uncertainty_ppb: found.drift_uncertainty_ppb,
        }
    }
}

/// Packets of a burst: handed to the tunnel; different ones that came; those of them that came in order.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Burst {
    packet_bytes: usize,
    sent: u64,
    arrived: u64,
    in_order: u64,
}

/// Errors: nobody answers, or no longer; a clock that is being set.
pub fn all(end: &End, request: &Request) -> Result<Found, String> {
    let mut asking = Asking::new(end, request);
    asking.greet()?;
    let timed = asking.time()?;
    let [received, reordered_there, duplicated_there] =
        asking.counts([Count::TimeReceived, Count::TimeReordered, Count::TimeDuplicated])?;
    let clocks = clocks::compare(&timed.exchanges);
    let clocks = clocks.ok_or_else(|| format!("{}: of {} timed packets none came back", asking.way(), timed.sent))?;
    let clocks = clocks.map_err(|clocks::Unsteady| {
        format!("{}: the clock of one of the machines was being set meanwhile: measure again", asking.way())
    })?;
    let mtu_there = asking.largest(Word::SizeThere)?;
    let mtu_back = asking.largest(Word::SizeBack)?;
    let (burst_there, there) = asking.burst_there(mtu_there)?;
    let (burst_back, back) = asking.burst_back(mtu_back)?;
    let spread = |of: fn(&Exchange) -> i64| {
        let values = timed.exchanges.iter().map(of).collect();
        stats::percentiles(values).map(Spread::from).expect("there are exchanges")
    };
    Ok(Found {
        format: FORMAT,
        round_trip_ns: spread(Exchange::round_trip_ns),
        there_ns: spread(|each| each.there_ns),
        back_ns: spread(|each| each.back_ns),
        clocks: clocks.into(),
        sent: timed.sent,
        answered: timed.counts.received_packets,
        lost_there: timed.sent.saturating_sub(received),
        lost_back: received.saturating_sub(timed.counts.received_packets),
        reordered_there,
        reordered_back: timed.counts.reordered_packets,
        duplicated_there,
        // Each copy of a question has an answer of its own.
        duplicated_back: timed.counts.duplicated_packets.saturating_sub(duplicated_there),
        rate_there_bps: there.rate_bps(mtu_there - HEADERS_BYTES),
        rate_back_bps: back.rate_bps(mtu_back - HEADERS_BYTES),
        burst_there,
        burst_back,
        mtu: mtu_there.min(mtu_back),
        mtu_there,
        mtu_back,
    })
}

/// What the timed packets gave.
struct Timed {
    sent: u64,
    exchanges: Vec<Exchange>,
    /// Of the answers.
    counts: stats::Counts,
}

struct Asking<'a> {
    end: &'a End,
    request: &'a Request,
    run: u32,
    sender: Sender,
    receiver: Receiver,
    /// The longest that an answer took, and what the other end may take to look.
    patience_ns: i64,
}

impl<'a> Asking<'a> {
    fn new(end: &'a End, request: &'a Request) -> Self {
        Self {
            end,
            request,
            run: ewan_generator::clock::real_ns() as u32 | 1,
            sender: Sender::new(request.most_payload_bytes()),
            receiver: Receiver::new(),
            patience_ns: AGAIN_NS,
        }
    }

    fn way(&self) -> String {
        format!("the tunnel from {} to {}, UDP port {}", self.request.local, self.request.remote, self.request.port)
    }

    fn header(&self, word: Word, sequence: u64, forward_ns: i64) -> Header {
        Header { run: self.run, index: word as u32, sequence, sent_ns: 0, forward_ns }
    }

    /// When it was handed to the kernel, which may have refused it.
    fn send(&mut self, header: Header, payload_bytes: usize) -> Option<i64> {
        let sent = self.sender.send(&self.end.socket, self.end.peer, payload_bytes, header, 1, None);
        sent.ok().filter(|(count, _)| *count == 1).map(|(_, at_ns)| at_ns)
    }

    /// Hands all of this kind that is there to `take`: header, when it came, payload.
    fn take(&mut self, word: Word, mut take: impl FnMut(Header, i64, usize)) -> Result<(), String> {
        let run = self.run;
        self.receiver.drain(&self.end.socket, |header, at_ns, bytes| {
            if header.run == run && header.index == word as u32 && bytes >= HEADER_BYTES {
                take(header, at_ns, bytes);
            }
        })
    }

    /// Waits until something is there; false at `until_ns` (CLOCK_MONOTONIC).
    fn wait(&self, until_ns: i64) -> Result<bool, String> {
        let left_ns = u64::try_from(until_ns - monotonic_ns()).unwrap_or(0);
        match readable(&self.end.socket, left_ns) {
            Err(Errno::EINTR) => Ok(true),
            waited => waited.map_err(|error| format!("poll: {error}")),
        }
    }

    fn greet(&mut self) -> Result<(), String> {
        let begun_ns = monotonic_ns();
        for sequence in 0.. {
            let now_ns = monotonic_ns();
            if now_ns > begun_ns + SILENCE_NS {
                break;
            }
            self.send(self.header(Word::Hello, sequence, 0), HEADER_BYTES);
            let (mut heard, next_ns) = (false, now_ns + AGAIN_NS);
            while !heard && self.wait(next_ns)? {
                self.take(Word::Hello, |_, _, _| heard = true)?;
            }
            if heard {
                return Ok(());
            }
        }
        let Request { local, remote, port, .. } = self.request;
        Err(format!(
            "no packet came back over the tunnel from {local} to {remote}, UDP port {port}: is a firewall in between?"
        ))
    }

    /// Packets at even instants. One that is late by more than an interval moves those after it: two at once would not
    /// measure the tunnel.
    fn time(&mut self) -> Result<Timed, String> {
        let (packets, interval_ns) = (self.request.packets, self.request.interval_ns as i64);
        let mut sent_at: Vec<Option<i64>> = Vec::with_capacity(packets as usize);
        let mut answers: Vec<(Header, i64)> = Vec::with_capacity(packets as usize);
        let mut due_ns = monotonic_ns() + MS;
        for sequence in 0..packets {
            sleep_until_monotonic(due_ns);
            sent_at.push(self.send(self.header(Word::Time, sequence, 0), HEADER_BYTES));
            due_ns = (due_ns + interval_ns).max(monotonic_ns());
            self.take(Word::Time, |header, at_ns, _| answers.push((header, at_ns)))?;
        }
        let sent = sent_at.iter().flatten().count() as u64;
        let mut last_ns = monotonic_ns();
        loop {
            let longest = answers.iter().filter_map(|(header, at_ns)| took_ns(&sent_at, header, *at_ns)).max();
            self.patience_ns = longest.unwrap_or(self.patience_ns) + LOOKS_NS;
            // Answers that are much later than all others are taken for lost.
            let over_ns = last_ns + PAUSE_NS + 2 * self.patience_ns;
            if answers.len() as u64 >= sent || !self.wait(over_ns)? {
                break;
            }
            self.take(Word::Time, |header, at_ns, _| answers.push((header, at_ns)))?;
            last_ns = monotonic_ns();
        }
        answers.retain(|(header, at_ns)| took_ns(&sent_at, header, *at_ns).is_some());
        Ok(Timed { sent, exchanges: exchanges(&sent_at, &answers), counts: counts(&answers, packets, sent) })
    }

    fn largest(&mut self, word: Word) -> Result<usize, String> {
        let most = self.request.mtu as usize;
        size::largest(LEAST_BYTES.min(most), most, |bytes| self.passes(word, bytes))
    }

    /// Whether a packet of so many bytes comes to the other end (`SizeThere`), or from it (`SizeBack`).
    fn passes(&mut self, word: Word, bytes: usize) -> Result<bool, String> {
        let payload = bytes - HEADERS_BYTES;
        let (question_bytes, answer_bytes) =
            if word == Word::SizeThere { (payload, HEADER_BYTES) } else { (HEADER_BYTES, payload) };
        let question = self.header(word, bytes as u64, payload as i64);
        for copy in 1..=COPIES {
            self.send(question, question_bytes);
            let now_ns = monotonic_ns();
            let until_ns = now_ns + if copy < COPIES { BETWEEN_COPIES_NS } else { self.patience_ns };
            while self.wait(until_ns)? {
                let mut passed = false;
                self.take(word, |header, _, bytes| {
                    passed |= header.sequence == question.sequence && bytes == answer_bytes;
                })?;
                if passed {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// What the other end has counted: asked until all is answered.
    fn counts<const N: usize>(&mut self, which: [Count; N]) -> Result<[u64; N], String> {
        let mut told: [Option<u64>; N] = [None; N];
        let over_ns = monotonic_ns() + SILENCE_NS;
        while told.contains(&None) {
            if monotonic_ns() > over_ns {
                return Err(format!("{}: the other end no longer answers", self.way()));
            }
            for (count, told) in which.iter().zip(&told) {
                if told.is_none() {
                    self.send(self.header(Word::Count, *count as u64, 0), HEADER_BYTES);
                }
            }
            let until_ns = monotonic_ns() + self.patience_ns;
            while told.contains(&None) && self.wait(until_ns)? {
                self.take(Word::Count, |header, _, _| {
                    let place = which.iter().position(|count| *count as u64 == header.sequence);
                    if let Some(place) = place {
                        told[place] = Some(header.forward_ns as u64);
                    }
                })?;
            }
        }
        Ok(told.map(Option::unwrap_or_default))
    }

    fn burst_there(&mut self, packet_bytes: usize) -> Result<(Burst, InOrder), String> {
        let payload = packet_bytes - HEADERS_BYTES;
        let packets = self.request.burst_packets(payload);
        let first = self.header(Word::BurstThere, 0, 0);
        let sent = burst::send(&self.end.socket, self.end.peer, &mut self.sender, payload, first, packets);
        if sent == 0 {
            return Ok((Burst { packet_bytes, ..Burst::default() }, InOrder::default()));
        }
        let over_ns = monotonic_ns() + LONGEST_BURST_NS;
        let mut before = None;
        loop {
            let [arrived, packets, window_ns] =
                self.counts([Count::BurstReceived, Count::BurstInOrder, Count::BurstWindowNs])?;
            // The questions come behind the burst; where they overtake it, more comes after them.
            if arrived == sent || before == Some(arrived) || monotonic_ns() > over_ns {
                let found = InOrder { packets, window_ns };
                return Ok((Burst { packet_bytes, sent, arrived, in_order: packets }, found));
            }
            before = Some(arrived);
            sleep_until_monotonic(monotonic_ns() + PAUSE_NS);
        }
    }

    fn burst_back(&mut self, packet_bytes: usize) -> Result<(Burst, InOrder), String> {
        let payload = packet_bytes - HEADERS_BYTES;
        let packets = self.request.burst_packets(payload);
        if packets == 0 {
            return Ok((Burst { packet_bytes, ..Burst::default() }, InOrder::default()));
        }
        let question = self.header(Word::BurstBack, packets, payload as i64);
        let mut arrivals: Vec<Arrival> = Vec::with_capacity(packets as usize);
        let over_ns = monotonic_ns() + LONGEST_BURST_NS;
        loop {
            if arrivals.is_empty() {
                self.send(question, HEADER_BYTES);
            }
            let pause_ns = self.patience_ns + if arrivals.is_empty() { 0 } else { PAUSE_NS };
            let came = self.wait((monotonic_ns() + pause_ns).min(over_ns))?;
            if !came && (!arrivals.is_empty() || monotonic_ns() >= over_ns) {
                break;
            }
            self.take(Word::BurstBack, |header, at_ns, bytes| {
                if bytes == payload && header.sequence < packets && (arrivals.len() as u64) < 2 * packets {
                    arrivals.push(Arrival { sequence: header.sequence, at_ns, delay_ns: at_ns - header.sent_ns });
                }
            })?;
            if arrivals.len() as u64 >= packets {
                break;
            }
        }
        let [sent] = self.counts([Count::BurstSent])?;
        let (arrived, found) = (stats::counts(&arrivals, packets, sent).received_packets, InOrder::of(&arrivals));
        Ok((Burst { packet_bytes, sent, arrived, in_order: found.packets }, found))
    }
}

/// From the question to the answer that came at `at_ns`; None where there was no such question.
fn took_ns(sent_at: &[Option<i64>], answer: &Header, at_ns: i64) -> Option<i64> {
    let place = usize::try_from(answer.sequence).ok()?;
    Some(at_ns - (*sent_at.get(place)?)?)
}

/// Of each question the first answer.
fn exchanges(sent_at: &[Option<i64>], answers: &[(Header, i64)]) -> Vec<Exchange> {
    let mut seen = vec![false; sent_at.len()];
    let exchange = |(header, received_ns): &(Header, i64)| {
        let place = header.sequence as usize;
        let sent_ns = sent_at[place]?;
        (!std::mem::replace(&mut seen[place], true)).then_some(Exchange {
            sent_ns,
            received_ns: *received_ns,
            there_ns: header.forward_ns,
            back_ns: received_ns - header.sent_ns,
        })
    };
    answers.iter().filter_map(exchange).collect()
}

fn counts(answers: &[(Header, i64)], offered: u64, sent: u64) -> stats::Counts {
    let arrival = |(header, at_ns): &(Header, i64)| Arrival { sequence: header.sequence, at_ns: *at_ns, delay_ns: 0 };
    stats::counts(&answers.iter().map(arrival).collect::<Vec<_>>(), offered, sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_answers_the_first_counts() {
        let answer = |sequence, sent_ns, forward_ns| Header { run: 1, index: 2, sequence, sent_ns, forward_ns };
        // The other clock is 1000 ahead; the second question was refused by our own kernel.
        let sent_at = [Some(100), None, Some(300)];
        let answers = [(answer(2, 1_330, 1_020), 350), (answer(0, 1_115, 1_010), 140), (answer(2, 1_390, 1_050), 400)];
        let found = exchanges(&sent_at, &answers);
        assert_eq!(
            found,
            [
                Exchange { sent_ns: 300, received_ns: 350, there_ns: 1_020, back_ns: -980 },
                Exchange { sent_ns: 100, received_ns: 140, there_ns: 1_010, back_ns: -975 },
            ]
        );
        assert_eq!(found[0].round_trip_ns(), 40);
        let counted = counts(&answers, 3, 2);
        let expected =
            stats::Counts { received_packets: 2, reordered_packets: 1, duplicated_packets: 1, lost_packets: 0 };
        assert_eq!(counted, expected);
        assert_eq!(took_ns(&sent_at, &answer(1, 0, 0), 9), None);
        assert_eq!(took_ns(&sent_at, &answer(9, 0, 0), 9), None);
    }
}
