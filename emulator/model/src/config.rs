//! What one direction of a link is told to do: the part of the plan that the link reads.
//!
//! Integers only, the unit in the key; probabilities in parts per billion. The Python side writes the same
//! keys (`labs/plan.py`); unknown ones are refused on both sides.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::check::{self, probability, CheckResult};
pub use super::queue::disciplines::{
    Class, ClassesConfig, CodelConfig, Discipline, DropTailConfig, DrrConfig, DualPi2Config, FqCodelConfig, PieConfig,
    RedConfig, Scheduler, SfqConfig, StepConfig,
};
use super::{bucket, middlebox, radio, rate};

/// Parts per billion: 1 % is 10 000 000.
pub type Ppb = u32;
pub const ONE_PPB: u32 = 1_000_000_000;

/// Defines `Direction` by its keys, a line for each: its group, name, type, what it is where nothing is asked for, and what
/// checks it. A key is `fixed` while the link runs; or a change may say it, and the model has it `made` into something, or
/// `held` as it is. Of these groups `Change`, `Held` and `HeldChange` are.
macro_rules! keys {
    ($($(#[$meta:meta])* $group:ident $key:ident: $kind:ty = $nothing:expr, $check:expr;)*) => {
        /// One direction of a link. Order of the stages: impair → queue → rate → delay line.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Direction {
            $($(#[$meta])* pub $key: $kind,)*
        }

        impl Default for Direction {
            /// Nothing is asked for, not even a rate.
            fn default() -> Self {
                Direction { $($key: $nothing,)* }
            }
        }

        impl Direction {
            /// Each key on its own.
            pub(crate) fn check_keys(&self) -> CheckResult {
                $(checked(&self.$key, $check)?;)*
                Ok(())
            }

            /// The names of the keys in which it is not as `other`.
            pub fn unlike(&self, other: &Direction) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$key != other.$key {
                    names.push(stringify!($key));
                })*
                names
            }
        }

        changing! { [] $($group $key: $kind, $check;)* }
        held! { [] $($group $key: $kind;)* }
    };
}

/// Of the keys that are not `fixed`.
macro_rules! changing {
    ([$($done:tt)*] fixed $key:ident: $kind:ty, $check:expr; $($rest:tt)*) => {
        changing! { [$($done)*] $($rest)* }
    };
    ([$($done:tt)*] $group:ident $key:ident: $kind:ty, $check:expr; $($rest:tt)*) => {
        changing! { [$($done)* $key: $kind, $check;] $($rest)* }
    };
    ([$($key:ident: $kind:ty, $check:expr;)*]) => {
        /// What may be changed while a link runs, absent where it stays.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Change {
            $(
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $key: Option<$kind>,
            )*
            /// The trace begins anew.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub restart_trace: Option<bool>,
            /// Flows are counted from now on, from 0; or no more. It is no part of what a direction is.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub flows: Option<FlowCounting>,
        }

        impl Change {
            /// What a direction is after it.
            pub fn applied(&self, direction: &Direction) -> Direction {
                let mut after = direction.clone();
                $(if let Some(value) = &self.$key {
                    after.$key.clone_from(value);
                })*
                after
            }

            /// The change that gives `direction` back what this one took from it.
            pub fn undone(&self, direction: &Direction) -> Change {
                let before = direction.clone();
                Change { $($key: self.$key.as_ref().map(|_| before.$key),)* restart_trace: None, flows: None }
            }

            /// This one, and `later` after it, as one change.
            pub fn then(self, later: &Change) -> Change {
                let later = later.clone();
                Change {
                    $($key: later.$key.or(self.$key),)*
                    restart_trace: later.restart_trace.or(self.restart_trace),
                    flows: later.flows.or(self.flows),
                }
            }

            /// Each key that it names on its own.
            pub(crate) fn check_keys(&self) -> CheckResult {
                $(if let Some(value) = &self.$key {
                    checked(value, $check)?;
                })*
                self.flows.as_ref().map_or(Ok(()), FlowCounting::check)
            }

            /// It changes nothing of what the direction does to packets.
            pub fn only_counts(&self) -> bool {
                self.flows.is_some() && *self == Change { flows: self.flows.clone(), ..Change::default() }
            }
        }
    };
}

