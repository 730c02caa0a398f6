//! What one direction did, millisecond by millisecond: a ring that the spinner writes and anybody may read while it
//! does, without locks. Milliseconds in which nothing happened take no time to record: their rows are absent, and
//! read as zeros with the queue as the row before left it.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{fence, AtomicU64};

use super::guarded::Guarded;

/// Of one millisecond. Bytes as the link's framing counts them; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub in_packets: u64,
    pub in_bytes: u64,
    pub out_packets: u64,
    pub out_bytes: u64,
    pub lost: u64,
    pub queue_full: u64,
    /// By the queue's discipline or an ACK filter.
    pub aqm: u64,
    pub store_full: u64,
    pub ce_packets: u64,
    /// At the end of the millisecond; and the most within it.
    pub queue_packets: u64,
    pub queue_bytes: u64,
    pub queue_max_bytes: u64,
    pub delay_line_packets: u64,
    /// Actual release minus due.
    pub lateness_max_ns: u64,
    pub lateness_sum_ns: u64,
}

pub const COLUMNS: [&str; 15] = [
    "in_packets",
    "in_bytes",
    "out_packets",
    "out_bytes",
    "lost",
    "queue_full",
    "aqm",
    "store_full",
    "ce_packets",
    "queue_packets",
    "queue_bytes",
    "queue_max_bytes",
    "delay_line_packets",
    "lateness_max_ns",
    "lateness_sum_ns",
];

impl Row {
    pub fn columns(&self) -> [u64; COLUMNS.len()] {
        [
            self.in_packets,
            self.in_bytes,
            self.out_packets,
            self.out_bytes,
            self.lost,
            self.queue_full,
            self.aqm,
            self.store_full,
            self.ce_packets,
            self.queue_packets,
            self.queue_bytes,
            self.queue_max_bytes,
            self.delay_line_packets,
            self.lateness_max_ns,
            self.lateness_sum_ns,
        ]
    }

    fn from_columns(c: [u64; COLUMNS.len()]) -> Row {
        let [in_packets, in_bytes, out_packets, out_bytes, lost, queue_full, aqm, store_full, ce_packets, ..] = c;
        let [.., queue_packets, queue_bytes, queue_max_bytes, delay_line_packets, lateness_max_ns, lateness_sum_ns] = c;
        Row {
            in_packets,
            in_bytes,
            out_packets,
            out_bytes,
            lost,
            queue_full,
            aqm,
            store_full,
            ce_packets,
            queue_packets,
            queue_bytes,
            queue_max_bytes,
            delay_line_packets,
            lateness_max_ns,
            lateness_sum_ns,
        }
    }

    /// Two times as one: counts and sums add up, the most of either stays the most, queues are those at the later end.
    fn and_then(&self, later: &Row) -> Row {
        Row {
            in_packets: self.in_packets + later.in_packets,
            in_bytes: self.in_bytes + later.in_bytes,
            out_packets: self.out_packets + later.out_packets,
            out_bytes: self.out_bytes + later.out_bytes,
            lost: self.lost + later.lost,
            queue_full: self.queue_full + later.queue_full,
            aqm: self.aqm + later.aqm,
            store_full: self.store_full + later.store_full,
            ce_packets: self.ce_packets + later.ce_packets,
            queue_packets: later.queue_packets,
            queue_bytes: later.queue_bytes,
            queue_max_bytes: self.queue_max_bytes.max(later.queue_max_bytes),
            delay_line_packets: later.delay_line_packets,
            lateness_max_ns: self.lateness_max_ns.max(later.lateness_max_ns),
            lateness_sum_ns: self.lateness_sum_ns + later.lateness_sum_ns,
        }
    }

    /// A millisecond without events after this one.
    fn idle(&self) -> Row {
        Row {
            queue_packets: self.queue_packets,
            queue_bytes: self.queue_bytes,
            queue_max_bytes: self.queue_bytes,
            delay_line_packets: self.delay_line_packets,
            ..Row::default()
        }
    }
}

pub struct Series {
    rows: Box<[Guarded<{ COLUMNS.len() }>]>,
    /// The last millisecond of which a row is written, or is being written.
    newest: AtomicU64,
}

impl Series {
    pub fn new(length: usize) -> Series {
        Series { rows: (0..length).map(|_| Guarded::new()).collect(), newest: 0.into() }
    }

    /// By one thread only.
    pub fn write(&self, ms: u64, row: &Row) {
        self.newest.store(ms, Relaxed);
        fence(Release); // who finds that its row is overwritten finds this
        self.cell(ms).write(ms, row.columns());
    }

    fn read(&self, ms: u64) -> Option<Row> {
        self.cell(ms).read(ms).map(Row::from_columns)
    }

