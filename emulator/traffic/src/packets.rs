//! Many packets in one system call: `sendmmsg` and `recvmmsg` with the kernel's arrival time of each packet.
//!
//! In: sockets, and what the packets' headers say. Out: packets sent, and for each that came its header, its size and
//! when the kernel had it.

use std::io;
use std::mem::{zeroed, MaybeUninit};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use nix::sys::socket::{SockaddrLike, SockaddrStorage};

use crate::clock::real_ns;

pub const HEADER_BYTES: usize = 32;
/// Of a packet that will not be answered.
pub const SHORT_HEADER_BYTES: usize = 24;
pub const MOST: usize = 16;
pub const MOST_RECEIVED: usize = 64;
const CONTROL_BYTES: usize = 128;

/// What each packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Tells this run's packets from those of an earlier one.
    pub run: u32,
    pub index: u32,
    pub sequence: u64,
    pub sent_ns: i64,
    /// In an answer: the delay of the packet it answers. The shortest packets have no room for it.
    pub forward_ns: i64,
}

impl Header {
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.run.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.index.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.sent_ns.to_be_bytes());
        bytes[24..].copy_from_slice(&self.forward_ns.to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Self {
        let word = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let head = word(0);
        Self {
            run: (head >> 32) as u32,
            index: head as u32,
            sequence: word(8),
            sent_ns: word(16) as i64,
            forward_ns: word(24) as i64,
        }
    }
}

/// Buffers of the sending side: a header per packet, one filling for all.
pub struct Sender {
    headers: [[u8; HEADER_BYTES]; MOST],
    filling: Vec<u8>,
}

impl Sender {
    pub fn new(largest_payload_bytes: usize) -> Self {
        Self { headers: [[0; HEADER_BYTES]; MOST], filling: vec![0; largest_payload_bytes] }
    }

    /// Sends `count` packets with sequence numbers from `first.sequence` on. Returns how many went and when the
    /// last was handed over; an error means that the first was refused and none went. `still` is the time where
    /// time stands still meanwhile, so that nobody need ask for it.
    pub fn send(
        &mut self,
        socket: &UdpSocket,
        to: SocketAddr,
        payload_bytes: usize,
        first: Header,
        count: usize,
        still: Option<i64>,
    ) -> io::Result<(usize, i64)> {
        let to = SockaddrStorage::from(to);
        // SAFETY: all-zero iovecs and message headers are valid.
        let (mut vectors, mut messages): ([[libc::iovec; 2]; MOST], [libc::mmsghdr; MOST]) = unsafe { zeroed() };
        let mut at = 0;
        for k in 0..count {
            at = still.unwrap_or_else(real_ns);
            self.headers[k] = Header { sequence: first.sequence + k as u64, sent_ns: at, ..first }.to_bytes();
            let head = payload_bytes.min(HEADER_BYTES);
            vectors[k][0] = libc::iovec { iov_base: self.headers[k].as_mut_ptr().cast(), iov_len: head };
            let rest = (payload_bytes - head).min(self.filling.len());
            vectors[k][1] = libc::iovec { iov_base: self.filling.as_mut_ptr().cast(), iov_len: rest };
            let message = &mut messages[k].msg_hdr;
            message.msg_name = to.as_ptr().cast_mut().cast();
            message.msg_namelen = to.len();
            message.msg_iov = vectors[k].as_mut_ptr();
            message.msg_iovlen = 2;
        }
        // SAFETY: the first `count` headers point at buffers that outlive the call.
        match unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count as u32, 0) } {
            -1 => Err(io::Error::last_os_error()),
            sent => Ok((sent as usize, at)),
        }
    }
}

/// Buffers of the receiving side.
pub struct Receiver {
    headers: [[u8; HEADER_BYTES]; MOST_RECEIVED],
    controls: [[u64; CONTROL_BYTES / 8]; MOST_RECEIVED],
}

impl Default for Receiver {
    fn default() -> Self {
        Self { headers: [[0; HEADER_BYTES]; MOST_RECEIVED], controls: [[0; CONTROL_BYTES / 8]; MOST_RECEIVED] }
    }
}

impl Receiver {
    pub fn new() -> Self {
        Self::default()
    }

    /// Hands every waiting packet to `take`: its header, the kernel's time of its arrival, its payload's bytes.
    pub fn drain(&mut self, socket: &UdpSocket, mut take: impl FnMut(Header, i64, usize)) -> Result<(), String> {
        loop {
            // SAFETY: as above; the iovecs live as long as the call.
            let (mut vectors, mut messages): ([libc::iovec; MOST_RECEIVED], [libc::mmsghdr; MOST_RECEIVED]) =
                unsafe { zeroed() };
            for k in 0..MOST_RECEIVED {
                vectors[k] = libc::iovec { iov_base: self.headers[k].as_mut_ptr().cast(), iov_len: HEADER_BYTES };
                let message = &mut messages[k].msg_hdr;
                message.msg_iov = &mut vectors[k];
                message.msg_iovlen = 1;
                message.msg_control = self.controls[k].as_mut_ptr().cast();
                message.msg_controllen = CONTROL_BYTES as _;
            }
            let (fd, most) = (socket.as_raw_fd(), MOST_RECEIVED as u32);
            // Told the whole length of each, however little of it is copied.
            let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
            // SAFETY: every header points at buffers of the lengths it names.
            let got = unsafe { libc::recvmmsg(fd, messages.as_mut_ptr(), most, flags, std::ptr::null_mut()) };
            if got < 0 {
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(()),
                    // An ICMP error for an earlier packet (of "packet too big" too); that packet is counted as lost.
                    Some(
                        libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EMSGSIZE | libc::EINTR,
                    ) => continue,
                    _ => return Err(format!("recvmmsg: {error}")),
                }
            }
            for (message, header) in messages.iter().zip(&mut self.headers).take(got as usize) {
                let bytes = message.msg_len as usize;
                if bytes >= SHORT_HEADER_BYTES {
                    // Of an earlier packet.
                    header[bytes.min(HEADER_BYTES)..].fill(0);
                    let at_ns = stamp_ns(&message.msg_hdr).unwrap_or_else(real_ns);
                    take(Header::from_bytes(header), at_ns, bytes);
                }
            }
            if (got as usize) < MOST_RECEIVED {
                return Ok(());
            }
        }
    }
}

fn stamp_ns(message: &libc::msghdr) -> Option<i64> {
    // SAFETY: the kernel filled the control buffer that `message` names, and set its length.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(message);
        while !control.is_null() {
            if (*control).cmsg_level == libc::SOL_SOCKET && (*control).cmsg_type == libc::SCM_TIMESTAMPNS {
                let mut time = MaybeUninit::<libc::timespec>::uninit();
                let length = size_of::<libc::timespec>();
                std::ptr::copy_nonoverlapping(libc::CMSG_DATA(control), time.as_mut_ptr().cast(), length);
                let time = time.assume_init();
                return Some(time.tv_sec * 1_000_000_000 + time.tv_nsec);
            }
            control = libc::CMSG_NXTHDR(message, control);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_as_it_went() {
        let header = Header { run: 0xdead_beef, index: 7, sequence: 1 << 40, sent_ns: -5, forward_ns: i64::MAX };
        assert_eq!(Header::from_bytes(&header.to_bytes()), header);
    }
}
