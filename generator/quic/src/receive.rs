//! The receiver: one socket for all connections of a transfer. It ends when as many have ended as were asked for.
//!
//! It takes what arrives in whatever order, and counts as delivered what a program could have had in order.

use std::sync::Arc;

use quinn::crypto::rustls::HandshakeData;
use quinn::{Connection, Incoming, ServerConfig};
use tokio::task::JoinSet;

use crate::arguments::Request;
use crate::clock::Clock;
use crate::config::{self, Qlog};
use crate::in_order::InOrder;
use crate::record::{Record, Stream};
use crate::signals::{Signals, Stop};
use crate::tls::{self, Certificate};

/// Read at once.
const CHUNK_BYTES: usize = 1 << 20;

pub async fn run(request: &Request, clock: Clock) -> Result<Record, String> {
    let mut signals = Signals::new()?;
    let key = Certificate::new()?;
    let (first, _) = config::server(request, clock, &key, None)?;
    let endpoint = config::endpoint(request, Some(first))?;
    let mut receivers = JoinSet::new();
    let mut streams = Vec::new();
    let stop = signals.stop();
    let (bin_ns, all) = (request.bin_ns, request.streams as usize);
    let work = async {
        let mut come = 0;
        while streams.len() < all {
            tokio::select! {
                incoming = endpoint.accept(), if come < all => {
                    let Some(incoming) = incoming else { break };
                    let receiver = Receiver { clock, bin_ns, stop: stop.clone() };
                    let (own, log) = config::server(request, clock, &key, Some(come))?;
                    come += 1;
                    receivers.spawn(async move { receiver.run(incoming, own, log).await });
                }
                Some(ended) = receivers.join_next() => streams.push(ended),
                () = stop.wait(), if receivers.is_empty() => break,
            }
        }
        stop.or(endpoint.wait_idle()).await;
        Ok::<(), String>(())
    };
    signals.until(work).await?;
    Record::of_streams(
        "receive",
        clock.begun_ns(),
        streams,
        |(mut stream, connection): (Stream, Option<Connection>)| {
            if let Some(connection) = connection {
                stream.count_accepted(&connection.stats());
            }
            stream
        },
    )
}

struct Receiver {
    clock: Clock,
    bin_ns: i64,
    stop: Stop,
}

impl Receiver {
    async fn run(self, incoming: Incoming, own: ServerConfig, log: Option<Qlog>) -> (Stream, Option<Connection>) {
        let mut seen = Stream { started_ns: Some(self.clock.now_ns()), ..Stream::default() };
        let accepted = async { incoming.accept_with(Arc::new(own))?.await };
        let connection = match accepted.await {
            Ok(connection) => connection,
            Err(error) => {
                seen.error = Some(format!("accepting: {error}"));
                return (seen, None);
            }
        };
        seen.connected_ns = Some(self.clock.now_ns());
        let protocol = connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
        let stream = protocol.and_then(|data| tls::stream_of(&data.protocol?));
        seen.stream = stream.unwrap_or_default();
        if let Some(Err(error)) = log.map(|log| log.name(seen.stream)) {
            seen.error = Some(error);
        }
        tokio::select! {
            result = self.read(&connection, &mut seen) => seen.error = seen.error.or(result.err()),
            () = self.stop.wait() => (),
        }
        seen.ended_ns = Some(self.clock.now_ns());
        // After a signal, the stream that goes on asks its sender to stop, which nobody counts any more.
        let left = if self.stop.came() {
            seen.count_accepted(&connection.stats());
            None
        } else {
            Some(connection)
        };
        (seen, left)
    }

    /// Until the sender has closed the connection.
    async fn read(&self, connection: &Connection, seen: &mut Stream) -> Result<(), String> {
        let Ok(mut stream) = connection.accept_uni().await else { return Ok(()) };
        // A sender whose time is over closes the connection while its stream goes on.
        let mut order = InOrder::default();
        while let Ok(Some(chunk)) = stream.read_chunk(CHUNK_BYTES, false).await {
            let (now_ns, arrived) = (self.clock.now_ns(), chunk.bytes.len() as u64);
            let delivered = order.add(chunk.offset, arrived);
            seen.came(now_ns, self.bin_ns, Some(arrived), delivered);
        }
        match connection.closed().await {
            quinn::ConnectionError::ApplicationClosed(_) => Ok(()),
            error => Err(format!("receiving: {error}")),
        }
    }
}
