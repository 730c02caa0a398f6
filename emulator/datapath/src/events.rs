//! Which of many directions has to act first. A tournament: each inner node holds the earlier of its two children,
//! so the earliest time is read at once and a change costs log2(n) comparisons, for one link as for a thousand.

use ewan_model::Nanos;

pub const NEVER: Nanos = Nanos::MAX;

pub struct Events {
    /// tree[1] is the earliest of all; the leaves begin at `leaves`.
    tree: Vec<Nanos>,
    leaves: usize,
}

impl Events {
    pub fn new(count: usize) -> Events {
        let leaves = count.next_power_of_two();
        Events { tree: vec![NEVER; 2 * leaves], leaves }
    }

    #[inline]
    pub fn set(&mut self, index: usize, time: Nanos) {
        let mut node = self.leaves + index;
        self.tree[node] = time;
        while node > 1 {
            let earlier = self.tree[node].min(self.tree[node ^ 1]);
            node /= 2;
            if self.tree[node] == earlier {
                return;
            }
            self.tree[node] = earlier;
        }
    }

    #[inline]
    pub fn earliest(&self) -> Nanos {
        self.tree[1]
    }

    /// Who acts at `earliest`.
    #[inline]
    pub fn first(&self) -> usize {
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            node += usize::from(self.tree[node] != self.tree[node / 2]);
        }
        node - self.leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_earliest_whatever_changes() {
        for count in [1, 2, 3, 7, 100] {
            let mut events = Events::new(count);
            let mut times = vec![NEVER; count];
            let mut random = 1u64;
            for _ in 0..1000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (index, time) = ((random >> 33) as usize % count, random >> 50);
                times[index] = time;
                events.set(index, time);
                assert_eq!(Some(&events.earliest()), times.iter().min());
                assert_eq!(times[events.first()], events.earliest());
            }
        }
    }
}
