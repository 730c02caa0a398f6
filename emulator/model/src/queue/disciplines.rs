//! The queue disciplines: a file each, with what the plan says of it, what checks that, and its model. The table at the end
//! names them; all else goes by it. Python's side of each is in labs/link/disciplines.
//!
//! A discipline is asked with the virtual time at which something happens on the link, never with the time at which someone
//! looked. Packets wait in one list, where it is an `Aqm`; or it keeps `Lists` of its own.

mod classes;
mod codel;
mod drop_tail;
mod dual;
mod flows;
mod pie;
mod red;
mod step;

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Limit, Verdict, Waiting};
use crate::check::CheckResult;
use crate::counters::{Counters, Drop};
use crate::fifo::{Fifo, Pool};
use crate::rng::Stream;
use crate::Nanos;

pub use classes::{Class, ClassesConfig, Scheduler};
pub use codel::CodelConfig;
pub use drop_tail::DropTailConfig;
pub use dual::DualPi2Config;
pub use flows::{DrrConfig, FqCodelConfig, SfqConfig};
pub use pie::PieConfig;
pub use red::RedConfig;
pub use step::StepConfig;

/// A discipline as the plan has it.
pub(super) trait Config {
    type Model;

    /// Can it be run?
    fn check(&self) -> CheckResult;

    /// At its beginning.
    fn model(&self) -> Self::Model;

    /// The classes of which it counts apart, in the order of its reports.
    fn class_names(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// What a discipline sees of an arriving packet and of the queue that it finds.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub now: Nanos,
    pub bytes: u32,
    /// Waiting, without the packet in service.
    pub queued_bytes: u64,
    /// Neither waiting nor in service is anyone, for so long.
    pub idle: Option<Nanos>,
    /// The packet's own time in service.
    pub serialisation: Nanos,
    pub ecn_capable: bool,
}

/// What it sees of a packet that would go into service.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    pub now: Nanos,
    /// For so long it waited.
    pub sojourn: Nanos,
    pub bytes: u32,
    /// Of those that wait behind it.
    pub backlog: u64,
    pub ecn_capable: bool,
}

/// The model of a discipline whose packets wait in one list.
pub(super) trait Aqm {
    /// Whether it is asked when a packet arrives.
    const ON_ARRIVAL: bool = false;
    /// Whether it is asked when a packet would go into service.
    const ON_DEPARTURE: bool = false;

    fn arrives(&mut self, _arrival: &Arrival, _stream: &mut Stream) -> Verdict {
        Verdict::Pass
    }

    fn departs(&mut self, _departure: &Departure, _stream: &mut Stream) -> Verdict {
        Verdict::Pass
    }

    /// Periodic updates up to `until`, with what has been waiting since the last event.
    fn keep_time(&mut self, _until: Nanos, _queued_bytes: u64, _rate_bps: u64) {}
}

/// The model of a discipline whose packets wait in several lists, which it keeps.
pub(super) trait Lists {
    /// Whether it asks which flow a packet belongs to.
    const TELLS_FLOWS_APART: bool = false;
    /// Whether it may drop a packet at the end of a service.
    const DROPS_LATER: bool = false;

    /// May it wait beside those who do?
    fn admits<P>(&self, arriving: &Waiting<P>, limit: &Limit, counters: &mut Counters) -> bool {
        limit.admits(counters.queued, arriving.bytes)
    }

    fn push<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>, arriving: Waiting<P>, counters: &mut Counters);

    /// Gives a packet away for which there is no room, after `push`.
    fn shed<P: Copy>(&mut self, _pool: &mut Pool<Waiting<P>>) -> Option<Waiting<P>> {
        None
    }

    /// The packet whose turn it is. Drops are counted, and go to `dropped`.
    fn next<P: Copy>(
        &mut self,
        pool: &mut Pool<Waiting<P>>,
        free_at: Nanos,
        counters: &mut Counters,
        dropped: &mut Fifo<(P, Drop)>,
        stream: &mut Stream,
    ) -> Option<Waiting<P>>;

    /// Any packet.
    fn cut<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>, counters: &mut Counters) -> Option<Waiting<P>>;

    /// Periodic updates up to `until`, while the same packets wait all the time.
    fn keep_time<P: Copy>(&mut self, _until: Nanos, _pool: &Pool<Waiting<P>>) {}

    /// So many classes count on their own.
    fn class_count(&self) -> usize {
        0
    }
}

