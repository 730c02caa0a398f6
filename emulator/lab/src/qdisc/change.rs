//! Changes of one direction of a kernel link while packets are in it: none of them is dropped.
//!
//! In: the direction as it is and as it shall be. Out: requests in a `Batch`, one for each level that differs. What waits
//! stays where it is: packets in netem's delay line leave when they were due, the one that psp has in service ends at the
//! rate at which it began, the queue keeps its packets also above a smaller limit (CoDel and PIE drop down to it). Where
//! packets may not overtake, those that come after a shorter delay was set leave with the last one before, as in a user
//! link. A change of netem begins its losses anew: in the good state, with the next of the direction's seeds.

use ewan_model::config::Direction;
use ewan_system::netlink::Batch;

use super::{class, kinds, psp_class, request, Place};
use super::{FIRST, QUEUE, RATE, ROOT, TCA_OPTIONS, TCA_STAB, TC_H_ROOT};
use ewan_plan::Backend;

/// An odd number whose bits look random: the fraction of the golden ratio, in 64 bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// `times`: how often the direction was changed before.
pub fn requests(
    batch: &mut Batch,
    index: u32,
    backend: Backend,
    [now, then]: [&Direction; 2],
    sizes: kinds::Sizes,
    times: u64,
    at: &str,
) {
    if kinds::NetemPart::from(now) != kinds::NetemPart::from(then) {
        let seed = then.seed.wrapping_add(GOLDEN.wrapping_mul(times + 1));
        let fresh = Direction { seed, ..then.clone() };
        let root = Place { index, parent: TC_H_ROOT, handle: ROOT };
        request(batch, 0, root, "netem", format!("{at}: delay and loss"), |body| {
            // A change without a size table takes it away.
            body.nested(TCA_STAB, &[], |table| kinds::sizes(table, sizes));
            body.nested(TCA_OPTIONS, &kinds::netem_head(&fresh), |options| {
                kinds::netem(options, &fresh);
                kinds::netem_anew(options, &fresh);
            });
        });
    }
    let packet = sizes.counted(sizes.mtu);
    // RED's idea of how fast its average sinks while the queue is empty stays that of the old rate: telling it of the
    // new one would set the average to 0.
    if now.rate_bps != then.rate_bps {
        let rate = Place { index, parent: ROOT | FIRST, handle: RATE };
        let what = format!("{at}: rate of {} bit/s", then.rate_bps);
        if backend == Backend::Tbf {
            // tbf hands its limit on to a FIFO below it, in that one's own unit.
            let limit = then.queue.limit_packets.or(then.queue.limit_bytes).unwrap_or(0);
            let burst = kinds::tbf_burst(then.rate_bps, packet);
            request(batch, 0, rate, "tbf", what, |body| {
                body.nested(TCA_OPTIONS, &[], |options| {
                    kinds::tbf(options, then.rate_bps, burst, super::narrow(limit), 0);
                });
            });
        } else {
            psp_class(batch, 0, rate, FIRST, &class(then, sizes), &what);
        }
    }
    if now.queue != then.queue {
        kinds::queue(batch, 0, Place { index, parent: RATE | FIRST, handle: QUEUE }, then, packet, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ewan_model::config::Queue;

    fn direction() -> Direction {
        Direction {
            store_packets: 100,
            store_bytes: 100_000,
            ..Direction::plain(1_000_000, Queue::drop_tail(None, Some(10_000)), 1_000_000)
        }
    }

    fn levels(then: &Direction) -> usize {
        let mut batch = Batch::default();
        let (now, sizes) = (direction(), super::super::sizes(then, 1500));
        requests(&mut batch, 2, Backend::Kernel, [&now, then], sizes, 0, "link core forward");
        batch.count()
    }

    #[test]
    fn only_the_levels_that_differ_are_told() {
        assert_eq!(levels(&direction()), 0);
        assert_eq!(levels(&Direction { rate_bps: 2_000_000, ..direction() }), 1);
        assert_eq!(levels(&Direction { corrupt_ppb: 1, reorder: true, ..direction() }), 1);
        let mut all = Direction { rate_bps: 2_000_000, duplicate_ppb: 1, ..direction() };
        all.queue.limit_bytes = Some(20_000);
        assert_eq!(levels(&all), 3);
    }
}
