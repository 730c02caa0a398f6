//! Requests with their responses: a session asks, is answered, thinks, and asks again, on one TCP connection or on a new
//! one each time.
//!
//! In: laws of the sizes and of the think times, and how many requests or until when. Out: a row for every exchange
//! (from the request's first byte, or its connect, to the response's last) and a record of the session. Both ends draw
//! the sizes from streams of their own with the same seed, so nothing but the payload is on the wire.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

use serde::Deserialize;

use super::law::{stream, Law, Stream};
use super::local_end;
use super::{take, Common, Ending, Ends, Exchange, Flow, Gate, Received, Record, World};
use crate::socket::Options;

pub(super) mod side;

use side::{Side, Totals};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Exchanges; none: until the flow's stop.
    #[serde(default)]
    pub count: Option<u64>,
    pub request_bytes: Law,
    pub response_bytes: Law,
    /// From a response's last byte to the next request.
    pub think_ns: Law,
    #[serde(default)]
    pub new_connection: bool,
}

impl Requests {
    pub fn check(&self, stops: bool) -> Result<(), String> {
        match self.count {
            None if !stops => Err("give count or stop_ns".into()),
            Some(0) => Err("count must be above 0".into()),
            _ => Ok(()),
        }
    }
}

/// What is asked and answered, one after the other; each at least one byte.
struct Sizes {
    request: (Law, Stream),
    response: (Law, Stream),
    left: u64,
}

impl Sizes {
    fn new(work: &Requests, seed: u64) -> Self {
        let left = work.count.unwrap_or(u64::MAX);
        Self { request: (work.request_bytes, stream(seed, 0)), response: (work.response_bytes, stream(seed, 1)), left }
    }
}

impl Iterator for Sizes {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        self.left = self.left.checked_sub(1)?;
        let draw = |(law, stream): &mut (Law, Stream)| law.draw_whole(stream).max(1);
        Some((draw(&mut self.request), draw(&mut self.response)))
    }
}

struct Session {
    common: Common,
    ends: Ends,
    work: Requests,
    socket: Options,
    gate: Gate,
    client: Side,
    server: Side,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    listener: Option<Arc<TcpListener>>,
    started_ns: Option<i64>,
    connected_ns: Option<i64>,
    ended_ns: Option<i64>,
    complete: bool,
    error: Option<String>,
    totals: Totals,
}

pub fn new(common: Common, ends: Ends, work: &Requests) -> Arc<dyn Flow> {
    // Or the last piece of a request would wait for the acknowledgement of the piece before it (Nagle, RFC 896).
    let socket = Options { nodelay: true, ..common.socket.clone() };
    let (client, server) = (Side::default(), Side::default());
    let (gate, state) = (Gate::default(), Mutex::default());
    Arc::new(Session { common, ends, work: work.clone(), socket, gate, client, server, state })
}

impl Flow for Session {
    fn launch(self: Arc<Self>, world: &Arc<World>) -> Result<(), String> {
        let mut to = SocketAddr::new(self.ends.to.address, self.common.half.as_ref().map_or(0, |half| half.port));
        let asks = self.common.here(local_end::Side::Source);
        let first = asks.then(|| world.namespaces.tcp(&self.ends.from, &self.socket)).transpose()?;
        if self.common.here(local_end::Side::Sink) {
            let listener = Arc::new(world.namespaces.listen_at(&self.ends.to, to.port(), &self.socket)?);
            to = listener.local_addr().map_err(|error| format!("getsockname: {error}"))?;
            {
                let mut state = self.lock();
                state.listener = Some(listener.clone());
                // Nobody here asks.
                state.started_ns = first.is_none().then_some(self.common.start_ns as i64);
            }
            let (answering, there) = (self.clone(), world.clone());
            world.spawn("server", move || answering.serve(&there, &listener))?;
        }
        let Some(first) = first else { return Ok(()) };
        let (asking, here) = (self, world.clone());
        world.spawn("client", move || asking.ask(&here, first, to))
    }

