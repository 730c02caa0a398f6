//! Tables as CSV files. In: rows as they come. Out: a file with a head; only whole lines are written, so that a full disk
//! leaves a table that can be read.

use std::fs::File;
use std::io::Write;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Rows are written when so many bytes of them have come together.
const BUFFER_BYTES: usize = 64 << 10;

/// A row of a table.
pub trait Row {
    /// Their names, separated by commas.
    const COLUMNS: &'static str;
    /// Adds the row's values to `line`, separated by commas; a value that there is not is empty.
    fn line(&self, line: &mut String);
}

/// Adds text to a line.
pub fn add(line: &mut String, what: std::fmt::Arguments) {
    std::fmt::Write::write_fmt(line, what).expect("a string takes everything");
}

/// A CSV file that any thread adds rows to.
pub struct Table<R: Row> {
    path: PathBuf,
    writing: Mutex<Writing>,
    rows: PhantomData<fn(&R)>,
}

struct Writing {
    file: File,
    waiting: String,
    written_bytes: u64,
    full: bool,
}

impl<R: Row> Table<R> {
    /// Writes the head of the table. Errors: one line with the path.
    pub fn create(path: &Path) -> Result<Self, String> {
        Self::with_more(path, &[])
    }

    /// The same, where each row has these columns too behind the others.
    pub fn with_more(path: &Path, columns: &[String]) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let more: String = columns.iter().map(|name| format!(",{name}")).collect();
        let waiting = format!("{}{more}\n", R::COLUMNS);
        let writing = Mutex::new(Writing { file, waiting, written_bytes: 0, full: false });
        Ok(Self { path: path.to_owned(), writing, rows: PhantomData })
    }

    /// The error is one line, and told once; rows after it are lost.
    pub fn add(&self, row: &R) -> Result<(), String> {
        let mut writing = self.writing.lock().expect("no thread fails with the lock held");
        row.line(&mut writing.waiting);
        writing.waiting.push('\n');
        if writing.waiting.len() < BUFFER_BYTES {
            return Ok(());
        }
        self.write(&mut writing)
    }

    /// Writes the rows that wait.
    pub fn flush(&self) -> Result<(), String> {
        self.write(&mut self.writing.lock().expect("no thread fails with the lock held"))
    }

    fn write(&self, writing: &mut Writing) -> Result<(), String> {
        let waiting = std::mem::take(&mut writing.waiting);
        if writing.full {
            return Ok(());
        }
        let result = writing.file.write_all(waiting.as_bytes());
        match &result {
            Ok(()) => writing.written_bytes += waiting.len() as u64,
            Err(_) => {
                writing.full = true;
                // Of what came last, perhaps half a line is there.
                let _ = writing.file.set_len(writing.written_bytes);
            }
        }
        result.map_err(|error| format!("{}: {error}", self.path.display()))
    }
}
