//! What a link of the kernel's own parts (netem, psp or tbf, a queue) can be, and become while packets are in it.
//!
//! In: the direction as it is and as it shall be. Out: why that cannot be, and what to write instead.

use ewan_model::config::{Aggregate, Delay, Direction, Discipline, DropTailConfig, Harq, Loss, Trace};

/// The keys that the kernel's parts go by, within the values that `refusal` lets pass, or that no packet shows.
const OF_THE_KERNEL: [&str; 12] = [
    "framing",
    "rate_bps",
    "loss",
    "corrupt_ppb",
    "duplicate_ppb",
    "queue",
    "delay",
    "reorder",
    "peak_bps",
    "seed",
    "store_packets",
    "store_bytes",
];

/// What the kernel's parts cannot do, or not without dropping what waits, and what to write.
pub fn refusal(now: &Direction, then: &Direction) -> Option<&'static str> {
    let Direction { loss, queue, delay, aggregate, harq, trace, .. } = then;
    match loss {
        Loss::EveryNth { .. } | Loss::Pattern { .. } => {
            return Some("netem loses at random only: write a fraction, or emulator: user in the description");
        }
        Loss::BitErrors { .. } => {
            return Some("netem knows no bit errors: write a fraction, or emulator: user in the description");
        }
        Loss::None {} | Loss::Bernoulli { .. } | Loss::GilbertElliott { .. } | Loss::Markov4 { .. } => {}
    }
    if then.ecn_bleach || then.blackhole_bytes > 0 {
        return Some("netem has no such middlebox: write emulator: user in the description");
    }
    if then.police_bps > 0 || then.burst_bytes > 0 {
        return Some("such a token bucket is our own model's alone: write emulator: user in the description");
    }
    if then.half_duplex || *aggregate != Aggregate::NONE || then.slot_ns > 0 || *harq != Harq::NONE {
        return Some("such a radio link is our own model's alone: write emulator: user in the description");
    }
    match delay {
        Delay::Table { .. } | Delay::Normal { .. } | Delay::GaussMarkov { .. } | Delay::Pareto { .. } => {
            return Some(
                "netem has no such distribution: write distribution=uniform, or emulator: user in the description",
            );
        }
        Delay::Constant { .. } | Delay::Uniform { .. } => {}
    }
    if then.ack_filter {
        return Some("the kernel's queues filter no ACKs: write emulator: user in the description");
    }
    if then.displace_ppb > 0 {
        return Some("netem displaces packets another way: write emulator: user in the description");
    }
    match queue.discipline {
        Discipline::DropTail(_)
        | Discipline::Red(_)
        | Discipline::Codel(_)
        | Discipline::Pie(_)
        | Discipline::FqCodel(_)
        | Discipline::DualPi2(_) => {}
        _ => return Some("such a queue is our own model's alone: write emulator: user in the description"),
    }
    if *trace != (Trace::None {}) {
        return Some("the kernel's parts follow no trace: write emulator: user in the description");
    }
    // A key that nobody taught to netem is refused.
    if then.unlike(&Direction::default()).into_iter().any(|key| !OF_THE_KERNEL.contains(&key)) {
        return Some("such a setting is our own model's alone: write emulator: user in the description");
    }
    let kind = |direction: &Direction| {
        let fifo = direction.queue.discipline == Discipline::DropTail(DropTailConfig {});
        (std::mem::discriminant(&direction.queue.discipline), fifo && direction.queue.limit_packets.is_some())
    };
    if kind(now) != kind(then) {
        return Some(
            "another kind of queue would drop what waits in this one (packets or bytes as its limit are two kinds): \
             write emulator: user in the description",
        );
    }
    let limits = |direction: &Direction| (direction.queue.limit_packets, direction.queue.limit_bytes);
    if matches!(queue.discipline, Discipline::Red(_)) && limits(now) != limits(then) {
        return Some(
            "another limit would drop what waits in the kernel's RED queue: write emulator: user in the description",
        );
    }
    if let (Discipline::FqCodel(now), Discipline::FqCodel(then)) = (&now.queue.discipline, &queue.discipline) {
        if now.flows != then.flows {
            return Some("the kernel's fq_codel keeps its number of queues: write emulator: user in the description");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use ewan_model::config::{CodelConfig, Queue, Row};

    fn direction() -> Direction {
        Direction {
            store_packets: 100,
            store_bytes: 100_000,
            ..Direction::plain(1_000_000, Queue::drop_tail(None, Some(10_000)), 1_000_000)
        }
    }

    #[test]
    fn what_would_drop_or_cannot_be_is_refused() {
        let said = |change: &dyn Fn(&mut Direction)| {
            let mut then = direction();
            change(&mut then);
            refusal(&direction(), &then).unwrap_or("")
        };
        assert_eq!(said(&|then| then.queue.limit_bytes = Some(1)), "");
        assert_eq!(said(&|then| then.delay = Delay::Uniform { delay_ns: 9, jitter_ns: 1 }), "");
        assert!(said(&|then| then.ecn_bleach = true).contains("no such middlebox"));
        assert!(said(&|then| (then.police_bps, then.police_bytes) = (8000, 1600)).contains("token bucket"));
        assert!(said(&|then| then.burst_bytes = 1600).contains("token bucket"));
        assert!(said(&|then| then.slot_ns = 1_000_000).contains("radio"));
        assert!(said(&|then| then.aggregate.packets = 2).contains("radio"));
        assert!(said(&|then| then.harq.error_ppb = 2).contains("radio"));
        assert!(said(&|then| then.blackhole_bytes = 1400).contains("no such middlebox"));
        assert!(said(&|then| then.ack_filter = true).contains("filter no ACKs"));
        assert!(said(&|then| then.loss = Loss::BitErrors { bit_ppb: 100 }).contains("no bit errors"));
        assert!(said(&|then| then.loss = Loss::EveryNth { n: 3 }).contains("at random only"));
        assert!(said(&|then| then.delay = Delay::Table { delays_ns: vec![1] }).contains("no such distribution"));
        assert!(said(&|then| then.queue.limit_packets = Some(3)).contains("would drop what waits"));
        let rows = vec![Row { rate_bps: Some(9000), ..Row::default() }];
        let traced = Trace::Rows { period_ns: 0, rows };
        assert!(said(&|then| then.trace = traced.clone()).contains("no trace"));
        let codel = Discipline::Codel(CodelConfig { target_ns: 5_000_000, interval_ns: 100_000_000, ecn: false });
        assert!(said(&|then| then.queue.discipline = codel.clone()).contains("would drop what waits"));
    }
}
