//! UDP at exact instants: constant and variable rates, sizes and intervals by laws, on and off periods.
//!
//! In: how many packets or until when, and the laws. Out: packets, each sent at the instant that was drawn for it (live: as
//! soon after as the machine lets, never skipped, so that the rate is that of the schedule), and what became of them: loss,
//! reordering, duplicates, one-way delay and jitter. One thread sends, and takes from the receiving socket what lies
//! there when so many packets were sent that they might fill it: the kernel stamps each as it comes, so nothing depends
//! on when it is read, and nobody wakes for a packet. A packet for which the sender's own queue has no room is lost.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::Deserialize;

use super::law::Law;
use super::local_end::Side;
use super::schedule::{check_periods, Departure, Laws, Schedule};
use super::{Common, Ending, Ends, Flow, Gate, Received, Record, UdpRecord, World};
use crate::clock::{offset_ns, Clock};
use crate::packets::{Header, Receiver, Sender, MOST, MOST_RECEIVED, SHORT_HEADER_BYTES};
use crate::room::Room;
use crate::socket::Endpoint;

pub(super) mod reception;

use reception::Reception;

const LEAST_BYTES: u64 = SHORT_HEADER_BYTES as u64;
/// What a UDP packet can carry over IPv4.
const LARGEST_BYTES: u64 = 65_507;
const LEAST_INTERVAL_NS: f64 = 100.0;

/// Of each socket: what an arriving packet costs of it, beyond its bytes, is counted twice by the kernel.
const BUFFER_BYTES: usize = 16 << 20;
const OVERHEAD_BYTES: usize = 2048;
/// A longer sleep can be cut short.
const DEAF_NS: u64 = 20_000_000;
/// Between two looks at a receiver that may fill while the sender sleeps, and at the last packets on their way.
const LOOK_NS: u64 = 5_000_000;
/// The same where the sender is elsewhere and packets come seldom.
const LONGEST_LOOK_NS: u64 = 8 * LOOK_NS;
/// A machine that is later than that at the flow's stop was too slow for it: what is still due stays unsent.
const LATE_NS: u64 = 100_000_000;
/// No packet for so long after the last one, for twice the longest delay or for the longest transit, whichever is longest:
/// no more will come.
const QUIET_NS: i64 = 200_000_000;
/// The same where none ever came.
const SILENCE_NS: i64 = 2_000_000_000;
/// For longer after the last packet left, or for longer than the longest transit, nobody waits.
const LONGEST_LINGER_NS: i64 = 10_000_000_000;
/// Who has waited for a while looks again after this part of it.
const LOOKS: i64 = 16;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Udp {
    /// Packets; none: until the flow's stop.
    #[serde(default)]
    pub count: Option<u64>,
    /// Of payload; what is drawn below 24 or above 65507 becomes that.
    pub size_bytes: Law,
    pub interval_ns: Law,
    #[serde(default)]
    pub on_ns: Option<Law>,
    #[serde(default)]
    pub off_ns: Option<Law>,
    /// The longest time that a packet may be on its way, as far as is known; 0: it is not known.
    #[serde(default)]
    pub transit_ns: u64,
}

impl Udp {
    pub fn check(&self, stops: bool) -> Result<(), String> {
        let (least, most) = (self.size_bytes.least(), self.size_bytes.most());
        if self.count.is_none() && !stops {
            Err("give count or stop_ns".into())
        } else if self.count == Some(0) {
            Err("count must be above 0".into())
        } else if least > LARGEST_BYTES as f64 || most.is_some_and(|most| most < LEAST_BYTES as f64) {
            Err(format!("size_bytes: give {LEAST_BYTES} to {LARGEST_BYTES} bytes of payload"))
        } else if self.interval_ns.mean() < LEAST_INTERVAL_NS {
            Err(format!("interval_ns: give a mean of {LEAST_INTERVAL_NS} ns or more"))
        } else {
            check_periods(self.on_ns, self.off_ns)
        }
    }

    pub(super) fn laws(&self) -> Laws {
        Laws {
            count: self.count,
            sizes: self.size_bytes,
            bounds: LEAST_BYTES..=LARGEST_BYTES,
            intervals: self.interval_ns,
            on_off: self.on_ns.zip(self.off_ns),
        }
    }
}

