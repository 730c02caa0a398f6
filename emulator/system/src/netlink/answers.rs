//! What the kernel answers, from its bytes alone: no message is believed that is not whole, or not for this question.
//!
//! In: the bytes of one receive call. Out: messages; of a dump, whether it is over; of requests, which were refused.

use super::error::TruncationError;
use super::{u32_at, HEADER};

/// A dump was interrupted by a change of what it lists (linux/netlink.h, NLM_F_DUMP_INTR).
const INTERRUPTED: u16 = 0x10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    pub kind: u16,
    pub flags: u16,
    pub sequence: u32,
    /// Header and all.
    pub whole: &'a [u8],
}

impl<'a> Message<'a> {
    /// What follows the netlink header.
    pub fn body(&self) -> &'a [u8] {
        &self.whole[HEADER..]
    }

    fn is(&self, kind: i32) -> bool {
        i32::from(self.kind) == kind
    }

    /// The error number of an NLMSG_ERROR or an NLMSG_DONE; 0: none. An NLMSG_DONE of older kernels carries none.
    pub fn errno(&self) -> Result<i32, TruncationError> {
        match self.body().get(..4) {
            Some(number) => Ok((u32_at(number, 0) as i32).wrapping_neg()),
            None if self.is(libc::NLMSG_DONE) => Ok(0),
            None => Err(TruncationError),
        }
    }
}

/// The messages of one receive call, each of which must be whole: an error ends them.
pub(super) fn messages(bytes: &[u8]) -> impl Iterator<Item = Result<Message<'_>, TruncationError>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = if rest.len() < HEADER { 0 } else { u32_at(rest, 0) as usize };
        if length < HEADER || length > rest.len() {
            rest = &[];
            return Some(Err(TruncationError));
        }
        let whole = &rest[..length];
        rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        let (kind, flags) = (u32_at(whole, 4) as u16, (u32_at(whole, 4) >> 16) as u16);
        Some(Ok(Message { kind, flags, sequence: u32_at(whole, 8), whole }))
    })
}

/// The answer to one dump, as it comes.
pub struct Dump {
    sequence: u32,
    interrupted: bool,
    bodies: Vec<Vec<u8>>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum State {
    /// More is to come.
    Open,
    /// All is there: the messages' bodies.
    Whole(Vec<Vec<u8>>),
    /// What it lists has changed meanwhile: ask again.
    Interrupted,
    /// The kernel's error number.
    Refused(i32),
}

impl Dump {
    /// The answer to the request with this sequence number.
    pub fn of(sequence: u32) -> Self {
        Dump { sequence, interrupted: false, bodies: Vec::new() }
    }

    /// Takes the bytes of one receive call; the error says that they are no answer.
    pub fn take(&mut self, bytes: &[u8]) -> Result<State, TruncationError> {
        for message in messages(bytes) {
            let message = message?;
            if message.sequence != self.sequence {
                continue; // of a question before this one
            }
            self.interrupted |= message.flags & INTERRUPTED != 0;
            let ends = message.is(libc::NLMSG_DONE) || message.is(libc::NLMSG_ERROR);
            if !ends {
                self.bodies.push(message.body().to_vec());
                continue;
            }
            return Ok(match message.errno()? {
                0 if self.interrupted => State::Interrupted,
                0 => State::Whole(std::mem::take(&mut self.bodies)),
                errno => State::Refused(errno),
            });
        }
        Ok(State::Open)
    }
}

/// What one receive call tells of requests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BatchStatus<'a> {
    /// The first that was refused: its place among the requests, the error number, the whole answer.
    pub refused: Option<(usize, i32, &'a [u8])>,
    /// The last of the requests was answered.
    pub over: bool,
}

/// Of requests with the sequence numbers `first` to `last`.
pub fn requests(bytes: &[u8], first: u32, last: u32) -> Result<BatchStatus<'_>, TruncationError> {
    let mut told = BatchStatus::default();
    for message in messages(bytes) {
        let message = message?;
        let place = message.sequence.wrapping_sub(first);
        if place > last.wrapping_sub(first) || !message.is(libc::NLMSG_ERROR) {
            continue; // of requests before these
        }
        let errno = message.errno()?;
        if errno != 0 && told.refused.is_none() {
            told.refused = Some((place as usize, errno, message.whole));
        }
        told.over |= message.sequence == last;
    }
    Ok(told)
}

