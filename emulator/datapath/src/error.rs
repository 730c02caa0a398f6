//! Why a spinner could not be started, or did not end as it was told.

use ewan_system::netlink;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("this spinner has no links to serve")]
    NoLinks,
    /// A direction that the model refuses: the reason names the key, and what to write instead.
    #[error("link {link} {heading}: {reason}")]
    Refused { link: String, heading: &'static str, reason: String },
    /// A link's ports could not be opened.
    #[error("link {link}: {source}")]
    Port { link: String, source: netlink::Error },
    #[error(transparent)]
    System(#[from] ewan_system::Error),
    /// A variable of the environment, and what to write instead.
    #[error("{0}")]
    Environment(String),
    /// A thread of the spinner panicked.
    #[error("{0} failed")]
    Panicked(&'static str),
    #[error("the spinner does not stop within {0} s: ended without it")]
    Stuck(u64),
}

pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for String {
    fn from(error: Error) -> String {
        error.to_string()
    }
}
