//! The sender: a connection for each stream, each with a socket of its own, all at the same time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use quinn::{Connection, Endpoint, SendStream, VarInt, WriteError};
use tokio::task::JoinSet;

use crate::arguments::Request;
use crate::clock::Clock;
use crate::config;
use crate::record::{Record, Sample, Stream};
use crate::signals::Signals;
use crate::span::Span;

/// Written at once.
pub const CHUNK_BYTES: usize = 1 << 16;
pub static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

pub async fn run(request: &Request, clock: Clock) -> Result<Record, String> {
    let mut ready = Vec::new();
    for number in 0..request.streams {
        let mut endpoint = config::endpoint(request, None)?;
        endpoint.set_default_client_config(config::client(request, clock, number)?);
        ready.push((number, endpoint));
    }
    clock.sleep_before_work(request.begin_ns(clock));
    let mut signals = Signals::new()?;
    let mut senders = JoinSet::new();
    for (number, endpoint) in ready {
        let sender = Sender {
            span: Span::new(request, clock, signals.stop()),
            bytes: request.bytes.get(number as usize).copied(),
            written: AtomicU64::new(0),
        };
        let request = request.clone();
        senders.spawn(async move { sender.run(number, &endpoint, &request).await });
    }
    let mut streams = Vec::new();
    while let Some(ended) = signals.until(senders.join_next()).await {
        streams.push(ended.map_err(|error| format!("a stream: {error}"))?);
    }
    streams.sort_by_key(|each| each.stream);
    Ok(Record::new("send", clock.begun_ns(), streams))
}

/// The sender of one stream.
struct Sender {
    span: Span,
    bytes: Option<u64>,
    written: AtomicU64,
}

impl Sender {
    async fn run(self, number: u32, endpoint: &Endpoint, request: &Request) -> Stream {
        let clock = self.span.clock;
        let mut seen = Stream { stream: number, started_ns: Some(clock.now_ns()), ..Stream::default() };
        let connection = match self.span.connecting(config::connect(endpoint, request)).await {
            Ok(connection) => connection,
            Err(error) => {
                seen.error = Some(error);
                return seen;
            }
        };
        seen.connected_ns = Some(clock.now_ns());
        let ended = tokio::select! {
            ended = self.span.of(self.write(&connection, request)) => ended,
            () = Sample::each(request.sample_ns, &connection, clock, &mut seen.samples) => None,
        };
        match ended {
            Some(Ok(())) => seen.last_ns = Some(clock.now_ns()),
            Some(Err(error)) => seen.error = Some(error),
            None => (),
        }
        seen.ended_ns = Some(clock.now_ns());
        seen.samples.push(Sample::of(&connection, clock.now_ns()));
        seen.bytes = self.written.load(Relaxed);
        connection.close(VarInt::from_u32(0), b"");
        self.span.linger(endpoint.wait_idle()).await;
        seen.count(&connection.stats());
        seen
    }

    /// Until the last byte is acknowledged.
    async fn write(&self, connection: &Connection, request: &Request) -> Result<(), String> {
        let said = |error: &dyn std::fmt::Display| format!("sending: {error}");
        let mut stream = connection.open_uni().await.map_err(|error| said(&error))?;
        let begin_ns = request.begin_ns(self.span.clock);
        match request.writes.as_ref().map(|writes| writes.schedule(request.seed, begin_ns)) {
            None => self.fill(&mut stream, u64::MAX).await.map_err(|error| said(&error))?,
            Some(due) => {
                for write in due {
                    self.span.clock.sleep_until(write.at_ns as i64).await;
                    self.fill(&mut stream, write.bytes as u64).await.map_err(|error| said(&error))?;
                    if self.left() == 0 {
                        break;
                    }
                }
            }
        }
        stream.finish().map_err(|error| said(&error))?;
        stream.stopped().await.map_err(|error| said(&error))?;
        Ok(())
    }

    /// What is left of the volume.
    fn left(&self) -> u64 {
        self.bytes.map_or(u64::MAX, |bytes| bytes - self.written.load(Relaxed))
    }

    /// Writes so many bytes, or what is left.
    async fn fill(&self, stream: &mut SendStream, bytes: u64) -> Result<(), WriteError> {
        let zeros = Bytes::from_static(&ZEROS);
        let mut bytes = bytes.min(self.left());
        while bytes > 0 {
            let size = bytes.min(CHUNK_BYTES as u64);
            stream.write_chunk(zeros.slice(..size as usize)).await?;
            self.written.fetch_add(size, Relaxed);
            bytes -= size;
        }
        Ok(())
    }
}
