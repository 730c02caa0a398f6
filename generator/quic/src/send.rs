//! The sender: a connection for each stream, each with a socket of its own, all at the same time.

use bytes::Bytes;
use quinn::{Connection, Endpoint, SendStream, VarInt, WriteError};
use tokio::task::JoinSet;

use crate::arguments::Request;
use crate::clock::Clock;
use crate::config;
use crate::record::{Record, Sample, Stream};
use crate::signals::Signals;
use crate::span::Span;
use crate::volume::{Sink, Volume};

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
        let sender = Sender { span: Span::new(request, clock, signals.stop()), volume: Volume::new(request, number) };
        let request = request.clone();
        senders.spawn(async move { sender.run(number, &endpoint, &request).await });
    }
    let mut streams = Vec::new();
    while let Some(ended) = signals.until(senders.join_next()).await {
        streams.push(ended);
    }
    Record::of_streams("send", clock.begun_ns(), streams, |stream| stream)
}

/// The sender of one stream.
struct Sender {
    span: Span,
    volume: Volume,
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
        seen.bytes = self.volume.written();
        connection.close(VarInt::from_u32(0), b"");
        self.span.linger(endpoint.wait_idle()).await;
        seen.count(&connection.stats());
        seen
    }

    /// Until the last byte is acknowledged.
    async fn write(&self, connection: &Connection, request: &Request) -> Result<(), String> {
        let said = |error: &dyn std::fmt::Display| format!("sending: {error}");
        let mut stream = connection.open_uni().await.map_err(|error| said(&error))?;
        self.volume.write(request, self.span.clock, &mut stream).await.map_err(|error| said(&error))?;
        stream.finish().map_err(|error| said(&error))?;
        stream.stopped().await.map_err(|error| said(&error))?;
        Ok(())
    }
}

impl Sink for SendStream {
    type Error = WriteError;

    async fn write(&mut self, piece: Bytes) -> Result<(), WriteError> {
        self.write_chunk(piece).await
    }
}
