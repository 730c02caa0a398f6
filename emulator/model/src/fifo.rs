//! A queue whose memory is reserved once, or grows by pages where nothing was reserved. A ring would walk through all that
//! it reserved; here a place that became free is taken again first, so that only as much memory is touched as there were
//! ever entries at a time. No entry ever moves, and no piece of memory is larger than a page. Several queues may share
//! the memory of one pool.

use alloc::vec::Vec;

const NONE: u32 = u32::MAX;
/// Entries of a page.
const PAGE: usize = 1 << 10;

/// The memory of queues.
#[derive(Clone, Debug)]
pub struct Pool<T> {
    /// All are full but the last ones.
    pages: Vec<Vec<Place<T>>>,
    /// Places that ever were in use.
    used: u32,
    /// Free places, linked through `next`.
    free: u32,
}

#[derive(Clone, Debug)]
struct Place<T> {
    entry: T,
    next: u32,
}

/// One of the queues of a pool, which is named at each call.
#[derive(Clone, Copy, Debug)]
pub struct List {
    first: u32,
    last: u32,
}

impl List {
    pub const EMPTY: List = List { first: NONE, last: NONE };

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

impl<T: Copy> Pool<T> {
    /// Up to `capacity` entries take no further memory from the system.
    pub fn new(capacity: usize) -> Self {
        let pages = (0..capacity.div_ceil(PAGE)).map(|_| Vec::with_capacity(PAGE)).collect();
        Pool { pages, used: 0, free: NONE }
    }

    /// Takes memory for `entries` in all, so that up to these nothing is allocated; false if the system has none.
    #[inline]
    pub fn reserve(&mut self, entries: usize) -> bool {
        while self.pages.len() * PAGE < entries {
            let mut page = Vec::new();
            if self.pages.try_reserve(1).is_err() || page.try_reserve_exact(PAGE).is_err() {
                return false;
            }
            self.pages.push(page);
        }
        true
    }

    /// Where it is now, for `get_mut`.
    #[inline]
    pub fn push_back(&mut self, list: &mut List, entry: T) -> u32 {
        let place = Place { entry, next: NONE };
        let mut index = self.free;
        if let Some(free) = self.place(index) {
            let next = free.next;
            *free = place;
            self.free = next;
        } else {
            index = self.used;
            self.append(place);
        }
        match self.place(list.last) {
            Some(last) => last.next = index,
            None => list.first = index,
        }
        list.last = index;
        index
    }

    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.place(index).map(|place| &mut place.entry)
    }

    pub fn each_mut(&mut self, list: &List, mut with: impl FnMut(&mut T)) {
        let mut index = list.first;
        while let Some(place) = self.place(index) {
            with(&mut place.entry);
            index = place.next;
        }
    }

    #[inline]
    pub fn front(&self, list: &List) -> Option<&T> {
        self.at(list.first).map(|place| &place.entry)
    }

    #[inline]
    pub fn back(&self, list: &List) -> Option<&T> {
        self.at(list.last).map(|place| &place.entry)
    }

    /// The entry behind the first one.
    #[inline]
    pub fn second(&self, list: &List) -> Option<&T> {
        self.at(self.at(list.first)?.next).map(|place| &place.entry)
    }

    #[inline]
    pub fn pop_front(&mut self, list: &mut List) -> Option<T> {
        let free = self.free;
        let place = self.place(list.first)?;
        let next = core::mem::replace(&mut place.next, free);
        let entry = place.entry;
        self.free = core::mem::replace(&mut list.first, next);
        if next == NONE {
            list.last = NONE;
        }
        Some(entry)
    }

    #[inline]
    fn at(&self, index: u32) -> Option<&Place<T>> {
        self.pages.get(index as usize / PAGE)?.get(index as usize % PAGE)
    }

    #[inline]
    fn place(&mut self, index: u32) -> Option<&mut Place<T>> {
        self.pages.get_mut(index as usize / PAGE)?.get_mut(index as usize % PAGE)
    }

    /// At the first place that never was in use.
    #[inline]
    fn append(&mut self, place: Place<T>) {
        let page = self.used as usize / PAGE;
        if page == self.pages.len() {
            self.pages.push(Vec::with_capacity(PAGE));
        }
        self.pages[page].push(place);
        self.used += 1;
    }
}

/// One queue with a pool of its own.
#[derive(Clone, Debug)]
pub struct Fifo<T> {
    pool: Pool<T>,
    list: List,
}

impl<T: Copy> Fifo<T> {
    /// Up to `capacity` entries take no further memory from the system.
    pub fn new(capacity: usize) -> Self {
        Fifo { pool: Pool::new(capacity), list: List::EMPTY }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// As of a pool.
    #[inline]
    pub fn reserve(&mut self, entries: usize) -> bool {
        self.pool.reserve(entries)
    }

    #[inline]
    pub fn push_back(&mut self, entry: T) {
        self.pool.push_back(&mut self.list, entry);
    }

    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        self.pool.pop_front(&mut self.list)
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
            let Fifo { pool, list } = &fifo;
            assert_eq!((pool.front(list), pool.back(list)), (plain.front(), plain.back()));
            assert_eq!((pool.second(list), fifo.is_empty()), (plain.get(1), plain.is_empty()));
        }
    }

    #[test]
    fn an_entry_that_waits_may_become_another() {
        let (mut pool, mut list) = (Pool::new(4), List::EMPTY);
        let places = [1, 2, 3].map(|entry| pool.push_back(&mut list, entry));
        assert_eq!(pool.pop_front(&mut list), Some(1));
        *pool.get_mut(places[1]).expect("it waits") = 7;
        pool.each_mut(&list, |entry| *entry *= 10);
        assert_eq!([(); 3].map(|()| pool.pop_front(&mut list)), [Some(70), Some(30), None]);
    }

    #[test]
    fn touches_no_more_places_than_were_ever_in_use() {
        let mut fifo = Fifo::new(0);
        for n in 0..100 {
            fifo.push_back(n);
        }
        for n in 100..10_000 {
            assert_eq!(fifo.pop_front(), Some(n - 100));
            fifo.push_back(n);
        }
        assert_eq!((fifo.pool.used, fifo.pool.pages.len(), fifo.pool.pages[0].len()), (100, 1, 100));
    }
}