    fn cell(&self, ms: u64) -> &Guarded<{ COLUMNS.len() }> {
        &self.rows[(ms % self.rows.len() as u64) as usize]
    }

    /// The first millisecond at or after `since` that is not overwritten when `end` comes next, and every row from
    /// there to before `end`, the first `most` of them.
    pub fn since(&self, since: u64, end: u64, most: usize) -> (u64, Vec<Row>) {
        self.undisturbed(since, end, |kept, first| {
            let mut previous = (kept..first.min(end)).rev().find_map(|ms| self.read(ms)).unwrap_or_default();
            let rows = (first..end).take(most).map(|ms| {
                previous = self.read(ms).unwrap_or_else(|| previous.idle());
                previous
            });
            rows.collect()
        })
    }

    /// From the first such millisecond to before `end` as one row; none where nothing happened.
    pub fn added_up(&self, since: u64, end: u64) -> (u64, Option<Row>) {
        self.undisturbed(since, end, |_, first| {
            (first..end).filter_map(|ms| self.read(ms)).reduce(|sum, row| sum.and_then(&row))
        })
    }

    /// What `read` gives of rows none of which is overwritten meanwhile: it is told the first such millisecond, and the first
    /// of those at or after `since`.
    fn undisturbed<T>(&self, since: u64, end: u64, mut read: impl FnMut(u64, u64) -> T) -> (u64, T) {
        loop {
            let (kept, first) = self.kept(since, end);
            let found = read(kept, first);
            fence(Acquire);
            if self.kept(since, end) == (kept, first) {
                return (first, found);
            }
        }
    }

    /// The first millisecond that is not overwritten when the next row is written, and the first of those at or after
    /// `since`.
    fn kept(&self, since: u64, end: u64) -> (u64, u64) {
        // The writer may be beyond `end`. One row of distance, so that the one being written is not taken for an idle
        // millisecond.
        let next = end.max(self.newest.load(Relaxed) + 1);
        let kept = next.saturating_sub(self.rows.len() as u64 - 1);
        (kept, since.max(kept.min(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_rows_are_the_same_thing() {
        let columns = std::array::from_fn(|i| i as u64 + 1);
        assert_eq!(Row::from_columns(columns).columns(), columns);
    }

    #[test]
    fn idle_milliseconds_are_zeros_and_keep_the_queue() {
        let series = Series::new(8);
        series.write(2, &Row { in_packets: 5, queue_packets: 3, queue_bytes: 30, ..Row::default() });
        series.write(4, &Row { out_packets: 3, ..Row::default() });
        let (first, rows) = series.since(1, 6, usize::MAX);
        assert_eq!(first, 1);
        assert_eq!(rows.iter().map(|row| row.in_packets).collect::<Vec<_>>(), [0, 5, 0, 0, 0]);
        assert_eq!(rows.iter().map(|row| row.queue_bytes).collect::<Vec<_>>(), [0, 30, 30, 0, 0]);
        assert_eq!(series.since(1, 6, 2), (1, rows[..2].to_vec()));
        assert_eq!(
            series.since(3, 5, usize::MAX).1[0].queue_packets,
            3,
            "as the row before the first asked for left it"
        );
    }

    #[test]
    fn says_from_where_on_it_still_knows() {
        let series = Series::new(8);
        (0..20).for_each(|ms| series.write(ms, &Row { in_packets: ms, ..Row::default() }));
        let (first, rows) = series.since(0, 20, usize::MAX);
        assert_eq!((first, rows.len(), rows[0].in_packets), (13, 7, 13));
        assert_eq!(series.since(30, 20, usize::MAX), (30, vec![]), "who asks too early asks for the same again");
        assert_eq!(series.since(1 << 60, 20, usize::MAX), (1 << 60, vec![]), "at once");
        assert_eq!(series.since(0, 15, usize::MAX).0, 13, "the writer is further than what is settled");
        assert_eq!(series.since(0, 15, usize::MAX).1.iter().map(|row| row.in_packets).collect::<Vec<_>>(), [13, 14]);
        assert_eq!(series.added_up(0, 15), (13, Some(Row { in_packets: 27, ..Row::default() })));
        assert_eq!(series.since(0, 5, usize::MAX), (5, vec![]), "all of them are overwritten");
    }

    #[test]
    fn a_reader_never_sees_half_a_row() {
        let series = Series::new(2);
        let all = |value| Row::from_columns([value; COLUMNS.len()]);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..200_000).for_each(|ms| series.write(ms, &all(ms))));
            for ms in (0..200_000).step_by(7) {
                if let Some(row) = series.read(ms) {
                    assert_eq!(row, all(ms));
                }
            }
        });
    }
}
