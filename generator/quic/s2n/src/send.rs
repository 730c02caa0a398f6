//! The sender: a connection for each stream, each with a socket of its own, all at the same time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use s2n_quic::stream::SendStream;
use s2n_quic::{Client, Connection};
use tokio::task::JoinSet;

use crate::arguments::Request;
use crate::clock::Clock;
use crate::config;
use crate::events::Sums;
use crate::record::{Record, Stream};
use crate::signals::Signals;
use crate::span::Span;

/// Written at once.
const CHUNK_BYTES: usize = 1 << 16;
static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

pub async fn run(request: &Request, clock: Clock) -> Result<Record, String> {
    let mut ready = Vec::new();
    for number in 0..request.streams {
        ready.push((number, config::client(request, number)?));
    }
    clock.sleep_before_work(request.begin_ns(clock));
    let mut signals = Signals::new()?;
    let mut senders = JoinSet::new();
    for (number, client) in ready {
        let sender = Sender {
            span: Span::new(request, clock, signals.stop()),
            bytes: request.bytes.get(number as usize).copied(),
            written: AtomicU64::new(0),
        };
        let request = request.clone();
        senders.spawn(async move { sender.run(number, client, &request).await });
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
    async fn run(self, number: u32, mut client: Client, request: &Request) -> Stream {
        let clock = self.span.clock;
        let mut seen = Stream { stream: number, started_ns: Some(clock.now_ns()), ..Stream::default() };
        let mut connection = match self.span.connecting(config::connect(&client, request)).await {
            Ok(connection) => connection,
            Err(error) => {
                seen.error = Some(error);
                return seen;
            }
        };
        seen.connected_ns = Some(clock.now_ns());
        let sums = Sums::of(&connection);
        let ended = tokio::select! {
            ended = self.span.of(self.write(&mut connection, request)) => ended,
            () = sums.each(request.sample_ns, clock, &mut seen.samples) => None,
        };
        match ended {
            Some(Ok(())) => seen.last_ns = Some(clock.now_ns()),
            Some(Err(error)) => seen.error = Some(error),
            None => (),
        }
        seen.ended_ns = Some(clock.now_ns());
        seen.samples.push(sums.sample(clock.now_ns()));
        seen.bytes = self.written.load(Relaxed);
        connection.close(0u32.into());
        let idle = async {
            let _ = client.wait_idle().await;
        };
        self.span.linger(idle).await;
        sums.count(&mut seen);
        seen
    }

    /// Until the last byte is acknowledged.
    async fn write(&self, connection: &mut Connection, request: &Request) -> Result<(), String> {
        let said = |error: &dyn std::fmt::Display| format!("sending: {error}");
        let mut stream = connection.open_send_stream().await.map_err(|error| said(&error))?;
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
        stream.close().await.map_err(|error| said(&error))
    }

    /// What is left of the volume.
    fn left(&self) -> u64 {
        self.bytes.map_or(u64::MAX, |bytes| bytes - self.written.load(Relaxed))
    }

    /// Writes so many bytes, or what is left.
    async fn fill(&self, stream: &mut SendStream, bytes: u64) -> Result<(), s2n_quic::stream::Error> {
        let mut bytes = bytes.min(self.left());
        while bytes > 0 {
            let size = bytes.min(CHUNK_BYTES as u64);
            stream.send(Bytes::from_static(&ZEROS[..size as usize])).await?;
            self.written.fetch_add(size, Relaxed);
            bytes -= size;
        }
        Ok(())
    }
}
