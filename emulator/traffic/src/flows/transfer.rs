//! One TCP connection that carries bulk data, one way or both ways at once: its sockets, a thread at each end of each
//! way, and how each way ended. A flow of the kind bulk is one of them, one of the kind arrivals many.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

use super::local_end::Side;
use super::schedule::{Laws, Schedule};
use super::{take, Common, Ending, Ends, Received, Record, World};
use crate::socket::{forget_when_closed, Options};
use crate::tcp_info::Info;

/// What it is to carry; `part` numbers its first way, the way back has the number after it.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub kind: &'static str,
    pub part: u32,
    pub start_ns: u64,
    /// Each way; none: as much as fits in its time.
    pub bytes: Option<u64>,
    pub bidirectional: bool,
    /// The writes of an application that limits it.
    pub writes: Option<Laws>,
}

pub(super) struct Transfer {
    common: Arc<Common>,
    ends: Arc<Ends>,
    load: Load,
    state: Mutex<State>,
    /// Called once, when all ways have ended.
    done: Box<dyn Fn(&World) + Send + Sync>,
}

#[derive(Default)]
struct State {
    /// The end that is here, where the other one is not.
    half: Option<Side>,
    listener: Option<Arc<TcpListener>>,
    client: Option<Arc<TcpStream>>,
    server: Option<Arc<TcpStream>>,
    started_ns: Option<i64>,
    connected_ns: Option<i64>,
    /// The source's, of a half.
    port: Option<u16>,
    ways: Vec<Way>,
    ended: bool,
    /// Something was cut short: nothing more of this connection shall be on its way.
    cut: bool,
    options: Options,
}

/// Forward (from client to server) or backward.
#[derive(Clone, Debug, Default)]
struct Way {
    ended_ns: Option<i64>,
    received: Received,
    segment_bytes: Option<u32>,
    min_rtt_ns: Option<u64>,
    retransmitted_segments: Option<u32>,
    copied_segments: Option<u32>,
    timeouts: Option<u32>,
    error: Option<String>,
    /// Its last figure was seen.
    told: bool,
}

/// After the first byte, and once more in case that its segment was not a full one, a window has to be set again.
const FIRST_BYTES: [u64; 2] = [1, 16 << 10];
const FORWARD: usize = 0;
const BACKWARD: usize = 1;
/// Between two looks whether the other end, which is elsewhere, has all.
const LOOK_NS: u64 = 5_000_000;

/// The end that gets what goes this way.
fn receiver(way: usize) -> Side {
    if way == FORWARD {
        Side::Sink
    } else {
        Side::Source
    }
}

impl Transfer {
    pub fn new(
        common: Arc<Common>,
        ends: Arc<Ends>,
        load: Load,
        done: impl Fn(&World) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let ways = vec![Way::default(); if load.bidirectional { 2 } else { 1 }];
        let half = common.half.as_ref().map(|half| half.side);
        let state = Mutex::new(State { half, ways, options: common.socket.clone(), ..State::default() });
        Arc::new(Self { common, ends, load, state, done: Box::new(done) })
    }

    /// Its sockets, and threads that wait for its start.
    pub fn launch(self: &Arc<Self>, world: &Arc<World>) -> Result<(), String> {
        let (ends, options) = (&self.ends, &self.common.socket);
        let mut to = SocketAddr::new(ends.to.address, self.common.half.as_ref().map_or(0, |half| half.port));
        let mut listener = None;
        if self.common.here(Side::Sink) {
            let opened = Arc::new(world.namespaces.listen_at(&ends.to, to.port(), options)?);
            to.set_port(opened.local_addr().map_err(|error| format!("getsockname: {error}"))?.port());
            listener = Some(opened);
        }
        let client = self.common.here(Side::Source).then(|| world.namespaces.tcp(&ends.from, options)).transpose()?;
        self.lock().listener.clone_from(&listener);
        if client.is_none() {
            // Nobody here connects.
            self.lock().started_ns = Some(self.load.start_ns as i64);
        }
        if let Some(listener) = listener {
            let (receiving, there) = (self.clone(), world.clone());
            world.spawn("receiver", move || receiving.accept(&there, listener))?;
        }
        let Some(client) = client else { return Ok(()) };
        let (sending, here) = (self.clone(), world.clone());
        world.spawn("sender", move || sending.connect(&here, client, to))
    }

    fn connect(self: &Arc<Self>, world: &Arc<World>, client: OwnedFd, to: SocketAddr) {
        world.sleep_until(self.load.start_ns);
        {
            let mut state = self.lock();
            if state.ended {
                return;
            }
            state.started_ns = Some(world.now_ns());
        }
        let connected = world.namespaces.connect(&client, &self.ends.from, to, &self.common.socket);
        if let Err(why) = connected {
            return self.end(world, Ending::Failed(why), world.now_ns());
        }
        let client = Arc::new(TcpStream::from(client));
        {
            let mut state = self.lock();
            if state.ended {
                return;
            }
            state.connected_ns = Some(world.now_ns());
            state.port = client.local_addr().ok().map(|address| address.port());
            state.client = Some(client.clone());
        }
        if self.load.bidirectional {
            self.also(world, &client, |transfer, world, client| transfer.receive(world, client, BACKWARD));
        }
        self.send(world, &client, FORWARD);
    }

