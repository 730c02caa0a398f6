//! When the spinner may sleep, and how it does. The kernel stamps frames and the model says when the next one is due, so a
//! frame that is noticed late is not delayed by it, as long as it is noticed before it is due. In: how long nothing came, when
//! the next event is, the links' least transit times. Out: how long to sleep; and sleep that any port's frame, or the
//! control thread, ends.
//!
//! How late a sleeper wakes is measured on this CPU when the spinner starts, and at each timed sleep after that.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ewan_system::{Context, Result};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::prctl::set_timerslack;
use nix::sys::socket::{getsockopt, sockopt::SocketError};

use ewan_model::Nanos;

/// Nothing came for so long: then it is worth to sleep.
const QUIET_NS: Nanos = 2_000_000;
/// Nobody sleeps longer at once.
const LONGEST_NS: Nanos = 1_000_000_000;
/// How late a sleeper is expected to wake is kept within these.
const WAKE_NS: std::ops::RangeInclusive<Nanos> = 50_000..=2_000_000;
const TRIALS: u32 = 16;
const TRIAL: Duration = Duration::from_micros(300);

/// How a spinner waits while it has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It never sleeps.
    Spinning,
    /// It sleeps when nothing came for a while, and wakes before the next event.
    Napping,
    /// Others share its CPU: it sleeps at once, and wakes before the next event.
    Sharing,
    /// Others are not to wait for it: it sleeps at once, until the next event.
    Yielding,
}

/// How late a sleeper wakes: the worst seen lately.
#[derive(Clone, Copy, Debug)]
pub struct WakeUp(Nanos);

impl WakeUp {
    /// Of a host of which nothing is known.
    pub const UNKNOWN: WakeUp = WakeUp(500_000);

    pub fn ns(self) -> Nanos {
        self.0
    }

    fn note(&mut self, late: Nanos) {
        self.0 = late.max(self.0 - self.0 / 64).clamp(*WAKE_NS.start(), *WAKE_NS.end());
    }

    /// By sleeping some times on the CPU, and with the priority, that the caller has.
    fn measured() -> WakeUp {
        let late = (0..TRIALS).map(|_| {
            let begun = Instant::now();
            std::thread::sleep(TRIAL);
            begun.elapsed().saturating_sub(TRIAL).as_nanos() as Nanos
        });
        WakeUp(late.max().unwrap_or(WakeUp::UNKNOWN.0).clamp(*WAKE_NS.start(), *WAKE_NS.end()))
    }
}

/// How long to sleep from `now` on; none: spin. `next`: the next event; `least_transit`: of all links, the shortest time from
/// a frame's arrival until it is due.
pub fn length(
    waiting: Waiting,
    wake_up: WakeUp,
    now: Nanos,
    quiet_since: Nanos,
    next: Nanos,
    least_transit: impl FnOnce() -> Nanos,
) -> Option<Nanos> {
    let ahead = next.saturating_sub(now).min(LONGEST_NS);
    let quiet = now.saturating_sub(quiet_since) >= QUIET_NS;
    match waiting {
        Waiting::Spinning => None,
        Waiting::Yielding => (ahead > 0).then_some(ahead),
        Waiting::Napping if !quiet => None,
        // A frame is noticed within a wake-up, and needs some time until it is in the model.
        Waiting::Napping | Waiting::Sharing => {
            (ahead > 2 * wake_up.0 && least_transit() > 2 * wake_up.0).then(|| ahead - wake_up.0)
        }
    }
}

/// Ends the sleep of a spinner, from another thread.
#[derive(Clone)]
pub struct Waker(Arc<EventFd>);

impl Waker {
    pub fn new() -> Result<Waker> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        Ok(Waker(Arc::new(EventFd::from_value_and_flags(0, flags).attempting(|| "eventfd")?)))
    }

    pub fn wake(&self) {
        // A counter that is full wakes too.
        let _ = self.0.write(1);
    }
}

/// Sleeps for the spinner, on its thread.
pub struct Sleeper {
    /// The ports' descriptors, −1 for one that is not looked at any more; then the waker's.
    waited_for: Vec<libc::pollfd>,
    waker: Waker,
    pub wake_up: WakeUp,
}

impl Sleeper {
    pub fn new(ports: impl Iterator<Item = RawFd>, waker: Waker) -> Sleeper {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let waited_for = ports.chain([waker.0.as_fd().as_raw_fd()]).map(entry).collect();
        Sleeper { waited_for, waker, wake_up: WakeUp::UNKNOWN }
    }

