//! What a middlebox at the entrance of a link does to packets: it clears the bits of ECN, or it takes away, without a word,
//! what is longer than the path beyond it can carry.

use alloc::format;

use super::check::{require, CheckResult};
use super::{Ecn, Meta};
use crate::config::Held;

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

/// Is the packet longer than what passes?
#[inline]
pub(super) fn swallows(held: &Held, meta: &Meta) -> bool {
    held.blackhole_bytes > 0 && meta.ip_bytes > held.blackhole_bytes
}

/// Clears the bits of ECN; true if one was set.
#[inline]
pub(super) fn bleaches(held: &Held, meta: &mut Meta) -> bool {
    let marked = held.ecn_bleach && Ecn::of(meta.traffic_class) != Ecn::NotEct;
    if marked {
        meta.traffic_class &= !3;
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Direction;

    fn held(ecn_bleach: bool, blackhole_bytes: u32) -> Held {
        Held::of(&Direction { ecn_bleach, blackhole_bytes, ..Direction::default() })
    }

    #[test]
    fn only_what_is_longer_is_swallowed() {
        let of = |ip_bytes| Meta { ip_bytes, ..Meta::default() };
        let hole = held(false, 1400);
        assert_eq!([20, 1400, 1401, 65_535].map(|bytes| swallows(&hole, &of(bytes))), [false, false, true, true]);
        assert!(!swallows(&held(true, 0), &of(65_535)));
    }

    #[test]
    fn both_bits_are_cleared_and_the_dscp_stays() {
        for traffic_class in 0..=255u8 {
            let mut meta = Meta { traffic_class, ..Meta::default() };
            assert_eq!(bleaches(&held(true, 0), &mut meta), traffic_class & 3 != 0);
            assert_eq!(meta.traffic_class, traffic_class & 0xfc);
            let mut meta = Meta { traffic_class, ..Meta::default() };
            assert!(!bleaches(&held(false, 0), &mut meta) && meta.traffic_class == traffic_class);
        }
    }
}
