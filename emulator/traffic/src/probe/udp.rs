//! UDP streams, any number at once, sent and received by one thread: those ends of them that are here.
//!
//! Each packet carries its sequence number and the time it was handed to the kernel; the kernel stamps its arrival,
//! so nothing depends on when this thread reads it, and the thread may sleep between packets. Packets that are due
//! go out in one system call; a sender that was stopped catches up and the longest pause is reported. In the virtual
//! clock each packet (or batch) goes out at exactly its instant, and the sockets are read as rarely as they allow.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use ewan_system::wait::readable;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::lockstep::{Lockstep, Ports};
use super::observation::{self, SenderRecord};
use super::request::{Stream, Udp};
use super::stats::Arrival;
use crate::clock::{offset_ns, real_ns, sleep_until_real, Clock};
use crate::packets::{self, Header, Receiver, Sender, HEADER_BYTES};
use crate::room::Room;
use crate::socket::{Endpoint, Namespaces};

/// Packets of a stream faster than one per this time go out together.
const BATCH_NS: u64 = 100_000;
/// A sender that was stopped for this long goes on at its pace instead of catching up in one burst, which the link
/// would have to queue; a slow one (that measures delay) for less.
const STALL_NS: i64 = 20_000_000;
const SHORT_STALL_NS: i64 = 1_000_000;
/// A shorter sleep than this takes longer than it should.
const LEAST_SLEEP_NS: i64 = 5_000;
const DRAIN_EVERY_NS: i64 = 1_000_000;
/// What an arriving packet costs of a receive buffer, beyond its bytes.
const BUFFER_OVERHEAD_BYTES: usize = 2048;
const BUFFER_BYTES: usize = 256 << 20;

struct Flow<'a> {
    stream: &'a Stream,
    /// None: another machine's.
    from: Option<UdpSocket>,
    to: Option<UdpSocket>,
    from_address: SocketAddr,
    to_address: SocketAddr,
    /// Of each socket's buffer.
    room_bytes: usize,
    batch: u64,
    start_ns: i64,
    /// What is not sent by then stays unsent.
    give_up_ns: i64,
    /// Sequence numbers used.
    offered: u64,
    refused: u64,
    refused_why: Option<io::Error>,
    first_sent_ns: i64,
    last_sent_ns: i64,
    longest_gap_ns: i64,
    arrivals: Vec<Arrival>,
    seen: Vec<bool>,
}

/// Runs the ends of one probe that are here; with `echo` the receiving end answers each packet and the round trip is
/// measured.
pub fn run(
    namespaces: &Namespaces,
    probe: &Udp,
    clock: Clock,
    echo: bool,
    others: &mut dyn Lockstep,
) -> Result<observation::Udp, String> {
    let rooms = rooms(namespaces, probe, others)?;
    let mut flows = open(namespaces, probe, clock, others)?;
    let offset = offset_ns();
    exchange(&mut flows, probe, clock, echo, others)?;
    let clock_step_ns = offset_ns() - offset;
    let dropped = |end: &Endpoint, socket: &Option<UdpSocket>| {
        rooms.get(&*end.netns).zip(socket.as_ref()).map_or(0, |(room, socket)| room.dropped(namespaces, socket))
    };
    let half = |flow: Flow| {
        let drops = dropped(&flow.stream.to, &flow.to) + dropped(&flow.stream.from, &flow.from);
        flow.half(echo, drops)
    };
    Ok(observation::Udp { clock_step_ns, streams: flows.into_iter().map(half).collect() })
}

/// Of the namespaces that are here.
fn rooms<'a>(
    namespaces: &Namespaces,
    probe: &'a Udp,
    others: &dyn Lockstep,
) -> Result<HashMap<&'a Path, Room>, String> {
    let mut rooms = HashMap::new();
    for end in probe.streams.iter().flat_map(|stream| [&stream.from, &stream.to]).filter(|end| others.here(end)) {
        if !rooms.contains_key(&*end.netns) {
            rooms.insert(&*end.netns, Room::of(namespaces, &end.netns)?);
        }
    }
    Ok(rooms)
}