    fn accept(self: &Arc<Self>, world: &Arc<World>, listener: Arc<TcpListener>) {
        let Ok((server, from)) = listener.accept() else { return };
        drop(listener); // the state keeps it as long as further paths may come
        self.take_over(world, server, from);
    }

    /// A connection that was accepted, until what comes on it has come.
    pub fn take_over(self: &Arc<Self>, world: &Arc<World>, server: TcpStream, from: SocketAddr) {
        let server = Arc::new(server);
        {
            let mut state = self.lock();
            if state.ended {
                return;
            }
            state.server = Some(server.clone());
            if !state.takes_paths() {
                state.listener = None;
            }
            if state.half.is_some() {
                state.started_ns.get_or_insert(self.load.start_ns as i64);
                state.connected_ns = Some(world.now_ns());
                state.port = Some(from.port());
            }
        }
        if self.load.bidirectional {
            self.also(world, &server, |transfer, world, server| transfer.send(world, server, BACKWARD));
        }
        self.receive(world, &server, FORWARD);
    }

    /// The other direction of one end, in a thread of its own.
    fn also(self: &Arc<Self>, world: &Arc<World>, stream: &Arc<TcpStream>, work: fn(&Self, &World, &TcpStream)) {
        let (transfer, there, stream) = (self.clone(), world.clone(), stream.clone());
        if let Err(why) = world.spawn("the way back", move || work(&transfer, &there, &stream)) {
            self.end(world, Ending::Failed(why), world.now_ns());
        }
    }

    fn send(&self, world: &World, stream: &TcpStream, way: usize) {
        match self.write(world, stream, way) {
            Ok(()) => {
                let _ = stream.shutdown(Shutdown::Write);
                if !self.common.here(receiver(way)) {
                    self.acknowledged(world, stream, way);
                }
            }
            Err(_) if self.ended() => {}
            Err(error) => self.end(world, Ending::Failed(format!("sendfile: {error}")), world.now_ns()),
        }
    }

