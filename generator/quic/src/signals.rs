//! SIGTERM and SIGINT, which end a transfer early: what is known by then is said.

use std::future::Future;

use tokio::signal::unix::{signal, Signal, SignalKind};
use tokio::sync::watch;

pub struct Signals {
    term: Signal,
    int: Signal,
    stop: watch::Sender<bool>,
}

/// Whether a signal came, for those who are at work.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Signals {
    pub fn new() -> Result<Self, String> {
        let caught = |kind| signal(kind).map_err(|error| format!("waiting for signals: {error}"));
        Ok(Signals {
            term: caught(SignalKind::terminate())?,
            int: caught(SignalKind::interrupt())?,
            stop: watch::channel(false).0,
        })
    }

    pub fn stop(&self) -> Stop {
        Stop(self.stop.subscribe())
    }

    /// Passes on a signal that comes meanwhile.
    pub async fn until<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                result = &mut work => return result,
                _ = self.term.recv() => (),
                _ = self.int.recv() => (),
            }
            self.stop.send_replace(true);
        }
    }
}

impl Stop {
    pub fn came(&self) -> bool {
        *self.0.borrow()
    }

    pub async fn wait(&self) {
        // An error says that the sender of signals is gone, at the end of all.
        let _ = self.0.clone().wait_for(|stopped| *stopped).await;
    }

    /// Until this is done, or a signal comes.
    pub async fn or(&self, work: impl Future<Output = ()>) {
        tokio::select! {
            () = work => (),
            () = self.wait() => (),
        }
    }
}