/// Of the keys that the model holds as they are.
macro_rules! held {
    ([$($done:tt)*] held $key:ident: $kind:ty; $($rest:tt)*) => { held! { [$($done)* $key: $kind;] $($rest)* } };
    ([$($done:tt)*] $group:ident $key:ident: $kind:ty; $($rest:tt)*) => { held! { [$($done)*] $($rest)* } };
    ([$($key:ident: $kind:ty;)*]) => {
        /// The keys of a direction that the model reads as they are.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Held {
            $(pub $key: $kind,)*
        }

        impl Held {
            pub fn of(direction: &Direction) -> Self {
                Held { $($key: direction.$key,)* }
            }

            pub fn take_over(&mut self, change: &HeldChange) {
                $(self.$key = change.$key.unwrap_or(self.$key);)*
            }
        }

        /// What becomes different of them.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct HeldChange {
            $(pub $key: Option<$kind>,)*
        }

        impl HeldChange {
            pub fn of(change: &Change) -> Self {
                HeldChange { $($key: change.$key,)* }
            }
        }
    };
}

// A new key has `#[serde(default)]`: a plan leaves it out where nothing is asked for, so that plans without it stay as they
// are.
keys! {
    fixed framing: Framing = Framing { overhead_bytes: 0, minimum_bytes: 0 }, Framing::check;
    /// 8 kbit/s to 1 Tbit/s, of what `framing` counts.
    made rate_bps: u64 = 0, |bps| rate::check(*bps);
    made delay: Delay = Delay::Constant { delay_ns: 0 }, Delay::check;
    /// May a packet overtake an earlier one in the delay line? Without it, releases never go back in time.
    held reorder: bool = false, any;
    /// A packet is displaced by so many packets with this probability: it leaves right behind the n-th later one that is not
    /// (RFC 5236), or `displace_within_ns` after its own time if that comes first; 0: none is, and the others are 0.
    held displace_ppb: Ppb = 0, any;
    held displace_packets: u32 = 0, any;
    held displace_within_ns: u64 = 0, any;
    made loss: Loss = Loss::None {}, Loss::check;
    held corrupt_ppb: Ppb = 0, |share| probability("corrupt_ppb", *share);
    held duplicate_ppb: Ppb = 0, |share| probability("duplicate_ppb", *share);
    /// Clears the two bits of ECN in every packet, as some middleboxes do.
    held ecn_bleach: bool = false, any;
    /// IP packets longer than this vanish without a word (RFC 2923, section 2.1); 0: none do.
    held blackhole_bytes: u32 = 0, |bytes| middlebox::check(*bytes);
    /// A policer before the queue drops what exceeds `police_bytes` + this rate × time, in any time; 0: none does.
    made police_bps: u64 = 0, any;
    made police_bytes: u64 = 0, any;
    /// So many bytes pass the rate stage at once, or at `peak_bps` where that is not 0; 0: each at the rate.
    made burst_bytes: u64 = 0, |bytes| bucket::check_depth("burst_bytes", *bytes);
    made peak_bps: u64 = 0, |bps| rate::check_peak(*bps);
    held aggregate: Aggregate = Aggregate::NONE, Aggregate::check;
    /// While the link's other direction sends, this one waits; where both say so.
    held half_duplex: bool = false, any;
    /// Packets leave the rate stage at multiples of this time only, with the last bit that the slot had room for; 0: at
    /// any instant.
    held slot_ns: u64 = 0, |ns| radio::check_slot(*ns);
    held harq: Harq = Harq::NONE, Harq::check;
    /// A pure ACK of TCP that joins the queue takes the place of an earlier one of its flow that waits there (RFC 3449,
    /// section 5.2.1). Only where all packets wait in one list.
    made ack_filter: bool = false, any;
    made queue: Queue = Queue::drop_tail(None, None), Queue::check;
    /// What changes by itself while the link runs.
    fixed trace: Trace = Trace::None {}, any;
    fixed seed: u64 = 1, any;
    /// Room for packets in flight as the plan has the link: queue plus delay line, at the smallest and at the largest
    /// packet.
    fixed store_packets: u64 = 0, |packets| check::store_packets(*packets);
    fixed store_bytes: u64 = 0, |bytes| check::store_bytes(*bytes);
}

