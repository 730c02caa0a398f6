//! What a middlebox at the entrance of a link does to packets: it clears the bits of ECN, or it takes away, without a word,
//! what is longer than the path beyond it can carry.

use alloc::format;

use super::check::{require, CheckResult};
use super::{Ecn, Meta};

/// Every path carries the least one (RFC 791); no IP packet is longer than the greatest.
const BLACKHOLES: core::ops::RangeInclusive<u32> = 68..=65_535;

/// Is it a length that the stage can have?
pub(super) fn check(blackhole_bytes: u32) -> CheckResult {
    require(blackhole_bytes == 0 || BLACKHOLES.contains(&blackhole_bytes), || {
        format!(
            "blackhole_bytes {blackhole_bytes}: write 68 to 65535, the longest IP packet that passes, or 0 for none"
        )
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Middlebox {
    pub bleach: bool,
    /// The longest IP packet that passes; 0: any does.
    pub blackhole: u32,
}

impl Middlebox {
    pub const NONE: Middlebox = Middlebox { bleach: false, blackhole: 0 };

    #[inline]
    pub fn swallows(&self, meta: &Meta) -> bool {
        self.blackhole > 0 && meta.ip_bytes > self.blackhole
    }

    /// Clears the bits of ECN; true if one was set.
    #[inline]
    pub fn bleaches(&self, meta: &mut Meta) -> bool {
        let marked = self.bleach && Ecn::of(meta.traffic_class) != Ecn::NotEct;
        if marked {
            meta.traffic_class &= !3;
        }
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_longer_is_swallowed() {
        let of = |ip_bytes| Meta { ip_bytes, ..Meta::default() };
        let hole = Middlebox { blackhole: 1400, ..Middlebox::NONE };
        assert_eq!([20, 1400, 1401, 65_535].map(|bytes| hole.swallows(&of(bytes))), [false, false, true, true]);
        assert!(!Middlebox::NONE.swallows(&of(65_535)));
    }

    #[test]
    fn both_bits_are_cleared_and_the_dscp_stays() {
        let box_ = Middlebox { bleach: true, ..Middlebox::NONE };
        for traffic_class in 0..=255u8 {
            let mut meta = Meta { traffic_class, ..Meta::default() };
            assert_eq!(box_.bleaches(&mut meta), traffic_class & 3 != 0);
            assert_eq!(meta.traffic_class, traffic_class & 0xfc);
            let mut meta = Meta { traffic_class, ..Meta::default() };
            assert!(!Middlebox::NONE.bleaches(&mut meta) && meta.traffic_class == traffic_class);
        }
    }
}