/// The answer to one request that asks for one message; None: it is not among these bytes. Errors: the kernel's number.
pub fn single(bytes: &[u8], sequence: u32, kind: u16) -> Result<Option<Result<Vec<u8>, i32>>, TruncationError> {
    for message in messages(bytes) {
        let message = message?;
        if message.sequence != sequence {
            continue; // of a question before this one
        }
        if message.kind == kind {
            return Ok(Some(Ok(message.body().to_vec())));
        }
        if message.is(libc::NLMSG_ERROR) {
            return Ok(Some(Err(message.errno()?)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: i32 = libc::RTM_NEWLINK as i32;

    fn message(kind: i32, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend((kind as u16).to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn error(errno: i32) -> [u8; 4] {
        (-errno).to_ne_bytes()
    }

    #[test]
    fn a_dump_is_whole_when_the_kernel_says_so() {
        let mut dump = Dump::of(7);
        let first = [message(LINK, 2, 7, b"one "), message(LINK, 2, 7, b"two ")].concat();
        assert_eq!(dump.take(&first), Ok(State::Open));
        assert_eq!(dump.take(&message(libc::NLMSG_DONE, 2, 6, &error(0))), Ok(State::Open), "an older question's");
        let end = [message(LINK, 2, 7, b"three"), message(libc::NLMSG_DONE, 2, 7, &error(0))].concat();
        let whole = [&b"one "[..], b"two ", b"three"].map(<[u8]>::to_vec).to_vec();
        assert_eq!(dump.take(&end), Ok(State::Whole(whole)));
        assert_eq!(
            Dump::of(1).take(&message(libc::NLMSG_DONE, 2, 1, &[])),
            Ok(State::Whole(vec![])),
            "of older kernels"
        );
    }

    #[test]
    fn an_error_at_the_end_of_a_dump_is_one() {
        let mut dump = Dump::of(7);
        let bytes = [message(LINK, 2, 7, b"one "), message(libc::NLMSG_DONE, 2, 7, &error(libc::ENOMEM))].concat();
        assert_eq!(dump.take(&bytes), Ok(State::Refused(libc::ENOMEM)));
        assert_eq!(
            Dump::of(7).take(&message(libc::NLMSG_ERROR, 0, 7, &[&error(libc::EPERM)[..], &[0; 16]].concat())),
            Ok(State::Refused(libc::EPERM))
        );
    }

    #[test]
    fn a_dump_during_which_something_changed_is_asked_for_again() {
        for flagged in 0..3 {
            let mut dump = Dump::of(1);
            let flags = |part| if part == flagged { 2 | INTERRUPTED } else { 2 };
            let (one, two) = (message(LINK, flags(0), 1, b"one "), message(LINK, flags(1), 1, b"two "));
            let done = message(libc::NLMSG_DONE, flags(2), 1, &error(0));
            assert_eq!(dump.take(&[one, two, done].concat()), Ok(State::Interrupted), "message {flagged}");
        }
    }

    #[test]
    fn what_is_not_whole_is_no_answer() {
        let whole = [message(LINK, 2, 1, b"one "), message(libc::NLMSG_DONE, 2, 1, &error(0))].concat();
        for length in 1..whole.len() {
            let taken = Dump::of(1).take(&whole[..length]);
            // Cut between two messages it is only the beginning.
            assert_eq!(taken == Ok(State::Open), length == HEADER + 4, "{length}: {taken:?}");
            assert!(!matches!(taken, Ok(State::Whole(_))), "{length} bytes");
        }
        let mut short = whole.clone();
        short[..4].copy_from_slice(&3u32.to_ne_bytes());
        assert!(Dump::of(1).take(&short).is_err(), "a length below that of the header");
        assert!(requests(&message(libc::NLMSG_ERROR, 0, 1, b"x"), 1, 1).is_err());
    }

    #[test]
    fn refusals_are_of_these_requests_alone() {
        let late = message(libc::NLMSG_ERROR, 0, 3, &error(libc::EEXIST)); // of a batch before
        let refused = message(libc::NLMSG_ERROR, 0, 5, &error(libc::EINVAL));
        let done = message(libc::NLMSG_ERROR, 0, 6, &error(0));
        let bytes = [late, refused.clone(), done].concat();
        let told = |over| Ok(BatchStatus { refused: Some((1, libc::EINVAL, &refused[..])), over });
        assert_eq!(requests(&bytes, 4, 6), told(true));
        assert_eq!(requests(&refused, 4, 6), told(false), "more is to come");
        let wrapped = message(libc::NLMSG_ERROR, 0, 0, &error(0));
        assert_eq!(
            requests(&wrapped, u32::MAX, 0),
            Ok(BatchStatus { refused: None, over: true }),
            "numbers begin anew"
        );
    }

    #[test]
    fn the_answer_to_one_question_has_its_number() {
        let (other, own) = (message(LINK, 0, 8, b"old "), message(LINK, 0, 9, b"new "));
        assert_eq!(single(&other, 9, LINK as u16), Ok(None));
        assert_eq!(single(&[other, own].concat(), 9, LINK as u16), Ok(Some(Ok(b"new ".to_vec()))));
        let refused = message(libc::NLMSG_ERROR, 0, 9, &error(libc::ENODEV));
        assert_eq!(single(&refused, 9, LINK as u16), Ok(Some(Err(libc::ENODEV))));
    }
}
