//! What a receiver tells of packets that came. Pure.
//!
//! In: sequence numbers with the times of their arrival. Out: reports, each of which tells once more of what the one before
//! told, so that a lost report loses nothing.

use std::collections::VecDeque;

use super::wire::{Arrival, Report, MOST_REPORTED};

#[derive(Default)]
pub struct Arrivals {
    /// The sequence number of the first of `packets`.
    begin: u32,
    packets: VecDeque<Option<Arrival>>,
    /// What the next report tells for the first time begins there.
    fresh: u32,
    last: u32,
    /// Came since the last report.
    pub pending: usize,
}

impl Arrivals {
    pub fn take(&mut self, sequence: u32, at_ns: u64, ecn: u8) {
        self.pending += 1;
        self.last = sequence;
        let Some(place) = sequence.checked_sub(self.begin) else { return };
        let place = place as usize;
        if place >= self.packets.len() {
            self.packets.resize(place + 1, None);
        }
        self.packets[place].get_or_insert(Arrival { at_ns, ecn });
    }

    /// The next sequence number that nothing has been heard of.
    pub fn end(&self) -> u32 {
        self.begin + self.packets.len() as u32
    }

    /// All that is to be told at `now_ns`.
    pub fn report(&mut self, run: u32, now_ns: u64, key_wanted: bool) -> Vec<Report> {
        let (end, contents) = (self.end(), self.packets.make_contiguous());
        let report = |(index, packets): (usize, &[Option<Arrival>])| Report {
            run,
            sent_ns: now_ns,
            last: self.last,
            key_wanted,
            begin: self.begin + (index * MOST_REPORTED) as u32,
            packets: packets.to_vec(),
        };
        let reports = contents.chunks(MOST_REPORTED).enumerate().map(report).collect();
        self.packets.drain(..(self.fresh - self.begin) as usize);
        (self.begin, self.fresh, self.pending) = (self.fresh, end, 0);
        reports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_is_told_twice_and_what_comes_late_the_second_time() {
        let mut arrivals = Arrivals::default();
        let told = |arrivals: &mut Arrivals| {
            let reports = arrivals.report(1, 1000, false);
            let came = |report: &Report| (report.begin, report.packets.iter().map(Option::is_some).collect::<Vec<_>>());
            reports.iter().map(came).collect::<Vec<_>>()
        };
        arrivals.take(0, 10, 0);
        arrivals.take(2, 20, 0);
        assert_eq!(told(&mut arrivals), [(0, vec![true, false, true])]);
        arrivals.take(1, 30, 0);
        arrivals.take(3, 40, 0);
        assert_eq!((told(&mut arrivals), arrivals.end()), (vec![(0, vec![true, true, true, true])], 4));
        assert_eq!(told(&mut arrivals), [(3, vec![true])]);
        arrivals.take(0, 50, 0);
        assert_eq!(told(&mut arrivals), []);
    }

    #[test]
    fn many_packets_are_told_in_several_reports() {
        let mut arrivals = Arrivals::default();
        (0..600).for_each(|sequence| arrivals.take(sequence, 10, 0));
        let reports = arrivals.report(1, 1000, true);
        let ranges: Vec<_> = reports.iter().map(|report| (report.begin, report.packets.len())).collect();
        assert_eq!(ranges, [(0, 256), (256, 256), (512, 88)]);
    }
}
