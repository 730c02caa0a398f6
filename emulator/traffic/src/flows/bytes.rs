//! Moving bytes that nobody reads: out of a file of zeros into a socket, and out of a socket into nothing, in calls
//! that stay in the kernel until all of them are moved.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use ewan_system::socket::throw_away;
use nix::errno::Errno;
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::sendfile::sendfile;
use nix::sys::socket::MsgFlags;

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
    pub fn send(&self, socket: impl AsFd, bytes: u64) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            let mut offset = 0;
            let most = left.min(PIECE_BYTES) as usize;
            match sendfile(&socket, &self.0, Some(&mut offset), most) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => left -= sent as u64,
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Takes `bytes` from a socket without copying them (MSG_TRUNC, tcp(7)), with as few returns as can be; gives how many
/// came until then or until the connection ended.
pub fn take(socket: impl AsFd, bytes: u64) -> u64 {
    let mut taken = 0;
    while taken < bytes {
        let most = (bytes - taken).min(PIECE_BYTES) as usize;
        match throw_away(&socket, most, MsgFlags::MSG_WAITALL) {
            Ok(0) => break,
            Ok(count) => taken += count as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    taken
}