fn open<'a>(
    namespaces: &Namespaces,
    probe: &'a Udp,
    clock: Clock,
    others: &dyn Lockstep,
) -> Result<Vec<Flow<'a>>, String> {
    let count = probe.streams.len();
    let flow = |stream: &'a Stream| {
        let room = (stream.packets as usize + 64).saturating_mul(stream.packet_bytes + BUFFER_OVERHEAD_BYTES);
        let room = room.min(BUFFER_BYTES / count.clamp(1, 64)).max(1 << 18);
        let socket = |end: &Endpoint| -> Result<Option<UdpSocket>, String> {
            others.here(end).then(|| namespaces.udp_for_probes(end, room)).transpose()
        };
        let batch = match (stream.batch_packets, clock) {
            (0, Clock::Live) => BATCH_NS / stream.interval_ns,
            (0, Clock::Virtual) => 1,
            (asked, _) => asked,
        };
        Ok(Flow {
            stream,
            from: socket(&stream.from)?,
            to: socket(&stream.to)?,
            from_address: SocketAddr::new(stream.from.address, 0),
            to_address: SocketAddr::new(stream.to.address, 0),
            room_bytes: room,
            batch: batch.clamp(1, packets::MOST as u64),
            start_ns: 0,
            give_up_ns: 0,
            offered: 0,
            refused: 0,
            refused_why: None,
            first_sent_ns: 0,
            last_sent_ns: 0,
            longest_gap_ns: 0,
            arrivals: Vec::new(),
            seen: Vec::new(),
        })
    };
    probe.streams.iter().map(flow).collect()
}

/// The ports of the sockets that are here; then those of all.
fn agree(flows: &mut [Flow], others: &mut dyn Lockstep) -> Result<(i64, u32), String> {
    let port = |socket: &Option<UdpSocket>| -> Result<Option<u16>, String> {
        let address = socket.as_ref().map(UdpSocket::local_addr).transpose();
        Ok(address.map_err(|error| format!("getsockname: {error}"))?.map(|address| address.port()))
    };
    let mut own = Ports::default();
    for flow in flows.iter() {
        own.from.push(port(&flow.from)?);
        own.to.push(port(&flow.to)?);
    }
    let begin = others.begin(own)?;
    for (flow, (from, to)) in flows.iter_mut().zip(begin.ports.from.iter().zip(&begin.ports.to)) {
        let told = |port: &Option<u16>| port.ok_or_else(|| format!("stream {:?}: an end is nowhere", flow.stream.name));
        let (from, to) = (told(from)?, told(to)?);
        flow.from_address.set_port(from);
        flow.to_address.set_port(to);
    }
    Ok((begin.at_ns, begin.run))
}

