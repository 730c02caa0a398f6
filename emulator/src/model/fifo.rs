//! A queue whose memory is reserved once. A ring would walk through all that it reserved; here a place that became free
//! is taken again first, so that only as much memory is touched as there were ever entries at a time.

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub struct Fifo<T> {
    places: Vec<Place<T>>,
    first: u32,
    last: u32,
    /// Free places, linked through `next`.
    free: u32,
}

#[derive(Clone, Debug)]
struct Place<T> {
    entry: T,
    next: u32,
}

impl<T: Copy> Fifo<T> {
    /// Up to `capacity` entries take no further memory from the system.
    pub fn new(capacity: usize) -> Self {
        Fifo { places: Vec::with_capacity(capacity), first: NONE, last: NONE, free: NONE }
    }

    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    #[inline]
    pub fn push_back(&mut self, entry: T) {
        let place = Place { entry, next: NONE };
        let index = self.free;
        let index = if let Some(free) = self.places.get_mut(index as usize) {
            self.free = free.next;
            *free = place;
            index
        } else {
            self.places.push(place);
            self.places.len() as u32 - 1
        };
        match self.places.get_mut(self.last as usize) {
            Some(last) => last.next = index,
            None => self.first = index,
        }
        self.last = index;
    }

    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.places.get(self.first as usize).map(|place| &place.entry)
    }

    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let index = self.first;
        let place = self.places.get_mut(index as usize)?;
        self.first = std::mem::replace(&mut place.next, self.free);
        self.free = index;
        let entry = place.entry;
        if self.first == NONE {
            self.last = NONE;
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn first_in_first_out_whatever_comes_when() {
        let (mut fifo, mut plain) = (Fifo::new(4), VecDeque::new());
        let mut random = 1u64;
        for n in 0..100_000u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if random >> 63 == 0 || (n / 1_000) % 2 == 0 && random >> 62 == 2 {
                fifo.push_back(n);
                plain.push_back(n);
            } else {
                assert_eq!(fifo.pop_front(), plain.pop_front());
            }
            assert_eq!((fifo.front(), fifo.is_empty()), (plain.front(), plain.is_empty()));
        }
    }

    #[test]
    fn touches_no_more_places_than_were_ever_in_use() {
        let mut fifo = Fifo::new(1_000);
        for n in 0..100 {
            fifo.push_back(n);
        }
        for n in 100..10_000 {
            assert_eq!(fifo.pop_front(), Some(n - 100));
            fifo.push_back(n);
        }
        assert_eq!((fifo.places.len(), fifo.places.capacity()), (100, 1_000));
    }
}
