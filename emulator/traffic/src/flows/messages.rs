//! Message passing: ranks on nodes that compute and exchange in iterations, each with those it has to wait for.
//!
//! In: a pattern, where the ranks are, laws of message sizes and of computing times (in which a rank sleeps). Out: a row for
//! each rank and iteration (computing included), and a record for each rank; its part is its number. The connections that
//! the pattern needs are made at the flow's start, before the first iteration. A rank of a pattern in which everybody
//! sends at once has a second thread, which sends while the first one receives.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

use ewan_system::socket::set_nonblocking;
use nix::errno::Errno;
use nix::sys::socket::{connect, recv, send, shutdown, MsgFlags, Shutdown, SockaddrStorage};
use serde::Deserialize;

use super::law::{stream, Law};
use super::requests::side::Totals;
use super::{Common, Ending, Exchange, Flow, Gate, Received, Record, World};
use crate::socket::{forget_when_closed, Endpoint, Options};
use crate::tcp_info::Info;

mod part;
mod pattern;

use part::Part;
use pattern::Pattern;

const MOST_RANKS: usize = 1024;
/// Streams of computing times come first, then one for each two ranks and direction.
const SIZES: u64 = MOST_RANKS as u64;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Messages {
    pattern: Pattern,
    pub ranks: Vec<Endpoint>,
    iterations: u64,
    /// Of one message; a barrier has none.
    #[serde(default)]
    size_bytes: Option<Law>,
    #[serde(default)]
    compute_ns: Option<Law>,
}

impl Messages {
    pub fn check(&self) -> Result<(), String> {
        self.pattern.check(self.ranks.len())?;
        let v6 = |rank: &Endpoint| rank.address.is_ipv6();
        if self.ranks.len() > MOST_RANKS {
            Err(format!("{} ranks, at most {MOST_RANKS}", self.ranks.len()))
        } else if self.ranks.iter().any(|rank| v6(rank) != v6(&self.ranks[0])) {
            Err("its ranks are of different address families".into())
        } else if self.iterations == 0 {
            Err("iterations must be above 0".into())
        } else if self.size_bytes.is_none() && self.pattern != Pattern::Barrier {
            Err("give size_bytes".into())
        } else {
            Ok(())
        }
    }
}

struct Group {
    common: Common,
    work: Messages,
    socket: Options,
    gate: Gate,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    listeners: Vec<Arc<TcpListener>>,
    /// By rank; the one to the rank that it sends to first comes first.
    connections: Vec<Vec<Arc<OwnedFd>>>,
    ranks: Vec<Rank>,
    ended: bool,
}

#[derive(Clone, Debug, Default)]
struct Rank {
    started_ns: Option<i64>,
    connected_ns: Option<i64>,
    ended_ns: Option<i64>,
    complete: bool,
    sent_bytes: u64,
    received_bytes: u64,
    error: Option<String>,
    totals: Totals,
}

/// The connections of one rank, by the rank at the other end.
type Peers = Vec<Option<Arc<OwnedFd>>>;

pub fn new(common: Common, work: &Messages) -> Arc<dyn Flow> {
    let socket = Options { nodelay: true, ..common.socket.clone() };
    let ranks = vec![Rank::default(); work.ranks.len()];
    let connections = vec![Vec::new(); work.ranks.len()];
    let state = Mutex::new(State { ranks, connections, ..State::default() });
    Arc::new(Group { common, work: work.clone(), socket, gate: Gate::default(), state })
}

impl Flow for Group {
    fn launch(self: Arc<Self>, world: &Arc<World>) -> Result<(), String> {
        let listen = |end: &Endpoint| world.namespaces.listen(end, &self.socket).map(Arc::new);
        let listeners: Vec<_> = self.work.ranks.iter().map(listen).collect::<Result<_, _>>()?;
        self.lock().listeners.clone_from(&listeners);
        let address =
            |listener: &Arc<TcpListener>| listener.local_addr().map_err(|error| format!("getsockname: {error}"));
        let addresses: Arc<Vec<SocketAddr>> = Arc::new(listeners.iter().map(address).collect::<Result<_, _>>()?);
        for (rank, listener) in listeners.into_iter().enumerate() {
            let (group, there, addresses) = (self.clone(), world.clone(), addresses.clone());
            world.spawn("rank", move || group.run(&there, rank, &listener, &addresses))?;
        }
        Ok(())
    }

