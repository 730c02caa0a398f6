//! Classes of nanoseconds: 16 for each power of two, so that the upper end of a class is at most 1/16 above any value in
//! it. Where samples are not kept, or too many to be told, counts by class are.
//!
//! In: values. Out: the number of a class, its upper end, counts by class.

use alloc::vec::Vec;

/// Classes of a power of two.
pub const CLASSES: usize = 16;

/// The number of the class that holds a value.
#[inline]
pub const fn class(value: u64) -> usize {
    if value < CLASSES as u64 {
        return value as usize;
    }
    let exponent = 63 - value.leading_zeros() as usize;
    (exponent - 3) * CLASSES + (value >> (exponent - 4)) as usize % CLASSES
}

/// The largest value of a class.
pub fn upper(class: usize) -> u64 {
    if class < CLASSES {
        return class as u64;
    }
    let shift = class / CLASSES - 1;
    let next = (CLASSES + class % CLASSES + 1) as u128;
    ((next << shift) - 1) as u64
}

/// The upper end and the count of each class that holds some of the values, which are sorted.
pub fn counts(sorted: &[u64]) -> Vec<(u64, u64)> {
    sorted.chunk_by(|a, b| class(*a) == class(*b)).map(|same| (upper(class(same[0])), same.len() as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_class() {
        for value in (0..5000).chain((0..64).map(|bit| 1 << bit)).chain([u64::MAX]) {
            let upper = upper(class(value));
            assert!(value <= upper && upper - value <= value / 16, "{value} {upper}");
        }
    }

    #[test]
    fn values_are_counted_by_class() {
        assert_eq!(counts(&[3, 3, 40, 41, 1000]), [(3, 2), (41, 2), (1023, 1)]);
        assert_eq!(counts(&[]), []);
    }
}
