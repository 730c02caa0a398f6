//! One flow: its two sockets, the thread that sends, the thread that receives, and how it ended.

use std::fs::File;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread::{Builder, Scope};

use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::socket::{connect, SockaddrStorage};

use super::{Running, Transfer};
use crate::clock::{monotonic_ns, sleep_until_monotonic};
use crate::socket::{forget_when_closed, Namespaces};
use crate::tcp_info::Info;

/// What one call sends or receives at most.
const PIECE_BYTES: u64 = 1 << 30;
/// A thread here calls the kernel and does nothing else.
const STACK_BYTES: usize = 64 << 10;

/// What all flows send: zeros, in a file without a page of its own.
pub struct Filling(File);

impl Filling {
    pub fn new() -> Result<Self, String> {
        let file = memfd_create(c"bulk", MFdFlags::MFD_CLOEXEC).map_err(|error| format!("memfd_create: {error}"))?;
        let file = File::from(file);
        file.set_len(PIECE_BYTES).map_err(|error| format!("memfd: {error}"))?;
        Ok(Self(file))
    }
}

/// Why a flow ends.
pub enum Ending {
    /// By itself: all that it had to receive is there, or nothing more will come.
    Closed {
        received_bytes: u64,
    },
    /// Its duration is over.
    InTime,
    /// It was given no more time.
    Stopped,
    Failed(String),
}

/// Times since the common start.
#[derive(Clone, Default)]
pub struct Outcome {
    pub started_ns: i64,
    pub connected_ns: Option<i64>,
    pub ended_ns: Option<i64>,
    pub received_bytes: u64,
    pub segment_bytes: u32,
    pub min_rtt_ns: u64,
    pub retransmitted_segments: u32,
    pub error: Option<String>,
}

pub struct Flow<'a> {
    pub transfer: &'a Transfer,
    sender: TcpStream,
    listener: TcpListener,
    to: SocketAddr,
    receiver: OnceLock<TcpStream>,
    outcome: Mutex<Outcome>,
}

impl<'a> Flow<'a> {
    pub fn open(namespaces: &Namespaces, transfer: &'a Transfer) -> Result<Self, String> {
        let say = |error: String| format!("flow {:?}: {error}", transfer.name);
        let listener = namespaces.listen(&transfer.to).map_err(say)?;
        let to = listener.local_addr().map_err(|error| say(format!("getsockname: {error}")))?;
        let sender: OwnedFd = namespaces.tcp(&transfer.from, &transfer.congestion).map_err(say)?;
        let outcome = Outcome { started_ns: transfer.start_ns as i64, ..Outcome::default() };
        let (sender, receiver, outcome) = (TcpStream::from(sender), OnceLock::new(), Mutex::new(outcome));
        Ok(Self { transfer, sender, listener, to, receiver, outcome })
    }

