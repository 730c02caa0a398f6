//! Moving bytes that nobody reads: out of a file of zeros into a socket, and out of a socket into nothing, in calls
//! that stay in the kernel until all of them are moved.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use nix::sys::memfd::{memfd_create, MFdFlags};

/// What one call moves at most.
const PIECE_BYTES: u64 = 1 << 30;

/// What all flows send: zeros, in a file without a page of its own.
pub struct Filling(File);

impl Filling {
    pub fn new() -> Result<Self, String> {
        let file = memfd_create(c"bytes", MFdFlags::MFD_CLOEXEC).map_err(|error| format!("memfd_create: {error}"))?;
        let file = File::from(file);
        file.set_len(PIECE_BYTES).map_err(|error| format!("memfd: {error}"))?;
        Ok(Self(file))
    }

    /// Returns when all `bytes` are in the socket's buffer, u64::MAX: never.
    pub fn send(&self, socket: RawFd, bytes: u64) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            let mut offset = 0;
            let most = left.min(PIECE_BYTES) as usize;
            // SAFETY: the kernel writes `offset`; both descriptors are the caller's or ours.
            match unsafe { libc::sendfile(socket, self.0.as_raw_fd(), &mut offset, most) } {
                sent @ 1.. => left -= sent as u64,
                0 => return Err(io::ErrorKind::WriteZero.into()),
                _ => retry(io::Error::last_os_error())?,
            }
        }
        Ok(())
    }
}

/// Takes `bytes` from a socket without copying them (MSG_TRUNC, tcp(7)), with as few returns as can be; gives how many
/// came until then or until the connection ended.
pub fn take(socket: RawFd, bytes: u64) -> u64 {
    let mut taken = 0;
    while taken < bytes {
        let most = (bytes - taken).min(PIECE_BYTES) as usize;
        // SAFETY: with MSG_TRUNC a TCP socket throws the bytes away and writes nothing to the buffer.
        match unsafe { libc::recv(socket, std::ptr::null_mut(), most, libc::MSG_TRUNC | libc::MSG_WAITALL) } {
            count @ 1.. => taken += count as u64,
            0 => break,
            _ if retry(io::Error::last_os_error()).is_err() => break,
            _ => {}
        }
    }
    taken
}

fn retry(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::Interrupted {
        Ok(())
    } else {
        Err(error)
    }
}
