//! Route netlink in batches: many requests in one send, their answers read together.
//!
//! In: requests, each with what it attempts in the user's words. Out: nothing, or the first refusal with those
//! words and the kernel's own. Only the last request of a send asks for an acknowledgement (refusals always come),
//! so a batch costs two system calls. Dumps are told whole or not at all. Formats: linux/netlink.h, linux/rtnetlink.h.

mod answers;
mod error;
pub mod interfaces;
mod listener;
pub mod requests;
pub mod sockets;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use nix::errno::Errno;
use nix::sys::socket::{recv, send, socket, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType};

use crate::socket::set_option;
use crate::Context;
use answers::{Dump, State};
pub use error::{Error, Result};
pub use listener::{Group, Listener};

const HEADER: usize = 16;
const NESTED: u16 = 0x8000;
/// Well below a socket's default send buffer.
const MOST_BYTES: usize = 32 * 1024;

/// The kernel fills as much of a dump at a time, where it finds room; more than any single answer has.
const ROOM: usize = 32 * 1024;
/// How often a dump is asked for that changes of what it lists interrupt; each takes a fraction of a millisecond.
const MOST_DUMPS: usize = 100;

/// A list of requests; each request keeps what it attempts.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    requests: Vec<Request>,
    replacing: bool,
}

#[derive(Debug)]
struct Request {
    end: usize,
    what: String,
    /// What the kernel lacks when it knows neither the kind nor the operation.
    needs: &'static str,
}

/// The attributes of a request under construction.
pub struct Attributes<'a>(&'a mut Vec<u8>);

impl<'a> Attributes<'a> {
    /// Attributes that are added to the end of `bytes`.
    pub fn new(bytes: &'a mut Vec<u8>) -> Self {
        Attributes(bytes)
    }

    /// An attribute of plain bytes, padded to four.
    pub fn bytes(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = (4 + value.len()) as u16;
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// A number of 32 bits in the machine's byte order.
    pub fn u32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// A number of 64 bits in the machine's byte order.
    pub fn u64(&mut self, kind: u16, value: u64) -> &mut Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Text with a zero at its end.
    pub fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        self.bytes(kind, &[value.as_bytes(), b"\0"].concat())
    }

    /// Attributes within an attribute; `header` is a structure that comes before them.
    pub fn nested(&mut self, kind: u16, header: &[u8], fill: impl FnOnce(&mut Attributes)) -> &mut Self {
        let start = self.0.len();
        self.bytes(kind | NESTED, header);
        fill(&mut Attributes(self.0));
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }
}

impl Batch {
    /// What it creates may be there already, and is then changed.
    pub fn replacing() -> Self {
        Batch { replacing: true, ..Batch::default() }
    }

    /// Flags of a request that creates something.
    pub fn creates(&self) -> i32 {
        libc::NLM_F_CREATE | if self.replacing { libc::NLM_F_REPLACE } else { libc::NLM_F_EXCL }
    }

