//! Where packets wait: slots in two sizes (up to 256 bytes, and a whole frame) in one mapping per direction. In: a
//! frame; out: a slot number, which is all that the model handles, and the frame again when it is due.
//!
//! Freed slots are used again last in, first out, and fresh ones only when none is free: however large a store the
//! plan asks for, only as much memory is touched as packets were ever in flight.

use std::ops::Range;

use ewan_system::Result;

use super::memory::Map;

/// Number of a slot, and which size it has (the top bit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

const LARGE: u32 = 1 << 31;
const SMALL_BYTES: usize = 256;
/// Before each frame: its length.
const HEAD_BYTES: usize = 8;

pub struct Arena {
    small: Class,
    large: Class,
    /// Of both sizes together.
    slots: u32,
    used: u32,
}

struct Class {
    map: Map,
    slot_bytes: usize,
    slots: u32,
    fresh: u32,
    free: Vec<u32>,
}

impl Arena {
    /// Room for `packets` frames in all, each of at most `frame_bytes`; fetches up to `prefault_bytes` of it now.
    pub fn new(packets: u64, frame_bytes: usize, prefault_bytes: usize) -> Result<Arena> {
        let slots = packets.clamp(64, u64::from(LARGE - 1)) as u32;
        Ok(Arena {
            small: Class::new(slots, SMALL_BYTES, prefault_bytes / 4)?,
            large: Class::new(slots, frame_bytes, prefault_bytes - prefault_bytes / 4)?,
            slots,
            used: 0,
        })
    }

    /// How many frames it holds at most.
    pub fn slots(&self) -> usize {
        self.slots as usize
    }

    /// Copies a frame into a free slot; None when there is none (or the frame is larger than any).
    pub fn store(&mut self, frame: &[u8]) -> Option<Slot> {
        let (class, bit) = if frame.len() <= SMALL_BYTES { (&mut self.small, 0) } else { (&mut self.large, LARGE) };
        if self.used == self.slots {
            return None;
        }
        let index = class.take(frame.len())?;
        self.used += 1;
        class.map.allow(class.bytes(index, HEAD_BYTES + frame.len()));
        let slot = class.pointer(index);
        // SAFETY: `take` gave a slot that nobody else holds, with room for the head and this frame.
        unsafe {
            slot.cast::<u32>().write(frame.len() as u32);
            std::ptr::copy_nonoverlapping(frame.as_ptr(), slot.add(HEAD_BYTES), frame.len());
        }
        Some(Slot(index | bit))
    }

    pub fn frame(&mut self, slot: Slot) -> &mut [u8] {
        let pointer = self.pointer(slot);
        // SAFETY: the head says how many bytes `store` wrote there; the borrow of the arena keeps others away.
        unsafe { std::slice::from_raw_parts_mut(pointer.add(HEAD_BYTES), pointer.cast::<u32>().read() as usize) }
    }

    pub fn release(&mut self, slot: Slot) {
        self.used -= 1;
        let (class, index) = (self.class(slot), slot.0 & !LARGE);
        class.map.forbid(class.bytes(index, class.slot_bytes));
        class.free.push(index);
    }

    fn class(&mut self, slot: Slot) -> &mut Class {
        if slot.0 & LARGE == 0 {
            &mut self.small
        } else {
            &mut self.large
        }
    }

    fn pointer(&mut self, slot: Slot) -> *mut u8 {
        self.class(slot).pointer(slot.0 & !LARGE)
    }
}

impl Class {
    fn new(slots: u32, frame_bytes: usize, prefault_bytes: usize) -> Result<Class> {
        let slot_bytes = (frame_bytes + HEAD_BYTES).next_multiple_of(64);
        let map = Map::anonymous(slot_bytes * slots as usize)?;
        map.small_pages();
        map.prefault(prefault_bytes.min(map.bytes()));
        map.forbid(0..map.bytes()); // until frames are stored
                                    // Untouched capacity costs nothing, and pushing never moves the list while packets fly.
        Ok(Class { map, slot_bytes, slots, fresh: 0, free: Vec::with_capacity(slots as usize) })
    }

    fn take(&mut self, bytes: usize) -> Option<u32> {
        if bytes + HEAD_BYTES > self.slot_bytes {
            return None;
        }
        self.free.pop().or_else(|| {
            (self.fresh < self.slots).then(|| {
                self.fresh += 1;
                self.fresh - 1
            })
        })
    }

    /// The first `bytes` of a slot, as a range of the mapping.
    fn bytes(&self, index: u32, bytes: usize) -> Range<usize> {
        let start = index as usize * self.slot_bytes;
        start..start + bytes
    }

    fn pointer(&self, index: u32) -> *mut u8 {
        debug_assert!(index < self.slots);
        // SAFETY: indices come from `take`, so the slot lies within the mapping.
        unsafe { self.map.pointer().add(index as usize * self.slot_bytes) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is stored, changed and released in whatever order: each frame keeps its own bytes, and one is refused
        /// only where the arena is full or the frame too long.
        #[test]
        fn frames_never_touch_each_other(steps in prop::collection::vec((0..3u8, 0..1600usize, any::<u8>()), 1..400)) {
            let mut arena = Arena::new(64, 1514, 0).unwrap();
            let mut stored: Vec<(Slot, Vec<u8>)> = Vec::new();
            for (step, number, byte) in steps {
                if step > 0 {
                    let length = if number < 800 { number % 300 } else { number };
                    let frame: Vec<u8> = (0..length).map(|at| byte.wrapping_add(at as u8)).collect();
                    match arena.store(&frame) {
                        Some(slot) => stored.push((slot, frame)),
                        None => prop_assert!(stored.len() == arena.slots() || length > 1514, "{length} bytes"),
                    }
                } else if !stored.is_empty() {
                    let (slot, frame) = stored.swap_remove(number % stored.len());
                    prop_assert_eq!(arena.frame(slot), &frame[..]);
                    arena.release(slot);
                }
                if let Some((slot, frame)) = stored.last_mut() {
                    arena.frame(*slot).fill(byte);
                    frame.fill(byte);
                }
            }
            for (slot, frame) in stored {
                prop_assert_eq!(arena.frame(slot), &frame[..]);
            }
        }
    }

    #[test]
    fn gives_back_what_was_stored_in_either_size() {
        let mut arena = Arena::new(100, 1514, 0).unwrap();
        for length in [1usize, 60, 256, 257, 1514] {
            let frame: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let slot = arena.store(&frame).unwrap();
            assert_eq!(arena.frame(slot), &frame[..]);
            arena.release(slot);
        }
    }

    #[test]
    fn refuses_when_full_and_goes_on_when_freed() {
        let mut arena = Arena::new(64, 1514, 0).unwrap();
        let slots: Vec<Slot> = std::iter::from_fn(|| arena.store(&[7; 64])).collect();
        assert_eq!(slots.len(), 64);
        assert_eq!(arena.store(&[7; 300]), None, "the sizes share one limit");
        arena.release(slots[5]);
        assert_eq!(arena.store(&[8; 64]), Some(slots[5]), "the slot that was touched last is used first");
        assert_eq!(arena.store(&[8; 64]), None);
    }

    #[test]
    fn a_frame_larger_than_the_port_allows_is_refused() {
        assert_eq!(Arena::new(64, 1514, 0).unwrap().store(&[0; 9000]), None);
    }
}