    fn end(&self, world: &World, ending: Ending, at_ns: i64) {
        let mut state = self.lock();
        if state.ended_ns.is_some() {
            return;
        }
        state.ended_ns = Some(at_ns);
        state.complete = matches!(ending, Ending::Completed);
        state.error = ending.error();
        state.totals = self.client.totals().and(self.server.totals());
        let (listener, cut) = (state.listener.take(), !state.complete);
        drop(state);
        self.gate.close();
        self.client.end(cut);
        self.server.end(cut);
        if let Some(listener) = listener {
            // Wakes a thread in accept(2).
            let _ = nix::sys::socket::shutdown(listener.as_raw_fd(), nix::sys::socket::Shutdown::Both);
        }
        world.running.one_ended(self.common.number);
    }

    fn ended(&self) -> bool {
        self.lock().ended_ns.is_some()
    }

    /// The server's: it sends the responses.
    fn senders(&self, see: &mut dyn FnMut(u32, BorrowedFd)) {
        if let Some(stream) = self.server.stream() {
            see(0, stream.as_fd());
        }
    }

    fn received(&self, see: &mut dyn FnMut(u32, Received)) {
        let state = self.lock();
        if state.ended_ns.is_some() {
            see(0, Received::in_order(state.totals.received_bytes));
        } else if state.started_ns.is_some() {
            let received = self.client.totals().received_bytes + self.server.totals().received_bytes;
            see(0, Received::in_order(received));
        }
    }

    fn records(&self) -> Vec<Record> {
        let state = self.lock();
        let scheduled_ns = self.common.start_ns;
        let took = state.ended_ns.map(|ended| (ended - scheduled_ns as i64).max(0) as u64);
        let asked = self.work.count.is_some();
        let volume = || Sizes::new(&self.work, self.common.seed).map(|(request, response)| request + response).sum();
        let record = Record {
            flow: self.common.number,
            kind: "requests",
            congestion: self.common.socket.congestion.clone(),
            scheduled_ns,
            started_ns: state.started_ns,
            connected_ns: state.connected_ns,
            ended_ns: state.ended_ns,
            completion_ns: took.filter(|_| state.complete),
            volume_bytes: asked.then(volume),
            received_bytes: state.totals.received_bytes,
            segment_bytes: state.totals.segment_bytes,
            min_rtt_ns: state.totals.min_rtt_ns,
            retransmitted_segments: state.totals.retransmitted_segments,
            error: state.error.clone(),
            ..Record::default()
        };
        vec![record.with_goodput()]
    }
}

impl Session {
    fn ask(&self, world: &World, first: OwnedFd, to: SocketAddr) {
        world.sleep_until(self.common.start_ns);
        let ending = match self.exchanges(world, first, to) {
            Ok(true) => Ending::Completed,
            // Ended by somebody else, who says why.
            Ok(false) => return,
            Err(why) => Ending::Failed(why),
        };
        self.end(world, ending, world.now_ns());
    }

