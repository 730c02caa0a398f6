//! A link: both of its directions, which may share a medium (half duplex). Whatever is done with one direction at an instant
//! is done when both have been evaluated up to it, and seen by both.

use super::config::Direction;
use super::medium::share;
use super::{DirectionModel, Nanos};

/// Forward and backward, by their heading: 0 and 1.
#[derive(Debug)]
pub struct Link<P> {
    directions: [DirectionModel<P>; 2],
}

impl<P: Copy> Link<P> {
    /// As `DirectionModel::new`.
    pub fn new(configs: [&Direction; 2]) -> Self {
        Link { directions: configs.map(DirectionModel::new) }
    }

    /// As `DirectionModel::with_room`, for each direction.
    pub fn with_rooms(configs: [&Direction; 2], rooms: [usize; 2]) -> Self {
        let [forward, backward] = configs;
        let model = DirectionModel::with_room;
        Link { directions: [model(forward, rooms[0]), model(backward, rooms[1])] }
    }

    /// The traces of both directions begin at `now`.
    pub fn begin(&mut self, now: Nanos) {
        self.directions.iter_mut().for_each(|direction| direction.begin(now));
    }

    #[inline]
    pub fn direction(&self, heading: usize) -> &DirectionModel<P> {
        &self.directions[heading]
    }

    /// For what takes no time of the medium: releases and drops up to the time that was evaluated, what is counted.
    #[inline]
    pub fn direction_mut(&mut self, heading: usize) -> &mut DirectionModel<P> {
        &mut self.directions[heading]
    }

    /// Evaluates both directions up to `to` if they share a medium; true: the next event of each may be another now.
    #[inline]
    pub fn evaluate(&mut self, to: Nanos) -> bool {
        let [forward, backward] = &mut self.directions;
        share(forward, backward, to)
    }

    /// Does something with one direction at `now`: a packet comes, or a change is made.
    #[inline]
    pub fn at<T>(&mut self, heading: usize, now: Nanos, act: impl FnOnce(&mut DirectionModel<P>) -> T) -> T {
        self.evaluate(now);
        let result = act(&mut self.directions[heading]);
        self.evaluate(now);
        result
    }

    /// Do both directions send on one medium?
    #[inline]
    pub fn shares_medium(&self) -> bool {
        self.directions.iter().all(DirectionModel::shares_medium)
    }

    /// The least transit of a direction, and where it shares a medium of the other one too: so far behind the present may
    /// the direction be evaluated.
    #[inline]
    pub fn least_transit(&self, heading: usize) -> Nanos {
        let own = self.directions[heading].least_transit();
        if self.shares_medium() {
            own.min(self.directions[1 - heading].least_transit())
        } else {
            own
        }
    }
}
