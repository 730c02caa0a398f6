//! A client of a spinner's control socket (`control.rs`): one request a line, one answer a line.
//!
//! In: a lab's state directory, a spinner's number, requests as JSON. Out: answers, or why there is none.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::Value;

/// Nobody's answer is as long; what wrote it would be no spinner.
const MOST_ANSWER_BYTES: u64 = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody is there, or does not answer in time.
    #[error(transparent)]
    Silent(#[from] io::Error),
    /// What came is no answer to what was asked.
    #[error(transparent)]
    Nonsense(#[from] serde_json::Error),
    /// The spinner says why it does not do what it was asked to.
    #[error("{0}")]
    Refused(String),
}

/// A connection to one spinner.
pub struct Client(BufReader<UnixStream>);

/// Where spinner `number` of the lab in `state` listens.
pub fn socket(state: &Path, number: usize) -> PathBuf {
    state.join(format!("spinner-{number}.sock"))
}

impl Client {
    /// `patience`: how long each request and each answer may take.
    pub fn connect(socket: &Path, patience: Duration) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Client(BufReader::new(stream)))
    }

    /// Sends a request; gives its answer, of which `T` is what the caller reads.
    pub fn ask<T: DeserializeOwned>(&mut self, request: &Value) -> Result<T, Error> {
        let line = self.line(&request.to_string())?;
        match serde_json::from_str(&line)? {
            Answer { ok: true, .. } => Ok(serde_json::from_str(&line)?),
            Answer { error, .. } => Err(Error::Refused(error)),
        }
    }

    /// Sends a line as it is, given without its end; gives the line that comes back.
    pub fn line(&mut self, request: &str) -> io::Result<String> {
        self.0.get_mut().write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        match (&mut self.0).take(MOST_ANSWER_BYTES).read_line(&mut line)? {
            0 => Err(io::Error::other("it ended")),
            _ => Ok(line),
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    ok: bool,
    #[serde(default)]
    error: String,
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_nonsense_and_silence_are_told_apart() {
        let path = std::env::temp_dir().join(format!("ewan-client-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).expect("a socket");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut asked = BufReader::new(stream.try_clone().expect("a descriptor")).lines();
            for answer in [r#"{"ok": true, "cpu": 3}"#, r#"{"ok": false, "error": "no such link"}"#, "nonsense"] {
                asked.next();
                stream.write_all(format!("{answer}\n").as_bytes()).expect("it listens");
            }
            asked.next();
        });
        let mut client = Client::connect(&path, Duration::from_secs(5)).expect("somebody listens");
        let mut ask = || client.ask::<Value>(&json!({"command": "stats"}));
        assert_eq!(ask().expect("an answer")["cpu"], 3);
        assert!(matches!(ask(), Err(Error::Refused(error)) if error == "no such link"));
        assert!(matches!(ask(), Err(Error::Nonsense(_))));
        assert!(matches!(ask(), Err(Error::Silent(_))));
        std::fs::remove_file(&path).expect("ours");
        assert!(
            matches!(Client::connect(&path, Duration::ZERO), Err(error) if error.kind() == io::ErrorKind::NotFound)
        );
    }
}
