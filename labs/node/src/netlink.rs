//! Route netlink in batches: many requests in one send, their answers read together.
//!
//! In: requests, each with what it attempts in the user's words. Out: nothing, or the first refusal with those
//! words and the kernel's own. Only the last request of a send asks for an acknowledgement (refusals always come),
//! so a batch costs two system calls. Formats: linux/netlink.h, linux/rtnetlink.h.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const HEADER: usize = 16;
const NESTED: u16 = 0x8000;
/// Well below a socket's default send buffer.
const MOST_BYTES: usize = 32 * 1024;

/// A list of requests; each request keeps what it attempts.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    requests: Vec<Request>,
    replacing: bool,
}

struct Request {
    end: usize,
    what: String,
    /// What the kernel lacks when it knows neither the kind nor the operation.
    needs: &'static str,
}

/// The attributes of a request under construction.
pub struct Attributes<'a>(&'a mut Vec<u8>);

impl<'a> Attributes<'a> {
    #[cfg(test)]
    pub fn new(bytes: &'a mut Vec<u8>) -> Self {
        Attributes(bytes)
    }

    pub fn bytes(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = (4 + value.len()) as u16;
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub fn u32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    pub fn u64(&mut self, kind: u16, value: u64) -> &mut Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

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

    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.requests.len()
    }

    /// Says what the request added last needs from the kernel.
    pub fn needs(&mut self, needs: &'static str) {
        self.requests.last_mut().expect("a request was added").needs = needs;
    }
}

/// A route netlink socket of the network namespace it was opened in.
pub struct Socket(OwnedFd);

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Socket {
    pub fn open() -> Result<Self, String> {
        // SAFETY: plain system calls; the descriptor is owned from here on.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) };
        if fd < 0 {
            return Err(format!("opening a netlink socket: {}", std::io::Error::last_os_error()));
        }
        let socket = Socket(unsafe { OwnedFd::from_raw_fd(fd) });
        // Refusals with the kernel's own words, without the request in them. Older kernels do without.
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            let on: libc::c_int = 1;
            unsafe { libc::setsockopt(fd, libc::SOL_NETLINK, option, (&raw const on).cast(), 4) };
        }
        Ok(socket)
    }

    /// Sends all requests and reads their answers; the error is the first refusal.
    pub fn run(&self, mut batch: Batch) -> Result<(), String> {
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
            self.answers(&batch.requests, last)?;
            (first, start) = (last + 1, end);
        }
        Ok(())
    }

    /// Shows all that the kernel tells of one kind; each message without its netlink header.
    pub fn dump(&self, kind: u16, header: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let mut request = Batch::default();
        request.add(kind, libc::NLM_F_DUMP, header, String::new(), |_| {});
        self.send(&request.bytes)?;
        // The kernel fills as much at a time, where it finds room.
        let mut buffer = [0u8; 32 * 1024];
        loop {
            let got = match self.receive(&mut buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                got => got.map_err(|error| format!("reading a netlink dump: {error}"))?,
            };
            let mut rest = &buffer[..got];
            while rest.len() >= HEADER {
                let length = (u32_at(rest, 0) as usize).clamp(HEADER, rest.len());
                match i32::from(u32_at(rest, 4) as u16) {
                    libc::NLMSG_DONE => return Ok(()),
                    libc::NLMSG_ERROR => return Err(format!("the kernel refuses a netlink dump of kind {kind}")),
                    _ => see(&rest[HEADER..length]),
                }
                rest = &rest[length.next_multiple_of(4).min(rest.len())..];
            }
        }
    }

    fn receive(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        // SAFETY: the buffer outlives the call.
        let got = unsafe { libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        usize::try_from(got).map_err(|_| std::io::Error::last_os_error())
    }

    fn send(&self, bytes: &[u8]) -> Result<(), String> {
        // SAFETY: the slice outlives the call.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent == bytes.len() as isize {
            return Ok(());
        }
        Err(format!("sending {} bytes of netlink requests: {}", bytes.len(), std::io::Error::last_os_error()))
    }

    fn answers(&self, requests: &[Request], last: usize) -> Result<(), String> {
        let mut refused = None;
        let mut buffer = vec![0u8; 32 * 1024];
        loop {
            let got = match self.receive(&mut buffer) {
                Ok(got) => got,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                // ENOBUFS: answers were lost; the ones that came are still worth more than this.
                Err(error) => return Err(refused.unwrap_or_else(|| format!("reading netlink answers: {error}"))),
            };
            let mut rest = &buffer[..got];
            while rest.len() >= HEADER + 4 {
                let length = (u32_at(rest, 0) as usize).clamp(HEADER, rest.len());
                let index = (u32_at(rest, 8) as usize).wrapping_sub(1);
                let error = -(u32_at(rest, HEADER) as i32);
                if u32_at(rest, 4) as u16 == libc::NLMSG_ERROR as u16 && error != 0 && refused.is_none() {
                    refused = requests.get(index).map(|request| refusal(request, error, &rest[..length]));
                }
                if index == last {
                    return refused.map_or(Ok(()), Err);
                }
                rest = &rest[length.next_multiple_of(4).min(rest.len())..];
            }
        }
    }
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

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn refusal(request: &Request, errno: i32, answer: &[u8]) -> String {
    if !request.needs.is_empty() && matches!(errno, libc::ENOENT | libc::EOPNOTSUPP | libc::EAFNOSUPPORT) {
        return format!("{}: this kernel lacks {}", request.what, request.needs);
    }
    let error = std::io::Error::from_raw_os_error(errno);
    match kernel_words(answer) {
        Some(words) => format!("{}: {error}: {words}", request.what),
        None => format!("{}: {error}", request.what),
    }
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
        assert_eq!(refusal(&request, libc::ENOENT, &answer), "left1:eth0: access rate: this kernel lacks tbf");
        let said = refusal(&request, libc::EINVAL, &answer);
        assert!(said.ends_with("Invalid rate"), "{said}");
    }
}
