//! Programs in a node that is a machine with a kernel of its own (labs/runtime/machines.py): over a connection to it.
//!
//! In: a lab's state directory, a node, a command. Out: the command that has the machine run it, once the machine has
//! taken over its node. Exit status, input and both outputs are those of the program.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Of the node's own directory: who the machine lets in. Written when it has taken over.
const KEY: &str = "machine/key";
/// In the node's namespace, on its loopback interface.
const PORT: &str = "2222";

/// `command`, or in a machine the words that have it run there; `terminal`: with a terminal of its own.
pub fn words(state: &Path, node: &str, command: &[OsString], terminal: bool) -> Vec<OsString> {
    let home = state.join("nodes").join(node);
    let key = home.join(KEY);
    if !key.exists() {
        return command.to_vec();
    }
    let mut at_home = OsString::from("HOME=");
    at_home.push(key.parent().unwrap_or(&home));
    let mut words: Vec<OsString> = vec!["env".into(), at_home, "dbclient".into()];
    words.extend(terminal.then(|| OsString::from("-t")));
    words.extend(["-i".into(), key.into_os_string(), "-p".into(), PORT.into(), "root@127.0.0.1".into()]);
    // Who ends us ends the program there too: without a terminal nothing else would tell it.
    let how = if terminal { "exec" } else { "exec setpriv --pdeathsig TERM /machine/run" };
    words.push(command.iter().fold(OsString::from(how), |mut line, word| {
        line.push(" ");
        line.push(quoted(word));
        line
    }));
    words
}

/// A word as the shell reads it back.
fn quoted(word: &OsStr) -> OsString {
    let mut text = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => text.extend_from_slice(b"'\\''"),
            _ => text.push(byte),
        }
    }
    text.push(b'\'');
    OsString::from_vec(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_command_is_itself_until_a_machine_has_taken_over() {
        let state = std::env::temp_dir().join(format!("ewan-machine-{}", std::process::id()));
        let asked = command(&["echo", "it's", "$HOME"]);
        assert_eq!(words(&state, "right1", &asked, false), asked);
        let key = state.join("nodes/right1").join(KEY);
        std::fs::create_dir_all(key.parent().expect("a directory")).expect("a directory");
        std::fs::write(&key, "").expect("a key");
        let home = format!("HOME={}", state.join("nodes/right1/machine").display());
        let key = key.display().to_string();
        let (connects, line) = (["-i", &key, "-p", "2222", "root@127.0.0.1"], r"'echo' 'it'\''s' '$HOME'");
        let wrapped = |more: &[&str], how: &str| {
            let line = format!("{how} {line}");
            command(&[&["env", &home, "dbclient"], more, &connects, &[&line]].concat())
        };
        let run = "exec setpriv --pdeathsig TERM /machine/run";
        assert_eq!(words(&state, "right1", &asked, false), wrapped(&[], run));
        assert_eq!(words(&state, "right1", &asked, true), wrapped(&["-t"], "exec"));
        assert_eq!(words(&state, "left1", &asked, false), asked);
        std::fs::remove_dir_all(&state).expect("removed");
    }
}
