//! The volume that a sender writes: as fast as its library takes it, or as its application does.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

use crate::arguments::Request;
use crate::clock::Clock;

/// The bytes of one piece.
pub const CHUNK_BYTES: usize = 1 << 16;
pub static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

/// The stream of a library, which takes what is written.
pub trait Sink: Send {
    type Error;

    fn write(&mut self, piece: Bytes) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

pub struct Volume {
    /// None: without an end.
    bytes: Option<u64>,
    written: AtomicU64,
}

impl Volume {
    pub fn new(request: &Request, number: u32) -> Self {
        Volume { bytes: request.bytes.get(number as usize).copied(), written: AtomicU64::new(0) }
    }

    pub fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// Writes all of it.
    pub async fn write<S: Sink>(&self, request: &Request, clock: Clock, sink: &mut S) -> Result<(), S::Error> {
        let begin_ns = request.begin_ns(clock);
        let Some(due) = request.writes.as_ref().map(|writes| writes.schedule(request.seed, begin_ns)) else {
            return self.fill(u64::MAX, sink).await;
        };
        for each in due {
            clock.sleep_until(each.at_ns as i64).await;
            self.fill(each.bytes as u64, sink).await?;
            if self.left() == 0 {
                break;
            }
        }
        Ok(())
    }

    fn left(&self) -> u64 {
        self.bytes.map_or(u64::MAX, |bytes| bytes - self.written())
    }

    /// Writes so many bytes, or what is left.
    async fn fill<S: Sink>(&self, bytes: u64, sink: &mut S) -> Result<(), S::Error> {
        let mut bytes = bytes.min(self.left());
        while bytes > 0 {
            let size = bytes.min(CHUNK_BYTES as u64);
            sink.write(Bytes::from_static(&ZEROS[..size as usize])).await?;
            self.written.fetch_add(size, Relaxed);
            bytes -= size;
        }
        Ok(())
    }
}