    /// Adds a request: its type, flags, fixed header, and attributes.
    pub fn add(&mut self, kind: u16, flags: i32, header: &[u8], what: String, fill: impl FnOnce(&mut Attributes)) {
        let start = self.bytes.len();
        let sequence = self.requests.len() as u32 + 1;
        self.bytes.extend_from_slice(&0u32.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(&((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes());
        self.bytes.extend_from_slice(&sequence.to_ne_bytes());
        self.bytes.extend_from_slice(&0u32.to_ne_bytes());
        self.bytes.extend_from_slice(header);
        fill(&mut Attributes(&mut self.bytes));
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
        self.requests.push(Request { end: self.bytes.len(), what, needs: "" });
    }

    /// How many requests there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.requests.len()
    }

    /// Says what the request added last needs from the kernel.
    pub fn needs(&mut self, needs: &'static str) {
        self.requests.last_mut().expect("a request was added").needs = needs;
    }
}

/// A route netlink socket of the network namespace it was opened in.
///
/// One question at a time: whoever shares it between threads sees to that.
pub struct Socket {
    fd: OwnedFd,
    /// Of the next request: an answer that nobody waited for is not taken for another question's.
    sequence: AtomicU32,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Socket {
    /// Errors: no more descriptors, or a kernel without route netlink.
    pub fn open() -> Result<Self> {
        Self::with(route_socket(SockFlag::empty()).attempting(|| "opening a netlink socket")?)
    }

    /// Of generic netlink, whose families have numbers that the kernel chooses.
    pub fn open_generic() -> Result<Self> {
        let protocol = SockProtocol::NetlinkGeneric;
        let fd = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol);
        Self::with(fd.attempting(|| "opening a generic netlink socket")?)
    }

    fn with(fd: OwnedFd) -> Result<Self> {
        // Refusals with the kernel's own words, without the request in them. Older kernels do without.
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            let _ = set_option(&fd, libc::SOL_NETLINK, option, &1i32);
        }
        Ok(Socket { fd, sequence: AtomicU32::new(1) })
    }

    /// Sends all requests and reads their answers; the error is the first refusal.
    pub fn run(&self, mut batch: Batch) -> Result<()> {
        let sequence = self.number(&mut batch);
        let mut first = 0;
        let mut start = 0;
        while first < batch.requests.len() {
            let mut last = first;
            while last + 1 < batch.requests.len() && batch.requests[last + 1].end - start <= MOST_BYTES {
                last += 1;
            }
            let begin = if last == 0 { 0 } else { batch.requests[last - 1].end };
            batch.bytes[begin + 6] |= libc::NLM_F_ACK as u8;
            let end = batch.requests[last].end;
            self.send(&batch.bytes[start..end])?;
            self.answers(&batch.requests[first..=last], sequence.wrapping_add(first as u32))?;
            (first, start) = (last + 1, end);
        }
        Ok(())
    }

    /// Gives the batch's requests the socket's next sequence numbers; gives the first of them.
    fn number(&self, batch: &mut Batch) -> u32 {
        let first = self.sequence.fetch_add(batch.requests.len() as u32, Relaxed);
        let mut begin = 0;
        for (place, request) in batch.requests.iter().enumerate() {
            batch.bytes[begin + 8..begin + 12].copy_from_slice(&first.wrapping_add(place as u32).to_ne_bytes());
            begin = request.end;
        }
        first
    }

    /// Shows all that the kernel tells of one kind; each message without its netlink header. After an error nothing was
    /// shown.
    pub fn dump(&self, kind: u16, header: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let attempt = || format!("reading a netlink dump of kind {kind}");
        let mut buffer = [0u8; ROOM];
        for _ in 0..MOST_DUMPS {
            let mut request = Batch::default();
            request.add(kind, libc::NLM_F_DUMP, header, String::new(), |_| {});
            let mut dump = Dump::of(self.number(&mut request));
            self.send(&request.bytes)?;
            loop {
                let answer = self.receive(&mut buffer, attempt)?;
                match dump.take(answer).map_err(|source| Error::TruncationError { attempt: attempt(), source })? {
                    State::Open => {}
                    State::Whole(bodies) => {
                        bodies.iter().for_each(|body| see(body));
                        return Ok(());
                    }
                    State::Interrupted => break,
                    State::Refused(number) => {
                        return Err(Error::Refused { attempt: attempt(), number, words: None });
                    }
                }
            }
        }
        Err(Error::Unsteady { attempt: attempt() })
    }

    /// The same of what a kernel may be built without: false where it is.
    pub fn dump_if_there(&self, kind: u16, header: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool> {
        match self.dump(kind, header, see) {
            Err(Error::Refused { number: libc::EOPNOTSUPP | libc::EAFNOSUPPORT, .. }) => Ok(false),
            dumped => dumped.map(|()| true),
        }
    }

    /// Asks for one message of the kind `answer`: its body, without the netlink header. `attempt`: what for.
    pub fn get(
        &self,
        kind: u16,
        answer: u16,
        header: &[u8],
        attempt: impl Fn() -> String,
        fill: impl FnOnce(&mut Attributes),
    ) -> Result<Vec<u8>> {
        let mut request = Batch::default();
        request.add(kind, 0, header, String::new(), fill);
        let sequence = self.number(&mut request);
        self.send(&request.bytes)?;
        let mut buffer = [0u8; ROOM];
        loop {
            let bytes = self.receive(&mut buffer, &attempt)?;
            let found = answers::single(bytes, sequence, answer);
            match found.map_err(|source| Error::TruncationError { attempt: attempt(), source })? {
                Some(Ok(body)) => return Ok(body),
                Some(Err(number)) => return Err(Error::Refused { attempt: attempt(), number, words: None }),
                None => {}
            }
        }
    }

    /// The number of a family of generic netlink, of a socket of that; `what` it is in the words of an error.
    pub fn family(&self, name: &str, what: &str) -> Result<u16> {
        const CONTROL: u16 = 16;
        const GET_FAMILY: u8 = 3;
        const FAMILY_ID: u16 = 1;
        const FAMILY_NAME: u16 = 2;
        let answer = self.get(
            CONTROL,
            CONTROL,
            &[GET_FAMILY, 1, 0, 0],
            || what.to_owned(),
            |body| {
                body.text(FAMILY_NAME, name);
            },
        )?;
        let id = attributes(answer.get(4..).unwrap_or_default()).find(|(kind, _)| *kind == FAMILY_ID);
        Ok(id.map_or(0, |(_, value)| u16::from_ne_bytes([value[0], value[1]])))
    }

    /// The bytes of one receive call.
    fn receive<'b>(&self, buffer: &'b mut [u8], attempt: impl Fn() -> String) -> Result<&'b [u8]> {
        let got = loop {
            match recv(self.fd.as_raw_fd(), buffer, MsgFlags::MSG_TRUNC) {
                Err(Errno::EINTR) => {}
                got => break got.attempting(&attempt)?,
            }
        };
        buffer.get(..got).ok_or_else(|| Error::TruncationError { attempt: attempt(), source: error::TruncationError })
    }