macro_rules! disciplines {
    (
        one list { $($(#[$of_one:meta])* $one:ident: $one_config:ident,)* }
        several lists { $($(#[$of_several:meta])* $several:ident: $several_config:ident,)* }
    ) => {
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum Discipline {
            $($(#[$of_one])* $one($one_config),)*
            $($(#[$of_several])* $several($several_config),)*
        }

        impl Discipline {
            pub(super) fn check(&self) -> CheckResult {
                match self {
                    $(Discipline::$one(config) => config.check(),)*
                    $(Discipline::$several(config) => config.check(),)*
                }
            }

            /// Do all packets wait in one list?
            pub fn has_one_list(&self) -> bool {
                match self {
                    $(Discipline::$one(_) => true,)*
                    $(Discipline::$several(_) => false,)*
                }
            }

            /// The classes of which it counts apart, in the order of its reports; none of most disciplines.
            pub fn class_names(&self) -> Vec<&str> {
                match self {
                    $(Discipline::$one(config) => config.class_names(),)*
                    $(Discipline::$several(config) => config.class_names(),)*
                }
            }

            pub(super) fn model(&self) -> Model {
                match self {
                    $(Discipline::$one(config) => Model::OneList(OneList::$one(config.model())),)*
                    $(Discipline::$several(config) => Model::SeveralLists(SeveralLists::$several(config.model())),)*
                }
            }
        }

        #[derive(Clone, Debug)]
        pub(super) enum OneList {
            $($one(<$one_config as Config>::Model),)*
        }

        impl OneList {
            #[inline]
            pub fn on_arrival(&self) -> bool {
                match self {
                    $(OneList::$one(_) => <<$one_config as Config>::Model as Aqm>::ON_ARRIVAL,)*
                }
            }

            #[inline]
            pub fn on_departure(&self) -> bool {
                match self {
                    $(OneList::$one(_) => <<$one_config as Config>::Model as Aqm>::ON_DEPARTURE,)*
                }
            }

            #[inline]
            pub fn arrives(&mut self, arrival: &Arrival, stream: &mut Stream) -> Verdict {
                match self {
                    $(OneList::$one(model) => model.arrives(arrival, stream),)*
                }
            }

            #[inline]
            pub fn departs(&mut self, departure: &Departure, stream: &mut Stream) -> Verdict {
                match self {
                    $(OneList::$one(model) => model.departs(departure, stream),)*
                }
            }

            #[inline]
            pub fn keep_time(&mut self, until: Nanos, queued_bytes: u64, rate_bps: u64) {
                match self {
                    $(OneList::$one(model) => model.keep_time(until, queued_bytes, rate_bps),)*
                }
            }
        }

        #[derive(Clone, Debug)]
        pub(super) enum SeveralLists {
            $($several(<$several_config as Config>::Model),)*
        }

        impl SeveralLists {
            #[inline]
            pub fn tells_flows_apart(&self) -> bool {
                match self {
                    $(SeveralLists::$several(_) => <<$several_config as Config>::Model as Lists>::TELLS_FLOWS_APART,)*
                }
            }

            #[inline]
            pub fn drops_later(&self) -> bool {
                match self {
                    $(SeveralLists::$several(_) => <<$several_config as Config>::Model as Lists>::DROPS_LATER,)*
                }
            }

            pub fn admits<P>(&self, arriving: &Waiting<P>, limit: &Limit, counters: &mut Counters) -> bool {
                match self {
                    $(SeveralLists::$several(model) => model.admits(arriving, limit, counters),)*
                }
            }

            pub fn push<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>, arriving: Waiting<P>, counters: &mut Counters) {
                match self {
                    $(SeveralLists::$several(model) => model.push(pool, arriving, counters),)*
                }
            }

            pub fn shed<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>) -> Option<Waiting<P>> {
                match self {
                    $(SeveralLists::$several(model) => model.shed(pool),)*
                }
            }

            pub fn next<P: Copy>(
                &mut self,
                pool: &mut Pool<Waiting<P>>,
                free_at: Nanos,
                counters: &mut Counters,
                dropped: &mut Fifo<(P, Drop)>,
                stream: &mut Stream,
            ) -> Option<Waiting<P>> {
                match self {
                    $(SeveralLists::$several(model) => model.next(pool, free_at, counters, dropped, stream),)*
                }
            }

            pub fn cut<P: Copy>(&mut self, pool: &mut Pool<Waiting<P>>, counters: &mut Counters) -> Option<Waiting<P>> {
                match self {
                    $(SeveralLists::$several(model) => model.cut(pool, counters),)*
                }
            }

            #[inline]
            pub fn keep_time<P: Copy>(&mut self, until: Nanos, pool: &Pool<Waiting<P>>) {
                match self {
                    $(SeveralLists::$several(model) => model.keep_time(until, pool),)*
                }
            }

            pub fn class_count(&self) -> usize {
                match self {
                    $(SeveralLists::$several(model) => model.class_count(),)*
                }
            }
        }
    };
}

/// The model of any discipline.
#[derive(Clone, Debug)]
pub(super) enum Model {
    OneList(OneList),
    SeveralLists(SeveralLists),
}

impl Model {
    pub fn class_count(&self) -> usize {
        match self {
            Model::OneList(_) => 0,
            Model::SeveralLists(lists) => lists.class_count(),
        }
    }
}

disciplines! {
    one list {
        DropTail: DropTailConfig,
        Step: StepConfig,
        Red: RedConfig,
        Codel: CodelConfig,
        Pie: PieConfig,
    }
    several lists {
        FqCodel: FqCodelConfig,
        Drr: DrrConfig,
        Sfq: SfqConfig,
        #[serde(rename = "dualpi2")]
        DualPi2: DualPi2Config,
        Classes: ClassesConfig,
    }
}