struct UdpFlow {
    common: Common,
    ends: Ends,
    work: Udp,
    gate: Gate,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    socket: Option<(UdpSocket, Receiver, Room)>,
    /// Of this run's packets of this flow.
    run: u32,
    /// The receiver's clock, of the sender's.
    ahead_ns: i64,
    heard: Reception,
    started_ns: Option<i64>,
    /// The source's.
    port: Option<u16>,
    sent_packets: u64,
    sent_bytes: u64,
    /// The last one went, or its time is over.
    sent_all_ns: Option<i64>,
    /// What it was to send, where that is known.
    volume_bytes: Option<u64>,
    refused: Option<String>,
    ended_ns: Option<i64>,
    error: Option<String>,
    /// CLOCK_REALTIME at T0.
    real_begin_ns: i64,
}

pub fn new(common: Common, ends: Ends, work: &Udp) -> Arc<dyn Flow> {
    let (gate, state) = (Gate::default(), Mutex::default());
    Arc::new(UdpFlow { common, ends, work: work.clone(), gate, state })
}

impl Flow for UdpFlow {
    fn launch(self: Arc<Self>, world: &Arc<World>) -> Result<(), String> {
        let (ends, half) = (&self.ends, self.common.half.as_ref());
        // With room enough that no socket decides about a packet.
        let open = |end: &Endpoint, port| {
            world.namespaces.udp_at(&end.netns, SocketAddr::new(end.address, port), BUFFER_BYTES)
        };
        let from = self.common.here(Side::Source).then(|| open(&ends.from, 0)).transpose()?;
        if let Some(from) = &from {
            self.common.socket.set_udp(from, ends.from.address.is_ipv6())?;
        }
        let mut address = SocketAddr::new(ends.to.address, half.map_or(0, |half| half.port));
        let hear = || Ok::<_, String>((Room::of(&world.namespaces, &ends.to.netns)?, open(&ends.to, address.port())?));
        let to = self.common.here(Side::Sink).then(hear).transpose()?;
        if let Some((_, to)) = &to {
            address = to.local_addr().map_err(|error| format!("getsockname: {error}"))?;
        }
        {
            let mut state = self.lock();
            state.real_begin_ns = world.begin_ns + offset_ns();
            state.run = half.map_or(state.real_begin_ns as u32, |half| half.run);
            state.ahead_ns = half.map_or(0, |half| half.clock_ns);
            state.socket = to.map(|(room, to)| (to, Receiver::new(), room));
            state.port = from.as_ref().and_then(|from| from.local_addr().ok()).map(|address| address.port());
            if from.is_none() {
                // Nobody here sends.
                state.started_ns = Some(self.common.start_ns as i64);
            }
        }
        let there = world.clone();
        match from {
            Some(from) => world.spawn("sender", move || self.send(&there, &from, address)),
            None => world.spawn("receiver", move || self.hear(&there)),
        }
    }

    /// At its stop the last packets are still on their way: its own thread ends it, when they are there or lost.
    fn end(&self, world: &World, ending: Ending, at_ns: i64) {
        if let Some(error) = ending.error() {
            self.finish(world, at_ns, Some(error));
        }
    }

    fn ended(&self) -> bool {
        self.lock().ended_ns.is_some()
    }

    fn senders(&self, _see: &mut dyn FnMut(u32, BorrowedFd)) {}

    /// A datagram is delivered as it arrives; copies do not count.
    fn received(&self, see: &mut dyn FnMut(u32, Received)) {
        let mut state = self.lock();
        state.listen();
        if state.started_ns.is_some() && self.common.here(Side::Sink) {
            let bytes = state.heard.bytes;
            see(0, Received { delivered_bytes: bytes, arrived_bytes: Some(bytes) });
        }
    }

    fn records(&self) -> Vec<Record> {
        vec![self.lock().record(&self.common)]
    }
}