    /// Starts both ends; `begin` is the common start (CLOCK_MONOTONIC).
    pub fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        filling: &'scope Filling,
        running: &'scope Running,
        begin: i64,
    ) -> Result<(), String> {
        let thread = || Builder::new().stack_size(STACK_BYTES);
        let failed = |error| format!("flow {:?}: thread: {error}", self.transfer.name);
        thread().spawn_scoped(scope, move || self.receive(running, begin)).map_err(failed)?;
        thread().spawn_scoped(scope, move || self.send(filling, running, begin)).map_err(failed)?;
        Ok(())
    }

    fn send(&self, filling: &Filling, running: &Running, begin: i64) {
        sleep_until_monotonic(begin + self.transfer.start_ns as i64);
        self.lock().started_ns = monotonic_ns() - begin;
        if let Err(error) = connect(self.sender.as_raw_fd(), &SockaddrStorage::from(self.to)) {
            let why = format!("connect {} to {}: {error}", self.transfer.from.address, self.to);
            return self.end(Ending::Failed(why), monotonic_ns() - begin, running);
        }
        self.lock().connected_ns = Some(monotonic_ns() - begin);
        let mut left = self.transfer.bytes.unwrap_or(u64::MAX);
        while left > 0 {
            let mut offset = 0;
            let most = left.min(PIECE_BYTES) as usize;
            // SAFETY: both descriptors live as long as `self` and `filling`; the kernel writes `offset`.
            let sent = unsafe { libc::sendfile(self.sender.as_raw_fd(), filling.0.as_raw_fd(), &mut offset, most) };
            match sent {
                1.. => left -= sent as u64,
                _ if self.ended() => return,
                _ => {
                    let why = format!("sendfile: {}", io::Error::last_os_error());
                    return self.end(Ending::Failed(why), monotonic_ns() - begin, running);
                }
            }
        }
        let _ = self.sender.shutdown(Shutdown::Write);
    }

    /// Takes what comes without copying it (MSG_TRUNC, tcp(7)), in calls that return when all of it is there.
    fn receive(&self, running: &Running, begin: i64) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        let fd = stream.as_raw_fd();
        let _ = self.receiver.set(stream);
        let mut received = 0;
        let expected = self.transfer.bytes.unwrap_or(u64::MAX);
        while received < expected {
            let most = (expected - received).min(PIECE_BYTES) as usize;
            // SAFETY: with MSG_TRUNC a TCP socket throws the bytes away and writes nothing to the buffer.
            match unsafe { libc::recv(fd, std::ptr::null_mut(), most, libc::MSG_TRUNC | libc::MSG_WAITALL) } {
                count @ 1.. => received += count as u64,
                _ => break,
            }
        }
        self.end(Ending::Closed { received_bytes: received }, monotonic_ns() - begin, running);
    }

    /// The first call counts; both threads then come out of the kernel, and what is still on its way is forgotten.
    pub fn end(&self, ending: Ending, at_ns: i64, running: &Running) {
        let mut outcome = self.lock();
        if outcome.ended_ns.is_some() {
            return;
        }
        outcome.ended_ns = Some(at_ns);
        outcome.received_bytes = match ending {
            Ending::Closed { received_bytes } => received_bytes,
            _ => self.receiver_bytes(),
        };
        outcome.error = match ending {
            Ending::Failed(why) => Some(why),
            Ending::Stopped => Some("it had not ended in the longest time there was".into()),
            Ending::Closed { received_bytes } if self.transfer.bytes.is_some_and(|bytes| received_bytes < bytes) => {
                Some(format!("the connection ended after {received_bytes} bytes"))
            }
            Ending::Closed { .. } | Ending::InTime => None,
        };
        if let Ok(info) = Info::of(&self.sender) {
            outcome.segment_bytes = info.segment_bytes();
            outcome.min_rtt_ns = info.min_rtt_ns();
            outcome.retransmitted_segments = info.retransmitted_segments();
        }
        drop(outcome);
        let _ = forget_when_closed(self.sender.as_raw_fd());
        let _ = self.sender.shutdown(Shutdown::Both);
        match self.receiver.get() {
            Some(receiver) => drop(receiver.shutdown(Shutdown::Both)),
            // Wakes a thread in accept(2).
            // SAFETY: the descriptor is ours.
            None => drop(unsafe { libc::shutdown(self.listener.as_raw_fd(), libc::SHUT_RDWR) }),
        }
        running.one_ended();
    }

    pub fn ended(&self) -> bool {
        self.lock().ended_ns.is_some()
    }

    pub fn outcome(&self) -> Outcome {
        self.lock().clone()
    }

    /// While it sends.
    pub fn sender_info(&self) -> Option<Info> {
        let outcome = self.lock();
        let sends = outcome.connected_ns.is_some() && outcome.ended_ns.is_none();
        sends.then(|| Info::of(&self.sender).ok()).flatten()
    }

    /// In order at the receiver, up to now or up to the flow's end.
    pub fn received_bytes(&self) -> u64 {
        let outcome = self.lock();
        if outcome.ended_ns.is_some() {
            outcome.received_bytes
        } else {
            self.receiver_bytes()
        }
    }

    fn receiver_bytes(&self) -> u64 {
        self.receiver.get().and_then(|receiver| Info::of(receiver).ok()).map_or(0, |info| info.received_bytes())
    }

    fn lock(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().expect("no thread fails with the lock held")
    }
}
