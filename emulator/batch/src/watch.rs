//! Counters of the emulated links, again and again: links.csv, and classes.csv where a queue has classes, with the columns
//! of labs/record/columns.py.
//!
//! In: open links and an interval. Out: a row per link and direction (and class) at T0, at each multiple of the
//! interval, and when the program has ended. Rows are written whole, a few at a time.

use std::path::{Path, PathBuf};

use ewan_model::ClassReport;
use ewan_traffic::table::{add, Row, Table};

use ewan_lab::links::{Counts, Links};
use ewan_plan::{Plan, HEADINGS};

/// What a link counted in one direction.
struct Look {
    link: String,
    heading: &'static str,
    time_ns: i64,
    rate_bps: u64,
    counts: Counts,
}

impl Row for Look {
    const COLUMNS: &'static str = "link,direction,time_ns,rate_bps,sent_packets,sent_bytes,\
        dropped_packets,lost_packets,served_packets,waited_ns,marked_packets,in_packets,duplicated_packets,\
        queue_packets,queue_bytes";

    fn line(&self, line: &mut String) {
        let Self { link, heading, time_ns, rate_bps, counts } = self;
        let Counts { sent_packets, sent_bytes, dropped_packets, lost_packets, served_packets, .. } = counts;
        add(line, format_args!("{link},{heading},{time_ns},{rate_bps},{sent_packets},{sent_bytes}"));
        add(line, format_args!(",{dropped_packets},{lost_packets},{served_packets},"));
        for known in [counts.waited_ns, counts.marked_packets, counts.in_packets, counts.duplicated_packets] {
            if let Some(count) = known {
                add(line, format_args!("{count}"));
            }
            line.push(',');
        }
        add(line, format_args!("{},{}", counts.queue_packets, counts.queue_bytes));
    }
}

/// What one class of its queue counted.
struct ClassLook {
    link: String,
    heading: &'static str,
    class: String,
    time_ns: i64,
    counts: ClassReport,
}

impl Row for ClassLook {
    const COLUMNS: &'static str = "link,direction,class,time_ns,served_packets,waited_ns,dropped_packets,\
        marked_packets,queue_packets,queue_bytes";

    fn line(&self, line: &mut String) {
        let Self { link, heading, class, time_ns, counts } = self;
        let ClassReport { served_packets, waited_ns, dropped_packets, ce_packets, queue_packets, queue_bytes } = counts;
        add(line, format_args!("{link},{heading},{class},{time_ns},{served_packets},{waited_ns},{dropped_packets}"));
        add(line, format_args!(",{ce_packets},{queue_packets},{queue_bytes}"));
    }
}

/// links.csv while a program runs, and classes.csv from the first look on that finds any.
pub struct Watch {
    table: Table<Look>,
    classes: Option<Table<ClassLook>>,
    out: PathBuf,
    interval_ns: u64,
    due_ns: u64,
    last_ns: Option<i64>,
}

impl Watch {
    pub fn new(interval_ns: u64, out: &Path) -> Result<Self, String> {
        let table = Table::create(&out.join("links.csv"))?;
        Ok(Watch { table, classes: None, out: out.to_owned(), interval_ns, due_ns: 0, last_ns: None })
    }

    /// When the next row is due, from T0.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Writes what the links count now, if that is due at `now_ns` after T0; false: it is not. One that comes late does not move those
    /// after it; what was missed is left out.
    pub fn look(&mut self, links: &mut Links, plan: &Plan, now_ns: i64) -> Result<bool, String> {
        if now_ns < self.due_ns as i64 {
            return Ok(false);
        }
        self.due_ns = (now_ns as u64 / self.interval_ns + 1) * self.interval_ns;
        self.add(links, plan, now_ns).map(|()| true)
    }

    /// Writes the last rows; in them are all packets that the program saw.
    pub fn finish(&mut self, links: &mut Links, plan: &Plan, now_ns: i64) -> Result<(), String> {
        let read = if self.last_ns == Some(now_ns) { Ok(()) } else { self.add(links, plan, now_ns) };
        read.and(self.table.flush()).and(self.classes.as_ref().map_or(Ok(()), Table::flush))
    }

    fn add(&mut self, links: &mut Links, plan: &Plan, time_ns: i64) -> Result<(), String> {
        for (number, ways) in links.counts()?.into_iter().enumerate() {
            for (heading, counts) in ways.into_iter().enumerate() {
                let Some(counts) = counts else { continue };
                let direction = links.direction(number, heading);
                let rate_bps = direction.rate_bps;
                let link = plan.links[number].name.clone();
                let named = direction.queue.discipline.class_names().into_iter().zip(&counts.classes);
                for (class, counts) in named {
                    let (link, class, heading) = (link.clone(), class.to_owned(), HEADINGS[heading]);
                    let table = match &mut self.classes {
                        Some(table) => table,
                        none => none.insert(Table::create(&self.out.join("classes.csv"))?),
                    };
                    table.add(&ClassLook { link, heading, class, time_ns, counts: counts.clone() })?;
                }
                self.table.add(&Look { link, heading: HEADINGS[heading], time_ns, rate_bps, counts })?;
            }
        }
        self.last_ns = Some(time_ns);
        Ok(())
    }
}
