//! The end that asks, in this order: whether anybody answers; single packets at even intervals, by which delays, loss and
//! clocks are known; the largest packet each way; a burst of such packets each way. Nothing else is on the way meanwhile.

use ewan_system::clock::monotonic_ns;
use ewan_system::wait::readable;
use ewan_traffic::clock::sleep_until_monotonic;
use ewan_traffic::packets::{Header, Receiver, Sender, HEADER_BYTES};
use ewan_traffic::probe::stats::{self, Arrival};
use nix::errno::Errno;

use super::arrivals::{exchanges, took_ns, ArrivalSet, Back};
use super::burst::{self, InOrder};
use super::clocks::{self, Exchange};
use super::request::{HEADERS_BYTES, LEAST_BYTES};
use super::result::{Burst, Spread, TunnelResult};
use super::tunnel::End;
use super::words::{Count, Word};
use super::{size, Request, FORMAT};

/// How long nobody may answer.
const SILENCE_NS: i64 = 10_000_000_000;
const MS: i64 = 1_000_000;
/// Between questions that are repeated until they are answered, with no round trip known.
const AGAIN_NS: i64 = 100 * MS;
const FEW: i64 = 2;
/// What the other end may take to look, beyond a round trip.
const LOOKS_NS: i64 = 50 * MS;
/// Copies of a question of which one answer is enough: with a tenth of all packets lost each way, all are lost in one case of
/// 500 000.
const COPIES: usize = 8;
const BETWEEN_COPIES_NS: i64 = MS;
/// A burst has ended when for so long, beyond a round trip, nothing came.
const PAUSE_NS: i64 = 300 * MS;
const LONGEST_BURST_NS: i64 = 10_000 * MS;
/// Of a whole measurement; the other end answers for two minutes.
const LONGEST_NS: i64 = 100_000 * MS;

