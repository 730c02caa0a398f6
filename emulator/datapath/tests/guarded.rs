//! The sequence lock of the series under loom: every interleaving of a writer and readers that the memory model allows.

/// What the module takes its atomics from; the product's are those of the standard library.
mod atomic {
    pub use loom::sync::atomic::{fence, AtomicU64, Ordering};
}
#[path = "../src/guarded.rs"]
mod guarded;

use guarded::Guarded;
use loom::sync::Arc;
use loom::thread;

#[test]
fn a_reader_sees_a_whole_row_or_none() {
    loom::model(|| {
        let row = Arc::new(Guarded::<2>::new());
        let writer = {
            let row = row.clone();
            thread::spawn(move || (1..3).for_each(|ms| row.write(ms, [ms, 10 * ms])))
        };
        for ms in 1..3 {
            if let Some(columns) = row.read(ms) {
                assert_eq!(columns, [ms, 10 * ms]);
            }
        }
        writer.join().unwrap();
        assert_eq!((row.read(1), row.read(2)), (None, Some([2, 20])));
    });
}

#[test]
fn readers_do_not_disturb_each_other() {
    loom::model(|| {
        let row = Arc::new(Guarded::<1>::new());
        row.write(1, [1]);
        let reader = {
            let row = row.clone();
            thread::spawn(move || row.read(2).is_none_or(|columns| columns == [2]))
        };
        let writer = {
            let row = row.clone();
            thread::spawn(move || row.write(2, [2]))
        };
        assert!(row.read(1).is_none_or(|columns| columns == [1]));
        writer.join().unwrap();
        assert!(reader.join().unwrap());
    });
}
