//! A system call that failed: what was attempted, and the kernel's reason, which callers can tell apart by its number.

use std::io;

/// Shown as one line: `ATTEMPT: REASON`, and what to do where the shell's limits are the reason.
#[derive(Debug, thiserror::Error)]
#[error("{attempt}: {source}{}", remedy(source))]
pub struct Error {
    attempt: String,
    source: io::Error,
}

fn remedy(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EMFILE) => ": raise the limit of open files (ulimit -n)",
        _ => "",
    }
}

/// What an operation of the system gives.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// `attempt`: what was to be done, in the user's words.
    pub fn new(attempt: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Error { attempt: attempt.into(), source: source.into() }
    }

    /// The error number of the last system call of this thread as the reason.
    pub fn last(attempt: impl Into<String>) -> Self {
        Error::new(attempt, io::Error::last_os_error())
    }

    /// The kernel's error number; None where the reason is not one of the kernel's.
    pub fn number(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    /// What sort of failure it is, where the number does not matter.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

/// For the ends at which an error is only a message.
impl From<Error> for String {
    fn from(error: Error) -> String {
        error.to_string()
    }
}

/// Says what was attempted when an operation of the system failed.
pub trait Context<T> {
    /// `attempt` is called only for an error.
    fn attempting<A: Into<String>>(self, attempt: impl FnOnce() -> A) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn attempting<A: Into<String>>(self, attempt: impl FnOnce() -> A) -> Result<T> {
        self.map_err(|error| Error::new(attempt(), error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_and_keeps_its_number() {
        let failed: Result<()> = Err(nix::errno::Errno::EPERM).attempting(|| "entering a node");
        let error = failed.expect_err("it failed");
        assert_eq!(error.number(), Some(libc::EPERM));
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(error.to_string(), "entering a node: Operation not permitted (os error 1)");
    }

    #[test]
    fn too_few_open_files_are_told_with_what_to_do() {
        let failed: Result<()> = Err(nix::errno::Errno::EMFILE).attempting(|| "entering a node");
        let error = failed.expect_err("it failed").to_string();
        assert!(
            error.ends_with("Too many open files (os error 24): raise the limit of open files (ulimit -n)"),
            "{error}"
        );
    }
}
