//! Why netlink did not do what it was asked to: callers can tell a refusal of the kernel's from a failure on the way.

use std::io;

/// An answer was not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an answer of the kernel was cut short")]
pub struct TruncationError;

/// Why a request, or a batch of them, was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call on the socket failed.
    #[error(transparent)]
    System(#[from] crate::Error),
    #[error("{attempt}: {source}")]
    TruncationError { attempt: String, source: TruncationError },
    #[error("{attempt}: what it lists changes faster than it is read")]
    Unsteady { attempt: String },
    /// The kernel refused a request, with its error number and perhaps words of its own.
    #[error("{attempt}: {}", reason(*.number, .words.as_deref()))]
    Refused { attempt: String, number: i32, words: Option<String> },
    /// The kernel was built without what the request needs.
    #[error("{attempt}: this kernel lacks {needs}")]
    Lacking { attempt: String, number: i32, needs: &'static str },
}

/// What netlink gives.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The kernel's error number; None where none was given.
    pub fn number(&self) -> Option<i32> {
        match self {
            Error::System(error) => error.number(),
            Error::Refused { number, .. } | Error::Lacking { number, .. } => Some(*number),
            Error::TruncationError { .. } | Error::Unsteady { .. } => None,
        }
    }
}

/// For the ends at which an error is only a message.
impl From<Error> for String {
    fn from(error: Error) -> String {
        error.to_string()
    }
}

fn reason(number: i32, words: Option<&str>) -> String {
    let error = io::Error::from_raw_os_error(number);
    words.map_or_else(|| error.to_string(), |words| format!("{error}: {words}"))
}