impl UdpFlow {
    fn send(&self, world: &World, socket: &UdpSocket, to: SocketAddr) {
        let largest = self.work.size_bytes.most().unwrap_or(f64::MAX).min(LARGEST_BYTES as f64);
        let mut sender = Sender::new(largest as usize);
        let room = BUFFER_BYTES / (largest as usize + OVERHEAD_BYTES);
        let listen_every = (room / 4).clamp(1, MOST_RECEIVED) as u64;
        // Of a receiver elsewhere nothing is known.
        let may_wait = if self.common.here(Side::Sink) { room as u64 / 2 } else { u64::MAX };
        let stop_ns = self.common.stop_ns;
        let mut schedule = Schedule::new(self.work.laws(), self.common.seed, self.common.start_ns, stop_ns);
        let (run, real_begin_ns) = {
            let state = self.lock();
            (state.run, state.real_begin_ns)
        };
        let (mut at_ns, mut sent, mut listened) = (world.now_ns().max(0) as u64, 0, 0);
        // Where time stands still meanwhile, a sleeper wakes at its instant: nobody need ask what time it is.
        let mut still = false;
        let mut next = schedule.next();
        while let Some(due) = next {
            if !self.wait(world, at_ns, due.at_ns, may_wait) {
                return;
            }
            let now = if still { due.at_ns.max(at_ns) } else { world.now_ns().max(0) as u64 };
            if stop_ns.is_some_and(|stop| now >= stop.saturating_add(LATE_NS)) {
                break;
            }
            let (count, after) = together(&mut schedule, due, now);
            next = after;
            if sent == 0 {
                self.lock().started_ns = Some(now as i64);
                still = world.clock == Clock::Virtual && now == due.at_ns;
            }
            let header = Header { run, index: self.common.number, sequence: sent, sent_ns: 0, forward_ns: 0 };
            let stamp = still.then_some(real_begin_ns + now as i64);
            let refused = send_all(&mut sender, socket, to, due.bytes, header, count, stamp);
            sent += count as u64;
            at_ns = now;
            let mut state = self.lock();
            if state.ended_ns.is_some() {
                return;
            }
            state.refused = refused.or(state.refused.take());
            state.sent_packets = sent;
            state.sent_bytes += (due.bytes * count) as u64;
            if sent - listened >= listen_every {
                state.listen();
                listened = sent;
            }
        }
        let rest_bytes = schedule.rest_bytes().map(|rest| rest + next.map_or(0, |due| due.bytes as u64));
        self.linger(world, at_ns, rest_bytes, may_wait);
    }

    /// The sender is elsewhere: what it sends, and until when, is what its schedule says.
    fn hear(&self, world: &World) {
        let mut schedule = Schedule::new(self.work.laws(), self.common.seed, self.common.start_ns, self.common.stop_ns);
        let (mut last_ns, mut count, mut bytes) = (self.common.start_ns, 0, 0);
        for due in schedule.by_ref() {
            (last_ns, count, bytes) = (due.at_ns, count + 1, bytes + due.bytes as u64);
        }
        let rest_bytes = schedule.rest_bytes();
        let largest = self.work.size_bytes.most().unwrap_or(f64::MAX).min(LARGEST_BYTES as f64);
        let room = (BUFFER_BYTES / (largest as usize + OVERHEAD_BYTES)) as f64;
        let every_ns = ((room / 4.0 * self.work.interval_ns.mean()) as u64).clamp(LOOK_NS, LONGEST_LOOK_NS);
        let mut now_ns = self.common.start_ns;
        while now_ns < last_ns {
            now_ns = (now_ns + every_ns).min(last_ns);
            if !self.gate.sleep_until(world, now_ns) {
                return;
            }
            self.lock().listen();
        }
        {
            let mut state = self.lock();
            (state.sent_packets, state.sent_bytes) = (count, bytes);
        }
        self.linger(world, now_ns, rest_bytes, u64::MAX);
    }

    /// From `now_ns` until `at_ns`, and false if the flow ended meanwhile. So many packets on their way that they might fill
    /// the receiver are taken as they come.
    fn wait(&self, world: &World, now_ns: u64, at_ns: u64, most_packets: u64) -> bool {
        let mut now_ns = now_ns;
        while at_ns > now_ns.saturating_add(LOOK_NS) {
            {
                let mut state = self.lock();
                let may_fill = |state: &State| state.heard.outstanding(state.sent_packets) > most_packets;
                if may_fill(&state) {
                    state.listen();
                }
                if state.ended_ns.is_some() {
                    return false;
                } else if !may_fill(&state) {
                    break;
                }
            }
            now_ns += LOOK_NS;
            world.sleep_until(now_ns);
        }
        if at_ns > now_ns.saturating_add(DEAF_NS) {
            return self.gate.sleep_until(world, at_ns);
        }
        world.sleep_until(at_ns);
        true
    }

    /// All is sent, or its time is over: waits for what is on its way, and ends the flow.
    fn linger(&self, world: &World, at_ns: u64, rest_bytes: Option<u64>, most_packets: u64) {
        let counted = rest_bytes == Some(0);
        if let Some(stop_ns) = self.common.stop_ns.filter(|_| !counted) {
            if !self.wait(world, at_ns, stop_ns, most_packets) {
                return;
            }
        }
        let over = world.now_ns();
        {
            let mut state = self.lock();
            state.sent_all_ns = Some(over);
            state.volume_bytes = rest_bytes.map(|rest| state.sent_bytes + rest);
        }
        let mut now = over;
        loop {
            // In a statement of its own: what a loop asks for lasts through the loop, and others ask for the lock too.
            let next = self.lock().look_again(over, now, self.work.transit_ns as i64);
            let Some(next) = next else { break };
            if !self.gate.sleep_until(world, next) {
                return;
            }
            now = world.now_ns();
        }
        self.finish(world, now, None);
    }