/// Says a closure's type before it is looked at.
fn checked<T>(value: &T, check: impl FnOnce(&T) -> CheckResult) -> CheckResult {
    check(value)
}

/// Of a key of which each value can be, or which is checked together with others.
fn any<T>(_: &T) -> CheckResult {
    Ok(())
}

const LEAST_STORE_PACKETS: u64 = 1 << 16;

impl Direction {
    /// A rate on the wire, a queue and a constant delay, and nothing else; seed 1, and no store.
    pub fn plain(rate_bps: u64, queue: Queue, delay_ns: u64) -> Self {
        Direction {
            framing: Framing { overhead_bytes: 38, minimum_bytes: 84 },
            rate_bps,
            queue,
            delay: Delay::Constant { delay_ns },
            ..Direction::default()
        }
    }

    /// So many packets the link holds at most, in either clock: a change at run time may ask for a longer delay or a
    /// higher rate than the plan has room for.
    pub fn most_packets(&self) -> u64 {
        self.store_packets.max(LEAST_STORE_PACKETS)
    }
}

/// What a packet's length counts: max(bytes of the IP packet + overhead, minimum).
/// wire: 38 and 84 (header 14, FCS 4, preamble and gap 20); ethernet: 18 and 64; ip: 0 and 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Framing {
    pub overhead_bytes: u32,
    pub minimum_bytes: u32,
}

/// Packets that wait together are sent together, and all arrive when the last one has been sent, as in an A-MPDU (IEEE
/// 802.11). Before each transmission nothing is sent for `gap_ns`. So many packets take part at most; none joins once the
/// others take `time_ns` or longer (0: whatever they take). 0 packets: each is sent on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aggregate {
    pub packets: u32,
    pub time_ns: u64,
    pub gap_ns: u64,
}

/// A transmission fails with this probability and is repeated `round_ns` later, up to `rounds` times; the last one does not
/// fail. Repetitions take nothing from the rate. An error of 0: none fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Harq {
    pub error_ppb: Ppb,
    pub round_ns: u64,
    pub rounds: u32,
}

/// So many flows are counted, each by its addresses, protocol and ports; 0: none is. Those that have one of these ports at
/// either end are added up by their addresses, protocol and this port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowCounting {
    pub most: u16,
    #[serde(default)]
    pub ports: Vec<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Loss {
    None {},
    Bernoulli {
        loss_ppb: Ppb,
    },
    /// Each bit of what `framing` counts is wrong with this probability, and a packet with a wrong bit is lost.
    BitErrors {
        bit_ppb: Ppb,
    },
    /// Starts good. Per packet: first good→bad with `to_bad_ppb`, bad→good with `to_good_ppb`; then lost with the
    /// probability of the state reached.
    GilbertElliott {
        to_bad_ppb: Ppb,
        to_good_ppb: Ppb,
        loss_good_ppb: Ppb,
        loss_bad_ppb: Ppb,
    },
    /// The four states of netem's `loss state` (Salsano et al. 2009): 1 received, 2 received within a burst,
    /// 3 lost within a burst, 4 lost alone.
    Markov4 {
        p13_ppb: Ppb,
        p31_ppb: Ppb,
        p32_ppb: Ppb,
        p23_ppb: Ppb,
        p14_ppb: Ppb,
    },
    /// Packets n, 2n, 3n … are lost.
    EveryNth {
        n: u64,
    },
    /// '1' is lost, '0' goes through; repeated for ever.
    Pattern {
        pattern: String,
    },
}