/// Errors: nobody answers, or no longer; a clock that is being set.
pub fn all(end: &End, request: &Request) -> Result<TunnelResult, String> {
    let mut asking = Asking::new(end, request);
    asking.greet()?;
    let timed = asking.time()?;
    let [received, reordered_there, duplicated_there] =
        asking.counts([Count::TimeReceived, Count::TimeReordered, Count::TimeDuplicated])?;
    let clocks = clocks::compare(&timed.exchanges);
    let clocks = clocks.ok_or_else(|| format!("{}: of {} timed packets none came back", asking.way(), timed.sent))?;
    let clocks = clocks.map_err(|clocks::UnsteadyClock| {
        format!("{}: the clock of one of the machines was being set meanwhile: measure again", asking.way())
    })?;
    let mtu_there = asking.largest(Word::SizeThere)?;
    let mtu_back = asking.largest(Word::SizeBack)?;
    let (burst_there, there) = asking.burst_there(mtu_there)?;
    let (burst_back, back) = asking.burst_back(mtu_back)?;
    let steady: Vec<Exchange> = timed.exchanges.iter().map(|each| clocks.without_drift(each)).collect();
    let spread = |of: fn(&Exchange) -> i64| {
        let values = steady.iter().map(of).collect();
        stats::percentiles(values).map(Spread::from).expect("there are exchanges")
    };
    Ok(TunnelResult {
        format: FORMAT,
        round_trip_ns: spread(Exchange::round_trip_ns),
        there_ns: spread(|each| each.there_ns),
        back_ns: spread(|each| each.back_ns),
        clocks,
        sent: timed.sent,
        answered: timed.answered(),
        lost_there: timed.sent.saturating_sub(received),
        lost_back: received.saturating_sub(timed.answered()),
        reordered_there,
        reordered_back: timed.back.reordered,
        duplicated_there,
        duplicated_back: timed.back.duplicated,
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
struct TimedPackets {
    sent: u64,
    exchanges: Vec<Exchange>,
    back: Back,
}

impl TimedPackets {
    fn answered(&self) -> u64 {
        self.exchanges.len() as u64
    }
}

struct Asking<'a> {
    end: &'a End,
    request: &'a Request,
    run: u32,
    sender: Sender,
    receiver: Receiver,
    /// How long an answer may take: a few times what the quickest one took, and what the other end may take to look.
    patience_ns: i64,
    /// CLOCK_MONOTONIC.
    over_ns: i64,
}

impl<'a> Asking<'a> {
    fn new(end: &'a End, request: &'a Request) -> Self {
        Self {
            end,
            request,
            run: ewan_traffic::clock::real_ns() as u32 | 1,
            sender: Sender::new(request.most_payload_bytes()),
            receiver: Receiver::new(),
            patience_ns: AGAIN_NS,
            over_ns: monotonic_ns() + LONGEST_NS,
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
        if monotonic_ns() > self.over_ns {
            let (way, seconds) = (self.way(), LONGEST_NS / 1_000_000_000);
            return Err(format!("{way}: not measured within {seconds} s: it carries too little, or loses too much"));
        }
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
    fn time(&mut self) -> Result<TimedPackets, String> {
        let (packets, interval_ns) = (self.request.packets, self.request.interval_ns as i64);
        let mut sent_at: Vec<Option<i64>> = Vec::with_capacity(packets as usize);
        let mut answers: Vec<(Header, i64)> = Vec::with_capacity(packets as usize);
        let mut came = ArrivalSet::of(packets);
        let mut due_ns = monotonic_ns() + MS;
        for sequence in 0..packets {
            sleep_until_monotonic(due_ns);
            sent_at.push(self.send(self.header(Word::Time, sequence, 0), HEADER_BYTES));
            due_ns = (due_ns + interval_ns).max(monotonic_ns());
            self.take(Word::Time, |header, at_ns, _| {
                if came.note(header.sequence) {
                    answers.push((header, at_ns));
                }
            })?;
        }
        let sent = sent_at.iter().flatten().count() as u64;
        let mut last_ns = monotonic_ns();
        let all_took = |answers: &[(Header, i64)]| -> Vec<i64> {
            answers.iter().filter_map(|(header, at_ns)| took_ns(&sent_at, header, *at_ns)).collect()
        };
        loop {
            // Answers that are much later than all others are taken for lost.
            let longest_ns = all_took(&answers).into_iter().max().unwrap_or(self.patience_ns);
            let over_ns = last_ns + PAUSE_NS + 2 * longest_ns;
            if came.different >= sent || !self.wait(over_ns)? {
                break;
            }
            self.take(Word::Time, |header, at_ns, _| {
                if came.note(header.sequence) {
                    answers.push((header, at_ns));
                }
            })?;
            last_ns = monotonic_ns();
        }
        let quickest_ns = all_took(&answers).into_iter().min().unwrap_or(self.patience_ns);
        self.patience_ns = FEW * quickest_ns + LOOKS_NS;
        answers.retain(|(header, at_ns)| took_ns(&sent_at, header, *at_ns).is_some());
        Ok(TimedPackets { sent, exchanges: exchanges(&sent_at, &answers), back: Back::of(&answers) })
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
        let mut came = ArrivalSet::of(packets);
        let over_ns = monotonic_ns() + LONGEST_BURST_NS;
        loop {
            if arrivals.is_empty() {
                self.send(question, HEADER_BYTES);
            }
            let pause_ns = self.patience_ns + if arrivals.is_empty() { 0 } else { PAUSE_NS };
            let more = self.wait((monotonic_ns() + pause_ns).min(over_ns))?;
            if !more && (!arrivals.is_empty() || monotonic_ns() >= over_ns) {
                break;
            }
            self.take(Word::BurstBack, |header, at_ns, bytes| {
                if bytes == payload && came.note(header.sequence) {
                    arrivals.push(Arrival { sequence: header.sequence, at_ns, delay_ns: at_ns - header.sent_ns });
                }
            })?;
            if came.different >= packets {
                break;
            }
        }
        let ([sent], found) = (self.counts([Count::BurstSent])?, InOrder::of(&arrivals));
        Ok((Burst { packet_bytes, sent, arrived: came.different, in_order: found.packets }, found))
    }
}
