//! One end of a flow whose connections come one after the other, or stay: the connection that is open now, and what the
//! ones before it moved. In: connections. Out: bytes that came, the kernel's view of the sender, an end for all of it.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::socket::forget_when_closed;
use crate::tcp_info::Info;

#[derive(Default)]
pub struct Side(Mutex<SideState>);

#[derive(Default)]
struct SideState {
    stream: Option<Arc<TcpStream>>,
    /// What will come on it: the kernel counts the end of a connection as one byte more.
    expected_bytes: u64,
    ended: bool,
    past: Totals,
}

impl SideState {
    fn totals(&self) -> Totals {
        let info = self.stream.as_ref().and_then(|stream| Info::of(&**stream).ok());
        self.past.with(info, self.expected_bytes)
    }
}

/// Over all connections so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub received_bytes: u64,
    pub segment_bytes: Option<u32>,
    pub min_rtt_ns: Option<u64>,
    pub retransmitted_segments: Option<u32>,
}

impl Totals {
    /// And those of a connection on which no more than `expected_bytes` come.
    pub fn with(self, info: Option<Info>, expected_bytes: u64) -> Self {
        let Some(info) = info else { return self };
        Self {
            received_bytes: self.received_bytes + info.received_bytes().min(expected_bytes),
            segment_bytes: Some(info.segment_bytes()),
            min_rtt_ns: self.min_rtt_ns.into_iter().chain(info.min_rtt_ns()).min(),
            retransmitted_segments: Some(self.retransmitted_segments.unwrap_or(0) + info.retransmitted_segments()),
        }
    }

    /// Of both ends together; the segments are those of this one.
    pub fn and(self, other: Self) -> Self {
        let retransmitted = self.retransmitted_segments.into_iter().chain(other.retransmitted_segments);
        Self {
            received_bytes: self.received_bytes + other.received_bytes,
            segment_bytes: self.segment_bytes.or(other.segment_bytes),
            min_rtt_ns: self.min_rtt_ns.into_iter().chain(other.min_rtt_ns).min(),
            retransmitted_segments: retransmitted.reduce(|one, two| one + two),
        }
    }
}

impl Side {
    /// Another connection, on which so many bytes will come; none when all is over.
    pub fn hold(&self, stream: TcpStream, expected_bytes: u64) -> Option<Arc<TcpStream>> {
        let mut held = self.lock();
        if held.ended {
            let _ = forget_when_closed(&stream);
            return None;
        }
        let stream = Arc::new(stream);
        held.stream = Some(stream.clone());
        held.expected_bytes = expected_bytes;
        Some(stream)
    }

    /// The connection is done with; it closes when nobody uses it any more.
    pub fn release(&self) {
        let mut held = self.lock();
        held.past = held.totals();
        held.stream = None;
    }

    /// No connection more. `cut`: whoever sends or receives comes out of the kernel, and what is on its way is forgotten.
    pub fn end(&self, cut: bool) {
        self.lock().ended = true;
        let stream = self.lock().stream.clone();
        self.release();
        if let Some(stream) = stream.filter(|_| cut) {
            let _ = forget_when_closed(&stream);
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// The connection that is open.
    pub fn stream(&self) -> Option<Arc<TcpStream>> {
        self.lock().stream.clone()
    }

    pub fn totals(&self) -> Totals {
        self.lock().totals()
    }

    fn lock(&self) -> MutexGuard<'_, SideState> {
        self.0.lock().expect("no thread fails with the lock held")
    }
}