    /// True when all are done, false when the flow was ended meanwhile.
    fn exchanges(&self, world: &World, first: OwnedFd, to: SocketAddr) -> Result<bool, String> {
        let mut thinking = stream(self.common.seed, 2);
        let (mut unconnected, mut open) = (Some(first), None);
        let mut sizes = (0..).zip(Sizes::new(&self.work, self.common.seed)).peekable();
        while let Some((number, (request, response))) = sizes.next() {
            let mut start_ns = world.now_ns();
            if self.common.stop_ns.is_some_and(|stop_ns| start_ns.max(0) as u64 >= stop_ns) {
                // Whoever ends the flow is late. Nothing begins after its time.
                self.gate.wait();
                return Ok(false);
            }
            let connection = match open.take() {
                Some(connection) => connection,
                None => {
                    let Some(connection) = self.connect(world, unconnected.take(), to, self.on_each(response))? else {
                        return Ok(false);
                    };
                    if !self.work.new_connection {
                        start_ns = world.now_ns();
                    }
                    connection
                }
            };
            if let Err(error) = world.filling.send(&connection, request) {
                return if self.ended() { Ok(false) } else { Err(format!("request {number}: {error}")) };
            }
            let came = take(&connection, response);
            let end_ns = world.now_ns();
            if self.ended() {
                return Ok(false);
            } else if came < response {
                return Err(format!("the connection ended after {came} of {response} bytes of response {number}"));
            }
            world.exchange(Exchange {
                flow: self.common.number,
                part: 0,
                number,
                start_ns,
                duration_ns: end_ns - start_ns,
                sent_bytes: request,
                received_bytes: response,
            });
            if self.work.new_connection {
                self.client.release();
                drop(connection);
            } else {
                open = Some(connection);
            }
            if sizes.peek().is_some() {
                let pause = self.work.think_ns.draw_whole(&mut thinking);
                if pause > 0 && !self.gate.sleep_until(world, end_ns.max(0) as u64 + pause) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// None when the flow was ended meanwhile; `made` is used where there is one.
    fn connect(
        &self,
        world: &World,
        made: Option<OwnedFd>,
        to: SocketAddr,
        expected_bytes: u64,
    ) -> Result<Option<Arc<TcpStream>>, String> {
        let socket = match made {
            Some(socket) => socket,
            None => world.namespaces.tcp(&self.ends.from, &self.socket)?,
        };
        let now = world.now_ns();
        self.lock().started_ns.get_or_insert(now);
        if let Err(why) = world.namespaces.connect(&socket, &self.ends.from, to, &self.socket) {
            return if self.ended() { Ok(None) } else { Err(why) };
        }
        let now = world.now_ns();
        self.lock().connected_ns.get_or_insert(now);
        Ok(self.client.hold(TcpStream::from(socket), expected_bytes))
    }

    /// The client ends the flow; where it is elsewhere, its connection that ends does.
    fn serve(&self, world: &World, listener: &TcpListener) {
        self.answer(world, listener);
        if self.common.half.is_some() {
            if let Some(connection) = self.server.stream() {
                take(&connection, u64::MAX);
            }
            self.end(world, Ending::Completed, world.now_ns());
        }
    }

    fn answer(&self, world: &World, listener: &TcpListener) {
        let mut sizes = Sizes::new(&self.work, self.common.seed);
        let mut open = None;
        for (request, response) in &mut sizes {
            let connection: Arc<TcpStream> = match open.take() {
                Some(connection) => connection,
                None => {
                    let accepted =
                        listener.accept().ok().and_then(|(stream, _)| self.server.hold(stream, self.on_each(request)));
                    let Some(connection) = accepted else { return };
                    connection
                }
            };
            // The client hears of a connection that ended and says so.
            if take(&connection, request) < request || world.filling.send(&connection, response).is_err() {
                return;
            }
            if self.work.new_connection {
                let _ = connection.shutdown(Shutdown::Write);
                // Until the client closes: only then is it known how often something was sent again.
                take(&connection, u64::MAX);
                self.server.release();
            } else {
                open = Some(connection);
            }
        }
    }

    /// What comes on a connection to one of its ends, of which an exchange has this.
    fn on_each(&self, bytes: u64) -> u64 {
        if self.work.new_connection {
            bytes
        } else {
            u64::MAX
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread fails with the lock held")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(more: &str) -> Requests {
        let text = format!(
            r#"{{{more} "request_bytes": {{"law": "constant", "value": 300}},
                "response_bytes": {{"law": "pareto", "mean": 10000, "shape": 1.3}},
                "think_ns": {{"law": "constant", "value": 0}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn both_ends_draw_the_same_sizes() {
        let work = requests(r#""count": 100,"#);
        let drawn: Vec<_> = Sizes::new(&work, 7).collect();
        assert_eq!(drawn, Sizes::new(&work, 7).collect::<Vec<_>>());
        assert!(drawn.len() == 100 && drawn.iter().all(|&(request, response)| request == 300 && response >= 2307));
        assert_ne!(drawn, Sizes::new(&work, 8).collect::<Vec<_>>());
    }

    #[test]
    fn it_must_have_an_end() {
        assert_eq!(requests("").check(false), Err("give count or stop_ns".into()));
        assert_eq!((requests("").check(true), requests(r#""count": 0,"#).check(true).is_err()), (Ok(()), true));
    }
}