    /// The first call counts.
    fn finish(&self, world: &World, at_ns: i64, error: Option<String>) {
        let mut state = self.lock();
        if state.ended_ns.is_some() {
            return;
        }
        state.listen();
        let last = state.heard.last_ns.map(|ns| ns - state.real_begin_ns);
        state.ended_ns = Some(match state.sent_all_ns {
            None => at_ns,
            Some(over) => last.map_or(over, |last| last.max(over)),
        });
        let socket = state.socket.take();
        let dropped = socket.map_or(0, |(socket, _, room)| room.dropped(&world.namespaces, &socket));
        state.error = error.filter(|_| state.sent_all_ns.is_none());
        if state.error.is_none() && dropped > 0 {
            state.error = Some(format!("{dropped} packets found no room in the receiver's own buffer"));
        } else if state.error.is_none() && state.heard.packets == 0 {
            state.error = state.refused.take();
        }
        drop(state);
        self.gate.close();
        world.running.one_ended(self.common.number);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread fails with the lock held")
    }
}

impl State {
    /// Takes all that lies in the receiving socket.
    fn listen(&mut self) {
        let Some((socket, receiver, _)) = &mut self.socket else { return };
        let (heard, run, ahead_ns) = (&mut self.heard, self.run, self.ahead_ns);
        let heard_all = receiver.drain(socket, |header, at_ns, bytes| {
            if header.run == run {
                heard.take(header.sequence, at_ns, at_ns - header.sent_ns - ahead_ns, bytes);
            }
        });
        if let Err(why) = heard_all {
            self.refused = Some(why);
        }
    }

    /// When to look next for packets on their way, at `now_ns`, where the last one went at `over_ns`; none: all came, or
    /// no more will.
    fn look_again(&mut self, over_ns: i64, now_ns: i64, transit_ns: i64) -> Option<u64> {
        self.listen();
        let last = self.heard.last_ns.map_or(over_ns, |ns| ns - self.real_begin_ns).max(over_ns);
        let usual = self.heard.delays.largest().map_or(SILENCE_NS, |delay| QUIET_NS.max(2 * delay));
        let done = self.ended_ns.is_some() || self.socket.is_none() || self.heard.packets >= self.sent_packets;
        let longest = over_ns + LONGEST_LINGER_NS.max(transit_ns + LOOK_NS as i64);
        let more = !done && now_ns < (last + usual.max(transit_ns)).min(longest);
        let next = now_ns + (LOOK_NS as i64).max((now_ns - last) / LOOKS);
        more.then_some(next.max(0) as u64)
    }

    fn record(&self, common: &Common) -> Record {
        let heard = &self.heard;
        let complete = self.volume_bytes.is_some_and(|bytes| heard.bytes >= bytes);
        let last = heard.last_ns.map(|ns| ns - self.real_begin_ns).filter(|_| complete);
        let record = Record {
            flow: common.number,
            kind: "udp",
            scheduled_ns: common.start_ns,
            started_ns: self.started_ns,
            ended_ns: self.ended_ns,
            completion_ns: last.map(|last| (last - common.start_ns as i64).max(0) as u64),
            volume_bytes: self.volume_bytes,
            received_bytes: heard.bytes,
            port: self.port,
            error: self.error.clone(),
            udp: Some(UdpRecord::of(heard, self.sent_packets)),
            ..Record::default()
        };
        record.with_goodput()
    }
}

/// How many packets as large as `due` are due at `now` and go in one call, and the packet after them.
fn together(schedule: &mut Schedule, due: Departure, now: u64) -> (usize, Option<Departure>) {
    let mut count = 1;
    loop {
        match schedule.next() {
            Some(next) if count < MOST && next.bytes == due.bytes && next.at_ns <= now => count += 1,
            next => return (count, next),
        }
    }
}

/// Hands `count` packets to the kernel, each once; returns why it refused one, if it did.
fn send_all(
    sender: &mut Sender,
    socket: &UdpSocket,
    to: SocketAddr,
    bytes: usize,
    first: Header,
    count: usize,
    still: Option<i64>,
) -> Option<String> {
    let (mut gone, mut refused) = (0, None);
    while gone < count {
        let header = Header { sequence: first.sequence + gone as u64, ..first };
        match sender.send(socket, to, bytes, header, count - gone, still) {
            Ok((sent, _)) => gone += sent,
            Err(error) => {
                gone += 1;
                refused = Some(format!("send to {to}: {error}"));
            }
        }
    }
    refused
}
