//! A file of JSON lines that several processes add to, one after the other: who adds holds a lock (flock(2)) from reading
//! what is there until its own line is written, so that nobody builds on what has changed meanwhile.
//!
//! In: the file's path, entries. Out: the entries that are new since the last look. A line without its end, of a writer
//! that was killed, counts for nothing and is removed by the next one.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub struct Journal {
    path: PathBuf,
    /// Bytes that were looked at.
    seen: u64,
}

/// Nobody else adds to the journal while this is held.
pub struct JournalLock<'a> {
    journal: &'a mut Journal,
    file: Flock<File>,
}

impl Journal {
    pub fn of(path: &Path) -> Self {
        Journal { path: path.into(), seen: 0 }
    }

    /// What was added since the last look. No file is an empty one.
    pub fn news<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, String> {
        match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.say(&error)),
            Ok(mut file) => self.read(&mut file),
        }
    }

    /// Waits until nobody else holds it.
    pub fn hold(&mut self) -> Result<JournalLock<'_>, String> {
        let file = OpenOptions::new().create(true).read(true).append(true).open(&self.path);
        let file = file.map_err(|error| self.say(&error))?;
        let file = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| self.say(&error))?;
        Ok(JournalLock { journal: self, file })
    }

    fn read<T: DeserializeOwned>(&mut self, file: &mut File) -> Result<Vec<T>, String> {
        let mut text = Vec::new();
        let read = file.seek(SeekFrom::Start(self.seen)).and_then(|_| file.read_to_end(&mut text));
        read.map_err(|error| self.say(&error))?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines = text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let entries = lines.map(|line| serde_json::from_slice(line).map_err(|error| self.say(&error)));
        let entries = entries.collect::<Result<_, _>>()?;
        self.seen += whole as u64;
        Ok(entries)
    }

    fn say(&self, error: &dyn std::fmt::Display) -> String {
        format!("{}: {error}", self.path.display())
    }
}

impl JournalLock<'_> {
    /// What was added since the last look.
    pub fn news<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, String> {
        self.journal.read(&mut self.file)
    }

    /// Adds an entry; what is new must have been looked at.
    pub fn append(mut self, entry: &Value) -> Result<(), String> {
        let line = format!("{entry}\n");
        let written = self.file.set_len(self.journal.seen).and_then(|()| self.file.write_all(line.as_bytes()));
        written.map_err(|error| self.journal.say(&error))?;
        self.journal.seen += line.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn place(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("ewan-journal-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    /// Each adds one to the last number: two that read the same number would write the same one.
    #[test]
    fn each_builds_on_what_the_one_before_wrote() {
        let path = place("many");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let (mut journal, mut last) = (Journal::of(&path), 0u64);
                    for _ in 0..50 {
                        let mut held = journal.hold().unwrap();
                        last = held.news().unwrap().last().copied().unwrap_or(last);
                        std::thread::yield_now();
                        last += 1;
                        held.append(&json!(last)).unwrap();
                    }
                });
            }
        });
        let all: Vec<u64> = Journal::of(&path).news().unwrap();
        assert_eq!(all, (1..=200).collect::<Vec<_>>());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn half_a_line_counts_for_nothing_and_goes() {
        let path = place("half");
        std::fs::write(&path, "1\n2\n{\"link\": \"co").unwrap();
        let mut journal = Journal::of(&path);
        assert_eq!(journal.news::<u64>().unwrap(), [1, 2]);
        let mut held = journal.hold().unwrap();
        assert_eq!(held.news::<u64>().unwrap(), [0; 0]);
        held.append(&json!(3)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n2\n3\n");
        assert_eq!(journal.news::<u64>().unwrap(), [0; 0], "its own is not new");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(Journal::of(&path).news::<u64>().unwrap(), [0; 0], "no file");
    }
}