    fn write(&self, world: &World, stream: &TcpStream, way: usize) -> io::Result<()> {
        let mut left = self.load.bytes.unwrap_or(u64::MAX);
        let Some(laws) = self.load.writes.clone() else { return world.filling.send(stream, left) };
        for write in Schedule::new(laws, self.common.seed.wrapping_add(way as u64), self.load.start_ns, None) {
            world.sleep_until(write.at_ns);
            if self.ended() {
                break;
            }
            let bytes = left.min(write.bytes as u64);
            world.filling.send(stream, bytes)?;
            left -= bytes;
            if left == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The receiver is elsewhere: the way ends here when it has all, or the connection is over.
    fn acknowledged(&self, world: &World, stream: &TcpStream, way: usize) {
        let bytes = self.load.bytes.unwrap_or(u64::MAX);
        // The SYN or the FIN counts too.
        while Info::of(stream).is_ok_and(|info| info.acked_bytes() <= bytes && !info.closed()) {
            if self.ended() {
                return;
            }
            world.sleep_until(world.now_ns().max(0) as u64 + LOOK_NS);
        }
        let mut state = self.lock();
        state.end_way(way, &self.load, &Ending::Completed, None, world.now_ns());
        self.end_if_all(world, state);
    }

    fn receive(&self, world: &World, stream: &TcpStream, way: usize) {
        let (fd, expected) = (stream.as_fd(), self.load.bytes.unwrap_or(u64::MAX));
        let mut received = 0;
        if self.common.socket.window_bytes.is_some() {
            for first in FIRST_BYTES {
                received += take(fd, first.min(expected - received));
                // It was set on this socket before, or the socket inherited it, without an error.
                let _ = self.common.socket.clamp_window(fd);
            }
        }
        received += take(fd, expected - received);
        let mut state = self.lock();
        state.end_way(way, &self.load, &Ending::Completed, Some(received), world.now_ns());
        self.end_if_all(world, state);
    }

    /// Of all ways that have not ended.
    pub fn end(&self, world: &World, ending: Ending, at_ns: i64) {
        let mut state = self.lock();
        for way in 0..state.ways.len() {
            state.end_way(way, &self.load, &ending, None, at_ns);
        }
        self.end_if_all(world, state);
    }

    fn end_if_all(&self, world: &World, mut state: MutexGuard<State>) {
        if state.ended || state.ways.iter().any(|way| way.ended_ns.is_none()) {
            return;
        }
        state.ended = true;
        let (client, server, listener) = (state.client.take(), state.server.take(), state.listener.take());
        let cut = state.cut;
        drop(state);
        if cut {
            // Brings the threads out of the kernel; whoever closes the sockets last throws away what still waits.
            for stream in client.iter().chain(&server) {
                let _ = forget_when_closed(stream);
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        if let Some(listener) = listener {
            // Wakes a thread in accept(2).
            let _ = nix::sys::socket::shutdown(listener.as_raw_fd(), nix::sys::socket::Shutdown::Both);
        }
        drop((client, server));
        (self.done)(world);
    }

    pub fn ended(&self) -> bool {
        self.lock().ended
    }

    pub fn senders(&self, see: &mut dyn FnMut(u32, BorrowedFd)) {
        let state = self.lock();
        for (way, part) in (0..state.ways.len()).zip(self.load.part..) {
            if state.connected_ns.is_some() && state.ways[way].ended_ns.is_none() {
                if let Some(sender) = state.sender(way) {
                    see(part, sender.as_fd());
                }
            }
        }
    }

    pub fn received(&self, see: &mut dyn FnMut(u32, Received)) {
        let mut state = self.lock();
        if state.started_ns.is_none() {
            return;
        }
        for (way, part) in (0..state.ways.len()).zip(self.load.part..) {
            if !self.common.here(receiver(way)) {
                continue;
            }
            if state.ways[way].ended_ns.is_none() {
                let mut received = state.received(way);
                // The kernel counts the end of a connection that is closed.
                let most = self.load.bytes.unwrap_or(u64::MAX);
                received.delivered_bytes = received.delivered_bytes.min(most);
                see(part, received);
            } else if !state.ways[way].told {
                state.ways[way].told = true;
                see(part, state.ways[way].received);
            }
        }
    }

    pub fn records(&self) -> Vec<Record> {
        let state = self.lock();
        let scheduled_ns = self.load.start_ns;
        let record = |(way, part): (&Way, u32)| {
            let complete = self.load.bytes.is_some_and(|bytes| way.received.delivered_bytes >= bytes);
            let took = way.ended_ns.map(|ended| (ended - scheduled_ns as i64).max(0) as u64);
            let record = Record {
                flow: self.common.number,
                part,
                kind: self.load.kind,
                congestion: self.common.socket.congestion.clone(),
                scheduled_ns,
                started_ns: state.started_ns,
                connected_ns: state.connected_ns,
                ended_ns: way.ended_ns,
                completion_ns: took.filter(|_| complete),
                volume_bytes: self.load.bytes,
                received_bytes: way.received.delivered_bytes,
                segment_bytes: way.segment_bytes,
                min_rtt_ns: way.min_rtt_ns,
                retransmitted_segments: way.retransmitted_segments,
                copied_segments: way.copied_segments,
                timeouts: way.timeouts,
                port: state.port,
                error: way.error.clone(),
                ..Record::default()
            };
            record.with_goodput()
        };
        state.ways.iter().zip(self.load.part..).map(record).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread fails with the lock held")
    }
}

impl State {
    /// The first call for a way counts.
    fn end_way(&mut self, way: usize, load: &Load, ending: &Ending, received: Option<u64>, at_ns: i64) {
        if self.ways[way].ended_ns.is_some() {
            return;
        }
        let mut told = self.received(way);
        told.delivered_bytes = received.unwrap_or(told.delivered_bytes);
        let received = told.delivered_bytes;
        let short = load.bytes.filter(|&bytes| received < bytes);
        let completed = matches!(ending, Ending::Completed);
        self.cut |= !completed || short.is_some() || load.bytes.is_none();
        let info = self.info(way);
        let way = &mut self.ways[way];
        way.ended_ns = Some(at_ns);
        way.received = told;
        way.error = match ending {
            Ending::Completed if short.is_some() => Some(format!("the connection ended after {received} bytes")),
            other => other.error(),
        };
        if let Some(info) = info {
            way.segment_bytes = Some(info.segment_bytes());
            way.min_rtt_ns = info.min_rtt_ns();
            way.retransmitted_segments = Some(info.retransmitted_segments());
            way.copied_segments = info.copied_segments();
            way.timeouts = info.timeouts();
        }
    }

    /// Whether the listener is needed after the first path has come.
    fn takes_paths(&self) -> bool {
        self.options.multipath.is_some()
    }

    /// Of the way's sender.
    fn info(&self, way: usize) -> Option<Info> {
        self.sender(way).and_then(|sender| self.options.info(sender).ok())
    }

    fn sender(&self, way: usize) -> Option<&TcpStream> {
        if way == FORWARD { &self.client } else { &self.server }.as_deref()
    }

    /// At the way's receiver; nothing before there is one. Where it is elsewhere, what it acknowledged, the SYN too.
    fn received(&self, way: usize) -> Received {
        let socket = if way == FORWARD { &self.server } else { &self.client };
        let info = socket.as_deref().and_then(|socket| self.options.info(socket).ok());
        match (info, self.half) {
            (Some(info), None) => Received::of(&info, self.info(way).as_ref()),
            (Some(info), Some(_)) => Received::alone(&info),
            (None, Some(here)) if here != receiver(way) => {
                Received::in_order(self.info(way).map_or(0, |sender| sender.acked_bytes()))
            }
            (None, _) => Received::NOTHING,
        }
    }
}
