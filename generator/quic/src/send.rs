//! The sender: a connection for each stream, each with a socket of its own, all at the same time.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use quinn::{Connection, Endpoint, VarInt};
use tokio::task::JoinSet;

use crate::arguments::Request;
use crate::clock::Clock;
use crate::config;
use crate::record::{Record, Sample, Stream};
use crate::signals::{Signals, Stop};

/// How long a sender answers after its end.
const LINGER: Duration = Duration::from_secs(1);
const CHUNK_BYTES: usize = 1 << 16;

pub async fn run(request: &Request, clock: Clock) -> Result<Record, String> {
    let begin_ns = request.at_ns.unwrap_or(clock.begun_ns() + request.after_ns);
    let mut ready = Vec::new();
    for number in 0..request.streams {
        let mut endpoint = config::endpoint(request, None)?;
        endpoint.set_default_client_config(config::client(request, clock, number)?);
        ready.push((number, endpoint));
    }
    // Nothing is at work yet, and timers of tokio are of whole milliseconds.
    std::thread::sleep(Duration::from_nanos((begin_ns - clock.now_ns()).max(0) as u64));
    let mut signals = Signals::new()?;
    let mut senders = JoinSet::new();
    for (number, endpoint) in ready {
        let sender = Sender {
            clock,
            number,
            address: request.address,
            bytes: request.bytes.get(number as usize).copied(),
            end_ns: request.for_ns.map(|for_ns| begin_ns + for_ns),
            sample_ns: request.sample_ns,
            stop: signals.stop(),
            written: AtomicU64::new(0),
        };
        senders.spawn(async move { sender.run(endpoint).await });
    }
    let mut streams = Vec::new();
    while let Some(ended) = signals.until(senders.join_next()).await {
        streams.push(ended.map_err(|error| format!("a stream: {error}"))?);
    }
    streams.sort_by_key(|each| each.stream);
    Ok(Record::new("send", clock.begun_ns(), streams))
}

/// The sender of one stream. `end_ns`: when it ends, whatever is in flight.
struct Sender {
    clock: Clock,
    number: u32,
    address: std::net::SocketAddr,
    bytes: Option<u64>,
    end_ns: Option<i64>,
    sample_ns: i64,
    stop: Stop,
    written: AtomicU64,
}

impl Sender {
    async fn run(self, endpoint: Endpoint) -> Stream {
        let mut seen = Stream { stream: self.number, started_ns: Some(self.clock.now_ns()), ..Stream::default() };
        let connection = match self.in_time(self.connect(&endpoint)).await {
            Some(Ok(connection)) => connection,
            Some(Err(error)) => {
                seen.error = Some(format!("connecting: {error}"));
                return seen;
            }
            None => {
                seen.error = Some("ended before it was connected".into());
                return seen;
            }
        };
        seen.connected_ns = Some(self.clock.now_ns());
        let ended = tokio::select! {
            ended = self.in_time(self.write(&connection)) => ended,
            () = self.sample(&connection, &mut seen.samples) => None,
        };
        match ended {
            Some(Ok(())) => seen.last_ns = Some(self.clock.now_ns()),
            Some(Err(error)) => seen.error = Some(error),
            None => (),
        }
        seen.ended_ns = Some(self.clock.now_ns());
        seen.samples.push(Sample::of(&connection, self.clock.now_ns()));
        seen.bytes = self.written.load(Relaxed);
        connection.close(VarInt::from_u32(0), b"");
        // The peer may not have heard of the end, and asks. Other steps wait for this one, though.
        let _ = tokio::time::timeout(LINGER, self.stop.or(endpoint.wait_idle())).await;
        seen.count(&connection.stats());
        seen
    }

    /// None where the time, or a signal, ended it.
    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let until = async {
            match self.end_ns {
                Some(end_ns) => self.clock.sleep_until(end_ns).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            result = work => Some(result),
            () = until => None,
            () = self.stop.wait() => None,
        }
    }

    async fn connect(&self, endpoint: &Endpoint) -> Result<Connection, String> {
        let connecting = endpoint.connect(self.address, config::NAME).map_err(|error| error.to_string())?;
        connecting.await.map_err(|error| error.to_string())
    }

    /// Until the last byte is acknowledged.
    async fn write(&self, connection: &Connection) -> Result<(), String> {
        let said = |error: &dyn std::fmt::Display| format!("sending: {error}");
        let mut stream = connection.open_uni().await.map_err(|error| said(&error))?;
        let zeros = Bytes::from(vec![0; CHUNK_BYTES]);
        loop {
            let left = self.bytes.map_or(u64::MAX, |bytes| bytes - self.written.load(Relaxed));
            if left == 0 {
                break;
            }
            let size = left.min(CHUNK_BYTES as u64);
            stream.write_chunk(zeros.slice(..size as usize)).await.map_err(|error| said(&error))?;
            self.written.fetch_add(size, Relaxed);
        }
        stream.finish().map_err(|error| said(&error))?;
        stream.stopped().await.map_err(|error| said(&error))?;
        Ok(())
    }

    /// Notes the state at each multiple of the interval from T0; does not end.
    async fn sample(&self, connection: &Connection, samples: &mut Vec<Sample>) {
        if self.sample_ns == 0 {
            return std::future::pending().await;
        }
        loop {
            let next_ns = (self.clock.now_ns().div_euclid(self.sample_ns) + 1) * self.sample_ns;
            self.clock.sleep_until(next_ns).await;
            samples.push(Sample::of(connection, self.clock.now_ns()));
        }
    }
}
