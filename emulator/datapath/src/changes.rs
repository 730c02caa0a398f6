//! Changes on their way to the spinner and back. In: what a client asks for, checked. Out: to the spinner, changes with
//! all memory that they need; from it, the same changes with the time at which each was made, for the log. Both channels
//! have a fixed length, so that the spinner neither allocates nor frees.

use std::sync::mpsc::{sync_channel, Receiver, SyncSender};

use ewan_model::{Change, ModelChange, Nanos};

/// Changes that wait for their time, per spinner.
pub const MOST_SCHEDULED: usize = 1024;
/// Changes remembered one by one; older ones are remembered as what they add up to in each direction.
const MOST_REMEMBERED: usize = 4096;

/// A change for one direction, to be made when the clock says `at`.
#[derive(Debug)]
pub struct Scheduled {
    pub id: u64,
    pub link: usize,
    pub direction: usize,
    pub at: Nanos,
    pub change: Change,
    pub prepared: ModelChange,
}

/// A change that the spinner is done with; `actual` is none where its link had ended.
#[derive(Debug)]
pub struct Done {
    pub scheduled: Scheduled,
    pub actual: Option<Nanos>,
}

/// The spinner's end.
pub struct Inbox {
    coming: Receiver<Scheduled>,
    done: SyncSender<Done>,
    /// Soonest last.
    waiting: Vec<Scheduled>,
}

impl Inbox {
    /// Takes in what was sent.
    pub fn look(&mut self) {
        while let Ok(change) = self.coming.try_recv() {
            let place = self.waiting.partition_point(|other| (other.at, other.id) > (change.at, change.id));
            self.waiting.insert(place, change);
        }
    }

    /// When the change that comes first is to be made.
    #[inline]
    pub fn soonest(&self) -> Option<Nanos> {
        self.waiting.last().map(|change| change.at)
    }

    /// Link, direction and time of the change that comes after so many others, if it is to be made by `now`.
    #[inline]
    pub fn due(&self, after: usize, now: Nanos) -> Option<(usize, usize, Nanos)> {
        let change = self.waiting.iter().rev().nth(after).filter(|change| change.at <= now)?;
        Some((change.link, change.direction, change.at))
    }

    /// Is one of so many changes that come first of this link?
    pub fn has_before(&self, after: usize, link: usize) -> bool {
        self.waiting.iter().rev().take(after).any(|change| change.link == link)
    }

    /// When the first change of this link is to be made, if that is by `until`.
    #[inline]
    pub fn soonest_of(&self, link: usize, until: Nanos) -> Option<Nanos> {
        let mut soon = self.waiting.iter().rev().take_while(|change| change.at <= until);
        soon.find(|change| change.link == link).map(|change| change.at)
    }

    /// The change that comes after so many others.
    pub fn take(&mut self, after: usize) -> Option<Scheduled> {
        let index = self.waiting.len().checked_sub(after + 1)?;
        Some(self.waiting.remove(index))
    }

    pub fn give_back(&self, scheduled: Scheduled, actual: Option<Nanos>) {
        // There is room for all that may be under way.
        let _ = self.done.try_send(Done { scheduled, actual });
    }
}

/// A change that was made, as the log tells it.
#[derive(Clone, Debug)]
pub struct ChangeRecord {
    pub id: u64,
    pub link: usize,
    pub direction: usize,
    pub requested: Nanos,
    pub actual: Nanos,
    pub change: Change,
}

/// The clients' end.
pub struct Outbox {
    to_spinner: SyncSender<Scheduled>,
    done: Receiver<Done>,
    under_way: usize,
    next_id: u64,
    made: Vec<ChangeRecord>,
    /// Of each direction, what was made before `made`.
    before: Vec<ChangeRecord>,
}

pub fn channel() -> (Outbox, Inbox) {
    let (to_spinner, coming) = sync_channel(MOST_SCHEDULED);
    let (back, done) = sync_channel(MOST_SCHEDULED);
    let outbox = Outbox { to_spinner, done, under_way: 0, next_id: 0, made: Vec::new(), before: Vec::new() };
    (outbox, Inbox { coming, done: back, waiting: Vec::with_capacity(MOST_SCHEDULED) })
}

