//! The same thread without spinning, for a kernel with virtual time, which does not move while a program runs: it
//! sleeps until the next frame comes or is due, whichever is first. In: descriptors to listen to. Out: as the spinner's.
//! On a live machine this works too, as late as that machine wakes a thread.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use ewan_system::socket::get_option;
use ewan_system::wait::readable;
use ewan_system::{Context, Error, Result};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use super::{Spinner, MS};
use crate::datapath::events::NEVER;
use crate::datapath::faults;
use crate::datapath::port::Port;
use crate::model::Nanos;

impl Spinner {
    /// Until told to stop; gives the ports back.
    pub fn run_sleeping(mut self) -> Result<Vec<Box<dyn Port>>> {
        faults::contain();
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.doze())) {
                Ok(slept) => return slept.map(|()| self.ports),
                Err(panic) => self.end_link(panic),
            }
        }
    }

    fn doze(&mut self) -> Result<()> {
        let shared = self.shared.clone();
        // Nobody would read what a link that has ended is sent.
        let ports = self.ports.iter().zip(&self.directions).filter(|(_, lane)| !lane.ended);
        let mut descriptors: Vec<RawFd> = ports.map(|(port, _)| port.descriptor()).collect();
        descriptors.push(shared.wake.as_raw_fd());
        let waiting = listen(&descriptors)?;
        let mut next_refresh = 0;
        loop {
            self.seen = self.clock.now();
            if self.seen >= next_refresh {
                self.clock.refresh();
                next_refresh = self.seen + MS;
            }
            if shared.stop.load(Relaxed) {
                return Ok(());
            }
            if shared.changes_waiting.swap(false, Acquire) {
                let _ = shared.wake.read();
                self.changes.look();
            }
            let mut worked = 0;
            for port in 0..self.ports.len() {
                worked += self.receive(port);
            }
            worked += self.release();
            if worked > 0 {
                continue;
            }
            for _ in 0..self.directions.len() {
                self.sweep();
            }
            self.publish();
            let until = self.next_turn();
            wait(&waiting, until.saturating_sub(self.clock.now()))?;
        }
    }

    /// So that who asks while this thread sleeps gets the present counters.
    fn publish(&mut self) {
        for (index, lane) in self.directions.iter_mut().enumerate().filter(|(_, lane)| lane.window.dirty) {
            lane.publish_totals(&self.shared.links[index / 2].directions[index % 2]);
        }
    }

    /// A frame is due, a change is, or the millisecond that is being counted is over.
    fn next_turn(&self) -> Nanos {
        let change = self.changes.soonest().unwrap_or(NEVER);
        let counting = self.directions.iter().any(|lane| lane.window.dirty && !lane.ended);
        let row = if counting { self.shared.started + (self.ms(self.seen) + 1) * MS } else { NEVER };
        self.events.earliest().min(change).min(row)
    }
}

fn listen(descriptors: &[RawFd]) -> Result<Epoll> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).attempting(|| "epoll_create")?;
    for &descriptor in descriptors {
        // SAFETY: the caller holds the ports and the waker, whose descriptors these are, for as long as this is used.
        let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let event = EpollEvent::new(EpollFlags::EPOLLIN, descriptor as u64);
        epoll.add(borrowed, event).attempting(|| "epoll_ctl")?;
    }
    Ok(epoll)
}

fn wait(epoll: &Epoll, at_most: Nanos) -> Result<()> {
    match readable(&epoll.0, at_most) {
        Ok(true) => take_errors(epoll),
        Ok(false) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(Error::new("ppoll", error)),
    }
}

/// An interface that went down leaves an error with its socket, which is ready until somebody has read it. The socket
/// works again when the interface is up.
fn take_errors(epoll: &Epoll) -> Result<()> {
    let mut ready = [EpollEvent::empty(); 16];
    let count = epoll.wait(&mut ready, 0u8).attempting(|| "epoll_wait")?;
    for event in ready[..count].iter().filter(|event| event.events().contains(EpollFlags::EPOLLERR)) {
        // SAFETY: as in `listen`: the descriptors that are listened to stay open.
        let socket = unsafe { BorrowedFd::borrow_raw(event.data() as RawFd) };
        let _ = get_option::<i32>(socket, libc::SOL_SOCKET, libc::SO_ERROR);
    }
    Ok(())
}