    fn end(&self, world: &World, ending: Ending, at_ns: i64) {
        let mut state = self.lock();
        if state.ended {
            return;
        }
        state.ended = true;
        let cut = !matches!(ending, Ending::Completed);
        let (connections, listeners) = (std::mem::take(&mut state.connections), std::mem::take(&mut state.listeners));
        for (rank, connections) in state.ranks.iter_mut().zip(&connections) {
            if rank.ended_ns.is_none() {
                rank.ended_ns = Some(at_ns);
                rank.error = ending.error();
            }
            let infos = connections.iter().filter_map(|connection| Info::of(&**connection).ok());
            rank.totals = infos.fold(Totals::default(), |totals, info| totals.with(Some(info), u64::MAX));
        }
        drop(state);
        self.gate.close();
        for connection in connections.iter().flatten().filter(|_| cut) {
            let _ = forget_when_closed(connection);
            let _ = shutdown(connection.as_raw_fd(), Shutdown::Both);
        }
        for listener in listeners {
            // Wakes a thread in accept(2).
            let _ = shutdown(listener.as_raw_fd(), Shutdown::Both);
        }
        world.running.one_ended(self.common.number);
    }

    fn ended(&self) -> bool {
        self.lock().ended
    }

    /// Of each rank its connection with the rank that it sends to first.
    fn senders(&self, see: &mut dyn FnMut(u32, BorrowedFd)) {
        let state = self.lock();
        for ((rank, connections), part) in state.ranks.iter().zip(&state.connections).zip(0..) {
            if rank.connected_ns.is_some() && rank.ended_ns.is_none() {
                if let Some(connection) = connections.first() {
                    see(part, connection.as_fd());
                }
            }
        }
    }

    /// Whole messages.
    fn received(&self, see: &mut dyn FnMut(u32, Received)) {
        for (rank, part) in self.lock().ranks.iter().zip(0..) {
            if rank.started_ns.is_some() {
                see(part, Received::in_order(rank.received_bytes));
            }
        }
    }

    fn records(&self) -> Vec<Record> {
        let scheduled_ns = self.common.start_ns;
        let record = |(rank, part): (&Rank, u32)| {
            let took = rank.ended_ns.map(|ended| (ended - scheduled_ns as i64).max(0) as u64);
            let record = Record {
                flow: self.common.number,
                part,
                kind: "messages",
                congestion: self.common.socket.congestion.clone(),
                scheduled_ns,
                started_ns: rank.started_ns,
                connected_ns: rank.connected_ns,
                ended_ns: rank.ended_ns,
                completion_ns: took.filter(|_| rank.complete),
                volume_bytes: rank.complete.then_some(rank.sent_bytes),
                received_bytes: rank.received_bytes,
                segment_bytes: rank.totals.segment_bytes,
                min_rtt_ns: rank.totals.min_rtt_ns,
                retransmitted_segments: rank.totals.retransmitted_segments,
                error: rank.error.clone(),
                ..Record::default()
            };
            record.with_goodput()
        };
        self.lock().ranks.iter().zip(0..).map(record).collect()
    }
}

impl Group {
    fn run(self: &Arc<Self>, world: &Arc<World>, rank: usize, listener: &TcpListener, addresses: &[SocketAddr]) {
        world.sleep_until(self.common.start_ns);
        let ending = match self.take_part(world, rank, listener, addresses) {
            Ok(true) => Ending::Completed,
            Ok(false) => return,
            // It went wrong because the group was ended, or the group ends with it.
            Err(_) if self.ended() => return,
            Err(why) => Ending::Failed(format!("rank {rank}: {why}")),
        };
        self.end(world, ending, world.now_ns());
    }

