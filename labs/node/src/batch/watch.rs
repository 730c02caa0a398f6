//! Counters of the emulated links, again and again: links.csv, with the columns of LINKS in labs/record/tables.py.
//!
//! In: open links and an interval. Out: a row per link and direction at T0, at each multiple of the interval, and when
//! the program has ended. Rows are written whole, a few at a time.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::links::Links;
use crate::plan::{Plan, HEADINGS};

const COLUMNS: &str = "link,direction,time_ns,rate_bps,sent_packets,sent_bytes,dropped_packets,lost_packets,\
                       served_packets,waited_ns,queue_packets,queue_bytes\n";
/// Rows wait until there are so many bytes.
const BLOCK: usize = 16 * 1024;

pub struct Watch {
    path: PathBuf,
    file: File,
    written: u64,
    rows: String,
    interval_ns: u64,
    due_ns: u64,
    last_ns: Option<i64>,
}

impl Watch {
    pub fn new(interval_ns: u64, out: &Path) -> Result<Self, String> {
        let path = out.join("links.csv");
        let file = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Watch { path, file, written: 0, rows: COLUMNS.into(), interval_ns, due_ns: 0, last_ns: None })
    }

    /// When the next row is due, from T0.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Writes what the links count now, if that is due at `now_ns` after T0. One that comes late does not move those
    /// after it; what was missed is left out.
    pub fn look(&mut self, links: &mut Links, plan: &Plan, now_ns: i64) -> Result<(), String> {
        if now_ns < self.due_ns as i64 {
            return Ok(());
        }
        self.due_ns = (now_ns as u64 / self.interval_ns + 1) * self.interval_ns;
        self.rows(links, plan, now_ns)?;
        if self.rows.len() >= BLOCK {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the last rows; in them are all packets that the program saw.
    pub fn finish(&mut self, links: &mut Links, plan: &Plan, now_ns: i64) -> Result<(), String> {
        let read = if self.last_ns == Some(now_ns) { Ok(()) } else { self.rows(links, plan, now_ns) };
        read.and(self.flush())
    }

    fn rows(&mut self, links: &mut Links, plan: &Plan, now_ns: i64) -> Result<(), String> {
        use std::fmt::Write;
        let counts = links.counts()?;
        for (number, ways) in counts.iter().enumerate() {
            for (heading, counted) in ways.iter().enumerate() {
                let Some(way) = counted else { continue };
                let rate_bps = links.direction(number, heading).rate_bps;
                let _ = writeln!(
                    self.rows,
                    "{},{},{now_ns},{rate_bps},{},{},{},{},{},{},{},{}",
                    plan.links[number].name,
                    HEADINGS[heading],
                    way.sent_packets,
                    way.sent_bytes,
                    way.dropped_packets,
                    way.lost_packets,
                    way.served_packets,
                    way.waited_ns.map_or_else(String::new, |ns| ns.to_string()),
                    way.queue_packets,
                    way.queue_bytes
                );
            }
        }
        self.last_ns = Some(now_ns);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        if let Err(error) = self.file.write_all(self.rows.as_bytes()) {
            let _ = self.file.set_len(self.written); // what is there is whole
            return Err(format!("{}: {error}", self.path.display()));
        }
        self.written += self.rows.len() as u64;
        self.rows.clear();
        Ok(())
    }
}