/// Limits count packets that wait, not the one in service; bytes as `framing` counts them. At least one is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    pub limit_packets: Option<u64>,
    pub limit_bytes: Option<u64>,
    pub discipline: Discipline,
}

impl Queue {
    /// Drop-tail.
    pub fn drop_tail(limit_packets: Option<u64>, limit_bytes: Option<u64>) -> Self {
        Queue { limit_packets, limit_bytes, discipline: Discipline::DropTail(DropTailConfig {}) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Delay {
    Constant {
        delay_ns: u64,
    },
    /// Uniform in [delay − jitter, delay + jitter].
    Uniform {
        delay_ns: u64,
        jitter_ns: u64,
    },
    /// Standard deviation `jitter_ns`; at most 4 jitter from delay, and below 0 becomes 0.
    Normal {
        delay_ns: u64,
        jitter_ns: u64,
    },
    /// As `Normal`, each packet's deviation correlated with the one before it: a first-order autoregressive (Gauss–Markov)
    /// process. Mean and standard deviation do not depend on the correlation, which is below 1.
    GaussMarkov {
        delay_ns: u64,
        jitter_ns: u64,
        correlation_ppb: Ppb,
    },
    /// delay − jitter + Pareto tail (from 0) of shape 3, scaled to a standard deviation of `jitter_ns` and cut at
    /// delay + 10 jitter. The mean is delay − 0.42 jitter; below 0 becomes 0.
    Pareto {
        delay_ns: u64,
        jitter_ns: u64,
    },
    /// One of the values, drawn uniformly (a file of measured delays).
    Table {
        delays_ns: Vec<u64>,
    },
}

/// How a link changes over time, from the instant at which it is made, or at which its trace is begun anew. What the trace
/// says replaces what the other keys say; those hold its mean, for whoever needs one number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Trace {
    None {},
    /// Repeated after `period_ns`; 0: the last row holds.
    Rows {
        period_ns: u64,
        rows: Vec<Row>,
    },
    /// Waiting packets leave at these instants only, up to 1504 bytes at each opportunity (mahimahi). A packet that is
    /// longer than what is left goes on at the next one; what no packet takes is lost. Repeated after `period_ns`.
    Opportunities {
        period_ns: u64,
        opportunities: Vec<Opportunity>,
    },
}

/// What a link becomes at an instant, as a list [at_ns, rate_bps, delay_ns, loss_ppb, limit_bytes]; null: it stays. The
/// first row names all that any row names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RowList", into = "RowList")]
pub struct Row {
    pub at_ns: u64,
    /// 0: nothing leaves; a packet in service keeps the bits that it has left.
    pub rate_bps: Option<u64>,
    /// Of packets that leave the server from then on.
    pub delay_ns: Option<u64>,
    /// Each packet is lost with the same probability.
    pub loss_ppb: Option<Ppb>,
    pub limit_bytes: Option<u64>,
}

type RowList = (u64, Option<u64>, Option<u64>, Option<Ppb>, Option<u64>);

impl From<RowList> for Row {
    fn from((at_ns, rate_bps, delay_ns, loss_ppb, limit_bytes): RowList) -> Self {
        Row { at_ns, rate_bps, delay_ns, loss_ppb, limit_bytes }
    }
}

impl From<Row> for RowList {
    fn from(row: Row) -> Self {
        (row.at_ns, row.rate_bps, row.delay_ns, row.loss_ppb, row.limit_bytes)
    }
}

/// So many opportunities at the same instant, as a list [at_ns, count].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u32)", into = "(u64, u32)")]
pub struct Opportunity {
    pub at_ns: u64,
    pub count: u32,
}

impl From<(u64, u32)> for Opportunity {
    fn from((at_ns, count): (u64, u32)) -> Self {
        Opportunity { at_ns, count }
    }
}

impl From<Opportunity> for (u64, u32) {
    fn from(one: Opportunity) -> Self {
        (one.at_ns, one.count)
    }
}
