//! The sender: a connection for each stream, each with a socket of its own, all at the same time.

use bytes::Bytes;
use s2n_quic::stream::{Error, SendStream};
use s2n_quic::{Client, Connection};
use tokio::task::JoinSet;

use crate::arguments::Request;
use crate::clock::Clock;
use crate::config;
use crate::events::Sums;
use crate::record::{Record, Stream};
use crate::signals::Signals;
use crate::span::Span;
use crate::volume::{Sink, Volume};

pub async fn run(request: &Request, clock: Clock) -> Result<Record, String> {
    let mut ready = Vec::new();
    for number in 0..request.streams {
        ready.push((number, config::client(request, number)?));
    }
    clock.sleep_before_work(request.begin_ns(clock));
    let mut signals = Signals::new()?;
    let mut senders = JoinSet::new();
    for (number, client) in ready {
        let sender = Sender { span: Span::new(request, clock, signals.stop()), volume: Volume::new(request, number) };
        let request = request.clone();
        senders.spawn(async move { sender.run(number, client, &request).await });
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
        seen.bytes = self.volume.written();
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
        self.volume.write(request, self.span.clock, &mut stream).await.map_err(|error| said(&error))?;
        stream.close().await.map_err(|error| said(&error))
    }
}

impl Sink for SendStream {
    type Error = Error;

    async fn write(&mut self, piece: Bytes) -> Result<(), Error> {
        self.send(piece).await
    }
}