impl Outbox {
    /// The same change for each of `directions`, all or none. Gives their numbers.
    pub fn send(
        &mut self,
        link: usize,
        directions: std::ops::Range<usize>,
        at: Nanos,
        change: &Change,
    ) -> Result<Vec<u64>, String> {
        self.collect();
        if self.under_way + directions.len() > MOST_SCHEDULED {
            return Err(format!("{MOST_SCHEDULED} changes wait for their time: schedule this one later"));
        }
        directions
            .map(|direction| {
                let (id, prepared) = (self.next_id, ModelChange::new(change));
                let scheduled = Scheduled { id, link, direction, at, change: change.clone(), prepared };
                self.to_spinner.try_send(scheduled).map_err(|_| "the spinner has stopped".to_string())?;
                self.next_id += 1;
                self.under_way += 1;
                Ok(id)
            })
            .collect()
    }

    /// Those made so far, in order; `before` first, added up.
    pub fn made(&mut self) -> impl Iterator<Item = &ChangeRecord> {
        self.collect();
        self.before.iter().chain(&self.made)
    }

    fn collect(&mut self) {
        while let Ok(Done { scheduled, actual }) = self.done.try_recv() {
            self.under_way -= 1;
            let Scheduled { id, link, direction, at, change, .. } = scheduled;
            if let Some(actual) = actual.filter(|_| !change.only_counts()) {
                self.made.push(ChangeRecord { id, link, direction, requested: at, actual, change });
            }
        }
        if self.made.len() > MOST_REMEMBERED {
            let old = self.made.drain(..self.made.len() - MOST_REMEMBERED / 2);
            for later in old {
                let same = |made: &&mut ChangeRecord| (made.link, made.direction) == (later.link, later.direction);
                match self.before.iter_mut().find(same) {
                    Some(made) => {
                        *made = ChangeRecord { change: std::mem::take(&mut made.change).then(&later.change), ..later }
                    }
                    None => self.before.push(later),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(rate_bps: u64) -> Change {
        Change { rate_bps: Some(rate_bps), ..Change::default() }
    }

    #[test]
    fn no_more_wait_than_there_is_room_for_and_all_come_in_order_of_time() {
        let (mut outbox, mut inbox) = channel();
        for n in 0..MOST_SCHEDULED as u64 / 2 {
            outbox.send(0, 0..2, 1_000 - n, &rate(8_000 + n)).unwrap();
        }
        let refused = outbox.send(0, 0..1, 5, &rate(8_000)).unwrap_err();
        assert!(refused.starts_with("1024 changes wait"), "{refused}");
        let capacity = inbox.waiting.capacity();
        inbox.look();
        let mut last = 0;
        while let Some(next) = inbox.take(0) {
            assert!(next.at >= last);
            last = next.at;
            inbox.give_back(next, Some(last));
        }
        assert_eq!(inbox.waiting.capacity(), capacity);
        assert_eq!(outbox.made().count(), MOST_SCHEDULED);
        assert!(outbox.send(0, 0..2, 5, &rate(8_000)).is_ok(), "room again");
    }

    #[test]
    fn old_changes_are_remembered_by_what_they_add_up_to() {
        let (mut outbox, mut inbox) = channel();
        let corrupt = Change { corrupt_ppb: Some(5), ..Change::default() };
        outbox.send(1, 0..1, 0, &corrupt).unwrap();
        for n in 0..20_000 {
            outbox.send(1, 0..2, n, &rate(8_000 + n)).unwrap();
            inbox.look();
            while let Some(next) = inbox.take(0) {
                inbox.give_back(next, Some(n));
            }
        }
        let made: Vec<_> = outbox.made().cloned().collect();
        assert!(made.len() <= MOST_REMEMBERED + 2, "{}", made.len());
        let whole =
            made.iter().filter(|made| made.direction == 0).fold(Change::default(), |all, made| all.then(&made.change));
        assert_eq!(whole, Change { corrupt_ppb: Some(5), ..rate(27_999) });
    }
}
