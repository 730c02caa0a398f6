//! Waiting until a descriptor is readable. In: a descriptor and a time. Out: whether it is readable.

use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::time::TimeSpec;

/// The longest wait of one call.
const LONGEST_S: u64 = 86_400;

/// True when `descriptor` can be read, has an error or was closed by its peer; false after `at_most_ns`, at most a day.
///
/// ppoll(2), whose timeout is in nanoseconds; under a real-time policy it has no slack, sched(7). Errors: EINTR, when a
/// signal came.
pub fn readable(descriptor: impl AsFd, at_most_ns: u64) -> Result<bool, Errno> {
    let (seconds, rest) = (at_most_ns / 1_000_000_000, at_most_ns % 1_000_000_000);
    let timeout = TimeSpec::new(seconds.min(LONGEST_S) as libc::time_t, rest as libc::c_long);
    let mut waiting = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
    ppoll(&mut waiting, Some(timeout), None).map(|ready| ready > 0)
}