fn exchange(
    flows: &mut [Flow],
    probe: &Udp,
    clock: Clock,
    echo: bool,
    others: &mut dyn Lockstep,
) -> Result<(), String> {
    let failed = |what: &'static str| move |error| format!("{what}: {error}");
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed("epoll_create"))?;
    for (index, flow) in flows.iter().enumerate() {
        // Even: the receiving end; odd: the sending end, which hears the answers.
        let event = |key| EpollEvent::new(EpollFlags::EPOLLIN, key);
        if let Some(to) = &flow.to {
            epoll.add(to.as_fd(), event(2 * index as u64)).map_err(failed("epoll_ctl"))?;
        }
        if let Some(from) = flow.from.as_ref().filter(|_| echo) {
            epoll.add(from.as_fd(), event(2 * index as u64 + 1)).map_err(failed("epoll_ctl"))?;
        }
    }
    for flow in flows.iter_mut().filter(|flow| flow.is_end(echo)) {
        flow.arrivals.reserve(flow.stream.packets as usize + 64);
        flow.seen = vec![false; flow.stream.packets as usize];
    }
    let largest = flows.iter().map(|flow| flow.stream.payload_bytes()).max().unwrap_or(HEADER_BYTES);
    let (mut sender, mut receiver) = (Sender::new(largest), Receiver::new());
    let (agreed, run) = agree(flows, others)?;
    // Told too late, we begin late, and have as long as everybody else.
    let begin = agreed.max(real_ns()) + DRAIN_EVERY_NS;
    let drain_every = drain_every_ns(flows, clock);
    let mut due: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
    let count = flows.len() as u64;
    for (index, flow) in flows.iter_mut().enumerate() {
        // Spread over the interval, so that streams of one pace do not send in bursts.
        let stagger = (u128::from(flow.stream.interval_ns) * index as u128 / u128::from(count)) as i64;
        flow.start_ns = begin + stagger + flow.stream.start_ns as i64;
        flow.give_up_ns = begin + flow.stream.longest_ns() as i64;
        if flow.from.is_some() {
            due.push(Reverse((flow.start_ns, index)));
        }
    }
    let mut missing: u64 = flows.iter().filter(|flow| flow.is_end(echo)).map(|flow| flow.stream.packets).sum();
    // Who answers another machine's packets cannot know that it has answered the last one.
    let answers = echo && flows.iter().any(|flow| flow.to.is_some() && flow.from.is_none());
    let (mut told, mut end) = (false, i64::MAX);
    let mut drain_at = begin;
    let mut events = vec![EpollEvent::empty(); 256];
    loop {
        let now = real_ns();
        if let Some(&Reverse((when, index))) = due.peek() {
            if when <= now {
                due.pop();
                if let Some(next) = flows[index].send(&mut sender, clock, run, index as u32, now) {
                    due.push(Reverse((next, index)));
                }
            }
        }
        if due.is_empty() && end == i64::MAX {
            if !std::mem::replace(&mut told, true) {
                others.sent()?;
            }
            if others.all_sent()? {
                end = real_ns() + probe.drain_ns as i64;
            }
        }
        if now >= drain_at || now >= end {
            loop {
                let ready = epoll.wait(&mut events, EpollTimeout::ZERO).map_err(failed("epoll_wait"))?;
                for event in &events[..ready] {
                    let (index, answers) = ((event.data() / 2) as usize, event.data() % 2 == 1);
                    let flow = &mut flows[index];
                    let new = flow.receive(&mut receiver, (run, index as u32), echo, answers)?;
                    missing = missing.saturating_sub(new);
                }
                if ready < events.len() {
                    break;
                }
            }
            drain_at = real_ns() + drain_every;
        }
        // All sent and each here once: what may still come are copies.
        if now >= end || (missing == 0 && due.is_empty() && !answers) {
            return Ok(());
        }
        let next = due.peek().map_or(end, |&Reverse((when, _))| when);
        match clock {
            Clock::Live => {
                let pause = next.min(drain_at) - real_ns();
                if pause > LEAST_SLEEP_NS {
                    std::thread::sleep(Duration::from_nanos(pause as u64));
                }
            }
            // Who answers must be awake when the question comes.
            Clock::Virtual if echo => {
                if wait_until_real(&epoll, next)? {
                    drain_at = 0;
                }
            }
            Clock::Virtual => sleep_until_real(next.min(drain_at)),
        }
    }
}

/// True when a socket has something to read before then.
fn wait_until_real(epoll: &Epoll, at_ns: i64) -> Result<bool, String> {
    let at_most = u64::try_from(at_ns - real_ns()).unwrap_or(0);
    readable(&epoll.0, at_most).map_err(|error| format!("ppoll: {error}"))
}

/// How long packets may wait in the sockets: in the virtual clock, where each look costs wall time, until the first is
/// half full, which one that has room for twice its stream never is.
fn drain_every_ns(flows: &[Flow], clock: Clock) -> i64 {
    let fills = |flow: &Flow| {
        let packets = (flow.room_bytes / (flow.stream.packet_bytes + BUFFER_OVERHEAD_BYTES)) as u64;
        let whole = flow.stream.packets <= packets / 2;
        if whole {
            u64::MAX
        } else {
            flow.stream.interval_ns.saturating_mul(packets / 2)
        }
    };
    match clock {
        Clock::Live => DRAIN_EVERY_NS,
        Clock::Virtual => flows.iter().map(fills).min().unwrap_or(0).min(i64::MAX as u64 / 4) as i64,
    }
}

