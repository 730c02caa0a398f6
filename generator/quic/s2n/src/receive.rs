//! The receiver: one socket for all connections of a transfer. It ends when as many have ended as were asked for.
//!
//! s2n-quic gives what is in order, and does not tell what arrived beyond a gap.

use s2n_quic::connection::Error;
use s2n_quic::Connection;
use tokio::task::JoinSet;

use crate::arguments::Request;
use crate::clock::Clock;
use crate::config;
use crate::events::Sums;
use crate::record::{Record, Stream};
use crate::signals::{Signals, Stop};
use crate::tls;

pub async fn run(request: &Request, clock: Clock) -> Result<Record, String> {
    let mut signals = Signals::new()?;
    let mut server = config::server(request)?;
    let mut receivers = JoinSet::new();
    let mut streams = Vec::new();
    let stop = signals.stop();
    let (bin_ns, all) = (request.bin_ns, request.streams as usize);
    let work = async {
        let mut come = 0;
        while streams.len() < all {
            tokio::select! {
                connection = server.accept(), if come < all => {
                    let Some(connection) = connection else { break };
                    come += 1;
                    let receiver = Receiver { clock, bin_ns, stop: stop.clone() };
                    receivers.spawn(async move { receiver.run(connection).await });
                }
                Some(ended) = receivers.join_next() => streams.push(ended),
                () = stop.wait(), if receivers.is_empty() => break,
            }
        }
    };
    signals.until(work).await;
    Record::of_streams("receive", clock.begun_ns(), streams, |(mut stream, sums): (Stream, Sums)| {
        sums.count(&mut stream);
        stream
    })
}

struct Receiver {
    clock: Clock,
    bin_ns: i64,
    stop: Stop,
}

impl Receiver {
    async fn run(self, mut connection: Connection) -> (Stream, Sums) {
        let now_ns = Some(self.clock.now_ns());
        let mut seen = Stream { started_ns: now_ns, connected_ns: now_ns, ..Stream::default() };
        let sums = Sums::of(&connection);
        let protocol = connection.application_protocol().ok();
        seen.stream = protocol.and_then(|name| tls::stream_of(&name)).unwrap_or_default();
        tokio::select! {
            result = self.read(&mut connection, &mut seen) => seen.error = result.err(),
            () = self.stop.wait() => (),
        }
        seen.ended_ns = Some(self.clock.now_ns());
        (seen, sums)
    }

    /// Until the sender has closed the connection.
    async fn read(&self, connection: &mut Connection, seen: &mut Stream) -> Result<(), String> {
        if let Ok(Some(mut stream)) = connection.accept_receive_stream().await {
            // A sender whose time is over closes the connection while its stream goes on.
            while let Ok(Some(piece)) = stream.receive().await {
                seen.came(self.clock.now_ns(), self.bin_ns, None, piece.len() as u64);
            }
        }
        match connection.accept_receive_stream().await {
            Ok(_) | Err(Error::Closed { .. } | Error::Application { .. }) => Ok(()),
            Err(error) => Err(format!("receiving: {error}")),
        }
    }
}
