//! Work for many nodes on a few threads, in which namespaces may be entered: the caller stays where it is.
//!
//! In: how many pieces of work, what to do for each. Out: the results in order, or the first error.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// Runs `work` for 0..count on `threads` threads of their own; nothing new is begun after an error.
pub fn run<T: Send, E: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    let worker = || -> Result<(), E> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            let result = work(number).inspect_err(|_| next.store(count, Ordering::Relaxed))?;
            results.lock().expect("no thread panicked")[number] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(count)).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no thread panicked"))
    })?;
    Ok(results.into_inner().expect("no thread panicked").into_iter().flatten().collect())
}