impl Flow<'_> {
    /// Sends what is due, at most one batch; returns when to come back, or `None` when all is sent.
    fn send(&mut self, sender: &mut Sender, clock: Clock, run: u32, index: u32, now: i64) -> Option<i64> {
        let interval = self.stream.interval_ns as i64;
        // What waits for the last one of its batch is not late.
        let late = now - self.start_ns - self.wanted() as i64 * interval;
        if late > if self.batch == 1 { SHORT_STALL_NS } else { STALL_NS } {
            self.start_ns += late;
        }
        let by_now = ((now - self.start_ns) / interval) as u64 + 1;
        let count = by_now.min(self.stream.packets).saturating_sub(self.offered).min(packets::MOST as u64);
        let header = Header { run, index, sequence: self.offered, sent_ns: 0, forward_ns: 0 };
        let payload = self.stream.payload_bytes();
        let still = (clock == Clock::Virtual).then_some(now);
        let from = self.from.as_ref().expect("only those that are here are ever due");
        match sender.send(from, self.to_address, payload, header, count as usize, still) {
            Ok((sent, at)) => {
                if self.first_sent_ns == 0 {
                    self.first_sent_ns = at;
                } else {
                    self.longest_gap_ns = self.longest_gap_ns.max(at - self.last_sent_ns);
                }
                self.last_sent_ns = at;
                self.offered += sent as u64;
            }
            Err(error) => {
                self.offered += 1;
                self.refused += 1;
                self.refused_why = Some(error);
            }
        }
        let due_ns = || self.start_ns + self.wanted() as i64 * interval;
        (self.offered < self.stream.packets && now < self.give_up_ns).then(due_ns)
    }

    /// The packet with which the next ones go: the last of their batch; the first packet of all goes alone.
    fn wanted(&self) -> u64 {
        match self.offered {
            0 => 0,
            offered => (offered + self.batch - 1).min(self.stream.packets - 1),
        }
    }

    /// Reads all that waits; returns how many different packets came to the end of their way.
    fn receive(&mut self, receiver: &mut Receiver, key: (u32, u32), echo: bool, answers: bool) -> Result<u64, String> {
        let Some(socket) = (if answers { &self.from } else { &self.to }) else { return Ok(0) };
        let (arrivals, seen, mut new) = (&mut self.arrivals, &mut self.seen, 0);
        let offered = if self.from.is_some() { self.offered } else { self.stream.packets };
        let (back, payload_bytes) = (self.from_address, self.stream.payload_bytes());
        receiver.drain(socket, |header, at_ns, _| {
            if (header.run, header.index) != key || header.sequence >= offered {
                return;
            }
            let delay_ns = at_ns - header.sent_ns;
            if echo && !answers {
                // As long as what it answers. Refused, it counts as lost: its socket's queue is otherwise empty.
                let mut answer = vec![0; payload_bytes];
                let head = Header { sent_ns: real_ns(), forward_ns: delay_ns, ..header };
                answer[..HEADER_BYTES].copy_from_slice(&head.to_bytes());
                let _ = socket.send_to(&answer, back);
            } else {
                arrivals.push(Arrival { sequence: header.sequence, at_ns, delay_ns: delay_ns + header.forward_ns });
                new += u64::from(!std::mem::replace(&mut seen[header.sequence as usize], true));
            }
        })?;
        Ok(new)
    }

    /// Whether its packets, or the answers to them, come to the end of their way here.
    fn is_end(&self, echo: bool) -> bool {
        if echo { &self.from } else { &self.to }.is_some()
    }

    fn half(self, echo: bool, drops: u64) -> observation::Stream {
        let is_end = self.is_end(echo);
        observation::Stream {
            socket_drops_packets: drops,
            sent: self.from.is_some().then_some(SenderRecord {
                offered: self.offered,
                refused: self.refused,
                refused_why: self.refused_why.map(|error| error.to_string()),
                first_ns: self.first_sent_ns,
                last_ns: self.last_sent_ns,
                longest_gap_ns: self.longest_gap_ns,
            }),
            arrivals: is_end.then_some(self.arrivals),
        }
    }
}
