//! A row of numbers and the millisecond that it is of, which one thread writes and any others read, without locks: a
//! sequence lock with one writer, whose sequence number is the millisecond (Boehm 2012, "Can seqlocks get along with
//! programming language memory models?", figure 6). `emulator/datapath/tests/guarded.rs` tries all its interleavings.

use super::atomic::{fence, AtomicU64, Ordering};

/// Of no millisecond: nothing was written yet, or something is being written.
const NONE: u64 = u64::MAX;

pub struct Guarded<const COLUMNS: usize> {
    ms: AtomicU64,
    columns: [AtomicU64; COLUMNS],
}

impl<const COLUMNS: usize> Guarded<COLUMNS> {
    pub fn new() -> Self {
        Self { ms: AtomicU64::new(NONE), columns: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// By one thread only. For a millisecond once, or again as long as nobody reads it.
    pub fn write(&self, ms: u64, columns: [u64; COLUMNS]) {
        self.ms.store(NONE, Ordering::Relaxed);
        fence(Ordering::Release);
        for (place, value) in self.columns.iter().zip(columns) {
            place.store(value, Ordering::Relaxed);
        }
        self.ms.store(ms, Ordering::Release);
    }

    /// None where the row is of another millisecond, or being written.
    pub fn read(&self, ms: u64) -> Option<[u64; COLUMNS]> {
        if self.ms.load(Ordering::Acquire) != ms {
            return None;
        }
        let columns = std::array::from_fn(|column| self.columns[column].load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        (self.ms.load(Ordering::Relaxed) == ms).then_some(columns)
    }
}