    fn send(&self, bytes: &[u8]) -> Result<()> {
        let attempt = || format!("sending {} bytes of netlink requests", bytes.len());
        match send(self.fd.as_raw_fd(), bytes, MsgFlags::empty()).attempting(attempt)? {
            sent if sent == bytes.len() => Ok(()),
            _ => Err(crate::Error::new(attempt(), std::io::Error::from(std::io::ErrorKind::WriteZero)).into()),
        }
    }

    /// Until the last of these requests is answered; `first` is the sequence number of the first.
    fn answers(&self, requests: &[Request], first: u32) -> Result<()> {
        let attempt = || "reading netlink answers".to_owned();
        let last = first.wrapping_add(requests.len() as u32 - 1);
        let mut refused = None;
        let mut buffer = vec![0u8; ROOM];
        loop {
            let told = self.receive(&mut buffer, attempt).and_then(|bytes| {
                answers::requests(bytes, first, last)
                    .map_err(|source| Error::TruncationError { attempt: attempt(), source })
            });
            match told {
                Ok(told) => {
                    let error = told.refused.map(|(place, number, answer)| refusal(&requests[place], number, answer));
                    refused = refused.or(error);
                    if told.over {
                        return refused.map_or(Ok(()), Err);
                    }
                }
                // ENOBUFS: answers were lost; the ones that came are still worth more than this.
                Err(error) => return Err(refused.unwrap_or(error)),
            }
        }
    }
}

/// A route netlink socket that is not bound to anything.
fn route_socket(flags: SockFlag) -> nix::Result<OwnedFd> {
    let flags = flags | SockFlag::SOCK_CLOEXEC;
    socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)
}

/// Attributes one after the other: kind, value.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let head = rest.get(..4).map(|head| u32_at(head, 0))?;
        let (length, kind) = ((head & 0xffff) as usize, (head >> 16) as u16 & !NESTED);
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// An attribute's number; None where it is shorter.
#[must_use]
pub fn u32_of(value: &[u8]) -> Option<u32> {
    value.get(..4).map(|value| u32_at(value, 0))
}

/// Eight bytes from `at` on, in the machine's byte order. Panics where there are not so many.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Four bytes from `at` on, in the machine's byte order. Panics where there are not so many.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn refusal(request: &Request, number: i32, answer: &[u8]) -> Error {
    let attempt = request.what.clone();
    if !request.needs.is_empty() && matches!(number, libc::ENOENT | libc::EOPNOTSUPP | libc::EAFNOSUPPORT) {
        return Error::Lacking { attempt, number, needs: request.needs };
    }
    Error::Refused { attempt, number, words: kernel_words(answer) }
}

/// NLMSGERR_ATTR_MSG, after the error, the echoed header, and the echoed body unless it was left out.
fn kernel_words(answer: &[u8]) -> Option<String> {
    const CAPPED: u16 = 0x100;
    const TLVS: u16 = 0x200;
    let flags = (u32_at(answer, 4) >> 16) as u16;
    if flags & TLVS == 0 || answer.len() < HEADER + 20 {
        return None;
    }
    let echoed = if flags & CAPPED != 0 { HEADER } else { u32_at(answer, HEADER + 4) as usize };
    let words = attributes(answer.get(HEADER + 4 + echoed..)?).find(|(kind, _)| *kind == 1);
    words.map(|(_, value)| String::from_utf8_lossy(value).trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_aligned_and_nested_ones_know_their_length() {
        let mut bytes = Vec::new();
        Attributes(&mut bytes).text(3, "eth0").nested(18, &[], |inner| {
            inner.u32(1, 7);
        });
        assert_eq!(bytes.len(), 12 + 4 + 8);
        assert_eq!(&bytes[..9], [9, 0, 3, 0, b'e', b't', b'h', b'0', 0]);
        assert_eq!(&bytes[12..16], [12, 0, 18, 0x80]);
    }

    #[test]
    fn a_refusal_names_what_was_attempted_and_keeps_the_kernels_words() {
        let request = Request { end: 0, what: "left1:eth0: access rate".into(), needs: "tbf" };
        let mut answer = vec![0u8; HEADER + 20];
        answer[6..8].copy_from_slice(&0x300u16.to_ne_bytes());
        Attributes(&mut answer).text(1, "Invalid rate");
        let lacking = refusal(&request, libc::ENOENT, &answer);
        assert_eq!(lacking.to_string(), "left1:eth0: access rate: this kernel lacks tbf");
        let said = refusal(&request, libc::EINVAL, &answer);
        assert_eq!(said.number(), Some(libc::EINVAL));
        assert!(said.to_string().ends_with("Invalid rate"), "{said}");
    }
}

#[cfg(test)]
mod properties;
