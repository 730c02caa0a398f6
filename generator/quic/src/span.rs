//! The time that a transfer has: until an instant, or a signal.

use std::future::Future;
use std::time::Duration;

use crate::arguments::Request;
use crate::clock::Clock;
use crate::signals::Stop;

/// How long an end that closed a connection answers.
const LINGER: Duration = Duration::from_secs(1);
/// A receiver that has not answered by then does not.
const CONNECT: Duration = Duration::from_secs(30);

pub struct Span {
    pub clock: Clock,
    /// When it ends, whatever is in flight.
    end_ns: Option<i64>,
    stop: Stop,
}

impl Span {
    pub fn new(request: &Request, clock: Clock, stop: Stop) -> Self {
        Span { clock, end_ns: request.for_ns.map(|for_ns| request.begin_ns(clock) + for_ns), stop }
    }

    /// None where the time, or a signal, ended it.
    pub async fn of<T>(&self, work: impl Future<Output = T>) -> Option<T> {
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

    /// What connects, or why it did not.
    pub async fn connecting<T>(&self, connect: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        let in_time = async { tokio::time::timeout(CONNECT, connect).await.unwrap_or(Err("timed out".into())) };
        match self.of(in_time).await {
            Some(Ok(connection)) => Ok(connection),
            Some(Err(error)) => Err(format!("connecting: {error}")),
            None => Err("ended before it was connected".into()),
        }
    }

    /// The peer may not have heard of the end, and asks. Other steps wait for this one, though.
    pub async fn linger(&self, idle: impl Future<Output = ()>) {
        let _ = tokio::time::timeout(LINGER, self.stop.or(idle)).await;
    }
}