    /// For the thread that will sleep, once it has its CPU and its priority.
    pub fn begin(&mut self) {
        // Without it a sleeper wakes 50 µs later.
        let _ = set_timerslack(1);
        self.wake_up = WakeUp::measured();
    }

    /// A sleep was over so much later than it should have been.
    pub fn woke_late(&mut self, late: Nanos) {
        self.wake_up.note(late);
    }

    /// There was no sleep for a while in which a wake-up could have been late.
    pub fn forget_a_late_one(&mut self) {
        self.wake_up.note(0);
    }

    /// Its frames end no sleep any more.
    pub fn forget(&mut self, port: usize) {
        self.waited_for[port].fd = -1;
    }

    /// For so long, or until a frame lies in a ring or the waker is called; true: until the time was over.
    pub fn sleep(&mut self, ns: Nanos) -> bool {
        let timeout = libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        };
        let count = self.waited_for.len() as libc::nfds_t;
        // SAFETY: the entries, as many as `count` says, and the time are ours and live until the call is back; no mask of
        // signals is given.
        let ready = unsafe { libc::ppoll(self.waited_for.as_mut_ptr(), count, &timeout, std::ptr::null()) };
        if ready <= 0 {
            return ready == 0;
        }
        let _ = self.waker.0.read();
        for entry in self.waited_for.iter().filter(|entry| entry.revents & libc::POLLERR != 0) {
            // The interface went down: the socket says so until it is read, and until then no sleep would last.
            // SAFETY: the ports, whose descriptors these are, live as long as the spinner, which owns both; so does the
            // waker, whose descriptor is the last.
            let port = unsafe { BorrowedFd::borrow_raw(entry.fd) };
            let _ = getsockopt(&port, SocketError);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;
    const NOW: Nanos = 1_000 * MS;
    const WAKE: WakeUp = WakeUp(100_000);

    fn napping(waiting: Waiting, quiet: Nanos, ahead: Nanos, transit: Nanos) -> Option<Nanos> {
        length(waiting, WAKE, NOW, NOW - quiet, NOW.saturating_add(ahead), || transit)
    }

    #[test]
    fn sleeps_when_nothing_came_for_a_while_and_wakes_before_the_next_event() {
        let nap = |quiet, ahead, transit| napping(Waiting::Napping, quiet, ahead, transit);
        assert_eq!(nap(2 * MS, 10 * MS, 10 * MS), Some(10 * MS - 100_000));
        assert_eq!(nap(2 * MS, u64::MAX, 10 * MS), Some(LONGEST_NS - 100_000));
        assert_eq!(nap(MS, 10 * MS, 10 * MS), None, "a frame came just now");
        assert_eq!(nap(9 * MS, 200_000, 10 * MS), None, "the next event is near");
        assert_eq!(nap(9 * MS, 10 * MS, 200_000), None, "a frame could be due before it is noticed");
    }

    #[test]
    fn who_shares_a_cpu_sleeps_at_once_and_who_yields_always() {
        assert_eq!(napping(Waiting::Spinning, 9 * MS, 9 * MS, 9 * MS), None);
        assert_eq!(napping(Waiting::Sharing, 0, 9 * MS, 9 * MS), Some(9 * MS - 100_000));
        assert_eq!(napping(Waiting::Sharing, 0, 9 * MS, 0), None);
        assert_eq!(napping(Waiting::Yielding, 0, 10_000, 0), Some(10_000));
        assert_eq!(napping(Waiting::Yielding, 0, 0, 0), None);
    }

    #[test]
    fn a_late_wake_up_is_remembered_for_a_while() {
        let mut wake_up = WAKE;
        wake_up.note(900_000);
        assert_eq!(wake_up.ns(), 900_000);
        (0..64).for_each(|_| wake_up.note(60_000));
        assert!((300_000..400_000).contains(&wake_up.ns()), "{}", wake_up.ns());
        wake_up.note(9 * MS);
        assert_eq!(wake_up.ns(), 2 * MS);
        (0..1_000).for_each(|_| wake_up.note(0));
        assert_eq!(wake_up.ns(), 50_000);
    }

    #[test]
    fn a_waker_ends_a_sleep_from_another_thread_or_from_before() {
        let waker = Waker::new().expect("eventfd");
        let mut sleeper = Sleeper::new([].into_iter(), waker.clone());
        assert!(sleeper.sleep(1_000), "its time is over");
        waker.wake();
        assert!(!sleeper.sleep(60_000 * MS), "it was called before");
        let other = std::thread::spawn(move || waker.wake());
        assert!(!sleeper.sleep(60_000 * MS));
        other.join().expect("it ends");
    }
}
