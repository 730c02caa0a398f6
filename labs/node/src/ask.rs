//! Asks who listens at a socket one thing: for those who cannot open it themselves, but may run this as root.
//!
//! In: a line on standard input. Out: the line that comes back, as it is; an error where none does.

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

use ewan_emulator::datapath::client::Client;

/// A spinner answers between two packets; what writes a thousand milliseconds of counters takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn run(socket: &Path, mut request: impl BufRead, mut answer: impl Write) -> Result<(), String> {
    let mut line = String::new();
    request.read_line(&mut line).map_err(|error| format!("standard input: {error}"))?;
    let said = Client::connect(socket, PATIENCE)
        .and_then(|mut client| client.line(line.trim_end_matches('\n')))
        .map_err(|error| format!("{}: {error}", socket.display()))?;
    answer.write_all(said.as_bytes()).and_then(|()| answer.flush()).map_err(|error| format!("standard output: {error}"))
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_refusal_is_an_answer_too_and_silence_an_error() {
        let path = std::env::temp_dir().join(format!("ewan-ask-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).expect("a socket");
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut asked = String::new();
            BufReader::new(stream.try_clone().expect("a descriptor")).read_line(&mut asked).expect("a line");
            stream.write_all(b"{\"ok\":false}\n").expect("it listens");
            drop(listener.accept().expect("a connection"));
            asked
        });
        let mut answer = Vec::new();
        assert_eq!(run(&path, &b"{\"command\":\"stats\"}\nmore"[..], &mut answer), Ok(()));
        assert_eq!(answer, b"{\"ok\":false}\n");
        assert!(run(&path, &b"{}\n"[..], &mut answer).is_err());
        assert_eq!(thread.join().expect("it ran"), "{\"command\":\"stats\"}\n");
        std::fs::remove_file(&path).expect("ours");
        let said = run(&path, &b"{}\n"[..], &mut answer).expect_err("nobody listens");
        assert!(said.contains("No such file"), "{said}");
    }
}