    /// True for the last rank that comes to the end of the last iteration.
    fn take_part(
        self: &Arc<Self>,
        world: &Arc<World>,
        rank: usize,
        listener: &TcpListener,
        addresses: &[SocketAddr],
    ) -> Result<bool, String> {
        if self.ended() {
            return Ok(false);
        }
        self.lock().ranks[rank].started_ns = Some(world.now_ns());
        let peers = self.meet(world, rank, listener, addresses)?;
        self.lock().ranks[rank].connected_ns = Some(world.now_ns());
        let mut part = Part::new(self, world, rank, &peers)?;
        let mut computing = stream(self.common.seed, rank as u64);
        for number in 0..self.work.iterations {
            let start_ns = world.now_ns();
            let compute_ns = self.work.compute_ns.map_or(0, |law| law.draw_whole(&mut computing));
            if compute_ns > 0 && !self.gate.sleep_until(world, start_ns.max(0) as u64 + compute_ns) {
                return Ok(false);
            }
            let (sent_bytes, received_bytes) = part.exchange()?;
            let end_ns = world.now_ns();
            {
                let mut state = self.lock();
                if state.ended {
                    return Ok(false);
                }
                state.ranks[rank].sent_bytes += sent_bytes;
            }
            let duration_ns = end_ns - start_ns;
            let (flow, part) = (self.common.number, rank as u32);
            world.exchange(Exchange { flow, part, number, start_ns, duration_ns, sent_bytes, received_bytes });
        }
        let mut state = self.lock();
        state.ranks[rank].ended_ns = Some(world.now_ns());
        state.ranks[rank].complete = true;
        Ok(state.ranks.iter().all(|rank| rank.complete))
    }

    /// Connects to the ranks above it and waits for those below, who say with their first four bytes who they are.
    fn meet(
        &self,
        world: &World,
        rank: usize,
        listener: &TcpListener,
        addresses: &[SocketAddr],
    ) -> Result<Peers, String> {
        let end = &self.work.ranks[rank];
        let peers = self.work.pattern.peers(rank, addresses.len());
        let mut met: Peers = vec![None; addresses.len()];
        for &peer in peers.iter().filter(|&&peer| peer > rank) {
            let socket = Arc::new(world.namespaces.tcp(end, &self.socket)?);
            self.hold(rank, &socket)?;
            if !self.socket.ecn {
                begin_to_connect(&socket, addresses[peer])?;
            }
            met[peer] = Some(socket);
        }
        for (peer, socket) in met.iter().enumerate().filter_map(|(peer, socket)| socket.as_ref().map(|s| (peer, s))) {
            world.namespaces.connect(socket, end, addresses[peer], &self.socket)?;
            let name = (rank as u32).to_be_bytes();
            send(socket.as_raw_fd(), &name, MsgFlags::empty()).map_err(|error| format!("hello to {peer}: {error}"))?;
        }
        for _ in peers.iter().filter(|&&peer| peer < rank) {
            let (connection, _) = listener.accept().map_err(|error| format!("accept: {error}"))?;
            let connection = Arc::new(OwnedFd::from(connection));
            self.hold(rank, &connection)?;
            let mut name = [0; 4];
            let got = recv(connection.as_raw_fd(), &mut name, MsgFlags::MSG_WAITALL);
            if got != Ok(name.len()) {
                return Err("a connection ended before its other end said who it is".into());
            }
            met[u32::from_be_bytes(name) as usize] = Some(connection);
        }
        let mut state = self.lock();
        if !state.ended {
            state.connections[rank] = peers.iter().filter_map(|&peer| met[peer].clone()).collect();
        }
        Ok(met)
    }

    /// So that `end` finds it.
    fn hold(&self, rank: usize, connection: &Arc<OwnedFd>) -> Result<(), String> {
        let mut state = self.lock();
        if state.ended {
            return Err("the group was ended".into());
        }
        state.connections[rank].push(connection.clone());
        Ok(())
    }

    fn came(&self, rank: usize, bytes: u64) {
        let mut state = self.lock();
        if !state.ended {
            state.ranks[rank].received_bytes += bytes;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread fails with the lock held")
    }
}

fn begin_to_connect(socket: &OwnedFd, to: SocketAddr) -> Result<(), String> {
    set_nonblocking(socket, true).map_err(|error| format!("FIONBIO: {error}"))?;
    match connect(socket.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(error) => return Err(format!("connect to {to}: {error}")),
    }
    set_nonblocking(socket, false).map_err(|error| format!("FIONBIO: {error}"))
}
